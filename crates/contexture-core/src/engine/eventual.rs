//! The cache of eventual layers' results, refreshed in the background.
//!
//! At most one refresh runs for each layer and scope; any number of changes in the meantime cause one more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::OwnedRwLockReadGuard;

use crate::clock::Clock;
use crate::id::{LayerId, ThreadId};
use crate::layer::{RecallItems, StateValue};

/// The size of the cache; the least recently used entries are removed first.
const MAX_CACHED_ANSWERS: usize = 4096;

/// A layer and the prefix of its scope.
pub(crate) type ScopeKey = (LayerId, String);

/// The last results of eventual layers, by layer and scope.
#[derive(Default)]
pub(crate) struct EventualCache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_scope: HashMap<ScopeKey, EventualRecall>,
    /// Counts accesses, so that the least recently used entry is known.
    ticks: u64,
}

#[derive(Default)]
struct EventualRecall {
    answer: RecallItems,
    /// When it was made, by the monotonic clock.
    since: Option<Duration>,
    /// The inputs of the result; `None` if there is none, or it failed.
    asked: Option<RecallInputs>,
    /// The next refresh, of the execution that changed the state last.
    next: Option<Refresh>,
    running: bool,
    used: u64,
}

/// The inputs of a result. With the same inputs the layer is not recalled again.
pub(crate) struct RecallInputs {
    pub(crate) thread: ThreadId,
    /// The newest user message.
    pub(crate) query: Arc<str>,
    /// The length of the conversation, for a layer that keeps no state: nothing else tells when its result is old.
    pub(crate) items: Option<usize>,
    pub(crate) state: Option<StateValue>,
}

impl RecallInputs {
    fn is_same(&self, other: &RecallInputs) -> bool {
        let same_state = match (&self.state, &other.state) {
            (Some(one), Some(other)) => one.is_same(other) || one.encode().ok() == other.encode().ok(),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.thread == other.thread && self.query == other.query && self.items == other.items && same_state
    }
}

/// A recall to be run in the background.
pub(crate) struct Refresh {
    /// Returns the inputs, when the refresh starts.
    pub(crate) about: Box<dyn Fn() -> RecallInputs + Send>,
    /// `None`: the recall failed.
    pub(crate) recall: BoxFuture<'static, Option<RecallItems>>,
    /// Says when a result was made.
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether it runs even if nothing changed.
    pub(crate) forced: bool,
    /// Keeps the execution from ending until the result is stored.
    pub(crate) lease: OwnedRwLockReadGuard<()>,
}

impl EventualCache {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Every change below is a single assignment, so a panic cannot leave it half made.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last result, and when it was made.
    pub(crate) fn answer(&self, key: &ScopeKey) -> (RecallItems, Option<Duration>) {
        let mut entries = self.entries();
        let entry = entries.entry(key);
        (entry.answer.clone(), entry.since)
    }

    /// Removes the last result.
    pub(crate) fn forget(&self, key: &ScopeKey) {
        self.entries().by_scope.remove(key);
    }

    /// Schedules a refresh in the background, after the running one and replacing one that waits.
    pub(crate) fn refresh(self: &Arc<Self>, runtime: &Handle, key: ScopeKey, refresh: Refresh) {
        {
            let mut entries = self.entries();
            let entry = entries.entry(&key);
            let forced = entry.next.as_ref().is_some_and(|waiting| waiting.forced);
            entry.next = Some(Refresh { forced: refresh.forced || forced, ..refresh });
            if std::mem::replace(&mut entry.running, true) {
                return;
            }
        }
        let cache = self.clone();
        runtime.spawn(async move {
            while let Some(Refresh { about, recall, clock, forced, lease }) = cache.next(&key) {
                let about = about();
                if forced || !cache.has_asked(&key, &about) {
                    let answer = recall.await;
                    cache.keep(&key, about, answer, clock.monotonic());
                }
                drop(lease);
            }
        });
    }

    /// Whether the last result has the same inputs.
    fn has_asked(&self, key: &ScopeKey, about: &RecallInputs) -> bool {
        let asked = self.entries().entry(key).asked.take();
        // Comparing states may run code of a layer, so the lock is not held.
        let same = asked.as_ref().is_some_and(|asked| asked.is_same(about));
        self.entries().entry(key).asked = asked;
        same
    }

    /// Stores a result. A failed recall leaves the last result, and is retried.
    fn keep(&self, key: &ScopeKey, about: RecallInputs, answer: Option<RecallItems>, now: Duration) {
        let mut entries = self.entries();
        let entry = entries.entry(key);
        entry.asked = answer.is_some().then_some(about);
        if let Some(answer) = answer {
            (entry.answer, entry.since) = (answer, Some(now));
        }
    }

    /// The next refresh; `None` ends the background task.
    fn next(&self, key: &ScopeKey) -> Option<Refresh> {
        let mut entries = self.entries();
        let entry = entries.entry(key);
        let next = entry.next.take();
        entry.running = next.is_some();
        next
    }
}

impl Entries {
    fn entry(&mut self, key: &ScopeKey) -> &mut EventualRecall {
        self.ticks += 1;
        if !self.by_scope.contains_key(key) {
            self.make_room();
        }
        let entry = self.by_scope.entry(key.clone()).or_default();
        entry.used = self.ticks;
        entry
    }

    fn make_room(&mut self) {
        while self.by_scope.len() >= MAX_CACHED_ANSWERS {
            let idle = self.by_scope.iter().filter(|(_, entry)| !entry.running);
            let Some(oldest) = idle.min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone()) else { return };
            self.by_scope.remove(&oldest);
        }
    }
}
