//! The input of a window.

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

/// Shared items, for instance of a block and its pinned copy.
pub type SharedItems = Arc<[Arc<Item>]>;

/// The contribution of a layer to this turn's windows.
#[derive(Clone, Debug)]
pub struct Block {
    /// The layer.
    pub layer: LayerId,
    /// Its items; empty if it recalled nothing.
    pub items: SharedItems,
    /// Their tokens.
    pub tokens: u64,
    /// Its allotment.
    pub allocated: u64,
    /// The placement in its spec.
    pub placement: Placement,
    /// Where the block came from.
    pub served: Served,
}

/// Renders the change of a layer's block, if the layer has a short form for it.
pub type RenderDelta<'a> = dyn Fn(&LayerId, &[Arc<Item>], &[Arc<Item>]) -> Option<String> + 'a;

/// The input of a window.
pub struct WindowInput<'a> {
    /// How large it may be.
    pub policy: &'a ProjectionPolicy,
    /// Counts the items that are created here.
    pub counter: &'a dyn TokenCounter,
    /// The tokens of the system prompt.
    pub system_tokens: u64,
    /// The tokens of the tools' schemas.
    pub tools_tokens: u64,
    /// The fingerprint of the system prompt and the tools.
    pub system_fingerprint: u64,
    /// The contributions of layers, in slot order.
    pub blocks: &'a [Block],
    /// The past, after all `project_history` hooks.
    pub history: &'a History,
    /// Guidance for the next response.
    pub guidance: &'a [String],
    /// Renders a short update of a layer's block.
    pub delta: &'a RenderDelta<'a>,
    /// Why the provider's cache cannot be used, if so.
    pub cache_lost: Option<EpochReason>,
    /// The summary that the last [`SummaryRequest`](super::SummaryRequest) requested.
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
