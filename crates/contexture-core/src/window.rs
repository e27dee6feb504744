//! The window: exactly what one model request shows, and why.
//!
//! A [`Projection`] holds what is durable about a thread's window: the epoch with its pinned anchors, where
//! history begins, and what is shown shortened. [`Projection::assemble`] is a pure function of it and of a
//! [`WindowInput`]; it never awaits. Bands stand in the order of [`Band`].

mod policy;
mod epoch;
mod bands;
mod updates;
mod shown;
mod fold;
mod fit;
mod summary;
mod ledger;
mod layout;
mod text;
mod fingerprint;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::decision::{Action, EpochReason};
use crate::error::Error;
use crate::history::History;
use crate::id::LayerId;
use crate::item::Item;
use crate::layer::Placement;
use crate::log::ItemLog;
use crate::tokens::TokenCounter;
use crate::usage::{Band, Served, StepUsage};

use bands::{Bands, Past};
pub use epoch::{Churn, Epoch};
pub(crate) use fingerprint::fingerprint_text;
use layout::Last;
pub use ledger::ledger;
pub use policy::{Overflow, ProjectionPolicy};
use shown::{Kept, Shown};
pub use text::{Cut, escape_tags, fence_for, fit_block};
pub(crate) use text::{fit_item, memory_block};
use updates::Rendered;

/// The least room in which a window can be made at all.
pub const MIN_WINDOW_TOKENS: u64 = 96;
/// The newest user message is kept at least this large, if it is.
const MIN_USER_TOKENS: u64 = 24;

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
    /// What its spec says about where it stands.
    pub placement: Placement,
    /// Where the answer came from.
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
    /// The summary that the last answer asked for.
    pub summary: Option<Summary>,
}

/// A text that stands in for evicted items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The text.
    pub text: String,
    /// Whether a model wrote it.
    pub by_model: bool,
}

/// What is needed before the window can be made.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryRequest {
    /// The positions of the log to be told, behind what the last summary told.
    pub start: usize,
    /// The first position that is not to be told.
    pub end: usize,
    /// The last summary, to be told again.
    pub previous: Option<String>,
    /// How many tokens the text may have: fewer than what it stands in for.
    pub max_tokens: u64,
}

/// An assembled window, or what is missing for it.
#[derive(Debug)]
pub enum Assembly {
    /// Here it is.
    Ready(Box<Window>),
    /// History does not fit and is to be summarised: call again with a [`Summary`].
    NeedsSummary(SummaryRequest),
}

/// Exactly what one model request shows, behind the system prompt and the tools.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The items, in order of their bands.
    pub items: Vec<Arc<Item>>,
    /// Where the prompt may be cached, as counts of leading items: behind the system prompt, behind the anchors,
    /// where history ended in the request before, and where it ends now. Ascending.
    pub breakpoints: Vec<usize>,
    /// Where the tokens went.
    pub usage: StepUsage,
    /// Where the items come from: every item belongs to one section, in order.
    pub sections: Vec<Section>,
    /// What was decided anew for this window: what, and why.
    pub decisions: Vec<(Action, String)>,
}

/// A run of items with one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The band it stands in.
    pub band: Band,
    /// The layer that it comes from; `None` for history, updates and the tail.
    pub layer: Option<LayerId>,
    /// How many items it has.
    pub items: usize,
    /// Their tokens.
    pub tokens: u64,
}

/// A thread's window between requests.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    epoch: Option<Epoch>,
    churn: BTreeMap<LayerId, Churn>,
    memo: Memo,
}

/// What was made for the last window and need not be made again. Items and decisions do not depend on it.
#[derive(Clone, Debug, Default)]
struct Memo {
    history: Kept,
    updates: Option<Arc<Rendered>>,
    window: Last,
    /// The blocks of the last turn.
    turn: Vec<(LayerId, SharedItems)>,
}

impl Projection {
    /// The projection of a thread as it was stored.
    pub fn restore(epoch: Option<Epoch>, churn: BTreeMap<LayerId, Churn>) -> Self {
        Self { epoch, churn, memo: Memo::default() }
    }

