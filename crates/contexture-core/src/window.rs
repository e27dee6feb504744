//! The window: exactly what one model request shows, and why.
//!
//! A [`Projection`] holds what is durable about a thread's window: the epoch with its pinned anchors, where
//! history begins, and what is shown shortened. [`Projection::assemble`] is a pure function of it and of a
//! [`WindowInput`]; it never awaits. Bands stand in the order of [`Band`].

mod fit;
mod ledger;
mod policy;
mod text;
mod updates;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::decision::{Action, EpochReason};
use crate::error::Error;
use crate::history::{History, Part};
use crate::id::LayerId;
use crate::item::{Item, Role};
use crate::layer::Placement;
use crate::log::ItemLog;
use crate::tokens::{TokenCounter, count_item};
use crate::usage::{Band, LayerUsage, Served, StepUsage};

use fit::{Fitted, Limits, Shown, without_orphans};
pub use ledger::ledger;
pub use policy::{Overflow, ProjectionPolicy};
pub use text::{Cut, escape_tags, fence_for, fit_block};
pub(crate) use text::{fit_item, memory_block};

/// The least room in which a window can be made at all.
pub const MIN_WINDOW_TOKENS: u64 = 96;
/// The newest user message is kept at least this large, if it is.
const MIN_USER_TOKENS: u64 = 24;
/// After an eviction history fills this much of its room, in tenths.
const EVICT_TO_TENTHS: u64 = 6;
/// Corrections to anchors may take this share of the room before a new epoch is cheaper.
const UPDATES_SHARE: u64 = 10;
/// Guidance may take this share of the room.
const TAIL_SHARE: u64 = 8;
/// A summary may take this share of history's room.
const SUMMARY_SHARE: u64 = 8;
/// Turns after which the churn of a layer says something.
const CHURN_TURNS: u32 = 3;

/// What a layer contributes to this turn's windows.
#[derive(Clone, Debug)]
pub struct Block {
    /// The layer.
    pub layer: LayerId,
    /// What it says; empty if it has nothing to say.
    pub items: Arc<[Arc<Item>]>,
    /// The tokens of that.
    pub tokens: u64,
    /// What it could have used.
    pub allocated: u64,
    /// What its spec says about where it stands.
    pub placement: Placement,
    /// Where the answer came from.
    pub served: Served,
}

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
    pub delta: &'a dyn Fn(&LayerId, &[Arc<Item>], &[Arc<Item>]) -> Option<String>,
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
    /// How many tokens the text may have.
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
    /// Where the prompt may be cached, as counts of leading items.
    pub breakpoints: Vec<usize>,
    /// Where the tokens went.
    pub usage: StepUsage,
    /// What was decided anew for this window: what, and why.
    pub decisions: Vec<(Action, String)>,
}

/// What is durable about a thread's window while an epoch lasts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// Counts the epochs of the thread.
    pub number: u64,
    system_fingerprint: u64,
    pins: Vec<Pin>,
    /// The first position of the log that is shown.
    start: usize,
    /// A user message before `start` that is shown all the same, since it was the newest when `start` moved.
    kept_user: Option<usize>,
    shortened: BTreeMap<usize, Cut>,
    summary: Option<PinnedSummary>,
}

/// An anchored block as it was when the epoch began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pin {
    layer: LayerId,
    items: Arc<[Arc<Item>]>,
    tokens: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PinnedSummary {
    item: Arc<Item>,
    text: String,
    tokens: u64,
}

/// How often a layer's output changed from one turn to the next in this thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Churn {
    turns: u32,
    changes: u32,
    fingerprint: u64,
}

impl Churn {
    /// Whether it changed in more than half of the turns.
    fn is_lively(self) -> bool {
        self.turns >= CHURN_TURNS && self.changes * 2 > self.turns
    }
}

/// A thread's window between requests.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    epoch: Option<Epoch>,
    churn: BTreeMap<LayerId, Churn>,
    memo: Memo,
}

