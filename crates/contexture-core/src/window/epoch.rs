//! What is held during an epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::fingerprint::fingerprint_items;
use super::input::{Block, SharedItems};
use super::shorten::Cut;
use crate::decision::EpochReason;
use crate::history::{History, Part};
use crate::id::LayerId;
use crate::item::Item;
use crate::layer::Placement;
use crate::log::ItemLog;

/// The number of turns after which the churn of a layer is meaningful.
const CHURN_TURNS: u32 = 3;
/// The number of turns after which older ones count half, so that a layer that changes less often is noticed.
const CHURN_MEMORY_TURNS: u32 = 16;

/// The durable part of a thread's window during an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Counts the epochs of the thread.
    pub number: u64,
    pub(super) system_fingerprint: u64,
    /// The name of the counter that counted the pins.
    pub(super) counter: String,
    /// Where each layer is shown, in slot order.
    pub(super) layers: Arc<[LayerPlace]>,
    /// The first position of the log that is shown.
    pub(super) start: usize,
    /// A user message before `start` that is still shown, since it was the newest when `start` moved.
    pub(super) kept_user: Option<usize>,
    /// System messages before `start`, and the task, which are still shown.
    #[serde(default, rename = "kept_system", skip_serializing_if = "Vec::is_empty")]
    pub(super) kept: Vec<usize>,
    /// Items of the log that are shown shortened.
    #[serde(with = "pairs")]
    pub(super) shortened: BTreeMap<usize, Cut>,
    pub(super) summary: Option<PinnedSummary>,
}

/// Where one layer is shown during an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LayerPlace {
    pub(super) layer: LayerId,
    pub(super) place: WindowPlace,
}

/// A place in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WindowPlace {
    /// Anchored, as it was when the epoch began; without items if it recalled nothing then.
    Anchor(Pin),
    /// After history, as it is now.
    Live,
    /// Not shown: there was no room for it when the epoch began.
    LeftOut,
}

/// An anchored block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Pin {
    pub(super) items: SharedItems,
    pub(super) tokens: u64,
}

/// The text that replaces what was evicted, and the item that shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PinnedSummary {
    pub(super) text: String,
    pub(super) item: Arc<Item>,
}

impl Epoch {
    /// The past from `start` on, after the summary, the kept system messages, the task and the kept user message.
    pub(super) fn history(&self, log: &ItemLog) -> History {
        let mut parts = Vec::with_capacity(3 + self.kept.len());
        parts.extend(self.summary.as_ref().map(|summary| Part::Item(summary.item.clone())));
        let mut kept: Vec<usize> = self.kept.iter().copied().chain(self.kept_user).collect();
        kept.sort_unstable();
        parts.extend(kept.into_iter().filter(|at| *at < log.len()).map(|at| Part::Log(at..at + 1)));
        parts.push(Part::Log(self.start.min(log.len())..log.len()));
        History::from_parts(log, parts)
    }

    /// The next epoch of the thread.
    pub(super) fn next(&mut self, reason: EpochReason, layers: Arc<[LayerPlace]>, fingerprint: u64, counter: &str) {
        self.number = if reason == EpochReason::ColdStart { 0 } else { self.number + 1 };
        self.layers = layers;
        self.system_fingerprint = fingerprint;
        counter.clone_into(&mut self.counter);
    }

    /// Discards decisions about items from a position on.
    pub(super) fn forget_behind(&mut self, position: usize) {
        self.shortened.retain(|shortened, _| *shortened < position);
        self.start = self.start.min(position);
        self.kept_user = self.kept_user.filter(|user| *user < position);
        self.kept.retain(|kept| *kept < position);
    }
}

impl LayerPlace {
    pub(super) fn pin(&self) -> Option<&Pin> {
        match &self.place {
            WindowPlace::Anchor(pin) => Some(pin),
            WindowPlace::Live | WindowPlace::LeftOut => None,
        }
    }
}

/// How often a layer's output changed from one turn to the next in this thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Churn {
    turns: u32,
    changes: u32,
    fingerprint: u64,
}

impl Churn {
    /// Records one turn. `unchanged`: the items are known to be those of the previous turn.
    pub(super) fn observe(&mut self, items: &SharedItems, unchanged: bool) {
        if !unchanged {
            let fingerprint = fingerprint_items(items);
            self.changes += u32::from(self.turns > 0 && self.fingerprint != fingerprint);
            self.fingerprint = fingerprint;
        }
        self.turns += 1;
        if self.turns >= CHURN_MEMORY_TURNS {
            (self.turns, self.changes) = (self.turns / 2, self.changes / 2);
        }
    }

    /// Whether it changed in more than half of the turns.
    fn is_lively(self) -> bool {
        self.turns >= CHURN_TURNS && self.changes * 2 > self.turns
    }
}

/// Whether a block is shown after history in an epoch that begins now.
pub(super) fn is_live(block: &Block, churn: &BTreeMap<LayerId, Churn>) -> bool {
    match block.placement {
        Placement::Anchor => false,
        Placement::Live => true,
        Placement::Auto => churn.get(&block.layer).is_some_and(|churn| churn.is_lively()),
    }
}

/// Not every JSON reader supports numbers as keys, so the map is stored as a list of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Cut;

    pub(super) fn serialize<S: Serializer>(map: &BTreeMap<usize, Cut>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<usize, Cut>, D::Error> {
        Ok(Vec::<(usize, Cut)>::deserialize(deserializer)?.into_iter().collect())
    }
}
