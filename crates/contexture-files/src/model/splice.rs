//! Merges known lines into segments and splits segments.
//!
//! A segment is a run of consecutive lines of a file's current version. It has line numbers (`first`), or only a guess
//! of them, or none. Two rules explain most of the code:
//!
//! - A line must never be known in two places: the view would show one of them in an old version. So whenever lines are
//!   added, the same lines are removed where they are less certain.
//! - Equal text is not proof of the same place: files repeat themselves. Segments are joined only by number; equal text
//!   only removes duplicates, and only around lines that occur once and are long enough to identify a place.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::super::numbering::Passage;
use super::super::patch::Hunk;
use super::{Known, Line, Now, Segment, join_lines};

/// The shortest text that identifies a place in a file; braces and blank lines are everywhere.
const LEAST_TELLING_BYTES: usize = 5;

/// Adds lines of a file's current version to those that are known.
///
/// Segments with numbers are joined where their numbers meet. Lines that are known twice are removed in the place that
/// is less certain; nothing is joined because it has the same text.
pub(super) fn absorb(segments: &mut Vec<Segment>, mut new: Segment) {
    if new.first.is_none() {
        return absorb_unplaced(segments, new);
    }
    let telling = telling_lines(&new.lines);
    let mut kept = Vec::with_capacity(segments.len() + 1);
    let mut around = Around::default();
    for old in segments.drain(..) {
        match old.first {
            // Numbers decide: the new lines replace the old ones at the same numbers, whatever their text.
            Some(_) => {
                new.is_hit &= old.is_hit || !meets(&old, &new);
                inherit_by_number(&mut new, &old);
                kept.extend(without_range(old, &new));
            }
            // Without numbers only the text can show that the old lines are the same place.
            None => {
                let pairs = longest_rising(&common_lines(&old, &telling));
                inherit(&mut new.lines, &old.lines, &pairs);
                kept.extend(around.take(without_duplicates(old, &new, &pairs), &new, &pairs));
            }
        }
    }
    around.attach(&mut kept, &mut new);
    *segments = kept;
    insert(segments, new);
}

/// Lines whose places are not certain and that were known directly before and after lines that are shown again. They stay next to them: their
/// place is no less certain than they are, and separate segments would lose where they belong.
#[derive(Default)]
struct Around {
    before: Option<Segment>,
    after: Option<Segment>,
}

impl Around {
    /// Takes the parts that are next to the new lines out of the rest of a segment.
    fn take(&mut self, left: Vec<Segment>, new: &Segment, pairs: &[(usize, usize)]) -> Vec<Segment> {
        let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else { return left };
        let is_loose = |segment: &Segment| segment.lines.iter().all(|line| !line.is_placed());
        let mut parts = left.into_iter();
        let (head, tail, rest) = match (parts.next(), parts.next(), parts.next()) {
            (Some(head), Some(tail), None) => (head, tail, None),
            (head, tail, rest) => return head.into_iter().chain(tail).chain(rest).chain(parts).collect(),
        };
        let mut kept: Vec<Segment> = rest.into_iter().collect();
        // Only if the common lines extend from the first new line to the last does the rest lie directly beside them.
        let is_inside = first.0 >= first.1 && last.1 < new.lines.len();
        match is_inside && is_loose(&head) && self.before.is_none() {
            true => self.before = Some(head),
            false => kept.push(head),
        }
        match is_inside && is_loose(&tail) && self.after.is_none() {
            true => self.after = Some(tail),
            false => kept.push(tail),
        }
        kept
    }