/// What was made for the last window and need not be made again. Nothing depends on it but time.
#[derive(Clone, Debug, Default)]
struct Memo {
    items: Vec<Arc<Item>>,
    history_end: usize,
    shortened: BTreeMap<usize, (Cut, Arc<Item>, u64)>,
    counted: Vec<(Arc<Item>, u64)>,
    updates: Option<updates::Rendered>,
}

/// The parts of a window while it is put together.
struct Draft {
    epoch: Epoch,
    reason: Option<EpochReason>,
    /// Blocks that had to be left out for lack of room.
    dropped: Vec<LayerId>,
    live: Vec<usize>,
    updates: Option<updates::Rendered>,
    tail: Option<(Arc<Item>, u64)>,
    history: Vec<Shown>,
    history_room: u64,
    decisions: Vec<(Action, String)>,
}

impl Projection {
    /// The projection of a thread as it was stored.
    pub fn restore(epoch: Option<Epoch>, churn: BTreeMap<LayerId, Churn>) -> Self {
        Self { epoch, churn, memo: Memo::default() }
    }

    /// The durable part that changes rarely.
    pub fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_ref()
    }

    /// The durable part that changes every turn.
    pub fn churn(&self) -> &BTreeMap<LayerId, Churn> {
        &self.churn
    }

    /// The past as the log and earlier decisions give it, before any `project_history`.
    pub fn history(&self, log: &ItemLog) -> History {
        let Some(epoch) = &self.epoch else { return History::of(log) };
        let history = History::since(log, epoch.start);
        let mut parts = Vec::with_capacity(3);
        parts.extend(epoch.summary.as_ref().map(|summary| Part::Item(summary.item.clone())));
        parts.extend(epoch.kept_user.map(|user| Part::Log(user..user + 1)));
        parts.extend(history.parts().iter().cloned());
        history.with_parts(parts)
    }

    /// Forgets what was decided about items from a position on, since other items stand there now.
    pub(crate) fn forget_behind(&mut self, position: usize) {
        let Some(epoch) = &mut self.epoch else { return };
        epoch.shortened.retain(|shortened, _| *shortened < position);
        epoch.start = epoch.start.min(position);
        epoch.kept_user = epoch.kept_user.filter(|user| *user < position);
        self.memo = Memo::default();
    }

    /// Notes, once a turn, whether each layer's output changed since the turn before.
    pub fn observe_turn(&mut self, blocks: &[Block]) {
        for block in blocks {
            let fingerprint = fingerprint_items(&block.items);
            let churn = self.churn.entry(block.layer.clone()).or_insert(Churn { fingerprint, ..Churn::default() });
            churn.turns += 1;
            churn.changes += u32::from(churn.fingerprint != fingerprint);
            churn.fingerprint = fingerprint;
        }
    }

    /// Puts one window together.
    ///
    /// On success the projection has taken over what was decided; otherwise it is unchanged.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if system, tools and response leave too little for any window.
    pub fn assemble(&mut self, input: &WindowInput<'_>) -> Result<Assembly, Error> {
        let available = available(input)?;
        let mut draft = self.draft(input, available, None)?;
        let mut fitted = match self.fit(input, &mut draft)? {
            Fit::Fits => None,
            Fit::Cut(fitted) => Some(fitted),
        };
        if let Some(cut) = &fitted
            && draft.reason.is_none()
        {
            // The prefix changes anyway, so anchors are rendered anew for free; that only makes room.
            let moved = cut.start;
            draft = self.draft(input, available, Some(EpochReason::HistoryFolded))?;
            fitted = match self.fit(input, &mut draft)? {
                Fit::Fits => None,
                Fit::Cut(fitted) => Some(fitted),
            };
            debug_assert!(moved.is_some() || fitted.is_none());
        }
        if let Some(fitted) = fitted {
            if let Some(request) = draft.apply_cut(input, fitted) {
                return Ok(Assembly::NeedsSummary(request));
            }
        }
        Ok(Assembly::Ready(Box::new(self.finish(input, draft))))
    }

    /// Decides on the epoch and renders everything but history.
    fn draft(&mut self, input: &WindowInput<'_>, available: u64, forced: Option<EpochReason>) -> Result<Draft, Error> {
        let reason = forced.or_else(|| self.epoch_reason(input));
        let mut draft = match (&self.epoch, reason) {
            (Some(epoch), None) => self.continue_epoch(epoch, input),
            (epoch, reason) => {
                let reason = reason.unwrap_or(EpochReason::ColdStart);
                self.begin_epoch(epoch.clone().unwrap_or_default(), reason, input)
            }
        };
        let updates_tokens = draft.updates.as_ref().map_or(0, |updates| updates.tokens);
        if updates_tokens > available / UPDATES_SHARE {
            draft = self.begin_epoch(draft.epoch, EpochReason::UpdatesOutgrew, input);
        }
        draft.tail = tail(input, available / TAIL_SHARE);
        let least = MIN_USER_TOKENS.max(newest_user_tokens(input).min(available / 4));
        if draft.band_tokens(input) + least > available && draft.updates.is_some() {
            draft = self.begin_epoch(draft.epoch, EpochReason::AnchorsOutgrew, input);
            draft.tail = tail(input, available / TAIL_SHARE);
        }
        draft.drop_blocks(input, available.saturating_sub(least));
        draft.history_room = available.saturating_sub(draft.band_tokens(input));
        Ok(draft)
    }

    fn epoch_reason(&self, input: &WindowInput<'_>) -> Option<EpochReason> {
        let Some(epoch) = &self.epoch else { return Some(EpochReason::ColdStart) };
        if input.cache_lost.is_some() {
            return input.cache_lost;
        }
        if epoch.system_fingerprint != input.system_fingerprint {
            return Some(EpochReason::SystemChanged);
        }
        let outgrown = |pin: &Pin| {
            let block = input.blocks.iter().find(|block| block.layer == pin.layer);
            pin.tokens > block.map_or(0, |block| block.allocated)
        };
        epoch.pins.iter().any(outgrown).then_some(EpochReason::AnchorsOutgrew)
    }

    /// The epoch goes on: anchors are held, and what changed is said in the updates.
    fn continue_epoch(&self, epoch: &Epoch, input: &WindowInput<'_>) -> Draft {
        let is_pinned = |block: &Block| epoch.pins.iter().any(|pin| pin.layer == block.layer);
        let live = |block: &Block| self.is_live(block) && !is_pinned(block);
        let updates = updates::render(input, &epoch.pins, self.memo.updates.as_ref(), live);
        let live = (0..input.blocks.len()).filter(|index| live(&input.blocks[*index])).collect();
        Draft::new(epoch.clone(), None, live, updates)
    }

    /// A new epoch: every anchored block is pinned as it is now, and every auto layer finds its band.
    fn begin_epoch(&self, epoch: Epoch, reason: EpochReason, input: &WindowInput<'_>) -> Draft {
        let (live, anchored): (Vec<usize>, Vec<usize>) =
            (0..input.blocks.len()).partition(|index| self.is_live(&input.blocks[*index]));
        let pins = anchored.into_iter().map(|index| &input.blocks[index]).filter(|block| !block.items.is_empty());
        let pin = |block: &Block| Pin { layer: block.layer.clone(), items: block.items.clone(), tokens: block.tokens };
        let number = if reason == EpochReason::ColdStart { 0 } else { epoch.number + 1 };
        let pins = pins.map(pin).collect();
        let epoch = Epoch { number, pins, system_fingerprint: input.system_fingerprint, ..epoch };
        Draft::new(epoch, Some(reason), live, None)
    }

    fn is_live(&self, block: &Block) -> bool {
        match block.placement {
            Placement::Anchor => false,
            Placement::Live => true,
            Placement::Auto => self.churn.get(&block.layer).is_some_and(|churn| churn.is_lively()),
        }
    }

    /// Collects history as it would be shown, and cuts it if it does not fit.
    fn fit(&mut self, input: &WindowInput<'_>, draft: &mut Draft) -> Result<Fit, Error> {
        let shown = self.memo.collect(input, &draft.epoch);
        let total: u64 = shown.iter().map(|shown| shown.tokens).sum();
        let room = draft.history_room;
        let window_size = input.policy.window_size.unwrap_or(ProjectionPolicy::DEFAULT_WINDOW_SIZE);
        let sliding = input.policy.overflow == Overflow::SlidingWindow;
        let logged = shown.iter().filter(|shown| shown.position.is_some()).count();
        if total <= room && !(sliding && logged > window_size) {
            draft.history = shown;
            return Ok(Fit::Fits);
        }
        let reserve = if input.policy.overflow == Overflow::Summarize { room / SUMMARY_SHARE } else { 0 };
        let limits = Limits {
            budget: room - reserve,
            target: (room - reserve) * EVICT_TO_TENTHS / 10,
            keep_items: if sliding { (window_size * 3 / 4).max(1) } else { usize::MAX },
            shorten_first: input.policy.overflow == Overflow::Truncate,
        };
        // The old summary is told again in the new one, so it takes no room of its own.
        let summary = draft.epoch.summary.as_ref().filter(|_| reserve > 0).map(|summary| summary.item.clone());
        let shown =
            shown.into_iter().filter(|shown| summary.as_ref().is_none_or(|item| !Arc::ptr_eq(item, &shown.item)));
        Ok(Fit::Cut(fit::fit(input.counter, shown.collect(), limits)))
    }

    /// Lays the bands out and takes over what was decided.
    fn finish(&mut self, input: &WindowInput<'_>, draft: Draft) -> Window {
        let mut items: Vec<Arc<Item>> = Vec::with_capacity(draft.history.len() + 2 * input.blocks.len() + 4);
        items.extend(draft.epoch.pins.iter().flat_map(|pin| pin.items.iter().cloned()));
        let anchor_end = items.len();
        items.extend(draft.history.iter().map(|shown| shown.item.clone()));
        let history_end = items.len();
        items.extend(draft.live.iter().flat_map(|index| input.blocks[*index].items.iter().cloned()));
        items.extend(draft.updates.as_ref().map(|updates| updates.item.clone()));
        items.extend(draft.tail.as_ref().map(|(item, _)| item.clone()));

        let kept = items.iter().zip(&self.memo.items).take_while(|(new, old)| same(new, old)).count();
        let mut breakpoints = vec![0, anchor_end, self.memo.history_end.min(kept), history_end];
        breakpoints.sort_unstable();
        breakpoints.dedup();
        let usage = draft.usage(input, kept, anchor_end);
        let mut decisions = draft.decisions;
        if let Some(reason) = draft.reason {
            decisions.insert(0, (Action::Epoch { reason }, epoch_sentence(reason).to_owned()));
        }
        self.memo.items.clone_from(&items);
        self.memo.history_end = history_end;
        self.memo.updates = draft.updates;
        self.epoch = Some(draft.epoch);
        Window { items, breakpoints, usage, decisions }
    }
}

