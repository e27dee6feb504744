//! Shortens text to a number of tokens: its head, a marker that says how much is missing, and its tail.
//!
//! [`shorten`] is for plain text. [`fit_block`] and [`fit_item`] are for text with a wrapping that takes tokens too; both
//! use [`fit_wrapped`].

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::text::memory_block;
use crate::id::LayerId;
use crate::item::{Content, FunctionCall, FunctionCallOutput, Item, Message};
use crate::tokens::{ITEM_OVERHEAD_TOKENS, TokenCounter, ceil_boundary, count_item, floor_boundary};

/// Returns `text` if it has at most `tokens` tokens, and otherwise as much of its head and tail as fits around a
/// marker that says how much is missing.
///
/// ```
/// use contexture_core::tokens::Estimate;
/// use contexture_core::window::shorten;
///
/// assert_eq!(shorten(&Estimate, "short", 20), "short");
/// let text = "abcd".repeat(100);
/// assert_eq!(shorten(&Estimate, &text, 20), "abcdabcdabcdabcdabcdabcdabcdabcd\n[… 356 bytes cut …]\nabcdabcdabcd");
/// ```
pub fn shorten(counter: &dyn TokenCounter, text: &str, tokens: u64) -> String {
    Cut::to_fit(counter, text, tokens).apply(text)
}

/// Returns as much of `text` as fits into `tokens` tokens as the block of a layer: all of it, or its start and end.
///
/// For `recall`: a result that fits is not cut by the engine and causes no fault. `None` if not even an empty block
/// fits.
///
/// ```
/// use contexture_core::tokens::Estimate;
/// use contexture_core::window::fit_block;
///
/// let text = "All work and no play makes Jack a dull boy. ".repeat(100);
/// assert_eq!(fit_block(&Estimate, &"notes".into(), &text, 2_000), Some(text.clone()));
/// assert!(fit_block(&Estimate, &"notes".into(), &text, 200).is_some_and(|fitting| fitting.len() < 800));
/// assert_eq!(fit_block(&Estimate, &"notes".into(), &text, 4), None);
/// ```
pub fn fit_block(counter: &dyn TokenCounter, layer: &LayerId, text: &str, tokens: u64) -> Option<String> {
    let block_tokens = |text: &str| count_item(counter, &Item::developer(memory_block(layer, text)));
    if block_tokens(text) <= tokens {
        return Some(text.to_owned());
    }
    let room = tokens.checked_sub(block_tokens("")).filter(|room| *room > 0)?;
    let make = |cut: Cut| {
        let fitting = cut.apply(text);
        let used = block_tokens(&fitting);
        (fitting, used)
    };
    fit_wrapped(counter, text, room, tokens, make).map(|(_, fitting, _)| fitting)
}

/// The same item with its text shortened so that the whole item has at most `tokens` tokens; `None` if that is
/// impossible.
pub(crate) fn fit_item(counter: &dyn TokenCounter, item: &Item, tokens: u64) -> Option<(Cut, Item, u64)> {
    let text = cuttable_text(item)?;
    let room = tokens.checked_sub(ITEM_OVERHEAD_TOKENS)?;
    let make = |cut: Cut| {
        let shortened = cut_item(item, cut);
        let used = count_item(counter, &shortened);
        (shortened, used)
    };
    fit_wrapped(counter, &text, room, tokens, make)
}

/// Finds the cut of `text` for which the result of `make` has at most `tokens` tokens.
///
/// `room` is the first guess for the text alone. Quoting, escaping and token boundaries cost an unknown amount, which is
/// found in a few rounds. Returns the cut, the result of `make` and its tokens; `None` if nothing fits.
fn fit_wrapped<T>(
    counter: &dyn TokenCounter,
    text: &str,
    mut room: u64,
    tokens: u64,
    make: impl Fn(Cut) -> (T, u64),
) -> Option<(Cut, T, u64)> {
    loop {
        let cut = Cut::to_fit(counter, text, room);
        let (made, used) = make(cut);
        if used <= tokens {
            return Some((cut, made, used));
        }
        if room == 0 {
            return None;
        }
        room = (room * tokens / used).min(room - 1);
    }
}

/// The part of a text that is shown: its start and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Bytes kept of the start.
    pub head_bytes: usize,
    /// Bytes kept of the end.
    pub tail_bytes: usize,
}

impl Cut {
    /// Finds the longest head and tail of `text` that, with the marker between them, have at most `tokens` tokens.
    pub fn to_fit(counter: &dyn TokenCounter, text: &str, tokens: u64) -> Cut {
        if counter.count_until(text, tokens).is_some() {
            return Cut { head_bytes: text.len(), tail_bytes: 0 };
        }
        // The cost of the marker, and what the two token boundaries may add.
        let marker_tokens = counter.count(&marker(text.len())) + 2;
        let mut room = tokens.saturating_sub(marker_tokens);
        while room > 0 {
            let cut = Cut { head_bytes: counter.head(text, room - room / 3), tail_bytes: counter.tail(text, room / 3) };
            if cut.head_bytes + cut.tail_bytes < text.len() && counter.count_until(&cut.apply(text), tokens).is_some() {
                return cut;
            }
            room -= (room / 8).max(1);
        }
        Cut { head_bytes: 0, tail_bytes: 0 }
    }

    /// The head, a marker that says how much is missing, and the tail.
    pub fn apply(self, text: &str) -> String {
        let head = floor_boundary(text, self.head_bytes);
        let tail = ceil_boundary(text, text.len().saturating_sub(self.tail_bytes)).max(head);
        match (head, text.len() - tail) {
            _ if head == tail => text.to_owned(),
            (0, 0) => "…".to_owned(),
            _ => format!("{}{}{}", &text[..head], marker(tail - head), &text[tail..]),
        }
    }
}

fn marker(bytes: usize) -> String {
    format!("\n[… {bytes} bytes cut …]\n")
}

/// The text of an item that can be cut; `None` if it must stay whole.
fn cuttable_text(item: &Item) -> Option<Cow<'_, str>> {
    match item {
        Item::Message(message) => match message.content.as_slice() {
            [Content::Text { text }] => Some(Cow::Borrowed(text)),
            _ => Some(Cow::Owned(message.text())),
        },
        Item::FunctionCall(call) => Some(Cow::Borrowed(&call.arguments)),
        Item::FunctionCallOutput(output) => Some(Cow::Borrowed(&output.output)),
        Item::Reasoning(_) | Item::Opaque(_) => None,
    }
}

/// The same item with its text cut. Parts of a message that are not text are dropped.
pub(super) fn cut_item(item: &Item, cut: Cut) -> Item {
    match item {
        Item::Message(message) => {
            let text = match cut.apply(&message.text()) {
                // Providers reject empty messages.
                text if text.is_empty() => "…".to_owned(),
                text => text,
            };
            Item::Message(Message { content: vec![Content::Text { text }], ..message.clone() })
        }
        Item::FunctionCall(call) => {
            // Arguments must be valid JSON, so the cut text becomes a string in an object.
            let arguments = serde_json::json!({ "shortened": cut.apply(&call.arguments) }).to_string();
            Item::FunctionCall(FunctionCall { arguments, ..call.clone() })
        }
        Item::FunctionCallOutput(output) => {
            Item::FunctionCallOutput(FunctionCallOutput { output: cut.apply(&output.output), ..output.clone() })
        }
        Item::Reasoning(_) | Item::Opaque(_) => item.clone(),
    }
}
