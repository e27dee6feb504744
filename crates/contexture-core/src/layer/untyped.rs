//! Parameters and results of hooks with the state's type erased.

use std::sync::Arc;

use super::hooks::*;
use super::state::{AnyState, LayerState, StateValue};

/// The parameters of a hook, typed and with the state's type erased.
pub(crate) trait HookParams {
    type Untyped;

    /// Restores the type of the state. Panics if the state has another type, which cannot happen: every layer gets only
    /// states that it created.
    fn typed(untyped: Self::Untyped) -> Self;
}

/// Implements [`HookParams`] for params with these states and these other fields.
macro_rules! hook_params {
    ($( $params:ident { $($state:ident),+; $($field:ident),* } )*) => { $(
        impl<S: LayerState> HookParams for $params<S> {
            type Untyped = $params<AnyState>;

            fn typed(untyped: Self::Untyped) -> Self {
                $params { $( $state: typed(untyped.$state), )+ $( $field: untyped.$field, )* }
            }
        }
    )* };
}

hook_params! {
    OnItemAppendParams { state; items, log, ctx, budget }
    RecallParams { state; log, query, ctx, budget }
    ProjectHistoryParams { state; history, decisions, ctx, budget, cache }
    BeforeToolCallParams { state; tool_name, call, log, ctx }
    AfterModelCallParams { state; response, log, ctx }
    StoreParams { state; new_items, log, response, ctx }
    SpawnParams { parent_state; child_ctx }
    ReturnParams { child_state, parent_state; child_log, child_ctx, result, ctx }
    CompleteParams { state; log, ctx, outcome }
    DisposeParams { state; }
}

impl<S: LayerState> HookParams for InitParams<S> {
    type Untyped = InitParams<StateValue>;

    fn typed(untyped: Self::Untyped) -> Self {
        let InitParams { storage, scope_key, ctx, stored } = untyped;
        let stored = stored.map(|state| (*typed::<S>(state.value().clone())).clone());
        InitParams { storage, scope_key, ctx, stored }
    }
}

fn typed<S: LayerState>(state: Arc<AnyState>) -> Arc<S> {
    state.downcast().expect("a layer's state is of the layer's own type")
}

/// The result of a hook, typed and with the state's type erased.
pub(crate) trait TypedResult {
    type Erased;

    fn erased(self) -> Self::Erased;
}

/// Implements [`TypedResult`] for results with an optional state and these other fields.
macro_rules! typed_results {
    ($( $result:ident { $state:ident; $($field:ident),* } )*) => { $(
        impl<S: LayerState> TypedResult for $result<S> {
            type Erased = $result<StateValue>;

            fn erased(self) -> Self::Erased {
                $result { $state: self.$state.map(StateValue::new), $( $field: self.$field, )* }
            }
        }
    )* };
}

typed_results! {
    OnItemAppendResult { state; items, rerender }
    RecallResult { state; items, token_count, rerender }
    SteeringResult { state; decision }
    StateResult { state; }
    SpawnResult { child_state; items }
    ReturnResult { parent_state; result }
}

impl<S: LayerState> TypedResult for InitResult<S> {
    type Erased = InitResult<StateValue>;

    fn erased(self) -> Self::Erased {
        InitResult { state: StateValue::new(self.state) }
    }
}

impl TypedResult for ProjectHistoryResult {
    type Erased = Self;

    fn erased(self) -> Self {
        self
    }
}

impl TypedResult for () {
    type Erased = ();

    fn erased(self) {}
}

/// What the engine needs from the result of every hook.
pub(crate) trait ErasedResult {
    /// Takes the change of the layer's state out of the result.
    fn take_state(&mut self) -> StateChange<StateValue> {
        StateChange::Keep
    }

    /// The number of items, for the span.
    fn item_count(&self) -> Option<usize> {
        None
    }
}

fn optional(state: &mut Option<StateValue>) -> StateChange<StateValue> {
    state.take().map_or(StateChange::Keep, StateChange::Set)
}

impl ErasedResult for InitResult<StateValue> {
    fn take_state(&mut self) -> StateChange<StateValue> {
        StateChange::Set(self.state.clone())
    }
}

impl ErasedResult for OnItemAppendResult<StateValue> {
    fn take_state(&mut self) -> StateChange<StateValue> {
        optional(&mut self.state)
    }

    fn item_count(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

impl ErasedResult for RecallResult<StateValue> {
    fn take_state(&mut self) -> StateChange<StateValue> {
        optional(&mut self.state)
    }

    fn item_count(&self) -> Option<usize> {
        Some(match &self.items {
            RecallItems::Nothing => 0,
            RecallItems::Text(_) => 1,
            RecallItems::Items(items) => items.len(),
        })
    }
}

impl ErasedResult for ProjectHistoryResult {
    fn item_count(&self) -> Option<usize> {
        Some(self.history.len())
    }
}

impl ErasedResult for SteeringResult<StateValue> {
    fn take_state(&mut self) -> StateChange<StateValue> {
        optional(&mut self.state)
    }
}

impl ErasedResult for StateResult<StateValue> {
    fn take_state(&mut self) -> StateChange<StateValue> {
        std::mem::take(&mut self.state)
    }
}

/// The state in it is the child's, and is not taken out.
impl ErasedResult for SpawnResult<StateValue> {
    fn item_count(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

impl ErasedResult for ReturnResult<StateValue> {
    fn take_state(&mut self) -> StateChange<StateValue> {
        optional(&mut self.parent_state)
    }
}

impl ErasedResult for () {}
