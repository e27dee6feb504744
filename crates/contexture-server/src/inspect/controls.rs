//! What a user can do to an active conversation.

use std::sync::{Arc, Weak};

use contexture::fold::Pins;

use super::block::{Kind, Source};
use super::view::BlockText;
use crate::shared::Shared;

/// The reason shown when a user has stopped folding.
pub const STOPPED: &str = "no new folds: asked for in the inspector";

/// Changes the conversations of a gateway.
pub struct Controls {
    /// Weak, because the gateway owns the inspector.
    shared: Weak<Shared>,
}

impl Controls {
    /// Creates controls for a gateway.
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared) }
    }

    /// Stops folding in a conversation, or allows it again. Returns the reason why folding is now stopped, if it is;
    /// the outer `None` means that the conversation is unknown.
    pub fn set_folding(&self, conversation: &str, is_allowed: bool) -> Option<Option<String>> {
        let shared = self.shared.upgrade()?;
        let conversation = shared.decider.conversation(conversation)?;
        let stopped = {
            let mut state = conversation.state();
            match (is_allowed, state.stopped.as_deref()) {
                (false, None) => state.stopped = Some(STOPPED.to_owned()),
                (true, Some(STOPPED)) => state.stopped = None,
                // Folding that stopped for another reason stays stopped.
                _ => {}
            }
            state.stopped.clone()
        };
        shared.decider.save(&conversation);
        Some(stopped)
    }

    /// Pins or unpins a block. Returns whether the conversation is known.
    pub fn pin(&self, conversation: &str, block: &BlockText, is_pinned: bool) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        let Some(conversation) = shared.decider.conversation(conversation) else { return false };
        let change = |pins: Pins| match (block.kind, is_pinned) {
            (Kind::Call | Kind::Output, true) => pins.call(&block.call),
            (Kind::Call | Kind::Output, false) => pins.without_call(&block.call),
            (_, true) => pins.text(&block.text),
            (_, false) => pins.without_text(&block.text),
        };
        shared.decider.pin(&conversation, change);
        true
    }

    /// Deletes a conversation. Returns whether the gateway knew it.
    pub fn forget(&self, conversation: &str) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        let is_held = shared.decider.forget(conversation);
        let store = shared.store.as_ref();
        let is_stored = store.is_some_and(|store| store.forget(Some(conversation)).is_ok_and(|count| count > 0));
        is_held || is_stored
    }
}

/// Whether pinning a block has an effect: what is before the messages always stays, and what Contexture wrote is not
/// pinned.
pub fn can_pin(block: &BlockText) -> bool {
    !matches!(block.source, Source::System | Source::Tools | Source::Made) && block.kind != Kind::Thought
}
