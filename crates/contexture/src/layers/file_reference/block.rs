//! The block that shows one file: heading, fence, text.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use contexture_core::tokens::{ceil_boundary, floor_boundary};
use contexture_core::window::{escape_tags, fence_for};

use crate::reference::LineRange;
use crate::reference::kinds::language;
use contexture_text::counts::Counts;
use contexture_text::fit::{Made, fit};
use contexture_text::one_line::one_line;

/// The share of an excerpt that is taken from the start of the file.
const HEAD_SHARE: f64 = 0.6;

/// How many bytes at each end of a text are counted to estimate the bytes per token.
const SAMPLE_BYTES: usize = 1024;

/// Excerpts aim this much below their limit, since the estimate can be too high.
const AIM: f64 = 0.96;

/// A file to be shown.
pub(super) struct ShownFile<'a> {
    pub(super) path: &'a str,
    pub(super) anchor: &'a str,
    pub(super) lines: &'a [LineRange],
    pub(super) text: &'a str,
    pub(super) line_count: u32,
}

impl ShownFile<'_> {
    /// The block with all of the requested text.
    pub(super) fn whole(&self) -> String {
        if self.text.is_empty() {
            return self.heading("") + "The file is empty.\n\n";
        }
        if self.lines.is_empty() {
            return self.fenced("", self.text);
        }
        let note = self.note();
        match self.selected() {
            Some(selected) => self.fenced(&note, &selected),
            None => self.heading(&note) + "There are no such lines.\n\n",
        }
    }

    /// The block with as much of the text as `tokens` allow: its head, a marker, and its tail. Also returns its tokens.
    ///
    /// `None` if too little fits.
    pub(super) fn excerpt(&self, tokens: u64, counts: &mut Counts<'_>) -> Option<(String, u64)> {
        let selected = if self.lines.is_empty() { Cow::Borrowed(self.text) } else { self.selected()?.into() };
        let note = if self.lines.is_empty() { String::new() } else { self.note() };
        let frame = counts.count(&self.cut(&note, &selected, 0));
        let fitting = tokens.checked_sub(frame)? as f64 * bytes_per_token(&selected, counts);
        let bytes = (fitting.min(selected.len() as f64) * AIM) as usize;
        let room = tokens - frame;
        let fitting = fit(room, bytes, |bytes| {
            let block = self.cut(&note, &selected, bytes);
            let count = counts.count(&block);
            Made { made: (block, count, bytes), bytes, tokens: count.saturating_sub(frame) }
        });
        fitting.filter(|(_, _, bytes)| *bytes > 0).map(|(block, count, _)| (block, count))
    }

    /// The block with `bytes` of the text from both ends, cut at line ends where there are any.
    fn cut(&self, note: &str, text: &str, bytes: usize) -> String {
        let head = (bytes as f64 * HEAD_SHARE) as usize;
        let (head, tail) = cut_ends(text, head, bytes - head);
        let mut body = String::with_capacity(bytes + 64);
        push_line(&mut body, &text[..head]);
        match self.lines.is_empty().then(|| self.lines_between(text, head..tail)).flatten() {
            Some(lines) => push_marker(&mut body, &lines),
            None => push_marker(&mut body, &format!("{} bytes", tail - head)),
        }
        push_line(&mut body, &text[tail..]);
        self.fenced(note, &body)
    }

    /// The lines that a cut leaves out, if it leaves out whole lines.
    fn lines_between(&self, text: &str, gap: Range<usize>) -> Option<String> {
        let whole = |at: usize| at == 0 || at == text.len() || text.as_bytes()[at - 1] == b'\n';
        if !whole(gap.start) || !whole(gap.end) {
            return None;
        }
        let newlines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
        let first = newlines(&text[..gap.start]) + 1;
        let last = self.line_count as usize - text[gap.end..].lines().count();
        Some(format!("lines {first}-{last} of {}", self.line_count))
    }

    fn fenced(&self, note: &str, body: &str) -> String {
        let (body, fence) = (escape_tags(body), fence_for(body));
        let mut block = self.heading(note);
        block.reserve(body.len() + 2 * fence.len() + 16);
        block.push_str(&fence);
        block.push_str(language(self.path));
        block.push('\n');
        push_line(&mut block, &body);
        block.push_str(&fence);
        block.push_str("\n\n");
        block
    }

    fn heading(&self, note: &str) -> String {
        format!("## `{}`{note} {{#{}}}\n\n", escape_tags(&one_line(self.path)), self.anchor)
    }

    /// The requested lines: ` (lines 10-20, 40 of 300)`.
    fn note(&self) -> String {
        let ranges = merged(self.lines).into_iter().map(|range| match range.first == range.last {
            true => range.first.to_string(),
            false => format!("{}-{}", range.first, range.last),
        });
        let ranges: Vec<String> = ranges.collect();
        let noun = if self.lines.len() == 1 && self.lines[0].first == self.lines[0].last { "line" } else { "lines" };
        format!(" ({noun} {} of {})", ranges.join(", "), self.line_count)
    }

    /// The requested lines, with a marker between separate ranges; `None` if there are none.
    fn selected(&self) -> Option<String> {
        let mut selected = String::new();
        let mut lines = (1..).zip(self.text.split_inclusive('\n'));
        let mut shown = 0;
        for range in merged(self.lines) {
            let mut wanted = lines.by_ref().skip_while(|(number, _)| *number < range.first).peekable();
            if wanted.peek().is_none() {
                break;
            }
            if shown > 0 {
                push_marker(&mut selected, &format!("lines {}-{}", shown + 1, range.first - 1));
            }
            // `take_while` would consume the line after the range.
            while let Some((number, line)) = wanted.next_if(|(number, _)| *number <= range.last) {
                selected.push_str(line);
                shown = number;
            }
        }
        (shown > 0).then_some(selected)
    }
}

