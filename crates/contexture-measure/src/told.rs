//! What the agent said in a recording, line by line, and the rare words that it drew on.
//!
//! A word is rare if at most five messages had it so far: names, paths, numbers. Those in the agent's next message that
//! occurred before are what it really used, wherever they came from.

use std::collections::{HashMap, HashSet};

use contexture::item::Role;
use contexture::transcript::Record;

use crate::record_text::{plain_text, whole_text};
use crate::said::lines;

/// A word in more messages than this is not rare.
const MAX_RARE_MESSAGES: u32 = 5;

/// The smallest number of bytes of a word that counts.
const MIN_WORD_BYTES: usize = 6;

/// What the agent said and used.
#[derive(Debug, Default)]
pub struct ToldTexts {
    lines: HashMap<String, usize>,
    words: HashMap<String, usize>,
    /// The number of lines that the agent said before each message, and the total at the end.
    said_before: Vec<usize>,
    /// The bytes of the lines before each line, and the total at the end.
    bytes_before: Vec<u64>,
    /// What each message shows if it is shown whole.
    shown: Vec<Marks>,
    /// The rare words of each message that occurred before it; only for those of the agent.
    used: Vec<Vec<usize>>,
}

/// The lines and words that a text has, each once.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Lines that the agent said at some time.
    pub lines: Vec<usize>,
    /// Words of the recording.
    pub words: Vec<usize>,
}

impl ToldTexts {
    /// Collects the lines and words of a recording.
    pub fn new(records: &[Record]) -> Self {
        let mut told = Self { bytes_before: vec![0], ..Self::default() };
        let mut messages_with: Vec<u32> = Vec::new();
        for record in records {
            told.said_before.push(told.lines.len());
            let own = told.number_words(&whole_text(record));
            messages_with.resize(told.words.len(), 0);
            let is_rare = |word: &&usize| (1..=MAX_RARE_MESSAGES).contains(&messages_with[**word]);
            let used = if record.is_response() { own.iter().filter(is_rare).copied().collect() } else { Vec::new() };
            told.used.push(used);
            own.iter().for_each(|word| messages_with[*word] += 1);
            if record.role() == Some(Role::Assistant) {
                lines(&record.text()).for_each(|line| told.add_line(line));
            }
        }
        told.said_before.push(told.lines.len());
        told.shown = records.iter().map(|record| told.marks(&plain_text(record, record.output().is_some()))).collect();
        told
    }

    fn number_words(&mut self, text: &str) -> Vec<usize> {
        let found: HashSet<&str> = words(text).collect();
        let mut number = |word: &str| match self.words.get(word) {
            Some(number) => *number,
            None => {
                self.words.insert(word.to_owned(), self.words.len());
                self.words.len() - 1
            }
        };
        found.into_iter().map(&mut number).collect()
    }

    fn add_line(&mut self, line: &str) {
        if !self.lines.contains_key(line) {
            self.bytes_before.push(self.bytes_before[self.lines.len()] + line.len() as u64);
            self.lines.insert(line.to_owned(), self.lines.len());
        }
    }

    /// How many different lines and words there are.
    pub fn len(&self) -> (usize, usize) {
        (self.lines.len(), self.words.len())
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }

    /// What any text has of the recording's lines and words.
    pub fn marks(&self, text: &str) -> Marks {
        let found: HashSet<usize> = lines(text).filter_map(|line| self.lines.get(line).copied()).collect();
        let named: HashSet<usize> = words(text).filter_map(|word| self.words.get(word).copied()).collect();
        Marks { lines: found.into_iter().collect(), words: named.into_iter().collect() }
    }

    /// What a message shows if it is shown whole.
    pub fn shown(&self, message: usize) -> &Marks {
        &self.shown[message]
    }

    /// The number of lines that the agent said before a message; these are the first of all lines.
    pub fn said_before(&self, message: usize) -> usize {
        self.said_before[message]
    }

    /// The bytes of the first `count` lines.
    pub fn bytes_of_first(&self, count: usize) -> u64 {
        self.bytes_before[count]
    }

    /// The bytes of a line.
    pub fn bytes(&self, line: usize) -> u64 {
        self.bytes_before[line + 1] - self.bytes_before[line]
    }

    /// The rare words that a message of the agent used.
    pub fn used(&self, message: usize) -> &[usize] {
        &self.used[message]
    }
}

/// The words of a text that are specific enough to have come from somewhere.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b':' | b'-');
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let runs = text.split(move |c: char| !c.is_ascii() || !is_part(c as u8));
    runs.map(move |run| run.trim_matches(is_end)).filter(|word| word.len() >= MIN_WORD_BYTES)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_are_names_paths_and_numbers() {
        let text = "see src/main.rs:12, `E0308`, the 'parser::deep' (a_b_c_d) and -short- 12345";
        assert_eq!(words(text).collect::<Vec<_>>(), ["src/main.rs:12", "parser::deep", "a_b_c_d"]);
    }
}
