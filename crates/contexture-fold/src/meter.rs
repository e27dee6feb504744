//! How many tokens texts take in a window.

use std::sync::{Arc, Mutex, PoisonError};

use contexture_core::tokens::{ITEM_OVERHEAD_TOKENS, TokenCounter};
use contexture_text::counts::{Counts, KeptCounts};

/// Counts the tokens of texts, and what the provider adds around every item.
pub struct Meter {
    counter: Arc<dyn TokenCounter>,
    item_tokens: u64,
    /// Token counts of texts that plans made. Plans count the same text several times, and counting the real tokens of
    /// a long view takes milliseconds.
    made: Mutex<KeptCounts>,
}

impl Meter {
    /// A meter that adds what the engine adds around every item.
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, item_tokens: ITEM_OVERHEAD_TOKENS, made: Mutex::default() }
    }

    /// A meter that counts texts alone.
    pub fn of_texts(counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, item_tokens: 0, made: Mutex::default() }
    }

    /// The counter itself.
    pub fn counter(&self) -> &dyn TokenCounter {
        &*self.counter
    }

    /// The tokens of a text.
    pub fn text(&self, text: &str) -> u64 {
        self.counter.count(text)
    }

    /// The tokens of an item with a text that a plan made.
    pub(super) fn made(&self, text: &str) -> u64 {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        self.item_tokens + Counts::new(&*self.counter, &mut made).count(text)
    }

    /// Of the tokens of an item, those of its text.
    pub fn text_in_item(&self, tokens: u64) -> u64 {
        tokens.saturating_sub(self.item_tokens)
    }
}

/// Converts tokens to bytes, given the bytes and tokens of a sample.
pub(super) fn bytes_in(tokens: u64, (bytes, counted): (u64, u64)) -> usize {
    let bytes = u128::from(tokens) * u128::from(bytes) / u128::from(counted.max(1));
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
