//! Words that indicate which code a conversation is about.

use super::tuning::{LEAST_WEIGHED_BYTES, WEIGHT_BYTES};
use super::view::Chunk;
use super::vocabulary::{WordNumbers, telling_words};
use contexture_files::model::FileModel;

/// Longest text that counts as talk; longer texts were pasted.
const MAX_TALK_BYTES: usize = 20_000;

/// The words of one message that count, by their numbers in the vocabulary.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageWords(Vec<u32>);

impl MessageWords {
    /// Adds what the user or the agent said.
    pub(super) fn talk(&mut self, text: &str, vocabulary: &mut WordNumbers) {
        if text.len() <= MAX_TALK_BYTES {
            self.0.extend(telling_words(text).map(|word| vocabulary.number(word)));
        }
    }
}

/// Recent words.
#[derive(Debug, Default)]
pub(super) struct RecentWords {
    /// By number in the vocabulary: the place among recent words, counted from 1. It may be shorter than the
    /// vocabulary: words that were added later have no place.
    places: Vec<u32>,
    count: u32,
}

impl RecentWords {
    pub(super) fn of<'a>(spoken: impl IntoIterator<Item = &'a MessageWords>) -> Self {
        let mut recent = Self::default();
        for number in spoken.into_iter().flat_map(|spoken| &spoken.0) {
            recent.add(*number as usize);
        }
        recent
    }

    fn add(&mut self, number: usize) {
        if number >= self.places.len() {
            self.places.resize(number + 1, 0);
        }
        if self.places[number] == 0 {
            self.count += 1;
            self.places[number] = self.count;
        }
    }

    /// The place of a word among recent ones.
    fn place(&self, number: u32) -> Option<usize> {
        (*self.places.get(number as usize)? as usize).checked_sub(1)
    }

    fn names(&self, path: &str, vocabulary: &WordNumbers) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let number = vocabulary.get(name.split('.').next().unwrap_or(name));
        number.and_then(|number| self.place(number)).is_some()
    }

    /// Adds to each chunk what its words have in common with recent ones. A word counts more the fewer chunks have it.
    pub(super) fn weigh(&self, model: &FileModel, vocabulary: &WordNumbers, chunks: &mut [Chunk]) {
        // For each word, how many chunks have it.
        let mut spread = vec![0_u32; self.count as usize];
        let places = |chunk: &Chunk| -> Vec<usize> {
            chunk.words.iter().filter_map(|number| self.place(*number)).inspect(|place| spread[*place] += 1).collect()
        };
        let common: Vec<Vec<usize>> = chunks.iter().map(places).collect();
        let mut named = (usize::MAX, false);
        for (chunk, own) in chunks.iter_mut().zip(common) {
            let sum: f64 = own.iter().map(|place| 1.0 / f64::from(spread[*place])).sum();
            let size = chunk.bytes.max(LEAST_WEIGHED_BYTES) as f64;
            chunk.signs.talk_words = (sum * WEIGHT_BYTES / size).ln_1p();
            // The chunks of a file are consecutive.
            if named.0 != chunk.file {
                named = (chunk.file, self.names(&model.files()[chunk.file].path, vocabulary));
            }
            chunk.signs.is_named = named.1;
        }
    }
}
