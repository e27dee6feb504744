//! Text that layers and files contribute, made safe and made to fit.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::id::LayerId;
use crate::item::{Content, FunctionCall, FunctionCallOutput, Item, Message};
use crate::tokens::{ITEM_OVERHEAD_TOKENS, TokenCounter, ceil_boundary, count_item, floor_boundary};

/// The tags that the window is built with. No content can open or close one.
const TAGS: [&str; 6] = ["memory", "updates", "replace", "change", "add", "retract"];

/// Makes `<` harmless wherever it would begin one of the window's own tags, however carelessly that is written.
///
/// ```
/// use contexture_core::window::escape_tags;
/// assert_eq!(escape_tags("a < b </memory> <b> <address>"), "a < b &lt;/memory> <b> <address>");
/// assert_eq!(escape_tags("< / Memory\n>"), "&lt; / Memory\n>");
/// ```
pub fn escape_tags(text: &str) -> Cow<'_, str> {
    let mut found = text.match_indices('<').map(|(at, _)| at).filter(|at| begins_tag(&text[at + 1..])).peekable();
    if found.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut done = 0;
    for at in found {
        escaped.push_str(&text[done..at]);
        escaped.push_str("&lt;");
        done = at + 1;
    }
    escaped.push_str(&text[done..]);
    Cow::Owned(escaped)
}

/// Whether what stands behind a `<` is the name of one of our tags and not just the start of a longer name.
fn begins_tag(rest: &str) -> bool {
    let name = rest.trim_start_matches(|c: char| c == '/' || is_blank(c));
    let is_tag = |tag: &&str| {
        name.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
            && !name[tag.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
    };
    TAGS.iter().any(is_tag)
}

/// White space, and what is not seen at all.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// A fence of backticks that is longer than any run of them in `text`, and at least three.
///
/// ```
/// use contexture_core::window::fence_for;
/// assert_eq!(fence_for("plain"), "```");
/// assert_eq!(fence_for("a ```` b"), "`````");
/// ```
pub fn fence_for(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat((longest + 1).max(3))
}

/// The block of a layer that answered plain text.
pub(crate) fn memory_block(layer: &LayerId, text: &str) -> String {
    format!("<memory layer=\"{}\">\n{}\n</memory>", attribute(layer), escape_tags(text))
}

/// What of `text` fits into `tokens` tokens as the block of a layer: all of it, or its start and end.
///
/// For `recall`: an answer that is made to fit is not cut by the engine, and leaves no fault. `None` if not even an
/// empty block fits.
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
    let over = |text: &str| {
        let item = Item::developer(memory_block(layer, text));
        count_item(counter, &item).checked_sub(tokens).filter(|over| *over > 0)
    };
    if over(text).is_none() {
        return Some(text.to_owned());
    }
    let mut room = tokens.saturating_sub(count_item(counter, &Item::developer(memory_block(layer, ""))));
    while room > 0 {
        let fitting = Cut::to_fit(counter, text, room).apply(text);
        let Some(over) = over(&fitting) else { return Some(fitting) };
        // Escaping and seams cost more than the text itself; a few rounds find how much.
        room = room.saturating_sub(over.max(room / 16).max(1));
    }
    None
}

/// A layer's id as the value of an attribute.
pub(crate) fn attribute(layer: &LayerId) -> String {
    layer.as_str().replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('\n', " ")
}

/// What is shown of a text: its start and its end.
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
        // The marker's own cost, and what merging at the two seams may add.
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

/// The text of an item that can be cut; `None` for what must stay whole.
pub(crate) fn cuttable_text(item: &Item) -> Option<Cow<'_, str>> {
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

/// The same item with its text cut. Parts of a message that are not text are left out.
pub(crate) fn cut_item(item: &Item, cut: Cut) -> Item {
    match item {
        Item::Message(message) => {
            let text = match cut.apply(&message.text()) {
                // Providers refuse messages that say nothing.
                text if text.is_empty() => "…".to_owned(),
                text => text,
            };
            Item::Message(Message { content: vec![Content::Text { text }], ..message.clone() })
        }
        Item::FunctionCall(call) => {
            // Arguments must stay JSON, so what is left of them becomes a string in an object.
            let arguments = serde_json::json!({ "shortened": cut.apply(&call.arguments) }).to_string();
            Item::FunctionCall(FunctionCall { arguments, ..call.clone() })
        }
        Item::FunctionCallOutput(output) => {
            Item::FunctionCallOutput(FunctionCallOutput { output: cut.apply(&output.output), ..output.clone() })
        }
        Item::Reasoning(_) | Item::Opaque(_) => item.clone(),
    }
}

/// The same item cut to at most `tokens` tokens with everything around it; `None` if that cannot be.
pub(crate) fn fit_item(counter: &dyn TokenCounter, item: &Item, tokens: u64) -> Option<(Cut, Item, u64)> {
    let text = cuttable_text(item)?;
    let mut room = tokens.checked_sub(ITEM_OVERHEAD_TOKENS)?;
    // Names and JSON quoting cost more than the text itself; a few rounds find how much.
    loop {
        let cut = Cut::to_fit(counter, &text, room);
        let shortened = cut_item(item, cut);
        let used = count_item(counter, &shortened);
        if used <= tokens {
            return Some((cut, shortened, used));
        }
        if room == 0 {
            return None;
        }
        room = (room * tokens / used).min(room - 1);
    }
}
