//! The result of comparing a file with the disk, in a form that can be applied again without the disk.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::align::{DiskLines, FileBounds, MatchingLines, regions};
use super::{FileState, Segment};
use crate::disk::NotCompared;
use crate::numbering::split_lines;

/// The result of comparing a file with the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// The file's place in the model.
    pub file: usize,
    /// What was found.
    pub found: Found,
}

/// What was found on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// The file did not change since it was last compared, and nothing was learnt about it since.
    Unchanged,
    /// The file is gone.
    Gone,
    /// Earlier versions said so of something that cannot be read as the file was: a link, too many bytes, no text.
    Unreadable,
    /// The file was not compared.
    NotCompared(NotCompared),
    /// The file is there.
    There(There),
}

/// A file that is there, described relative to what was known of it. It holds no text: what the disk has and the
/// conversation has not is only counted, since it may be a secret that a person has just typed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct There {
    /// The hash of what was known.
    pub known: u64,
    /// How many lines the file has.
    pub lines: usize,
    /// Whether its last line has no line feed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_open: bool,
    /// Whether lines of it end with a carriage return before the line feed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_returns: bool,
    /// Where the known lines are now.
    pub regions: Vec<Region>,
}

/// A run of lines on the disk that is within what was known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// The segment of the file that it was known as.
    pub segment: usize,
    /// How many lines of the file are before it.
    pub start: usize,
    /// What it consists of; empty if it is the whole segment, unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_of: Vec<Piece>,
}

/// A part of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, from = "StoredPiece")]
pub enum Piece {
    /// Lines of the segment: the first and how many.
    Known(usize, usize),
    /// So many lines that were not known.
    Unseen(usize),
}

/// A part of a region as it is stored. Earlier versions stored the text of each line that was not known.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredPiece {
    Known(usize, usize),
    Unseen(usize),
    Text(IgnoredAny),
}

impl From<StoredPiece> for Piece {
    fn from(stored: StoredPiece) -> Self {
        match stored {
            StoredPiece::Known(first, count) => Self::Known(first, count),
            StoredPiece::Unseen(count) => Self::Unseen(count),
            StoredPiece::Text(_) => Self::Unseen(1),
        }
    }
}

impl Piece {
    /// How many lines of the disk it is.
    pub(super) fn lines(self) -> usize {
        let (Self::Known(_, count) | Self::Unseen(count)) = self;
        count
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl FileState {
    /// Compares what is known with a text.
    pub(super) fn compared(&self, text: &str) -> There {
        let disk = DiskLines::new(split_lines(text).collect());
        let mut regions: Vec<Region> = Vec::new();
        for (index, segment) in self.segments.iter().enumerate() {
            let is_whole = self.whole && index == 0;
            match exact_place(segment, &disk.lines).filter(|_| !is_whole || segment.lines.len() == disk.lines.len()) {
                Some(start) => regions.push(Region { segment: index, start, made_of: Vec::new() }),
                None => regions.extend(changed(index, segment, &disk, is_whole)),
            }
        }
        let is_open = !text.is_empty() && !text.ends_with('\n');
        There {
            known: self.known_hash(),
            lines: disk.lines.len(),
            is_open,
            has_returns: text.contains("\r\n"),
            regions,
        }
    }

    /// Hashes the known lines. The hash is the same on every machine, and in practice different lines have different
    /// hashes.
    pub(super) fn known_hash(&self) -> u64 {
        let mut text = String::with_capacity(self.bytes() + self.segments.len());
        for segment in &self.segments {
            for line in &segment.lines {
                text.push_str(&line.text);
                text.push('\n');
            }
            text.push('\0');
        }
        u64::from_le_bytes(*blake3::hash(text.as_bytes()).as_bytes().first_chunk().expect("a hash has 32 bytes"))
    }
}

/// Returns where all lines of a segment are on the disk in one piece: at their number, or else at the first match.
fn exact_place(segment: &Segment, disk: &[&str]) -> Option<usize> {
    let is_at = |start: usize| {
        disk.get(start..start + segment.lines.len())
            .is_some_and(|lines| lines.iter().zip(&segment.lines).all(|(disk, line)| *disk == &*line.text))
    };
    if let Some(start) = segment.place().map(|first| first.saturating_sub(1)).filter(|start| is_at(*start)) {
        return Some(start);
    }
    let longest = (0..segment.lines.len()).max_by_key(|index| segment.lines[*index].text.len())?;
    let candidates = disk.iter().enumerate().filter(|(_, line)| **line == &*segment.lines[longest].text);
    candidates.filter_map(|(at, _)| at.checked_sub(longest)).find(|start| is_at(*start))
}

/// Returns the regions of a segment that is not on the disk as it was known.
fn changed(index: usize, segment: &Segment, disk: &DiskLines<'_>, is_whole: bool) -> Vec<Region> {
    let known: Vec<&str> = segment.lines.iter().map(|line| &*line.text).collect();
    let blocks = disk.blocks(&known);
    let bounds = FileBounds { begins: segment.first == Some(1), ends: is_whole };
    let region = |range: std::ops::Range<usize>| {
        let made_of = pieces(&blocks, range.clone());
        Region { segment: index, start: range.start, made_of }
    };
    regions(&blocks, known.len(), disk.lines.len(), bounds).into_iter().map(region).collect()
}

/// Returns what a part of the disk consists of.
fn pieces(blocks: &[MatchingLines], range: std::ops::Range<usize>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = range.start;
    for block in blocks.iter().filter(|block| range.contains(&block.disk)) {
        pieces.extend(unseen(at, block.disk));
        pieces.push(Piece::Known(block.known, block.len));
        at = block.disk_end();
    }
    pieces.extend(unseen(at, range.end));
    pieces
}

/// The lines of the disk between two places, if there are any.
fn unseen(from: usize, to: usize) -> Option<Piece> {
    (from < to).then(|| Piece::Unseen(to - from))
}
