//! Words in their styles: emphasis, code and links within a line.

use super::{CODE, DIM, Glyph, plain};

const BOLD: &str = "1";
const ITALIC: &str = "3";
const BOLD_ITALIC: &str = "1;3";
const STRUCK: &str = "9";
const LINK: &str = "4";

/// How far the end of an emphasis, of code or of a link is looked for.
const MAX_SPAN: usize = 1_000;

/// Text with emphasis, pieces of code and links. A mark without its partner is shown as it is.
pub(super) fn inline(text: &str) -> Vec<Glyph> {
    let chars: Vec<char> = text.chars().collect();
    let mut line = InlineLine { chars: &chars, at: 0, open: Vec::new(), glyphs: Vec::new() };
    while line.at < chars.len() {
        if !(line.escaped() || line.code() || line.link() || line.mark()) {
            line.push(chars[line.at]);
            line.at += 1;
        }
    }
    line.glyphs
}

/// A line that is read from its beginning to its end.
struct InlineLine<'a> {
    chars: &'a [char],
    at: usize,
    /// The marks that are open, innermost last.
    open: Vec<&'static str>,
    glyphs: Vec<Glyph>,
}

impl InlineLine<'_> {
    fn style(&self) -> &'static str {
        let is_open = |marks: &[&str]| self.open.iter().any(|mark| marks.contains(mark));
        match (is_open(&["***", "**", "__"]), is_open(&["***", "*", "_"])) {
            (true, true) => BOLD_ITALIC,
            (true, false) => BOLD,
            (false, true) => ITALIC,
            (false, false) if is_open(&["~~"]) => STRUCK,
            (false, false) => "",
        }
    }

    fn push(&mut self, character: char) {
        let style = self.style();
        self.glyphs.push((character, style));
    }

    /// What follows, as far as something is looked for in it.
    fn ahead(&self) -> &[char] {
        &self.chars[self.at..self.chars.len().min(self.at + MAX_SPAN)]
    }

    /// A sign that a backslash makes an ordinary one.
    fn escaped(&mut self) -> bool {
        let Some(sign) = self.chars.get(self.at + 1).copied() else { return false };
        let is_escaped = self.chars[self.at] == '\\' && "\\`*_{}[]()#+-.!~|<>".contains(sign);
        if is_escaped {
            self.push(sign);
            self.at += 2;
        }
        is_escaped
    }

    /// A piece of code, or ticks without an end.
    fn code(&mut self) -> bool {
        let ahead = self.ahead();
        let ticks = ahead.iter().take_while(|sign| **sign == '`').count();
        if ticks == 0 {
            return false;
        }
        let (mark, after) = ahead.split_at(ticks);
        match after.windows(ticks).position(|signs| signs == mark) {
            Some(end) => {
                let code: String = after[..end].iter().collect();
                self.glyphs.extend(plain(&code, CODE));
                self.at += end + 2 * ticks;
            }
            None => {
                (0..ticks).for_each(|_| self.push('`'));
                self.at += ticks;
            }
        }
        true
    }

    /// A link: its text, and where it leads to if that is neither its text nor a place in the same document.
    fn link(&mut self) -> bool {
        let ahead = self.ahead();
        if ahead.first() != Some(&'[') {
            return false;
        }
        let Some(end) = ahead.windows(2).position(|signs| signs == [']', '(']) else { return false };
        let target = &ahead[end + 2..];
        let Some(length) = target.iter().position(|sign| *sign == ')' || sign.is_whitespace()) else { return false };
        let is_address = target[..length].iter().any(|sign| "/.:#".contains(*sign));
        if target[length] != ')' || !is_address || ahead[1..end].contains(&'[') {
            return false;
        }
        let (text, target): (String, String) = (ahead[1..end].iter().collect(), target[..length].iter().collect());
        self.glyphs.extend(plain(&text, LINK));
        if text.is_empty() {
            self.glyphs.extend(plain(&target, LINK));
        } else if text != target && !target.starts_with('#') {
            self.glyphs.extend(plain(&format!(" ({target})"), DIM));
        }
        self.at += end + 3 + length;
        true
    }

    /// The beginning or the end of an emphasis.
    fn mark(&mut self) -> bool {
        let is_here = |mark: &&str| mark.chars().eq(self.ahead().iter().copied().take(mark.len()));
        let Some(mark) = ["***", "**", "__", "~~", "*", "_"].into_iter().find(is_here) else { return false };
        if self.open.last() == Some(&mark) && self.can_end(self.at, mark) {
            self.open.pop();
        } else if !self.open.contains(&mark) && self.can_begin(mark) && self.is_ended(mark) {
            self.open.push(mark);
        } else {
            return false;
        }
        self.at += mark.len();
        true
    }

    /// Whether a mark here is before a word: products and names with underscores are left alone.
    fn can_begin(&self, mark: &str) -> bool {
        let before = self.at.checked_sub(1).map(|at| self.chars[at]);
        let after = self.chars.get(self.at + mark.len());
        after.is_some_and(|sign| !sign.is_whitespace()) && before.is_none_or(|sign| !sign.is_alphanumeric())
    }

    /// Whether a mark there is after a word. `__init__.py` and `__init__()` are names.
    fn can_end(&self, at: usize, mark: &str) -> bool {
        let after = &self.chars[at + mark.len()..];
        let is_name = match after {
            ['(', ..] => mark.starts_with('_'),
            ['.', next, ..] => mark.starts_with('_') && next.is_alphanumeric(),
            [next, ..] => next.is_alphanumeric() || mark.starts_with(*next),
            [] => false,
        };
        !is_name && at.checked_sub(1).is_some_and(|before| !self.chars[before].is_whitespace())
    }

    /// Whether a mark that begins here ends somewhere.
    fn is_ended(&self, mark: &str) -> bool {
        let first = self.at + mark.len() + 1;
        let last = self.chars.len().min(self.at + MAX_SPAN);
        let is_mark = |at: &usize| mark.chars().eq(self.chars[*at..].iter().copied().take(mark.len()));
        (first..last).filter(is_mark).any(|at| self.can_end(at, mark))
    }
}
