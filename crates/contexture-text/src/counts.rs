//! A cache of token counts.

use std::collections::HashMap;

use contexture_core::tokens::TokenCounter;

/// The size of the cache. It is cleared as a whole, since counts are quickly computed again.
const MAX_KEPT: usize = 16 * 1024;

/// Texts up to this length are keys themselves, longer ones by their hash.
const MAX_KEY_BYTES: usize = 128;

/// A text to check whether a counter still counts as before: estimates are calibrated over time.
const PROBE: &str = "fn probe(text: &str) -> usize { text.len() } // 0123456789";

/// The counts of texts.
#[derive(Default)]
pub struct KeptCounts {
    short: HashMap<Box<str>, u64>,
    long: HashMap<[u8; 16], u64>,
    /// The counter's name and its count of [`PROBE`].
    counter: (String, u64),
}

impl KeptCounts {
    /// Whether they are the counts of this counter, as it counts now.
    pub fn is_of(&self, counter: &dyn TokenCounter) -> bool {
        self.counter.0 == counter.name() && self.counter.1 == counter.count(PROBE)
    }
}

/// A counter with a cache.
pub struct Counts<'a> {
    counter: &'a dyn TokenCounter,
    kept: &'a mut KeptCounts,
}

impl<'a> Counts<'a> {
    /// Uses the cached counts, if they are those of this counter.
    pub fn new(counter: &'a dyn TokenCounter, kept: &'a mut KeptCounts) -> Self {
        let full = kept.short.len() + kept.long.len() > MAX_KEPT;
        if full || !kept.is_of(counter) {
            *kept = KeptCounts { counter: (counter.name().to_owned(), counter.count(PROBE)), ..KeptCounts::default() };
        }
        Self { counter, kept }
    }

    /// The tokens of a text.
    pub fn count(&mut self, text: &str) -> u64 {
        if text.len() > MAX_KEY_BYTES {
            let hash = blake3::hash(text.as_bytes());
            let key = *hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
            return *self.kept.long.entry(key).or_insert_with(|| self.counter.count(text));
        }
        if let Some(count) = self.kept.short.get(text) {
            return *count;
        }
        let count = self.counter.count(text);
        self.kept.short.insert(text.into(), count);
        count
    }
}
