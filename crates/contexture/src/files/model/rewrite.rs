//! Changes that a command makes to every line of a file, computed.

use super::{FileState, Line, Trust};
use crate::files::observation::LineChange;

impl FileState {
    /// Does to the known lines what a command did to all; what cannot be computed is unsure.
    pub(super) fn rewrite(&mut self, at: u32, changes: &[LineChange], by: &str) {
        self.mark_edited(at);
        let by_number = changes.iter().any(|change| match change {
            LineChange::Substitute { lines, .. } => lines.is_some(),
            LineChange::Delete { .. } => true,
            LineChange::DeleteMatching { .. } => false,
        });
        for index in 0..self.segments.len() {
            let first = self.segments[index].first;
            if by_number && first.is_none() {
                self.segments[index].lines.iter_mut().for_each(|line| line.trust = Trust::Unsure);
                continue;
            }
            let lines = std::mem::take(&mut self.segments[index].lines);
            let numbered = lines.into_iter().enumerate().map(|(line, known)| (first.map(|first| first + line), known));
            self.segments[index].lines =
                numbered.filter_map(|(number, line)| rewritten(line, number, at, changes)).collect();
            self.segments[index].first = first.map(|first| first - removed_before(changes, first));
        }
        let removes_unseen = changes.iter().any(|change| matches!(change, LineChange::DeleteMatching { .. }));
        if removes_unseen && !self.whole {
            self.distrust_numbers(None);
        }
        self.segments.retain(|segment| !segment.lines.is_empty() || self.whole);
        self.settle(at, by);
    }
}

/// A line after all changes, unless they remove it.
fn rewritten(line: Line, number: Option<usize>, at: u32, changes: &[LineChange]) -> Option<Line> {
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
    let trust = if line.is_sure() { Trust::Computed } else { Trust::Unsure };
    Some(Line { trust, ..Line::new(&text, at, at, 1) })
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
