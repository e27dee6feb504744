//! What a user can do to a block of an active conversation.

use contexture::fold::Pins;
use contexture_gateway::watch::Controls;

use super::block::{Kind, Source};
use super::view::BlockText;

/// Pins or unpins a block. Returns whether the conversation is known.
pub fn pin(controls: &dyn Controls, conversation: &str, block: &BlockText, is_pinned: bool) -> bool {
    controls.change_pins(conversation, &|pins: Pins| match (block.kind, is_pinned) {
        (Kind::Call | Kind::Output, true) => pins.call(&block.call),
        (Kind::Call | Kind::Output, false) => pins.without_call(&block.call),
        (_, true) => pins.text(&block.text),
        (_, false) => pins.without_text(&block.text),
    })
}

/// Whether pinning a block has an effect: what is before the messages always stays, and what Contexture wrote is not
/// pinned.
pub fn can_pin(block: &BlockText) -> bool {
    !matches!(block.source, Source::System | Source::Tools | Source::Made) && block.kind != Kind::Thought
}
