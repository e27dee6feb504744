//! What a user can do to a block of an active conversation.

use contexture::fold::Pins;
use contexture_gateway::watch::Controls;

use super::block::{BlockKind, BlockSource};
use super::view::BlockText;

/// Pins or unpins a block. Returns whether the conversation is known.
pub fn pin(controls: &dyn Controls, conversation: &str, block: &BlockText, is_pinned: bool) -> bool {
    controls.change_pins(conversation, &|pins: Pins| match (block.kind, is_pinned) {
        (BlockKind::Call | BlockKind::Output, true) => pins.call(&block.call),
        (BlockKind::Call | BlockKind::Output, false) => pins.without_call(&block.call),
        (_, true) => pins.text(&block.text),
        (_, false) => pins.without_text(&block.text),
    })
}

/// Whether pinning a block has an effect: what is before the messages always stays, and what Contexture wrote is not
/// pinned.
pub fn can_pin(block: &BlockText) -> bool {
    !matches!(block.source, BlockSource::System | BlockSource::Tools | BlockSource::Made)
        && block.kind != BlockKind::Thought
}
