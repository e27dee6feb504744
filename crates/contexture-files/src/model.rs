//! What is known of each file's current version.
//!
//! A pure fold over observations: the same observations in the same order give the same model. Reads add lines, edits
//! and patches change known lines, writes replace them. Lines are never joined because their text is alike, only by
//! numbers that are certain. Lines from before a change that could not be followed are marked as changed; what only could
//! be written stays as it was seen, with its date. Forgetting a line is always allowed.

use std::collections::HashMap;
use std::sync::Arc;

use super::disk::NotCompared;
use super::numbering::Passage;
use super::observation::Observation;
use super::path::normalize;

mod align;
mod change;
mod compare;
mod edit;
mod fact;
mod index;
mod names;
mod rest;
mod shelf;
mod splice;
mod state;
mod verify;

pub use super::observation::Who;
pub use compare::{Compared, Found, Piece, Region, There};
use fact::Known;
pub use fact::{Cause, Claim, Fact};
use index::PathIndex;
use names::NamedFiles;
pub use names::named_places;
use shelf::KnownFiles;
pub use state::{MAX_MENTIONS, Mention};
pub use verify::Verified;

/// Most files that an entry of printed lines names.
const MAX_PRINTED_NAMES: usize = 4;

/// One known line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its text, without a line feed.
    pub text: Arc<str>,
    /// When it was last shown to the agent or written by it.
    pub seen: u32,
    /// When the agent last changed it; 0 if never.
    pub edited: u32,
    /// The mark of the view that last showed it; 0 if none did.
    pub shown: u32,
    /// How many lines were shown or written together with it when it was last seen.
    pub span: u32,
    /// Whether it was computed from what was known and what a command did, so that no message shows it.
    pub is_computed: bool,
    /// What was known of it when it was last observed; see [`FileModel::claim`] for what is known now.
    known: Known,
    /// The number of observations at the time when it was last certain.
    certain_at: u64,
}

impl Line {
    /// Whether it is from before a change that could not be followed.
    pub fn is_changed(&self) -> bool {
        self.known == Known::Changed
    }

    /// Whether it was seen or written where it is.
    fn is_placed(&self) -> bool {
        self.known >= Known::Placed
    }
}

/// A run of consecutive known lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The number of its first line, from 1, if that is certain.
    pub first: Option<usize>,
    /// The lines.
    pub lines: Vec<Line>,
    /// What `first` was before it became uncertain.
    guess: Option<usize>,
    /// Whether only a search showed it.
    pub is_hit: bool,
}

/// Everything that is known of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileState {
    /// The path as the agent last wrote it.
    pub path: String,
    /// Known lines, in the order of their numbers; those without numbers last.
    pub segments: Vec<Segment>,
    /// How often its text changed, as far as the agent could know.
    pub version: u32,
    /// When it was last read, searched or changed.
    pub touched: u32,
    /// When it was last read.
    pub read: u32,
    /// When this agent last changed it; 0 if never.
    pub edited: u32,
    /// How often this agent changed it.
    pub edits: u32,
    /// How often it was read.
    pub reads: u32,
    /// When the user last named it; 0 if never.
    pub named: u32,
    /// When this agent last named it; 0 if never.
    pub named_by_agent: u32,
    /// Who changed it last, if anyone did.
    pub changed_by: Option<Who>,
    /// When an output last named it, or the user one of its lines; 0 if never.
    pub mentioned: u32,
    /// Whether it was deleted.
    pub deleted: bool,
    /// Whether the first segment is the whole file.
    pub whole: bool,
    /// Whether something besides the agent's own edits changed it, judging by what reads showed.
    pub changed_elsewhere: bool,
    /// What a comparison found changed on the disk, until the agent reads or changes the file again.
    pub disk_change: Option<DiskChange>,
    /// Why it was not compared when it was about to be shown, until it is or the agent reads or changes it again.
    pub not_compared: Option<NotCompared>,
    /// The changes that lines of it are from before, oldest first; empty if there are no such lines.
    pub changes: Vec<Cause>,
    /// Where outputs and the user named it, newest first.
    mentions: Vec<Mention>,
    end: state::End,
    /// The number of observations when it was last known as a whole, or deleted.
    whole_at: u64,
    /// The number of observations when something last could write this file, but not every file.
    written_at: u64,
    /// The number of observations of the last such moment, or of all files, when places of lines were made uncertain.
    loosened_at: u64,
    /// Whether lines of it end with a carriage return before the line feed. Lines are kept without it.
    has_returns: bool,
    bytes: usize,
}

/// A change that only a comparison with the disk revealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskChange {
    /// When it was found.
    pub at: u32,
    /// How many known lines are no longer there.
    pub lost: usize,
    /// Where the file has other lines now: the numbers of the first and the last line of the first few places.
    pub differ: Vec<(usize, usize)>,
}

