//! Durable records of what was done to the projection, and why.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::LayerId;

/// Something that was done to the projection of a thread.
///
/// Decisions are committed together with the items of their step and replayed byte for byte: the same log and
/// the same decisions give the same window, after a restart or on another machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Counts the decisions of a thread, from 0. The engine sets it.
    pub number: u64,
    /// How many items the log had when it was made. The engine sets it.
    pub at: usize,
    /// The layer that made it; `None` for the engine.
    pub layer: Option<LayerId>,
    /// What was done.
    pub action: Action,
    /// Why, in plain words.
    pub reason: String,
    /// What it cost and saves, if that was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// What a [`Decision`] did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// A new epoch began: anchors are rendered anew and the prefix changes.
    Epoch {
        /// Why it was free or paid.
        reason: EpochReason,
    },
    /// An item is shown as head, marker and tail.
    Shorten {
        /// Its position in the log.
        position: usize,
        /// Bytes kept of its start.
        head_bytes: usize,
        /// Bytes kept of its end.
        tail_bytes: usize,
    },
    /// Everything before a position is no longer shown, except the newest user message.
    Evict {
        /// The first position that is still shown.
        start: usize,
    },
    /// This text is shown instead of the evicted items.
    Summarize {
        /// The first position that the text does not cover.
        end: usize,
        /// The text.
        text: String,
        /// Its tokens.
        tokens: u64,
        /// Whether a model wrote it; otherwise it is the deterministic ledger.
        by_model: bool,
    },
    /// A decision of a layer, in the layer's own format.
    #[serde(with = "layer_words")]
    Layer(Value),
}

/// Stores a layer's value in a separate field, since it may be any JSON, including an object with an `action`.
mod layer_words {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    #[derive(Serialize, Deserialize)]
    struct ReasonRecord<T> {
        what: T,
    }

    pub(super) fn serialize<S: Serializer>(what: &Value, serializer: S) -> Result<S::Ok, S::Error> {
        ReasonRecord { what }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        ReasonRecord::deserialize(deserializer).map(|words| words.what)
    }
}

impl Action {
    /// Whether it refers to items from `position` on.
    pub(crate) fn reaches_behind(&self, position: usize) -> bool {
        match self {
            Action::Shorten { position: shortened, .. } => *shortened >= position,
            Action::Evict { start: end } | Action::Summarize { end, .. } => *end > position,
            Action::Epoch { .. } | Action::Layer(_) => false,
        }
    }
}

/// Why an epoch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpochReason {
    /// Nothing was ever sent for this thread.
    ColdStart,
    /// The system prompt or the tools changed.
    SystemChanged,
    /// The provider reported that it did not find the prefix.
    ProviderMiss,
    /// The provider's cache has expired since the last request.
    CacheExpired,
    /// The corrections to anchors took more room than their band has.
    UpdatesOutgrew,
    /// Pinned anchors no longer fit their layers' budgets.
    AnchorsOutgrew,
    /// The history was cut or folded, so the prefix changed anyway.
    HistoryFolded,
    /// Another process wrote to the thread.
    LogMerged,
}

/// What a change of the prefix costs and is expected to save, in tokens at the price of plain input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// What is billed again because it comes after the change.
    pub cost: f64,
    /// What is no longer billed, on every later request.
    pub saves_per_request: f64,
}
