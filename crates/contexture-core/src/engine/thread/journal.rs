//! How much of a thread is durable, and what the next batch expects and writes.

use std::sync::Arc;

use super::decisions::ThreadDecisions;
use super::records::{CommittedBatch, Keys, LogRecord, ThreadHead, ThreadSize, encode_decision, encode_epoch};
use crate::decision::Decision;
use crate::id::{ExecutionId, LayerId, ThreadId};
use crate::log::ItemLog;
use crate::store::{Batch, Version};
use crate::window::Epoch;

/// How much of a thread is durable, and what is pending.
pub(super) struct Journal {
    keys: Keys,
    execution: ExecutionId,
    /// The version of the head that the next batch expects.
    version: Option<Version>,
    /// How much of the thread is durable, as far as this execution has read it.
    size: ThreadSize,
    /// The newest batch of each other writer, according to the head.
    others: Vec<CommittedBatch>,
    /// Counts our batches, so that one whose result was lost is recognised.
    commits: u64,
    decisions: ThreadDecisions,
}

impl Journal {
    pub(super) fn new(thread: &ThreadId, execution: &ExecutionId) -> Self {
        Self {
            keys: Keys::new(thread, execution),
            execution: execution.clone(),
            version: None,
            size: ThreadSize::default(),
            others: Vec::new(),
            commits: 0,
            decisions: ThreadDecisions::default(),
        }
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(super) fn version(&self) -> Option<Version> {
        self.version
    }

    pub(super) fn size(&self) -> ThreadSize {
        self.size
    }

    pub(super) fn others(&self) -> &[CommittedBatch] {
        &self.others
    }

    /// A layer's decisions in this thread.
    pub(super) fn decisions_of(&self, layer: &LayerId) -> Arc<Vec<Decision>> {
        self.decisions.of(layer)
    }

    /// Numbers a decision and keeps it for the next batch.
    pub(super) fn decide(&mut self, decision: Decision) -> &Decision {
        self.decisions.decide(decision, self.size.decisions)
    }

    /// The size of the thread after the next batch.
    pub(super) fn committed_batch(&self, log_len: usize, turn: bool) -> CommittedBatch {
        let size = ThreadSize {
            items: log_len,
            records: self.size.records + u64::from(log_len > self.size.items),
            decisions: self.decisions.total(self.size.decisions),
        };
        CommittedBatch { execution: self.execution.clone(), commit: self.commits, size, turn }
    }

    /// Our newest batch, if the head says that it is durable.
    pub(super) fn our_batch_in<'a>(&self, head: &'a ThreadHead) -> Option<&'a CommittedBatch> {
        head.batch_of(&self.execution, self.commits)
    }

    /// The head, the items, the decisions and the epoch, as far as they are not durable yet.
    pub(super) fn batch(&self, head: &ThreadHead, log: &ItemLog, counter: &str, epoch: Option<&Epoch>) -> Batch {
        let keys = &self.keys;
        let mut batch = Batch::new().expect(keys.head.clone(), self.version).set(keys.head.clone(), head.encode());
        if log.len() > self.size.items {
            let entries: Vec<_> = log.range(self.size.items..log.len()).map(|(_, entry)| entry).collect();
            batch = batch.set(keys.log_record(self.size.records), LogRecord::new(counter, &entries).encode());
        }
        for decision in self.decisions.pending() {
            batch = batch.set(keys.decision(decision.number), encode_decision(decision));
        }
        match epoch.filter(|_| self.decisions.epoch_changed()) {
            Some(epoch) => batch.set(keys.epoch.clone(), encode_epoch(epoch)),
            None => batch,
        }
    }

    /// A batch of ours is durable.
    pub(super) fn batch_committed(&mut self, committed_batch: &CommittedBatch) {
        self.decisions.batch_committed(committed_batch.size.decisions.saturating_sub(self.size.decisions) as usize);
        self.size = committed_batch.size;
        self.commits += 1;
    }

    /// Our newest batch is durable, with everything up to now.
    pub(super) fn committed(&mut self, committed_batch: &CommittedBatch, version: Version) {
        self.batch_committed(committed_batch);
        self.version = Some(version);
        self.decisions.epoch_written();
    }

    /// Applies what was read when the thread was opened.
    pub(super) fn restore(&mut self, head: &ThreadHead, version: Version, decisions: &[Decision]) {
        self.version = Some(version);
        self.others = head.others_than(&self.execution);
        decisions.iter().for_each(|decision| self.decisions.remember(decision));
        self.size = head.last.size;
    }

    /// Adds what others wrote: `count` items from position `from` on, and decisions.
    pub(super) fn take_in(
        &mut self,
        head: &ThreadHead,
        version: Version,
        decisions: &[Decision],
        from: usize,
        count: usize,
    ) {
        self.decisions.take_in(decisions, self.size.decisions, from, count);
        self.size = head.last.size;
        self.others = head.others_than(&self.execution);
        self.version = Some(version);
    }

    /// Discards what is not durable.
    pub(super) fn forget_pending(&mut self) {
        self.decisions.forget_pending(self.size.decisions);
    }

    /// The thread was deleted: everything that is known about it must be written again.
    pub(super) fn start_over(&mut self) {
        (self.version, self.size) = (None, ThreadSize::default());
        self.others.clear();
        self.decisions.start_over();
    }
}
