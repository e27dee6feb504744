//! Writes what was decided about conversations, before it is sent.

use std::sync::Arc;

use contexture::clock::Clock;
use contexture::fold::Pins;

use super::error::StoreError;
use super::store::Store;
use crate::conversation::Conversation;
use crate::conversation::state::ConversationState;

/// Messages between two snapshots of a folder, from which a restart resumes.
const MESSAGES_PER_SNAPSHOT: usize = 40;

/// Writes conversations to a store, if there is one.
pub struct Keeper {
    store: Option<Arc<dyn Store>>,
    clock: Arc<dyn Clock>,
}

impl Keeper {
    /// Writes to a store, or nothing.
    pub fn new(store: Option<Arc<dyn Store>>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Whether there is a store.
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// The time, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        self.clock.now().as_millis() as u64
    }

    /// Writes the decisions of a conversation, with the whole of texts that they shorten.
    ///
    /// # Errors
    /// It could not be written, or another gateway continued the conversation.
    pub fn write(
        &self,
        conversation: &Conversation,
        state: &mut ConversationState,
        texts: &[(String, String)],
    ) -> Result<(), StoreError> {
        let Some(store) = &self.store else { return Ok(()) };
        store.save(conversation, state, texts, self.now_ms())?;
        state.note_saved();
        Ok(())
    }

    /// Notes that a request with this many messages is sent with the earlier decisions.
    ///
    /// # Errors
    /// It could not be written, or another gateway continued the conversation.
    pub fn note_point(&self, conversation: &Conversation, messages: usize) -> Result<(), StoreError> {
        let mut state = conversation.state();
        match state.note_point(messages) {
            true => self.write(conversation, &mut state, &[]),
            false => Ok(()),
        }
    }

    /// Whether something about a conversation is not in the store, although there is one.
    pub fn is_behind(&self, state: &ConversationState) -> bool {
        self.store.is_some() && state.stored().is_behind()
    }

    /// Whether another gateway has written to a conversation since this one did.
    pub fn is_overtaken(&self, conversation: &Conversation, state: &ConversationState) -> bool {
        let written = self.store.as_ref().and_then(|store| store.version(conversation.id()).ok().flatten());
        written.is_some_and(|version| version != state.stored().saved())
    }

    /// Writes a conversation after a response. Nothing waits for it.
    pub fn save(&self, conversation: &Conversation) {
        let Some(store) = &self.store else { return };
        let has_new = conversation.take_snapshot(MESSAGES_PER_SNAPSHOT);
        let snapshot = conversation.state().decisions().snapshot().filter(|_| has_new).cloned();
        if let Some(snapshot) = snapshot {
            // If this fails, the conversation is replayed after a restart.
            let _ = store.save_snapshot(conversation, &snapshot);
        }
        // What cannot be written now is written with the next decision.
        let _ = self.write(conversation, &mut conversation.state(), &[]);
    }

    /// Writes what is pinned in a conversation.
    pub fn save_pins(&self, conversation: &Conversation, pins: &Pins) {
        if let Some(store) = &self.store {
            // Pins that cannot be written stay in effect for as long as the gateway runs.
            let _ = store.save_pins(conversation.id(), pins);
        }
    }
}
