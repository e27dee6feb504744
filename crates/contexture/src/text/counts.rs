//! Token counts, each made once.

use std::collections::HashMap;

use contexture_core::tokens::TokenCounter;

/// How many counts are kept. They are forgotten all together, since they are quickly made again.
const MAX_KEPT: usize = 16 * 1024;

/// Texts up to this length are kept as they are, longer ones by their hash.
const MAX_KEY_BYTES: usize = 128;

/// What a counter is asked to see whether it still counts as it did: estimates are corrected on the way.
const PROBE: &str = "fn probe(text: &str) -> usize { text.len() } // 0123456789";

/// The counts of texts.
#[derive(Default)]
pub(crate) struct KeptCounts {
    short: HashMap<Box<str>, u64>,
    long: HashMap<[u8; 16], u64>,
    /// The counter's name and its count of [`PROBE`].
    counter: (String, u64),
}

impl KeptCounts {
    /// Whether this counter, as it counts now, made them.
    pub(crate) fn is_of(&self, counter: &dyn TokenCounter) -> bool {
        self.counter.0 == counter.name() && self.counter.1 == counter.count(PROBE)
    }
}

/// A counter that remembers.
pub(crate) struct Counts<'a> {
    counter: &'a dyn TokenCounter,
    kept: &'a mut KeptCounts,
}

impl<'a> Counts<'a> {
    /// Goes on with the counts kept, if the counter is the one that made them.
    pub(crate) fn new(counter: &'a dyn TokenCounter, kept: &'a mut KeptCounts) -> Self {
        let full = kept.short.len() + kept.long.len() > MAX_KEPT;
        if full || !kept.is_of(counter) {
            *kept = KeptCounts { counter: (counter.name().to_owned(), counter.count(PROBE)), ..KeptCounts::default() };
        }
        Self { counter, kept }
    }

    /// The tokens of a text.
    pub(crate) fn count(&mut self, text: &str) -> u64 {
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
