//! Eventual layers: the last answer of each scope, made anew in the background.
//!
//! A refresh runs as the execution that changed the state last, since every execution holds states of its own. At
//! most one runs for each layer and scope; changes made meanwhile lead to one more, whatever their number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedRwLockReadGuard, RwLockWriteGuard};

use super::hook_run::{Background, HookRun, Manner, Shared};
use super::open::scope_prefix;
use super::recall::measure;
use crate::id::LayerId;
use crate::layer::*;

/// How many answers are kept; those that were not asked for the longest time go first.
const MAX_CACHED_ANSWERS: usize = 4096;

/// The last answers of eventual layers, by layer and scope.
#[derive(Default)]
pub(crate) struct EventualCache(Mutex<Entries>);

/// A layer and the prefix of its scope.
type ScopeKey = (LayerId, String);

#[derive(Default)]
struct Entries {
    by_scope: HashMap<ScopeKey, Entry>,
    /// Counts what is asked of the cache, so that the oldest entry is known.
    ticks: u64,
}

#[derive(Default)]
struct Entry {
    answer: RecallItems,
    /// The next refresh: by whoever changed the state last.
    next: Option<Refresh>,
    running: bool,
    used: u64,
}

/// A recall to be run in the background.
struct Refresh {
    shared: Arc<Shared>,
    /// The execution does not end while someone holds this.
    _lease: OwnedRwLockReadGuard<()>,
}

impl EventualCache {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Every change below is a single assignment, so a panic cannot leave it half made.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn entry(&mut self, key: &ScopeKey) -> &mut Entry {
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

impl Shared {
    pub(crate) fn is_eventual(&self, layer: &LayerRef) -> bool {
        layer.spec().recall_mode == RecallMode::Eventual && !self.core.force_atomic_recall
    }

    fn cache_key(&self, layer: &LayerRef) -> ScopeKey {
        (layer.spec().id.clone(), scope_prefix(layer.spec(), &self.context_data()))
    }

    /// The last answer in the layer's scope.
    pub(crate) fn cached(&self, layer: &LayerRef) -> RecallItems {
        self.core.eventual.entries().entry(&self.cache_key(layer)).answer.clone()
    }

    /// Has an eventual layer recalled in the background, once for any number of changes made meanwhile.
    pub(crate) fn refresh_later(self: &Arc<Self>, layer: &LayerRef) {
        if !self.is_eventual(layer) || !layer.may_have(Hook::Recall) {
            return;
        }
        // Without a runtime nothing can run in the background; the next change with one will do.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let Ok(lease) = self.refreshing.clone().try_read_owned() else { return };
        let key = self.cache_key(layer);
        {
            let mut entries = self.core.eventual.entries();
            let entry = entries.entry(&key);
            entry.next = Some(Refresh { shared: self.clone(), _lease: lease });
            if std::mem::replace(&mut entry.running, true) {
                return;
            }
        }
        let (core, layer) = (self.core.clone(), layer.clone());
        runtime.spawn(async move {
            while let Some(refresh) = core.eventual.next(&key) {
                let answer = refresh.shared.recall_in_background(&layer).await;
                // A failed recall contributes nothing, like any other; what it said before may be withdrawn by now.
                core.eventual.entries().entry(&key).answer = answer.unwrap_or_default();
            }
        });
    }

    /// Waits until nothing of this execution is recalled in the background, and lets nothing begin while the answer
    /// is held.
    pub(crate) async fn end_refreshing(&self) -> RwLockWriteGuard<'_, ()> {
        let nothing_runs = self.refreshing.write().await;
        let passing = |layer: &&LayerRef| layer.spec().scope == MemoryScope::Execution && self.is_eventual(layer);
        for layer in self.roster().by_registration().filter(passing) {
            self.core.eventual.entries().by_scope.remove(&self.cache_key(layer));
        }
        nothing_runs
    }

    async fn recall_in_background(self: &Arc<Self>, layer: &LayerRef) -> Option<RecallItems> {
        if !self.is_running(layer) {
            return None;
        }
        let Background { log, query } = self.background.read().unwrap_or_else(PoisonError::into_inner).clone();
        // The answer is cut to its share when it is served; here it may be as large as the layer ever gets.
        let budget = layer.spec().budget.max().unwrap_or(self.core.policy.token_budget);
        let run = self.run_always(
            layer,
            Hook::Recall,
            Manner::Beside,
            |answer: &RecallResult<StateValue>| {
                self.core.observer.as_ref().map(|_| measure(self, layer, answer, budget))
            },
            move |state, ctx| {
                let state = layer.state_or_default(state.as_ref());
                layer.recall(RecallParams { log, query, ctx, state, budget })
            },
        );
        match run.await {
            HookRun::Done(answer) => Some(answer.items),
            HookRun::Absent | HookRun::Skipped | HookRun::Failed(_) => None,
        }
    }
}

impl EventualCache {
    /// The next refresh, or none: then whoever runs them is done.
    fn next(&self, key: &ScopeKey) -> Option<Refresh> {
        let mut entries = self.entries();
        let entry = entries.entry(key);
        let next = entry.next.take();
        entry.running = next.is_some();
        next
    }
}
