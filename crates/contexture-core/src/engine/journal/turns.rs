//! Who goes on with an unfinished turn.
//!
//! Every execution keeps the record of its unfinished turn under its own name, and only it writes there. Whoever
//! takes a turn over deletes that record in the batch that expects the head, so one of two who try it is late, and
//! sees it. An execution whose record is gone has lost its turn: it must not run its tools any more.

use std::sync::Arc;

use super::records::{Keys, decode_turn};
use crate::engine::execution::{INTERRUPTED, Run};
use crate::id::ExecutionId;
use crate::item::Item;
use crate::store::{StorageAdapter, StoreError, Version, unescape_segment};
use crate::turn::Turn;

/// What is known about the unfinished turns of a thread.
#[derive(Default)]
pub(super) struct Claims {
    /// Whether a record of our own turn is durable.
    pub(super) recorded: bool,
    /// Our own turn was closed since the last batch: it is no loss if someone else has closed it too.
    pub(super) closed: bool,
    /// Turns that others left, taken over with the next batch.
    pub(super) strays: Vec<Stray>,
    /// Someone else goes on with our turn.
    pub(super) taken_over: bool,
}

/// An unfinished turn of an execution that nobody runs, as far as we know.
#[derive(Clone)]
pub(super) struct Stray {
    pub(super) key: String,
    version: Option<Version>,
    turn: Turn,
    plan: Plan,
}

/// What becomes of a stray turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// Nothing yet.
    Undecided,
    /// It is our turn now.
    Resume,
    /// Its open calls were answered.
    Close,
}

/// The turns that nobody in this process runs, oldest first.
pub(super) async fn read_strays(
    store: &dyn StorageAdapter,
    keys: &Keys,
    is_live: &(dyn Fn(&ExecutionId) -> bool + Sync),
) -> Result<Vec<Stray>, StoreError> {
    let abandoned = |key: &String| {
        let execution = key.strip_prefix(&keys.turns).and_then(unescape_segment);
        execution.is_none_or(|execution| !is_live(&ExecutionId::from(execution)))
    };
    let turns: Vec<String> = store.list(&keys.turns).await?.into_iter().filter(abandoned).collect();
    let mut strays = Vec::new();
    for (key, record) in turns.iter().zip(store.get_many(&turns).await?) {
        let Some(record) = record else { continue };
        let turn = decode_turn(key, &record)?;
        strays.push(Stray { key: key.clone(), version: Some(record.version), turn, plan: Plan::Undecided });
    }
    strays.sort_by_key(|stray| stray.version);
    Ok(strays)
}

/// The same turns with the versions that their records have now.
pub(super) async fn read_again(store: &dyn StorageAdapter, strays: &[Stray]) -> Result<Vec<Stray>, StoreError> {
    let keys: Vec<String> = strays.iter().map(|stray| stray.key.clone()).collect();
    let records = if keys.is_empty() { Vec::new() } else { store.get_many(&keys).await? };
    let strays = strays.iter().zip(records);
    Ok(strays.map(|(stray, record)| Stray { version: record.map(|record| record.version), ..stray.clone() }).collect())
}

impl Stray {
    fn open_calls(&self) -> Vec<Box<str>> {
        self.turn.clone().finish().into_iter().map(|call| call.call_id).collect()
    }
}

impl Run {
    /// Takes up the turns that others left: the newest can be resumed.
    pub(super) fn adopt(&mut self, mut strays: Vec<Stray>) {
        if let Some(newest) = strays.last_mut() {
            newest.plan = Plan::Resume;
            self.turn = Some(newest.turn.clone());
        }
        self.journal.claims.strays = strays;
    }

    /// Answers the open calls of turns that nobody goes on with. Their records go with the next batch.
    pub(crate) fn close_stray_turns(&mut self) {
        let mut strays = std::mem::take(&mut self.journal.claims.strays);
        for stray in strays.iter_mut().filter(|stray| stray.plan == Plan::Undecided) {
            stray.plan = Plan::Close;
            self.answer_interrupted(&stray.open_calls());
        }
        self.journal.claims.strays = strays;
    }

    /// Answers what an interrupted turn left open, so that the log has no call without an output.
    pub(crate) fn close_unfinished_turn(&mut self) {
        self.close_stray_turns();
        self.journal.claims.taken_over = false;
        let Some(mut turn) = self.turn.take() else { return };
        let open: Vec<Box<str>> = turn.finish().into_iter().map(|call| call.call_id).collect();
        self.answer_interrupted(&open);
        self.journal.claims.recorded = false;
        self.journal.claims.closed = true;
        for stray in &mut self.journal.claims.strays {
            stray.plan = Plan::Close;
        }
    }

    fn answer_interrupted(&mut self, calls: &[Box<str>]) {
        self.append(calls.iter().map(|call_id| Arc::new(Item::error_output(call_id, INTERRUPTED))));
    }

    /// Whether turns of others would be taken over by the next batch.
    pub(crate) fn has_claims(&self) -> bool {
        !self.journal.claims.strays.is_empty()
    }

    /// Holds our claims against what others did meanwhile; answers the calls that their owners will answer.
    pub(super) fn review_claims(&mut self, current: Vec<Stray>, lost_turn: bool) -> Vec<Box<str>> {
        let known = std::mem::take(&mut self.journal.claims.strays);
        let mut abandoned = Vec::new();
        let mut lost = lost_turn;
        for (stray, now) in known.into_iter().zip(current) {
            if now.version == stray.version {
                self.journal.claims.strays.push(stray);
                continue;
            }
            lost |= stray.plan == Plan::Resume;
            if now.version.is_some() {
                // Its owner lives and goes on with it.
                abandoned.extend(stray.open_calls());
            }
        }
        if lost {
            self.turn = None;
            self.journal.claims.recorded = false;
            self.journal.claims.taken_over = true;
        }
        abandoned
    }
}
