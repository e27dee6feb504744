//! Places in a text where nothing is a reference: code, links, URLs and HTML tags.
//!
//! This parses as much of Markdown as is needed to find these, in one pass and in time proportional to the text. When
//! in doubt a place is shielded: a reference that was missed can be written again, but a snippet of code that was
//! changed is wrong.

use std::collections::HashSet;
use std::ops::Range;

/// How far ahead the end of a link or tag is searched for.
const MAX_MARKUP_BYTES: usize = 4096;

/// The shielded places of a text.
pub(super) struct Shield {
    /// Sorted, not touching each other.
    spans: Vec<Range<usize>>,
}

impl Shield {
    /// Finds the shielded places of a text.
    pub(super) fn over(text: &str) -> Self {
        let mut blocks = MarkdownBlocks::default();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            blocks.take_line(line, at..at + line.len());
            at += line.len();
        }
        blocks.end_paragraph();
        let mut spans = blocks.code;
        for paragraph in blocks.paragraphs {
            Inline::new(text, paragraph).scan(&mut spans);
        }
        Self { spans: merge(spans) }
    }

    /// Whether any of these bytes is shielded.
    pub(super) fn touches(&self, range: Range<usize>) -> bool {
        let next = self.spans.partition_point(|span| span.end <= range.start);
        self.spans.get(next).is_some_and(|span| span.start < range.end)
    }
}

