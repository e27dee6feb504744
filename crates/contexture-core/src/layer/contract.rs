//! The contract of a memory layer: the trait that every layer implements.

use std::sync::Arc;

use super::hook::{HookResult, HookSet};
use super::hooks::*;
use super::provides::LayerProvides;
use super::spec::LayerSpec;
use super::state::LayerState;
use crate::item::Item;

/// A unit of memory: a slot, a scope, a budget, state, and up to eleven hooks.
///
/// Write the hooks you need as `async fn`; the others cost nothing. The engine calls them, never anyone else:
///
/// 1. [`init`](Self::init), once for each execution, before anything else. If it fails, the execution ends with
///    that error and no other hook of any layer follows except `on_complete` and `dispose` of those that were
///    initialised; or, if the spec says [`OnInitError::Disable`](super::OnInitError::Disable), this layer alone is skipped.
/// 2. For every user message and every tool output: [`on_item_append`](Self::on_item_append), layer after layer
///    by slot, each with what the one before let through.
/// 3. Once a turn before the first model call, and on re-render: [`recall`](Self::recall), all layers at once.
/// 4. Before every model call: [`project_history`](Self::project_history), by slot.
/// 5. After every response, before it is logged: [`after_model_call`](Self::after_model_call), by slot, ending at
///    the first deny.
/// 6. Then [`store`](Self::store), all layers at once, with the items of the response.
/// 7. Before every tool call that the response asks for: [`before_tool_call`](Self::before_tool_call), by slot,
///    ending at the first deny.
/// 8. Around a child execution: [`on_spawn`](Self::on_spawn) and [`on_return`](Self::on_return), by slot.
/// 9. Once at the end, on success, failure and abort alike: [`on_complete`](Self::on_complete), then
///    [`dispose`](Self::dispose) in reverse order of registration. Nothing is called after it.
///
/// Hooks and functions of one layer in one execution never run at the same time, with one exception: a recall in
/// the background of an [eventual](super::RecallMode::Eventual) layer runs beside them, so that nobody waits for it. It
/// sees the state as it was when it began. State changes only through what a hook
/// returns: one that fails, panics or is late leaves no trace in state, and the turn goes on without it. Each
/// hook's own comment says what its failure means. A late hook is cancelled at its next `await`; work that
/// never awaits cannot be cancelled, so hash and parse large things elsewhere.
///
/// ```
/// use contexture_core::layer::*;
/// use contexture_core::Slot;
///
/// /// Remembers how many responses the model gave, and tells it.
/// struct Counter;
///
/// impl MemoryLayer for Counter {
///     type State = u32;
///
///     fn spec(&self) -> LayerSpec {
///         LayerSpec::new("counter", Slot::WORKING_MEMORY, MemoryScope::Thread)
///     }
///
///     async fn recall(&self, params: RecallParams<u32>) -> HookResult<RecallResult<u32>> {
///         Ok(format!("You have answered {} times.", params.state).into())
///     }
///
///     async fn store(&self, params: StoreParams<u32>) -> HookResult<StoreResult<u32>> {
///         Ok(StoreResult::set(*params.state + 1))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a memory layer",
    label = "not a layer",
    note = "implement `MemoryLayer` for it, or make one from closures with `layer(spec)`"
)]
pub trait MemoryLayer: Send + Sync + 'static {
    /// What the layer remembers. It is durable in every scope but `Execution`.
    type State: LayerState;

    /// What the layer says about itself. Called once, when the memory is built.
    fn spec(&self) -> LayerSpec;

    /// Which hooks the layer has. Called once, when the memory is built.
    ///
    /// Default: those that it writes itself, which the engine knows from their types. Only a layer that passes
    /// hooks on to something else has more to say: naming the ones that lead nowhere spares the engine the
    /// calls. A hook that is not named is never called.
    fn hooks(&self) -> HookSet {
        HookSet::ALL
    }

    /// Data and functions that others may use; functions become tools. Called once, when the memory is built.
    fn provides(&self) -> LayerProvides<Self::State> {
        LayerProvides::new()
    }

    /// Prepares the layer for an execution and returns its first state.
    ///
    /// Default: the stored state of the scope, or `State::default()`.
    /// A failure or a delay ends the execution, or disables the layer if its spec says so.
    fn init(&self, _: InitParams<Self::State>) -> impl Future<Output = HookResult<InitResult<Self::State>>> + Send {
        absent()
    }

    /// Sees user messages and tool outputs before they are logged; may change, drop or add items.
    ///
    /// It may change what the user wrote. What it adds speaks as the developer or the system, unless the spec says that
    /// it [speaks for others](super::LayerSpec::speaks_for_others); anything else is left out, with a fault.
    /// Never called for what the model says. An empty result ends the pipeline: nothing is logged (but a tool
    /// output never vanishes altogether: the model is told that it was withheld).
    /// On failure or delay the items pass unchanged.
    fn on_item_append(
        &self,
        _: OnItemAppendParams<Self::State>,
    ) -> impl Future<Output = HookResult<OnItemAppendResult<Self::State>>> + Send {
        absent()
    }

    /// Returns what the model should be told, within `budget` tokens.
    ///
    /// The result is counted again: more than the budget is cut to it, with a fault.
    /// On failure or delay the layer contributes nothing.
    fn recall(
        &self,
        _: RecallParams<Self::State>,
    ) -> impl Future<Output = HookResult<RecallResult<Self::State>>> + Send {
        absent()
    }

    /// Says what of the past is shown. Read-side only: the log itself never changes.
    ///
    /// On failure or delay the history passes unchanged.
    fn project_history(
        &self,
        _: ProjectHistoryParams<Self::State>,
    ) -> impl Future<Output = HookResult<ProjectHistoryResult>> + Send {
        absent()
    }

    /// Judges a tool call before it runs.
    ///
    /// A denied call does not run, and the reason is its output; a guided one does not either, and the guidance of all
    /// layers is its output. Guidance that is empty lets it pass.
    /// On failure or delay the call is **denied**, unless the spec says [`OnGateError::Abstain`](super::OnGateError::Abstain).
    fn before_tool_call(
        &self,
        _: BeforeToolCallParams<Self::State>,
    ) -> impl Future<Output = HookResult<BeforeToolCallResult<Self::State>>> + Send {
        absent()
    }

    /// Judges a response before it is logged and before its tools run.
    ///
    /// A deny ends the turn with `Error::SteeringDenied`; guidance makes the model try again, at most three
    /// times. On failure or delay the layer has no say.
    fn after_model_call(
        &self,
        _: AfterModelCallParams<Self::State>,
    ) -> impl Future<Output = HookResult<AfterModelCallResult<Self::State>>> + Send {
        absent()
    }

    /// Learns from a response. On failure or delay the layer keeps its old state.
    fn store(&self, _: StoreParams<Self::State>) -> impl Future<Output = HookResult<StoreResult<Self::State>>> + Send {
        absent()
    }

    /// Gives a child execution its state and first items.
    ///
    /// Without this hook the child's layer starts with `init`. On failure or delay the child gets no state.
    fn on_spawn(
        &self,
        _: SpawnParams<Self::State>,
    ) -> impl Future<Output = HookResult<SpawnResult<Self::State>>> + Send {
        absent()
    }

    /// Takes over what a child execution learned. On failure or delay the parent stays unchanged.
    fn on_return(
        &self,
        _: ReturnParams<Self::State>,
    ) -> impl Future<Output = HookResult<ReturnResult<Self::State>>> + Send {
        absent()
    }

    /// Learns how the execution ended. A failure is a diagnostic; the others still run.
    fn on_complete(
        &self,
        _: CompleteParams<Self::State>,
    ) -> impl Future<Output = HookResult<CompleteResult<Self::State>>> + Send {
        absent()
    }

    /// Releases what the layer holds. A failure is a diagnostic; the others still run.
    fn dispose(&self, _: DisposeParams<Self::State>) -> impl Future<Output = HookResult<()>> + Send {
        absent()
    }

    /// Says in few words how `pinned`, which the model was shown, differs from `current`.
    ///
    /// Asked when an anchored block changes within an epoch. `None` (the default): the whole of `current` is
    /// sent as the correction. Must be a pure function of its arguments.
    fn render_delta(&self, _pinned: &[Arc<Item>], _current: &[Arc<Item>]) -> Option<String> {
        None
    }

    /// Says what speaks against a stored state that parses: a rule of the layer that it breaks.
    ///
    /// Such a state is treated like one that does not parse: it is kept aside, a fault tells of it, and the layer starts
    /// fresh. Default: nothing. Must not block.
    ///
    /// # Errors
    /// What is wrong with it, in words for people.
    fn check_state(&self, _state: &Self::State) -> Result<(), String> {
        Ok(())
    }

    /// Unites two states that were written at the same time, by this process (`ours`) and another (`theirs`).
    ///
    /// `None` (the default): ours wins, being the newer, and a diagnostic says so. Must not fail or block.
    fn merge(&self, _ours: &Self::State, _theirs: &Self::State) -> Option<Self::State> {
        None
    }
}

/// The error of a hook that a layer does not have; the engine learns from it not to ask again.
#[derive(Debug, thiserror::Error)]
#[error("this layer has no such hook")]
pub(crate) struct AbsentHook;

/// What a hook returns that a layer does not write itself. The type alone tells that nothing is there.
pub(crate) struct Absent<T>(std::marker::PhantomData<fn() -> T>);

impl<T> Future for Absent<T> {
    type Output = HookResult<T>;

    fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<HookResult<T>> {
        std::task::Poll::Ready(Err(AbsentHook.into()))
    }
}

fn absent<T>() -> Absent<T> {
    Absent(std::marker::PhantomData)
}
