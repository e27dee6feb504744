//! Asks layers what they know, within their budgets, all at once.

use std::sync::{Arc, PoisonError};

use futures_util::future::join_all;

use super::execution::Run;
use super::hook_run::{Background, Manner, Shared};
use crate::budget::{BudgetInput, allocate};
use crate::event::SpanBudget;
use crate::id::{IdMap, LayerId};
use crate::item::Item;
use crate::layer::*;
use crate::schema::Schema;
use crate::tokens::{TokenCounter, count_item};
use crate::turn::MAX_RERENDER_DEPTH;
use crate::usage::Served;
use crate::window::{Block, fit_block, fit_item, least_history, memory_block};

/// What layers contribute to the windows of this turn, and who is to be asked again.
#[derive(Default)]
pub(crate) struct Recalled {
    pub(crate) blocks: Vec<Block>,
    /// What each layer answered last, as it was before it was rendered.
    answers: IdMap<LayerId, RecallItems>,
    /// To be recalled again before the next model call.
    immediate: Vec<LayerId>,
    /// To be recalled again at the next turn.
    batched: Vec<LayerId>,
}

/// A layer's share and its answer.
struct Asked {
    layer: LayerRef,
    allocated: u64,
    outcome: Option<(Block, RecallItems, Option<Rerender>)>,
}

impl Run {
    /// Recalls every layer, once a turn.
    pub(crate) async fn recall_all(&mut self) {
        let wished = std::mem::take(&mut self.recalled.batched);
        self.recalled.immediate.clear();
        self.keep_for_background();
        self.refresh_eventual(&wished);
        self.recall(None).await;
        self.projection.observe_turn(&self.recalled.blocks);
    }

    /// Recalls the layers that asked for it since the last model call.
    pub(crate) async fn rerender(&mut self) {
        let chosen = std::mem::take(&mut self.recalled.immediate);
        if !chosen.is_empty() {
            self.keep_for_background();
            self.refresh_eventual(&chosen);
            self.recall(Some(chosen)).await;
        }
    }

    /// Recalls the chosen layers (`None`: all), and whoever they ask for, three rounds deep at most.
    async fn recall(&mut self, mut chosen: Option<Vec<LayerId>>) {
        for _ in 0..=MAX_RERENDER_DEPTH {
            let asked = self.ask(chosen.as_deref()).await;
            let wishes: Vec<(LayerRef, Rerender)> =
                asked.iter().filter_map(|asked| Some((asked.layer.clone(), asked.outcome.as_ref()?.2?))).collect();
            self.take_blocks(asked);
            for (layer, wish) in wishes {
                self.wish(&layer, wish);
            }
            let next = std::mem::take(&mut self.recalled.immediate);
            if next.is_empty() {
                return;
            }
            self.refresh_eventual(&next);
            chosen = Some(next);
        }
        // Every layer is recalled at the next turn anyway.
        let message = format!(
            "re-renders led to re-renders more than {MAX_RERENDER_DEPTH} times; the rest waits for the next turn"
        );
        self.shared.fault(None, "recall", message);
    }

    /// An eventual layer delays nothing, not even when it is to be recalled at once: it is refreshed meanwhile.
    fn refresh_eventual(&self, chosen: &[LayerId]) {
        for layer in chosen.iter().filter_map(|id| self.shared.roster().get(id.as_str()).cloned()) {
            self.shared.refresh_later(&layer);
        }
    }

    /// Notes that layers are to be recalled again.
    pub(crate) fn wish(&mut self, layer: &LayerRef, wish: Rerender) {
        let roster = self.shared.roster();
        let spec = layer.spec();
        let chosen = roster.by_slot().map(|other| other.spec()).filter(|other| match wish.scope {
            RerenderScope::OwnLayer => other.id == spec.id,
            RerenderScope::SlotAndAfter => other.slot >= spec.slot,
            RerenderScope::All => true,
        });
        let list = match wish.timing.unwrap_or(spec.rerender_timing) {
            RerenderTiming::Immediate => &mut self.recalled.immediate,
            RerenderTiming::Batched => &mut self.recalled.batched,
        };
        for id in chosen.map(|other| &other.id) {
            if !list.contains(id) {
                list.push(id.clone());
            }
        }
    }

