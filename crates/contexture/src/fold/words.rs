//! Words that tell which code a conversation is about.

use std::collections::{HashMap, HashSet};

use super::view::Chunk;
use crate::files::model::FileModel;
use crate::files::observation::Observation;

/// Shortest and longest word that can tell one piece of code from another.
const WORD_BYTES: std::ops::Range<usize> = 5..60;

/// Longest text that is taken for talk; what is longer was pasted.
const MAX_TALK_BYTES: usize = 20_000;

/// How many messages back words count as recent.
pub const RECENT_MESSAGES: usize = 40;

/// The words of a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| WORD_BYTES.contains(&word.len()) && !word.starts_with(|c: char| c.is_ascii_digit()))
}

/// What one message adds to the words that count.
#[derive(Clone, Debug, Default)]
pub(super) struct Spoken {
    /// Said by the user or the agent.
    pub(super) talk: Vec<Box<str>>,
    /// Standing only in the old or only in the new text of a change.
    pub(super) changes: Vec<Box<str>>,
}

impl Spoken {
    pub(super) fn talk(&mut self, text: &str) {
        if text.len() <= MAX_TALK_BYTES {
            self.talk.extend(words(text).map(Box::from));
        }
    }

    /// Notes the words in which a change's two sides differ.
    pub(super) fn change(&mut self, observation: &Observation) {
        let mut old = HashSet::new();
        let mut new = HashSet::new();
        match observation {
            Observation::Edit { old: before, new: after, .. } => {
                old.extend(words(before));
                new.extend(words(after));
            }
            Observation::Patch { hunks, .. } => {
                old.extend(hunks.iter().flat_map(|hunk| &hunk.old).flat_map(|line| words(line)));
                new.extend(hunks.iter().flat_map(|hunk| &hunk.new).flat_map(|line| words(line)));
            }
            _ => return,
        }
        let mut differing: Vec<&str> = old.symmetric_difference(&new).copied().collect();
        differing.sort_unstable();
        self.changes.extend(differing.into_iter().map(Box::from));
    }
}

/// Recent words, as sets.
#[derive(Debug, Default)]
pub(super) struct Recent<'a> {
    talk: HashSet<&'a str>,
    changes: HashSet<&'a str>,
}

impl<'a> Recent<'a> {
    pub(super) fn of(spoken: &'a [Spoken]) -> Self {
        Self {
            talk: spoken.iter().flat_map(|spoken| &spoken.talk).map(|word| &**word).collect(),
            changes: spoken.iter().flat_map(|spoken| &spoken.changes).map(|word| &**word).collect(),
        }
    }

    fn names(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.talk.contains(name.split('.').next().unwrap_or(name))
    }

    /// Adds to each chunk what its words have in common with recent ones; a word counts by how few chunks have it.
    pub(super) fn weigh(&self, model: &FileModel, chunks: &mut [Chunk]) {
        let named: Vec<bool> = model.files().iter().map(|file| self.names(&file.path)).collect();
        let mut spread: HashMap<&str, (u32, usize)> = HashMap::new();
        let mut common: Vec<Vec<&str>> = Vec::with_capacity(chunks.len());
        for (index, chunk) in chunks.iter().enumerate() {
            let mut own = Vec::new();
            for word in chunk.lines(model).iter().flat_map(|line| words(&line.text)) {
                if !self.talk.contains(word) && !self.changes.contains(word) {
                    continue;
                }
                let place = spread.entry(word).or_insert((0, usize::MAX));
                if place.1 != index {
                    *place = (place.0 + 1, index);
                    own.push(word);
                }
            }
            common.push(own);
        }
        for (chunk, own) in chunks.iter_mut().zip(common) {
            let weight = |set: &HashSet<&str>| {
                let sum: f64 =
                    own.iter().filter(|word| set.contains(**word)).map(|word| 1.0 / f64::from(spread[word].0)).sum();
                (sum * WEIGHT_BYTES / chunk.bytes.max(LEAST_WEIGHED_BYTES) as f64).ln_1p()
            };
            (chunk.signs.change_words, chunk.signs.talk_words) = (weight(&self.changes), weight(&self.talk));
            chunk.signs.is_named = named[chunk.file];
        }
    }
}

/// Words are weighed for a chunk's size; this many bytes make a word that only it has count one.
const WEIGHT_BYTES: f64 = 5_000.0;

/// Chunks smaller than this are weighed as if they had it.
const LEAST_WEIGHED_BYTES: usize = 200;
