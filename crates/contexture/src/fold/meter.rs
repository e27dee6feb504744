//! What texts take of a window.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tokens::{ITEM_OVERHEAD_TOKENS, TokenCounter};

/// Counts texts, with what the provider adds around every item.
pub struct Meter {
    counter: Arc<dyn TokenCounter>,
    item_tokens: u64,
    /// Tokens of texts that a plan made, by where they lie in memory: it asks several times, and real tokens of a long
    /// view take milliseconds to count. Each text is held, so that no other can come to lie in its place.
    made: Mutex<HashMap<usize, (Arc<str>, u64)>>,
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
    pub(super) fn made(&self, text: &Arc<str>) -> u64 {
        let place = text.as_ptr().addr();
        let known = self.lock().get(&place).map(|(_, tokens)| *tokens);
        known.unwrap_or_else(|| {
            let tokens = self.item_tokens + self.counter.count(text);
            self.lock().insert(place, (text.clone(), tokens));
            tokens
        })
    }

    /// Forgets the texts of plans.
    pub(super) fn forget_made(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, (Arc<str>, u64)>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of the tokens of an item, those of its text.
    pub fn text_in_item(&self, tokens: u64) -> u64 {
        tokens.saturating_sub(self.item_tokens)
    }

    /// Makes something of a number of bytes, fewer each time, until it has at most a number of tokens.
    ///
    /// `make` returns what it made, how many of the bytes it took, and the tokens that came out.
    pub(super) fn fit<T>(tokens: u64, mut bytes: usize, make: impl Fn(usize) -> (T, usize, u64)) -> Option<T> {
        for _ in 0..MAX_TRIES {
            let (made, taken, count) = make(bytes);
            if count <= tokens {
                return Some(made);
            }
            bytes = (taken.min(bytes) as f64 * tokens as f64 / count as f64 * 0.95) as usize;
        }
        None
    }
}

/// How often something is made anew because it came out too large.
const MAX_TRIES: usize = 4;

/// How many bytes a number of tokens are, if some bytes have some tokens.
pub(super) fn bytes_in(tokens: u64, (bytes, counted): (u64, u64)) -> usize {
    let bytes = u128::from(tokens) * u128::from(bytes) / u128::from(counted.max(1));
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
