//! One step: the window, the model, the gates, the log.

use std::ops::Range;
use std::sync::Arc;

use futures_util::FutureExt;

use super::execution::Run;
use super::hook_run::HookRun;
use crate::decision::{Action, EpochReason};
use crate::error::{BoxError, Error};
use crate::event::Event;
use crate::history::History;
use crate::id::LayerId;
use crate::item::{FunctionCall, Item};
use crate::layer::*;
use crate::model::{LlmResponse, MemoryCallModelRequest, ModelRequest};
use crate::window::{Assembly, ProjectionPolicy, Summary, SummaryRequest, Window, WindowInput, ledger, shorten};

/// The overflow model is told at least this much of every item.
const LEAST_TOLD_TOKENS: u64 = 64;
/// A hit is expected only for prefixes that providers cache at all.
const MIN_CACHED_TOKENS: u64 = 1024;

/// What the layers said about a response.
enum Verdict {
    Take,
    Deny { layer: LayerId, reason: String },
    Guide(String),
}

impl Run {
    /// The policy in counted tokens: budgets in real tokens, corrected by what the provider reports.
    pub(crate) fn effective_policy(&self) -> ProjectionPolicy {
        let policy = &self.core().policy;
        ProjectionPolicy {
            token_budget: self.calibration.scale(policy.token_budget),
            response_reserve: self.calibration.scale(policy.response_reserve),
            ..policy.clone()
        }
    }

    /// Calls the model until a response is taken, logs it and makes the step durable.
    pub(crate) async fn step(&mut self) -> Result<(), Error> {
        loop {
            let window = self.assemble().await?;
            let response = self.call_model(window).await?;
            let verdict = self.judge(&response).await;
            match verdict {
                Verdict::Take => {}
                Verdict::Guide(guidance) => {
                    if self.turn.as_mut().is_some_and(|turn| turn.guided(guidance)) {
                        continue;
                    }
                    let message = "the response was sent back often enough and is taken as it is";
                    self.shared.fault(None, Hook::AfterModelCall.as_str(), message.to_owned());
                }
                Verdict::Deny { layer, reason } => {
                    if let Some(turn) = &mut self.turn {
                        turn.finish();
                    }
                    self.commit().await?;
                    self.turn = None;
                    return Err(Error::SteeringDenied { layer, reason });
                }
            }
            return self.take(response).await;
        }
    }

    /// Puts the next window together: re-renders, projected history, and a summary if one is needed.
    pub(crate) async fn assemble(&mut self) -> Result<Window, Error> {
        self.rerender().await;
        self.watch_cache();
        let history = self.project_history().await;
        let mut summary = None;
        loop {
            match self.try_assemble(&history, summary.take())? {
                Assembly::Ready(mut window) => {
                    for (action, reason) in std::mem::take(&mut window.decisions) {
                        self.decide(None, action, reason, None);
                    }
                    self.cache.lost = None;
                    self.core().emit(Event::Usage(&window.usage));
                    self.last_usage = Some(window.usage.clone());
                    return Ok(*window);
                }
                Assembly::NeedsSummary(request) => summary = Some(self.summarize(request).await),
            }
        }
    }

    fn try_assemble(&mut self, history: &History, summary: Option<Summary>) -> Result<Assembly, Error> {
        let (core, roster) = (self.shared.core.clone(), self.shared.roster());
        let toolbox = self.shared.toolbox();
        let policy = self.effective_policy();
        let guidance = self.turn.as_ref().map_or(&[][..], |turn| turn.guidance());
        let delta = |layer: &LayerId, pinned: &[Arc<Item>], current: &[Arc<Item>]| {
            roster.get(layer.as_str())?.render_delta(pinned, current).unwrap_or_else(|panic| {
                self.shared.fault(Some(layer), "render_delta", format!("panicked: {panic}"));
                None
            })
        };
        let input = WindowInput {
            policy: &policy,
            counter: &*core.counter,
            system_tokens: core.instructions_tokens,
            tools_tokens: toolbox.tokens(),
            system_fingerprint: core.instructions_fingerprint ^ toolbox.fingerprint(),
            blocks: &self.recalled.blocks,
            history,
            guidance,
            delta: &delta,
            cache_lost: self.cache.lost,
            summary,
        };
        self.projection.assemble(&input)
    }

    /// Whether the provider's cache has expired since the last request.
    fn watch_cache(&mut self) {
        let now = self.core().clock.now();
        let expired = self.cache.last_sent.is_some_and(|sent| now.saturating_sub(sent) > self.core().cache_ttl);
        if expired && self.cache.lost.is_none() {
            self.cache.lost = Some(EpochReason::CacheExpired);
        }
    }

