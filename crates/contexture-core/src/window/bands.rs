//! Everything in a window except history: anchors, live blocks, updates and the tail.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block_place::{BlockPlace, places};
use super::epoch::{Churn, Epoch, LayerPlace, Pin, WindowPlace, is_live};
use super::input::{Block, WindowInput};
use super::output::Section;
use super::room::least_history;
use super::shorten::fit_item;
use super::text::escape_tags;
use super::updates::{self, UpdatesMessage};
use crate::decision::EpochReason;
use crate::id::LayerId;
use crate::item::Item;
use crate::tokens::{TokenCounter, count_item};
use crate::usage::{Band, LayerUsage, Served};

/// The largest share of the room for updates to anchors; beyond it a new epoch is cheaper.
const UPDATES_SHARE: u64 = 10;
/// Guidance may take this share of the room.
const TAIL_SHARE: u64 = 8;

/// The bands around history, as one request shows them.
#[derive(Debug)]
pub(super) struct Bands {
    /// Why a new epoch begins with this request, if one does.
    pub(super) reason: Option<EpochReason>,
    /// Where each layer is shown in the epoch, in slot order.
    pub(super) layers: Arc<[LayerPlace]>,
    /// Where each block of the input is shown.
    places: Vec<BlockPlace>,
    pub(super) updates: Option<Arc<UpdatesMessage>>,
    tail: Option<(Arc<Item>, u64)>,
    pub(super) anchor_tokens: u64,
    pub(super) live_tokens: u64,
}

/// The part of a thread's state that these bands use.
#[derive(Clone, Copy)]
pub(super) struct Past<'a> {
    pub(super) epoch: Option<&'a Epoch>,
    pub(super) churn: &'a BTreeMap<LayerId, Churn>,
    pub(super) updates: Option<&'a Arc<UpdatesMessage>>,
}

impl Bands {
    /// Decides whether the epoch continues, and what is shown around history.
    pub(super) fn plan(past: Past<'_>, input: &WindowInput<'_>, available: u64) -> Bands {
        match Self::go_on(past, input, available) {
            Ok(bands) => bands,
            Err(reason) => Self::begin(past, input, available, reason),
        }
    }

    /// Continues the epoch: anchors are held, and changes are in the updates. The error says why it cannot continue.
    fn go_on(past: Past<'_>, input: &WindowInput<'_>, available: u64) -> Result<Bands, EpochReason> {
        let epoch = past.epoch.ok_or(EpochReason::ColdStart)?;
        if let Some(reason) = input.cache_lost {
            return Err(reason);
        }
        if epoch.system_fingerprint != input.system_fingerprint || epoch.counter != input.counter.name() {
            return Err(EpochReason::SystemChanged);
        }
        let places = places(&epoch.layers, input.blocks).ok_or(EpochReason::AnchorsOutgrew)?;
        let updates = updates::render(input, &epoch.layers, &places, past.updates);
        let updates_tokens = updates.as_ref().map_or(0, |updates| updates.tokens);
        if updates_tokens > available / UPDATES_SHARE {
            return Err(EpochReason::UpdatesOutgrew);
        }
        let mut bands = Bands::new(None, epoch.layers.clone(), places, updates, input);
        let room = available - least_history(available, input.history.log());
        if bands.anchor_tokens + updates_tokens > room {
            return Err(EpochReason::AnchorsOutgrew);
        }
        bands.add_tail(input, available, room);
        Ok(bands)
    }

    /// Begins an epoch: every anchored block is pinned as it is now, and every auto layer is assigned a band.
    ///
    /// If minimums overcommit, blocks of the highest slots are left out until the rest fits.
    pub(super) fn begin(past: Past<'_>, input: &WindowInput<'_>, available: u64, reason: EpochReason) -> Bands {
        let room = available - least_history(available, input.history.log());
        let mut excess = input.blocks.iter().map(|block| block.tokens).sum::<u64>().saturating_sub(room);
        let mut layers = Vec::with_capacity(input.blocks.len());
        for block in input.blocks.iter().rev() {
            let place = if excess > 0 && block.tokens > 0 {
                excess = excess.saturating_sub(block.tokens);
                WindowPlace::LeftOut
            } else if is_live(block, past.churn) {
                WindowPlace::Live
            } else {
                WindowPlace::Anchor(Pin { items: block.items.clone(), tokens: block.tokens })
            };
            layers.push(LayerPlace { layer: block.layer.clone(), place });
        }
        layers.reverse();
        let place = |(index, placed): (usize, &LayerPlace)| BlockPlace::of(index, placed);
        let places = layers.iter().enumerate().map(place).collect();
        let mut bands = Bands::new(Some(reason), layers.into(), places, None, input);
        bands.add_tail(input, available, room);
        bands
    }

    fn new(
        reason: Option<EpochReason>,
        layers: Arc<[LayerPlace]>,
        places: Vec<BlockPlace>,
        updates: Option<Arc<UpdatesMessage>>,
        input: &WindowInput<'_>,
    ) -> Bands {
        let anchor_tokens = layers.iter().filter_map(LayerPlace::pin).map(|pin| pin.tokens).sum();
        let live = input.blocks.iter().zip(&places).filter(|(_, place)| **place == BlockPlace::Live);
        let live_tokens = live.map(|(block, _)| block.tokens).sum();
        Bands { reason, layers, places, updates, tail: None, anchor_tokens, live_tokens }
    }

