//! The updates band: one message that corrects anchors which changed.

use std::sync::Arc;

use super::text::{attribute, escape_tags};
use super::{Block, Pin, WindowInput};
use crate::id::LayerId;
use crate::item::Item;
use crate::tokens::count_item;

/// The updates message, with what it was made of.
#[derive(Clone, Debug)]
pub(super) struct Rendered {
    pub(super) item: Arc<Item>,
    pub(super) tokens: u64,
    /// Each corrected layer with the tokens of its correction.
    parts: Vec<(LayerId, u64)>,
    /// The pins and blocks it says something about; while these are the same, so is the message.
    made_of: Vec<(Option<Arc<[Arc<Item>]>>, Arc<[Arc<Item>]>)>,
}

impl Rendered {
    /// What the correction of one layer takes.
    pub(super) fn tokens_of(&self, layer: &LayerId) -> Option<u64> {
        self.parts.iter().find(|(other, _)| other == layer).map(|(_, tokens)| *tokens)
    }
}

/// Says what changed since the anchors were pinned; `None` if nothing did.
pub(super) fn render(
    input: &WindowInput<'_>,
    pins: &[Pin],
    last: Option<&Rendered>,
    is_live: impl Fn(&Block) -> bool,
) -> Option<Rendered> {
    let changed: Vec<(Option<&Pin>, &Block)> = input
        .blocks
        .iter()
        .filter(|block| !is_live(block))
        .map(|block| (pins.iter().find(|pin| pin.layer == block.layer), block))
        .filter(|(pin, block)| differs(*pin, block))
        .collect();
    if changed.is_empty() {
        return None;
    }
    let made_of: Vec<_> =
        changed.iter().map(|(pin, block)| (pin.map(|pin| pin.items.clone()), block.items.clone())).collect();
    if let Some(last) = last.filter(|last| same_parts(&last.made_of, &made_of)) {
        return Some(last.clone());
    }
    let mut text =
        String::from("<updates>\nThese blocks changed since they were shown. What stands here is current.\n");
    let mut parts = Vec::with_capacity(changed.len());
    for (pin, block) in changed {
        let part = correction(input, pin, block);
        parts.push((block.layer.clone(), input.counter.count(&part)));
        text.push_str(&part);
    }
    text.push_str("</updates>");
    let item = Item::developer(text);
    let tokens = count_item(input.counter, &item);
    Some(Rendered { item: Arc::new(item), tokens, parts, made_of })
}

fn differs(pin: Option<&Pin>, block: &Block) -> bool {
    match pin {
        Some(pin) => !Arc::ptr_eq(&pin.items, &block.items) && pin.items != block.items,
        None => !block.items.is_empty(),
    }
}

fn same_parts(
    old: &[(Option<Arc<[Arc<Item>]>>, Arc<[Arc<Item>]>)],
    new: &[(Option<Arc<[Arc<Item>]>>, Arc<[Arc<Item>]>)],
) -> bool {
    let same_pin = |old: &Option<Arc<[Arc<Item>]>>, new: &Option<Arc<[Arc<Item>]>>| match (old, new) {
        (Some(old), Some(new)) => Arc::ptr_eq(old, new),
        (None, None) => true,
        _ => false,
    };
    let same = |(old, new): (&(Option<_>, Arc<[_]>), &(Option<_>, Arc<[_]>))| {
        same_pin(&old.0, &new.0) && Arc::ptr_eq(&old.1, &new.1)
    };
    old.len() == new.len() && old.iter().zip(new).all(same)
}

/// One layer's correction: replaced, retracted, added, or told as a delta.
fn correction(input: &WindowInput<'_>, pin: Option<&Pin>, block: &Block) -> String {
    let layer = attribute(&block.layer);
    let Some(pin) = pin else {
        return format!("<add layer=\"{layer}\">\n{}\n</add>\n", escape_tags(&text_of(&block.items)));
    };
    if block.items.is_empty() {
        return format!("<retract layer=\"{layer}\"/>\n");
    }
    match (input.delta)(&block.layer, &pin.items, &block.items) {
        Some(delta) => format!("<change layer=\"{layer}\">\n{}\n</change>\n", escape_tags(&delta)),
        None => format!("<replace layer=\"{layer}\">\n{}\n</replace>\n", escape_tags(&text_of(&block.items))),
    }
}

/// The text of a block, without the tag that the window itself put around it.
fn text_of(items: &[Arc<Item>]) -> String {
    let texts: Vec<String> = items
        .iter()
        .map(|item| match &**item {
            Item::Message(message) => unwrap_block(&message.text()).to_owned(),
            other => serde_json::to_string(other).unwrap_or_default(),
        })
        .collect();
    texts.join("\n")
}

fn unwrap_block(text: &str) -> &str {
    let inner = || text.strip_prefix("<memory layer=\"")?.split_once(">\n")?.1.strip_suffix("\n</memory>");
    inner().unwrap_or(text)
}
