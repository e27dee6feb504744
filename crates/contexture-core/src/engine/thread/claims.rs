//! Which execution owns an unfinished turn.
//!
//! Every execution stores the record of its unfinished turn under its own id, and only it writes there. An execution
//! that takes over a turn deletes that record in the batch that expects the head, so of two that try, one gets a
//! conflict. An execution whose record is missing has lost its turn: it must not run its tools any more.

use super::records::CommittedBatch;
use crate::store::{Batch, Version};
use crate::turn::Turn;

/// What is known about the unfinished turns of a thread.
#[derive(Default)]
pub(super) struct Claims {
    /// Whether a record of our own turn is durable.
    recorded: bool,
    /// Our own turn was closed since the last batch: it does not matter if another execution has closed it too.
    closed: bool,
    /// Turns that others left, taken over with the next batch.
    abandoned_turns: Vec<AbandonedTurn>,
    /// Another execution has taken over our turn.
    taken_over: bool,
}

/// An unfinished turn whose execution has probably ended.
#[derive(Clone)]
pub(super) struct AbandonedTurn {
    key: String,
    version: Option<Version>,
    turn: Turn,
    plan: TurnRecovery,
}

/// What we do with an abandoned turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnRecovery {
    /// Nothing yet.
    Undecided,
    /// We have resumed it.
    Resume,
    /// We have closed it.
    Close,
}

/// The result of comparing our claims with what others did in the meantime.
pub(super) struct Review {
    /// The calls whose owners are still running.
    pub(super) owned_calls: Vec<Box<str>>,
    /// Whether another execution has taken over our turn.
    pub(super) lost_turn: bool,
}

impl AbandonedTurn {
    pub(super) fn new(key: String, version: Version, turn: Turn) -> Self {
        Self { key, version: Some(version), turn, plan: TurnRecovery::Undecided }
    }

    /// The same turn with the current version of its record.
    pub(super) fn at(&self, version: Option<Version>) -> Self {
        Self { version, ..self.clone() }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn version(&self) -> Option<Version> {
        self.version
    }

    fn open_calls(&self) -> Vec<Box<str>> {
        open_calls(&mut self.turn.clone())
    }
}

/// Ends a turn; returns the calls that have no output yet.
pub(super) fn open_calls(turn: &mut Turn) -> Vec<Box<str>> {
    turn.finish().into_iter().map(|call| call.call_id).collect()
}

impl Claims {
    /// Adopts the turns that others left; returns the newest, which can be resumed.
    pub(super) fn adopt(&mut self, mut abandoned_turns: Vec<AbandonedTurn>) -> Option<Turn> {
        let newest = abandoned_turns.last_mut().map(|newest| {
            newest.plan = TurnRecovery::Resume;
            newest.turn.clone()
        });
        self.abandoned_turns = abandoned_turns;
        newest
    }

    /// Adopts turns that others left since; returns the newest if `resume` is set.
    pub(super) fn adopt_new(&mut self, mut found: Vec<AbandonedTurn>, resume: bool) -> Option<Turn> {
        found.retain(|abandoned| !self.abandoned_turns.iter().any(|known| known.key == abandoned.key));
        let newest = found.last_mut().filter(|_| resume).map(|newest| {
            newest.plan = TurnRecovery::Resume;
            newest.turn.clone()
        });
        self.abandoned_turns.append(&mut found);
        newest
    }

    /// Closes the abandoned turns; returns their open calls. Their records are deleted with the next batch.
    pub(super) fn close_strays(&mut self) -> Vec<Box<str>> {
        let mut open = Vec::new();
        for abandoned in self.abandoned_turns.iter_mut().filter(|abandoned| abandoned.plan == TurnRecovery::Undecided) {
            abandoned.plan = TurnRecovery::Close;
            open.extend(abandoned.open_calls());
        }
        open
    }

    /// Our own turn is closed, and with it the one that it was resumed from.
    pub(super) fn close_own(&mut self) {
        self.recorded = false;
        self.closed = true;
        for abandoned in &mut self.abandoned_turns {
            abandoned.plan = TurnRecovery::Close;
        }
    }

    /// Whether another execution has taken over our turn. Returns `true` only once.
    pub(super) fn take_loss(&mut self) -> bool {
        std::mem::take(&mut self.taken_over)
    }

    /// Turns of others that the next batch takes over.
    pub(super) fn abandoned_turns(&self) -> &[AbandonedTurn] {
        &self.abandoned_turns
    }

    /// Adds taking over the turns of others to a batch.
    pub(super) fn add_to(&self, batch: Batch) -> Batch {
        self.abandoned_turns.iter().fold(batch, |batch, abandoned| batch.delete(abandoned.key.clone()))
    }

    /// Whether a record of our own turn is durable, given that this batch of ours is.
    pub(super) fn is_recorded(&self, committed_batch: Option<&CommittedBatch>) -> bool {
        committed_batch.map_or(self.recorded, |committed_batch| committed_batch.turn && !self.closed)
    }

    /// A batch of ours is durable.
    pub(super) fn batch_committed(&mut self, committed_batch: &CommittedBatch) {
        self.recorded = self.is_recorded(Some(committed_batch));
        self.abandoned_turns.clear();
    }

    /// The newest batch of ours is durable, with everything up to now.
    pub(super) fn committed(&mut self, committed_batch: &CommittedBatch) {
        self.closed = false;
        self.batch_committed(committed_batch);
    }

    /// Compares our claims with what others did in the meantime; `current` has the current abandoned turns.
    pub(super) fn review(&mut self, current: Vec<AbandonedTurn>, lost_turn: bool) -> Review {
        let mut review = Review { owned_calls: Vec::new(), lost_turn };
        for (abandoned, now) in std::mem::take(&mut self.abandoned_turns).into_iter().zip(current) {
            if now.version == abandoned.version {
                self.abandoned_turns.push(abandoned);
                continue;
            }
            review.lost_turn |= abandoned.plan == TurnRecovery::Resume;
            if now.version.is_some() {
                // Its owner is running and continues it.
                review.owned_calls.extend(abandoned.open_calls());
            }
        }
        if review.lost_turn {
            self.recorded = false;
            self.taken_over = true;
        }
        review
    }
}
