//! The current view of the files in use: which of the known lines to show, and how.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use super::tuning::{NEAR_LINES, weight};
use crate::files::model::{FileModel, FileState, Line};

/// A run of lines that is shown or left out as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// The file, by its place in the model.
    pub file: usize,
    /// The segment of the file.
    pub segment: usize,
    /// The lines of the segment.
    pub lines: Range<usize>,
    /// Bytes of the lines with their line feeds.
    pub bytes: usize,
    /// What speaks for showing it.
    pub signs: Signs,
    /// The words of its lines by their numbers in the vocabulary, each once.
    pub(super) words: Arc<[u32]>,
}

/// What speaks for showing a chunk. Ages are counted in messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signs {
    /// Since its newest line was shown or written.
    pub seen_age: f64,
    /// Since one of its lines was changed by the agent.
    pub edit_age: Option<f64>,
    /// Whether the agent changed the file.
    pub is_file_edited: bool,
    /// Lines to the nearest line that the agent changed.
    pub edit_distance: Option<usize>,
    /// Whether it is only a hit of a search.
    pub is_hit: bool,
    /// How many lines were shown together with it.
    pub span: u32,
    /// What the user said since it was seen, in messages.
    pub asks: usize,
    /// Whether recent talk names the file.
    pub is_named: bool,
    /// Whether the file was named, however long ago, and the agent did not change it since.
    pub is_pending: bool,
    /// Whether one of its lines was named since the last request.
    pub is_pointed_at: bool,
    /// Rare words in common with recent changes, as a logarithm.
    pub change_words: f64,
    /// Rare words in common with recent talk, as a logarithm.
    pub talk_words: f64,
}

impl Chunk {
    /// The lines of the chunk.
    pub fn lines<'a>(&self, model: &'a FileModel) -> &'a [Line] {
        &model.files()[self.file].segments[self.segment].lines[self.lines.clone()]
    }
}

/// Bytes that a heading of a file may take beside its path.
const HEADING_BYTES: usize = 110;

/// Bytes that the mark of a gap may take.
const GAP_BYTES: usize = 24;

/// Whether a chunk is what the agent changed, or stands around it. Such chunks go only when there is no room.
pub fn is_own_work(signs: &Signs) -> bool {
    signs.edit_distance.is_some_and(|lines| lines <= NEAR_LINES)
}

/// Chooses the chunks that are most likely needed, for their size, within a number of bytes.
///
/// Chunks below the least need and those that are shown already stay out; what the agent changed is never below
/// it. The answer is in the order of `chunks`.
pub fn choose(chunks: &[Chunk], shown: &[bool], least: f64, bytes: usize) -> Vec<usize> {
    let needs = chunks.iter().enumerate().map(|(index, chunk)| {
        let need = need(&chunk.signs);
        (if is_own_work(&chunk.signs) { need.max(least) } else { need }, index)
    });
    let mut order: Vec<(f64, usize)> = needs.filter(|(need, index)| *need >= least && !shown[*index]).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut left = bytes;
    let mut chosen = vec![false; chunks.len()];
    let mut opened = HashSet::new();
    for (_, index) in order {
        let chunk = &chunks[index];
        let adjoins = |other: Option<usize>| {
            other.and_then(|other| Some(chosen[other] && chunks.get(other)?.is_beside(chunk))).unwrap_or(false)
        };
        let is_apart = !adjoins(index.checked_sub(1)) && !adjoins(Some(index + 1).filter(|next| *next < chunks.len()));
        let heading = if opened.contains(&chunk.file) { 0 } else { HEADING_BYTES };
        let cost = chunk.bytes + heading + if is_apart { GAP_BYTES } else { 0 };
        if cost <= left {
            left -= cost;
            opened.insert(chunk.file);
            chosen[index] = true;
        }
    }
    (0..chunks.len()).filter(|index| chosen[*index]).collect()
}

/// Bytes of the lines of some chunks.
pub fn bytes(chunks: &[Chunk], some: &[usize]) -> usize {
    some.iter().map(|index| chunks[*index].bytes).sum()
}

impl Chunk {
    fn is_beside(&self, other: &Chunk) -> bool {
        self.file == other.file
            && self.segment == other.segment
            && (self.lines.end == other.lines.start || other.lines.end == self.lines.start)
    }
}