    /// Attaches the parts to the new lines, unless other lines are known at their numbers.
    fn attach(self, kept: &mut Vec<Segment>, new: &mut Segment) {
        let Some(first) = new.first else { return };
        let is_free = |kept: &[Segment], range: Range<usize>| {
            let meets = |place: usize, len: usize| place < range.end && range.start < place + len;
            !kept.iter().any(|other| other.first.is_some_and(|place| meets(place, other.lines.len())))
        };
        let end = first + new.lines.len();
        if let Some(after) = self.after {
            match is_free(kept, end..end + after.lines.len()) {
                true => {
                    new.is_hit &= after.is_hit;
                    new.lines.extend(after.lines);
                }
                false => kept.push(after),
            }
        }
        if let Some(mut before) = self.before {
            let start = first.checked_sub(before.lines.len()).filter(|start| *start > 0);
            match start.filter(|start| is_free(kept, *start..first)) {
                Some(start) => {
                    new.first = Some(start);
                    new.is_hit &= before.is_hit;
                    before.lines.append(&mut new.lines);
                    new.lines = before.lines;
                }
                None => kept.push(before),
            }
        }
    }
}

/// Adds lines whose numbers are not known.
fn absorb_unplaced(segments: &mut Vec<Segment>, new: Segment) {
    // If all of them are already known for sure, in one piece, this only confirms them.
    let texts: Vec<&str> = new.lines.iter().map(|line| &*line.text).collect();
    for segment in segments.iter_mut() {
        let Some(place) = find_texts(&segment.lines, &texts) else { continue };
        let lines = &mut segment.lines[place..place + texts.len()];
        if lines.iter().all(Line::is_placed) {
            for (line, seen) in lines.iter_mut().zip(&new.lines) {
                (line.seen, line.span, line.is_computed) = (seen.seen, seen.span, false);
            }
            return;
        }
    }
    // Otherwise duplicates are removed. A numbered segment that is sure is kept and the new lines are dropped, since
    // its numbers would be lost. Any other segment is replaced by them, since they are the newer observation.
    let mut parts = vec![new];
    let mut kept = Vec::with_capacity(segments.len() + 1);
    for old in segments.drain(..) {
        if old.first.is_some() && old.lines.iter().all(Line::is_placed) {
            let telling = telling_lines(&old.lines);
            let forget = |part: Segment| {
                let pairs = longest_rising(&common_lines(&part, &telling));
                without_duplicates(part, &old, &pairs)
            };
            parts = parts.into_iter().flat_map(forget).collect();
            kept.push(old);
            continue;
        }
        let mut left = vec![old];
        for part in &mut parts {
            let telling = telling_lines(&part.lines);
            let forget = |old: Segment| {
                let pairs = longest_rising(&common_lines(&old, &telling));
                inherit(&mut part.lines, &old.lines, &pairs);
                without_duplicates(old, part, &pairs)
            };
            left = left.into_iter().flat_map(forget).collect();
        }
        kept.extend(left);
    }
    kept.extend(parts.into_iter().filter(|part| !part.lines.is_empty()));
    *segments = kept;
}

/// Inserts a segment by its number, joined with those directly before and after it.
pub(super) fn insert(segments: &mut Vec<Segment>, mut new: Segment) {
    join_neighbours(segments, &mut new);
    let at = segments.partition_point(|segment| order(segment) <= order(&new));
    segments.insert(at, new);
}

fn meets(old: &Segment, new: &Segment) -> bool {
    let (Some(old_first), Some(new_first)) = (old.first, new.first) else { return false };
    old_first < new_first + new.lines.len() && new_first < old_first + old.lines.len()
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
            line.is_placed() && line.text != new.lines[number - new_first].text
        })
    })
}

/// Whether lines cannot be part of a file that is completely known.
pub(super) fn goes_beyond(segments: &[Segment], new: &Segment) -> bool {
    let Some(whole) = segments.first() else { return true };
    match new.first {
        Some(first) => first + new.lines.len() > whole.lines.len() + 1,
        None => {
            let texts: Vec<&str> = new.lines.iter().map(|line| &*line.text).collect();
            find_texts(&whole.lines, &texts).is_none()
        }
    }
}

fn order(segment: &Segment) -> usize {
    segment.place().unwrap_or(usize::MAX)
}

/// Lines that identify a place: long enough, and occurring once (`None`: more than once).
fn telling_lines(lines: &[Line]) -> HashMap<Arc<str>, Option<usize>> {
    let mut places = HashMap::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        if is_telling(line) {
            places.entry(line.text.clone()).and_modify(|place| *place = None).or_insert(Some(index));
        }
    }
    places
}

