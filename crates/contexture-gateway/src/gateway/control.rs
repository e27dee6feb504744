//! Carries out what a user does to an active conversation.

use std::sync::Arc;

use contexture::fold::Pins;

use crate::decide::decider::Decider;
use crate::watch::Controls;
use crate::write::Store;

/// Changes the conversations of a gateway.
pub(crate) struct ConversationControls {
    decider: Arc<Decider>,
    store: Option<Arc<dyn Store>>,
}

impl ConversationControls {
    /// Creates controls for the conversations of a gateway.
    pub(crate) fn new(decider: Arc<Decider>, store: Option<Arc<dyn Store>>) -> Self {
        Self { decider, store }
    }
}

impl Controls for ConversationControls {
    fn set_folding(&self, conversation: &str, is_allowed: bool) -> Option<Option<String>> {
        let conversation = self.decider.conversation(conversation)?;
        let stopped = {
            let mut state = conversation.state();
            state.health_mut().allow(is_allowed);
            state.health().stopped().map(ToString::to_string)
        };
        self.decider.save(&conversation);
        Some(stopped)
    }

    fn change_pins(&self, conversation: &str, change: &dyn Fn(Pins) -> Pins) -> bool {
        let Some(conversation) = self.decider.conversation(conversation) else { return false };
        self.decider.pin(&conversation, change);
        true
    }

    fn forget(&self, conversation: &str) -> bool {
        let is_held = self.decider.forget(conversation);
        let store = self.store.as_ref();
        let is_stored = store.is_some_and(|store| store.forget(Some(conversation)).is_ok_and(|count| count > 0));
        is_held || is_stored
    }
}
