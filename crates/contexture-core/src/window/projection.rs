//! The state of a thread's window between requests, and how the next window is built.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bands::{Bands, Past};
use super::epoch::{Churn, Epoch};
use super::fold;
use super::input::{Block, SharedItems, WindowInput};
use super::layout::Last;
use super::output::{Assembly, Window};
use super::room::available;
use super::shown::{ProjectedItem, ShownCache};
use super::updates::UpdatesMessage;
use crate::decision::{Action, EpochReason};
use crate::error::Error;
use crate::history::History;
use crate::id::LayerId;
use crate::log::ItemLog;

/// The state of a thread's window between requests.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    epoch: Option<Epoch>,
    churn: BTreeMap<LayerId, Churn>,
    memo: ProjectionCache,
}

/// A cache of the last window. Results do not depend on it.
#[derive(Clone, Debug, Default)]
struct ProjectionCache {
    history: ShownCache,
    updates: Option<Arc<UpdatesMessage>>,
    window: Last,
    /// The blocks of the last turn.
    turn: Vec<(LayerId, SharedItems)>,
}

impl Projection {
    /// Creates a projection from its stored parts.
    pub fn restore(epoch: Option<Epoch>, churn: BTreeMap<LayerId, Churn>) -> Self {
        Self { epoch, churn, memo: ProjectionCache::default() }
    }

    /// The durable part that changes rarely: only when a window has decisions.
    pub fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_ref()
    }

    /// The durable part that changes every turn.
    pub fn churn(&self) -> &BTreeMap<LayerId, Churn> {
        &self.churn
    }

    /// The past according to the log and earlier decisions, before any `project_history`.
    pub fn history(&self, log: &ItemLog) -> History {
        self.epoch.as_ref().map_or_else(|| History::of(log), |epoch| epoch.history(log))
    }

    /// Discards decisions about items from a position on, since other items are there now.
    pub(crate) fn forget_behind(&mut self, position: usize) {
        if let Some(epoch) = &mut self.epoch {
            epoch.forget_behind(position);
        }
        self.memo = ProjectionCache::default();
    }

    /// Records, once a turn, whether each layer's output changed since the previous turn.
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

    /// Builds a window.
    ///
    /// If the result is [`Assembly::Ready`], its decisions are applied to the projection; otherwise it is unchanged.
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
            // The prefix changes anyway, so rendering the anchors again is free. If history fits then, only the
            // updates had taken its room.
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

    /// Starts the new epoch if there is one, and puts the window in order.
    fn finish(&mut self, input: &WindowInput<'_>, bands: Bands, shown: Vec<ProjectedItem>, available: u64) -> Window {
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

fn epoch_sentence(reason: EpochReason) -> &'static str {
    match reason {
        EpochReason::ColdStart => "nothing was sent before",
        EpochReason::SystemChanged => "the system prompt or the tools changed",
        EpochReason::ProviderMiss => "the provider did not find the prefix in its cache",
        EpochReason::CacheExpired => "the provider's cache has expired",
        EpochReason::UpdatesOutgrew => "updates to anchors took more than their share",
        EpochReason::AnchorsOutgrew => "pinned anchors no longer fit",
        EpochReason::HistoryFolded => "history was cut, so the prefix changed anyway",
        EpochReason::LogMerged => "another process wrote to the thread",
    }
}
