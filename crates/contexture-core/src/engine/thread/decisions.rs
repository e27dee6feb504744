//! The decisions about a thread's window: by layer, and pending.

use std::collections::HashMap;
use std::sync::Arc;

use crate::decision::Decision;
use crate::id::LayerId;

/// The decisions about a thread's window. `durable` is always the number of decisions in the store.
#[derive(Default)]
pub(super) struct ThreadDecisions {
    by_layer: HashMap<LayerId, Arc<Vec<Decision>>>,
    pending: Vec<Decision>,
    /// Whether the engine decided something since the epoch was written.
    epoch_changed: bool,
}

impl ThreadDecisions {
    /// A layer's decisions in this thread.
    pub(super) fn of(&self, layer: &LayerId) -> Arc<Vec<Decision>> {
        self.by_layer.get(layer).cloned().unwrap_or_default()
    }

    /// The decisions that are not durable yet.
    pub(super) fn pending(&self) -> &[Decision] {
        &self.pending
    }

    pub(super) fn epoch_changed(&self) -> bool {
        self.epoch_changed
    }

    /// The number of decisions, including pending ones.
    pub(super) fn total(&self, durable: u64) -> u64 {
        durable + self.pending.len() as u64
    }

    /// Numbers a decision and keeps it for the next batch.
    pub(super) fn decide(&mut self, mut decision: Decision, durable: u64) -> &Decision {
        decision.number = self.total(durable);
        self.epoch_changed |= decision.layer.is_none();
        self.remember(&decision);
        self.pending.push(decision);
        self.pending.last().expect("just pushed")
    }

    /// Adds a durable decision.
    pub(super) fn remember(&mut self, decision: &Decision) {
        if let Some(layer) = &decision.layer {
            Arc::make_mut(self.by_layer.entry(layer.clone()).or_default()).push(decision.clone());
        }
    }

    /// The first `count` pending decisions are durable.
    pub(super) fn batch_committed(&mut self, written: usize) {
        self.pending.drain(..written.min(self.pending.len()));
    }

    /// The current epoch is durable.
    pub(super) fn epoch_written(&mut self) {
        self.epoch_changed = false;
    }

    /// Adds decisions of others: our pending ones are numbered after them.
    ///
    /// `from` is the position of the items of others, `count` their number. The engine's decisions about positions from
    /// there on are dropped, since other items are there now.
    pub(super) fn take_in(&mut self, theirs: &[Decision], durable: u64, from: usize, count: usize) {
        for decisions in self.by_layer.values_mut() {
            Arc::make_mut(decisions).retain(|decision| decision.number < durable);
        }
        theirs.iter().for_each(|decision| self.remember(decision));
        let durable = durable + theirs.len() as u64;
        let pending = std::mem::take(&mut self.pending);
        for mut decision in pending.into_iter().filter(|decision| count == 0 || !decision.action.reaches_behind(from)) {
            if decision.at > from {
                decision.at += count;
            }
            self.decide(decision, durable);
        }
    }

    /// Discards what is not durable; `durable` decisions are. If an epoch began, it is written with the next batch.
    pub(super) fn forget_pending(&mut self, durable: u64) {
        self.pending.clear();
        for decisions in self.by_layer.values_mut() {
            Arc::make_mut(decisions).retain(|decision| decision.number < durable);
        }
    }

    /// The thread was deleted: the decisions of layers must be written again.
    pub(super) fn start_over(&mut self) {
        let mut decisions: Vec<Decision> =
            self.by_layer.drain().flat_map(|(_, decisions)| (*decisions).clone()).collect();
        decisions.sort_by_key(|decision| decision.number);
        self.pending.clear();
        self.epoch_changed = true;
        for decision in decisions {
            self.decide(decision, 0);
        }
    }
}
