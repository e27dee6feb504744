//! A conversation that passes through the gateway: what is known of it, and its folder.

pub(crate) mod hashes;
pub(crate) mod plan_history;
pub(crate) mod directory;
pub(crate) mod reading;
pub(crate) mod in_view;
pub(crate) mod folder;
pub(crate) mod seen;
pub(crate) mod decisions;
pub(crate) mod billed;
pub(crate) mod health;
pub(crate) mod stored;
pub(crate) mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture::wire::{Digest, Format};

use crate::account::signals::SignalReader;
use folder::ConversationFolder;
use state::ConversationState;

/// How many messages a folder has read at least of which a snapshot is kept in memory: fewer are soon read again.
const LEAST_MESSAGES: usize = 40;

/// The key under which conversations are looked up: their format, and how they begin.
pub type ConversationKey = Digest;

/// A conversation.
pub struct Conversation {
    beginning: Beginning,
    state: Mutex<ConversationState>,
    /// Locked while a decision is made. Every wait for it has a timeout. Most conversations are at rest, so there is no
    /// room for it in each.
    folder: Mutex<Option<Box<ConversationFolder>>>,
    /// What its user and its agent do when something is missing.
    signals: Mutex<SignalReader>,
}

/// What identifies a conversation and does not change.
#[derive(Clone, Debug)]
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
    pub(crate) fn new(beginning: Beginning, state: ConversationState) -> Self {
        Self { beginning, state: Mutex::new(state), folder: Mutex::new(None), signals: Mutex::default() }
    }

    /// What does not change during the conversation.
    pub(crate) fn beginning(&self) -> &Beginning {
        &self.beginning
    }

    /// Its name.
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.beginning.id
    }

    /// Its state. The lock is only held briefly.
    pub(crate) fn state(&self) -> MutexGuard<'_, ConversationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its signals of harm. The lock is held while new messages are read.
    pub(crate) fn signals(&self) -> MutexGuard<'_, SignalReader> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// About how many bytes of memory it takes, without its folder. One that is in use counts as small.
    pub(crate) fn bytes(&self) -> usize {
        self.state.try_lock().map_or(0, |state| state.bytes())
    }

    /// Its folder, if it is in memory. A folder that a panic left behind is discarded.
    pub(crate) fn folder(&self) -> MutexGuard<'_, Option<Box<ConversationFolder>>> {
        self.folder.lock().unwrap_or_else(|poisoned| {
            self.folder.clear_poison();
            let mut folder = poisoned.into_inner();
            *folder = None;
            folder
        })
    }

    /// Replaces its folder with a snapshot, from which it is restored when needed, and frees what else can be read again. Of
    /// a short conversation all of it is read again.
    ///
    /// Returns whether it did: while a decision is made it is needed.
    pub(crate) fn evict_folder(&self) -> bool {
        let Ok(mut held) = self.folder.try_lock() else { return false };
        let folder = held.take();
        drop(held);
        let folder = folder.filter(|folder| folder.messages() >= LEAST_MESSAGES);
        if let Some(snapshot) = folder.and_then(|folder| folder.snapshot()) {
            self.state().decisions_mut().set_snapshot(snapshot);
        }
        if let Ok(mut signals) = self.signals.try_lock() {
            signals.rest();
        }
        true
    }

    /// Takes a snapshot of the folder if nothing else is using it and enough has happened since the last one. Returns
    /// whether it did.
    pub(crate) fn take_snapshot(&self, least_messages: usize) -> bool {
        let Ok(folder) = self.folder.try_lock() else { return false };
        let Some(folder) = &*folder else { return false };
        let noted = self.state().decisions().snapshot().map_or(0, |snapshot| snapshot.messages);
        if folder.messages() < noted + least_messages {
            return false;
        }
        let Some(snapshot) = folder.snapshot() else { return false };
        self.state().decisions_mut().set_snapshot(snapshot);
        true
    }
}