    /// Asks the chosen layers all at once; the answers come in slot order.
    async fn ask(&self, chosen: Option<&[LayerId]>) -> Vec<Asked> {
        let is_chosen = |layer: &LayerRef| chosen.is_none_or(|chosen| chosen.contains(&layer.spec().id));
        let roster = self.shared.roster();
        let layers: Vec<LayerRef> = roster.by_slot().filter(|layer| layer.may_have(Hook::Recall)).cloned().collect();
        let (running, skipped): (Vec<_>, Vec<_>) = layers.into_iter().partition(|layer| self.shared.is_running(layer));
        for layer in skipped.into_iter().filter(is_chosen) {
            self.shared.skipped(&layer, Hook::Recall);
        }
        let allotments = self.allot(&running);
        let asked = running.into_iter().zip(allotments).filter(|(layer, _)| is_chosen(layer));
        join_all(asked.map(async |(layer, allocated)| {
            let outcome = match self.shared.is_eventual(&layer) {
                true => Some(self.serve_cached(&layer, allocated)),
                false => self.recall_layer(&layer, allocated).await,
            };
            Asked { layer, allocated, outcome }
        }))
        .await
    }

    /// What each layer may use. History keeps enough for the newest user message, even if minimums overcommit.
    fn allot(&self, layers: &[LayerRef]) -> Vec<u64> {
        let budgets: Vec<BudgetConfig> = layers.iter().map(|layer| layer.spec().budget).collect();
        let policy = self.effective_policy();
        let mut input = BudgetInput {
            total: policy.token_budget,
            response_reserve: policy.response_reserve,
            system: self.core().instructions_tokens,
            tools: self.shared.toolbox().tokens(),
            layers: &budgets,
        };
        let nothing = || vec![0; budgets.len()];
        let Ok(allotments) = allocate(&input) else { return nothing() };
        let floor = least_history(allotments.available, &self.log);
        if allotments.history >= floor {
            return allotments.layers;
        }
        input.system += floor - allotments.history;
        allocate(&input).map_or_else(|_| nothing(), |allotments| allotments.layers)
    }

    async fn recall_layer(&self, layer: &LayerRef, allocated: u64) -> Option<(Block, RecallItems, Option<Rerender>)> {
        let mut block = None;
        let measure = |answer: &RecallResult<StateValue>| {
            let made = self.block(layer, &answer.items, allocated, Served::Fresh);
            let budget = span_budget(allocated, made.tokens);
            block = Some(made);
            Some(budget)
        };
        let (log, query) = (self.log.clone(), self.query.clone());
        let run = self.shared.run_always(layer, Hook::Recall, Manner::Alone, measure, move |state, ctx| {
            let state = layer.state_or_default(state.as_ref());
            layer.recall(RecallParams { log, query, ctx, state, budget: allocated })
        });
        let answer = run.await.done()?;
        Some((block?, answer.items, answer.rerender))
    }

    fn serve_cached(&self, layer: &LayerRef, allocated: u64) -> (Block, RecallItems, Option<Rerender>) {
        let answer = self.shared.cached(layer);
        (self.block(layer, &answer, allocated, Served::Cached), answer, None)
    }

    /// Renders an answer within its budget, reusing what was made of the same answer before.
    fn block(&self, layer: &LayerRef, answer: &RecallItems, allocated: u64, served: Served) -> Block {
        let spec = layer.spec();
        let block = |items: Arc<[Arc<Item>]>, tokens| Block {
            layer: spec.id.clone(),
            items,
            tokens,
            allocated,
            placement: spec.placement,
            served,
        };
        let last = self.recalled.blocks.iter().find(|block| block.layer == spec.id);
        if let Some(last) = last.filter(|last| last.tokens <= allocated && last.allocated <= allocated)
            && self.recalled.answers.get(&spec.id) == Some(answer)
        {
            return block(last.items.clone(), last.tokens);
        }
        let rendered = render(&*self.core().counter, spec, answer, allocated);
        if let Some(problem) = rendered.problem {
            self.shared.fault(Some(&spec.id), "recall", problem);
        }
        block(rendered.items.into(), rendered.tokens)
    }

    /// Puts new blocks in the place of old ones, in slot order.
    fn take_blocks(&mut self, asked: Vec<Asked>) {
        let mut is_new = false;
        for Asked { layer, allocated, outcome } in asked {
            let spec = layer.spec();
            let (block, answer) = match outcome {
                Some((block, answer, _)) => (block, answer),
                None => (empty_block(spec, allocated), RecallItems::Nothing),
            };
            self.recalled.answers.insert(spec.id.clone(), answer);
            match self.recalled.blocks.iter_mut().find(|old| old.layer == spec.id) {
                Some(old) => *old = block,
                None => {
                    self.recalled.blocks.push(block);
                    is_new = true;
                }
            }
        }
        if is_new {
            let roster = self.shared.roster();
            let order: IdMap<&LayerId, usize> =
                roster.by_slot().enumerate().map(|(index, layer)| (&layer.spec().id, index)).collect();
            self.recalled.blocks.sort_by_key(|block| order.get(&block.layer).copied());
        }
    }

