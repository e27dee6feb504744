//! Comparing what is known of a file with what is on the disk.

use std::collections::HashMap;
use std::sync::Arc;

use super::state::End;
use super::{FileModel, FileState, Grade, Line, Now, Segment};
use crate::files::numbering::split_lines;

/// What a comparison with the disk found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// The file has every known line.
    Same,
    /// The file had other text in places that the agent has read or written; it is known now.
    Differed,
    /// The file is gone.
    Gone,
    /// Nothing is known of the file.
    Unknown,
}

impl FileModel {
    /// Compares what is known of a file with its text on the disk, or with its absence.
    ///
    /// Known lines that are there are verified. Where the file differs, its text is taken within the regions that the
    /// agent has read or written and nowhere else.
    pub fn verify(&mut self, at: u32, path: &str, text: Option<&str>) -> Verified {
        let Some(index) = self.place(path) else { return Verified::Unknown };
        self.count += 1;
        let now = Now { at, count: self.count };
        if self.files[index].segments.is_empty() && !self.files[index].deleted {
            return Verified::Unknown;
        }
        let file = self.files.change(index);
        let verified = match text {
            None => file.verify_gone(),
            Some(text) => file.verify(now, text),
        };
        self.recount(index);
        verified
    }
}

impl FileState {
    fn verify_gone(&mut self) -> Verified {
        let was_gone = self.deleted;
        self.segments.clear();
        self.doubts.clear();
        (self.deleted, self.whole, self.end) = (true, false, End::Unknown);
        if was_gone { Verified::Same } else { Verified::Gone }
    }

    fn verify(&mut self, now: Now, text: &str) -> Verified {
        let disk: Vec<&str> = split_lines(text).collect();
        self.end = if text.is_empty() || text.ends_with('\n') { End::Closed } else { End::Open };
        self.doubts.clear();
        if self.deleted {
            // It is there again, and nothing of it was read.
            self.deleted = false;
            return Verified::Differed;
        }
        let was_whole = self.whole;
        let mut index: Option<HashMap<&str, Option<usize>>> = None;
        let mut is_same = true;
        let mut regions: Vec<(std::ops::Range<usize>, Segment)> = Vec::new();
        for segment in std::mem::take(&mut self.segments) {
            if let Some(start) = exact_place(&segment, &disk) {
                regions.push((start..start + segment.lines.len(), segment));
                continue;
            }
            is_same = false;
            let index = index.get_or_insert_with(|| unique_lines(&disk));
            let range = region(&segment, &disk, index, was_whole);
            regions.extend(range.map(|range| (range, segment)));
        }
        if was_whole {
            is_same &= regions.first().is_some_and(|(range, _)| range.len() == disk.len());
            regions = vec![(0..disk.len(), regions.pop().map_or_else(empty_segment, |(_, segment)| segment))];
        }
        if !is_same {
            self.note_change_elsewhere();
        }
        self.segments = merged(regions, &disk, now);
        self.whole = self.segments.len() == 1 && self.segments[0].lines.len() == disk.len();
        if is_same { Verified::Same } else { Verified::Differed }
    }
}

fn empty_segment() -> Segment {
    Segment { first: Some(1), lines: Vec::new(), guess: None, is_hit: false }
}

/// Where all lines of a segment are on the disk in one piece: at their number, or at the only place.
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
    let mut places = candidates.filter_map(|(at, _)| at.checked_sub(longest)).filter(|start| is_at(*start));
    places.next()
}

/// Lines of the disk that occur once.
fn unique_lines<'a>(disk: &[&'a str]) -> HashMap<&'a str, Option<usize>> {
    let mut places = HashMap::with_capacity(disk.len());
    for (index, line) in disk.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        places.entry(*line).and_modify(|place| *place = None).or_insert(Some(index));
    }
    places
}

/// The lines of the disk between the first and the last known line that it still has.
fn region(
    segment: &Segment,
    disk: &[&str],
    index: &HashMap<&str, Option<usize>>,
    is_whole: bool,
) -> Option<std::ops::Range<usize>> {
    if is_whole {
        return Some(0..disk.len());
    }
    let mut places: Vec<(usize, usize)> = Vec::new();
    for (own, line) in segment.lines.iter().enumerate() {
        if let Some(Some(place)) = index.get(&*line.text)
            && places.last().is_none_or(|(_, last)| last < place)
        {
            places.push((own, *place));
        }
    }
    let ((first_own, first), (last_own, last)) = (*places.first()?, *places.last()?);
    // Lines around these may have changed; as many are taken as were known, while the disk has them.
    let start = first.saturating_sub(first_own);
    let end = (last + segment.lines.len() - last_own).min(disk.len());
    // A line that moved far away would make the region larger than what was known.
    let is_plausible = end - start <= segment.lines.len() * 2 + MOST_GROWN;
    is_plausible.then_some(start..end)
}

/// By how many lines a region may have grown beyond twice its length.
const MOST_GROWN: usize = 20;

/// Segments with the text of the disk in regions, joined where they meet.
fn merged(mut regions: Vec<(std::ops::Range<usize>, Segment)>, disk: &[&str], now: Now) -> Vec<Segment> {
    regions.sort_by_key(|(range, _)| (range.start, range.end));
    let mut segments: Vec<Segment> = Vec::new();
    let mut end = 0;
    for (range, old) in regions {
        let lines = verified(&range, &old, disk, now);
        match segments.last_mut() {
            Some(last) if range.start <= end && end > 0 => {
                let known = end.min(range.end) - range.start;
                last.lines.extend(lines.into_iter().skip(known));
                last.is_hit &= old.is_hit;
            }
            _ => segments.push(Segment { first: Some(range.start + 1), lines, guess: None, is_hit: old.is_hit }),
        }
        end = end.max(range.end);
    }
    segments
}

/// The lines of a region; those that were known keep what is known of them.
fn verified(range: &std::ops::Range<usize>, old: &Segment, disk: &[&str], now: Now) -> Vec<Line> {
    let is_aligned = range.len() == old.lines.len();
    let by_text: HashMap<&Arc<str>, &Line> = match is_aligned {
        true => HashMap::new(),
        false => old.lines.iter().map(|line| (&line.text, line)).collect(),
    };
    let one = |(index, text): (usize, &&str)| {
        let known = match is_aligned {
            true => Some(&old.lines[index]).filter(|line| &*line.text == *text),
            false => by_text.get(&Arc::<str>::from(*text)).copied(),
        };
        let line = known.cloned().unwrap_or_else(|| Line { is_computed: true, ..Line::new(text, now, 0, 1) });
        Line { grade: Grade::Verified, certain_at: now.count, ..line }
    };
    disk[range.clone()].iter().enumerate().map(one).collect()
}
