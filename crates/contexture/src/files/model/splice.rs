//! Putting known lines together.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::super::numbering::Block;
use super::super::patch::Hunk;
use super::{Line, Segment, join_lines};

/// Shortest text that can tell where a line belongs; braces and blanks stand everywhere.
const LEAST_TELLING_BYTES: usize = 5;

/// Adds a segment to those known: where it overlaps another by content, both become one.
///
/// The new lines win; what the old segment knew before and behind them is kept. Segments that stand directly
/// before or behind by number are joined.
pub(super) fn absorb(segments: &mut Vec<Segment>, mut new: Segment) {
    let telling = telling_lines(&new.lines);
    let mut kept = Vec::with_capacity(segments.len() + 1);
    let (mut before, mut behind): (Option<Vec<Line>>, Option<Vec<Line>>) = (None, None);
    let new_len = new.lines.len();
    for old in segments.drain(..) {
        let Some(Overlap { before: head, behind: tail, pairs }) = overlap(&old, &new, new_len, &telling) else {
            kept.extend(without_range(old, &new));
            continue;
        };
        new.is_hit &= old.is_hit;
        inherit(&mut new.lines, &old.lines, &pairs);
        if new.first.is_none() {
            new.first =
                old.first.map(|first| first + head.len()).filter(|_| !head.is_empty() || tail.len() < old.lines.len());
            new.numbering = old.numbering;
        }
        let loose = |lines: Vec<Line>| Segment { first: None, lines, numbering: old.numbering, is_hit: false };
        for (place, lines) in [(&mut before, head), (&mut behind, tail)] {
            match place {
                _ if lines.is_empty() => {}
                None => *place = Some(lines),
                Some(_) => kept.push(loose(lines)),
            }
        }
    }
    if let Some(mut lines) = before {
        new.first = new.first.and_then(|first| first.checked_sub(lines.len())).filter(|first| *first > 0);
        lines.append(&mut new.lines);
        new.lines = lines;
    }
    new.lines.extend(behind.unwrap_or_default());
    join_neighbours(&mut kept, &mut new);
    let at = kept.partition_point(|segment| order(segment) <= order(&new));
    kept.insert(at, new);
    *segments = kept;
}

fn order(segment: &Segment) -> usize {
    segment.first.unwrap_or(usize::MAX)
}

/// Lines that occur once and say enough, with their places.
fn telling_lines(lines: &[Line]) -> HashMap<Arc<str>, Option<usize>> {
    let mut places = HashMap::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        if is_telling(line) {
            places.entry(line.text.clone()).and_modify(|place| *place = None).or_insert(Some(index));
        }
    }
    places
}

/// Least share of the telling lines in an overlap that both sides must have, for it to be one.
const LEAST_SHARED: f64 = 0.6;

/// If `old` overlaps the new segment, what it has before and behind it.
fn overlap(old: &Segment, new: &Segment, len: usize, telling: &HashMap<Arc<str>, Option<usize>>) -> Option<Overlap> {
    if let (Some(old_first), Some(new_first), true) = (old.first, new.first, old.numbering == new.numbering) {
        // Numbers of one numbering are believed: code repeats itself, and likeness elsewhere is chance.
        if old_first + old.lines.len() <= new_first || new_first + len <= old_first {
            return None;
        }
        if let Some(around) = overlap_by_number(old, &new.lines[..len], old_first, new_first) {
            return Some(around);
        }
    }
    let pairs = longest_rising(&common_lines(old, telling));
    let (first_old, first_new) = *pairs.first()?;
    let (last_old, last_new) = *pairs.last()?;
    let start = first_old.saturating_sub(first_new);
    let end = (last_old + len - last_new).min(old.lines.len());
    let new_range = first_new.saturating_sub(first_old)..(last_new + old.lines.len() - last_old).min(len);
    let tells = |lines: &[Line]| lines.iter().filter(|line| is_telling(line)).count();
    let unique = telling.values().flatten().filter(|place| new_range.contains(place)).count();
    let shared = pairs.len() as f64;
    let enough =
        shared >= LEAST_SHARED * unique as f64 && shared >= LEAST_SHARED / 2.0 * tells(&old.lines[start..end]) as f64;
    enough.then(|| Overlap { before: old.lines[..start].to_vec(), behind: old.lines[end..].to_vec(), pairs })
}

