//! Items as the folder sees them, and what it shows as items.

use std::collections::HashMap;
use std::sync::Arc;

use contexture_core::history::{History, Part};
use contexture_core::item::{Item, Role as ItemRole};

use crate::fold::Slot;
use crate::transcript::{Message, Role, ToolCall};

/// An item as the folder sees it; every item is one message, so that positions agree.
pub(super) fn message_of(item: &Item) -> Message {
    match item {
        Item::Message(message) => {
            let role = match message.role {
                ItemRole::System | ItemRole::Developer => Role::System,
                ItemRole::User => Role::User,
                ItemRole::Assistant => Role::Assistant,
            };
            Message::said(role, message.text())
        }
        Item::FunctionCall(call) => Message {
            tool_calls: vec![ToolCall {
                id: call.call_id.to_string(),
                name: call.name.to_string(),
                arguments: serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into()),
            }],
            ..Message::said(Role::Assistant, String::new())
        },
        Item::FunctionCallOutput(output) => Message {
            tool_call_id: Some(output.call_id.to_string()),
            ..Message::said(Role::Tool, output.output.clone())
        },
        Item::Reasoning(reasoning) => Message::said(Role::Assistant, reasoning.text.clone()),
        Item::Opaque(value) => Message::said(Role::Assistant, value.to_string()),
    }
}

/// The items that stand for others in a window, held so that the same text is the same item in every request: whoever
/// counts them, counts them once.
#[derive(Default)]
pub(super) struct MadeItems(HashMap<Key, (Arc<str>, Arc<Item>)>);

/// The position of the item that is shown otherwise, and where the text stands in memory.
type Key = (Option<usize>, usize);

impl MadeItems {
    /// What slots of the folder show of a history.
    pub(super) fn parts(&mut self, slots: &[Slot], history: &History) -> Vec<Part> {
        let mut before = std::mem::take(&mut self.0);
        let mut made = |at: Option<usize>, text: &Arc<str>, make: &dyn Fn() -> Item| {
            // The text is held beside the item, so that no other can take its place in memory.
            let key = (at, text.as_ptr().addr());
            let item = before.remove(&key).unwrap_or_else(|| (text.clone(), Arc::new(make())));
            Part::Item(self.0.entry(key).or_insert(item).1.clone())
        };
        let parts = slots.iter().map(|slot| match slot {
            Slot::Logged(at) => Part::Log(*at..*at + 1),
            Slot::Made(text) => made(None, text, &|| Item::developer(text.to_string())),
            Slot::Shortened(at, text) => match history.log().get(*at) {
                Some(entry) => made(Some(*at), text, &|| with_text(&entry.item, text)),
                None => Part::Log(*at..*at),
            },
        });
        join_parts(parts.collect())
    }
}

/// The same item with another text.
fn with_text(item: &Item, text: &str) -> Item {
    match item {
        Item::FunctionCallOutput(output) => {
            let mut output = output.clone();
            output.output = text.to_owned();
            Item::FunctionCallOutput(output)
        }
        Item::Message(message) => Item::message(message.role, text),
        other => other.clone(),
    }
}

/// Runs of the log as one part each.
fn join_parts(parts: Vec<Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        match (joined.last_mut(), &part) {
            (Some(Part::Log(before)), Part::Log(range)) if before.end == range.start => before.end = range.end,
            _ => joined.push(part),
        }
    }
    joined
}
