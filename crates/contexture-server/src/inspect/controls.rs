//! What a person may do to a conversation that goes on.

use std::sync::{Arc, Weak};

use contexture::fold::Pins;

use super::block::{Kind, Source};
use super::view::BlockText;
use crate::shared::Shared;

/// Why nothing more is folded when a person wants it so.
pub const STOPPED: &str = "no new folds: asked for in the inspector";

/// Acts on the conversations of a gateway.
pub struct Controls {
    /// The gateway holds the inspector, so the inspector only knows of it.
    shared: Weak<Shared>,
}

impl Controls {
    /// Acts on the conversations of a gateway.
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared) }
    }

    /// Has nothing more folded in a conversation, or lets it be folded again. Returns why nothing is folded from now on;
    /// nothing at all if the conversation is not known.
    pub fn set_folding(&self, conversation: &str, is_allowed: bool) -> Option<Option<String>> {
        let shared = self.shared.upgrade()?;
        let conversation = shared.decider.conversation(conversation)?;
        let stopped = {
            let mut state = conversation.state();
            match (is_allowed, state.stopped.as_deref()) {
                (false, None) => state.stopped = Some(STOPPED.to_owned()),
                (true, Some(STOPPED)) => state.stopped = None,
                // What stopped by itself had a reason, which still holds.
                _ => {}
            }
            state.stopped.clone()
        };
        shared.decider.save(&conversation);
        Some(stopped)
    }

    /// Pins a block, or lets it go. Returns whether the conversation is known.
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

    /// Forgets a conversation. Returns whether the gateway knew it.
    pub fn forget(&self, conversation: &str) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        let is_held = shared.decider.forget(conversation);
        let store = shared.store.as_ref();
        let is_stored = store.is_some_and(|store| store.forget(Some(conversation)).is_ok_and(|count| count > 0));
        is_held || is_stored
    }
}

/// Whether pinning a block can mean anything: what is before the messages always stays, and what Contexture wrote is
/// its own.
pub fn can_pin(block: &BlockText) -> bool {
    !matches!(block.source, Source::System | Source::Tools | Source::Made) && block.kind != Kind::Thought
}
