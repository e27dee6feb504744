//! The updates band: one message with the new text of anchors that changed.

use std::sync::Arc;

use super::block_place::BlockPlace;
use super::epoch::{LayerPlace, Pin};
use super::input::{Block, SharedItems, WindowInput};
use super::text::{attribute, escape_tags};
use crate::item::Item;
use crate::tokens::count_item;

/// The updates message, with its inputs.
#[derive(Debug)]
pub(super) struct UpdatesMessage {
    pub(super) item: Arc<Item>,
    pub(super) tokens: u64,
    corrections: Vec<Correction>,
}

/// The part of the message about one layer, with its inputs.
#[derive(Debug)]
struct Correction {
    /// The index of the block.
    block: usize,
    pinned: Option<SharedItems>,
    current: SharedItems,
    tokens: u64,
}

/// An anchored block that differs from its pinned version.
struct ChangedBlock<'a> {
    index: usize,
    pin: Option<&'a Pin>,
    block: &'a Block,
}

impl UpdatesMessage {
    /// The tokens of the update of one block.
    pub(super) fn tokens_of(&self, block: usize) -> Option<u64> {
        self.corrections.iter().find(|correction| correction.block == block).map(|correction| correction.tokens)
    }

    /// Whether this message is still up to date.
    fn says(&self, changed: &[ChangedBlock<'_>]) -> bool {
        let same = |(correction, changed): (&Correction, &ChangedBlock<'_>)| {
            let same_pin = match (&correction.pinned, changed.pin) {
                (Some(pinned), Some(pin)) => Arc::ptr_eq(pinned, &pin.items),
                (pinned, pin) => pinned.is_none() && pin.is_none(),
            };
            correction.block == changed.index && same_pin && Arc::ptr_eq(&correction.current, &changed.block.items)
        };
        self.corrections.len() == changed.len() && self.corrections.iter().zip(changed).all(same)
    }
}

/// Describes what changed since the anchors were pinned; `None` if nothing did.
pub(super) fn render(
    input: &WindowInput<'_>,
    layers: &[LayerPlace],
    places: &[BlockPlace],
    last: Option<&Arc<UpdatesMessage>>,
) -> Option<Arc<UpdatesMessage>> {
    let changed: Vec<ChangedBlock<'_>> = changed(input, layers, places).collect();
    if changed.is_empty() {
        return None;
    }
    if let Some(last) = last.filter(|last| last.says(&changed)) {
        return Some(last.clone());
    }
    let mut text = String::from("<updates>\nThese blocks changed since they were shown. This is their current text.\n");
    let mut corrections = Vec::with_capacity(changed.len());
    for ChangedBlock { index, pin, block } in changed {
        let part = correction(input, pin, block);
        let tokens = input.counter.count(&part);
        let pinned = pin.map(|pin| pin.items.clone());
        corrections.push(Correction { block: index, pinned, current: block.items.clone(), tokens });
        text.push_str(&part);
    }
    text.push_str("</updates>");
    let item = Item::developer(text);
    let tokens = count_item(input.counter, &item);
    Some(Arc::new(UpdatesMessage { item: Arc::new(item), tokens, corrections }))
}

fn changed<'a>(
    input: &'a WindowInput<'_>,
    layers: &'a [LayerPlace],
    places: &'a [BlockPlace],
) -> impl Iterator<Item = ChangedBlock<'a>> {
    input.blocks.iter().zip(places).enumerate().filter_map(|(index, (block, place))| {
        let BlockPlace::Anchor(pinned) = place else { return None };
        let pin = pinned.and_then(|at| layers[at].pin());
        let same = match pin {
            Some(pin) => Arc::ptr_eq(&pin.items, &block.items) || pin.items == block.items,
            None => block.items.is_empty(),
        };
        (!same).then_some(ChangedBlock { index, pin: pin.filter(|pin| !pin.items.is_empty()), block })
    })
}

/// One layer's update: added, retracted, given as a delta, or replaced.
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

/// The text of a block, without the tag that the window itself put around it; JSON for what is not text.
fn text_of(items: &[Arc<Item>]) -> String {
    let texts: Vec<String> = items.iter().map(|item| plain_text(item).unwrap_or_else(|| json_of(item))).collect();
    texts.join("\n")
}

fn plain_text(item: &Item) -> Option<String> {
    let message = item.as_message()?;
    let is_text = message.content.iter().all(|content| content.as_text().is_some());
    is_text.then(|| unwrap_block(&message.text()).to_owned())
}

fn json_of(item: &Item) -> String {
    serde_json::to_string(item).expect("items have text keys and no foreign types, so they have a JSON form")
}

fn unwrap_block(text: &str) -> &str {
    let inner = || text.strip_prefix("<memory layer=\"")?.split_once(">\n")?.1.strip_suffix("\n</memory>");
    inner().unwrap_or(text)
}
