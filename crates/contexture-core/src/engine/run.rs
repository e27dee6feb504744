//! The run of an execution: the order of a turn.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;

use super::answer::{TurnAnswer, TurnInput};
use super::assemble::assemble;
use super::model_call::call_model;
use super::open;
use super::pipeline::{filter_message, filter_output};
use super::recall::{RecallContext, Recalled};
use super::removal::remove_thread;
use super::shared::SharedExecution;
use super::steering::{SteeringVerdict, judge_call, judge_response};
use super::thread::{ChildRecord, INTERRUPTED, Thread};
use super::tools::call_tool;
use crate::error::Error;
use crate::event::{CallOutput, Event};
use crate::id::{LayerId, ThreadId};
use crate::item::{FunctionCall, FunctionCallOutput, Item, Meta, Origin, Outcome, Role};
use crate::layer::*;
use crate::log::ItemLog;
use crate::model::LlmResponse;
use crate::turn::{Next, Turn};
use crate::usage::StepUsage;
use crate::window::Window;

/// The parts of an execution.
pub(crate) struct ExecutionParts {
    shared: Arc<SharedExecution>,
    thread: Thread,
    recalled: Recalled,
    reply: TurnProgress,
}

/// The progress of the turn.
#[derive(Default)]
struct TurnProgress {
    /// The last accepted response.
    response: Option<Arc<LlmResponse>>,
    /// The token usage of the last request.
    usage: Option<StepUsage>,
}