/// The same for segments whose numbers overlap and whose lines agree there.
fn overlap_by_number(old: &Segment, new: &[Line], old_first: usize, new_first: usize) -> Option<Overlap> {
    let (start, end) = (old_first.max(new_first), (old_first + old.lines.len()).min(new_first + new.len()));
    let places = (start..end).map(|number| (number - old_first, number - new_first));
    let pairs: Vec<(usize, usize)> = places.filter(|(from, to)| old.lines[*from].text == new[*to].text).collect();
    if (pairs.len() as f64) < LEAST_SHARED * (end - start) as f64 {
        return None;
    }
    let (before, behind) = (old.lines[..start - old_first].to_vec(), old.lines[end - old_first..].to_vec());
    Some(Overlap { before, behind, pairs })
}

/// Telling lines that both have exactly once: place in the old segment, place in the new one.
fn common_lines(old: &Segment, telling: &HashMap<Arc<str>, Option<usize>>) -> Vec<(usize, usize)> {
    let mut places: HashMap<usize, Option<usize>> = HashMap::new();
    for (index, line) in old.lines.iter().enumerate() {
        if let Some(Some(place)) = telling.get(&line.text) {
            places.entry(*place).and_modify(|known| *known = None).or_insert(Some(index));
        }
    }
    let mut pairs: Vec<(usize, usize)> =
        places.into_iter().filter_map(|(place, index)| Some((index?, place))).collect();
    pairs.sort_unstable();
    pairs
}

fn is_telling(line: &Line) -> bool {
    line.text.trim().len() >= LEAST_TELLING_BYTES
}

/// The longest subsequence of pairs in which the second rises; the first rises already.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    if pairs.windows(2).all(|pair| pair[0].1 < pair[1].1) {
        return pairs.to_vec();
    }
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = vec![None; pairs.len()];
    for (index, pair) in pairs.iter().enumerate() {
        let place = ends.partition_point(|end| pairs[*end].1 < pair.1);
        previous[index] = place.checked_sub(1).map(|before| ends[before]);
        if place == ends.len() {
            ends.push(index);
        } else {
            ends[place] = index;
        }
    }
    let mut rising = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(index) = at {
        rising.push(pairs[index]);
        at = previous[index];
    }
    rising.reverse();
    rising
}

/// Gives lines that are shown again unchanged what was known of them: that the agent edited them, that a view
/// shows them. `pairs` are places of equal lines in the old and the new; equal lines around them count too.
pub(super) fn inherit(new: &mut [Line], old: &[Line], pairs: &[(usize, usize)]) {
    let mut take = |old_place: usize, new_place: usize| -> bool {
        let (Some(from), Some(to)) = (old.get(old_place), new.get_mut(new_place)) else { return false };
        if from.text != to.text {
            return false;
        }
        to.edited = to.edited.max(from.edited);
        to.shown = to.shown.max(from.shown);
        true
    };
    let mut done = 0;
    for (old_place, new_place) in pairs.iter().copied() {
        let back = (1..=old_place.min(new_place)).take_while(|step| new_place - step >= done);
        for step in back {
            if !take(old_place - step, new_place - step) {
                break;
            }
        }
        let mut step = 0;
        while take(old_place + step, new_place + step) {
            step += 1;
        }
        done = done.max(new_place + step);
    }
}

