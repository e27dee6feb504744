//! One run over a thread: the handle that a program holds.

use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use futures_util::future::{Either, select};

use super::abort::AbortHandle;
use super::access::MemoryAccess;
use super::answer::{TurnAnswer, TurnInput};
use super::core::Core;
use super::ending::abort_children;
use super::frame::HookFrame;
use super::open::add_layer;
use super::run::ExecutionParts;
use super::shared::SharedExecution;
use crate::error::Error;
use crate::id::{ExecutionId, ResourceKind, ThreadId};
use crate::item::Item;
use crate::layer::{ContextData, ExecutionOutcome, Hook, MemoryLayer, ModelCaller, Resources, TokenUsage};
use crate::log::ItemLog;
use crate::memory::ErasedLayer;
use crate::model::Usage;
use crate::state::NotDurable;
use crate::usage::StepUsage;
use crate::window::Window;

/// How deeply hooks and functions may be nested for a new turn or execution to start.
const MAX_NESTED_HOOKS: usize = 3;

/// The input of a new execution.
pub(crate) struct ExecutionBeginning {
    pub(crate) id: ExecutionId,
    pub(crate) thread: ThreadId,
    pub(crate) resources: Resources,
    /// The execution that starts it.
    pub(crate) parent: Option<Arc<SharedExecution>>,
}

/// One run over a thread, with the log, the states of the layers, and the turn.
///
/// End it with [`complete`](Execution::complete), [`fail`](Execution::fail) or [`abort`](Execution::abort); the outcome
/// is passed to `on_complete` of the layers. An execution that is dropped counts as aborted; its last hooks, and those of
/// its children, then run in the background.
pub struct Execution<Ls> {
    /// `None` once it has ended.
    run: Option<Box<ExecutionParts>>,
    shape: PhantomData<fn() -> Ls>,
}

impl<Ls> Execution<Ls> {
    pub(crate) fn new(core: Arc<Core>, beginning: ExecutionBeginning) -> Self {
        let ExecutionBeginning { id, thread, resources, parent } = beginning;
        let mut context = ContextData {
            execution_id: id,
            thread_id: thread.clone(),
            resource_id: resources.get(&ResourceKind::user()).cloned(),
            resources,
            depth: parent.as_ref().map_or(0, |parent| parent.context_data().depth + 1),
            step_number: 0,
            token_usage: TokenUsage::default(),
            cost: 0.0,
            fs: core.host.fs.clone(),
            shell: core.host.shell.clone(),
            clock: core.host.clock.clone(),
            search: core.host.search.clone(),
            call_model: None,
            counter: core.counter.clone(),
            states: core.states.clone(),
        };
        let shared = Arc::new_cyclic(|shared: &Weak<SharedExecution>| {
            let shared = shared.clone();
            let count = move |usage: &Usage, cost: f64| {
                if let Some(shared) = shared.upgrade() {
                    shared.count_usage(usage, cost);
                }
            };
            context.call_model = core.model_for_layers().map(|model| ModelCaller::new(model, Arc::new(count)));
            SharedExecution::new(core, context, parent)
        });
        let run = ExecutionParts::new(shared, thread);
        Self { run: Some(Box::new(run)), shape: PhantomData }
    }

    pub(crate) async fn open(&mut self) -> Result<(), Error> {
        if HookFrame::depth() >= MAX_NESTED_HOOKS {
            return Err(Error::TooDeep { limit: MAX_NESTED_HOOKS });
        }
        match self.run_mut()?.open().await {
            Ok(()) => Ok(()),
            Err(error) => {
                self.end(ExecutionOutcome::Failure).await;
                Err(error)
            }
        }
    }

    pub(crate) fn run_mut(&mut self) -> Result<&mut ExecutionParts, Error> {
        self.run.as_deref_mut().filter(|run| !run.shared().is_closed()).ok_or(Error::Aborted)
    }

    pub(crate) fn take_run(&mut self) -> Option<Box<ExecutionParts>> {
        self.run.take()
    }

    fn run(&self) -> &ExecutionParts {
        self.run.as_deref().expect("an execution has its run until it is consumed")
    }

