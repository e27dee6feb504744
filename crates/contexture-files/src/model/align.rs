//! Finds known lines in a file on the disk.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

/// Consecutive lines that are the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MatchingLines {
    /// The first of them among the known lines.
    pub(super) known: usize,
    /// The first of them on the disk.
    pub(super) disk: usize,
    /// How many.
    pub(super) len: usize,
}

impl MatchingLines {
    pub(super) fn disk_end(&self) -> usize {
        self.disk + self.len
    }

    fn known_end(&self) -> usize {
        self.known + self.len
    }
}

/// The lines of a file on the disk, with the places of those that occur once and are not blank.
pub(super) struct DiskLines<'a> {
    pub(super) lines: Vec<&'a str>,
    /// `None` for lines that occur more than once. Computed on first use, since most files are unchanged.
    places: OnceCell<HashMap<&'a str, Option<usize>>>,
}

impl<'a> DiskLines<'a> {
    pub(super) fn new(lines: Vec<&'a str>) -> Self {
        Self { lines, places: OnceCell::new() }
    }

    /// The place of a line that occurs once.
    fn place_of(&self, line: &str) -> Option<usize> {
        let places = self.places.get_or_init(|| {
            let mut places = HashMap::with_capacity(self.lines.len());
            for (at, line) in self.lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                places.entry(*line).and_modify(|place| *place = None).or_insert(Some(at));
            }
            places
        });
        places.get(line).copied().flatten()
    }

    /// Returns the lines that are both known and on the disk, in order, as blocks.
    ///
    /// Only lines that occur once on both sides establish a place; equal lines next to them are added to their block.
    pub(super) fn blocks(&self, known: &[&str]) -> Vec<MatchingLines> {
        let mut own: HashMap<&str, usize> = HashMap::with_capacity(known.len());
        for line in known {
            *own.entry(line).or_default() += 1;
        }
        let unique = known.iter().enumerate().filter(|(_, line)| own[*line] == 1);
        let pairs: Vec<(usize, usize)> = unique.filter_map(|(at, line)| Some((at, self.place_of(line)?))).collect();
        let mut blocks: Vec<MatchingLines> = Vec::new();
        for (known_at, disk_at) in longest_rise(&pairs) {
            if blocks.last().is_some_and(|last| known_at < last.known_end() || disk_at < last.disk_end()) {
                continue;
            }
            let floor = blocks.last().map_or((0, 0), |last| (last.known_end(), last.disk_end()));
            blocks.push(grown(known, &self.lines, (known_at, disk_at), floor));
        }
        blocks
    }
}

/// Returns the block of equal lines around a pair, beginning no earlier than a floor.
fn grown(known: &[&str], disk: &[&str], (known_at, disk_at): (usize, usize), floor: (usize, usize)) -> MatchingLines {
    let most_before = (known_at - floor.0).min(disk_at - floor.1);
    let before = (1..=most_before).take_while(|back| known[known_at - back] == disk[disk_at - back]).count();
    let after = known[known_at..].iter().zip(&disk[disk_at..]).take_while(|(one, other)| one == other).count();
    MatchingLines { known: known_at - before, disk: disk_at - before, len: before + after }
}

/// Returns the longest subsequence of pairs in which both sides rise; the first side rises already.
fn longest_rise(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the pair that ends a subsequence of it with the lowest end; and for each pair the one before it.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, (_, place)) in pairs.iter().enumerate() {
        let len = ends.partition_point(|end| pairs[*end].1 < *place);
        before.push(len.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(len) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut rise: Vec<(usize, usize)> = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        rise.push(pairs[index]);
        next = before[index];
    }
    rise.reverse();
    rise
}

/// A run of at least this many equal lines is strong: new lines between two strong runs count as part of what was
/// known.
///
/// With a lower limit, a single known line that was moved would make the lines around its new place count as known.
const LEAST_STRONG: usize = 3;

/// How many lines the text between two such runs may have grown, beyond the number of known lines.
const MOST_GROWN: usize = 20;

/// Whether the known lines reach the ends of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileBounds {
    /// Whether they begin where the file begins.
    pub(super) begins: bool,
    /// Whether they end where the file ends.
    pub(super) ends: bool,
}

