//! A conversation that passes through the gateway.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture::fold::{FoldDecision, Pins};
use contexture::wire::{Digest, Format};
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::known::Known;
use crate::live::{Live, Rested};
use crate::reading::Behind;
use crate::steps::PlanSteps;

/// Where conversations are looked for: their format, and how they begin.
pub type Key = Digest;

/// A conversation.
pub struct Conversation {
    /// What stays the same while it goes on.
    pub beginning: Beginning,
    state: Mutex<State>,
    /// Held for as long as something is decided; nothing waits for it without a limit.
    live: Mutex<Option<Live>>,
}

/// What changes while a conversation goes on.
#[derive(Clone, Default)]
pub struct State {
    /// The messages of the newest request.
    pub known: Vec<Known>,
    /// Counts how often they changed.
    pub generation: u64,
    /// How many messages each request had about which something could be decided.
    pub points: Vec<usize>,
    /// How its plan came about.
    pub steps: PlanSteps,
    /// What was decided, and before the request of how many messages.
    pub decisions: Vec<Decided>,
    /// What was billed.
    pub account: Account,
    /// Why nothing more is decided about it.
    pub stopped: Option<String>,
    /// What is sent behind messages that name files.
    pub behind: Behind,
    /// Its folder at rest, as it was some requests ago.
    pub rested: Option<Arc<Rested>>,
    /// What a person pinned in it.
    pub pins: Pins,
    /// The id of its newest answer, since this gateway runs.
    pub answer_id: Option<String>,
    /// How often something was decided about it.
    pub version: u64,
    /// What the version in the store is.
    pub saved_version: u64,
    /// How many changes of the plan are in the store.
    pub saved_steps: usize,
    /// How many decisions are in the store.
    pub saved_decisions: usize,
}

/// Something that was decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Decided {
    /// How many messages the request had before which it was decided.
    pub messages: usize,
    /// What was decided.
    pub decision: FoldDecision,
}

/// How a conversation begins.
pub struct Beginning {
    /// Its name.
    pub id: Arc<str>,
    /// Where it is looked for.
    pub key: Key,
    /// The client's session, by what identifies it.
    pub scope: Digest,
    /// The conversation that it branched off.
    pub parent: Option<Arc<str>>,
    /// How its requests are written.
    pub format: Format,
    /// How many messages at its start are instructions.
    pub lead: usize,
    /// Whether it passes as it is, for comparison.
    pub is_held_out: bool,
}

impl Conversation {
    /// A conversation with what is known of it.
    pub fn new(beginning: Beginning, state: State) -> Self {
        Self { beginning, state: Mutex::new(state), live: Mutex::new(None) }
    }

    /// Its name.
    pub fn id(&self) -> &Arc<str> {
        &self.beginning.id
    }

    /// What is known of it. Nobody holds this for long.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its folder, while nobody else has it. What a panic left behind is thrown away.
    pub fn live(&self) -> MutexGuard<'_, Option<Live>> {
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

    /// Puts its folder to rest; it is woken when it is needed.
    pub fn put_to_rest(&self) {
        let live = self.live.try_lock().ok().and_then(|mut live| live.take());
        if let Some(rested) = live.and_then(|live| live.rest()) {
            self.state().rested = Some(Arc::new(rested));
        }
    }

    /// Notes the folder as it is now, if nobody works with it and much has happened since that was last done. Returns
    /// whether it was noted.
    pub fn note_rest(&self, least_messages: usize) -> bool {
        let Ok(live) = self.live.try_lock() else { return false };
        let Some(live) = &*live else { return false };
        let noted = self.state().rested.as_ref().map_or(0, |rested| rested.messages);
        if live.messages() < noted + least_messages {
            return false;
        }
        let rested = live.rest().map(Arc::new);
        let is_noted = rested.is_some();
        self.state().rested = rested;
        is_noted
    }
}

impl State {
    /// Notes that all of it is in the store.
    pub fn note_saved(&mut self) {
        self.saved_version = self.version;
        (self.saved_steps, self.saved_decisions) = (self.steps.steps().len(), self.decisions.len());
    }

    /// Takes back what was decided about the request of so many messages, and stops deciding.
    pub fn take_back(&mut self, messages: usize, why: &str) {
        self.steps.take_back(messages);
        self.rested = None;
        self.decisions.retain(|decided| decided.messages < messages);
        self.stopped = Some(why.to_owned());
        self.saved_steps = self.saved_steps.min(self.steps.steps().len());
        self.saved_decisions = self.saved_decisions.min(self.decisions.len());
    }

    /// What a branch shares that goes on from the first messages: what was decided before.
    pub fn until(&self, messages: usize) -> Self {
        Self {
            known: self.known[..messages.min(self.known.len())].to_vec(),
            generation: 0,
            points: self.points.iter().copied().filter(|point| *point <= messages).collect(),
            steps: self.steps.until(messages),
            decisions: self.decisions.iter().filter(|decided| decided.messages <= messages).cloned().collect(),
            account: self.account.branch(),
            stopped: self.stopped.clone(),
            behind: self.behind.range(..messages).map(|(at, text)| (*at, text.clone())).collect(),
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
