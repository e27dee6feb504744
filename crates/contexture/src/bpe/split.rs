//! Splits text into pieces. Tokens never extend beyond a piece.
//!
//! The vocabulary comes with a regular expression whose matches, one after the other, are the pieces:
//!
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! \p{N}{1,3}
//!  ?[^\s\p{L}\p{N}]+[\r\n/]*
//! \s*[\r\n]+
//! \s+(?!\S)
//! \s+
//! ```
//!
//! Each line is a function here that does by hand what the expression does with backtracking. No piece depends on what
//! is before it, and what is after it matters only up to [`MAX_PIECE_BYTES`].

use contexture_core::tokens::floor_boundary;

use super::class::{Class, Classes};

/// The longest piece. A longer one is cut, so that neither splitting nor merging processes more at once.
pub(super) const MAX_PIECE_BYTES: usize = 1024;

/// Returns the end of the piece that begins at `start`, which must be before the end of the text.
pub(super) fn piece_end(classes: &Classes, text: &str, start: usize) -> usize {
    let window = &text[start..floor_boundary(text, start + MAX_PIECE_BYTES)];
    start + TextWindow { classes, text: window }.first_piece()
}

/// The text as far as the next piece can reach.
struct TextWindow<'a> {
    classes: &'a Classes,
    text: &'a str,
}

impl TextWindow<'_> {
    #[inline]
    fn class(&self, at: usize) -> Option<(Class, usize)> {
        self.classes.at(self.text, at)
    }

    fn first_piece(&self) -> usize {
        let Some((class, len)) = self.class(0) else { return 0 };
        match class {
            Class::Upper | Class::Lower | Class::Caseless => {
                let word = self.word(0);
                self.with_contraction(word.cased.or(word.upper).unwrap_or(len))
            }
            Class::Mark => {
                // A mark can lead a word like punctuation, or be its first letter.
                let end = self.word(len).cased.or_else(|| self.word(0).cased).unwrap_or(len);
                self.with_contraction(end)
            }
            Class::Number => self.number(),
            Class::Newline => self.white_space(),
            Class::Space | Class::Other => self.led_word(len).unwrap_or_else(|| match class {
                Class::Other => self.punctuation(0),
                _ => self.punctuation_behind_space().unwrap_or_else(|| self.white_space()),
            }),
        }
    }

    /// A word after one character that is neither letter nor number.
    fn led_word(&self, start: usize) -> Option<usize> {
        let word = self.word(start);
        word.cased.or(word.upper).map(|end| self.with_contraction(end))
    }

    /// The letters at `start`: upper-case first, then lower-case; letters without case and marks are both.
    fn word(&self, start: usize) -> WordEnd {
        let (mut at, mut last_caseless) = (start, None);
        loop {
            match self.class(at) {
                Some((Class::Upper, len)) => at += len,
                Some((Class::Caseless | Class::Mark, len)) => {
                    at += len;
                    last_caseless = Some(at);
                }
                Some((Class::Lower, _)) => return WordEnd { cased: Some(self.lower_end(at)), upper: None },
                _ => return WordEnd { cased: last_caseless, upper: (at > start).then_some(at) },
            }
        }
    }

    fn lower_end(&self, mut at: usize) -> usize {
        while let Some((Class::Lower | Class::Caseless | Class::Mark, len)) = self.class(at) {
            at += len;
        }
        at
    }

    /// The end of a word, or of the English contraction after it.
    fn with_contraction(&self, end: usize) -> usize {
        let Some(b'\'') = self.text.as_bytes().get(end) else { return end };
        let rest = &self.text.as_bytes()[end + 1..];
        let is = |suffix: &[u8]| rest.get(..suffix.len()).is_some_and(|start| start.eq_ignore_ascii_case(suffix));
        // Ignoring case, the long s is an s.
        let suffixes: [&[u8]; 8] = [b"s", b"t", b"re", b"ve", b"m", b"ll", b"d", "ſ".as_bytes()];
        let found = suffixes.into_iter().find(|suffix| is(suffix));
        found.map_or(end, |suffix| end + 1 + suffix.len())
    }

    fn number(&self) -> usize {
        let mut at = 0;
        for _ in 0..3 {
            let Some((Class::Number, len)) = self.class(at) else { break };
            at += len;
        }
        at
    }

    fn punctuation_behind_space(&self) -> Option<usize> {
        let is_led = self.text.starts_with(' ') && matches!(self.class(1), Some((Class::Other, _)));
        is_led.then(|| self.punctuation(1))
    }

    fn punctuation(&self, mut at: usize) -> usize {
        while let Some((Class::Other | Class::Mark, len)) = self.class(at) {
            at += len;
        }
        let tail = self.text.as_bytes()[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n' | b'/'));
        at + tail.count()
    }

    /// White space up to its last line break; without one, all of it except for the last character, which leads what
    /// follows.
    fn white_space(&self) -> usize {
        let (mut at, mut last_start, mut break_end) = (0, 0, None);
        while let Some((class @ (Class::Space | Class::Newline), len)) = self.class(at) {
            last_start = at;
            at += len;
            if class == Class::Newline {
                break_end = Some(at);
            }
        }
        match break_end {
            Some(end) => end,
            None if at == self.text.len() || last_start == 0 => at,
            None => last_start,
        }
    }
}

/// Where a word ends.
struct WordEnd {
    /// If it ends in letters that are lower-case or have no case.
    cased: Option<usize>,
    /// If it has no such letter: all upper-case.
    upper: Option<usize>,
}
