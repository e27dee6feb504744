//! Putting known lines together.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::super::numbering::Passage;
use super::super::patch::Hunk;
use super::{Line, Segment, Trust, join_lines};

/// Shortest text that can tell where a line belongs; braces and blanks stand everywhere.
const LEAST_TELLING_BYTES: usize = 5;

/// Adds a segment to those known: where it overlaps another by content, both become one.
///
/// The new lines win; what the old segment knew before and behind them is kept. Segments that stand directly
/// before or behind by number are joined. Answers where the new lines are, and whether all that was joined to
/// them agreed with them; where it did not, it is unsure.
pub(super) fn absorb(segments: &mut Vec<Segment>, mut new: Segment) -> (usize, bool) {
    let telling = telling_lines(&new.lines);
    let mut kept = Vec::with_capacity(segments.len() + 1);
    let (mut before, mut behind): (Option<Segment>, Option<Segment>) = (None, None);
    let mut is_certain = true;
    for old in segments.drain(..) {
        let Some(Overlap { before: mut head, behind: mut tail, pairs, is_exact }) = overlap(&old, &new, &telling)
        else {
            kept.extend(without_range(old, &new));
            continue;
        };
        new.is_hit &= old.is_hit;
        inherit(&mut new.lines, &old.lines, &pairs);
        if let (None, Some((old_place, new_place))) = (new.first, pairs.first()) {
            let moved = |first: usize| (first + old_place).checked_sub(*new_place).filter(|first| *first > 0);
            // Where a few lines of many agree, the numbers of the rest are a guess.
            new.first = old.first.filter(|_| is_exact).and_then(moved);
            new.guess = old.place().and_then(moved);
        }
        // Behind an unsure line nobody can say how far it is.
        let unsure = |line: &Line| !line.is_sure();
        let far_head = head.iter().rposition(unsure).map_or(0, |index| index + 1);
        let far_tail = tail.iter().position(unsure).unwrap_or(tail.len());
        head[..far_head].iter_mut().chain(&mut tail[far_tail..]).for_each(|line| line.trust = Trust::Unsure);
        if !is_exact {
            head.iter_mut().chain(&mut tail).for_each(|line| line.trust = Trust::Unsure);
            is_certain &= head.is_empty() && tail.is_empty();
        }
        let tail_place = old.place().map(|first| first + old.lines.len() - tail.len());
        for (place, lines, first) in [(&mut before, head, old.place()), (&mut behind, tail, tail_place)] {
            let part = Segment { first: None, guess: first, lines, is_hit: false };
            match place {
                _ if part.lines.is_empty() => {}
                None => *place = Some(part),
                Some(_) => kept.push(part),
            }
        }
    }
    attach(&mut kept, &mut new, before, behind);
    join_neighbours(&mut kept, &mut new);
    let at = kept.partition_point(|segment| order(segment) <= order(&new));
    kept.insert(at, new);
    *segments = kept;
    (at, is_certain)
}

/// Adds a segment at its number, joined with those right before and behind it.
pub(super) fn absorb_numbered(segments: &mut Vec<Segment>, mut new: Segment) {
    join_neighbours(segments, &mut new);
    let at = segments.partition_point(|segment| order(segment) <= order(&new));
    segments.insert(at, new);
}

/// Puts known lines before and behind a segment, unless others are known to stand there.
fn attach(kept: &mut Vec<Segment>, new: &mut Segment, before: Option<Segment>, behind: Option<Segment>) {
    let is_free = |kept: &[Segment], range: Range<usize>| {
        let meets = |first: usize, len: usize| first < range.end && range.start < first + len;
        !kept.iter().any(|other| other.first.is_some_and(|first| meets(first, other.lines.len())))
    };
    if let Some(mut part) = before {
        let start = new.first.map(|first| first.checked_sub(part.lines.len()).filter(|start| *start > 0));
        match (start, new.first) {
            (Some(None), _) => kept.push(part),
            (Some(Some(start)), Some(first)) if !is_free(kept, start..first) => kept.push(part),
            (start, _) => {
                new.first = start.flatten();
                new.guess = new.guess.and_then(|guess| guess.checked_sub(part.lines.len()));
                part.lines.append(&mut new.lines);
                new.lines = part.lines;
            }
        }
    }
    if let Some(part) = behind {
        let end = new.first.map(|first| first + new.lines.len());
        match end {
            Some(end) if !is_free(kept, end..end + part.lines.len()) => kept.push(part),
            _ => new.lines.extend(part.lines),
        }
    }
}

