//! An assembled window, or what is missing for it.

use std::sync::Arc;

use serde::Serialize;

use crate::decision::Action;
use crate::id::LayerId;
use crate::item::Item;
use crate::usage::{Band, StepUsage};

/// An assembled window, or what is missing for it.
#[derive(Debug)]
pub enum Assembly {
    /// The window.
    Ready(Box<Window>),
    /// History does not fit and must be summarised: call again with a [`Summary`](super::Summary).
    NeedsSummary(SummaryRequest),
}

/// The summary that is needed before the window can be built.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRequest {
    /// The positions of the log to summarise, after those of the last summary.
    pub start: usize,
    /// The first position that is not summarised.
    pub end: usize,
    /// The last summary, to be included in the new one.
    pub previous: Option<String>,
    /// The largest number of tokens of the text: fewer than what it replaces.
    pub max_tokens: u64,
}

/// The items of one model request, after the system prompt and the tools.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The items, in order of their bands.
    pub items: Vec<Arc<Item>>,
    /// Where the prompt may be cached, as counts of leading items: after the system prompt, after the anchors,
    /// where history ended in the previous request, and where it ends now. Ascending.
    pub breakpoints: Vec<usize>,
    /// The tokens by band and layer.
    pub usage: StepUsage,
    /// The sources of the items: every item belongs to one section, in order.
    pub sections: Vec<Section>,
    /// The new decisions of this window, with reasons.
    pub decisions: Vec<(Action, String)>,
}

/// A run of items with one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The band it is in.
    pub band: Band,
    /// Its layer; `None` for history, updates and the tail.
    pub layer: Option<LayerId>,
    /// How many items it has.
    pub items: usize,
    /// Their tokens.
    pub tokens: u64,
}
