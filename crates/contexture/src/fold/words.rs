//! Words that tell which code a conversation is about.

use std::collections::HashSet;

use super::tuning::{LEAST_WEIGHED_BYTES, WEIGHT_BYTES};
use super::view::Chunk;
use super::vocabulary::{Vocabulary, telling_words};
use crate::files::model::FileModel;
use crate::files::observation::Observation;

/// Longest text that is taken for talk; what is longer was pasted.
const MAX_TALK_BYTES: usize = 20_000;

/// What one message adds to the words that count, by their numbers in the vocabulary.
#[derive(Clone, Debug, Default)]
pub(super) struct Spoken {
    /// Said by the user or the agent.
    talk: Vec<u32>,
    /// Standing only in the old or only in the new text of a change.
    changes: Vec<u32>,
}

impl Spoken {
    pub(super) fn talk(&mut self, text: &str, vocabulary: &mut Vocabulary) {
        if text.len() <= MAX_TALK_BYTES {
            self.talk.extend(telling_words(text).map(|word| vocabulary.number(word)));
        }
    }

    /// Notes the words in which a change's two sides differ.
    pub(super) fn change(&mut self, observation: &Observation, vocabulary: &mut Vocabulary) {
        let mut old = HashSet::new();
        let mut new = HashSet::new();
        match observation {
            Observation::Edit { old: before, new: after, .. } => {
                old.extend(telling_words(before));
                new.extend(telling_words(after));
            }
            Observation::Patch { hunks, .. } => {
                old.extend(hunks.iter().flat_map(|hunk| &hunk.old).flat_map(|line| telling_words(line)));
                new.extend(hunks.iter().flat_map(|hunk| &hunk.new).flat_map(|line| telling_words(line)));
            }
            Observation::Write { text, .. } | Observation::Append { text, .. } | Observation::Insert { text, .. } => {
                new.extend(telling_words(text));
            }
            _ => return,
        }
        self.changes.extend(old.symmetric_difference(&new).map(|word| vocabulary.number(word)));
    }
}

/// Recent words.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// By number in the vocabulary: the place among recent words, counted from 1. Words learned later have none.
    places: Vec<u32>,
    origins: Vec<Origin>,
}

/// Where a recent word is from.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    talk: bool,
    change: bool,
}

impl Recent {
    pub(super) fn of<'a>(spoken: impl IntoIterator<Item = &'a Spoken>) -> Self {
        let mut recent = Self::default();
        for spoken in spoken {
            spoken.talk.iter().for_each(|number| recent.origin(*number).talk = true);
            spoken.changes.iter().for_each(|number| recent.origin(*number).change = true);
        }
        recent
    }

    fn origin(&mut self, number: u32) -> &mut Origin {
        let number = number as usize;
        if number >= self.places.len() {
            self.places.resize(number + 1, 0);
        }
        if self.places[number] == 0 {
            self.origins.push(Origin::default());
            self.places[number] = self.origins.len() as u32;
        }
        &mut self.origins[self.places[number] as usize - 1]
    }

    /// The place of a word among recent ones.
    fn place(&self, number: u32) -> Option<usize> {
        (*self.places.get(number as usize)? as usize).checked_sub(1)
    }

    fn names(&self, path: &str, vocabulary: &Vocabulary) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let number = vocabulary.get(name.split('.').next().unwrap_or(name));
        number.and_then(|number| self.place(number)).is_some_and(|place| self.origins[place].talk)
    }

    /// Adds to each chunk what its words have in common with recent ones; a word counts by how few chunks have it.
    pub(super) fn weigh(&self, model: &FileModel, vocabulary: &Vocabulary, chunks: &mut [Chunk]) {
        // For each word, how many chunks have it.
        let mut spread = vec![0_u32; self.origins.len()];
        let places = |chunk: &Chunk| -> Vec<usize> {
            chunk.words.iter().filter_map(|number| self.place(*number)).inspect(|place| spread[*place] += 1).collect()
        };
        let common: Vec<Vec<usize>> = chunks.iter().map(places).collect();
        let mut named = (usize::MAX, false);
        for (chunk, own) in chunks.iter_mut().zip(common) {
            let weight = |is_from: fn(&Origin) -> bool| {
                let from = own.iter().filter(|place| is_from(&self.origins[**place]));
                let sum: f64 = from.map(|place| 1.0 / f64::from(spread[*place])).sum();
                (sum * WEIGHT_BYTES / chunk.bytes.max(LEAST_WEIGHED_BYTES) as f64).ln_1p()
            };
            chunk.signs.change_words = weight(|origin| origin.change);
            chunk.signs.talk_words = weight(|origin| origin.talk);
            // The chunks of a file stand together.
            if named.0 != chunk.file {
                named = (chunk.file, self.names(&model.files()[chunk.file].path, vocabulary));
            }
            chunk.signs.is_named = named.1;
        }
    }
}