    /// Lets recalls in the background see the conversation as it is now.
    fn keep_for_background(&self) {
        if self.shared.roster().by_slot().any(|layer| self.shared.is_eventual(layer)) {
            let background = Background { log: self.log.clone(), query: self.query.clone() };
            *self.shared.background.write().unwrap_or_else(PoisonError::into_inner) = background;
        }
    }

    /// Has every eventual layer recalled anew, since the conversation has gone on.
    pub(crate) fn refresh_all_eventual(&self) {
        self.keep_for_background();
        for layer in self.shared.roster().by_slot() {
            self.shared.refresh_later(layer);
        }
    }
}

/// What an answer would use of its budget.
pub(super) fn measure(
    shared: &Shared,
    layer: &LayerRef,
    answer: &RecallResult<StateValue>,
    allocated: u64,
) -> SpanBudget {
    span_budget(allocated, render(&*shared.core.counter, layer.spec(), &answer.items, allocated).tokens)
}

fn span_budget(allocated: u64, used: u64) -> SpanBudget {
    SpanBudget { allocated, used, yielded: allocated.saturating_sub(used) }
}

fn empty_block(spec: &LayerSpec, allocated: u64) -> Block {
    let (layer, placement) = (spec.id.clone(), spec.placement);
    Block { layer, items: Arc::from([]), tokens: 0, allocated, placement, served: Served::Fresh }
}

/// An answer as items that fit, and what was wrong with it.
#[derive(Default)]
struct Rendered {
    items: Vec<Arc<Item>>,
    tokens: u64,
    problem: Option<String>,
}

fn render(counter: &dyn TokenCounter, spec: &LayerSpec, answer: &RecallItems, allocated: u64) -> Rendered {
    match answer {
        RecallItems::Nothing => Rendered::default(),
        RecallItems::Text(text) => render_text(counter, spec, text, allocated),
        RecallItems::Items(items) => render_items(counter, spec, items, allocated),
    }
}

/// Wraps text in a developer message that names the layer; cuts the text, never the wrapping.
fn render_text(counter: &dyn TokenCounter, spec: &LayerSpec, text: &str, allocated: u64) -> Rendered {
    let wrap = |text: &str| Item::developer(memory_block(&spec.id, text));
    let item = wrap(text);
    let tokens = count_item(counter, &item);
    if tokens <= allocated {
        return Rendered { items: vec![Arc::new(item)], tokens, problem: None };
    }
    let problem = Some(over_budget(tokens, allocated));
    let Some(fitting) = fit_block(counter, &spec.id, text, allocated) else {
        return Rendered { problem, ..Rendered::default() };
    };
    let item = wrap(&fitting);
    Rendered { tokens: count_item(counter, &item), items: vec![Arc::new(item)], problem }
}

/// Keeps whole items as they are, in order, as far as they fit; the first that does not is cut, the rest goes.
fn render_items(counter: &dyn TokenCounter, spec: &LayerSpec, items: &[Item], allocated: u64) -> Rendered {
    let mut rendered = Rendered::default();
    let accepted: Vec<&Item> = items.iter().filter(|item| is_acceptable(spec, item)).collect();
    if accepted.len() < items.len() {
        let left_out = items.len() - accepted.len();
        rendered.problem =
            Some(format!("{left_out} items left out: only messages and items of a declared schema can be recalled"));
    }
    let total: u64 = accepted.iter().map(|item| count_item(counter, item)).sum();
    for item in accepted {
        let tokens = count_item(counter, item);
        let left = allocated - rendered.tokens;
        if tokens <= left {
            rendered.tokens += tokens;
            rendered.items.push(Arc::new(item.clone()));
            continue;
        }
        rendered.problem = Some(over_budget(total, allocated));
        if let Some((_, item, tokens)) = fit_item(counter, item, left) {
            rendered.tokens += tokens;
            rendered.items.push(Arc::new(item));
        }
        break;
    }
    rendered
}

/// Calls, outputs and reasoning belong to the log; a recall that invents them would break pairs.
fn is_acceptable(spec: &LayerSpec, item: &Item) -> bool {
    match item {
        Item::Message(_) => true,
        Item::FunctionCall(_) | Item::FunctionCallOutput(_) | Item::Reasoning(_) => false,
        Item::Opaque(value) => {
            let item_type = value.get("type").and_then(serde_json::Value::as_str);
            let declared = spec.item_schemas.iter().find(|schema| Some(schema.item_type.as_str()) == item_type);
            declared.is_some_and(|declared| Schema::lenient(&declared.schema).check(value).is_ok())
        }
    }
}

fn over_budget(tokens: u64, allocated: u64) -> String {
    format!("answered {tokens} tokens, more than its budget of {allocated}; the rest was cut")
}