/// Identifying lines that both have exactly once: index in the segment, index among the other lines.
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

/// The longest subsequence of pairs in which the second index rises; the first rises already.
///
/// Pairs that are out of order come from lines that were moved; keeping the longest rising part treats the fewest lines
/// as moved, as diff programs do.
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

/// Copies to lines that are shown again unchanged what was known of them: that the agent edited them, and that a view
/// shows them. `pairs` are the indexes of equal lines in old and new; equal lines around them are included.
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

/// The same, with lines matched by number.
fn inherit_by_number(new: &mut Segment, old: &Segment) {
    let (Some(old_first), Some(new_first)) = (old.first, new.first) else { return };
    let (start, end) = (old_first.max(new_first), (old_first + old.lines.len()).min(new_first + new.lines.len()));
    for number in start..end {
        let (from, to) = (&old.lines[number - old_first], &mut new.lines[number - new_first]);
        if from.text == to.text {
            to.edited = to.edited.max(from.edited);
            to.shown = to.shown.max(from.shown);
        }
    }
}

/// The same for a segment that replaces all others.
pub(super) fn inherit_all(new: &mut Segment, segments: &[Segment]) {
    let telling = telling_lines(&new.lines);
    for old in segments {
        let pairs = longest_rising(&common_lines(old, &telling));
        inherit(&mut new.lines, &old.lines, &pairs);
    }
}

/// The smallest share of common lines, among the identifying lines between the first and the last common one, for which
/// the whole range counts as another version of the same place. Below it, the common lines are a coincidence.
const LEAST_SHARED: f64 = 0.5;

/// Removes from a segment the lines that another one has too; `pairs` are the indexes of equal lines in both.
fn without_duplicates(segment: Segment, other: &Segment, pairs: &[(usize, usize)]) -> Vec<Segment> {
    let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else { return without_guessed(segment, other) };
    let is_same = |from: usize, to: usize| match (segment.lines.get(from), other.lines.get(to)) {
        (Some(from), Some(to)) => from.text == to.text,
        _ => false,
    };
    let mut start = 0;
    while start < first.0.min(first.1) && is_same(first.0 - start - 1, first.1 - start - 1) {
        start += 1;
    }
    let mut end = 1;
    while is_same(last.0 + end, last.1 + end) {
        end += 1;
    }
    let range = first.0 - start..last.0 + end;
    let tells = segment.lines[range.clone()].iter().filter(|line| is_telling(line)).count();
    if (pairs.len() as f64) < LEAST_SHARED * tells as f64 {
        return vec![segment];
    }
    without(segment, range)
}

/// Removes from a segment whose place is not certain the lines whose guessed numbers another segment has.
fn without_guessed(segment: Segment, other: &Segment) -> Vec<Segment> {
    let (Some(guess), Some(first)) = (segment.guess, other.first) else { return vec![segment] };
    if segment.lines.iter().any(Line::is_placed) {
        return vec![segment];
    }
    let start = first.max(guess) - guess;
    let end = (first + other.lines.len()).max(guess) - guess;
    let len = segment.lines.len();
    without(segment, start.min(len)..end.min(len))
}

/// Removes a range of lines from a segment, which may split it.
fn without(segment: Segment, range: Range<usize>) -> Vec<Segment> {
    if range.is_empty() {
        return vec![segment];
    }
    let Segment { first, mut lines, guess, is_hit } = segment;
    let rest = lines.split_off(range.end);
    lines.truncate(range.start);
    let later = |place: Option<usize>| place.map(|place| place + range.end);
    let rest = Segment { first: later(first), lines: rest, guess: later(guess), is_hit };
    let head = Segment { first, lines, guess, is_hit };
    [head, rest].into_iter().filter(|segment| !segment.lines.is_empty()).collect()
}

/// Removes from a segment the lines at the numbers of another.
fn without_range(old: Segment, new: &Segment) -> Vec<Segment> {
    let (Some(old_first), Some(new_first)) = (old.first, new.first) else { return vec![old] };
    if !meets(&old, new) {
        return vec![old];
    }
    let len = old.lines.len();
    let start = new_first.saturating_sub(old_first);
    let end = (new_first + new.lines.len()).saturating_sub(old_first).min(len);
    without(old, start..end)
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
        let after = kept.remove(index);
        new.is_hit &= after.is_hit;
        new.lines.extend(after.lines);
    }
}

