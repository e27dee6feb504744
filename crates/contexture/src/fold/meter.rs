//! What texts take of a window.

use std::sync::{Arc, Mutex, PoisonError};

use crate::text::counts::{Counts, KeptCounts};
use crate::tokens::{ITEM_OVERHEAD_TOKENS, TokenCounter};

/// Counts texts, with what the provider adds around every item.
pub struct Meter {
    counter: Arc<dyn TokenCounter>,
    item_tokens: u64,
    /// Tokens of texts that plans made: they ask several times, and real tokens of a long view take milliseconds to
    /// count.
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

    /// The tokens of an item that holds a text which a plan made.
    pub(super) fn made(&self, text: &str) -> u64 {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        self.item_tokens + Counts::new(&*self.counter, &mut made).count(text)
    }

    /// Of the tokens of an item, those of its text.
    pub fn text_in_item(&self, tokens: u64) -> u64 {
        tokens.saturating_sub(self.item_tokens)
    }
}

/// How many bytes a number of tokens are, if some bytes have some tokens.
pub(super) fn bytes_in(tokens: u64, (bytes, counted): (u64, u64)) -> usize {
    let bytes = u128::from(tokens) * u128::from(bytes) / u128::from(counted.max(1));
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
