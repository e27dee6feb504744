//! The current view of the files in use: which of the known lines to show, and how.

use std::fmt::Write as _;
use std::ops::Range;

use crate::files::model::{FileModel, FileState, Segment};

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
}

/// What speaks for showing a chunk. Ages are counted in messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signs {
    /// Since its newest line was shown or written.
    pub seen_age: f64,
    /// Since one of its lines was changed by the agent.
    pub edit_age: Option<f64>,
    /// Since the file was touched.
    pub file_age: f64,
    /// Since the agent changed the file.
    pub file_edit_age: Option<f64>,
    /// Lines to the nearest line that the agent changed.
    pub edit_distance: Option<usize>,
    /// How many files were touched since this one.
    pub file_rank: usize,
    /// How often the agent changed the file.
    pub file_edits: u32,
    /// Whether it is only a hit of a search.
    pub is_hit: bool,
    /// Since the user named the file.
    pub named_age: Option<f64>,
    /// Known lines of the file.
    pub file_lines: usize,
}

/// Fewest lines of a chunk, unless its segment is shorter.
const LEAST_CHUNK_LINES: usize = 8;

/// Most lines of a chunk.
const MOST_CHUNK_LINES: usize = 24;

/// All chunks of all files that are known.
pub fn chunks(model: &FileModel, now: u32) -> Vec<Chunk> {
    let files = model.files();
    let mut touched: Vec<u32> = files.iter().map(|file| file.touched).collect();
    touched.sort_unstable();
    let mut chunks = Vec::new();
    for (index, file) in files.iter().enumerate().filter(|(_, file)| !file.deleted) {
        let rank = touched.len() - touched.partition_point(|moment| *moment <= file.touched);
        for (segment_index, segment) in file.segments.iter().enumerate() {
            split(segment, |lines| {
                chunks.push(Chunk {
                    file: index,
                    segment: segment_index,
                    bytes: segment.lines[lines.clone()].iter().map(|line| line.text.len() + 1).sum(),
                    signs: signs(file, segment, &lines, rank, now),
                    lines,
                });
            });
        }
    }
    chunks
}

/// Cuts a segment at blank lines where it can.
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

fn signs(file: &FileState, segment: &Segment, lines: &Range<usize>, rank: usize, now: u32) -> Signs {
    let age = |moment: u32| f64::from(now.saturating_sub(moment));
    let body = &segment.lines[lines.clone()];
    let newest = |moment: fn(&crate::files::model::Line) -> u32| body.iter().map(moment).max().unwrap_or(0);
    let edited = newest(|line| line.edited);
    Signs {
        seen_age: age(newest(|line| line.seen)),
        edit_age: (edited > 0).then(|| age(edited)),
        file_age: age(file.touched),
        file_edit_age: (file.edited > 0).then(|| age(file.edited)),
        edit_distance: edit_distance(segment, lines),
        file_rank: rank,
        file_edits: file.edits,
        is_hit: segment.is_hit,
        named_age: (file.named > 0).then(|| age(file.named)),
        file_lines: file.known_lines(),
    }
}

/// Furthest that an edited line is looked for around a chunk.
const EDIT_REACH_LINES: usize = 60;

fn edit_distance(segment: &Segment, lines: &Range<usize>) -> Option<usize> {
    let is_edited = |index: &usize| segment.lines[*index].edited > 0;
    if lines.clone().any(|index| is_edited(&index)) {
        return Some(0);
    }
    let behind = (lines.end..segment.lines.len().min(lines.end + EDIT_REACH_LINES)).find(is_edited);
    let before = (lines.start.saturating_sub(EDIT_REACH_LINES)..lines.start).rev().find(is_edited);
    [behind.map(|index| index - lines.end + 1), before.map(|index| lines.start - index)].into_iter().flatten().min()
}

/// Bytes that a heading of a file, or a gap in it, may take.
const HEADING_BYTES: usize = 90;

/// Chooses the chunks that are most likely needed, for their size, within a number of bytes.
///
/// The answer is in the order of the files' last touch, oldest first, and of lines within a file.
pub fn choose(chunks: &[Chunk], need: &dyn Fn(&Signs) -> f64, bytes: usize) -> Vec<usize> {
    let mut order: Vec<(f64, usize)> = chunks.iter().enumerate().map(|(i, chunk)| (need(&chunk.signs), i)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut left = bytes;
    let mut chosen = vec![false; chunks.len()];
    let mut opened = std::collections::HashSet::new();
    for (_, index) in order {
        let chunk = &chunks[index];
        let adjoins = |other: Option<usize>| {
            other.is_some_and(|other| {
                chosen[other]
                    && chunks[other].file == chunk.file
                    && chunks[other].segment == chunk.segment
            })
        };
        let neighbours = usize::from(adjoins(index.checked_sub(1)))
            + usize::from(adjoins(Some(index + 1).filter(|next| *next < chunks.len())));
        let opening = if opened.contains(&chunk.file) { 0 } else { HEADING_BYTES };
        let gap = if neighbours == 0 { HEADING_BYTES / 2 } else { 0 };
        let cost = chunk.bytes + opening + gap;
        if cost > left {
            continue;
        }
        left -= cost;
        opened.insert(chunk.file);
        chosen[index] = true;
    }
    (0..chunks.len()).filter(|index| chosen[*index]).collect()
}

/// Writes the chosen chunks of one file, with a heading that says what is shown.
pub fn render_file(file: &FileState, chunks: &[&Chunk], text: &mut String) {
    let shown: usize = chunks.iter().map(|chunk| chunk.lines.len()).sum();
    let known = file.known_lines();
    // Writing to a string cannot fail.
    let _ = if shown == known && file.whole {
        writeln!(text, "## {} (whole file, {known} lines)", file.path)
    } else {
        writeln!(text, "## {} ({shown} of {known} known lines)", file.path)
    };
    let mut last: Option<&Chunk> = None;
    for chunk in chunks {
        let follows = last.is_some_and(|last| last.segment == chunk.segment && last.lines.end == chunk.lines.start);
        let segment = &file.segments[chunk.segment];
        if !follows {
            let _ = match segment.first {
                Some(first) => writeln!(text, "[from line {}]", first + chunk.lines.start),
                None => writeln!(text, "[somewhere]"),
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
/// Fitted to recorded work (a Poisson regression of "an edit within the next 30 requests needs this text" on the
/// signs, per byte) and rounded. What was seen lately is needed; what the agent changed stays needed longer;
/// mere hits of searches seldom are.
pub fn need(signs: &Signs) -> f64 {
    let log = |age: f64| age.ln_1p();
    let seen = log(signs.seen_age);
    let edited = signs.edit_age.map_or(0.0, |age| 0.6 + 0.08 * log(age));
    let file_edited = if signs.file_edit_age.is_some() { 0.2 } else { 0.0 };
    let hit = if signs.is_hit { -0.9 } else { 0.0 };
    -0.055 * seen * seen - 0.06 * seen - 0.07 * log(signs.file_age) - 0.07 * log(signs.file_rank as f64)
        + edited
        + file_edited
        + hit
}
