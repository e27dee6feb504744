//! Computes changes that a command makes to every line of a file.

use super::state::End;
use super::{FileState, Known, Line, Now};
use crate::observation::LineChange;

impl FileState {
    /// Applies to the known lines what a command did to all lines; what cannot be computed is marked as changed.
    pub(super) fn rewrite(&mut self, now: Now, changes: &[LineChange], by: &str) {
        self.deleted = false;
        self.mark_edited(now.at);
        let by_number = changes.iter().any(|change| match change {
            LineChange::Substitute { lines, .. } => lines.is_some(),
            LineChange::Delete { .. } => true,
            LineChange::DeleteMatching { .. } => false,
        });
        let removes_unseen = changes.iter().any(|change| matches!(change, LineChange::DeleteMatching { .. }));
        let is_whole = self.whole;
        for segment in &mut self.segments {
            let first = segment.first;
            if by_number && first.is_none() {
                segment.lines.iter_mut().for_each(|line| line.known = Known::Changed);
                continue;
            }
            let lines = std::mem::take(&mut segment.lines);
            let numbered = lines.into_iter().enumerate().map(|(line, known)| (first.map(|first| first + line), known));
            segment.lines = numbered.filter_map(|(number, line)| rewritten(line, number, now, changes)).collect();
            segment.first = first.map(|first| first - removed_before(changes, first));
            // A line whose place is not certain may or may not have been removed.
            if removes_unseen && segment.lines.iter().any(|line| !line.is_placed()) {
                segment.distrust();
            }
        }
        if removes_unseen && !is_whole {
            self.distrust_numbers(self.start());
        }
        self.segments.retain(|segment| !segment.lines.is_empty() || is_whole);
        // Without the last line the file ends with a line feed, and some programs add a missing one.
        if self.end == End::Open {
            self.end = End::Unknown;
        }
        self.settle(now, by);
    }
}

/// Returns a line after all changes, unless they remove it.
fn rewritten(line: Line, number: Option<usize>, now: Now, changes: &[LineChange]) -> Option<Line> {
    let is_in = |first: usize, last: usize| number.is_some_and(|number| (first..=last).contains(&number));
    let mut text: Option<String> = None;
    for change in changes {
        let now = text.as_deref().unwrap_or(&line.text);
        match change {
            LineChange::Delete { first, last } if is_in(*first, *last) => return None,
            LineChange::DeleteMatching { text } if now.contains(text.as_str()) => return None,
            LineChange::Substitute { lines, old, new, all }
                if lines.is_none_or(|(first, last)| is_in(first, last)) && now.contains(old.as_str()) =>
            {
                text = Some(if *all { now.replace(old, new) } else { now.replacen(old, new, 1) });
            }
            _ => {}
        }
    }
    let Some(text) = text.filter(|text| **text != *line.text) else { return Some(line) };
    let (known, certain_at) = (line.known.min(Known::Placed), line.certain_at);
    Some(Line { known, certain_at, is_computed: true, ..Line::new(&text, now, now.at, 1) })
}

/// How many lines before a line are removed by their numbers.
fn removed_before(changes: &[LineChange], line: usize) -> usize {
    let ranges = changes.iter().filter_map(|change| match change {
        LineChange::Delete { first, last } => Some((*first, *last)),
        _ => None,
    });
    let mut ranges: Vec<(usize, usize)> = ranges.collect();
    ranges.sort_unstable();
    let (mut removed, mut next) = (0, 1);
    for (first, last) in ranges {
        let (start, end) = (first.max(next), (last + 1).min(line));
        removed += end.saturating_sub(start);
        next = next.max(last + 1);
    }
    removed
}
