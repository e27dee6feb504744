//! Token usage of a request by band and layer.

use serde::{Deserialize, Serialize};

use crate::id::LayerId;

/// A part of the window. Variants are in the order of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Band {
    /// The system prompt and the tools.
    System,
    /// Layers whose output stays byte-identical during an epoch.
    Anchor,
    /// The past of the conversation.
    History,
    /// Layers that change every turn.
    Live,
    /// One developer message with the new text of anchors that changed.
    Updates,
    /// Guidance for the next response.
    Tail,
}

/// Whether a layer's block was rendered for this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Served {
    /// Rendered for this turn.
    Fresh,
    /// Held from the start of the epoch.
    Pinned,
    /// From the cache of an eventual layer.
    Cached,
}

/// What one layer got and used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerUsage {
    /// The layer.
    pub layer_id: LayerId,
    /// What it could have used.
    pub allocated: u64,
    /// What it used, in all bands together.
    pub used: u64,
    /// What of that is in the message of updates; the rest is in the band of its block.
    #[serde(default)]
    pub updates: u64,
    /// What it left to history.
    pub yielded: u64,
    /// The band of its block.
    pub band: Band,
    /// Whether the block is new.
    pub served: Served,
}

/// Token usage of one request by band and layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepUsage {
    /// The whole budget.
    pub budget: u64,
    /// What is kept free for the response.
    pub response_reserve: u64,
    /// The system prompt.
    pub system: u64,
    /// The tools' schemas.
    pub tools: u64,
    /// Anchored blocks.
    pub anchor: u64,
    /// History.
    pub history: u64,
    /// What history could have used.
    pub history_allocated: u64,
    /// Live blocks.
    pub live: u64,
    /// Corrections to anchors.
    pub updates: u64,
    /// Guidance.
    pub tail: u64,
    /// Each layer, in slot order.
    pub layers: Vec<LayerUsage>,
    /// How many leading items are byte-identical with those of the previous request.
    pub kept_items: usize,
    /// The tokens of the anchors and of history among them, with system and tools if these are the same too.
    pub kept_tokens: u64,
    /// Counts the epochs of the thread, from 0.
    pub epoch: u64,
}

impl StepUsage {
    /// All tokens of the request. With `response_reserve` never above `budget`.
    pub fn total(&self) -> u64 {
        self.system + self.tools + self.anchor + self.history + self.live + self.updates + self.tail
    }
}