fn merge(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_unstable_by_key(|span| span.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

/// Sorts lines into code and paragraphs.
#[derive(Default)]
struct MarkdownBlocks {
    code: Vec<Range<usize>>,
    paragraphs: Vec<Range<usize>>,
    paragraph: Option<Range<usize>>,
    fence: Option<CodeFence>,
    /// Whether the previous line belongs to a paragraph, so that indentation has no meaning.
    mid_paragraph: bool,
    /// Whether the line is in a list, where indentation means that it belongs to an item, not that it is code.
    in_list: bool,
}

struct CodeFence {
    mark: u8,
    length: usize,
    quotes: usize,
}

impl MarkdownBlocks {
    fn take_line(&mut self, line: &str, range: Range<usize>) {
        let (quotes, content) = strip_quotes(line);
        if let Some(fence) = &self.fence {
            // A fence in a quotation ends with the quotation.
            if quotes >= fence.quotes {
                if fence.is_closed_by(content) {
                    self.fence = None;
                }
                self.code.push(range);
                return;
            }
            self.fence = None;
        }
        if content.trim().is_empty() {
            self.end_paragraph();
            self.mid_paragraph = false;
            return;
        }
        let (is_item, content_of_item) = strip_list_marker(content);
        if let Some(fence) = CodeFence::opened_by(content_of_item, quotes) {
            self.end_paragraph();
            self.fence = Some(fence);
            self.mid_paragraph = false;
            self.code.push(range);
            return;
        }
        let indented = content.starts_with("    ") || content.starts_with('\t');
        if indented && !self.mid_paragraph && !self.in_list && !is_item {
            self.code.push(range);
            return;
        }
        self.mid_paragraph = true;
        self.in_list = is_item || self.in_list && content.starts_with([' ', '\t']);
        match &mut self.paragraph {
            Some(paragraph) => paragraph.end = range.end,
            None => self.paragraph = Some(range),
        }
    }

    fn end_paragraph(&mut self) {
        self.paragraphs.extend(self.paragraph.take());
    }
}

impl CodeFence {
    fn opened_by(content: &str, quotes: usize) -> Option<CodeFence> {
        let content = content.trim_start();
        let mark = *content.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
        let length = run_length(content.as_bytes(), mark);
        let is_span = mark == b'`' && content[length..].contains('`');
        (length >= 3 && !is_span).then_some(CodeFence { mark, length, quotes })
    }

    fn is_closed_by(&self, content: &str) -> bool {
        let content = content.trim();
        let length = run_length(content.as_bytes(), self.mark);
        length >= self.length && length == content.len()
    }
}

fn run_length(bytes: &[u8], mark: u8) -> usize {
    bytes.iter().take_while(|byte| **byte == mark).count()
}

/// How many quotation marks a line begins with, and what follows them.
fn strip_quotes(line: &str) -> (usize, &str) {
    let (mut quotes, mut rest) = (0, line);
    while let Some(after) = rest.trim_start_matches(' ').strip_prefix('>') {
        quotes += 1;
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    (quotes, rest)
}

/// Whether a line begins a list item, and the item's own text.
fn strip_list_marker(content: &str) -> (bool, &str) {
    let trimmed = content.trim_start();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let marker = match trimmed.as_bytes().get(digits) {
        Some(b'-' | b'*' | b'+') if digits == 0 => 1,
        Some(b'.' | b')') if digits > 0 => digits + 1,
        _ => return (false, content),
    };
    match trimmed[marker..].starts_with([' ', '\t']) {
        true => (true, &trimmed[marker..]),
        false => (false, content),
    }
}

/// Scans one paragraph.
struct Inline<'t> {
    bytes: &'t [u8],
    at: usize,
    end: usize,
    /// Square brackets that are open, by position.
    brackets: Vec<usize>,
    /// Lengths of backtick runs for which no end was found after the current position.
    unclosed: HashSet<usize>,
    /// Where the last URL ends.
    url_end: usize,
}

impl<'t> Inline<'t> {
    fn new(text: &'t str, paragraph: Range<usize>) -> Self {
        Self {
            bytes: &text.as_bytes()[..paragraph.end],
            at: paragraph.start,
            end: paragraph.end,
            brackets: Vec::new(),
            unclosed: HashSet::new(),
            url_end: 0,
        }
    }

    fn scan(mut self, spans: &mut Vec<Range<usize>>) {
        while self.at < self.end {
            let start = self.at;
            let span = match self.bytes[self.at] {
                b'\\' => {
                    self.at += 2;
                    continue;
                }
                b'`' => self.code_span(),
                b'<' => self.tag(),
                b'[' => {
                    self.brackets.push(start);
                    None
                }
                b']' => self.brackets.pop().and_then(|open| self.link(open)),
                b':' => self.url(),
                b'w' | b'W' => self.bare_url(),
                _ => None,
            };
            // Code and tags were skipped as a whole; otherwise continue with the next byte.
            self.at = self.at.max(start + 1);
            spans.extend(span);
        }
    }

    fn code_span(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let length = run_length(&self.bytes[start..], b'`');
        self.at += length;
        if self.unclosed.contains(&length) {
            return None;
        }
        let mut at = self.at;
        while at < self.end {
            let run = run_length(&self.bytes[at..], b'`');
            if run == length {
                self.at = at + run;
                return Some(start..self.at);
            }
            at += run.max(1);
        }
        self.unclosed.insert(length);
        None
    }

    /// `<a href="…">`, `</a>`, `<!-- … -->`, `<https://…>`.
    fn tag(&mut self) -> Option<Range<usize>> {
        let next = self.bytes.get(self.at + 1)?;
        if !next.is_ascii_alphabetic() && !matches!(next, b'/' | b'!' | b'?') {
            return None;
        }
        let within = self.window(self.at + 1);
        let length = within.iter().position(|byte| matches!(byte, b'<' | b'>'))?;
        if within[length] == b'<' {
            return None;
        }
        let start = self.at;
        self.at += 1 + length + 1;
        Some(start..self.at)
    }

    /// Returns the link that ends after these brackets, if what follows them makes them one.
    fn link(&self, open: usize) -> Option<Range<usize>> {
        let after = self.at + 1;
        let end = match self.bytes.get(after)? {
            b'(' => after + self.balanced(after)?,
            b'[' => after + 1 + self.window(after + 1).iter().position(|byte| *byte == b']')? + 1,
            b':' if self.begins_line(open) => {
                after + self.bytes[after..self.end].iter().position(|byte| *byte == b'\n').unwrap_or(self.end - after)
            }
            _ => return None,
        };
        Some(open..end)
    }

    /// The length of the round brackets that begin at `start`.
    fn balanced(&self, start: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut escaped = false;
        for (length, byte) in self.window(start).iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'(' => depth += 1,
                b')' if depth == 1 => return Some(length + 1),
                b')' => depth -= 1,
                _ => {}
            }
        }
        None
    }

    fn begins_line(&self, at: usize) -> bool {
        let before = &self.bytes[..at];
        let line = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        before[line..].iter().all(|byte| matches!(byte, b' ' | b'>'))
    }

    /// `scheme://…`, from the scheme to the next white space.
    fn url(&mut self) -> Option<Range<usize>> {
        if self.at < self.url_end || !self.bytes[self.at..].starts_with(b"://") {
            return None;
        }
        let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let scheme = self.bytes[..self.at].iter().rev().take(32).take_while(|byte| is_scheme(byte)).count();
        (scheme > 0).then(|| self.mark_url(self.at - scheme))
    }

    /// `www.…`
    fn bare_url(&mut self) -> Option<Range<usize>> {
        let begins = self.at == 0 || !self.bytes[self.at - 1].is_ascii_alphanumeric();
        let matches = self.bytes.get(self.at..self.at + 4).is_some_and(|start| start.eq_ignore_ascii_case(b"www."));
        (begins && matches && self.at >= self.url_end).then(|| self.mark_url(self.at))
    }

    fn mark_url(&mut self, start: usize) -> Range<usize> {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'<' | b'>' | b'"' | b'`');
        let length = self.bytes[self.at..self.end].iter().position(ends).unwrap_or(self.end - self.at);
        self.url_end = self.at + length;
        start..self.url_end
    }

    fn window(&self, start: usize) -> &'t [u8] {
        let end = self.end.min(start.saturating_add(MAX_MARKUP_BYTES));
        self.bytes.get(start..end).unwrap_or_default()
    }
}