enum Fit {
    Fits,
    Cut(Fitted),
}

impl Memo {
    /// The history as it would be shown, without orphans, with the newest user message.
    fn collect(&mut self, input: &WindowInput<'_>, epoch: &Epoch) -> Vec<Shown> {
        let log = input.history.log();
        let mut shown = Vec::with_capacity(input.history.len() + 1);
        let mut counted = Vec::new();
        for part in input.history.parts() {
            match part {
                Part::Log(range) => {
                    let logged = log.range(range.clone());
                    shown.extend(
                        logged.map(|(position, entry)| self.shown(input, epoch, position, &entry.item, entry.tokens)),
                    );
                }
                Part::Item(item) => {
                    let known = self.counted.iter().find(|(other, _)| Arc::ptr_eq(other, item));
                    let tokens = known.map_or_else(|| count_item(input.counter, item), |(_, tokens)| *tokens);
                    counted.push((item.clone(), tokens));
                    shown.push(Shown { item: item.clone(), tokens, position: None, whole: None });
                }
            }
        }
        self.counted = counted;
        self.ensure_newest_user(input, epoch, &mut shown);
        without_orphans(shown)
    }

    /// One item of the log, shortened if that was decided.
    fn shown(
        &mut self,
        input: &WindowInput<'_>,
        epoch: &Epoch,
        position: usize,
        item: &Arc<Item>,
        tokens: u64,
    ) -> Shown {
        // Nearly always empty, and then this costs nothing.
        let Some(cut) = epoch.shortened.get(&position).copied() else {
            return Shown { item: item.clone(), tokens, position: Some(position), whole: None };
        };
        let memo = self.shortened.get(&position).filter(|(memo_cut, ..)| *memo_cut == cut);
        let (shortened, tokens) = match memo {
            Some((_, shortened, tokens)) => (shortened.clone(), *tokens),
            None => {
                let shortened = Arc::new(text::cut_item(item, cut));
                let tokens = count_item(input.counter, &shortened);
                self.shortened.insert(position, (cut, shortened.clone(), tokens));
                (shortened, tokens)
            }
        };
        Shown { item: shortened, tokens, position: Some(position), whole: Some(item.clone()) }
    }

