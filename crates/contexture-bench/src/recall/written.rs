//! Conversations of two people over many dated sessions, with questions whose evidence is marked.
//!
//! The files in `data/` begin with the names; `# 2024-02-03 18:20` begins a session, `[t1]` marks what questions are
//! about, and `? question | t1 t2` is a question with its evidence. Questions share few words with the evidence.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use contexture::bpe::Bpe;
use contexture::recall::{Extent, Passage, PastIndex, PastQuery, parse_time};
use contexture::search::{MemoryIndex, SearchError};
use contexture::tokens::TokenCounter;

/// The conversations by name.
pub const CONVERSATIONS: &[(&str, &str)] = &[
    ("harbour", include_str!("../../data/harbour.txt")),
    ("summit", include_str!("../../data/summit.txt")),
    ("studio", include_str!("../../data/studio.txt")),
    ("garage", include_str!("../../data/garage.txt")),
];

/// Conversations in another style, whose questions are lists and conclusions for the most part. Nothing was tuned on them.
pub const OTHERS: &[(&str, &str)] =
    &[("flatmates", include_str!("../../data/flatmates.txt")), ("allotment", include_str!("../../data/allotment.txt"))];

/// A conversation with questions.
#[derive(Clone, Debug, Default)]
pub struct WrittenConversation {
    /// The two names.
    pub names: Vec<String>,
    /// What was said.
    pub passages: Vec<Passage>,
    /// Questions, each with the positions of its evidence.
    pub questions: Vec<(String, Vec<u64>)>,
}

/// What was found of the evidence.
#[derive(Clone, Debug, Default)]
pub struct WrittenResult {
    /// The mean share of a question's evidence that was shown.
    pub share: f64,
    /// The mean number of tokens that were shown.
    pub tokens: f64,
    /// Questions with evidence that was not shown.
    pub missed: Vec<String>,
}

impl WrittenConversation {
    /// Reads a conversation.
    pub fn read(text: &str) -> Self {
        let mut written = Self::default();
        let mut marks: HashMap<String, u64> = HashMap::new();
        let mut at_ms = None;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if let Some(names) = line.strip_prefix("@ ") {
                written.names = names.split_whitespace().map(str::to_owned).collect();
            } else if let Some(time) = line.strip_prefix("# ") {
                at_ms = parse_time(time);
            } else if let Some((question, evidence)) = line.strip_prefix("? ").and_then(|line| line.split_once(" | ")) {
                let evidence = evidence.split_whitespace().map(|mark| marks[mark]).collect();
                written.questions.push((question.to_owned(), evidence));
            } else if let Some((speaker, said)) = line.split_once(": ") {
                let position = written.passages.len() as u64;
                let text = without_marks(said, |mark| {
                    marks.insert(mark.to_owned(), position);
                });
                let (thread, speaker) = ("talk".to_owned(), speaker.to_owned());
                written.passages.push(Passage { thread, position, id: None, speaker, at_ms, source: None, text });
            }
        }
        written
    }

    /// All conversations as one of the same two people, sessions in order of time.
    pub fn merged() -> Self {
        Self::among(&[], CONVERSATIONS)
    }

    /// The conversations in another style, in the middle of all others: only they are asked about.
    pub fn others() -> Self {
        Self::among(CONVERSATIONS, OTHERS)
    }

    /// Conversations as one, sessions in order of time, with the questions of the second ones. Those of two people are of
    /// the same two; those in another style keep their names.
    fn among(silent: &[(&str, &str)], asked: &[(&str, &str)]) -> Self {
        let mut all = Self { names: vec!["Nadia".to_owned(), "Tomas".to_owned()], ..Self::default() };
        let mut moved: Vec<(Passage, usize, u64)> = Vec::new();
        let mut questions: Vec<(String, usize, Vec<u64>)> = Vec::new();
        for (number, (_, text)) in silent.iter().chain(asked).enumerate() {
            let one = Self::read(text);
            let is_renamed = OTHERS.iter().all(|(_, other)| other != text);
            let renamed = |text: &str| {
                let mut text = text.to_owned();
                for (old, new) in one.names.iter().zip(&all.names).filter(|_| is_renamed) {
                    text = text.replace(old.as_str(), new);
                }
                text
            };
            for passage in &one.passages {
                let (speaker, text) = (renamed(&passage.speaker), renamed(&passage.text));
                moved.push((Passage { speaker, text, ..passage.clone() }, number, passage.position));
            }
            let of_one = one.questions.iter().filter(|_| number >= silent.len());
            questions.extend(of_one.map(|(text, evidence)| (renamed(text), number, evidence.clone())));
        }
        moved.sort_by_key(|(passage, number, position)| (passage.at_ms, *number, *position));
        let at: HashMap<(usize, u64), u64> =
            moved.iter().enumerate().map(|(at, (_, number, position))| ((*number, *position), at as u64)).collect();
        all.passages = moved
            .into_iter()
            .enumerate()
            .map(|(at, (passage, ..))| Passage { position: at as u64, ..passage })
            .collect();
        for (text, number, evidence) in questions {
            all.questions.push((text, evidence.into_iter().map(|position| at[&(number, position)]).collect()));
        }
        all
    }

    /// The tokens of everything that was said.
    pub fn tokens(&self) -> u64 {
        let counter = Bpe::o200k();
        self.passages.iter().map(|passage| counter.count(&format!("{}: {}", passage.speaker, passage.text))).sum()
    }

    /// Asks all questions, with this many tokens for each.
    ///
    /// # Errors
    /// The index failed.
    pub async fn measure(&self, budget: u64) -> Result<WrittenResult, SearchError> {
        let past = PastIndex::new(Arc::new(MemoryIndex::new()), "thread:talk");
        past.add(self.passages.clone()).await?;
        let now_ms = self.passages.last().and_then(|passage| passage.at_ms).unwrap_or(0);
        let counter = Bpe::o200k();
        let mut measure = WrittenResult::default();
        for (text, evidence) in &self.questions {
            let query = PastQuery { text, now_ms, budget, counter: &counter, extent: Extent::Full, visible: None };
            let found = past.search(query).await?;
            let shown: HashSet<u64> = found.shown.iter().map(|shown| shown.passage.position).collect();
            let hits = evidence.iter().filter(|position| shown.contains(position)).count();
            measure.share += hits as f64 / evidence.len().max(1) as f64;
            measure.tokens += found.tokens as f64;
            if hits < evidence.len() {
                measure.missed.push(text.clone());
            }
        }
        let count = self.questions.len().max(1) as f64;
        measure.share /= count;
        measure.tokens /= count;
        Ok(measure)
    }
}

/// A text without its marks, which are told.
fn without_marks(said: &str, mut tell: impl FnMut(&str)) -> String {
    let mut text = String::new();
    let mut rest = said;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((mark, after)) = after.split_once("] ") else { break };
        text.push_str(before);
        tell(mark);
        rest = after;
    }
    text + rest
}