/// Returns the parts of the disk that are within what was known: everything from one strong block to the next, and
/// other weak blocks by themselves.
pub(super) fn regions(blocks: &[MatchingLines], known: usize, disk: usize, bounds: FileBounds) -> Vec<Range<usize>> {
    if bounds.begins && bounds.ends {
        return (disk > 0).then_some(0..disk).into_iter().collect();
    }
    let start = bounds.begins.then_some(MatchingLines { known: 0, disk: 0, len: 0 });
    let end = bounds.ends.then_some(MatchingLines { known, disk, len: 0 });
    let all: Vec<MatchingLines> = start.into_iter().chain(blocks.iter().copied()).chain(end).collect();
    let is_strong = |block: &MatchingLines| block.len >= LEAST_STRONG || block.len == 0;
    let mut regions: Vec<Range<usize>> = Vec::new();
    let mut last: Option<MatchingLines> = None;
    for block in all {
        let reaches = last.filter(|_| is_strong(&block)).filter(|last| {
            let (old, new) = (block.known.saturating_sub(last.known_end()), block.disk.saturating_sub(last.disk_end()));
            new <= old + known + MOST_GROWN
        });
        if let Some(last) = reaches {
            // Weak blocks between two strong ones are within their region.
            while regions.last().is_some_and(|region| region.start >= last.disk_end()) {
                regions.pop();
            }
            join(&mut regions, last.disk_end()..block.disk_end());
        } else {
            join(&mut regions, block.disk..block.disk_end());
        }
        if is_strong(&block) {
            last = Some(block);
        }
    }
    regions.retain(|region| !region.is_empty());
    regions
}

/// Adds a region after the others, or extends the last one if they touch.
fn join(regions: &mut Vec<Range<usize>>, region: Range<usize>) {
    match regions.last_mut() {
        Some(last) if region.start <= last.end => last.end = last.end.max(region.end),
        _ => regions.push(region),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(known: &str, disk: &str, bounds: FileBounds) -> Vec<String> {
        let known: Vec<&str> = known.split(' ').collect();
        let lines = DiskLines::new(disk.split(' ').collect());
        let blocks = lines.blocks(&known);
        let regions = regions(&blocks, known.len(), lines.lines.len(), bounds);
        regions.into_iter().map(|region| lines.lines[region].join(" ")).collect()
    }

    const WITHIN: FileBounds = FileBounds { begins: false, ends: false };

    #[test]
    fn what_changed_between_known_lines_is_within_them() {
        assert_eq!(mapped("a b c x d e f", "0 a b c y z d e f 9", WITHIN), ["a b c y z d e f"]);
        assert_eq!(mapped("a b c x k y d e f", "a b c 1 k 2 d e f", WITHIN), ["a b c 1 k 2 d e f"]);
        assert_eq!(mapped("a b c x d e f", "0 a b c d e f 9", WITHIN), ["a b c d e f"]);
    }

    #[test]
    fn what_is_beside_them_is_not() {
        assert_eq!(mapped("x a b c y", "7 8 a b c 9", WITHIN), ["a b c"]);
        assert_eq!(mapped("a b c d", "1 2 3 4", WITHIN), [""; 0]);
        // One line at the end was moved, and what is before its new place was never known.
        assert_eq!(mapped("a b c d e f", "a b c d e 1 2 3 f", WITHIN), ["a b c d e", "f"]);
        assert_eq!(mapped("a b c d e f", "b 1 2 a c d e f", WITHIN), ["b", "c d e f"]);
    }

    #[test]
    fn a_file_s_own_end_is_a_bound() {
        let begins = FileBounds { begins: true, ends: false };
        assert_eq!(mapped("x a b c y", "7 8 a b c 9", begins), ["7 8 a b c"]);
        let ends = FileBounds { begins: false, ends: true };
        assert_eq!(mapped("x a b c y", "7 8 a b c 9", ends), ["a b c 9"]);
        let whole = FileBounds { begins: true, ends: true };
        assert_eq!(mapped("x y", "1 2 3", whole), ["1 2 3"]);
    }

    #[test]
    fn lines_that_occur_twice_say_nothing_of_their_place() {
        assert_eq!(mapped("} } }", "} 1 } 2 }", WITHIN), [""; 0]);
        assert_eq!(mapped("} a }", "} } 1 } a }", WITHIN), ["} a }"]);
    }
}
