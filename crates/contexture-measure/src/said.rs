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
    lines: Vec<Line>,
    /// The position of each line in `lines`.
    ids: HashMap<String, usize>,
    /// The number of lines before each message, and the total at the end.
    said_before: Vec<usize>,
    /// The bytes of the lines before each line, and the total at the end.
    bytes_before: Vec<u64>,
    /// The lines that each message has.
    lines_of: Vec<Vec<usize>>,
    /// The messages with normalised white space, computed on first use.
    joined: OnceLock<Vec<String>>,
}

#[derive(Debug)]
struct Line {
    text: String,
    /// The messages that contain it, with any line breaks.
    holders: OnceLock<Vec<usize>>,
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
        self.lines.push(Line { text: line.to_owned(), holders: OnceLock::new() });
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

    /// A search for a line in normalised texts.
    pub fn finder(&self, line: usize) -> Finder<'static> {
        Finder::new(&with_single_spaces(&self.lines[line].text)).into_owned()
    }

    /// The recorded messages that contain a line, with any line breaks.
    pub fn holders(&self, line: usize, records: &[Record]) -> &[usize] {
        self.lines[line].holders.get_or_init(|| {
            let joined = |records: &[Record]| records.iter().map(|record| with_single_spaces(&record.text())).collect();
            let joined: &Vec<String> = self.joined.get_or_init(|| joined(records));
            let finder = self.finder(line);
            (0..joined.len()).filter(|&index| finder.find(joined[index].as_bytes()).is_some()).collect()
        })
    }
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