/// Whether a numbered segment has other text where lines are known by number.
pub(super) fn contradicts(segments: &[Segment], new: &Segment) -> bool {
    let Some(new_first) = new.first else { return false };
    segments.iter().any(|old| {
        let Some(old_first) = old.first else { return false };
        let start = old_first.max(new_first);
        let end = (old_first + old.lines.len()).min(new_first + new.lines.len());
        (start..end).any(|number| {
            let line = &old.lines[number - old_first];
            line.is_sure() && line.text != new.lines[number - new_first].text
        })
    })
}

fn order(segment: &Segment) -> usize {
    segment.place().unwrap_or(usize::MAX)
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

/// Fewest lines in common that tell where a segment without a number belongs: one may stand at many places.
const LEAST_PAIRS: usize = 2;

/// If `old` overlaps the new segment, what it has before and behind it.
fn overlap(old: &Segment, new: &Segment, telling: &HashMap<Arc<str>, Option<usize>>) -> Option<Overlap> {
    let len = new.lines.len();
    if let (Some(old_first), Some(new_first)) = (old.place(), new.first) {
        let is_apart = old_first + old.lines.len() <= new_first || new_first + len <= old_first;
        // Numbers are believed: code repeats itself, and likeness elsewhere is chance.
        if is_apart && old.first.is_some() {
            return None;
        }
        let around = overlap_by_number(old, &new.lines, old_first, new_first);
        // A guess must tell as much as content alone would.
        let telling = |around: &Overlap| around.pairs.iter().filter(|(from, _)| is_telling(&old.lines[*from])).count();
        if let Some(around) = around.filter(|around| old.first.is_some() || telling(around) >= LEAST_PAIRS) {
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
    let is_exact = same_texts(&old.lines[start..end], &new.lines[new_range.clone()]);
    // One line in common does not say for sure where lines without a number belong, unless nothing is added by it.
    let is_known = new_range.len() == len && new.first.is_none();
    let is_repeated = old.lines.len() == end - start && new.first.is_some();
    let is_exact = is_exact && (pairs.len() >= LEAST_PAIRS || is_known || is_repeated);
    enough.then(|| Overlap { before: old.lines[..start].to_vec(), behind: old.lines[end..].to_vec(), pairs, is_exact })
}

fn same_texts(old: &[Line], new: &[Line]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.text == new.text)
}

/// The same for segments whose numbers overlap and whose lines agree there.
fn overlap_by_number(old: &Segment, new: &[Line], old_first: usize, new_first: usize) -> Option<Overlap> {
    let (start, end) = (old_first.max(new_first), (old_first + old.lines.len()).min(new_first + new.len()));
    if start >= end {
        return None;
    }
    let places = (start..end).map(|number| (number - old_first, number - new_first));
    let pairs: Vec<(usize, usize)> = places.filter(|(from, to)| old.lines[*from].text == new[*to].text).collect();
    if (pairs.len() as f64) < LEAST_SHARED * (end - start) as f64 {
        return None;
    }
    let (before, behind) = (old.lines[..start - old_first].to_vec(), old.lines[end - old_first..].to_vec());
    let is_exact = pairs.len() == end - start;
    Some(Overlap { before, behind, pairs, is_exact })
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

/// Whether lines say enough to be found by.
pub(super) fn tells(lines: &[String]) -> bool {
    lines.iter().any(|line| line.trim().len() >= LEAST_TELLING_BYTES)
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
    /// Whether both are the same all over the overlap.
    is_exact: bool,
}

/// What is left of a segment that has other content at the same numbers.
fn without_range(mut old: Segment, new: &Segment) -> Vec<Segment> {
    let (Some(old_first), Some(new_first)) = (old.first, new.first) else { return vec![old] };
    let (old_end, new_end) = (old_first + old.lines.len(), new_first + new.lines.len());
    if old_end <= new_first || new_end <= old_first {
        return vec![old];
    }
    let behind = if new_end < old_end { old.lines.split_off(new_end - old_first) } else { Vec::new() };
    old.lines.truncate(new_first.saturating_sub(old_first));
    let rest = Segment { first: Some(new_end), lines: behind, guess: None, is_hit: old.is_hit };
    [old, rest].into_iter().filter(|segment| !segment.lines.is_empty()).collect()
}

/// Joins the segments that end where the new one begins, or begin where it ends.
fn join_neighbours(kept: &mut Vec<Segment>, new: &mut Segment) {
    let Some(first) = new.first else { return };
    let ends_here = |segment: &Segment| segment.first.is_some_and(|other| other + segment.lines.len() == first);
    if let Some(index) = kept.iter().position(ends_here) {
        let mut before = kept.remove(index);
        new.first = before.first;
        new.is_hit &= before.is_hit;
        before.lines.append(&mut new.lines);
        new.lines = before.lines;
    }
    let end = new.first.unwrap_or(first) + new.lines.len();
    let begins_there = |segment: &Segment| segment.first == Some(end);
    if let Some(index) = kept.iter().position(begins_there) {
        let behind = kept.remove(index);
        new.is_hit &= behind.is_hit;
        new.lines.extend(behind.lines);
    }
}

/// Marks lines as seen again, and sure, if they are known at their numbers; says whether they are.
///
/// Lines without a number that read the same are seen again too, but nobody can say that they are the same ones.
pub(super) fn touch(segments: &mut [Segment], at: u32, block: &Passage) -> bool {
    let mut is_known = false;
    for segment in segments {
        let is_numbered = segment.first.is_some();
        let Some(start) = segment.place().and_then(|first| block.first?.checked_sub(first)) else { continue };
        let Some(lines) = segment.lines.get_mut(start..start + block.lines.len()) else { continue };
        if !lines.iter().zip(&block.lines).all(|(line, text)| *line.text == **text) {
            continue;
        }
        for line in lines {
            line.seen = at;
            if is_numbered && line.trust == Trust::Unsure {
                line.trust = Trust::Sure;
            }
        }
        if is_numbered {
            return true;
        }
        is_known = true;
    }
    is_known
}

/// Fewest consecutive lines of another version that are taken for known ones, unless there are no more.
const LEAST_RUN: usize = 3;

/// Marks known lines as seen again that another version has too, in runs; nothing else is learnt from it.
pub(super) fn touch_old(segments: &mut [Segment], at: u32, block: &Passage) {
    let new: Vec<Line> = block.lines.iter().map(|text| Line::new(text, at, 0, 0)).collect();
    let telling = telling_lines(&new);
    for segment in segments {
        for (old_place, new_place) in longest_rising(&common_lines(segment, &telling)) {
            let run =
                segment.lines[old_place..].iter().zip(&new[new_place..]).take_while(|(old, new)| old.text == new.text);
            let run = run.count();
            if run < LEAST_RUN.min(new.len()) {
                continue;
            }
            for line in &mut segment.lines[old_place..old_place + run] {
                // What no message showed until now is shown now.
                line.seen = at;
                if line.trust == Trust::Computed {
                    line.trust = Trust::Sure;
                }
            }
        }
    }
}

/// What a replacement did to a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Replaced {
    /// By how many lines what follows moved.
    pub(super) grown: isize,
    /// Whether the lines were unsure, so that the piece may really stand elsewhere.
    pub(super) is_unsure: bool,
}

/// Replaces a piece of text in a segment, if it is there.
pub(super) fn replace_text(segment: &mut Segment, at: u32, old: &str, new: &str, all: bool) -> Option<Replaced> {
    let longest = old.split('\n').max_by_key(|line| line.len())?;
    if !segment.lines.iter().any(|line| line.text.contains(longest)) {
        return None;
    }
    let mut done = None;
    let mut from = 0;
    loop {
        // Every known line is a whole one, so the last one ends with a line feed too.
        let text = join_lines(&segment.lines) + "\n";
        let Some(start) = text.get(from..).and_then(|rest| rest.find(old)).map(|found| from + found) else { break };
        let part = replace_range(segment, at, &text, start..start + old.len(), new);
        let so_far: Replaced = done.unwrap_or_default();
        let is_unsure = so_far.is_unsure || part.is_unsure;
        done = Some(Replaced { grown: so_far.grown + part.grown, is_unsure });
        from = start + new.len();
        if !all || segment.lines.is_empty() {
            break;
        }
    }
    done
}

fn replace_range(segment: &mut Segment, at: u32, text: &str, range: Range<usize>, new: &str) -> Replaced {
    let before = segment.lines.len();
    let takes_end = range.end == text.len();
    let first = text[..range.start].matches('\n').count();
    let last = (first + text[range.clone()].matches('\n').count()).min(before - 1);
    let line_start = text[..range.start].rfind('\n').map_or(0, |found| found + 1);
    let line_end = text[range.end..].find('\n').map_or(text.len(), |found| range.end + found);
    let whole = [&text[line_start..range.start], new, &text[range.end..line_end]].concat();
    let is_closed = takes_end && (whole.is_empty() || whole.ends_with('\n'));
    let span = whole.matches('\n').count() as u32 + 1;
    let mut lines: Vec<Line> = whole.split('\n').map(|text| Line::new(text, at, at, span)).collect();
    if is_closed {
        lines.pop();
    } else if let (true, Some(last)) = (takes_end, lines.last_mut()) {
        // It goes on with a line that is not known.
        last.trust = Trust::Unsure;
    }
    let is_unsure = segment.lines[first..=last].iter().any(|line| !line.is_sure());
    if is_unsure {
        lines.iter_mut().for_each(|line| line.trust = Trust::Unsure);
    }
    segment.lines.splice(first..=last, lines);
    // What follows moves by the line feeds; the segment may keep one more line, a piece of one that goes on.
    let feeds = |text: &str| text.matches('\n').count() as isize;
    Replaced { grown: feeds(new) - feeds(&text[range]), is_unsure }
}

/// Where the old lines of a hunk stand in a segment: where the hunk says, or the first place from a line on.
pub(super) fn find_hunk(segment: &Segment, hunk: &Hunk, from: usize) -> Option<usize> {
    let named = hunk.first.zip(segment.first).and_then(|(wanted, first)| wanted.checked_sub(first));
    let is_there =
        |start: &usize| segment.lines.get(*start..).is_some_and(|lines| find_lines(lines, &hunk.old) == Some(0));
    let later = || Some(from + find_lines(segment.lines.get(from..)?, &hunk.old)?);
    named.filter(is_there).or_else(later).or_else(|| find_lines(&segment.lines, &hunk.old))
}

/// Replaces the lines of a hunk that begin at a place.
pub(super) fn replace_lines(segment: &mut Segment, at: u32, hunk: &Hunk, start: usize) -> Replaced {
    let old: Vec<Line> = segment.lines[start..start + hunk.old.len()].to_vec();
    let mut context = old.iter();
    let span = hunk.new.len() as u32;
    let is_unsure = old.iter().any(|line| !line.is_sure());
    let trust = if is_unsure { Trust::Unsure } else { Trust::Sure };
    let lines: Vec<Line> = hunk
        .new
        .iter()
        .zip(&hunk.added)
        .map(|(text, added)| {
            let kept =
                if *added { None } else { context.find(|line| line.text.trim_end() == text.trim_end()).cloned() };
            let line = kept.unwrap_or_else(|| Line::new(text, at, at, span));
            Line { seen: at, span, trust, ..line }
        })
        .collect();
    let grown = lines.len() as isize - old.len() as isize;
    segment.lines.splice(start..start + old.len(), lines);
    Replaced { grown, is_unsure }
}

/// Where consecutive lines stand: exactly, or up to blanks at their ends.
fn find_lines(lines: &[Line], wanted: &[String]) -> Option<usize> {
    let matches = |same: fn(&str, &str) -> bool| {
        let mut windows = lines.windows(wanted.len().max(1));
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
        let Segment { first: number, guess, mut lines, is_hit } = segment;
        let behind = lines.split_off(last + 1);
        lines.truncate(first);
        let place = number.or(guess).map(|number| number + last + 1);
        let rest = Segment { first: None, lines: behind, guess: place, is_hit };
        let head = Segment { first: number, lines, guess, is_hit };
        left.extend([head, rest].into_iter().filter(|segment| !segment.lines.is_empty()));
    }
    *segments = left;
}

/// Makes the lines of a segment unsure that may be a part of a text which stands half in what is not known.
pub(super) fn doubt_edges(segment: &mut Segment, old: &[&str]) {
    // Beside an unsure line begins what is not known, just as at the segment's ends.
    for run in segment.lines.chunk_by_mut(|line, next| line.is_sure() == next.is_sure()) {
        let (start, end) = edges(run, old);
        let len = run.len();
        for (index, line) in run.iter_mut().enumerate() {
            if index < start || index >= len - end {
                line.trust = Trust::Unsure;
            }
        }
    }
}

/// How many lines at the start and at the end of a run may be the end and the start of a text.
fn edges(run: &[Line], old: &[&str]) -> (usize, usize) {
    let len = run.len();
    // A piece may begin and end within a line.
    let fits = |line: usize, place: usize| match (place, &*run[line].text) {
        (0, text) if old.len() == 1 => text.contains(old[0]),
        (0, text) => text.ends_with(old[0]),
        (place, text) if place + 1 == old.len() => text.starts_with(old[place]),
        (place, text) => text == old[place],
    };
    let is_inside = |skip: usize| (0..len).all(|line| fits(line, skip + line));
    if len <= old.len() && (0..=old.len() - len).any(is_inside) {
        return (len, len);
    }
    let longest = len.min(old.len());
    let start = (1..=longest).rev().find(|count| (0..*count).all(|line| fits(line, old.len() - count + line)));
    let end = (1..=longest).rev().find(|count| (0..*count).all(|line| fits(len - count + line, line)));
    (start.unwrap_or(0), end.unwrap_or(0))
}
