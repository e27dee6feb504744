//! One run over a thread.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::Notify;

use super::complete::Ending;
use super::frame::Frame;
use super::hook_run::Shared;
use super::journal::Journal;
use super::recall::Recalled;
use super::{Core, MemoryAccess, model_caller};
use crate::decision::EpochReason;
use crate::error::Error;
use crate::id::{ExecutionId, ResourceId, ThreadId};
use crate::item::{Content, Item, Message, Role};
use crate::layer::{CacheState, ContextData, MemoryLayer, TokenUsage};
use crate::log::ItemLog;
use crate::memory::ErasedLayer;
use crate::model::LlmResponse;
use crate::tokens::count_item;
use crate::turn::{Next, Turn};
use crate::usage::StepUsage;
use crate::window::{Projection, Window};

/// How many hooks and functions may run inside one another before no further turn or execution begins.
const MAX_NESTED_HOOKS: usize = 3;

/// One run over a thread: it holds the log, the states of the layers, and the turn.
///
/// End it with [`complete`](Execution::complete), [`fail`](Execution::fail) or [`abort`](Execution::abort), so that
/// layers learn how it went. One that is dropped without a word counts as aborted, and its layers learn of it in
/// the background.
pub struct Execution<Ls> {
    /// `None` once it has ended.
    run: Option<Box<Run>>,
    shape: PhantomData<fn() -> Ls>,
}

/// Everything an execution holds.
pub(crate) struct Run {
    pub(crate) shared: Arc<Shared>,
    pub(crate) thread: ThreadId,
    pub(crate) log: ItemLog,
    pub(crate) journal: Journal,
    pub(crate) projection: Projection,
    pub(crate) turn: Option<Turn>,
    pub(crate) recalled: Recalled,
    pub(crate) query: Arc<str>,
    pub(crate) cache: CacheWatch,
    pub(crate) calibration: Calibration,
    pub(crate) abort: AbortHandle,
    /// Whether everything so far is durable.
    pub(crate) durable: bool,
    /// The last response that was taken in this turn.
    pub(crate) response: Option<LlmResponse>,
    pub(crate) last_usage: Option<StepUsage>,
    pub(crate) ending: Ending,
}

/// What is known about the provider's cache of this thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheWatch {
    /// When the last request was sent, in time since the Unix epoch.
    pub(crate) last_sent: Option<Duration>,
    /// Whether the provider ever reported a hit.
    pub(crate) ever_hit: bool,
    /// Why the cache is worthless for the next request.
    pub(crate) lost: Option<EpochReason>,
}

impl CacheWatch {
    /// Whether the next request finds anything of the last one.
    pub(crate) fn state(&self) -> CacheState {
        if self.lost.is_some() || self.last_sent.is_none() { CacheState::Cold } else { CacheState::Warm }
    }
}

/// How far an estimating counter is off, by what the provider reports: real tokens per counted token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Calibration(pub(crate) f64);

impl Default for Calibration {
    fn default() -> Self {
        Calibration(1.0)
    }
}

impl Calibration {
    /// Takes in one report; moves in steps of 5 %, so that budgets do not tremble.
    pub(crate) fn observe(&mut self, counted: u64, reported: u64) {
        if counted == 0 || reported == 0 {
            return;
        }
        let ratio = (reported as f64 / counted as f64).clamp(0.25, 4.0);
        let smoothed = if ratio > self.0 { ratio } else { self.0 * 0.75 + ratio * 0.25 };
        self.0 = (smoothed * 20.0).ceil() / 20.0;
    }

    /// A budget in real tokens as a budget in counted tokens.
    pub(crate) fn scale(self, tokens: u64) -> u64 {
        (tokens as f64 / self.0) as u64
    }
}

/// Stops a turn from outside. Cheap to clone.
#[derive(Clone, Default)]
pub struct AbortHandle(Arc<AbortState>);

#[derive(Default)]
struct AbortState {
    aborted: AtomicBool,
    notify: Notify,
}