/// The same for a segment that takes the place of all others.
pub(super) fn inherit_all(new: &mut Segment, segments: &[Segment]) {
    let telling = telling_lines(&new.lines);
    for old in segments {
        let pairs = longest_rising(&common_lines(old, &telling));
        inherit(&mut new.lines, &old.lines, &pairs);
    }
}

/// Lines of an old segment around a new one, and the places of equal lines in both.
struct Overlap {
    before: Vec<Line>,
    behind: Vec<Line>,
    pairs: Vec<(usize, usize)>,
}

/// What is left of a segment that has other content at the same numbers.
fn without_range(mut old: Segment, new: &Segment) -> Vec<Segment> {
    let (Some(old_first), Some(new_first)) = (old.first, new.first) else { return vec![old] };
    let (old_end, new_end) = (old_first + old.lines.len(), new_first + new.lines.len());
    if old_end <= new_first || new_end <= old_first {
        return vec![old];
    }
    if old.numbering != new.numbering {
        // The numbers moved since, so they say nothing about the content.
        old.first = None;
        return vec![old];
    }
    let numbering = old.numbering;
    let behind = if new_end < old_end { old.lines.split_off(new_end - old_first) } else { Vec::new() };
    old.lines.truncate(new_first.saturating_sub(old_first));
    let rest = Segment { first: Some(new_end), lines: behind, numbering, is_hit: old.is_hit };
    [old, rest].into_iter().filter(|segment| !segment.lines.is_empty()).collect()
}

/// Joins the segments that end where the new one begins, or begin where it ends.
fn join_neighbours(kept: &mut Vec<Segment>, new: &mut Segment) {
    let Some(first) = new.first else { return };
    let ends_here = |segment: &Segment| {
        segment.numbering == new.numbering && segment.first.is_some_and(|other| other + segment.lines.len() == first)
    };
    if let Some(index) = kept.iter().position(ends_here) {
        let mut before = kept.remove(index);
        new.first = before.first;
        new.is_hit &= before.is_hit;
        before.lines.append(&mut new.lines);
        new.lines = before.lines;
    }
    let end = new.first.unwrap_or(first) + new.lines.len();
    let begins_there = |segment: &Segment| segment.numbering == new.numbering && segment.first == Some(end);
    if let Some(index) = kept.iter().position(begins_there) {
        let behind = kept.remove(index);
        new.is_hit &= behind.is_hit;
        new.lines.extend(behind.lines);
    }
}

/// Marks lines as seen again if they are known at their numbers or by content; says whether they are.
pub(super) fn touch(segments: &mut [Segment], at: u32, block: &Block) -> bool {
    for segment in segments {
        let by_number = segment.first.and_then(|first| block.first?.checked_sub(first));
        let Some(start) = by_number else { continue };
        let Some(lines) = segment.lines.get_mut(start..start + block.lines.len()) else { continue };
        if lines.iter().zip(&block.lines).all(|(line, text)| *line.text == **text) {
            lines.iter_mut().for_each(|line| line.seen = at);
            return true;
        }
    }
    false
}

/// Replaces a piece of text in a segment; answers by how many lines it grew if the piece was there.
pub(super) fn replace_text(segment: &mut Segment, at: u32, old: &str, new: &str, all: bool) -> Option<isize> {
    let longest = old.split('\n').max_by_key(|line| line.len())?;
    if !segment.lines.iter().any(|line| line.text.contains(longest)) {
        return None;
    }
    let mut grown = 0;
    let mut from = 0;
    let mut hit = false;
    loop {
        let text = join_lines(&segment.lines);
        let Some(start) = text.get(from..).and_then(|rest| rest.find(old)).map(|found| from + found) else { break };
        hit = true;
        grown += replace_range(segment, at, &text, start..start + old.len(), new);
        from = start + new.len();
        if !all {
            break;
        }
    }
    hit.then_some(grown)
}

