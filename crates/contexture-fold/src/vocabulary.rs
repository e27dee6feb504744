//! Words as numbers.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use contexture_text::words::words;

/// Lengths of words that can distinguish one piece of code from another.
const WORD_BYTES: std::ops::Range<usize> = 5..60;

/// Returns the words of a text that can distinguish one piece of code from another.
pub(super) fn telling_words(text: &str) -> impl Iterator<Item = &str> {
    words(text).filter(|word| WORD_BYTES.contains(&word.len()) && !word.starts_with(|c: char| c.is_ascii_digit()))
}

/// Numbers words in the order in which they are met.
///
/// A fold looks up every word of every known line, so the hash is a fast one. Words chosen to collide would only make
/// one fold slow, and they would have to come from the user or the model.
#[derive(Default)]
pub(super) struct WordNumbers {
    numbers: HashMap<Box<str>, u32, FixedState>,
    /// By number: the round of [`of_lines`](Self::of_lines) that last met the word.
    met: Vec<u64>,
    rounds: u64,
}

impl WordNumbers {
    /// Returns the number of a word, if it has one.
    pub(super) fn get(&self, word: &str) -> Option<u32> {
        self.numbers.get(word).copied()
    }

    /// Returns the number of a word, adding it if it is new.
    pub(super) fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.get(word) {
            return number;
        }
        let next = u32::try_from(self.numbers.len()).expect("nobody says four milliards of words");
        self.numbers.insert(word.into(), next);
        self.met.push(0);
        next
    }

    /// The numbers of the words of some lines, each once, in the order of the text.
    ///
    /// They are not sorted by number: numbers depend on what was met before, so that order would change after a
    /// restart.
    pub(super) fn of_lines<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) -> Arc<[u32]> {
        self.rounds += 1;
        let mut found = Vec::new();
        for word in lines.into_iter().flat_map(telling_words) {
            let number = self.number(word);
            if std::mem::replace(&mut self.met[number as usize], self.rounds) < self.rounds {
                found.push(number);
            }
        }
        found.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_lines_stand_once_in_the_order_of_the_text() {
        let mut vocabulary = WordNumbers::default();
        assert_eq!(vocabulary.number("third"), 0);
        assert_eq!(*vocabulary.of_lines(["first second first", "third second"]), [1, 2, 0]);
        assert_eq!((vocabulary.number("third"), vocabulary.get("fourth")), (0, None));
    }
}