    /// Puts the newest user message back where it belongs if a layer left it out.
    fn ensure_newest_user(&mut self, input: &WindowInput<'_>, epoch: &Epoch, shown: &mut Vec<Shown>) {
        let log = input.history.log();
        let Some(position) = log.newest_user() else { return };
        let newest = shown.iter().rfind(|shown| shown.item.is_message_of(Role::User));
        // A layer may show it in other words: then it is the last user message, and stands in for it.
        if newest.is_some_and(|shown| shown.position.is_none_or(|shown| shown == position)) {
            return;
        }
        let Some(entry) = log.get(position) else { return };
        let user = self.shown(input, epoch, position, &entry.item, entry.tokens);
        let behind = shown.iter().position(|shown| shown.position.is_some_and(|other| other > position));
        shown.insert(behind.unwrap_or(shown.len()), user);
    }
}

impl Draft {
    fn new(epoch: Epoch, reason: Option<EpochReason>, live: Vec<usize>, updates: Option<updates::Rendered>) -> Self {
        Draft {
            epoch,
            reason,
            dropped: Vec::new(),
            live,
            updates,
            tail: None,
            history: Vec::new(),
            history_room: 0,
            decisions: Vec::new(),
        }
    }

    /// The tokens of everything but history.
    fn band_tokens(&self, input: &WindowInput<'_>) -> u64 {
        let anchor: u64 = self.epoch.pins.iter().map(|pin| pin.tokens).sum();
        let live: u64 = self.live.iter().map(|index| input.blocks[*index].tokens).sum();
        anchor
            + live
            + self.updates.as_ref().map_or(0, |updates| updates.tokens)
            + self.tail.as_ref().map_or(0, |(_, tokens)| *tokens)
    }