impl AbortHandle {
    /// Stops the turn that runs now, or the next one: it answers [`Error::Aborted`].
    ///
    /// One turn alone: [`resume`](Execution::resume) goes on with it, and the turns after it run as ever.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Waits until someone asks for an abort, and takes the wish.
    async fn aborted(&self) {
        loop {
            let notified = self.0.notify.notified();
            if self.0.aborted.swap(false, Ordering::SeqCst) {
                return;
            }
            notified.await;
        }
    }
}

/// What the user said.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnInput(Vec<Content>);

impl From<&str> for TurnInput {
    fn from(text: &str) -> Self {
        TurnInput(vec![Content::Text { text: text.to_owned() }])
    }
}

impl From<String> for TurnInput {
    fn from(text: String) -> Self {
        TurnInput(vec![Content::Text { text }])
    }
}

impl From<Vec<Content>> for TurnInput {
    fn from(content: Vec<Content>) -> Self {
        TurnInput(content)
    }
}

/// What a turn came to.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TurnAnswer {
    /// The model's last response; `None` if a layer dropped the user's message, or if the turn was over and only
    /// its end was not written down.
    pub response: Option<LlmResponse>,
    /// Model calls whose responses were taken.
    pub steps: u32,
    /// Where the tokens of the last request went; `None` if there was none.
    pub usage: Option<StepUsage>,
    /// Whether everything up to here is durable. Always true with [`JournalPolicy::Require`](super::JournalPolicy).
    pub durable: bool,
}

impl TurnAnswer {
    /// What the model said last.
    pub fn text(&self) -> String {
        self.response.as_ref().map(LlmResponse::output_text).unwrap_or_default()
    }
}

impl<Ls> Execution<Ls> {
    pub(crate) fn new(
        core: Arc<Core>,
        id: ExecutionId,
        thread: ThreadId,
        resource: Option<ResourceId>,
        depth: u32,
    ) -> Self {
        let context = ContextData {
            execution_id: id.clone(),
            thread_id: thread.clone(),
            resource_id: resource,
            depth,
            step_number: 0,
            token_usage: TokenUsage::default(),
            cost: 0.0,
            fs: core.fs.clone(),
            shell: core.shell.clone(),
            call_model: model_caller(&core),
            counter: core.counter.clone(),
            states: core.states.clone(),
        };
        let run = Run {
            journal: Journal::new(&thread, &id),
            shared: Arc::new(Shared::new(core, id, context)),
            thread,
            log: ItemLog::new(),
            projection: Projection::default(),
            turn: None,
            recalled: Recalled::default(),
            query: Arc::from(""),
            cache: CacheWatch::default(),
            calibration: Calibration::default(),
            abort: AbortHandle::default(),
            durable: true,
            response: None,
            last_usage: None,
            ending: Ending::default(),
        };
        Self { run: Some(Box::new(run)), shape: PhantomData }
    }

    pub(crate) async fn open(&mut self) -> Result<(), Error> {
        if Frame::depth() >= MAX_NESTED_HOOKS {
            return Err(Error::TooDeep { limit: MAX_NESTED_HOOKS });
        }
        match self.run_mut()?.open().await {
            Ok(()) => Ok(()),
            Err(error) => {
                self.end(crate::layer::ExecutionOutcome::Failure).await;
                Err(error)
            }
        }
    }

    pub(crate) fn run_mut(&mut self) -> Result<&mut Run, Error> {
        self.run.as_deref_mut().ok_or(Error::Aborted)
    }

    pub(crate) fn take_run(&mut self) -> Option<Box<Run>> {
        self.run.take()
    }

    fn run(&self) -> &Run {
        self.run.as_deref().expect("an execution has its run until it is consumed")
    }

    /// The name of this run.
    pub fn id(&self) -> &ExecutionId {
        &self.run().shared.id
    }

    /// The conversation.
    pub fn thread_id(&self) -> &ThreadId {
        &self.run().thread
    }

    /// All items so far.
    pub fn log(&self) -> &ItemLog {
        &self.run().log
    }

