//! What was decided about a conversation.

use std::sync::Arc;

use contexture::fold::{FoldDecision, Pins};
use contexture::wire::Plan;
use serde::{Deserialize, Serialize};

use super::folder::{FolderSnapshot, NewDecisions};
use super::plan_history::{PlanHistory, PlanStep};
use super::reading::Attached;
use crate::account::record::DecidedNote;

/// A decision with the request for which it was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecisionEntry {
    /// The message count of the request with which it took effect.
    pub messages: usize,
    /// The decision.
    pub decision: FoldDecision,
}

/// Decisions that were made too late for their own request, and take effect with another one.
#[derive(Clone, Debug)]
struct Adopted {
    /// The message count of that one.
    messages: usize,
    /// The decisions, in plain words.
    notes: Vec<DecidedNote>,
}

/// What was decided about a conversation, by the message counts of its requests.
#[derive(Clone, Default)]
pub(crate) struct Decisions {
    /// The message count of each request that was sent, in order.
    points: Vec<usize>,
    history: PlanHistory,
    entries: Vec<DecisionEntry>,
    /// Texts that are sent after messages that name files.
    attached: Attached,
    /// Decisions of an earlier request that take effect with this one, until they are on its record.
    adopted: Option<Adopted>,
    /// What a user pinned.
    pins: Pins,
    /// The folder, from some requests ago.
    snapshot: Option<Arc<FolderSnapshot>>,
}

impl Decisions {
    /// Decisions from a store.
    pub fn restored(points: Vec<usize>, steps: Vec<PlanStep>, entries: Vec<DecisionEntry>, attached: Attached) -> Self {
        Self { points, history: PlanHistory::of(steps), entries, attached, ..Self::default() }
    }

    /// Sets what a user pinned, and the snapshot of the folder.
    pub fn with_folder(self, pins: Pins, snapshot: Option<FolderSnapshot>) -> Self {
        Self { pins, snapshot: snapshot.map(Arc::new), ..self }
    }

    /// About how many bytes of memory they take.
    pub fn bytes(&self) -> usize {
        let snapshot = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.rest.as_bytes().len());
        let attached: usize = self.attached.values().map(|text| text.len()).sum();
        // Decisions have most of the texts of the plan too.
        snapshot + attached + 2 * self.history.bytes() + 8 * self.points.len()
    }

    /// The message count of each request that was sent, in order.
    pub fn points(&self) -> &[usize] {
        &self.points
    }

    /// The changes of the plan, oldest first.
    pub fn steps(&self) -> &[PlanStep] {
        self.history.steps()
    }

    /// The plan for a request with this many messages.
    pub fn plan_for(&self, messages: usize) -> Arc<Plan> {
        self.history.plan_for(messages)
    }

    /// The decisions, oldest first.
    pub fn entries(&self) -> &[DecisionEntry] {
        &self.entries
    }

    /// Texts that are sent after messages that name files.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// What a user pinned.
    pub fn pins(&self) -> &Pins {
        &self.pins
    }

    /// The folder, from some requests ago.
    pub fn snapshot(&self) -> Option<&Arc<FolderSnapshot>> {
        self.snapshot.as_ref()
    }

    /// Replaces the snapshot of the folder.
    pub fn set_snapshot(&mut self, snapshot: FolderSnapshot) {
        self.snapshot = Some(Arc::new(snapshot));
    }

    /// Drops the snapshot of the folder, which is of other items.
    pub(super) fn drop_snapshot(&mut self) {
        self.snapshot = None;
    }

    /// Changes what is pinned. The snapshot lacks the new pins, so it is dropped.
    pub fn change_pins(&mut self, change: impl FnOnce(Pins) -> Pins) {
        self.pins = change(std::mem::take(&mut self.pins));
        self.snapshot = None;
    }

    /// Notes that a request with this many messages is sent. Returns whether that is new.
    pub(super) fn note_point(&mut self, messages: usize) -> bool {
        let Err(at) = self.points.binary_search(&messages) else { return false };
        self.points.insert(at, messages);
        true
    }

    /// Forgets that requests with at least this many messages were sent.
    pub(super) fn forget_points(&mut self, messages: usize) {
        self.points.retain(|point| *point < messages);
    }

    /// Adds decisions about a request with this many messages.
    pub fn add(&mut self, messages: usize, new: NewDecisions) {
        self.attached.extend(new.named);
        self.history.push(messages, new.plan);
        self.entries.extend(new.decisions.into_iter().map(|decision| DecisionEntry { messages, decision }));
    }

    /// Sets the plan for requests with at least this many messages, without a decision.
    pub(super) fn set_plan(&mut self, messages: usize, plan: Plan) {
        self.history.push(messages, plan);
    }

    /// Keeps notes of decisions that take effect with a request with this many messages, for its record.
    pub fn adopt(&mut self, messages: usize, notes: Vec<DecidedNote>) {
        self.adopted = Some(Adopted { messages, notes });
    }

    /// Takes the notes that were kept for the record of a request with this many messages.
    pub fn take_adopted(&mut self, messages: usize) -> Vec<DecidedNote> {
        let adopted = self.adopted.take_if(|adopted| adopted.messages == messages);
        adopted.map(|adopted| adopted.notes).unwrap_or_default()
    }

    /// Reverts the decisions about requests with at least this many messages.
    pub(super) fn take_back(&mut self, messages: usize) {
        self.history.take_back(messages);
        (self.snapshot, self.adopted) = (None, None);
        self.entries.retain(|entry| entry.messages < messages);
    }

    /// The decisions about requests with up to this many messages, for a branch that continues after them.
    pub(super) fn until(&self, messages: usize) -> Self {
        Self {
            points: self.points.iter().copied().filter(|point| *point <= messages).collect(),
            history: self.history.until(messages),
            entries: self.entries.iter().filter(|entry| entry.messages <= messages).cloned().collect(),
            attached: self.attached.range(..messages).map(|(at, text)| (*at, text.clone())).collect(),
            adopted: None,
            pins: self.pins.clone(),
            snapshot: self.snapshot.clone().filter(|snapshot| snapshot.messages <= messages),
        }
    }
}