    /// Leaves out blocks of the highest slots until the rest has room. Happens only when minimums overcommit.
    fn drop_blocks(&mut self, input: &WindowInput<'_>, room: u64) {
        for block in input.blocks.iter().rev() {
            if self.band_tokens(input) <= room {
                return;
            }
            let pins = self.epoch.pins.len();
            self.epoch.pins.retain(|pin| pin.layer != block.layer);
            let live = self.live.len();
            self.live.retain(|index| input.blocks[*index].layer != block.layer);
            if pins != self.epoch.pins.len() || live != self.live.len() {
                self.dropped.push(block.layer.clone());
            }
        }
        if self.band_tokens(input) > room {
            (self.updates, self.tail) = (None, None);
        }
    }

    /// Takes over what `fit` decided; answers what is still needed for it.
    fn apply_cut(&mut self, input: &WindowInput<'_>, fitted: Fitted) -> Option<SummaryRequest> {
        let log = input.history.log();
        let start = fitted.start.unwrap_or(self.epoch.start).max(self.epoch.start);
        let evicts = start > self.epoch.start;
        let mut shown = fitted.shown;
        if evicts && input.policy.overflow == Overflow::Summarize {
            let max_tokens = self.history_room / SUMMARY_SHARE;
            let Some(summary) = &input.summary else {
                let previous = self.epoch.summary.as_ref().map(|summary| summary.text.clone());
                return Some(SummaryRequest { start: self.epoch.start, end: start, previous, max_tokens });
            };
            let item = Item::developer(format!("What happened before, in short:\n{}", escape_tags(&summary.text)));
            if let Some((_, item, tokens)) = fit_item(input.counter, &item, max_tokens) {
                let item = Arc::new(item);
                shown.insert(0, Shown { item: item.clone(), tokens, position: None, whole: None });
                self.epoch.summary = Some(PinnedSummary { item, text: summary.text.clone(), tokens });
                let action =
                    Action::Summarize { end: start, text: summary.text.clone(), tokens, by_model: summary.by_model };
                self.decisions.push((action, "history outgrew its room".to_owned()));
            }
        }
        for (position, cut) in fitted.shortened {
            self.epoch.shortened.insert(position, cut);
            let action = Action::Shorten { position, head_bytes: cut.head_bytes, tail_bytes: cut.tail_bytes };
            self.decisions.push((action, "history outgrew its room, and this item is large".to_owned()));
        }
        if evicts {
            let user = log.newest_user().filter(|user| *user < start);
            self.epoch.kept_user = user;
            self.epoch.start = start;
            self.epoch.shortened.retain(|position, _| *position >= start || Some(*position) == user);
            self.decisions.push((Action::Evict { start }, "history outgrew its room".to_owned()));
        }
        self.history = shown;
        None
    }

