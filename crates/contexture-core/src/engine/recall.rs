//! Recalls all layers at once, within their budgets.

use std::sync::Arc;

use futures_util::future::join_all;

use super::hook_run::Manner;
use super::render::{render, span_budget};
use super::roster::Roster;
use super::shared::SharedExecution;
use crate::budget::{BudgetInput, allocate};
use crate::id::{IdMap, LayerId};
use crate::item::{Item, Message};
use crate::layer::*;
use crate::log::ItemLog;
use crate::turn::MAX_RERENDER_DEPTH;
use crate::usage::Served;
use crate::window::{Block, ProjectionPolicy, least_history};

/// The contributions of layers to the windows of this turn, and which layers are to be recalled again.
pub(crate) struct Recalled {
    /// The query: the text of the newest user message when the turn began.
    query: Arc<str>,
    blocks: Vec<Block>,
    /// The last result of each layer, before rendering.
    answers: IdMap<LayerId, RecallItems>,
    /// To be recalled again before the next model call.
    immediate: Vec<LayerId>,
    /// To be recalled again at the next turn.
    batched: Vec<LayerId>,
}

/// The inputs of a recall besides the layers.
pub(crate) struct RecallContext<'a> {
    pub(crate) shared: &'a Arc<SharedExecution>,
    pub(crate) log: &'a ItemLog,
    /// In counted tokens.
    pub(crate) policy: ProjectionPolicy,
}

/// A layer's share and its result.
struct LayerRecall {
    layer: LayerRef,
    allocated: u64,
    outcome: Option<(Block, RecallItems, Option<Rerender>)>,
}

impl Recalled {
    /// An empty value for a conversation with this log.
    pub(crate) fn new(log: &ItemLog) -> Self {
        let (blocks, answers) = (Vec::new(), IdMap::default());
        Self { query: newest_query(log), blocks, answers, immediate: Vec::new(), batched: Vec::new() }
    }

    /// Sets the query to the newest user message of this log.
    pub(crate) fn set_query(&mut self, log: &ItemLog) {
        self.query = newest_query(log);
    }

    /// The query.
    pub(crate) fn query(&self) -> &Arc<str> {
        &self.query
    }

    /// The contributions of layers, in slot order.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Recalls every layer, once a turn.
    pub(crate) async fn recall_all(&mut self, recall_context: &RecallContext<'_>) {
        let wished = std::mem::take(&mut self.batched);
        self.immediate.clear();
        recall_context.shared.keep_for_background(recall_context.log, &self.query);
        recall_context.refresh_eventual(&wished);
        self.recall(recall_context, None).await;
    }

    /// Recalls the layers for which it was requested since the last model call.
    pub(crate) async fn rerender(&mut self, recall_context: &RecallContext<'_>) {
        let chosen = std::mem::take(&mut self.immediate);
        if !chosen.is_empty() {
            recall_context.shared.keep_for_background(recall_context.log, &self.query);
            recall_context.refresh_eventual(&chosen);
            self.recall(recall_context, Some(chosen)).await;
        }
    }

    /// Recalls the chosen layers (`None`: all), and the layers that they request, in at most three rounds.
    async fn recall(&mut self, recall_context: &RecallContext<'_>, mut chosen: Option<Vec<LayerId>>) {
        for _ in 0..=MAX_RERENDER_DEPTH {
            let asked = self.ask(recall_context, chosen.as_deref()).await;
            let wishes: Vec<(LayerRef, Rerender)> =
                asked.iter().filter_map(|asked| Some((asked.layer.clone(), asked.outcome.as_ref()?.2?))).collect();
            let roster = recall_context.shared.roster();
            self.take_blocks(&roster, asked);
            for (layer, wish) in wishes {
                self.wish(&roster, &layer, wish);
            }
            let next = std::mem::take(&mut self.immediate);
            if next.is_empty() {
                return;
            }
            recall_context.refresh_eventual(&next);
            chosen = Some(next);
        }
        // Every layer is recalled at the next turn anyway.
        let message = format!(
            "re-renders requested re-renders more than {MAX_RERENDER_DEPTH} times; the rest waits for the next turn"
        );
        recall_context.shared.fault(None, "recall", message);
    }