    /// Adds the guidance. Live blocks are removed to make room, from the highest slot on; anchors are not.
    fn add_tail(&mut self, input: &WindowInput<'_>, available: u64, room: u64) {
        let held = self.anchor_tokens + self.updates_tokens();
        self.tail = tail(input, (available / TAIL_SHARE).min(room - held));
        for (block, place) in input.blocks.iter().zip(&mut self.places).rev() {
            if held + self.live_tokens + self.tail.as_ref().map_or(0, |(_, tokens)| *tokens) <= room {
                return;
            }
            if *place == BlockPlace::Live && block.tokens > 0 {
                self.live_tokens -= block.tokens;
                *place = BlockPlace::LeftOut;
            }
        }
    }

    /// The tokens of all these bands.
    pub(super) fn tokens(&self) -> u64 {
        self.anchor_tokens + self.live_tokens + self.updates_tokens() + self.tail_tokens()
    }

    pub(super) fn updates_tokens(&self) -> u64 {
        self.updates.as_ref().map_or(0, |updates| updates.tokens)
    }

    pub(super) fn tail_tokens(&self) -> u64 {
        self.tail.as_ref().map_or(0, |(_, tokens)| *tokens)
    }

    /// The items before history.
    pub(super) fn anchors(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.layers.iter().filter_map(LayerPlace::pin).flat_map(|pin| pin.items.iter())
    }

    /// The items after history.
    pub(super) fn after_history<'a>(&'a self, blocks: &'a [Block]) -> impl Iterator<Item = &'a Arc<Item>> {
        let live = blocks.iter().zip(&self.places).filter(|(_, place)| **place == BlockPlace::Live);
        live.flat_map(|(block, _)| block.items.iter())
            .chain(self.updates.as_ref().map(|updates| &updates.item))
            .chain(self.tail.as_ref().map(|(item, _)| item))
    }

    /// Where the items of a window come from, in order; `history` is what is between the bands.
    pub(super) fn sections(&self, blocks: &[Block], history: Section) -> Vec<Section> {
        let section = |band, layer, items, tokens| Section { band, layer, items, tokens };
        let anchors = self.layers.iter().filter_map(|placed| Some((&placed.layer, placed.pin()?)));
        let anchors =
            anchors.map(|(layer, pin)| section(Band::Anchor, Some(layer.clone()), pin.items.len(), pin.tokens));
        let live = blocks.iter().zip(&self.places).filter(|(_, place)| **place == BlockPlace::Live);
        let live =
            live.map(|(block, _)| section(Band::Live, Some(block.layer.clone()), block.items.len(), block.tokens));
        let updates = self.updates.as_ref().map(|updates| section(Band::Updates, None, 1, updates.tokens));
        let tail = self.tail.as_ref().map(|(_, tokens)| section(Band::Tail, None, 1, *tokens));
        anchors.chain([history]).chain(live).chain(updates).chain(tail).filter(|section| section.items > 0).collect()
    }

    /// What each layer got and used, in slot order.
    pub(super) fn layer_usages(&self, blocks: &[Block]) -> Vec<LayerUsage> {
        blocks
            .iter()
            .zip(&self.places)
            .enumerate()
            .map(|(index, (block, place))| self.usage(index, block, *place))
            .collect()
    }

    fn usage(&self, index: usize, block: &Block, place: BlockPlace) -> LayerUsage {
        let corrected = self.updates.as_ref().and_then(|updates| updates.tokens_of(index));
        let pinned = match place {
            BlockPlace::Anchor(Some(at)) => self.layers[at].pin().map_or(0, |pin| pin.tokens),
            BlockPlace::Anchor(None) | BlockPlace::Live | BlockPlace::LeftOut => 0,
        };
        let (band, served, used) = match place {
            BlockPlace::Live => (Band::Live, block.served, block.tokens),
            BlockPlace::LeftOut => (Band::Anchor, block.served, 0),
            BlockPlace::Anchor(_) if pinned == 0 && corrected.is_some() => (Band::Updates, block.served, 0),
            BlockPlace::Anchor(_) if pinned > 0 && self.reason.is_none() => (Band::Anchor, Served::Pinned, pinned),
            BlockPlace::Anchor(_) => (Band::Anchor, block.served, pinned),
        };
        let updates = corrected.unwrap_or(0);
        let used = used + updates;
        let yielded = block.allocated.saturating_sub(used);
        LayerUsage { layer_id: block.layer.clone(), allocated: block.allocated, used, updates, yielded, band, served }
    }
}

/// The guidance as one developer message that fits its band.
fn tail(input: &WindowInput<'_>, room: u64) -> Option<(Arc<Item>, u64)> {
    let item = guidance_item(input.guidance)?;
    let tokens = count_item(input.counter, &item);
    if tokens <= room {
        return Some((Arc::new(item), tokens));
    }
    let (_, item, tokens) = fit_item(input.counter, &item, room)?;
    Some((Arc::new(item), tokens))
}

/// The guidance as one developer message, if there is any.
fn guidance_item(guidance: &[String]) -> Option<Item> {
    let text = format!("Guidance for your next response:\n{}", guidance.join("\n"));
    (!guidance.is_empty()).then(|| Item::developer(escape_tags(&text)))
}

/// The tokens that guidance takes of a window.
pub(crate) fn guidance_tokens(counter: &dyn TokenCounter, guidance: &[String], available: u64) -> u64 {
    guidance_item(guidance).map_or(0, |item| count_item(counter, &item).min(available / TAIL_SHARE))
}
