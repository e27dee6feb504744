//! Whether a client asks the model to summarise the conversation.

use contexture::item::{Item, Role};
use contexture::wire::{Request, read};

/// Phrases by which clients ask a model to summarise the conversation. No new decisions are made for such a request.
const COMPACTION_WORDS: &[&str] = &[
    "Your task is to create a detailed summary of the conversation so far",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "Provide a detailed prompt for continuing our conversation above",
    "<state_snapshot>",
];

/// Whether the client asks the model to summarise the conversation.
pub fn is_compaction(request: &Request<'_>) -> bool {
    let asks = |text: &str| COMPACTION_WORDS.iter().any(|words| text.contains(words));
    // Outputs of tools may contain the same words.
    let is_asked = |item: &Item| {
        item.as_message().is_some_and(|message| message.role != Role::Assistant && asks(&message.text_cow()))
    };
    let Some(last) = request.messages().last().filter(|_| request.messages().len() > 1) else { return false };
    let in_words =
        || read(request.format(), last, None).is_ok_and(|units| units.iter().any(|unit| is_asked(&unit.item)));
    request.asks_for_compaction() || (asks(last.get()) && in_words())
}
