//! Classes of characters, as far as splitting needs them.

use regex_syntax::hir::{Class as ClassSet, HirKind};

/// The class of a character. Each character has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// An upper-case or title-case letter.
    Upper,
    /// A lower-case letter.
    Lower,
    /// A letter without case, or a modifier letter.
    Caseless,
    /// A mark that combines with a letter.
    Mark,
    /// A digit or any other number.
    Number,
    /// Carriage return or line feed.
    Newline,
    /// Any other white space.
    Space,
    /// Punctuation, symbols, and everything else.
    Other,
}

/// The class of every character.
pub(super) struct Classes(Box<[Class]>);

impl Classes {
    pub(super) fn new() -> Self {
        let mut classes = vec![Class::Other; char::MAX as usize + 1];
        let sets = [
            (r"[\p{Lu}\p{Lt}]", Class::Upper),
            (r"\p{Ll}", Class::Lower),
            (r"[\p{Lm}\p{Lo}]", Class::Caseless),
            (r"\p{M}", Class::Mark),
            (r"\p{N}", Class::Number),
            (r"\s", Class::Space),
            (r"[\r\n]", Class::Newline),
        ];
        for (set, class) in sets {
            for (first, last) in ranges(set) {
                classes[first as usize..=last as usize].fill(class);
            }
        }
        Self(classes.into())
    }

    /// The class and the length of the character that begins at `at`, or `None` at the end of the text.
    #[inline]
    pub(super) fn at(&self, text: &str, at: usize) -> Option<(Class, usize)> {
        let first = *text.as_bytes().get(at)?;
        if first.is_ascii() {
            return Some((self.0[first as usize], 1));
        }
        let character = text[at..].chars().next()?;
        Some((self.0[character as usize], character.len_utf8()))
    }
}

/// The ranges of characters in a set, written as in a regular expression.
///
/// They come from the tables that the regular expressions of `tiktoken` are compiled from, so that both always use the
/// same version of Unicode.
fn ranges(set: &str) -> Vec<(char, char)> {
    let parsed = regex_syntax::parse(set).expect("the sets are written in this file");
    match parsed.into_kind() {
        HirKind::Class(ClassSet::Unicode(class)) => class.iter().map(|range| (range.start(), range.end())).collect(),
        other => unreachable!("{set} is a set of characters, not {other:?}"),
    }
}