    /// Has every layer say what of the past is shown, by slot.
    async fn project_history(&mut self) -> History {
        let shared = self.shared.clone();
        let mut history = self.projection.history(&self.log);
        let (budget, cache) = (self.room_for_history(), self.cache.state());
        for layer in shared.roster().by_slot() {
            let decisions = self.journal.decisions_of(&layer.spec().id);
            let given = history.clone();
            let run = shared.run(layer, Hook::ProjectHistory, move |state, ctx| {
                let state = layer.state_or_default(state.as_ref());
                layer.project_history(ProjectHistoryParams { history: given, decisions, ctx, state, budget, cache })
            });
            if let Some(answer) = run.await.done() {
                if !answer.history.log().is_same(&self.log) {
                    let message = "answered a history of another log, and the one before was kept";
                    let place = Hook::ProjectHistory.as_str();
                    self.shared.fault(Some(&layer.spec().id), place, message.to_owned());
                    continue;
                }
                history = answer.history;
                for NewDecision { what, reason, price } in answer.decisions {
                    self.decide(Some(layer.spec().id.clone()), Action::Layer(what), reason, price);
                }
            }
        }
        history
    }

    /// What the blocks leave of the window.
    fn room_for_history(&self) -> u64 {
        let policy = self.effective_policy();
        let blocks: u64 = self.recalled.blocks.iter().map(|block| block.tokens).sum();
        let taken = [policy.response_reserve, self.core().instructions_tokens, self.shared.toolbox().tokens(), blocks];
        taken.into_iter().fold(policy.token_budget, u64::saturating_sub)
    }

    /// A summary by the overflow model, or the ledger where there is none or it is no good.
    async fn summarize(&mut self, request: SummaryRequest) -> Summary {
        let core = self.shared.core.clone();
        match self.summary_by_model(&request).await {
            Some(Ok(text)) => {
                let tokens = core.counter.count(&text);
                // What it may have is less than what it stands in for, so a summary that is not smaller is refused.
                if tokens <= request.max_tokens && !text.trim().is_empty() {
                    return Summary { text, by_model: true };
                }
                let most = request.max_tokens;
                let message = format!("the summary has {tokens} tokens and may have 1 to {most}; the ledger stands in");
                self.shared.fault(None, "overflow", message);
            }
            Some(Err(error)) => {
                let message = format!("the overflow model failed, and the ledger stands in: {error}");
                self.shared.fault(None, "overflow", message);
            }
            None => {}
        }
        let range = request.start..request.end;
        let text = ledger(&*core.counter, &self.log, range, request.previous.as_deref(), request.max_tokens);
        Summary { text, by_model: false }
    }

    async fn summary_by_model(&self, request: &SummaryRequest) -> Option<Result<String, BoxError>> {
        let model = self.core().policy.overflow_model.clone()?;
        let caller = super::model_caller(self.core())?;
        let mut items: Vec<Item> = request.previous.iter().map(|text| Item::developer(text.clone())).collect();
        items.extend(self.told(request.start..request.end));
        let instructions = format!(
            "Summarise this part of a conversation for the one who goes on with it: what was asked, what was done, \
             what was found, what is open. At most {} tokens. Answer with the summary alone.",
            request.max_tokens
        );
        let call = caller.call(MemoryCallModelRequest { model, items, instructions: Some(instructions) });
        Some(call.await.map(|response| response.output_text()))
    }

    /// Items of the log as text for the overflow model, within what a window may hold: if there are more, large ones
    /// are cut to their share, and the oldest are left out.
    fn told(&self, range: Range<usize>) -> Vec<Item> {
        let (policy, counter) = (self.effective_policy(), &*self.core().counter);
        // A fifth is for the names of who speaks, the last summary and the instructions.
        let room = policy.token_budget.saturating_sub(policy.response_reserve) / 5 * 4;
        let fits = self.log.range_tokens(range.clone()) <= room;
        let share = if fits { u64::MAX } else { (room / range.len() as u64).max(LEAST_TOLD_TOKENS) };
        let mut used = 0;
        let newest = self.log.range(range).rev().map(|(_, entry)| entry).take_while(|entry| {
            used += entry.tokens.min(share);
            used <= room
        });
        let told = |text: String| Item::developer(shorten(counter, &text, share));
        let mut told: Vec<Item> = newest.map(|entry| told(item_as_text(&entry.item))).collect();
        told.reverse();
        told
    }

    /// Sends a window to the model and takes in what the provider reports.
    async fn call_model(&mut self, window: Window) -> Result<LlmResponse, Error> {
        let core = self.shared.core.clone();
        let model = core.model.as_ref().ok_or_else(|| Error::Model("the engine was built without a model".into()))?;
        let request = ModelRequest {
            model: None,
            instructions: core.instructions.clone(),
            items: window.items,
            tools: self.shared.toolbox().shared_schemas(),
            breakpoints: window.breakpoints,
            max_output_tokens: Some(core.policy.response_reserve).filter(|reserve| *reserve > 0),
        };
        let expected_hit = window.usage.kept_tokens;
        self.cache.last_sent = Some(core.clock.now());
        let called = std::panic::AssertUnwindSafe(model.call(request)).catch_unwind().await;
        let panicked = |panic: Box<dyn std::any::Any + Send>| Err(format!("panicked: {}", panic_text(&*panic)).into());
        let mut response = called.unwrap_or_else(panicked).map_err(Error::Model)?;
        self.normalise(&mut response);
        self.account(&response, window.usage.total(), expected_hit);
        Ok(response)
    }