/// Marks lines as seen again if they are known at their numbers; returns whether they are.
pub(super) fn touch(segments: &mut [Segment], now: Now, block: &Passage) -> bool {
    for segment in segments {
        let Some(start) = segment.first.and_then(|first| block.first?.checked_sub(first)) else { continue };
        let Some(lines) = segment.lines.get_mut(start..start + block.lines.len()) else { continue };
        if !lines.iter().zip(&block.lines).all(|(line, text)| *line.text == **text) {
            continue;
        }
        for line in lines {
            (line.seen, line.known, line.certain_at, line.is_computed) = (now.at, Known::Placed, now.count, false);
        }
        return true;
    }
    false
}

/// How often a text is in a segment: 0, 1, or 2 for more. Only a single occurrence says where an edit was made.
pub(super) fn occurrences(segment: &Segment, old: &str) -> usize {
    let Some(longest) = old.split('\n').max_by_key(|line| line.len()) else { return 0 };
    if !segment.lines.iter().any(|line| line.text.contains(longest)) {
        return 0;
    }
    let text = join_lines(&segment.lines) + "\n";
    let Some(first) = text.find(old) else { return 0 };
    let next = first + text[first..].chars().next().map_or(1, char::len_utf8);
    1 + usize::from(text[next..].contains(old))
}

/// A segment in which a piece was replaced.
pub(super) struct SplicedSegment {
    pub(super) head: Segment,
    /// What follows, if it is not certain how both parts are joined.
    pub(super) tail: Option<Segment>,
    /// The first changed line.
    pub(super) line: usize,
    /// Whether the changed lines were sure, so that their place is.
    pub(super) is_sure: bool,
}

/// Replaces the only occurrence of a text in a segment.
///
/// Some tools also remove the line feed after a removed text (`takes_feed`). It is not known whether this one did, so
/// the line that depends on it is left out and the rest becomes a separate segment without numbers.
pub(super) fn replace_once(mut segment: Segment, now: Now, old: &str, new: &str, takes_feed: bool) -> SplicedSegment {
    let text = join_lines(&segment.lines) + "\n";
    let Some(start) = text.find(old) else {
        return SplicedSegment { head: segment, tail: None, line: 0, is_sure: false };
    };
    let range = start..start + old.len();
    let line = text[..start].matches('\n').count();
    let last = (line + old.matches('\n').count()).min(segment.lines.len() - 1);
    let is_sure = segment.lines[line..=last].iter().all(Line::is_placed);
    if !(takes_feed && text[range.end..].starts_with('\n')) {
        replace_range(&mut segment, now, &text, range, new);
        return SplicedSegment { head: segment, tail: None, line, is_sure };
    }
    let begins_line = start == 0 || text[..start].ends_with('\n');
    // The rest of the first line may have been joined with the line after the last.
    let after = (last + if begins_line { 1 } else { 2 }).min(segment.lines.len());
    let rest = segment.lines.split_off(after);
    segment.lines.truncate(line);
    let guess = segment.place().map(|first| first + line);
    let tail = Segment { first: None, guess, lines: rest, is_hit: segment.is_hit };
    SplicedSegment { head: segment, tail: Some(tail), line, is_sure }
}

/// Replaces every occurrence of a text in a segment.
pub(super) fn replace_all(segment: &mut Segment, now: Now, old: &str, new: &str) {
    let mut from = 0;
    loop {
        let text = join_lines(&segment.lines) + "\n";
        let Some(start) = text.get(from..).and_then(|rest| rest.find(old)).map(|found| from + found) else { return };
        let is_last = start + old.len() == text.len();
        replace_range(segment, now, &text, start..start + old.len(), new);
        from = start + new.len();
        // The last line feed is not a part of the lines, and would be found again.
        if segment.lines.is_empty() || is_last {
            return;
        }
    }
}

