//! Applies the result of a comparison with the disk.

use super::compare::{Compared, Found, Piece, Region, There};
use super::state::End;
use super::{DiskChange, FileModel, FileState, Grade, Line, Now, Segment};

/// The result of a comparison with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// The file has every known line.
    Same,
    /// The file had other text where the agent has read or written; that text is known now.
    Differed,
    /// The file is gone.
    Gone,
    /// Nothing is known of the file.
    Unknown,
}

/// The reason given for lines if a comparison with the disk cannot be applied.
const LOST_COMPARISON: &str = "a comparison with the disk that no longer fits";

impl FileModel {
    /// Compares what is known of a file with its text on the disk, or with its absence, and applies the result.
    ///
    /// Known lines that are there are verified. Where the file differs, its text is taken, but only within the regions
    /// that the agent has read or written.
    pub fn verify(&mut self, at: u32, path: &str, text: Option<&str>) -> Verified {
        let compared = self.place(path).and_then(|file| self.compare(file, text));
        compared.map_or(Verified::Unknown, |compared| self.take_over(at, &compared))
    }

    /// Compares what is known of a file with its text on the disk, or with its absence; `None` if nothing is known.
    pub fn compare(&self, file: usize, text: Option<&str>) -> Option<Compared> {
        let state = self.files().get(file)?;
        if state.segments.is_empty() && !state.deleted {
            return None;
        }
        let found = match text {
            None => Found::Gone,
            Some(text) => Found::There(state.compared(text)),
        };
        Some(Compared { file, found })
    }

    /// Whether nothing was learnt about a file since it was last compared with the disk.
    pub fn is_as_compared(&self, file: usize) -> bool {
        self.files.is_as_compared(file)
    }

    /// Applies the result of a comparison, made now or stored earlier.
    pub fn take_over(&mut self, at: u32, compared: &Compared) -> Verified {
        let Compared { file: index, found } = compared;
        let Some(file) = self.files.get(*index) else { return Verified::Unknown };
        self.count += 1;
        let now = Now { at, count: self.count };
        let verified = match found {
            Found::Gone => self.files.change(*index).take_gone(now),
            Found::Unchanged if self.files.is_as_compared(*index) => {
                self.files.regrade(*index, now);
                return Verified::Same;
            }
            Found::There(there) if file.known_hash() == there.known => self.take_there(*index, now, there),
            // Another version of the program may know other lines. It is uncertain which of them are there.
            Found::Unchanged | Found::There(_) => {
                self.files.change(*index).raise_doubt(now, LOST_COMPARISON);
                return Verified::Unknown;
            }
        };
        self.files.note_compared(*index);
        self.recount(*index);
        verified
    }

    fn take_there(&mut self, index: usize, now: Now, there: &There) -> Verified {
        let file = &self.files[index];
        let is_in_place = |(at, (region, segment)): (usize, (&Region, &Segment))| {
            region.segment == at && region.made_of.is_empty() && segment.first == Some(region.start + 1)
        };
        let is_all = there.regions.len() == file.segments.len() && !file.deleted && file.doubts.is_empty();
        let is_closed = file.end == end_of(there) && file.whole == is_whole(&file.segments, there.lines);
        if is_all && is_closed && there.regions.iter().zip(&file.segments).enumerate().all(is_in_place) {
            self.files.regrade(index, now);
            return Verified::Same;
        }
        self.files.change(index).take_there(now, there)
    }
}

impl FileState {
    fn take_gone(&mut self, now: Now) -> Verified {
        let was_gone = self.deleted;
        self.segments.clear();
        self.doubts.clear();
        (self.deleted, self.whole, self.end) = (true, false, End::Unknown);
        if was_gone {
            return Verified::Same;
        }
        self.disk_change = Some(DiskChange { at: now.at, lost: 0 });
        Verified::Gone
    }

    fn take_there(&mut self, now: Now, there: &There) -> Verified {
        self.doubts.clear();
        self.end = end_of(there);
        if self.deleted {
            // It exists again, and nothing of it was read.
            self.deleted = false;
            return Verified::Differed;
        }
        let known = std::mem::take(&mut self.segments);
        let is_kept = |index: usize| there.regions.iter().any(|it| it.segment == index && it.made_of.is_empty());
        let is_same = (0..known.len()).all(is_kept) && (!self.whole || there.lines == known[0].lines.len());
        let was_whole = self.whole;
        let before: usize = known.iter().map(|segment| segment.lines.len()).sum();
        self.segments = merged(there, &known, now);
        if was_whole && self.segments.is_empty() {
            self.segments.push(Segment { first: Some(1), lines: Vec::new(), guess: None, is_hit: false });
        }
        self.whole = is_whole(&self.segments, there.lines) && (was_whole || there.lines > 0);
        if is_same {
            return Verified::Same;
        }
        self.note_change_elsewhere();
        let kept: usize = there.regions.iter().map(|region| region.known_lines(&known)).sum();
        self.disk_change = Some(DiskChange { at: now.at, lost: before.saturating_sub(kept) });
        Verified::Differed
    }
}

impl Region {
    /// How many of its lines were known.
    fn known_lines(&self, known: &[Segment]) -> usize {
        let all = known.get(self.segment).map_or(0, |segment| segment.lines.len());
        let of = |piece: &Piece| if let Piece::Known(_, count) = piece { *count } else { 0 };
        if self.made_of.is_empty() { all } else { self.made_of.iter().map(of).sum() }
    }
}

fn end_of(there: &There) -> End {
    if there.is_open { End::Open } else { End::Closed }
}

/// Whether the known lines are all lines of a file.
fn is_whole(segments: &[Segment], lines: usize) -> bool {
    matches!(segments, [only] if only.lines.len() == lines)
}

/// Returns segments with the text of the disk in regions, joined where they touch.
fn merged(there: &There, known: &[Segment], now: Now) -> Vec<Segment> {
    let mut regions: Vec<(&Region, &Segment, Vec<Line>)> = Vec::new();
    for region in &there.regions {
        let Some(segment) = known.get(region.segment) else { continue };
        regions.push((region, segment, lines_of(region, segment, now)));
    }
    regions.sort_by_key(|(region, _, lines)| (region.start, lines.len()));
    let mut segments: Vec<Segment> = Vec::new();
    let mut end = 0;
    for (Region { start, .. }, old, lines) in regions {
        let region_end = start + lines.len();
        match segments.last_mut() {
            Some(last) if *start <= end => {
                last.lines.extend(lines.into_iter().skip(end.min(region_end) - start));
                last.is_hit &= old.is_hit;
            }
            _ => segments.push(Segment { first: Some(start + 1), lines, guess: None, is_hit: old.is_hit }),
        }
        end = end.max(region_end);
    }
    segments
}

/// Returns the lines of a region; known lines keep what is known of them.
fn lines_of(region: &Region, old: &Segment, now: Now) -> Vec<Line> {
    let verified = |line: Line| Line { grade: Grade::Verified, certain_at: now.count, ..line };
    if region.made_of.is_empty() {
        return old.lines.iter().cloned().map(verified).collect();
    }
    let mut lines = Vec::new();
    for piece in &region.made_of {
        match piece {
            Piece::Known(first, count) => {
                let known = old.lines.iter().skip(*first).take(*count);
                lines.extend(known.cloned().map(verified));
            }
            // No message shows it.
            Piece::New(text) => lines.push(verified(Line { is_computed: true, ..Line::new(text, now, 0, 1) })),
        }
    }
    lines
}