fn replace_range(segment: &mut Segment, at: u32, text: &str, range: std::ops::Range<usize>, new: &str) -> isize {
    let first = text[..range.start].matches('\n').count();
    let last = first + text[range.clone()].matches('\n').count();
    let line_start = text[..range.start].rfind('\n').map_or(0, |found| found + 1);
    let line_end = text[range.end..].find('\n').map_or(text.len(), |found| range.end + found);
    let mut whole = String::with_capacity(new.len() + 80);
    whole.push_str(&text[line_start..range.start]);
    whole.push_str(new);
    whole.push_str(&text[range.end..line_end]);
    let span = whole.matches('\n').count() as u32 + 1;
    let line = |text: &str| Line { text: text.into(), seen: at, edited: at, shown: 0, span };
    let mut lines: Vec<Line> = whole.split('\n').map(line).collect();
    let before = last + 1 - first;
    if new.is_empty() && whole.is_empty() && before < segment.lines.len() {
        lines.clear();
    }
    let after = lines.len();
    segment.lines.splice(first..=last, lines);
    after as isize - before as isize
}

/// Replaces the lines of a hunk in a segment; answers by how many lines it grew if they were there.
pub(super) fn replace_lines(segment: &mut Segment, at: u32, hunk: &Hunk) -> Option<isize> {
    let start = find_lines(&segment.lines, &hunk.old)?;
    let old: Vec<Line> = segment.lines[start..start + hunk.old.len()].to_vec();
    let mut context = old.iter();
    let span = hunk.new.len() as u32;
    let lines: Vec<Line> = hunk
        .new
        .iter()
        .zip(&hunk.added)
        .map(|(text, added)| {
            let kept =
                if *added { None } else { context.find(|line| line.text.trim_end() == text.trim_end()).cloned() };
            let line =
                kept.unwrap_or_else(|| Line { text: text.as_str().into(), seen: at, edited: at, shown: 0, span });
            Line { seen: at, span, ..line }
        })
        .collect();
    let grown = lines.len() as isize - old.len() as isize;
    segment.lines.splice(start..start + old.len(), lines);
    Some(grown)
}

/// Where consecutive lines stand: exactly, or up to blanks at their ends.
fn find_lines(lines: &[Line], wanted: &[String]) -> Option<usize> {
    let matches = |same: fn(&str, &str) -> bool| {
        let mut windows = lines.windows(wanted.len());
        windows.position(|window| window.iter().zip(wanted).all(|(line, text)| same(&line.text, text)))
    };
    matches(|line, text| line == text).or_else(|| matches(|line, text| line.trim_end() == text.trim_end()))
}

/// Takes away known lines that were changed at a place that is not wholly known.
pub(super) fn forget(segments: &mut Vec<Segment>, old: &[&str]) {
    let gone: HashSet<&str> = old.iter().copied().filter(|line| line.trim().len() >= LEAST_TELLING_BYTES).collect();
    if gone.is_empty() {
        return;
    }
    let mut left = Vec::with_capacity(segments.len());
    for segment in segments.drain(..) {
        let hits = segment.lines.iter().filter(|line| gone.contains(&*line.text)).count();
        // A few of many lines in common is chance; a run of them is the place.
        if hits == 0 || hits * 2 < gone.len() {
            left.push(segment);
            continue;
        }
        let is_gone = |line: &Line| gone.contains(&*line.text);
        let first = segment.lines.iter().position(is_gone).unwrap_or(0);
        let last = segment.lines.iter().rposition(is_gone).unwrap_or(0);
        if last - first > 2 * old.len() {
            left.push(segment);
            continue;
        }
        let Segment { first: number, mut lines, numbering, is_hit } = segment;
        let behind = lines.split_off(last + 1);
        lines.truncate(first);
        let rest = Segment { first: None, lines: behind, numbering, is_hit };
        let head = Segment { first: number, lines, numbering, is_hit };
        left.extend([head, rest].into_iter().filter(|segment| !segment.lines.is_empty()));
    }
    *segments = left;
}
