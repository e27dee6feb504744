//! Makes a thread durable: items, states, decisions and the turn in one atomic batch.
//!
//! The head record of a thread counts what belongs to it and is the only record on which two writers conflict: a batch
//! expects the head it read. After a conflict the writer reads what the other wrote, appends its own items after it, and
//! retries. The outcome of a batch is known even if its result was lost: the head names the newest batch of each writer.

use std::sync::Arc;

use super::core::JournalPolicy;
use super::shared::SharedExecution;
use super::thread::{HeadNow, Thread};
use crate::error::Error;
use crate::state::{MAX_CONFLICTS, WRITE_ATTEMPTS, describe};
use crate::store::StoreError;

impl Thread {
    /// Makes everything so far durable in one batch.
    ///
    /// A failing store is retried with growing pauses; what could not be written is part of the next commit.
    pub(crate) async fn commit(&mut self, shared: &Arc<SharedExecution>) -> Result<(), Error> {
        let committed = self.commit_all(shared).await;
        self.set_durable(committed.is_ok());
        match committed {
            Err(StoreError::LeaseLost { .. }) => Err(Error::TakenOver),
            Err(source) if shared.core().settings.journal == JournalPolicy::Require => {
                Err(Error::Journal { thread: self.id().clone(), source })
            }
            _ if self.take_loss() => Err(Error::TakenOver),
            _ => Ok(()),
        }
    }

    /// Like [`commit`](Thread::commit), but failures are errors under any policy.
    pub(crate) async fn commit_all(&mut self, shared: &Arc<SharedExecution>) -> Result<(), StoreError> {
        let writer = shared.core().states.writer(shared.id());
        let _writing = match &writer {
            Some(writer) => Some(writer.lock().await),
            None => None,
        };
        let (mut failures, mut conflicts) = (0, 0);
        loop {
            let error = match self.try_commit(shared).await {
                Ok(()) => return Ok(()),
                Err(StoreError::Conflict { .. }) if conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    match self.rebase(shared).await {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Err(StoreError::LeaseLost { .. }) if conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    match shared.turn_lease().renew(shared.core()).await {
                        // It had expired and nobody else acquired it, so no other turn ran in the meantime.
                        Ok(()) => continue,
                        Err(lost @ StoreError::LeaseLost { .. }) => return Err(lost),
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if !worth_another_try(shared, &error, &mut failures).await {
                return Err(error);
            }
        }
    }

    /// Tries once. If dropped, it leaves only a batch with unknown outcome, which the next try recognises.
    async fn try_commit(&mut self, shared: &SharedExecution) -> Result<(), StoreError> {
        let (core, id) = (shared.core(), shared.id());
        let states = core.states.dirty(id);
        let (committed_batch, batch) = self.pending(core.counter.name(), &states);
        core.states.begin_write(id, &states);
        let version = core.store.apply(batch.fenced(shared.turn_lease().fence())).await?;
        core.states.mark_written(id, &states, version);
        core.states.set_log_pending(id, false);
        self.committed(&committed_batch, version);
        Ok(())
    }

    /// Reads what others wrote before a turn begins, and the turns that they left.
    ///
    /// A failing store is retried; a turn that is not durable yet can continue without it.
    pub(crate) async fn catch_up(&mut self, shared: &Arc<SharedExecution>) -> Result<(), Error> {
        let writer = shared.core().states.writer(shared.id());
        let _writing = match &writer {
            Some(writer) => Some(writer.lock().await),
            None => None,
        };
        let mut failures = 0;
        loop {
            let error = match self.try_catch_up(shared).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if worth_another_try(shared, &error, &mut failures).await {
                continue;
            }
            return match shared.core().settings.journal {
                JournalPolicy::Require => Err(Error::Journal { thread: self.id().clone(), source: error }),
                JournalPolicy::BestEffort => Ok(()),
            };
        }
    }

    async fn try_catch_up(&mut self, shared: &Arc<SharedExecution>) -> Result<(), StoreError> {
        let changes = self.read_changes(shared).await?;
        if matches!(changes, HeadNow::Same) {
            // States are also changed by other threads of the same user, and outside of turns.
            return reconcile_states(shared).await;
        }
        let turns = self.read_turns(shared).await?;
        let lost_turn = matches!(&changes, HeadNow::Moved(changes) if changes.has_lost_turn());
        self.apply_changes(shared, changes);
        self.adopt(&turns, lost_turn)?;
        // A state that cannot be read now is merged when it is written.
        reconcile_states(shared).await
    }

    /// Reads what is in the store now: our own batch whose result was lost, and what others wrote.
    ///
    /// Everything is read before anything changes, so that it can fail or be dropped at any point.
    async fn rebase(&mut self, shared: &Arc<SharedExecution>) -> Result<(), StoreError> {
        let changes = self.read_changes(shared).await?;
        self.apply_changes(shared, changes);
        reconcile_states(shared).await
    }

    fn apply_changes(&mut self, shared: &Arc<SharedExecution>, changes: HeadNow) {
        match changes {
            HeadNow::Same => {}
            HeadNow::Gone => self.start_over(),
            HeadNow::Moved(changes) => {
                if changes.has_our_batch() {
                    shared.core().states.mark_durable(shared.id());
                }
                if self.take_in(shared, *changes) > 0 {
                    let message = "another execution wrote to this thread; its items were put before ours";
                    shared.fault(None, "merge", message.to_owned());
                }
            }
        }
    }

    /// Another execution has taken over the turn: discards what is not durable of it.
    pub(crate) async fn lose_turn(&mut self, shared: &Arc<SharedExecution>) {
        self.forget_turn(shared);
        shared.core().states.discard(shared.id());
        if let Err(error) = reconcile_states(shared).await {
            // They are read again before they are written.
            shared.fault(None, "merge", describe(&error));
        }
    }
}

/// Reads what others made of the layers' states.
async fn reconcile_states(shared: &Arc<SharedExecution>) -> Result<(), StoreError> {
    for id in shared.core().states.reconcile_all(shared.id()).await? {
        if let Some(layer) = shared.roster().get(id.as_str()) {
            shared.refresh_later(layer);
        }
    }
    Ok(())
}

/// Reports a failure of the store and waits; `false` if there were too many failures.
pub(crate) async fn worth_another_try(shared: &SharedExecution, error: &StoreError, failures: &mut u32) -> bool {
    shared.fault(None, "persist", describe(error));
    *failures += 1;
    if *failures >= WRITE_ATTEMPTS {
        return false;
    }
    shared.core().states.pause(*failures - 1).await;
    true
}
