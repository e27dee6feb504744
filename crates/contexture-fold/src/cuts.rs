//! Known lines cut into chunks. A file is cut again only when it may have changed.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::tuning::{LEAST_CHUNK_LINES, MOST_CHUNK_LINES};
use super::view::{Chunk, Signs};
use super::vocabulary::WordNumbers;
use contexture_files::model::{FileModel, FileState, Line, Mention, Segment};

/// The chunks of all files as they were last cut.
#[derive(Default)]
pub(super) struct ChunkCuts {
    files: Vec<FileCuts>,
}

/// The chunks of one file.
#[derive(Default)]
struct FileCuts {
    /// The revision of the file that was cut; `None` before that.
    revision: Option<u64>,
    cuts: Vec<CutChunk>,
}

/// A chunk with those of its signs that hold as long as its file is unchanged.
struct CutChunk {
    segment: usize,
    lines: Range<usize>,
    bytes: usize,
    texts: Box<[Arc<str>]>,
    words: Arc<[u32]>,
    seen: u32,
    edited: u32,
    span: u32,
    edit_distance: Option<usize>,
    is_hit: bool,
    is_changed: bool,
}

/// The time at which chunks are looked at.
#[derive(Clone, Copy)]
pub(super) struct ChunkMoment<'a> {
    pub(super) now: u32,
    pub(super) last_request: u32,
    /// When the user said something.
    pub(super) asks: &'a [u32],
}

impl ChunkCuts {
    /// Cuts those files again that may have changed.
    pub(super) fn refresh(&mut self, model: &FileModel, vocabulary: &mut WordNumbers, files: &[usize]) {
        self.files.resize_with(model.files().len(), FileCuts::default);
        for file in files {
            self.files[*file].refresh(&model.files()[*file], model.revision(*file), vocabulary);
        }
    }

    /// The chunks of some files as they were last cut, before their words are weighed.
    pub(super) fn chunks(&self, model: &FileModel, files: &[usize], moment: ChunkMoment<'_>) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        for index in files.iter().copied().filter(|file| !model.files()[*file].deleted) {
            chunks.extend(self.files[index].cuts.iter().map(|cut| Chunk {
                file: index,
                segment: cut.segment,
                lines: cut.lines.clone(),
                bytes: cut.bytes,
                signs: cut.signs(&model.files()[index], moment),
                words: cut.words.clone(),
            }));
        }
        chunks
    }
}

impl FileCuts {
    /// Cuts the file again if its revision changed.
    fn refresh(&mut self, file: &FileState, revision: u64, vocabulary: &mut WordNumbers) {
        if self.revision.replace(revision) == Some(revision) {
            return;
        }
        let old = std::mem::take(&mut self.cuts).into_iter();
        let mut by_first: HashMap<Arc<str>, CutChunk, FixedState> =
            old.map(|cut| (cut.texts[0].clone(), cut)).collect();
        for (index, segment) in file.segments.iter().enumerate() {
            split(segment, |lines| {
                let body = &segment.lines[lines.clone()];
                let same = by_first.remove(&body[0].text).filter(|cut| cut.has_texts_of(body));
                let (texts, words) = match same {
                    Some(cut) => (cut.texts, cut.words),
                    None => (texts_of(body), vocabulary.of_lines(body.iter().map(|line| &*line.text))),
                };
                let newest = |moment: fn(&Line) -> u32| body.iter().map(moment).max().unwrap_or(0);
                self.cuts.push(CutChunk {
                    segment: index,
                    bytes: texts.iter().map(|text| text.len() + 1).sum(),
                    texts,
                    words,
                    seen: newest(|line| line.seen),
                    edited: newest(|line| line.edited),
                    span: newest(|line| line.span),
                    edit_distance: edit_distance(segment, &lines),
                    is_hit: segment.is_hit,
                    is_changed: body.iter().any(Line::is_changed),
                    lines,
                });
            });
        }
    }
}

impl CutChunk {
    fn has_texts_of(&self, lines: &[Line]) -> bool {
        let is_same = |(text, line): (&Arc<str>, &Line)| Arc::ptr_eq(text, &line.text) || *text == line.text;
        self.texts.len() == lines.len() && self.texts.iter().zip(lines).all(is_same)
    }

    /// Whether a mention names one of its lines.
    fn holds(&self, file: &FileState, mention: &Mention) -> bool {
        let place = file.segments[self.segment].likely_first().zip(mention.line);
        place.and_then(|(first, line)| line.checked_sub(first)).is_some_and(|line| self.lines.contains(&line))
    }