    /// Where the tokens of the last request went.
    pub fn usage(&self) -> Option<&StepUsage> {
        self.run().last_usage.as_ref()
    }

    /// Takes over a conversation that happened elsewhere: its items are logged as they are, and no hook runs.
    ///
    /// # Errors
    /// [`Error::Journal`] if they could not be made durable.
    pub async fn import(&mut self, items: impl IntoIterator<Item = Item>) -> Result<(), Error> {
        let run = self.run_mut()?;
        run.append(items.into_iter().map(Arc::new));
        run.query = run.newest_query();
        run.commit().await
    }

    /// Stops a turn from outside.
    pub fn abort_handle(&self) -> AbortHandle {
        self.run().abort.clone()
    }

    /// The layers' data and functions, reachable also while a turn runs.
    pub fn memory(&self) -> MemoryAccess<Ls> {
        MemoryAccess::new(self.run().shared.clone())
    }

    /// Whether a turn was begun and not finished: by this execution, or by one that ended in the middle.
    pub fn has_unfinished_turn(&self) -> bool {
        self.run().turn.is_some()
    }

    /// Runs one turn: the user's message, and all model calls and tool calls it leads to.
    ///
    /// A turn that was left unfinished is closed first: calls without an answer are answered as interrupted.
    ///
    /// # Errors
    /// See [`Error`]. After a failed model call the turn is unfinished and [`resume`](Execution::resume) tries again.
    pub async fn turn(&mut self, input: impl Into<TurnInput>) -> Result<TurnAnswer, Error> {
        let input = input.into();
        self.guarded(async |run| if run.begin_turn(input).await? { run.drive().await } else { Ok(run.answer(0)) }).await
    }

    /// Goes on with the unfinished turn from its last committed step; answers nothing if there is none.
    ///
    /// A tool call that may have run before the interruption is not run again: the model is told that its outcome
    /// is unknown.
    ///
    /// # Errors
    /// As [`turn`](Execution::turn).
    pub async fn resume(&mut self) -> Result<Option<TurnAnswer>, Error> {
        if !self.has_unfinished_turn() {
            return Ok(None);
        }
        self.guarded(async |run| {
            run.claim_turn().await?;
            run.recall_all().await;
            run.drive().await
        })
        .await
        .map(Some)
    }

    /// Begins a turn and answers the window that the model would be sent, without calling it.
    ///
    /// The turn stays unfinished; [`resume`](Execution::resume) goes on with it.
    ///
    /// # Errors
    /// As [`turn`](Execution::turn).
    pub async fn window(&mut self, input: impl Into<TurnInput>) -> Result<Window, Error> {
        let input = input.into();
        self.guarded(
            async |run| if run.begin_turn(input).await? { run.assemble().await } else { Ok(Window::default()) },
        )
        .await
    }

    /// Runs something that an abort can stop and that hooks may not nest without end.
    async fn guarded<T>(&mut self, work: impl AsyncFnOnce(&mut Run) -> Result<T, Error>) -> Result<T, Error> {
        if Frame::depth() >= MAX_NESTED_HOOKS {
            return Err(Error::TooDeep { limit: MAX_NESTED_HOOKS });
        }
        let run = self.run_mut()?;
        let (shared, abort) = (run.shared.clone(), run.abort.clone());
        let _held = shared.core.states.hold(&shared.id);
        // The abort is asked first, so that one that came before the turn stops it before anything is done.
        match select(std::pin::pin!(abort.aborted()), std::pin::pin!(work(run))).await {
            Either::Left(_) => Err(Error::Aborted),
            Either::Right((result, _)) => result,
        }
    }

    /// Adds a layer to this execution. It is initialised now and takes part from the next hook on.
    ///
    /// # Errors
    /// [`Error::Spec`] if it does not go with the others, [`Error::Init`] if its `init` failed.
    pub async fn add_layer(&mut self, layer: impl MemoryLayer) -> Result<(), Error> {
        self.run_mut()?.add_layer(ErasedLayer::new(layer).0).await
    }

