//! The size of a message when it is sent.

use std::sync::Arc;

use contexture::item::{FunctionCall, Item};
use contexture::tokens::TokenCounter;
use contexture::transcript::Record;
use serde_json::Value;

use crate::recorded::sent_bytes;

/// Bytes that count as one token where tokens are estimated.
const TOKEN_BYTES: u64 = 4;

/// Tokens that spaces and names add to the arguments of a call on the wire.
const ARGUMENTS_TOKENS: u64 = 4;

/// The unit of sizes.
#[derive(Clone)]
pub enum Ruler {
    /// Bytes; four are a token. Sums are exact, since messages are not rounded.
    Bytes,
    /// Tokens.
    Tokens(Arc<dyn TokenCounter>),
}

impl Ruler {
    /// The size of a message.
    pub fn size(&self, record: &Record) -> u64 {
        match self {
            Ruler::Bytes => sent_bytes(record),
            Ruler::Tokens(counter) => record.items().iter().map(|item| tokens(&**counter, item)).sum(),
        }
    }

    /// The size of a token.
    pub fn token(&self) -> u64 {
        match self {
            Ruler::Bytes => TOKEN_BYTES,
            Ruler::Tokens(_) => 1,
        }
    }

    /// A size in tokens.
    pub fn tokens(&self, size: f64) -> f64 {
        match self {
            Ruler::Bytes => size / TOKEN_BYTES as f64,
            Ruler::Tokens(_) => size,
        }
    }

    /// A size in whole tokens, rounded up.
    pub fn whole_tokens(&self, size: u64) -> u64 {
        match self {
            Ruler::Bytes => size.div_ceil(TOKEN_BYTES),
            Ruler::Tokens(_) => size,
        }
    }
}

/// The tokens of an item in a recording: texts and arguments, without what providers add.
pub fn tokens(counter: &dyn TokenCounter, item: &Item) -> u64 {
    match item {
        Item::Message(message) => counter.count(&message.text_cow()),
        Item::FunctionCallOutput(output) => counter.count(&output.output),
        Item::FunctionCall(call) => call_tokens(counter, call),
        Item::Reasoning(reasoning) => counter.count(&reasoning.text),
        Item::Opaque(value) => counter.count(&value.to_string()),
    }
}

fn call_tokens(counter: &dyn TokenCounter, call: &FunctionCall) -> u64 {
    let around = if matches!(call.parsed_arguments(), Value::String(_)) { 0 } else { ARGUMENTS_TOKENS };
    1 + counter.count(&call.arguments) + around
}
