//! Applies the result of a comparison with the disk.

use super::compare::{Compared, Found, Piece, Region, There};
use super::state::End;
use super::{DiskChange, FileModel, FileState, Known, Line, Now, Segment};
use crate::disk::NotCompared;

/// The result of a comparison with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// The file has every known line.
    Same,
    /// The file has other text where the agent has read or written. The known lines that are still there are verified;
    /// the others are no longer known, and neither is what is there in their place.
    Differed,
    /// The file is gone.
    Gone,
    /// The file was not compared, so its lines are as they were seen.
    NotCompared,
    /// Nothing is known of the file.
    Unknown,
}

impl FileModel {
    /// Compares what is known of a file with its text on the disk, or with its absence, and applies the result.
    ///
    /// Known lines that are there are verified, and those that are gone are forgotten. Nothing is learnt: a text that
    /// the conversation did not have is not shown.
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

    /// The result for a file that was not compared; `None` if that changes nothing.
    pub fn not_compared(&self, file: usize, why: NotCompared) -> Option<Compared> {
        let state = self.files().get(file)?;
        let is_known = state.certain_at() < self.written_at_of(file) && state.not_compared == Some(why);
        let is_news = !state.segments.is_empty() && !is_known;
        is_news.then_some(Compared { file, found: Found::NotCompared(why) })
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
            // Nothing was compared, so that a stamp from before says nothing of what is known now.
            Found::Unreadable => return self.files.change(*index).take_not_compared(now, NotCompared::NoText),
            Found::NotCompared(why) => return self.files.change(*index).take_not_compared(now, *why),
            Found::Unchanged if self.files.is_as_compared(*index) => {
                self.files.confirm(*index, now);
                return Verified::Same;
            }
            Found::There(there) if file.known_hash() == there.known => self.take_there(*index, now, there),
            // Another version of the program may know other lines. It is uncertain which of them are there.
            Found::Unchanged | Found::There(_) => {
                self.files.note(*index).written_at = now.count;
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
        let is_all = there.regions.len() == file.segments.len() && !file.deleted && file.changes.is_empty();
        let is_closed = file.end == end_of(there)
            && file.has_returns == there.has_returns
            && file.whole == is_whole(&file.segments, there.lines);
        if is_all && is_closed && there.regions.iter().zip(&file.segments).enumerate().all(is_in_place) {
            self.files.confirm(index, now);
            return Verified::Same;
        }
        self.files.change(index).take_there(now, there)
    }
}

impl FileState {
    pub(super) fn take_gone(&mut self, now: Now) -> Verified {
        let was_gone = self.deleted;
        self.not_compared = None;
        self.segments.clear();
        self.changes.clear();
        (self.deleted, self.whole, self.end, self.whole_at) = (true, false, End::Unknown, now.count);
        if was_gone {
            return Verified::Same;
        }
        self.disk_change = Some(DiskChange { at: now.at, lost: 0, differ: Vec::new() });
        Verified::Gone
    }

    fn take_not_compared(&mut self, now: Now, why: NotCompared) -> Verified {
        (self.written_at, self.not_compared) = (now.count, Some(why));
        Verified::NotCompared
    }

    fn take_there(&mut self, now: Now, there: &There) -> Verified {
        self.changes.clear();
        self.not_compared = None;
        (self.end, self.has_returns, self.whole_at) = (end_of(there), there.has_returns, now.count);
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
        if was_whole && there.lines == 0 {
            self.segments.push(Segment { first: Some(1), lines: Vec::new(), guess: None, is_hit: false });
        }
        self.whole = is_whole(&self.segments, there.lines) && (was_whole || there.lines > 0);
        if is_same {
            return Verified::Same;
        }
        self.note_change_elsewhere();
        let kept: usize = there.regions.iter().map(|region| region.known_lines(&known)).sum();
        let differ = there.regions.iter().flat_map(Region::unseen).take(MAX_DIFFERENCES).collect();
        self.disk_change = Some(DiskChange { at: now.at, lost: before.saturating_sub(kept), differ });
        Verified::Differed
    }
}

/// Most places of a file that are remembered as different.
const MAX_DIFFERENCES: usize = 4;

impl Region {
    /// How many of its lines were known.
    fn known_lines(&self, known: &[Segment]) -> usize {
        let all = known.get(self.segment).map_or(0, |segment| segment.lines.len());
        let of = |piece: &Piece| if let Piece::Known(_, count) = piece { *count } else { 0 };
        if self.made_of.is_empty() { all } else { self.made_of.iter().map(of).sum() }
    }

    /// Its pieces, each with the number of lines on the disk before it.
    fn placed(&self) -> impl Iterator<Item = (usize, Piece)> {
        self.made_of.iter().scan(self.start, |at, piece| {
            let start = *at;
            *at += piece.lines();
            Some((start, *piece))
        })
    }

    /// The numbers of the first and the last line of each run of lines that were not known.
    fn unseen(&self) -> impl Iterator<Item = (usize, usize)> {
        self.placed()
            .filter_map(|(at, piece)| matches!(piece, Piece::Unseen(_)).then_some((at + 1, at + piece.lines())))
    }

    /// Its known lines in runs, each with the number of lines on the disk before it.
    fn runs(&self, old: &Segment, now: Now) -> Vec<(usize, Vec<Line>)> {
        let verified = |line: &Line| Line { known: Known::Verified, certain_at: now.count, ..line.clone() };
        if self.made_of.is_empty() {
            return vec![(self.start, old.lines.iter().map(verified).collect())];
        }
        let run = |(at, piece)| match piece {
            Piece::Known(first, count) => Some((at, old.lines.iter().skip(first).take(count).map(verified).collect())),
            Piece::Unseen(_) => None,
        };
        self.placed().filter_map(run).collect()
    }
}

fn end_of(there: &There) -> End {
    if there.is_open { End::Open } else { End::Closed }
}

/// Whether the known lines are all lines of a file.
fn is_whole(segments: &[Segment], lines: usize) -> bool {
    matches!(segments, [only] if only.lines.len() == lines)
}

/// Returns the known lines that are on the disk as segments, joined where they touch.
fn merged(there: &There, known: &[Segment], now: Now) -> Vec<Segment> {
    let mut runs: Vec<(usize, Vec<Line>, bool)> = Vec::new();
    for region in &there.regions {
        let Some(segment) = known.get(region.segment) else { continue };
        runs.extend(region.runs(segment, now).into_iter().map(|(start, lines)| (start, lines, segment.is_hit)));
    }
    runs.sort_by_key(|(start, lines, _)| (*start, lines.len()));
    let mut segments: Vec<Segment> = Vec::new();
    let mut end = 0;
    for (start, lines, is_hit) in runs {
        let run_end = start + lines.len();
        match segments.last_mut() {
            Some(last) if start <= end => {
                last.lines.extend(lines.into_iter().skip(end.min(run_end) - start));
                last.is_hit &= is_hit;
            }
            _ => segments.push(Segment { first: Some(start + 1), lines, guess: None, is_hit }),
        }
        end = end.max(run_end);
    }
    segments
}
