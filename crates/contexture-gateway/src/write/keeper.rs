//! Writes what was decided about conversations, before it is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use contexture::clock::Clock;
use contexture::fold::Pins;

use super::error::StoreError;
use super::saving::{KeptVersion, PendingWrite, Saving};
use super::store::Store;
use crate::conversation::Conversation;
use crate::conversation::state::ConversationState;

/// Messages between two snapshots of a folder, from which a restart resumes.
const MESSAGES_PER_SNAPSHOT: usize = 40;

/// How long a request waits for what it writes to a file, whatever its own limit is.
const FILE_PATIENCE: Duration = Duration::from_millis(100);

/// Writes conversations to a store, if there is one.
pub(crate) struct Keeper {
    store: Option<Arc<dyn Store>>,
    clock: Arc<dyn Clock>,
    /// Whether something was not begun to be written, because too much waited.
    is_owing: AtomicBool,
}

/// A write of a conversation that was begun.
pub(crate) struct Keeping {
    written: Option<PendingWrite>,
    kept: Option<KeptVersion>,
}

impl Keeping {
    /// What will be in the store.
    pub fn kept(&self) -> Option<KeptVersion> {
        self.kept.clone()
    }
}

impl Keeper {
    /// Writes to a store, or nothing.
    pub fn new(store: Option<Arc<dyn Store>>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, is_owing: AtomicBool::new(false) }
    }

    /// Whether there is a store.
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// How long a request waits for the store, however long that takes otherwise.
    pub fn patience(&self) -> Option<Duration> {
        self.store.as_ref().and_then(|store| store.patience())
    }

    /// The time, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.clock.now().as_millis() as u64
    }

    /// Begins to write what is new about a conversation, with the whole of texts that its decisions shorten.
    pub fn begin(
        &self,
        conversation: &Conversation,
        state: &ConversationState,
        texts: Vec<(String, String)>,
    ) -> Keeping {
        let Some(store) = &self.store else { return Keeping { written: None, kept: None } };
        let stored = state.stored();
        let kept = Some(KeptVersion::of(state));
        if stored.mark().is_unsearched() {
            // Other gateways go on with the one that the store has, if it has one.
            return Keeping { written: Some(PendingWrite::failed(StoreError::Away)), kept };
        }
        let written = match Saving::new(conversation.beginning(), state, texts, self.now_ms()) {
            Ok(saving) => store.save(saving),
            Err(error) => PendingWrite::failed(error),
        };
        if !store.has_room() {
            // It may be one for which there was none.
            self.is_owing.store(true, Ordering::Relaxed);
        }
        Keeping { written: Some(written), kept }
    }

    /// Waits until something is written: in a file until the time of the request is up, in a shared database for longer,
    /// because other gateways go by it. What is not written by then is written later.
    ///
    /// # Errors
    /// It was not written in time, or another gateway continued the conversation.
    pub fn wait(&self, keeping: &Keeping, conversation: &Conversation, until: Instant) -> Result<(), StoreError> {
        let Some(written) = &keeping.written else { return Ok(()) };
        let now = Instant::now();
        let until = self.patience().map_or_else(|| until.min(now + FILE_PATIENCE), |patience| now + patience);
        match written.wait(until) {
            Err(StoreError::Gone) => {
                let again = self.begin(conversation, &conversation.state(), Vec::new());
                again.written.map_or(Ok(()), |written| written.wait(until))
            }
            outcome => outcome,
        }
    }

    /// Notes that a request with this many messages is sent with the earlier decisions, and begins to write that.
    pub fn note_point(&self, conversation: &Conversation, messages: usize) -> Keeping {
        let mut state = conversation.state();
        match state.note_point(messages) || self.is_behind(&state) {
            true if self.has_room() => self.begin(conversation, &state, Vec::new()),
            true => self.refuse(&state),
            false => Keeping { written: None, kept: None },
        }
    }

    /// Whether the store keeps up with what is written. While it does not, nothing new is decided.
    pub fn has_room(&self) -> bool {
        self.store.as_ref().is_none_or(|store| store.has_room())
    }

    /// A write that is not begun, because too much waits already. It is begun when there is room.
    fn refuse(&self, state: &ConversationState) -> Keeping {
        self.is_owing.store(true, Ordering::Relaxed);
        Keeping { written: Some(PendingWrite::failed(StoreError::Full)), kept: Some(KeptVersion::of(state)) }
    }

    /// Begins to write those of these conversations that are not in the store as they are, if there was no room for that
    /// before and nothing waits now.
    pub fn catch_up(&self, conversations: impl FnOnce() -> Vec<Arc<Conversation>>) {
        let is_idle = self.store.as_ref().is_some_and(|store| store.waiting_bytes() == 0);
        if !is_idle || !self.is_owing.swap(false, Ordering::Relaxed) {
            return;
        }
        self.save_all(conversations());
    }

    /// Begins to write those of these conversations that are not in the store as they are, as far as there is room.
    pub fn save_all(&self, conversations: Vec<Arc<Conversation>>) {
        for conversation in conversations {
            let state = conversation.state();
            if !self.is_behind(&state) || state.stored().mark().is_unsearched() {
                continue;
            }
            if !self.has_room() {
                self.is_owing.store(true, Ordering::Relaxed);
                return;
            }
            // What cannot be written now is written with its next request.
            let _ = self.begin(&conversation, &state, Vec::new());
        }
    }

    /// Whether something about a conversation is not in the store, although there is one.
    pub fn is_behind(&self, state: &ConversationState) -> bool {
        self.store.is_some() && state.stored().is_behind()
    }

    /// Whether another gateway has written to a conversation since this one did.
    pub fn is_overtaken(&self, conversation: &Conversation) -> bool {
        let Some(store) = &self.store else { return false };
        let saved = conversation.state().stored().saved();
        let written = store.version(conversation.id()).ok().flatten();
        // What this gateway itself is writing may be there already, but not yet known to be.
        written.is_some_and(|version| version < saved || version > conversation.state().stored().version())
    }

    /// Writes a conversation after a response. Nothing waits for it.
    pub fn save(&self, conversation: &Conversation) {
        let Some(store) = self.store.as_ref().filter(|_| !conversation.state().stored().mark().is_unsearched()) else {
            return;
        };
        if !self.has_room() {
            self.is_owing.store(true, Ordering::Relaxed);
            return;
        }
        let has_new = conversation.take_snapshot(MESSAGES_PER_SNAPSHOT);
        let snapshot = conversation.state().decisions().snapshot().filter(|_| has_new).cloned();
        if let Some(snapshot) = snapshot {
            store.save_snapshot(conversation, &snapshot);
        }
        // What cannot be written now is written with the next decision.
        let _ = self.begin(conversation, &conversation.state(), Vec::new());
    }

    /// Writes what is pinned in a conversation.
    pub fn save_pins(&self, conversation: &Conversation, pins: &Pins) {
        if let Some(store) = &self.store {
            // Pins that cannot be written stay in effect for as long as the gateway runs.
            let _ = store.save_pins(conversation.id(), pins);
        }
    }
}
