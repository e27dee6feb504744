//! Token counts of texts that stand for others, each counted once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tokens::TokenCounter;

/// Counts texts and remembers the answers, by where a text lies in memory.
///
/// A fold asks several times for the tokens of what it made, and every later fold for those of what it may keep;
/// real tokens of a long view take milliseconds to count.
pub(super) struct Counts {
    counter: Arc<dyn TokenCounter>,
    /// Each text is held, so that no other one can come to lie in its place.
    known: Mutex<HashMap<usize, (Arc<str>, u64)>>,
}

impl Counts {
    pub(super) fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, known: Mutex::default() }
    }

    /// The tokens of a text that is asked for again.
    pub(super) fn of(&self, text: &Arc<str>) -> u64 {
        let place = text.as_ptr().addr();
        let known = self.lock().get(&place).map(|(_, tokens)| *tokens);
        known.unwrap_or_else(|| {
            let tokens = self.counter.count(text);
            self.lock().insert(place, (text.clone(), tokens));
            tokens
        })
    }

    /// Forgets the texts that nobody else holds.
    pub(super) fn forget_unused(&self) {
        self.lock().retain(|_, (text, _)| Arc::strong_count(text) > 1);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, (Arc<str>, u64)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Asked(AtomicUsize);

    impl TokenCounter for Asked {
        fn name(&self) -> &str {
            "asked"
        }

        fn count(&self, text: &str) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed);
            text.len() as u64
        }
    }

    #[test]
    fn a_text_is_counted_once_while_someone_holds_it() {
        let asked = Arc::new(Asked::default());
        let counts = Counts::new(asked.clone());
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        assert_eq!([counts.of(&one), counts.of(&other), counts.of(&one)], [3, 5, 3]);
        assert_eq!(asked.0.load(Ordering::Relaxed), 2);
        drop(other);
        counts.forget_unused();
        assert_eq!(counts.lock().len(), 1);
    }
}