    /// The id of this execution.
    pub fn id(&self) -> &ExecutionId {
        self.run().shared().id()
    }

    /// The thread.
    pub fn thread_id(&self) -> &ThreadId {
        self.run().thread().id()
    }

    /// All items so far.
    pub fn log(&self) -> &ItemLog {
        self.run().thread().log()
    }

    /// The token usage of the last request.
    pub fn usage(&self) -> Option<&StepUsage> {
        self.run().usage()
    }

    /// Tokens of all model calls so far, including those of children.
    pub fn token_usage(&self) -> TokenUsage {
        self.run().shared().context_data().token_usage
    }

    /// The cost in money of all model calls so far, including those of children, as far as the model client reported it.
    pub fn cost(&self) -> f64 {
        self.run().shared().context_data().cost
    }

    /// Imports a conversation: its items are logged unchanged, and no hook runs.
    ///
    /// # Errors
    /// [`Error::Journal`] if they could not be made durable.
    pub async fn import(&mut self, items: impl IntoIterator<Item = Item>) -> Result<(), Error> {
        self.run_mut()?.import(items).await
    }

    /// Returns a handle that aborts a turn.
    pub fn abort_handle(&self) -> AbortHandle {
        self.run().shared().abort().clone()
    }

    /// Returns access to the layers' data and functions, usable also while a turn runs.
    pub fn memory(&self) -> MemoryAccess<Ls> {
        MemoryAccess::new(self.run().shared().clone())
    }

    /// Whether there is an unfinished turn: of this execution, of one that ended in the middle, or of one that was
    /// running when this one was opened.
    pub fn has_unfinished_turn(&self) -> bool {
        self.run().thread().turn().is_some()
    }

    /// Runs one turn: the user's message, and all model calls and tool calls it leads to.
    ///
    /// An unfinished turn is closed first: calls without an output get one that says they were interrupted.
    /// The turn holds a lease on its thread until it ends or is dropped; what others wrote is read first.
    ///
    /// # Errors
    /// [`Error::Held`] if another execution runs a turn on the thread. See [`Error`]. After a failed model call the turn is unfinished and [`resume`](Execution::resume) tries again.
    pub async fn turn(&mut self, input: impl Into<TurnInput>) -> Result<TurnAnswer, Error> {
        let input = input.into();
        self.guarded(async |run| if run.begin_turn(input).await? { run.drive().await } else { Ok(run.answer(0)) }).await
    }

    /// Continues the unfinished turn from its last committed step; returns `None` if there is none.
    ///
    /// A tool call that may have run before the interruption is not run again: the model is told that its outcome
    /// is unknown.
    ///
    /// # Errors
    /// As [`turn`](Execution::turn).
    pub async fn resume(&mut self) -> Result<Option<TurnAnswer>, Error> {
        self.guarded(async |run| if run.resume_turn().await? { run.drive().await.map(Some) } else { Ok(None) }).await
    }

    /// Begins a turn and returns the window that would be sent to the model, without calling it.
    ///
    /// The turn stays unfinished; [`resume`](Execution::resume) continues it.
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

