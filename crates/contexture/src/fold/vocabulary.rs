//! The words of known lines as numbers, found once for each line.

use std::collections::HashMap;
use std::sync::Arc;

use super::word_hash::HashWords;
use super::words::words;

/// Numbers words, and remembers those of each line by where its text lies in memory.
///
/// A fold compares every known line with recent words; between two folds hardly any line is new.
#[derive(Default)]
pub(super) struct Vocabulary {
    numbers: Numbers,
    lines: HashMap<usize, KnownLine, HashWords>,
    /// How many lines there were when unused ones were last forgotten.
    used: usize,
}

type Numbers = HashMap<Box<str>, u32, HashWords>;

struct KnownLine {
    /// Held so that no other text can come to lie in its place.
    text: Arc<str>,
    words: Box<[u32]>,
}

impl Vocabulary {
    /// The number of a word, if it is known.
    pub(super) fn get(&self, word: &str) -> Option<u32> {
        self.numbers.get(word).copied()
    }

    /// The number of a word, which is known from now on.
    pub(super) fn number(&mut self, word: &str) -> u32 {
        number(&mut self.numbers, word)
    }

    /// The numbers of a line's words, in order.
    pub(super) fn line(&mut self, text: &Arc<str>) -> &[u32] {
        let numbers = &mut self.numbers;
        let line = self.lines.entry(text.as_ptr().addr()).or_insert_with(|| {
            let found = words(text).map(|word| number(numbers, word));
            KnownLine { text: text.clone(), words: found.collect() }
        });
        &line.words
    }

    /// Forgets lines that nobody else holds, once they may be as many as the others.
    pub(super) fn forget_unused(&mut self) {
        if self.lines.len() > 2 * self.used {
            self.lines.retain(|_, line| Arc::strong_count(&line.text) > 1);
            self.used = self.lines.len();
        }
    }
}

fn number(numbers: &mut Numbers, word: &str) -> u32 {
    if let Some(number) = numbers.get(word) {
        return *number;
    }
    let next = u32::try_from(numbers.len()).expect("nobody says four milliards of words");
    numbers.insert(word.into(), next);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_its_words_again_until_nobody_holds_it() {
        let mut vocabulary = Vocabulary::default();
        let (one, other): (Arc<str>, Arc<str>) = ("first second first".into(), "third second".into());
        assert_eq!(vocabulary.line(&one), [0, 1, 0]);
        assert_eq!(vocabulary.line(&other), [2, 1]);
        assert_eq!(vocabulary.line(&one), [0, 1, 0]);
        assert_eq!((vocabulary.number("third"), vocabulary.get("fourth")), (2, None));
        drop(other);
        vocabulary.forget_unused();
        assert_eq!(vocabulary.lines.len(), 1);
    }
}