    fn usage(&self, input: &WindowInput<'_>, kept_items: usize, anchor_end: usize) -> StepUsage {
        let layers = input.blocks.iter().map(|block| self.layer_usage(input, block)).collect();
        let mut usage = StepUsage {
            budget: input.policy.token_budget,
            response_reserve: input.policy.response_reserve,
            system: input.system_tokens,
            tools: input.tools_tokens,
            anchor: self.epoch.pins.iter().map(|pin| pin.tokens).sum(),
            history: self.history.iter().map(|shown| shown.tokens).sum(),
            history_allocated: self.history_room,
            live: self.live.iter().map(|index| input.blocks[*index].tokens).sum(),
            updates: self.updates.as_ref().map_or(0, |updates| updates.tokens),
            tail: self.tail.as_ref().map_or(0, |(_, tokens)| *tokens),
            layers,
            kept_items,
            kept_tokens: 0,
            epoch: self.epoch.number,
        };
        usage.kept_tokens = self.kept_tokens(&usage, kept_items, anchor_end);
        usage
    }

    /// The tokens of the leading items that did not change, with system and tools.
    fn kept_tokens(&self, usage: &StepUsage, kept_items: usize, anchor_end: usize) -> u64 {
        let system = usage.system + usage.tools;
        if kept_items < anchor_end {
            return system;
        }
        let history = self.history.iter().take(kept_items - anchor_end).map(|shown| shown.tokens).sum::<u64>();
        system + usage.anchor + history
    }

