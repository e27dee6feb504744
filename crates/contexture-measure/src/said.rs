//! What people said in a recording, line by line, and which messages contain those lines.
//!
//! People are the user, the system and the developers of the agent. A line counts once, if it has at least 20 characters
//! without the list and quote marks before it: shorter ones occur everywhere.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use contexture::item::{Origin, Role};
use contexture::transcript::Record;
use memchr::memmem::Finder;

/// The smallest number of characters of a line that counts.
const MIN_LINE_CHARS: usize = 20;

/// The marks of lists, quotes and tables at the start of a line.
const MARKS: [char; 5] = ['-', '>', '*', '|', ' '];

/// Attachments that the agent program adds by itself; nobody said them.
const NOTE_KINDS: [&str; 6] =
    ["directory", "edited_text_file", "file", "hook_success", "selected_lines_in_ide", "task_reminder"];

/// The lines that people said.
#[derive(Debug, Default)]
pub struct Said {
    lines: Vec<SpokenLine>,
    /// The position of each line in `lines`.
    ids: HashMap<String, usize>,
    /// The number of lines before each message, and the total at the end.
    said_before: Vec<usize>,
    /// The bytes of the lines before each line, and the total at the end.
    bytes_before: Vec<u64>,
    /// The lines that each message has.
    lines_of: Vec<Vec<usize>>,
    /// The number of each word by which a line is found.
    keys: HashMap<String, usize>,
    /// The recorded messages, computed on first use.
    joined: OnceLock<JoinedTexts>,
}

#[derive(Debug)]
struct SpokenLine {
    text: String,
    /// A word that is whole wherever the line is, by its number in `keys`.
    key: Option<usize>,
    /// The messages that contain it, with any line breaks.
    holders: OnceLock<Vec<usize>>,
}

/// Texts with one space between words, and which of them have the words by which lines are found.
#[derive(Debug)]
pub struct JoinedTexts {
    texts: Vec<String>,
    /// The texts with each word, by its number, in order.
    with: HashMap<usize, Vec<usize>>,
}

impl Said {
    /// Collects the lines of all messages of a recording.
    pub fn new(records: &[Record]) -> Self {
        let mut said = Self { bytes_before: vec![0], ..Self::default() };
        for record in records {
            said.said_before.push(said.lines.len());
            if is_said(record) {
                lines(&record.text()).for_each(|line| said.add(line));
            }
        }
        said.said_before.push(said.lines.len());
        said.lines_of = records.iter().map(|record| said.ids_in(&record.text())).collect();
        said
    }

    fn add(&mut self, line: &str) {
        if self.ids.contains_key(line) {
            return;
        }
        self.ids.insert(line.to_owned(), self.lines.len());
        self.bytes_before.push(self.bytes_before[self.lines.len()] + line.len() as u64);
        let next = self.keys.len();
        let key = key_of(line).map(|key| *self.keys.entry(key.to_owned()).or_insert(next));
        self.lines.push(SpokenLine { text: line.to_owned(), key, holders: OnceLock::new() });
    }

    /// How many lines there are in the whole recording.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The number of lines before a message; these are the first of all lines.
    pub fn said_before(&self, message: usize) -> usize {
        self.said_before[message]
    }

    /// The bytes of the first `count` lines.
    pub fn bytes_of_first(&self, count: usize) -> u64 {
        self.bytes_before[count]
    }

    /// The bytes of a line.
    pub fn bytes(&self, line: usize) -> u64 {
        self.lines[line].text.len() as u64
    }

    /// The lines that a recorded message has, each once.
    pub fn lines_of(&self, message: usize) -> &[usize] {
        &self.lines_of[message]
    }

    /// The lines that any text has, each once.
    pub fn ids_in(&self, text: &str) -> Vec<usize> {
        let found: HashSet<usize> = lines(text).filter_map(|line| self.ids.get(line).copied()).collect();
        found.into_iter().collect()
    }

