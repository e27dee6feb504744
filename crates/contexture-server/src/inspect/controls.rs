//! What a user can do to an active conversation.

use std::sync::Arc;

use contexture::fold::Pins;

use super::block::{Kind, Source};
use super::view::BlockText;
use crate::decide::decider::Decider;
use crate::write::Store;

/// Changes the conversations of a gateway.
pub struct Controls {
    decider: Arc<Decider>,
    store: Option<Arc<dyn Store>>,
}

impl Controls {
    /// Creates controls for the conversations of a gateway.
    pub(crate) fn new(decider: Arc<Decider>, store: Option<Arc<dyn Store>>) -> Self {
        Self { decider, store }
    }

    /// Stops folding in a conversation, or allows it again. Returns the reason why folding is now stopped, if it is;
    /// the outer `None` means that the conversation is unknown.
    pub fn set_folding(&self, conversation: &str, is_allowed: bool) -> Option<Option<String>> {
        let conversation = self.decider.conversation(conversation)?;
        let stopped = {
            let mut state = conversation.state();
            state.health_mut().allow(is_allowed);
            state.health().stopped().map(ToString::to_string)
        };
        self.decider.save(&conversation);
        Some(stopped)
    }

    /// Pins or unpins a block. Returns whether the conversation is known.
    pub fn pin(&self, conversation: &str, block: &BlockText, is_pinned: bool) -> bool {
        let Some(conversation) = self.decider.conversation(conversation) else { return false };
        let change = |pins: Pins| match (block.kind, is_pinned) {
            (Kind::Call | Kind::Output, true) => pins.call(&block.call),
            (Kind::Call | Kind::Output, false) => pins.without_call(&block.call),
            (_, true) => pins.text(&block.text),
            (_, false) => pins.without_text(&block.text),
        };
        self.decider.pin(&conversation, change);
        true
    }

    /// Deletes a conversation. Returns whether the gateway knew it.
    pub fn forget(&self, conversation: &str) -> bool {
        let is_held = self.decider.forget(conversation);
        let store = self.store.as_ref();
        let is_stored = store.is_some_and(|store| store.forget(Some(conversation)).is_ok_and(|count| count > 0));
        is_held || is_stored
    }
}

/// Whether pinning a block has an effect: what is before the messages always stays, and what Contexture wrote is not
/// pinned.
pub fn can_pin(block: &BlockText) -> bool {
    !matches!(block.source, Source::System | Source::Tools | Source::Made) && block.kind != Kind::Thought
}
