//! A folder that gets recorded sessions directly, to compare with what a gateway sends.

use std::sync::Arc;

use contexture::files::dialect::Dialects;
use contexture::fold::{Folder, Meter, Policy, Prices};
use contexture::item::Item;
use contexture::tokens::Estimate;
use contexture::wire::{Format, Request, WireError, groups, read, unit_tokens};
use serde_json::Value;

/// The folder, with how many items it has received.
pub struct Twin {
    folder: Folder,
    given: usize,
}

/// How the sent request compares with the twin's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowLikeness {
    /// The same texts in the same order.
    Same,
    /// All texts of the window are present, in another order or with others.
    Held,
    /// A text of the window is missing.
    Other,
}

impl Twin {
    /// Creates a folder for requests whose instructions and tools take this much of a budget.
    pub fn new(budget: u64, prices: Prices) -> Self {
        let policy = Policy::new(budget).with_prices(prices);
        let folder = Folder::new(policy, Meter::new(Arc::new(Estimate))).with_dialects(Dialects::builtin());
        Self { folder, given: 0 }
    }

    /// Processes the items of a request, and makes its window.
    pub fn request(&mut self, items: &[(usize, Item)]) {
        let new = &items[self.given..];
        for group in groups(new.iter().map(|(message, item)| (*message, item))) {
            let counted = |(_, item): &(usize, Item)| (Arc::new(item.clone()), unit_tokens(&Estimate, item));
            self.folder.push(new[group].iter().map(counted).collect::<Vec<_>>());
        }
        self.given = items.len();
        self.folder.request();
    }

    /// Compares what was sent with the window.
    ///
    /// # Errors
    /// What was sent is not a request.
    pub fn likeness(&self, format: Format, body: &str) -> Result<WindowLikeness, WireError> {
        let sent = texts(&sent_items(format, body)?);
        let window = texts(&self.folder.window().iter().map(|shown| (*shown.item).clone()).collect::<Vec<_>>());
        if sent == window {
            return Ok(WindowLikeness::Same);
        }
        let holds = |text: &String| sent.contains(text);
        Ok(if window.iter().all(holds) { WindowLikeness::Held } else { WindowLikeness::Other })
    }
}

/// The tokens of a request by the gateway's own count, and how many of them are instructions and tools.
///
/// # Errors
/// It is not a request.
pub fn own_count(format: Format, body: &str) -> Result<(u64, u64), WireError> {
    let request = Request::parse(format, body)?;
    let lead = &request.messages()[..request.leading_instructions()];
    let head = (request.other_bytes() + lead.iter().map(|raw| raw.get().len()).sum::<usize>()) as u64 / 4;
    let items = sent_items(format, body)?;
    Ok((head + items.iter().map(|item| unit_tokens(&Estimate, item)).sum::<u64>(), head))
}

/// The tokens of a block as `contexture replay` counts them: texts and arguments, and nothing that is around them.
pub fn text_tokens(block: &Value) -> u64 {
    text_bytes(block).div_ceil(4)
}

fn text_bytes(block: &Value) -> u64 {
    let part = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("text" | "content" | "output" | "error" | "description", Value::String(text)) => text.len() as u64,
        ("arguments", Value::String(text)) => text.len() as u64,
        ("input" | "args" | "arguments", value) => value.to_string().len() as u64 + 1,
        (_, Value::Object(_) | Value::Array(_)) => text_bytes(value),
        _ => 0,
    };
    match block {
        Value::Object(fields) => fields.iter().map(part).sum(),
        Value::Array(values) => values.iter().map(text_bytes).sum(),
        _ => 0,
    }
}

fn sent_items(format: Format, body: &str) -> Result<Vec<Item>, WireError> {
    let request = Request::parse(format, body)?;
    let mut items = Vec::new();
    for raw in &request.messages()[request.leading_instructions()..] {
        items.extend(read(format, raw, None)?.into_iter().map(|unit| unit.item));
    }
    Ok(items)
}

/// What a model reads: texts as they are, calls by their ids.
fn texts(items: &[Item]) -> Vec<String> {
    let text = |item: &Item| match item {
        Item::Message(message) => message.text(),
        Item::FunctionCallOutput(output) => output.output.clone(),
        Item::FunctionCall(call) => format!("{} {}", call.name, call.call_id),
        Item::Reasoning(reasoning) => reasoning.text.clone(),
        Item::Opaque(value) => value.to_string(),
    };
    items.iter().map(text).filter(|text| !text.is_empty()).collect()
}