/// Everything that is known of all files.
#[derive(Clone, Debug, Default)]
pub struct FileModel {
    files: KnownFiles,
    index: PathIndex,
    names: NamedFiles,
    /// The number of observations when something last could write any file.
    written_at: u64,
    /// Whether links were made, so that a file may have other names.
    has_links: bool,
    /// Entries for lines that were printed of several files, by the paths of these files.
    printed: HashMap<Vec<String>, usize>,
    /// How many observations were made.
    count: u64,
    bytes: usize,
}

impl FileModel {
    /// A model that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// All files, in the order in which they were first seen.
    pub fn files(&self) -> &[FileState] {
        &self.files
    }

    /// A number that changes whenever what is known of a file may have changed.
    pub fn revision(&self, file: usize) -> u64 {
        self.files.revision(file)
    }

    /// What is known of a file, by any of the names that the agent used for it.
    pub fn get(&self, path: &str) -> Option<&FileState> {
        Some(&self.files[self.index.find(&normalize(path))?])
    }

    /// Takes in an observation made at a moment. Moments never decrease.
    pub fn apply(&mut self, at: u32, observation: &Observation) {
        self.count += 1;
        self.take(at, observation);
        for path in observation.paths() {
            if let Some(index) = self.place(path) {
                self.recount(index);
            }
        }
    }

    /// Counts a file's bytes again.
    fn recount(&mut self, index: usize) {
        self.bytes -= self.files[index].bytes;
        self.files.recount(index);
        self.bytes += self.files[index].bytes;
    }