    /// Records that layers are to be recalled again.
    pub(crate) fn wish(&mut self, roster: &Roster, layer: &LayerRef, wish: Rerender) {
        let spec = layer.spec();
        let chosen = roster.by_slot().map(|other| other.spec()).filter(|other| match wish.scope {
            RerenderScope::OwnLayer => other.id == spec.id,
            RerenderScope::SlotAndAfter => other.slot >= spec.slot,
            RerenderScope::All => true,
        });
        let list = match wish.timing.unwrap_or(spec.rerender_timing) {
            RerenderTiming::Immediate => &mut self.immediate,
            RerenderTiming::Batched => &mut self.batched,
        };
        for id in chosen.map(|other| &other.id) {
            if !list.contains(id) {
                list.push(id.clone());
            }
        }
    }

    /// Recalls the chosen layers at once; the results are in slot order.
    async fn ask(&self, recall_context: &RecallContext<'_>, chosen: Option<&[LayerId]>) -> Vec<LayerRecall> {
        let shared = recall_context.shared;
        let is_chosen = |layer: &LayerRef| chosen.is_none_or(|chosen| chosen.contains(&layer.spec().id));
        let roster = shared.roster();
        let (running, skipped) = recall_context.recallable(&roster);
        for layer in skipped.into_iter().filter(|layer| is_chosen(layer)) {
            shared.skipped(layer, Hook::Recall);
        }
        let allotments = recall_context.allot(&running);
        if chosen.is_none() {
            recall_context.report_shortage(&running, &allotments);
        }
        let asked = running.into_iter().cloned().zip(allotments).filter(|(layer, _)| is_chosen(layer));
        join_all(asked.map(async |(layer, allocated)| {
            let outcome = match shared.is_eventual(&layer) {
                true => Some(self.serve_cached(shared, &layer, allocated)),
                false => self.recall_layer(recall_context, &layer, allocated).await,
            };
            LayerRecall { layer, allocated, outcome }
        }))
        .await
    }

    async fn recall_layer(
        &self,
        recall_context: &RecallContext<'_>,
        layer: &LayerRef,
        allocated: u64,
    ) -> Option<(Block, RecallItems, Option<Rerender>)> {
        let mut block = None;
        let measure = |answer: &RecallResult<StateValue>| {
            let made = self.block(recall_context.shared, layer, &answer.items, allocated, Served::Fresh);
            let budget = span_budget(allocated, made.tokens);
            block = Some(made);
            Some(budget)
        };
        let (log, query) = (recall_context.log.clone(), self.query.clone());
        let run = recall_context.shared.run_always(layer, Hook::Recall, Manner::Alone, measure, move |state, ctx| {
            let state = layer.state_or_default(state.as_ref());
            layer.recall(RecallParams { log, query, ctx, state, budget: allocated })
        });
        let answer = run.await.done()?;
        Some((block?, answer.items, answer.rerender))
    }

    fn serve_cached(
        &self,
        shared: &SharedExecution,
        layer: &LayerRef,
        allocated: u64,
    ) -> (Block, RecallItems, Option<Rerender>) {
        let (answer, since) = shared.core().eventual.answer(&shared.cache_key(layer));
        let block = self.block(shared, layer, &answer, allocated, Served::Cached);
        let age = since.map(|since| shared.core().host.clock.monotonic().saturating_sub(since));
        shared.served(layer, span_budget(allocated, block.tokens), block.items.len(), age);
        (block, answer, None)
    }

    /// Renders a result within its budget, reusing the block of an identical earlier result.
    fn block(
        &self,
        shared: &SharedExecution,
        layer: &LayerRef,
        answer: &RecallItems,
        allocated: u64,
        served: Served,
    ) -> Block {
        let spec = layer.spec();
        let block = |items: Arc<[Arc<Item>]>, tokens| Block {
            layer: spec.id.clone(),
            items,
            tokens,
            allocated,
            placement: spec.placement,
            served,
        };
        let last = self.blocks.iter().find(|block| block.layer == spec.id);
        if let Some(last) = last.filter(|last| last.tokens <= allocated && last.allocated <= allocated)
            && self.answers.get(&spec.id) == Some(answer)
        {
            return block(last.items.clone(), last.tokens);
        }
        let rendered = render(&*shared.core().counter, spec, answer, allocated);
        if let Some(problem) = rendered.problem {
            shared.fault(Some(&spec.id), "recall", problem);
        }
        block(rendered.items.into(), rendered.tokens)
    }

