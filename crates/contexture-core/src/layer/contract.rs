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
/// Write the hooks you need as `async fn`; the others cost nothing. The engine calls them in this order:
///
/// 1. [`init`](Self::init), once for each execution, before anything else. If it fails, the execution ends with
///    that error and no other hook of any layer follows except `on_complete` and `dispose` of those that were
///    initialised; or, if the spec says [`OnInitError::Disable`](super::OnInitError::Disable), this layer alone is skipped.
/// 2. For every user message and every tool output: [`on_item_append`](Self::on_item_append), layer after layer
///    by slot, each with what the previous one returned.
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
/// the background of an [eventual](super::RecallMode::Eventual) layer runs concurrently with them, so that nothing waits
/// for it. It sees the state as it was when it began. State changes only through what a hook
/// returns: one that fails, panics or exceeds its timeout does not change the state, and the turn continues without it.
/// Each hook's own comment says what its failure means. A hook that exceeds its timeout is cancelled at its next
/// `await`; work that never awaits cannot be cancelled, so hash and parse large data on another thread.
///
/// ```
/// use contexture_core::layer::*;
/// use contexture_core::Slot;
///
/// /// Counts the model's responses, and tells it the number.
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

    /// Returns the description of the layer. Called once, when the memory is built.
    fn spec(&self) -> LayerSpec;

    /// Returns the hooks that the layer has. Called once, when the memory is built.
    ///
    /// Default: those that it implements, which the engine knows from their types. Override it in a layer that forwards
    /// its hooks to something else: a hook that is not in the result is never called.
    fn hooks(&self) -> HookSet {
        HookSet::ALL
    }

    /// Returns data for the program, and functions for the program and the model; functions become tools. Called once,
    /// when the memory is built.
    fn provides(&self) -> LayerProvides<Self::State> {
        LayerProvides::new()
    }

    /// Prepares the layer for an execution and returns its first state.
    ///
    /// Default: the stored state of the scope, or `State::default()`.
    /// A failure or timeout ends the execution, or disables the layer if its spec says so.
    fn init(&self, _: InitParams<Self::State>) -> impl Future<Output = HookResult<InitResult<Self::State>>> + Send {
        absent()
    }

    /// Called with user messages and tool outputs before they are logged; may change, drop or add items.
    ///
    /// It may change what the user wrote. Items that it adds must have the role developer or system, unless the spec
    /// says that it [speaks for others](super::LayerSpec::speaks_for_others); other items are dropped, with a fault.
    /// It is not called for responses of the model. After an empty result no further layer is called and nothing is
    /// logged, except that a dropped tool output is replaced by a note for the model.
    /// On failure or timeout the items stay unchanged.
    fn on_item_append(
        &self,
        _: OnItemAppendParams<Self::State>,
    ) -> impl Future<Output = HookResult<OnItemAppendResult<Self::State>>> + Send {
        absent()
    }

    /// Returns what the model should be told, within `budget` tokens.
    ///
    /// A result that is larger than the budget is cut to it, with a fault.
    /// On failure or timeout the layer contributes nothing.
    fn recall(
        &self,
        _: RecallParams<Self::State>,
    ) -> impl Future<Output = HookResult<RecallResult<Self::State>>> + Send {
        absent()
    }

    /// Returns the part of the past that is shown. The log itself never changes.
    ///
    /// On failure or timeout the history stays unchanged.
    fn project_history(
        &self,
        _: ProjectHistoryParams<Self::State>,
    ) -> impl Future<Output = HookResult<ProjectHistoryResult>> + Send {
        absent()
    }

    /// Allows, denies or guides a tool call before it runs.
    ///
    /// A denied call does not run, and the reason is its output; a guided one does not either, and the guidance of all
    /// layers is its output. Empty guidance allows the call.
    /// On failure or timeout the call is **denied**, unless the spec says [`OnGateError::Abstain`](super::OnGateError::Abstain).
    fn before_tool_call(
        &self,
        _: BeforeToolCallParams<Self::State>,
    ) -> impl Future<Output = HookResult<BeforeToolCallResult<Self::State>>> + Send {
        absent()
    }

    /// Allows, denies or guides a response before it is logged and before its tools run.
    ///
    /// A denial ends the turn with `Error::SteeringDenied`; after guidance the model is called again, at most three
    /// times. A failure or timeout counts as allow.
    fn after_model_call(
        &self,
        _: AfterModelCallParams<Self::State>,
    ) -> impl Future<Output = HookResult<AfterModelCallResult<Self::State>>> + Send {
        absent()
    }

    /// Updates the state after a response. On failure or timeout the state stays unchanged.
    fn store(&self, _: StoreParams<Self::State>) -> impl Future<Output = HookResult<StoreResult<Self::State>>> + Send {
        absent()
    }

    /// Returns the initial state and first items of a child execution.
    ///
    /// Without this hook the child's layer starts with `init`. On failure or timeout the child gets no state.
    fn on_spawn(
        &self,
        _: SpawnParams<Self::State>,
    ) -> impl Future<Output = HookResult<SpawnResult<Self::State>>> + Send {
        absent()
    }

    /// Updates the parent with what a child execution learned. On failure or timeout the parent stays unchanged.
    fn on_return(
        &self,
        _: ReturnParams<Self::State>,
    ) -> impl Future<Output = HookResult<ReturnResult<Self::State>>> + Send {
        absent()
    }

    /// Called when the execution has ended. A failure is a diagnostic; other layers are still called.
    fn on_complete(
        &self,
        _: CompleteParams<Self::State>,
    ) -> impl Future<Output = HookResult<CompleteResult<Self::State>>> + Send {
        absent()
    }

    /// Releases resources of the layer. A failure is a diagnostic; other layers are still called.
    fn dispose(&self, _: DisposeParams<Self::State>) -> impl Future<Output = HookResult<()>> + Send {
        absent()
    }

    /// Returns a short description of how `current` differs from `pinned`, which the model was shown.
    ///
    /// Called when an anchored block changes within an epoch. `None` (the default): all of `current` is sent as the
    /// update. Must be a pure function of its arguments.
    fn render_delta(&self, _pinned: &[Arc<Item>], _current: &[Arc<Item>]) -> Option<String> {
        None
    }

    /// Checks the rules of the layer on a stored state that parses.
    ///
    /// A state with an error is treated like one that does not parse: it is backed up and reported as a fault, and the
    /// layer starts with the default. Default: no rules. Must not block.
    ///
    /// # Errors
    /// A message for people that says what is wrong.
    fn check_state(&self, _state: &Self::State) -> Result<(), String> {
        Ok(())
    }

    /// Merges two states that were written at the same time, by this process (`ours`) and another (`theirs`).
    ///
    /// `None` (the default): ours wins, being the newer, with a diagnostic. Must not fail or block.
    fn merge(&self, _ours: &Self::State, _theirs: &Self::State) -> Option<Self::State> {
        None
    }

    /// Like [`merge`](Self::merge), with the stored state that ours was made of, if it is known.
    ///
    /// The engine calls this one. Two states alone do not tell what either writer changed: if both have a text and the
    /// texts differ, one of them must give way, and an edit that was acknowledged is lost. A layer whose values are edited
    /// piece by piece compares both with `base` and makes both edits. Default: `merge` without it.
    fn merge_since(
        &self,
        _base: Option<&Self::State>,
        ours: &Self::State,
        theirs: &Self::State,
    ) -> Option<Self::State> {
        self.merge(ours, theirs)
    }
}

/// The error of a hook that a layer does not have; after it the engine does not call the hook again.
#[derive(Debug, thiserror::Error)]
#[error("this layer has no such hook")]
pub(crate) struct AbsentHook;

/// The future of a hook that a layer does not implement. The engine recognises absent hooks by this type.
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