    /// Texts in which lines can be found with any line breaks.
    pub fn join<T: AsRef<str>>(&self, texts: impl Iterator<Item = T>) -> JoinedTexts {
        let texts: Vec<String> = texts.map(|text| with_single_spaces(text.as_ref())).collect();
        let mut with: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, text) in texts.iter().enumerate() {
            for key in text.split(' ').filter_map(|word| self.keys.get(word)) {
                let indices = with.entry(*key).or_default();
                if indices.last() != Some(&index) {
                    indices.push(index);
                }
            }
        }
        JoinedTexts { texts, with }
    }

    /// Whether one of some texts contains a line, with any line breaks.
    pub fn is_in(&self, line: usize, joined: &JoinedTexts) -> bool {
        joined.holders(&self.lines[line]).next().is_some()
    }

    /// The recorded messages that contain a line, with any line breaks.
    pub fn holders(&self, line: usize, records: &[Record]) -> &[usize] {
        let line = &self.lines[line];
        line.holders.get_or_init(|| {
            let joined = self.joined.get_or_init(|| self.join(records.iter().map(|record| record.text())));
            joined.holders(line).collect()
        })
    }
}

impl JoinedTexts {
    /// The texts that contain a line.
    fn holders<'a>(&'a self, line: &SpokenLine) -> impl Iterator<Item = usize> + use<'a> {
        let candidates: Box<dyn Iterator<Item = usize> + 'a> = match line.key {
            Some(key) => Box::new(self.with.get(&key).into_iter().flatten().copied()),
            None => Box::new(0..self.texts.len()),
        };
        let finder = Finder::new(&with_single_spaces(&line.text)).into_owned();
        candidates.filter(move |index| finder.find(self.texts[*index].as_bytes()).is_some())
    }
}

/// The longest word of a line that is whole wherever the line is: neither its first nor its last one, which may be
/// parts of longer words.
fn key_of(line: &str) -> Option<&str> {
    let mut words = line.split(is_space).filter(|word| !word.is_empty());
    words.next();
    words.next_back();
    words.max_by_key(|word| word.len())
}

/// Whether a message was written by people.
fn is_said(record: &Record) -> bool {
    if !matches!(record.role(), Some(Role::User | Role::System | Role::Developer)) {
        return false;
    }
    match record.items()[0].meta().map(|meta| &meta.origin) {
        Some(Origin::Harness { kind: Some(kind), .. }) => !NOTE_KINDS.contains(&&**kind),
        _ => true,
    }
}

/// The lines of a text that count, without the marks before them.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').map(without_marks).filter(|line| line.chars().nth(MIN_LINE_CHARS - 1).is_some())
}

fn without_marks(line: &str) -> &str {
    line.trim_matches(is_space).trim_start_matches(MARKS).trim_matches(is_space)
}

/// White space, including the four separators of ASCII.
fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\x1c'..='\x1f')
}

/// Replaces every run of white space by one space.
pub fn with_single_spaces(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_wherever_a_search_through_everything_finds_them() {
        let lines = ["one_word_of_twenty_characters", "two_words of_twenty_characters", "ends of words are parts here"];
        let texts = [
            "ends of\nwords  are\tparts here",
            "blends of words are parts hereafter",
            "ends of words, are parts here",
            "(two_words\nof_twenty_characters)",
            "not_one_word_of_twenty_characters",
            "",
        ];
        let mut said = Said { bytes_before: vec![0], ..Said::default() };
        lines.iter().for_each(|line| said.add(line));
        let joined = said.join(texts.iter());
        let found = |line: usize| joined.holders(&said.lines[line]).collect::<Vec<usize>>();
        let searched = |line: usize| -> Vec<usize> {
            (0..texts.len()).filter(|text| with_single_spaces(texts[*text]).contains(lines[line])).collect()
        };
        assert_eq!([found(0), found(1), found(2)], [vec![4], vec![3], vec![0, 1]]);
        assert!((0..lines.len()).all(|line| found(line) == searched(line) && said.is_in(line, &joined)));
    }
}