    /// Sums up usage, notices cache misses, and corrects an estimating counter.
    fn account(&mut self, response: &LlmResponse, counted: u64, expected_hit: u64) {
        let usage = response.usage;
        let mut context = (*self.shared.context_data()).clone();
        context.step_number += 1;
        context.token_usage.input += usage.input_tokens;
        context.token_usage.output += usage.output_tokens;
        context.cost += response.cost.unwrap_or(0.0);
        self.shared.set_context(context);
        if let Some(read) = usage.cache_read_tokens {
            if self.cache.ever_hit && expected_hit >= MIN_CACHED_TOKENS && read * 2 < expected_hit {
                self.cache.lost = Some(EpochReason::ProviderMiss);
            }
            self.cache.ever_hit |= read > 0;
        }
        if self.core().counter.is_estimate() {
            self.calibration.observe(counted, usage.input_tokens);
        }
    }

    /// Gives calls their public names and, where they have none or not their own, call ids.
    fn normalise(&self, response: &mut LlmResponse) {
        let toolbox = self.shared.toolbox();
        let mut seen: Vec<Box<str>> = Vec::new();
        let base = self.log.len();
        for (index, item) in response.items.iter_mut().enumerate() {
            let Item::FunctionCall(call) = item else { continue };
            call.name = toolbox.public_name(&call.name).into();
            if call.call_id.is_empty() || seen.contains(&call.call_id) {
                call.call_id = format!("call_{}", base + index).into();
            }
            seen.push(call.call_id.clone());
        }
    }

    /// Asks the gates about a response: the first deny wins, guidance is joined.
    async fn judge(&mut self, response: &LlmResponse) -> Verdict {
        let shared = self.shared.clone();
        let roster = shared.roster();
        if !roster.by_slot().any(|layer| layer.may_have(Hook::AfterModelCall)) {
            return Verdict::Take;
        }
        let response = Arc::new(response.clone());
        let mut guidance = Vec::new();
        for layer in roster.by_slot() {
            let (response, log) = (response.clone(), self.log.clone());
            let run = shared.run(layer, Hook::AfterModelCall, move |state, ctx| {
                let state = layer.state_or_default(state.as_ref());
                layer.after_model_call(AfterModelCallParams { response, log, ctx, state })
            });
            match run.await {
                HookRun::Done(answer) => match answer.decision {
                    SteeringDecision::Allow => {}
                    SteeringDecision::Deny { reason } => {
                        return Verdict::Deny { layer: layer.spec().id.clone(), reason };
                    }
                    SteeringDecision::Guide { guidance: said } => guidance.push(said),
                },
                HookRun::Absent | HookRun::Skipped | HookRun::Failed(_) => {}
            }
        }
        guidance.retain(|said: &String| !said.trim().is_empty());
        if guidance.is_empty() { Verdict::Take } else { Verdict::Guide(guidance.join("\n")) }
    }

    /// Logs a response, lets every layer learn from it, and makes the step durable.
    async fn take(&mut self, response: LlmResponse) -> Result<(), Error> {
        let calls: Vec<FunctionCall> = response.calls().cloned().collect();
        let new_items: Arc<[Arc<Item>]> = response.items.iter().cloned().map(Arc::new).collect();
        // Log and turn change together, before anything can be interrupted: else the calls would be logged and
        // the model asked once more instead of their tools.
        self.append(new_items.iter().cloned());
        if let Some(turn) = &mut self.turn {
            turn.responded(calls);
        }
        self.store(new_items, &response).await;
        self.response = Some(response);
        self.refresh_all_eventual();
        self.commit().await
    }

    /// Runs `store` of all layers at once.
    async fn store(&mut self, new_items: Arc<[Arc<Item>]>, response: &LlmResponse) {
        let shared = self.shared.clone();
        let roster = shared.roster();
        let layers: Vec<&LayerRef> = roster.by_slot().filter(|layer| layer.may_have(Hook::Store)).collect();
        if layers.is_empty() {
            return;
        }
        let response = Arc::new(response.clone());
        let runs = layers.into_iter().map(|layer| {
            let (new_items, log, response) = (new_items.clone(), self.log.clone(), response.clone());
            shared.run(layer, Hook::Store, move |state, ctx| {
                let state = layer.state_or_default(state.as_ref());
                layer.store(StoreParams { new_items, log, response, ctx, state })
            })
        });
        futures_util::future::join_all(runs).await;
    }
}

/// An item as a line of text, for a model that is to summarise it.
fn item_as_text(item: &Item) -> String {
    match item {
        Item::Message(message) => format!("{}: {}", message.role.as_str(), message.text()),
        Item::FunctionCall(call) => format!("call {}: {}", call.name, call.arguments),
        Item::FunctionCallOutput(output) => format!("output: {}", output.output),
        Item::Reasoning(reasoning) => format!("thought: {}", reasoning.text),
        Item::Opaque(value) => value.to_string(),
    }
}
