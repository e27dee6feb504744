//! Whether a client asks the model to summarise the conversation.

use contexture::item::{Item, Role};
use contexture::wire::{Request, read};

/// How many messages at the end are looked at.
const MAX_AFTER: usize = 8;

/// Phrases by which clients ask a model to summarise the conversation. No new decisions are made for such a request.
const COMPACTION_WORDS: &[&str] = &[
    "Your task is to create a detailed summary of the conversation so far",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "Provide a detailed prompt for continuing our conversation above",
    "<state_snapshot>",
    // Claude Code, when it keeps the newest messages, and when it summarises what came before.
    "Your task is to create a detailed summary of the RECENT portion of the conversation",
    "Your task is to create a detailed summary of this conversation",
    // pi.
    "Create a structured context checkpoint summary",
    // Kimi CLI.
    "You are tasked with compacting a coding conversation context",
    // goose.
    "An llm context limit was reached when a user was in a working session with an agent",
    // OpenHands.
    "You are maintaining a context-aware state summary for an interactive agent",
    // Crush.
    "You are summarizing a conversation to preserve context for continuing work later",
    // Cline.
    "The current conversation is rapidly running out of context",
];

/// Where the client asks the model to summarise the conversation, if it does: the first message that asks for it. It may
/// be followed by reminders, and be beside an output.
pub fn compaction(request: &Request<'_>) -> Option<usize> {
    let asks = |text: &str| COMPACTION_WORDS.iter().any(|words| text.contains(words));
    // Outputs of tools may contain the same words.
    let is_asked = |item: &Item| {
        item.as_message().is_some_and(|message| message.role != Role::Assistant && asks(&message.text_cow()))
    };
    let messages = request.messages();
    if request.asks_for_compaction() {
        return messages.len().checked_sub(1);
    }
    let units = |at: usize| read(request.format(), messages[at], None).unwrap_or_default();
    let is_of_model = |at: usize| units(at).first().is_some_and(|unit| unit.item.is_of_model());
    // What is said after the newest response of the model. A conversation of one message is no conversation.
    let newest = (1..messages.len()).rev().take(MAX_AFTER).take_while(|at| !is_of_model(*at));
    let asks_at = |at: &usize| asks(messages[*at].get()) && units(*at).iter().any(|unit| is_asked(&unit.item));
    newest.filter(asks_at).last()
}