    /// Waits until all states are durable, and says which are not.
    pub async fn flush(&self) -> Vec<crate::state::NotDurable> {
        let shared = &self.run().shared;
        shared.core.states.flush(&shared.id).await
    }
}

impl Run {
    pub(crate) fn core(&self) -> &Core {
        &self.shared.core
    }

    /// Adds items to the log, counting each once.
    pub(crate) fn append(&mut self, items: impl IntoIterator<Item = Arc<Item>>) {
        let counter = &*self.shared.core.counter;
        let counted: Vec<(Arc<Item>, u64)> =
            items.into_iter().map(|item| (item.clone(), count_item(counter, &item))).collect();
        self.shared.log().grow(&mut self.log, |log| {
            counted.into_iter().for_each(|(item, tokens)| {
                log.append(item, tokens);
            });
        });
        self.shared.core.states.set_behind(&self.shared.id, self.is_behind());
    }

    /// Makes the unfinished turn ours, and durable what could not be made so before, before anything is run for it.
    async fn claim_turn(&mut self) -> Result<(), Error> {
        self.close_stray_turns();
        if self.has_claims() || self.is_behind() { self.commit().await } else { Ok(()) }
    }

    /// Logs the user's message. `false`: a layer dropped it, and there is nothing to answer.
    async fn begin_turn(&mut self, input: TurnInput) -> Result<bool, Error> {
        self.close_unfinished_turn();
        (self.response, self.last_usage) = (None, None);
        let message = Item::from(Message::new(Role::User, input.0));
        let items = self.append_pipeline(vec![message], None).await;
        if items.is_empty() {
            self.commit().await?;
            return Ok(false);
        }
        self.append(items.into_iter().map(Arc::new));
        self.query = self.newest_query();
        self.turn = Some(Turn::new(self.core().max_steps));
        self.commit().await?;
        self.recall_all().await;
        Ok(true)
    }

    /// The text of the newest user message.
    pub(crate) fn newest_query(&self) -> Arc<str> {
        let entry = self.log.newest_user().and_then(|position| self.log.get(position));
        let message = entry.and_then(|entry| entry.item.as_message());
        message.map(Message::text).unwrap_or_default().into()
    }

    /// Does what the turn says until it is over.
    async fn drive(&mut self) -> Result<TurnAnswer, Error> {
        loop {
            let Some(turn) = &self.turn else { return Ok(self.answer(0)) };
            match turn.next() {
                Next::CallModel => self.step().await?,
                Next::RunTool(call) => self.run_tool(call).await?,
                Next::AnswerInterrupted(call) => {
                    self.answer_call(Item::error_output(&call.call_id, INTERRUPTED)).await?;
                }
                Next::Finish => {
                    let steps = turn.steps();
                    if !self.durable {
                        self.commit().await?;
                    }
                    self.turn = None;
                    if self.response.is_none() {
                        // A turn whose last commit failed has nothing left to do but to answer.
                        self.response = self.logged_response();
                    }
                    return Ok(self.answer(steps));
                }
                Next::GiveUp => {
                    let limit = self.core().max_steps;
                    self.close_unfinished_turn();
                    self.commit().await?;
                    return Err(Error::TooManySteps { limit });
                }
            }
        }
    }

    /// The model's last words, as the log has them.
    fn logged_response(&self) -> Option<LlmResponse> {
        let newest = self.log.iter().rev();
        let said = newest.take_while(|item| !item.is_message_of(Role::User) && item.as_output().is_none());
        let mut items: Vec<Item> = said.cloned().collect();
        items.reverse();
        (!items.is_empty()).then(|| LlmResponse { items, ..LlmResponse::default() })
    }

    fn answer(&self, steps: u32) -> TurnAnswer {
        let (response, usage) = (self.response.clone(), self.last_usage.clone());
        TurnAnswer { response, steps, usage, durable: self.durable }
    }
}

/// What the model is told about a call whose outcome nobody knows.
pub(crate) const INTERRUPTED: &str =
    "This call was interrupted. It may or may not have had an effect, and it was not run again.";