impl ExecutionParts {
    pub(crate) fn new(shared: Arc<SharedExecution>, thread: ThreadId) -> Self {
        Self {
            thread: Thread::new(thread, shared.id()),
            recalled: Recalled::new(&ItemLog::new()),
            shared,
            reply: TurnProgress::default(),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<SharedExecution> {
        &self.shared
    }

    pub(crate) fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The token usage of the last request.
    pub(crate) fn usage(&self) -> Option<&StepUsage> {
        self.reply.usage.as_ref()
    }

    /// Reads the thread and initialises every layer, in order of registration.
    pub(crate) async fn open(&mut self) -> Result<(), Error> {
        let layers: Vec<LayerRef> = self.shared.roster().by_registration().cloned().collect();
        let records = open::open(&mut self.thread, &self.shared, &layers).await?;
        self.recalled.set_query(self.thread.log());
        self.shared.keep_for_background(self.thread.log(), self.recalled.query());
        for (layer, record) in layers.iter().zip(records) {
            open::init_layer(&self.shared, layer, record).await?;
        }
        Ok(())
    }

    /// Starts a child with a copy of another execution's conversation. A call that has no output there gets one here.
    pub(crate) fn begin_with(&mut self, log: &ItemLog) {
        let ancestors = self.shared.ancestors().map(|shared| shared.context_data().thread_id.clone()).collect();
        self.thread.set_child(ChildRecord { ancestors, layers: self.shared.roster().ids() });
        self.thread.fork(&self.shared, log);
        self.recalled.set_query(self.thread.log());
    }

    /// Makes as much as possible durable before a child reads it. Failures were reported.
    pub(crate) async fn settle(&mut self) {
        if self.thread.is_behind() {
            let _ = self.thread.commit_all(&self.shared).await;
        }
        let _ = self.shared.core().states.flush(self.shared.id()).await;
    }

    /// Removes the thread from the store.
    pub(crate) async fn remove_thread(&self) -> Result<(), Error> {
        let (core, thread) = (self.shared.core(), self.thread.id());
        let removed = remove_thread(&*core.store, &self.shared.roster().ids(), thread, None).await;
        removed.map(|_| ()).map_err(|source| Error::Remove { thread: thread.clone(), source })
    }

    /// Logs items of an imported conversation.
    pub(crate) async fn import(&mut self, items: impl IntoIterator<Item = Item>) -> Result<(), Error> {
        self.append(items);
        self.recalled.set_query(self.thread.log());
        self.commit().await
    }

    /// Logs items unchanged.
    pub(crate) fn append(&mut self, items: impl IntoIterator<Item = Item>) {
        self.thread.append(&self.shared, items.into_iter().map(Arc::new));
    }

    /// Makes everything so far durable.
    pub(crate) async fn commit(&mut self) -> Result<(), Error> {
        self.thread.commit(&self.shared).await
    }

    /// Logs the user's message. `false`: a layer dropped it, and the model is not called.
    pub(crate) async fn begin_turn(&mut self, input: TurnInput) -> Result<bool, Error> {
        self.store_owed().await?;
        self.thread.close_unfinished_turn(&self.shared);
        self.reply = TurnProgress::default();
        let message = input.into_message();
        let items = filter_message(&recall_context(&self.shared, &self.thread), &mut self.recalled, message).await;
        if items.is_empty() {
            self.commit().await?;
            return Ok(false);
        }
        self.append(items);
        self.recalled.set_query(self.thread.log());
        self.thread.begin_turn(Turn::new(self.shared.core().settings.max_steps));
        self.commit().await?;
        self.recall_all().await;
        Ok(true)
    }

    /// Reads what others wrote before a turn begins.
    pub(crate) async fn catch_up(&mut self) -> Result<(), Error> {
        self.thread.catch_up(&self.shared).await
    }

    /// Another execution has the thread: discards what is not durable of the turn.
    pub(crate) async fn lose_turn(&mut self) {
        self.thread.lose_turn(&self.shared).await;
    }

    /// Takes over the unfinished turn and commits what is not durable yet, before anything runs.
    ///
    /// `false`: there is none.
    pub(crate) async fn resume_turn(&mut self) -> Result<bool, Error> {
        if self.thread.turn().is_none() {
            return if self.thread.take_loss() { Err(Error::TakenOver) } else { Ok(false) };
        }
        self.thread.close_stray_turns(&self.shared);
        if self.thread.has_claims() || self.thread.is_behind() {
            self.commit().await?;
        }
        self.recall_all().await;
        Ok(true)
    }

    async fn recall_all(&mut self) {
        let recall_context = recall_context(&self.shared, &self.thread);
        self.recalled.recall_all(&recall_context).await;
        self.thread.observe_turn(self.recalled.blocks());
    }

    /// Performs the turn's actions until it is over.
    pub(crate) async fn drive(&mut self) -> Result<TurnAnswer, Error> {
        loop {
            let Some(turn) = self.thread.turn() else { return Ok(self.answer(0)) };
            match turn.next() {
                Next::CallModel => self.step().await?,
                Next::Store(response, layers) => self.store(response, layers).await?,
                Next::RunTool(call) => self.run_tool(call).await?,
                Next::AnswerInterrupted(call) => {
                    let output = FunctionCallOutput::new(&call.call_id, INTERRUPTED, Outcome::Interrupted);
                    self.answer_call(&call, output.into()).await?;
                }
                Next::Finish => return self.finish().await,
                Next::GiveUp => {
                    self.thread.close_unfinished_turn(&self.shared);
                    self.commit().await?;
                    return Err(Error::TooManySteps { limit: self.shared.core().settings.max_steps });
                }
            }
        }
    }

    async fn finish(&mut self) -> Result<TurnAnswer, Error> {
        let steps = self.thread.turn().map_or(0, Turn::steps);
        if !self.thread.is_durable() {
            self.commit().await?;
        }
        self.thread.end_turn();
        if self.reply.response.is_none() {
            // A turn whose last commit failed only has to return its answer.
            self.reply.response = logged_response(self.thread.log()).map(Arc::new);
        }
        Ok(self.answer(steps))
    }

    /// Returns the answer of the turn.
    pub(crate) fn answer(&self, steps: u32) -> TurnAnswer {
        let (response, usage) = (self.reply.response.as_deref().cloned(), self.reply.usage.clone());
        TurnAnswer { response, steps, usage, durable: self.thread.is_durable() }
    }

    /// Calls the model until a response is accepted, logs it and makes the step durable.
    async fn step(&mut self) -> Result<(), Error> {
        loop {
            let window = self.assemble().await?;
            let response = call_model(&self.shared, &mut self.thread, window).await?;
            match judge_response(&self.shared, self.thread.log(), &response).await {
                SteeringVerdict::Pass => {}
                SteeringVerdict::Guide(guidance) => {
                    if self.thread.turn_mut().is_some_and(|turn| turn.guided(guidance)) {
                        continue;
                    }
                    let message = "the response was rejected too often; it is accepted unchanged";
                    self.shared.fault(None, Hook::AfterModelCall.as_str(), message.to_owned());
                }
                SteeringVerdict::Deny { layer, reason } => {
                    if let Some(turn) = self.thread.turn_mut() {
                        turn.finish();
                    }
                    self.commit().await?;
                    self.thread.end_turn();
                    return Err(Error::SteeringDenied { layer, reason });
                }
            }
            return self.take(response).await;
        }
    }

    /// Builds the next window, after recalling the layers for which that was requested.
    pub(crate) async fn assemble(&mut self) -> Result<Window, Error> {
        self.recalled.rerender(&recall_context(&self.shared, &self.thread)).await;
        let core = self.shared.core();
        self.thread.provider_mut().watch_expiry(core.host.clock.now(), core.settings.cache_ttl);
        let window = assemble(&self.shared, &mut self.thread, &self.recalled).await?;
        self.reply.usage = Some(window.usage.clone());
        Ok(window)
    }

    /// Logs a response.
    async fn take(&mut self, response: LlmResponse) -> Result<(), Error> {
        let max_calls = self.shared.core().settings.max_calls;
        let mut calls: Vec<FunctionCall> = response.calls().cloned().collect();
        let too_many = calls.split_off(calls.len().min(max_calls));
        let roster = self.shared.roster();
        let storing = roster.by_slot().filter(|layer| layer.may_have(Hook::Store));
        let owed: Vec<LayerId> = storing.map(|layer| layer.spec().id.clone()).collect();
        let response = Arc::new(response);
        self.reply.response = Some(response.clone());
        self.thread.respond(&self.shared, response.clone(), owed.clone(), calls, &too_many);
        self.store(response, owed).await
    }

    /// Runs `store` of these layers at once, and makes the step durable.
    async fn store(&mut self, response: Arc<LlmResponse>, layers: Vec<LayerId>) -> Result<(), Error> {
        self.reply.response.get_or_insert_with(|| response.clone());
        let (shared, roster, log) = (&self.shared, self.shared.roster(), self.thread.log().clone());
        let new_items: Arc<[Arc<Item>]> = response.items.iter().cloned().map(Arc::new).collect();
        let turn = Mutex::new(self.thread.turn_mut());
        join_all(layers.iter().map(async |id| {
            if let Some(layer) = roster.get(id.as_str()) {
                let (new_items, log, response) = (new_items.clone(), log.clone(), response.clone());
                let run = shared.run(layer, Hook::Store, move |state, ctx| {
                    let state = layer.state_or_default(state.as_ref());
                    layer.store(StoreParams { new_items, log, response, ctx, state })
                });
                run.await;
            }
            // Noted without an `await` in between: an interrupted turn continues with the layers that are left.
            if let Some(turn) = &mut *turn.lock().unwrap_or_else(PoisonError::into_inner) {
                turn.stored(id);
            }
        }))
        .await;
        // Eventual layers are recalled again if their state or the query has changed since the last time.
        self.shared.keep_for_background(self.thread.log(), self.recalled.query());
        for layer in roster.by_slot() {
            self.shared.refresh_later(layer);
        }
        self.commit().await
    }

    /// Runs `store` of the layers that an interrupted turn left.
    async fn store_owed(&mut self) -> Result<(), Error> {
        match self.thread.turn().map(Turn::next) {
            Some(Next::Store(response, layers)) => self.store(response, layers).await,
            _ => Ok(()),
        }
    }

    /// Calls `before_tool_call`, runs the tool if it is allowed, and logs its output.
    async fn run_tool(&mut self, call: FunctionCall) -> Result<(), Error> {
        let toolbox = self.shared.toolbox();
        let call = Arc::new(toolbox.unfolded(call));
        let public_name: Arc<str> = toolbox.public_name(&call.name).into();
        match judge_call(&self.shared, self.thread.log(), &public_name, &call).await {
            SteeringVerdict::Pass => {}
            SteeringVerdict::Guide(guidance) => {
                let output = FunctionCallOutput::new(&call.call_id, guidance, Outcome::Denied);
                return self.answer_call(&call, output.into()).await;
            }
            SteeringVerdict::Deny { reason, .. } => {
                let denied = format!("This call was denied and did not run: {reason}");
                let output = FunctionCallOutput::new(&call.call_id, denied, Outcome::Denied);
                return self.answer_call(&call, output.into()).await;
            }
        }
        if let Some(turn) = self.thread.turn_mut() {
            turn.start_tool();
        }
        self.commit().await?;
        let output = match call_tool(&self.shared, &public_name, &call).await {
            Ok(text) => Item::output(&call.call_id, text),
            Err(message) => Item::error_output(&call.call_id, message),
        };
        // What a function of a layer returns is memory: no layer may learn it again.
        let origin = self.shared.toolbox().layer_of(&public_name).map(|layer| Origin::Layer { id: layer.into() });
        let meta = Meta { origin: origin.unwrap_or_default(), ..Meta::default() };
        self.answer_call(&call, output.with_meta(meta)).await
    }

    /// Logs the output of the current call, and makes it durable.
    async fn answer_call(&mut self, call: &FunctionCall, output: Item) -> Result<(), Error> {
        if let Item::FunctionCallOutput(output) = &output {
            self.shared.core().emit(Event::Output(CallOutput { execution_id: self.shared.id(), call, output }));
        }
        let items = filter_output(&recall_context(&self.shared, &self.thread), &mut self.recalled, output).await;
        self.thread.answer_call(&self.shared, items);
        self.commit().await
    }

    /// Runs `on_complete` of every layer and makes everything durable.
    pub(crate) async fn complete(&mut self, outcome: ExecutionOutcome) -> Option<Error> {
        let mut ending = self.shared.ending().lock().await;
        ending.complete(&self.shared, &mut self.thread, outcome).await
    }

    /// Runs `dispose` of every layer and removes the execution.
    pub(crate) async fn dispose(&mut self) {
        self.shared.ending().lock().await.dispose(&self.shared).await;
    }
}

fn recall_context<'a>(shared: &'a Arc<SharedExecution>, thread: &'a Thread) -> RecallContext<'a> {
    let policy = thread.provider().in_counted_tokens(&shared.core().settings.policy);
    RecallContext { shared, log: thread.log(), policy }
}

/// The model's last message in the log.
fn logged_response(log: &ItemLog) -> Option<LlmResponse> {
    let newest = log.iter().rev();
    let said = newest.take_while(|item| !item.is_message_of(Role::User) && item.as_output().is_none());
    let mut items: Vec<Item> = said.cloned().collect();
    items.reverse();
    (!items.is_empty()).then(|| LlmResponse { items, ..LlmResponse::default() })
}