    /// Replaces old blocks by new ones, in slot order.
    fn take_blocks(&mut self, roster: &Roster, asked: Vec<LayerRecall>) {
        let mut is_new = false;
        for LayerRecall { layer, allocated, outcome } in asked {
            let spec = layer.spec();
            let (block, answer) = match outcome {
                Some((block, answer, _)) => (block, answer),
                None => (empty_block(spec, allocated), RecallItems::Nothing),
            };
            self.answers.insert(spec.id.clone(), answer);
            match self.blocks.iter_mut().find(|old| old.layer == spec.id) {
                Some(old) => *old = block,
                None => {
                    self.blocks.push(block);
                    is_new = true;
                }
            }
        }
        if is_new {
            let order: IdMap<&LayerId, usize> =
                roster.by_slot().enumerate().map(|(index, layer)| (&layer.spec().id, index)).collect();
            self.blocks.sort_by_key(|block| order.get(&block.layer).copied());
        }
    }
}

impl RecallContext<'_> {
    /// Schedules a refresh of eventual layers, which never delays the turn.
    fn refresh_eventual(&self, chosen: &[LayerId]) {
        for layer in chosen.iter().filter_map(|id| self.shared.roster().get(id.as_str()).cloned()) {
            self.shared.refresh_as_wished(&layer);
        }
    }

    /// The layers that have something to recall: those that run, and those that do not.
    fn recallable<'r>(&self, roster: &'r Roster) -> (Vec<&'r LayerRef>, Vec<&'r LayerRef>) {
        let layers = roster.by_slot().filter(|layer| layer.may_have(Hook::Recall));
        layers.partition(|layer| self.shared.is_running(layer))
    }

    /// What each layer may use when it is recalled next.
    pub(crate) fn budgets(&self, roster: &Roster) -> IdMap<LayerId, u64> {
        let (running, _) = self.recallable(roster);
        let ids = running.iter().map(|layer| layer.spec().id.clone());
        ids.zip(self.allot(&running)).collect()
    }

    /// Reports the layers that got less than their minimum.
    fn report_shortage(&self, layers: &[&LayerRef], allotments: &[u64]) {
        for (spec, allotted) in layers.iter().map(|layer| layer.spec()).zip(allotments) {
            let min = spec.budget.min();
            if *allotted < min {
                let message = format!(
                    "got {allotted} tokens, less than its minimum of {min}: the window of {} has no room for all \
                     minimums\nhint: use a larger window, or fewer layers or tools",
                    self.policy.token_budget
                );
                self.shared.fault(Some(&spec.id), "budget", message);
            }
        }
    }

    /// Divides the budget. History keeps enough for the newest user message, even if minimums overcommit.
    fn allot(&self, layers: &[&LayerRef]) -> Vec<u64> {
        let budgets: Vec<BudgetConfig> = layers.iter().map(|layer| layer.spec().budget).collect();
        let mut input = BudgetInput {
            total: self.policy.token_budget,
            response_reserve: self.policy.response_reserve,
            system: self.shared.core().instructions.tokens(),
            tools: self.shared.toolbox().tokens(),
            layers: &budgets,
        };
        let nothing = || vec![0; budgets.len()];
        let Ok(allotments) = allocate(&input) else { return nothing() };
        let floor = least_history(allotments.available, self.log);
        if allotments.history >= floor {
            return allotments.layers;
        }
        input.system += floor - allotments.history;
        allocate(&input).map_or_else(|_| nothing(), |allotments| allotments.layers)
    }
}

/// The text of the newest user message.
fn newest_query(log: &ItemLog) -> Arc<str> {
    let entry = log.newest_user().and_then(|position| log.get(position));
    let message = entry.and_then(|entry| entry.item.as_message());
    message.map(Message::text).unwrap_or_default().into()
}

fn empty_block(spec: &LayerSpec, allocated: u64) -> Block {
    let (layer, placement) = (spec.id.clone(), spec.placement);
    Block { layer, items: Arc::from([]), tokens: 0, allocated, placement, served: Served::Fresh }
}
