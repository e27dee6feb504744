//! What of a conversation is in the store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much of a conversation is in the store, as of the newest write that succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InStore {
    /// The version.
    pub version: u64,
    /// How many plan changes.
    pub steps: usize,
    /// How many decisions.
    pub decisions: usize,
}

/// How much of a conversation is in the store. Who writes it changes this, in the order of the writes; requests only
/// look at it.
#[derive(Debug)]
pub(crate) struct StoredMark {
    in_store: Mutex<InStore>,
    /// Whether a write was refused because another gateway went on with the conversation.
    is_overtaken: AtomicBool,
    /// Whether the conversation was begun while the store could not be read, which may have it under another id.
    is_unsearched: AtomicBool,
    number: u64,
}

/// The number of the next mark.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Default for StoredMark {
    fn default() -> Self {
        Self {
            in_store: Mutex::default(),
            is_overtaken: AtomicBool::new(false),
            is_unsearched: AtomicBool::new(false),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl StoredMark {
    /// How much is in the store now.
    pub fn now(&self) -> InStore {
        *self.lock()
    }

    /// A number that no other mark of this program has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Notes what is in the store after a write, unless something newer is there already.
    pub fn raise(&self, in_store: InStore) {
        let mut now = self.lock();
        if in_store.version >= now.version {
            *now = in_store;
        }
    }

    /// Notes that another gateway went on with the conversation. What is in memory of it is read again with the next
    /// request, if nobody waited for the write.
    pub fn note_overtaken(&self) {
        self.is_overtaken.store(true, Ordering::Relaxed);
    }

    /// Whether another gateway went on with the conversation before a write of this one.
    pub fn is_overtaken(&self) -> bool {
        self.is_overtaken.load(Ordering::Relaxed)
    }

    /// Notes whether the store could be searched for the conversation. Until then nothing of it is written.
    pub fn note_searched(&self, is_searched: bool) {
        self.is_unsearched.store(!is_searched, Ordering::Relaxed);
    }

    /// Whether the conversation was begun while the store could not be read.
    pub fn is_unsearched(&self) -> bool {
        self.is_unsearched.load(Ordering::Relaxed)
    }

    /// Notes what is in the store after a write.
    pub fn set(&self, in_store: InStore) {
        *self.lock() = in_store;
    }

    fn lock(&self) -> MutexGuard<'_, InStore> {
        self.in_store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many times a conversation was decided about, and how much of that is in the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredVersion {
    version: u64,
    mark: Arc<StoredMark>,
    /// What was reverted: with this version, no more than so many plan changes and decisions were left. What came
    /// afterwards is written again, until something as new as this is in the store.
    cut: Option<InStore>,
    /// Whether it was read from the store, and no request has gone on with it since.
    is_fresh: bool,
    /// How many requests its client was answered of which the store knows nothing, until that is on a record.
    unknown: usize,
}

impl StoredVersion {
    /// A conversation as it is in the store.
    pub fn restored(version: u64, steps: usize, decisions: usize) -> Self {
        let stored = Self { version, is_fresh: true, ..Self::default() };
        stored.mark.set(InStore { version, steps, decisions });
        stored
    }

    /// Notes that a request goes on with it. Returns whether it is the first one since it was read from the store.
    pub fn go_on(&mut self) -> bool {
        std::mem::take(&mut self.is_fresh)
    }

    /// Notes how many requests its client was answered of which the store knows nothing: they were sent and not written
    /// when a kill came, or not by way of this store.
    pub fn note_unknown(&mut self, requests: usize) {
        self.unknown += requests;
    }

    /// Takes that, for a record.
    pub fn take_unknown(&mut self) -> usize {
        std::mem::take(&mut self.unknown)
    }

    /// How many times it was decided about.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The version in the store.
    pub fn saved(&self) -> u64 {
        self.mark.now().version
    }

    /// What tells how much is in the store.
    pub fn mark(&self) -> &Arc<StoredMark> {
        &self.mark
    }

    /// How many plan changes and how many decisions are in the store and need not be written again.
    pub fn saved_counts(&self) -> (usize, usize) {
        let now = self.mark.now();
        let cut = self.cut.filter(|cut| now.version < cut.version);
        cut.map_or((now.steps, now.decisions), |cut| (now.steps.min(cut.steps), now.decisions.min(cut.decisions)))
    }

    /// Whether something is not in the store yet.
    pub fn is_behind(&self) -> bool {
        self.saved() < self.version
    }

    /// Notes that something was decided.
    pub fn note_change(&mut self) {
        self.version += 1;
    }

    /// Notes that no more than this many plan changes and decisions are left, with the next change.
    pub fn cut(&mut self, steps: usize, decisions: usize) {
        let (old_steps, old_decisions) = self.saved_counts();
        self.cut = Some(InStore {
            version: self.version + 1,
            steps: old_steps.min(steps),
            decisions: old_decisions.min(decisions),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reverted_is_written_again_until_something_newer_is_stored() {
        let mut stored = StoredVersion::restored(5, 4, 6);
        stored.cut(2, 3);
        stored.note_change();
        assert_eq!((stored.version(), stored.saved_counts()), (6, (2, 3)));
        // A write from before that succeeds later changes nothing about it.
        stored.mark().set(InStore { version: 5, steps: 4, decisions: 7 });
        assert_eq!(stored.saved_counts(), (2, 3));
        stored.mark().set(InStore { version: 6, steps: 2, decisions: 3 });
        stored.note_change();
        stored.mark().set(InStore { version: 7, steps: 3, decisions: 5 });
        assert_eq!(stored.saved_counts(), (3, 5));
        assert!(!stored.is_behind());
    }
}