    /// How many bytes are known of all files together.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn take(&mut self, at: u32, observation: &Observation) {
        let now = Now { at, count: self.count };
        match observation {
            Observation::Read { path, block, whole } => self.open_placed(path, at).read(now, block, *whole),
            Observation::Found { path, blocks } => self.open_placed(path, at).found(now, blocks),
            Observation::Printed { paths, block } => self.printed(now, paths, block),
            Observation::Mentioned { path, line } => {
                if let Some(index) = self.index.find_like(&normalize(path)) {
                    self.mention(index, Mention { at, line: *line });
                }
            }
            Observation::Absent { path } => {
                if let Some(index) = self.place(path).filter(|index| !self.files[*index].deleted) {
                    self.files.change(index).take_gone(now);
                }
            }
            Observation::Length { path, lines } => {
                if let Some(index) = self.place(path) {
                    self.files.change(index).take_length(now, *lines);
                }
            }
            change => self.change(now, change),
        }
    }

    /// Keeps printed lines that may include lines of some files, as an entry of their own that belongs to no
    /// file. Newer lines printed of the same files replace older ones.
    fn printed(&mut self, now: Now, paths: &[String], block: &Passage) {
        let index = self.printed.get(paths).copied().unwrap_or_else(|| {
            let named = paths[..paths.len().min(MAX_PRINTED_NAMES)].join(", ");
            let more = if paths.len() > MAX_PRINTED_NAMES { " and others" } else { "" };
            let path = format!("{named}{more}, as printed");
            let index = self.files.add(FileState { path, ..FileState::default() });
            self.printed.insert(paths.to_vec(), index);
            index
        });
        let mut segment = Segment::new(now, 0, &Passage { first: None, ..block.clone() });
        segment.lines.iter_mut().for_each(|line| line.known = Known::Loose);
        let file = self.files.change(index);
        (file.touched, file.read, file.reads) = (now.at, now.at, file.reads + 1);
        file.segments = vec![segment];
        self.recount(index);
    }

    /// Returns what can be claimed about lines of a segment now.
    pub fn claim(&self, file: usize, segment: usize, lines: std::ops::Range<usize>) -> Claim {
        let written_at = self.written_at_of(file);
        let file = &self.files()[file];
        let segment = &file.segments[segment];
        let known = segment.lines.get(lines.clone()).unwrap_or_default();
        let first = segment.first.map(|first| first + lines.start).filter(|_| known.iter().all(Line::is_placed));
        fact::claim(known, first, &file.changes, written_at)
    }

    /// The same, region by region: each is a longest run of lines of which the same is said.
    pub fn claims(
        &self,
        file: usize,
        segment: usize,
        lines: std::ops::Range<usize>,
    ) -> Vec<(std::ops::Range<usize>, Claim)> {
        let known = &self.files()[file].segments[segment].lines;
        let written_at = self.written_at_of(file);
        let fact = |at: usize| known.get(at).map_or_else(Fact::default, |line| fact::of_line(line, written_at));
        let mut regions: Vec<std::ops::Range<usize>> = Vec::new();
        for at in lines {
            match regions.last_mut() {
                Some(region) if fact(region.start) == fact(at) => region.end = at + 1,
                _ => regions.push(at..at + 1),
            }
        }
        regions.into_iter().map(|region| (region.clone(), self.claim(file, segment, region))).collect()
    }

    /// Returns what can be claimed about all lines of a file, if they are the whole file: it is verified, or was seen or
    /// written as a whole and nothing ran since that could write it.
    pub fn claim_whole(&self, file: usize) -> Option<Claim> {
        let state = &self.files()[file];
        let whole = state.segments.first().filter(|_| state.whole && state.whole_at >= self.written_at_of(file))?;
        Some(self.claim(file, 0, 0..whole.lines.len())).filter(|claim| claim.fact != Fact::Changed)
    }

    /// Whether a file was deleted, and nothing ran since that could make it again.
    pub fn is_gone(&self, file: usize) -> bool {
        let state = &self.files()[file];
        state.deleted && state.whole_at >= self.written_at_of(file)
    }

    /// The number of observations when something last could write a file.
    fn written_at_of(&self, file: usize) -> u64 {
        self.written_at.max(self.files[file].written_at)
    }

    /// Notes that the user or this agent named a file. Returns its place if it is known; otherwise the name is
    /// remembered.
    pub fn name(&mut self, at: u32, path: &str, who: Who) -> Option<usize> {
        let normal = normalize(path);
        let known = self.index.find_like(&normal);
        match known {
            Some(index) => self.files.note(index).name(at, who),
            None => self.names.note(normal, at, who),
        }
        known
    }

    /// The same for a file that exists: if nothing is known of it, it is added. Returns its place.
    pub(crate) fn name_file(&mut self, at: u32, path: &str, who: Who) -> usize {
        let index = self.open_index(path);
        self.files.note(index).name(at, who);
        index
    }

    /// Notes that a place in a file was named.
    pub fn mention(&mut self, file: usize, mention: Mention) {
        self.files.note(file).mention(mention);
    }

    /// Notes that the view with a mark shows lines of a segment.
    pub fn mark_shown(&mut self, mark: u32, file: usize, segment: usize, lines: std::ops::Range<usize>) {
        let segment = self.files.lines_to_mark(file, segment);
        for line in segment.and_then(|all| all.get_mut(lines)).into_iter().flatten() {
            line.shown = mark;
        }
    }

    /// The known lines that a block repeats, if all of it is known in one piece.
    pub fn known<'a>(&'a self, path: &str, block: &Passage) -> Option<&'a [Line]> {
        let file = self.get(path)?;
        file.segments.iter().find_map(|segment| {
            let by_number = segment.place().zip(block.first).and_then(|(first, wanted)| wanted.checked_sub(first));
            let same = |start: usize| {
                let lines = segment.lines.get(start..start + block.lines.len())?;
                lines.iter().zip(&block.lines).all(|(line, text)| *line.text == **text).then_some(lines)
            };
            by_number.and_then(same)
        })
    }

    /// The place of a file among all, by any of its names.
    pub fn place(&self, path: &str) -> Option<usize> {
        self.index.find(&normalize(path))
    }

    /// The place of the file that a name in a text most likely refers to: the one file whose path ends with it.
    pub fn place_like(&self, name: &str) -> Option<usize> {
        self.index.find_like(&normalize(name))
    }

    fn open(&mut self, path: &str, at: u32) -> &mut FileState {
        let index = self.open_index(path);
        let file = self.files.change(index);
        file.touched = at;
        file
    }

    /// The same for what goes by the numbers of lines, which something may have moved since.
    fn open_placed(&mut self, path: &str, at: u32) -> &mut FileState {
        let index = self.open_index(path);
        let written_at = self.written_at_of(index);
        self.files.change(index).loosen(written_at);
        self.open(path, at)
    }

    fn open_index(&mut self, path: &str) -> usize {
        let normal = normalize(path);
        self.index.find(&normal).unwrap_or_else(|| {
            // A path with `..` would contain directories that the file is not in.
            let is_plain = !path.split('/').any(|part| matches!(part, "." | ".."));
            let path = if is_plain { path.to_owned() } else { normal.clone() };
            let mut file = FileState { path, ..FileState::default() };
            for (at, who) in self.names.take(&normal) {
                file.name(at, who);
            }
            let index = self.files.add(file);
            self.index.add(&normal, index);
            index
        })
    }
}

/// The moment of an observation, and the number of observations so far.
#[derive(Clone, Copy, Debug)]
struct Now {
    at: u32,
    count: u64,
}

/// Lines joined by line feeds.
pub fn join_lines(lines: &[Line]) -> String {
    let mut text = String::with_capacity(lines.iter().map(|line| line.text.len() + 1).sum());
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&line.text);
    }
    text
}