    fn layer_usage(&self, input: &WindowInput<'_>, block: &Block) -> LayerUsage {
        let pin = self.epoch.pins.iter().find(|pin| pin.layer == block.layer);
        let corrected = self.updates.as_ref().and_then(|updates| updates.tokens_of(&block.layer));
        let is_live = self.live.iter().any(|index| input.blocks[*index].layer == block.layer);
        let (band, served) = match (pin, is_live, self.reason) {
            (Some(_), _, None) => (Band::Anchor, Served::Pinned),
            (None, true, _) => (Band::Live, block.served),
            (None, false, None) if corrected.is_some() => (Band::Updates, block.served),
            _ => (Band::Anchor, block.served),
        };
        let shown = if pin.is_none() && is_live { block.tokens } else { 0 };
        let used = pin.map_or(shown, |pin| pin.tokens) + corrected.unwrap_or(0);
        let yielded = block.allocated.saturating_sub(used);
        LayerUsage { layer_id: block.layer.clone(), allocated: block.allocated, used, yielded, band, served }
    }
}

/// What is left for bands when system, tools and response have theirs.
fn available(input: &WindowInput<'_>) -> Result<u64, Error> {
    let policy = input.policy;
    let of_budget = |taken: u64| policy.token_budget.saturating_sub(taken);
    let no_room = |field, available| Error::NoRoom { field, available, needed: MIN_WINDOW_TOKENS };
    let after_reserve = of_budget(policy.response_reserve);
    if after_reserve < MIN_WINDOW_TOKENS {
        return Err(no_room("token_budget", after_reserve));
    }
    let after_system = of_budget(policy.response_reserve.saturating_add(input.system_tokens));
    if after_system < MIN_WINDOW_TOKENS {
        return Err(no_room("system", after_system));
    }
    let available = after_system.saturating_sub(input.tools_tokens);
    if available < MIN_WINDOW_TOKENS {
        return Err(no_room("tools", available));
    }
    Ok(available)
}

fn newest_user_tokens(input: &WindowInput<'_>) -> u64 {
    let log = input.history.log();
    log.newest_user().and_then(|user| log.get(user)).map_or(0, |entry| entry.tokens)
}

/// The guidance as one developer message that fits its band.
fn tail(input: &WindowInput<'_>, room: u64) -> Option<(Arc<Item>, u64)> {
    if input.guidance.is_empty() {
        return None;
    }
    let text = format!("Guidance for your next response:\n{}", input.guidance.join("\n"));
    let item = Item::developer(text);
    let tokens = count_item(input.counter, &item);
    if tokens <= room {
        return Some((Arc::new(item), tokens));
    }
    let (_, item, tokens) = fit_item(input.counter, &item, room)?;
    Some((Arc::new(item), tokens))
}

fn same(new: &Arc<Item>, old: &Arc<Item>) -> bool {
    Arc::ptr_eq(new, old) || new == old
}

fn epoch_sentence(reason: EpochReason) -> &'static str {
    match reason {
        EpochReason::ColdStart => "nothing was sent before",
        EpochReason::SystemChanged => "the system prompt or the tools changed",
        EpochReason::ProviderMiss => "the provider did not find the prefix in its cache",
        EpochReason::CacheExpired => "the provider's cache has expired",
        EpochReason::UpdatesOutgrew => "corrections to anchors took more room than their band has",
        EpochReason::AnchorsOutgrew => "pinned anchors no longer fit",
        EpochReason::HistoryFolded => "history was cut, so the prefix changed anyway",
        EpochReason::LogMerged => "another process wrote to the thread",
    }
}

/// A number that differs whenever the items differ, for all practical purposes (64-bit FNV-1a of their JSON).
pub(crate) fn fingerprint_items(items: &[Arc<Item>]) -> u64 {
    let mut hash = Fnv::default();
    for item in items {
        // Writing into a hash cannot fail, and items have a JSON form by construction.
        let _ = serde_json::to_writer(&mut hash, &**item);
    }
    hash.0
}

/// A number that differs whenever the texts differ, for all practical purposes.
pub(crate) fn fingerprint_text<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hash = Fnv::default();
    for text in texts {
        hash.add(text.as_bytes());
        hash.add(&[0xff]);
    }
    hash.0
}

/// The same on every machine and in every version, unlike the standard hasher.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl std::io::Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