/// The chosen chunks with those beside them that are shown elsewhere, so that what spans both stands in one piece.
pub fn with_neighbours(chunks: &[Chunk], shown: &[bool], chosen: &[usize]) -> Vec<usize> {
    let mut all = chosen.to_vec();
    for index in chosen.iter().copied() {
        let around = [index.checked_sub(1), Some(index + 1)].into_iter().flatten();
        let beside =
            |other: &usize| chunks.get(*other).is_some_and(|chunk| shown[*other] && chunk.is_beside(&chunks[index]));
        all.extend(around.filter(beside));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Writes chunks, file by file, those touched longest ago first.
pub fn render(model: &FileModel, chunks: &[&Chunk]) -> String {
    let mut files: Vec<(u32, usize, Vec<&Chunk>)> = Vec::new();
    for chunk in chunks {
        match files.last_mut() {
            Some((_, file, list)) if *file == chunk.file => list.push(chunk),
            _ => files.push((model.files()[chunk.file].touched, chunk.file, vec![chunk])),
        }
    }
    files.sort_by_key(|(touched, file, _)| (*touched, *file));
    let mut text = String::new();
    for (_, file, list) in files {
        render_file(&model.files()[file], &list, &mut text);
    }
    text
}

/// Writes the chosen chunks of one file, with a heading that says what is shown.
fn render_file(file: &FileState, chunks: &[&Chunk], text: &mut String) {
    let shown: usize = chunks.iter().map(|chunk| chunk.lines.len()).sum();
    let known = file.known_lines();
    let is_unsure =
        |chunk: &&Chunk| file.segments[chunk.segment].lines[chunk.lines.clone()].iter().any(|line| !line.is_sure());
    let doubt = file.doubts.first().filter(|_| chunks.iter().any(is_unsure));
    let doubt = doubt.map_or(String::new(), |doubt| format!("; may have changed since {}", doubt.by));
    // Writing to a string cannot fail.
    let _ = if shown == known && file.whole {
        writeln!(text, "## {} (whole file, {known} lines{doubt})", file.path)
    } else {
        writeln!(text, "## {} ({shown} of {known} known lines{doubt})", file.path)
    };
    let mut last: Option<&Chunk> = None;
    for chunk in chunks {
        let follows = last.is_some_and(|last| last.segment == chunk.segment && last.lines.end == chunk.lines.start);
        let segment = &file.segments[chunk.segment];
        if !follows {
            let _ = match segment.first {
                Some(first) => writeln!(text, "[from line {}]", first + chunk.lines.start),
                None => writeln!(text, "[lines of unknown number]"),
            };
        }
        for line in &segment.lines[chunk.lines.clone()] {
            text.push_str(&line.text);
            text.push('\n');
        }
        last = Some(chunk);
    }
}

/// How likely the agent is to need a chunk's text soon, for its size, on a logarithmic scale.
///
/// Most weights were fitted to recorded work (a Poisson regression of "an edit within the next 40 requests needs this
/// text, and nothing touches the file before it" on the signs, per byte) and rounded. What was seen lately is needed;
/// what the agent changed stays needed longer; what shares rare words with recent talk and recent changes is needed
/// more, and so is what a task or a plan names; mere hits of searches are hardly ever.
pub fn need(signs: &Signs) -> f64 {
    let log = |count: f64| count.ln_1p();
    let seen = log(signs.seen_age);
    let edited = signs.edit_age.map_or(0.0, |age| weight::EDIT_AGE * log(age));
    let file_edited = if signs.is_file_edited { weight::FILE_EDITED } else { 0.0 };
    let hit = if signs.is_hit { weight::HIT * seen } else { 0.0 };
    let named = if signs.is_named { weight::NAMED } else { 0.0 };
    let pending = if signs.is_pending { weight::PENDING } else { 0.0 };
    let pointed_at = if signs.is_pointed_at { weight::POINTED_AT } else { 0.0 };
    weight::SEEN * seen * seen
        + edited
        + file_edited
        + hit
        + named
        + pending
        + pointed_at
        + weight::CHANGE_WORDS * signs.change_words
        + weight::TALK_WORDS * signs.talk_words
        + weight::SPAN * (log(f64::from(signs.span)) - weight::MIDDLE_SPAN)
        + weight::ASKS * log(signs.asks as f64)
}