    /// The durable part that changes rarely: only when a window has decisions.
    pub fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_ref()
    }

    /// The durable part that changes every turn.
    pub fn churn(&self) -> &BTreeMap<LayerId, Churn> {
        &self.churn
    }

    /// The past as the log and earlier decisions give it, before any `project_history`.
    pub fn history(&self, log: &ItemLog) -> History {
        self.epoch.as_ref().map_or_else(|| History::of(log), |epoch| epoch.history(log))
    }

    /// Forgets what was decided about items from a position on, since other items stand there now.
    pub(crate) fn forget_behind(&mut self, position: usize) {
        if let Some(epoch) = &mut self.epoch {
            epoch.forget_behind(position);
        }
        self.memo = Memo::default();
    }

    /// Notes, once a turn, whether each layer's output changed since the turn before.
    pub fn observe_turn(&mut self, blocks: &[Block]) {
        self.memo.turn.truncate(blocks.len());
        for (index, block) in blocks.iter().enumerate() {
            let last = self.memo.turn.get_mut(index);
            let unchanged =
                last.as_ref().is_some_and(|(layer, items)| Arc::ptr_eq(items, &block.items) && *layer == block.layer);
            match self.churn.get_mut(&block.layer) {
                Some(churn) => churn.observe(&block.items, unchanged),
                None => self.churn.entry(block.layer.clone()).or_default().observe(&block.items, false),
            }
            match last {
                Some(_) if unchanged => {}
                Some(last) => *last = (block.layer.clone(), block.items.clone()),
                None => self.memo.turn.push((block.layer.clone(), block.items.clone())),
            }
        }
    }

    /// Puts one window together.
    ///
    /// With [`Assembly::Ready`] the projection has taken over what was decided; otherwise it is unchanged.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if system, tools and response leave too little for any window.
    pub fn assemble(&mut self, input: &WindowInput<'_>) -> Result<Assembly, Error> {
        let available = available(input)?;
        let no_cuts = BTreeMap::new();
        let cuts = self.epoch.as_ref().map_or(&no_cuts, |epoch| &epoch.shortened);
        let shown = self.memo.history.collect(input, cuts);
        let past = Past { epoch: self.epoch.as_ref(), churn: &self.churn, updates: self.memo.updates.as_ref() };
        let mut bands = Bands::plan(past, input, available);
        if fold::fits(input.policy, &shown, available - bands.tokens()) {
            return Ok(Assembly::Ready(Box::new(self.finish(input, bands, shown, available))));
        }
        if bands.reason.is_none() {
            // The prefix changes anyway, so anchors are rendered anew for free. If history then has room, it was
            // the corrections that took it.
            bands = Bands::begin(past, input, available, EpochReason::UpdatesOutgrew);
            if fold::fits(input.policy, &shown, available - bands.tokens()) {
                return Ok(Assembly::Ready(Box::new(self.finish(input, bands, shown, available))));
            }
            bands.reason = Some(EpochReason::HistoryFolded);
        }
        let folded = match fold::fold(self.epoch.as_ref(), input, shown, available - bands.tokens()) {
            Ok(folded) => folded,
            Err(request) => return Ok(Assembly::NeedsSummary(request)),
        };
        let epoch = self.epoch.get_or_insert_default();
        let (shown, decisions) = epoch.take_over(input.history.log(), folded);
        self.memo.history.forget_all_but(&epoch.shortened);
        let mut window = self.finish(input, bands, shown, available);
        window.decisions.extend(decisions);
        Ok(Assembly::Ready(Box::new(window)))
    }

    /// Begins the epoch if one begins, and lays the window out.
    fn finish(&mut self, input: &WindowInput<'_>, bands: Bands, shown: Vec<Shown>, available: u64) -> Window {
        let mut window = self.memo.window.lay_out(input, &bands, shown, available);
        let epoch = self.epoch.get_or_insert_default();
        if let Some(reason) = bands.reason {
            epoch.next(reason, bands.layers, input.system_fingerprint, input.counter.name());
            window.decisions.push((Action::Epoch { reason }, epoch_sentence(reason).to_owned()));
        }
        window.usage.epoch = epoch.number;
        self.memo.updates = bands.updates;
        window
    }
}

/// What is left for bands when system, tools and response have theirs.
fn available(input: &WindowInput<'_>) -> Result<u64, Error> {
    let mut available = input.policy.token_budget;
    let taken = [
        ("token_budget", 0),
        ("response_reserve", input.policy.response_reserve),
        ("system", input.system_tokens),
        ("tools", input.tools_tokens),
    ];
    for (field, tokens) in taken {
        available = available.saturating_sub(tokens);
        if available < MIN_WINDOW_TOKENS {
            return Err(Error::NoRoom { field, available, needed: MIN_WINDOW_TOKENS });
        }
    }
    Ok(available)
}

/// What history is left at least, whatever layers ask for: enough for the newest user message, or a quarter.
pub(crate) fn least_history(available: u64, log: &ItemLog) -> u64 {
    let user = log.newest_user().and_then(|user| log.get(user)).map_or(0, |entry| entry.tokens);
    user.min(available / 4).max(MIN_USER_TOKENS).min(available)
}

fn epoch_sentence(reason: EpochReason) -> &'static str {
    match reason {
        EpochReason::ColdStart => "nothing was sent before",
        EpochReason::SystemChanged => "the system prompt or the tools changed",
        EpochReason::ProviderMiss => "the provider did not find the prefix in its cache",
        EpochReason::CacheExpired => "the provider's cache has expired",
        EpochReason::UpdatesOutgrew => "corrections to anchors took more room than they may",
        EpochReason::AnchorsOutgrew => "pinned anchors no longer fit",
        EpochReason::HistoryFolded => "history was cut, so the prefix changed anyway",
        EpochReason::LogMerged => "another process wrote to the thread",
    }
}
