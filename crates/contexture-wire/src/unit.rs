//! The parts of a message, each with the item that it is.

use std::ops::Range;

use contexture_core::item::{Content, Item};
use contexture_core::tokens::{ITEM_OVERHEAD_TOKENS, TokenCounter};
use serde_json::Value;

/// What an image takes, about: providers count its size, not its bytes.
const IMAGE_TOKENS: u64 = 1_500;

/// Bytes of encrypted or encoded content for one token, about.
const ENCODED_BYTES_PER_TOKEN: u64 = 6;

/// A part of a message that is kept, replaced or left out by itself, or together with the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// What it is.
    pub item: Item,
    /// Whether it can be kept without the other parts of its message.
    pub stands_alone: bool,
}

impl Unit {
    /// A part that can be kept alone.
    pub(super) fn alone(item: impl Into<Item>) -> Self {
        Self { item: item.into(), stands_alone: true }
    }

    /// A part that stays with the others of its message.
    pub(super) fn joined(item: impl Into<Item>) -> Self {
        Self { item: item.into(), stands_alone: false }
    }
}

/// The runs of units that make one message for a folder: what the model made in a row, each output, and what else was
/// said in a row within one message.
pub fn groups<'a>(units: impl IntoIterator<Item = (usize, &'a Item)>) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut last: Option<(usize, &Item)> = None;
    for (at, (message, item)) in units.into_iter().enumerate() {
        let is_said = |item: &Item| !item.is_of_model() && item.as_output().is_none();
        let goes_on = last.is_some_and(|(before, other)| {
            (item.is_of_model() && other.is_of_model()) || (is_said(item) && is_said(other) && before == message)
        });
        match groups.last_mut() {
            Some(group) if goes_on => group.end = at + 1,
            _ => groups.push(at..at + 1),
        }
        last = Some((message, item));
    }
    groups
}

/// The tokens of a unit: texts are counted, images and encrypted content are estimated.
pub fn unit_tokens(counter: &dyn TokenCounter, item: &Item) -> u64 {
    let encoded = |bytes: usize| bytes as u64 / ENCODED_BYTES_PER_TOKEN;
    ITEM_OVERHEAD_TOKENS
        + match item {
            Item::Message(message) => message.content.iter().map(|part| content_tokens(counter, part)).sum(),
            Item::FunctionCall(call) => counter.count(&call.name) + counter.count(&call.arguments),
            Item::FunctionCallOutput(output) => {
                let parts = output.extra.get("content").and_then(Value::as_array);
                counter.count(&output.output)
                    + parts.into_iter().flatten().map(|part| value_tokens(counter, part)).sum::<u64>()
            }
            Item::Reasoning(reasoning) => {
                let opaque = reasoning.opaque.as_ref().and_then(Value::as_str).map_or(0, str::len);
                // The signature of a readable text is no text of the model's.
                counter.count(&reasoning.text) + if reasoning.text.is_empty() { encoded(opaque) } else { 0 }
            }
            Item::Opaque(value) => value_tokens(counter, value),
        }
}

fn content_tokens(counter: &dyn TokenCounter, content: &Content) -> u64 {
    match (content.as_text(), content) {
        (Some(text), _) => counter.count(text),
        (None, Content::Opaque(value)) => value_tokens(counter, value),
        (None, Content::Text { .. }) => 0,
    }
}

fn value_tokens(counter: &dyn TokenCounter, value: &Value) -> u64 {
    match value["type"].as_str() {
        Some("image" | "image_url" | "input_image") => IMAGE_TOKENS,
        Some("text" | "input_text" | "output_text") => value["text"].as_str().map_or(0, |text| counter.count(text)),
        _ => value.to_string().len() as u64 / ENCODED_BYTES_PER_TOKEN,
    }
}