    /// Runs a future that can be aborted, within the limit of nesting.
    async fn guarded<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut ExecutionParts) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if HookFrame::depth() >= MAX_NESTED_HOOKS {
            return Err(Error::TooDeep { limit: MAX_NESTED_HOOKS });
        }
        let run = self.run_mut()?;
        let shared = run.shared().clone();
        let _held = shared.core().states.hold(shared.id());
        // The abort is polled first, so that one from before the turn takes effect before anything is done.
        match select(std::pin::pin!(shared.abort().aborted()), std::pin::pin!(leased(run, work))).await {
            Either::Left(_) => Err(Error::Aborted),
            Either::Right((result, _)) => result,
        }
    }

    /// Adds a layer to this execution. It is initialised now and called from the next hook on.
    ///
    /// # Errors
    /// [`Error::Spec`] if it is not valid together with the others, [`Error::Init`] if its `init` failed.
    pub async fn add_layer(&mut self, layer: impl MemoryLayer) -> Result<(), Error> {
        add_layer(self.run_mut()?.shared(), ErasedLayer::new(layer).0).await
    }

    /// Waits until all states are durable, and returns those that are not.
    pub async fn flush(&self) -> Vec<NotDurable> {
        let shared = self.run().shared();
        shared.core().states.flush(shared.id()).await
    }

    /// Ends the execution as a success.
    ///
    /// # Errors
    /// [`Error::Journal`] if the last states could not be made durable.
    pub async fn complete(mut self) -> Result<(), Error> {
        self.end(ExecutionOutcome::Success).await.map_or(Ok(()), Err)
    }

    /// Ends the execution as a failure.
    ///
    /// # Errors
    /// As [`complete`](Execution::complete).
    pub async fn fail(mut self) -> Result<(), Error> {
        self.end(ExecutionOutcome::Failure).await.map_or(Ok(()), Err)
    }

    /// Ends the execution as aborted, and before it its children and theirs: their `on_complete` and `dispose` run even
    /// if the program still holds them, and what it does with them later returns [`Error::Aborted`].
    ///
    /// # Errors
    /// As [`complete`](Execution::complete).
    pub async fn abort(mut self) -> Result<(), Error> {
        self.end(ExecutionOutcome::Aborted).await.map_or(Ok(()), Err)
    }

    pub(crate) async fn end(&mut self, outcome: ExecutionOutcome) -> Option<Error> {
        // `run` is kept until the last hook has run: if this future is dropped, so is the execution, whose drop then
        // continues from here.
        let run = self.run.as_deref_mut()?;
        if outcome == ExecutionOutcome::Aborted {
            run.shared().abort().abort_children();
            abort_children(run.shared()).await;
        }
        if run.shared().is_closed() {
            // The parent was aborted, and has run the last hooks.
            if run.thread().is_behind() {
                run.lose_turn().await;
            }
            self.take_run();
            return (outcome != ExecutionOutcome::Aborted).then_some(Error::Aborted);
        }
        run.shared().core().states.leave(run.shared().id());
        let error = run.complete(outcome).await;
        run.dispose().await;
        self.take_run();
        error
    }
}

/// Runs a future while the lease is held. It ends at once when the lease is lost.
async fn leased<T>(
    run: &mut ExecutionParts,
    work: impl AsyncFnOnce(&mut ExecutionParts) -> Result<T, Error>,
) -> Result<T, Error> {
    let shared = run.shared().clone();
    let (core, thread) = (shared.core(), shared.context_data().thread_id.clone());
    let when_held = core.settings.lease.when_held;
    let _lease = shared.turn_lease().acquire(core, shared.id(), &thread, when_held).await?;
    if shared.turn_lease().fence().is_some() {
        // While we hold the lease, turns that others left have no running owner.
        run.catch_up().await?;
    }
    let result = {
        let kept = std::pin::pin!(shared.turn_lease().keep(core, shared.id()));
        match select(std::pin::pin!(work(run)), kept).await {
            Either::Left((result, _)) => result,
            Either::Right(((), _)) => Err(Error::TakenOver),
        }
    };
    if matches!(result, Err(Error::TakenOver)) {
        run.lose_turn().await;
    }
    result
}

impl<Ls> Drop for Execution<Ls> {
    fn drop(&mut self) {
        let Some(mut run) = self.take_run() else { return };
        run.shared().abort().abort_children();
        // From now on another execution of the thread may continue what this one left.
        run.shared().core().states.leave(run.shared().id());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // Hooks are async and cannot run without a runtime.
            let message = "the execution was dropped outside of a runtime, so `on_complete` and `dispose` did not run";
            run.shared().fault(None, Hook::OnComplete.as_str(), message.to_owned());
            return;
        };
        let ending = run.shared().core().endings.begin(run.thread().id());
        runtime.spawn(async move {
            if run.thread().is_behind() {
                // Another execution may already have continued the turn from its last durable step.
                run.lose_turn().await;
            }
            drop(ending);
            abort_children(run.shared()).await;
            // There is no caller to return an error to; what is not durable was reported as a diagnostic.
            let _ = run.complete(ExecutionOutcome::Aborted).await;
            run.dispose().await;
        });
    }
}