fn replace_range(segment: &mut Segment, now: Now, text: &str, range: Range<usize>, new: &str) {
    let before = segment.lines.len();
    let takes_end = range.end == text.len();
    let first = text[..range.start].matches('\n').count();
    let last = (first + text[range.clone()].matches('\n').count()).min(before - 1);
    let line_start = text[..range.start].rfind('\n').map_or(0, |found| found + 1);
    let line_end = text[range.end..].find('\n').map_or(text.len(), |found| range.end + found);
    let whole = [&text[line_start..range.start], new, &text[range.end..line_end]].concat();
    let is_closed = takes_end && (whole.is_empty() || whole.ends_with('\n'));
    let span = whole.matches('\n').count() as u32 + 1;
    let mut lines: Vec<Line> = whole.split('\n').map(|text| Line::new(text, now, now.at, span)).collect();
    let touched = &segment.lines[first..=last];
    // The new lines contain parts of the old ones, so they are only as certain as those were.
    let certain_at = touched.iter().map(|line| line.certain_at).min().unwrap_or(now.count);
    let known = touched.iter().map(|line| line.known).min().unwrap_or_default().min(Known::Placed);
    // What is put into a line that may be a part of one makes a line that the file may not have.
    let is_inside = range.start != line_start || range.end != line_end;
    let known = if is_inside && known == Known::Loose { Known::Changed } else { known };
    for line in &mut lines {
        (line.certain_at, line.known) = (certain_at, known);
    }
    // What is joined with the line before it may have been joined with another one, which was put between them meanwhile.
    let joins = range.start != line_start && text[range].starts_with('\n') && !new.starts_with('\n');
    if let (true, Some(line)) = (joins, lines.first_mut()) {
        line.known = Known::Changed;
    }
    if is_closed {
        lines.pop();
    } else if let (true, Some(last)) = (takes_end, lines.last_mut()) {
        // The replacement ends within a line whose rest is not known.
        last.known = Known::Loose;
    }
    segment.lines.splice(first..=last, lines);
}

/// Where the old lines of a hunk are in a segment that begins with the file: the first place from a line on, after the
/// line that the hunk names. Returns a place only for an exact match with no uncertain line before it: an uncertain
/// line could hide an earlier match, which the tool would have used.
pub(super) fn find_first(segment: &Segment, hunk: &Hunk, from: usize) -> Option<usize> {
    let start = match &hunk.after {
        Some(after) => {
            let lines = segment.lines.get(from..)?;
            from + lines.iter().position(|line| *line.text == **after)? + 1
        }
        None => from,
    };
    let place = start + find_exactly(segment.lines.get(start..)?, &hunk.old)?;
    segment.lines[..place + hunk.old.len()].iter().all(Line::is_placed).then_some(place)
}

/// Where the old lines of a hunk are, given the number of the first: only exactly there, and if it is certain.
pub(super) fn find_at(segment: &Segment, hunk: &Hunk, first: usize) -> Option<usize> {
    let place = first.checked_sub(1)?;
    let lines = segment.lines.get(place..place.checked_add(hunk.old.len())?)?;
    let is_it = lines.iter().zip(&hunk.old).all(|(line, text)| *line.text == **text && line.is_placed());
    is_it.then_some(place)
}

/// Replaces the lines of a hunk that begin at a place.
pub(super) fn replace_lines(segment: &mut Segment, now: Now, hunk: &Hunk, start: usize) {
    let old: Vec<Line> = segment.lines[start..start + hunk.old.len()].to_vec();
    let mut context = old.iter();
    let span = hunk.new.len() as u32;
    let known = old.iter().map(|line| line.known).min().unwrap_or_default().min(Known::Placed);
    let one = |(text, added): (&String, &bool)| {
        let kept = if *added { None } else { context.find(|line| *line.text == **text).cloned() };
        let line = kept.unwrap_or_else(|| Line::new(text, now, now.at, span));
        Line { seen: now.at, span, known, certain_at: now.count, ..line }
    };
    let lines: Vec<Line> = hunk.new.iter().zip(&hunk.added).map(one).collect();
    segment.lines.splice(start..start + old.len(), lines);
}

