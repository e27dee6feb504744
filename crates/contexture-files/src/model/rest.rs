//! Storing what is known of files. Lines are stored as places in the log.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::index::PathIndex;
use super::names::NamedFiles;
use super::shelf::KnownFiles;
use super::state::End;
use super::{Cause, DiskChange, FileModel, FileState, Known, Line, Mention, Segment, Who};
use crate::disk::NotCompared;
use contexture_text::packed::{Damaged, Packer, Unpacker};

impl FileModel {
    /// The moments at which known lines were seen or written, whose messages contain their texts.
    pub fn moments(&self) -> BTreeSet<u32> {
        let mut moments = BTreeSet::new();
        let segments = self.files.iter().flat_map(|file| &file.segments);
        let mut last = (0, 0);
        for line in segments.flat_map(|segment| &segment.lines) {
            if std::mem::replace(&mut last, (line.seen, line.edited)) != (line.seen, line.edited) {
                moments.extend([line.seen, line.edited]);
            }
        }
        moments
    }

    /// Writes everything that is known.
    pub fn rest(&self, packer: &mut Packer<'_>) {
        let Self { files, index, names, written_at, has_links, printed, count, bytes } = self;
        let mut before = "";
        packer.list(files.iter().enumerate(), |packer, (index, file)| {
            packer.text_after(before, &file.path);
            file.rest(packer);
            packer.flag(files.is_as_compared(index));
            before = &file.path;
        });
        index.rest(packer);
        names.rest(packer);
        packer.number(*written_at);
        packer.flag(*has_links);
        let mut printed: Vec<(&Vec<String>, &usize)> = printed.iter().collect();
        printed.sort_unstable();
        packer.list(printed, |packer, (paths, file)| {
            packer.list(paths, |packer, path| packer.text(path));
            packer.number(*file);
        });
        packer.number(*count);
        packer.number(*bytes);
    }

    /// Reads it again.
    pub fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        let mut before = String::new();
        let files = unpacker.list(|unpacker| {
            before = unpacker.text_after(&before)?;
            Ok((FileState::wake(before.clone(), unpacker)?, unpacker.flag()?))
        })?;
        let index = PathIndex::wake(unpacker, files.len())?;
        let names = NamedFiles::wake(unpacker)?;
        let (written_at, has_links) = (unpacker.number()?, unpacker.flag()?);
        let printed = unpacker.list(|unpacker| Ok((unpacker.list(owned)?, unpacker.place(files.len())?)))?;
        let (count, bytes) = (unpacker.number()?, unpacker.number()?);
        // Later changes of a file subtract its bytes from the sum, which must not underflow.
        let sum = files.iter().try_fold(0_usize, |sum, (file, _)| sum.checked_add(file.bytes));
        if sum.is_none_or(|sum| sum > bytes) {
            return Err(Damaged);
        }
        let printed: HashMap<Vec<String>, usize> = printed.into_iter().collect();
        Ok(Self { files: KnownFiles::of(files), index, names, written_at, has_links, printed, count, bytes })
    }
}

fn owned(unpacker: &mut Unpacker<'_>) -> Result<String, Damaged> {
    Ok(unpacker.text()?.as_ref().to_owned())
}

impl DiskChange {
    fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        let (at, lost) = (unpacker.number()?, unpacker.number()?);
        Ok(Self { at, lost, differ: unpacker.list(|unpacker| Ok((unpacker.number()?, unpacker.number()?)))? })
    }
}

impl FileState {
    fn rest(&self, packer: &mut Packer<'_>) {
        let Self {
            path: _,
            segments,
            version,
            touched,
            read,
            edited,
            edits,
            reads,
            named,
            named_by_agent,
            changed_by,
            mentioned,
            deleted,
            whole,
            changed_elsewhere,
            disk_change,
            not_compared,
            changes,
            mentions,
            end,
            whole_at,
            written_at,
            loosened_at,
            has_returns,
            bytes,
        } = self;
        packer.list(segments, |packer, segment| segment.rest(packer));
        for number in [version, touched, read, edited, edits, reads, named, named_by_agent, mentioned] {
            packer.number(*number);
        }
        packer.flag(changed_by.is_some());
        changed_by.iter().for_each(|who| who.rest(packer));
        for flag in [deleted, whole, changed_elsewhere] {
            packer.flag(*flag);
        }
        packer.flag(disk_change.is_some());
        if let Some(DiskChange { at, lost, differ }) = disk_change {
            packer.number(*at);
            packer.number(*lost);
            packer.list(differ, |packer, (first, last)| {
                packer.number(*first);
                packer.number(*last);
            });
        }
        packer.optional(not_compared.and_then(|why| NotCompared::ALL.iter().position(|other| *other == why)));
        packer.list(changes, |packer, cause| cause.rest(packer));
        packer.list(mentions, |packer, Mention { at, line }| {
            packer.number(*at);
            packer.optional(*line);
        });
        packer.number(match end {
            End::Unknown => 0_u64,
            End::Closed => 1,
            End::Open => 2,
        });
        for number in [whole_at, written_at, loosened_at] {
            packer.number(*number);
        }
        packer.flag(*has_returns);
        packer.number(*bytes);
    }

