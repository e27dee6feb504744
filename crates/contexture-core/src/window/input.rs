//! What one window is made of.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::policy::ProjectionPolicy;
use crate::decision::EpochReason;
use crate::history::History;
use crate::id::LayerId;
use crate::item::Item;
use crate::layer::Placement;
use crate::tokens::TokenCounter;
use crate::usage::Served;

/// Items that several owners hold, such as a block and the pin made of it.
pub type SharedItems = Arc<[Arc<Item>]>;

/// What a layer contributes to this turn's windows.
#[derive(Clone, Debug)]
pub struct Block {
    /// The layer.
    pub layer: LayerId,
    /// What it says; empty if it has nothing to say.
    pub items: SharedItems,
    /// The tokens of that.
    pub tokens: u64,
    /// What it could have used.
    pub allocated: u64,
    /// What its spec says about where it is shown.
    pub placement: Placement,
    /// Where the block came from.
    pub served: Served,
}

/// Renders what changed in a layer's block between two versions, if the layer knows a short way to say it.
pub type RenderDelta<'a> = dyn Fn(&LayerId, &[Arc<Item>], &[Arc<Item>]) -> Option<String> + 'a;

/// Everything that one window is made of.
pub struct WindowInput<'a> {
    /// How large it may be.
    pub policy: &'a ProjectionPolicy,
    /// Counts what is made here.
    pub counter: &'a dyn TokenCounter,
    /// The tokens of the system prompt.
    pub system_tokens: u64,
    /// The tokens of the tools' schemas.
    pub tools_tokens: u64,
    /// Differs whenever the system prompt or the tools differ.
    pub system_fingerprint: u64,
    /// What layers contribute, in slot order.
    pub blocks: &'a [Block],
    /// The past, after all `project_history` hooks.
    pub history: &'a History,
    /// Guidance for the next response.
    pub guidance: &'a [String],
    /// Renders a compact correction of a layer's block.
    pub delta: &'a RenderDelta<'a>,
    /// Why the provider's cache is worthless now, if it is.
    pub cache_lost: Option<EpochReason>,
    /// The summary that the last [`SummaryRequest`](super::SummaryRequest) asked for.
    pub summary: Option<Summary>,
}

/// A text that replaces evicted items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The text.
    pub text: String,
    /// Whether a model wrote it.
    pub by_model: bool,
}
