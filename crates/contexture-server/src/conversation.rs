//! A conversation that passes through the gateway.

pub(crate) mod plan_history;
pub(crate) mod reading;
pub(crate) mod folder;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture::fold::{FoldDecision, Pins};
use contexture::wire::{Digest, Format};
use serde::{Deserialize, Serialize};

use crate::account::bill::Account;
use crate::account::record::DecidedNote;
use crate::conversation::folder::{ConversationFolder, FolderSnapshot};
use crate::conversation::plan_history::PlanHistory;
use crate::conversation::reading::Attached;
use crate::find::hashes::MessageHashes;

/// The key under which conversations are looked up: their format, and how they begin.
pub type ConversationKey = Digest;

/// A conversation.
pub struct Conversation {
    /// What does not change during the conversation.
    pub beginning: Beginning,
    state: Mutex<ConversationState>,
    /// Locked while a decision is made. Every wait for it has a timeout.
    live: Mutex<Option<ConversationFolder>>,
}

/// The part of a conversation that changes.
#[derive(Clone, Default)]
pub struct ConversationState {
    /// The messages of the newest request.
    pub known: Vec<MessageHashes>,
    /// How often the messages changed.
    pub generation: u64,
    /// The message count of each request that was sent, in order.
    pub points: Vec<usize>,
    /// The changes of its plan.
    pub steps: PlanHistory,
    /// The decisions, each with the message count of the request with which it took effect.
    pub decisions: Vec<DecisionEntry>,
    /// The bill.
    pub account: Account,
    /// Why no more decisions are made, if that is so.
    pub stopped: Option<String>,
    /// Whether the provider has refused a rewritten request and then accepted it as it came.
    pub is_refused: bool,
    /// How many requests in a row could not be written as decided.
    pub failures: u32,
    /// Decisions of an earlier request that take effect with this one, until they are on its record.
    pub adopted: Option<Adopted>,
    /// Texts that are sent after messages that name files.
    pub attached: Attached,
    /// Its folder as a snapshot, from some requests ago.
    pub rested: Option<Arc<FolderSnapshot>>,
    /// What a user pinned in it.
    pub pins: Pins,
    /// The id of its newest response since this gateway started.
    pub answer_id: Option<String>,
    /// How many times a decision was made about it.
    pub version: u64,
    /// The version in the store.
    pub saved_version: u64,
    /// How many plan changes are in the store.
    pub saved_steps: usize,
    /// How many decisions are in the store.
    pub saved_decisions: usize,
}

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
pub struct Adopted {
    /// The message count of that one.
    pub messages: usize,
    /// The decisions, in plain words.
    pub notes: Vec<DecidedNote>,
}

/// What identifies a conversation and does not change.
pub struct Beginning {
    /// Its name.
    pub id: Arc<str>,
    /// The key under which it is looked up.
    pub key: ConversationKey,
    /// A hash of the client's session.
    pub scope: Digest,
    /// The conversation that it branched off from.
    pub parent: Option<Arc<str>>,
    /// The format of its requests.
    pub format: Format,
    /// How many leading messages are instructions.
    pub lead: usize,
    /// Whether it is forwarded unchanged, for comparison.
    pub is_held_out: bool,
}

impl Conversation {
    /// Creates a conversation from its state.
    pub fn new(beginning: Beginning, state: ConversationState) -> Self {
        Self { beginning, state: Mutex::new(state), live: Mutex::new(None) }
    }

    /// Its name.
    pub fn id(&self) -> &Arc<str> {
        &self.beginning.id
    }

    /// Its state. The lock is only held briefly.
    pub fn state(&self) -> MutexGuard<'_, ConversationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its folder, if nothing else is using it. A folder that a panic left behind is discarded.
    pub fn live(&self) -> MutexGuard<'_, Option<ConversationFolder>> {
        self.live.lock().unwrap_or_else(|poisoned| {
            self.live.clear_poison();
            let mut live = poisoned.into_inner();
            *live = None;
            live
        })
    }

    /// Whether its folder is in memory.
    pub fn is_awake(&self) -> bool {
        self.live.try_lock().map_or(true, |live| live.is_some())
    }

    /// Replaces its folder with a snapshot, from which it is restored when needed.
    pub fn put_to_rest(&self) {
        let live = self.live.try_lock().ok().and_then(|mut live| live.take());
        if let Some(rested) = live.and_then(|live| live.rest()) {
            self.state().rested = Some(Arc::new(rested));
        }
    }

    /// Takes a snapshot of the folder if nothing else is using it and enough has happened since the last one. Returns
    /// whether it did.
    pub fn note_rest(&self, least_messages: usize) -> bool {
        let Ok(live) = self.live.try_lock() else { return false };
        let Some(live) = &*live else { return false };
        let noted = self.state().rested.as_ref().map_or(0, |rested| rested.messages);
        if live.messages() < noted + least_messages {
            return false;
        }
        let Some(rested) = live.rest() else { return false };
        self.state().rested = Some(Arc::new(rested));
        true
    }
}

impl ConversationState {
    /// Marks everything as written to the store.
    pub fn note_saved(&mut self) {
        self.saved_version = self.version;
        (self.saved_steps, self.saved_decisions) = (self.steps.steps().len(), self.decisions.len());
    }

    /// Notes that a request with this many messages is sent. Returns whether that is new.
    pub fn note_point(&mut self, messages: usize) -> bool {
        let Err(at) = self.points.binary_search(&messages) else { return false };
        self.points.insert(at, messages);
        self.version += 1;
        true
    }

    /// Reverts the decisions for requests with at least this many messages, and stops deciding.
    pub fn take_back(&mut self, messages: usize, why: &str) {
        self.steps.take_back(messages);
        (self.rested, self.adopted) = (None, None);
        self.decisions.retain(|decided| decided.messages < messages);
        self.stopped = Some(why.to_owned());
        self.saved_steps = self.saved_steps.min(self.steps.steps().len());
        self.saved_decisions = self.saved_decisions.min(self.decisions.len());
        self.version += 1;
    }

    /// The state of a branch that continues after the first messages: the decisions before it.
    pub fn until(&self, messages: usize) -> Self {
        Self {
            known: self.known[..messages.min(self.known.len())].to_vec(),
            generation: 0,
            points: self.points.iter().copied().filter(|point| *point <= messages).collect(),
            steps: self.steps.until(messages),
            decisions: self.decisions.iter().filter(|decided| decided.messages <= messages).cloned().collect(),
            account: self.account.branch(),
            stopped: self.stopped.clone(),
            is_refused: self.is_refused,
            failures: 0,
            adopted: None,
            attached: self.attached.range(..messages).map(|(at, text)| (*at, text.clone())).collect(),
            rested: self.rested.clone().filter(|rested| rested.messages <= messages),
            pins: self.pins.clone(),
            answer_id: None,
            version: 0,
            saved_version: 0,
            saved_steps: 0,
            saved_decisions: 0,
        }
    }
}