    /// The signs that it should be shown now, except for its words.
    fn signs(&self, file: &FileState, ChunkMoment { now, last_request, asks }: ChunkMoment<'_>) -> Signs {
        let age = |moment: u32| f64::from(now.saturating_sub(moment));
        let mut new_mentions = file.mentions().iter().take_while(|mention| mention.at > last_request);
        Signs {
            seen_age: age(self.seen),
            edit_age: (self.edited > 0).then(|| age(self.edited)),
            is_file_edited: file.edited > 0,
            edit_distance: self.edit_distance,
            is_hit: self.is_hit,
            span: self.span,
            is_pinned: false,
            asks: asks.len() - asks.partition_point(|moment| *moment <= self.seen),
            is_named: false,
            is_pending: file.is_pending(),
            is_pointed_at: new_mentions.any(|mention| self.holds(file, mention)),
            talk_words: 0.0,
            is_changed: self.is_changed,
        }
    }
}

fn texts_of(lines: &[Line]) -> Box<[Arc<str>]> {
    lines.iter().map(|line| line.text.clone()).collect()
}

/// Cuts a segment into chunks, at blank lines where possible.
fn split(segment: &Segment, mut found: impl FnMut(Range<usize>)) {
    let mut start = 0;
    let len = segment.lines.len();
    while start < len {
        let most = (start + MOST_CHUNK_LINES).min(len);
        let least = (start + LEAST_CHUNK_LINES).min(len);
        let blank = (least..most).find(|line| segment.lines[*line].text.trim().is_empty());
        let end = if len - start <= MOST_CHUNK_LINES { len } else { blank.map_or(most, |line| line + 1) };
        found(start..end);
        start = end;
    }
}

/// How many lines around a chunk are searched for an edited line.
const EDIT_REACH_LINES: usize = 60;

/// Lines from a chunk to the nearest line that the agent changed.
fn edit_distance(segment: &Segment, lines: &Range<usize>) -> Option<usize> {
    let is_edited = |index: &usize| segment.lines[*index].edited > 0;
    if lines.clone().any(|index| is_edited(&index)) {
        return Some(0);
    }
    let behind = (lines.end..segment.lines.len().min(lines.end + EDIT_REACH_LINES)).find(is_edited);
    let before = (lines.start.saturating_sub(EDIT_REACH_LINES)..lines.start).rev().find(is_edited);
    [behind.map(|index| index - lines.end + 1), before.map(|index| lines.start - index)].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use contexture_files::numbering::Passage;
    use contexture_files::observation::Observation;

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!["", "", "alpha beta", "gamma_delta()", "alpha", "}"]), 1..90)
            .prop_map(|lines| lines.join("\n") + "\n")
    }

    /// Something that happens to one of two files.
    fn event() -> impl Strategy<Value = Observation> {
        let path = || prop::sample::select(vec!["a.rs", "b.rs"]).prop_map(str::to_owned);
        let block = || (1..60_usize, text()).prop_map(|(first, text)| Passage::plain(Some(first), &text));
        prop_oneof![
            (path(), block()).prop_map(|(path, block)| Observation::Read { path, block, whole: false }),
            (path(), block()).prop_map(|(path, block)| Observation::Found { path, blocks: vec![block] }),
            (path(), text()).prop_map(|(path, text)| Observation::Write { path, text }),
            (path(), text()).prop_map(|(path, new)| Observation::Edit {
                path,
                old: "alpha\n".into(),
                new,
                all: false,
                takes_feed: false
            }),
            (path(), 0..40_usize, text()).prop_map(|(path, after, text)| Observation::Insert { path, after, text }),
        ]
    }

    proptest! {
        #[test]
        fn files_cut_again_after_each_change_are_cut_like_files_seen_for_the_first_time(
            events in prop::collection::vec(event(), 1..12),
        ) {
            let (mut model, mut cuts, mut vocabulary) = (FileModel::new(), ChunkCuts::default(), WordNumbers::default());
            for (moment, event) in (1_u32..).zip(&events) {
                model.apply(moment, event);
                let files: Vec<usize> = (0..model.files().len()).collect();
                cuts.refresh(&model, &mut vocabulary, &files);
                let mut fresh = ChunkCuts::default();
                fresh.refresh(&model, &mut vocabulary, &files);
                let now = ChunkMoment { now: moment + 1, last_request: moment - 1, asks: &[1] };
                let chunks = |cuts: &ChunkCuts| cuts.chunks(&model, &files, now);
                prop_assert_eq!(chunks(&cuts), chunks(&fresh));
            }
        }
    }

    #[test]
    fn a_file_that_stays_the_same_is_not_cut_again() {
        let mut model = FileModel::new();
        let text = "alpha\n".repeat(100);
        for path in ["a.rs", "b.rs"] {
            model.apply(1, &Observation::Write { path: path.into(), text: text.clone() });
        }
        let (mut cuts, mut vocabulary) = (ChunkCuts::default(), WordNumbers::default());
        cuts.refresh(&model, &mut vocabulary, &[0, 1]);
        model.apply(2, &Observation::Append { path: "b.rs".into(), text });
        model.mark_shown(1, 0, 0, 0..50);
        cuts.files.iter_mut().for_each(|file| file.cuts.clear());
        cuts.refresh(&model, &mut vocabulary, &[0, 1]);
        assert_eq!([0, 1].map(|file| cuts.files[file].cuts.is_empty()), [true, false]);
    }
}