fn find_exactly(lines: &[Line], wanted: &[String]) -> Option<usize> {
    let texts: Vec<&str> = wanted.iter().map(String::as_str).collect();
    find_texts(lines, &texts)
}

/// Where consecutive lines are.
fn find_texts(lines: &[Line], wanted: &[&str]) -> Option<usize> {
    let mut windows = lines.windows(wanted.len().max(1));
    windows.position(|window| window.iter().zip(wanted).all(|(line, text)| *line.text == **text))
}

/// Where consecutive lines are: exactly, or up to blanks at their ends.
pub(super) fn find_lines(lines: &[Line], wanted: &[String]) -> Option<usize> {
    find_exactly(lines, wanted).or_else(|| {
        let mut windows = lines.windows(wanted.len().max(1));
        let is_like = |(line, text): (&Line, &String)| line.text.trim_end() == text.trim_end();
        windows.position(|window| window.iter().zip(wanted).all(is_like))
    })
}

/// The places where consecutive lines are, up to blanks at both ends: tools that patch accept these too.
fn places_like(lines: &[Line], wanted: &[String]) -> Vec<usize> {
    let is_like = |(line, text): (&Line, &String)| line.text.trim() == text.trim();
    let windows = lines.windows(wanted.len().max(1)).enumerate();
    windows.filter(|(_, window)| window.iter().zip(wanted).all(is_like)).map(|(place, _)| place).collect()
}

/// How often consecutive lines are among others, up to blanks at both ends.
pub(super) fn count_like(lines: &[Line], wanted: &[String]) -> usize {
    places_like(lines, wanted).len()
}

/// Marks lines as changed that equal the old lines of a hunk, at every place.
pub(super) fn mark_run(segment: &mut Segment, old: &[String]) {
    for place in places_like(&segment.lines, old) {
        segment.lines[place..place + old.len()].iter_mut().for_each(|line| line.known = Known::Changed);
    }
}

/// Removes known lines that were changed at a place that is only partly known.
pub(super) fn forget(segments: &mut Vec<Segment>, old: &[&str]) {
    let gone: HashSet<&str> = old.iter().copied().filter(|line| line.trim().len() >= LEAST_TELLING_BYTES).collect();
    if gone.is_empty() {
        return;
    }
    let mut left = Vec::with_capacity(segments.len());
    for segment in segments.drain(..) {
        let hits = segment.lines.iter().filter(|line| gone.contains(&*line.text)).count();
        // A few common lines are a coincidence; at least half of them, close together, are the changed place.
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
        left.extend(without(segment, first..last + 1));
    }
    *segments = left;
}

/// Marks the lines of a segment as changed that may be part of a changed text that extends into unknown lines.
pub(super) fn mark_edges(segment: &mut Segment, old: &[&str]) {
    // Next to a line whose place is not certain anything may follow, just as at the ends of the segment.
    for run in segment.lines.chunk_by_mut(|line, next| line.is_placed() == next.is_placed()) {
        let (start, end) = edges(run, old);
        let len = run.len();
        for (index, line) in run.iter_mut().enumerate() {
            if index < start || index >= len - end {
                line.known = Known::Changed;
            }
        }
    }
}

/// How many lines at the start and at the end of a run may be the end and the start of a text.
fn edges(run: &[Line], old: &[&str]) -> (usize, usize) {
    let len = run.len();
    // A text may begin and end within a line.
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

impl Segment {
    /// The segment before and after a line number, if it has lines on both sides.
    pub(super) fn split(self, after: usize) -> Vec<Segment> {
        let Some(first) = self.first else { return vec![self] };
        let place = (after + 1).saturating_sub(first);
        if place == 0 || place >= self.lines.len() {
            return vec![self];
        }
        let Segment { first, mut lines, guess, is_hit } = self;
        let rest = lines.split_off(place);
        let later = first.map(|first| first + place);
        vec![Segment { first, lines, guess, is_hit }, Segment { first: later, lines: rest, guess: None, is_hit }]
    }
}