    fn wake(path: String, unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        // Fields are read in the order in which they are written here.
        let file = Self {
            path,
            segments: unpacker.list(Segment::wake)?,
            version: unpacker.number()?,
            touched: unpacker.number()?,
            read: unpacker.number()?,
            edited: unpacker.number()?,
            edits: unpacker.number()?,
            reads: unpacker.number()?,
            named: unpacker.number()?,
            named_by_agent: unpacker.number()?,
            mentioned: unpacker.number()?,
            changed_by: if unpacker.flag()? { Some(Who::wake(unpacker)?) } else { None },
            deleted: unpacker.flag()?,
            whole: unpacker.flag()?,
            changed_elsewhere: unpacker.flag()?,
            disk_change: if unpacker.flag()? { Some(DiskChange::wake(unpacker)?) } else { None },
            not_compared: match unpacker.optional::<usize>()? {
                Some(at) => Some(*NotCompared::ALL.get(at).ok_or(Damaged)?),
                None => None,
            },
            changes: unpacker.list(Cause::wake)?,
            mentions: unpacker.list(|unpacker| Ok(Mention { at: unpacker.number()?, line: unpacker.optional()? }))?,
            end: match unpacker.number::<u64>()? {
                0 => End::Unknown,
                1 => End::Closed,
                2 => End::Open,
                _ => return Err(Damaged),
            },
            whole_at: unpacker.number()?,
            written_at: unpacker.number()?,
            loosened_at: unpacker.number()?,
            has_returns: unpacker.flag()?,
            bytes: unpacker.number()?,
        };
        Ok(file)
    }
}

impl Segment {
    fn rest(&self, packer: &mut Packer<'_>) {
        let Self { first, lines, guess, is_hit } = self;
        packer.optional(*first);
        packer.optional(*guess);
        packer.flag(*is_hit);
        packer.lines(&lines.iter().map(|line| &*line.text).collect::<Vec<_>>());
        // Lines that arrived together differ only in their text.
        for run in lines.chunk_by(|one, other| one.trace() == other.trace()) {
            packer.number(run.len());
            run[0].trace().rest(packer);
        }
    }

    fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        let (first, guess) = (unpacker.optional()?, unpacker.optional()?);
        let is_hit = unpacker.flag()?;
        let mut texts = unpacker.lines()?.into_iter();
        let mut lines = Vec::with_capacity(texts.len());
        while texts.len() > 0 {
            let count: usize = unpacker.number()?;
            if count == 0 || count > texts.len() {
                return Err(Damaged);
            }
            let trace = Trace::wake(unpacker)?;
            lines.extend(texts.by_ref().take(count).map(|text| trace.line(text)));
        }
        Ok(Self { first, lines, guess, is_hit })
    }
}

/// What is known of a line besides its text.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Trace {
    seen: u32,
    edited: u32,
    shown: u32,
    span: u32,
    is_computed: bool,
    known: Known,
    certain_at: u64,
}

impl Line {
    fn trace(&self) -> Trace {
        let Self { text: _, seen, edited, shown, span, is_computed, known, certain_at } = *self;
        Trace { seen, edited, shown, span, is_computed, known, certain_at }
    }
}

impl Trace {
    fn line(self, text: Arc<str>) -> Line {
        let Self { seen, edited, shown, span, is_computed, known, certain_at } = self;
        Line { text, seen, edited, shown, span, is_computed, known, certain_at }
    }

    fn rest(self, packer: &mut Packer<'_>) {
        let Self { seen, edited, shown, span, is_computed, known, certain_at } = self;
        for number in [seen, edited, shown, span] {
            packer.number(number);
        }
        packer.flag(is_computed);
        packer.number(match known {
            Known::Changed => 0_u64,
            Known::Loose => 1,
            Known::Placed => 2,
            Known::Verified => 3,
        });
        packer.number(certain_at);
    }

    fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        Ok(Self {
            seen: unpacker.number()?,
            edited: unpacker.number()?,
            shown: unpacker.number()?,
            span: unpacker.number()?,
            is_computed: unpacker.flag()?,
            known: match unpacker.number::<u64>()? {
                0 => Known::Changed,
                1 => Known::Loose,
                2 => Known::Placed,
                3 => Known::Verified,
                _ => return Err(Damaged),
            },
            certain_at: unpacker.number()?,
        })
    }
}

impl Who {
    pub(super) fn rest(self, packer: &mut Packer<'_>) {
        packer.number(match self {
            Who::Agent => 0_u64,
            Who::User => 1,
            Who::Other => 2,
        });
    }

    pub(super) fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        match unpacker.number::<u64>()? {
            0 => Ok(Who::Agent),
            1 => Ok(Who::User),
            2 => Ok(Who::Other),
            _ => Err(Damaged),
        }
    }
}