/// Sorts ranges and merges those that touch.
fn merged(ranges: &[LineRange]) -> Vec<LineRange> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    let mut merged: Vec<LineRange> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.first <= last.last.saturating_add(1) => last.last = last.last.max(range.last),
            _ => merged.push(range),
        }
    }
    merged
}

/// Where the head ends and the tail begins, for the given lengths.
///
/// Cuts are at line ends, unless that would lose more than half of a part.
fn cut_ends(text: &str, head: usize, tail: usize) -> (usize, usize) {
    let head = floor_boundary(text, head);
    let tail = ceil_boundary(text, text.len() - tail.min(text.len() - head));
    let line_end = text[..head].rfind('\n').map_or(0, |newline| newline + 1);
    let line_start = text[tail..].find('\n').map_or(text.len(), |newline| tail + newline + 1);
    let head = if line_end * 2 > head { line_end } else { head };
    let tail = if (text.len() - line_start) * 2 > text.len() - tail { line_start } else { tail };
    (head, tail)
}

/// Estimates the bytes per token from both ends of the text.
fn bytes_per_token(text: &str, counts: &mut Counts<'_>) -> f64 {
    let head = &text[..floor_boundary(text, SAMPLE_BYTES)];
    let tail = &text[ceil_boundary(text, text.len().saturating_sub(SAMPLE_BYTES))..];
    let tokens = counts.count(head) + counts.count(tail);
    (head.len() + tail.len()) as f64 / tokens.max(1) as f64
}

fn push_line(into: &mut String, text: &str) {
    into.push_str(text);
    if !text.is_empty() && !text.ends_with('\n') {
        into.push('\n');
    }
}

fn push_marker(into: &mut String, what: &str) {
    if !into.is_empty() && !into.ends_with('\n') {
        into.push('\n');
    }
    writeln!(into, "[… {what} left out …]").expect("writing to a string cannot fail");
}
