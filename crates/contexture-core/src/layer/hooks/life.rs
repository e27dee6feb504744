//! The start and the end of an execution, and the update of the state after a response.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::context::ExecutionContext;
use crate::item::Item;
use crate::log::ItemLog;
use crate::model::LlmResponse;
use crate::store::ScopedStorage;

/// A change of state that a hook requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StateChange<S> {
    /// Keeps the state.
    #[default]
    Keep,
    /// Sets the state.
    Set(S),
    /// Clears the state and deletes its stored record.
    Clear,
}

impl<S> StateChange<S> {
    /// Converts the state in the change.
    pub(crate) fn map<T>(self, form: impl FnOnce(S) -> T) -> StateChange<T> {
        match self {
            StateChange::Keep => StateChange::Keep,
            StateChange::Set(state) => StateChange::Set(form(state)),
            StateChange::Clear => StateChange::Clear,
        }
    }
}

/// The parameters of `init`.
#[non_exhaustive]
pub struct InitParams<S> {
    /// The layer's part of the store.
    pub storage: ScopedStorage,
    /// The scope of the layer in this execution: `thread:main`, `resource:ann`, `resource.project:site`,
    /// `global:all`.
    pub scope_key: String,
    /// The context of the hook.
    pub ctx: ExecutionContext,
    /// The state that the last execution in this scope left.
    pub stored: Option<S>,
}

/// The result of `init`.
#[derive(Clone, Debug, PartialEq)]
pub struct InitResult<S> {
    /// The initial state.
    pub state: S,
}

impl<S> InitResult<S> {
    /// Sets the initial state.
    pub fn new(state: S) -> Self {
        Self { state }
    }
}

impl<S> From<S> for InitResult<S> {
    fn from(state: S) -> Self {
        Self { state }
    }
}

/// What a hook that only learns does to the layer's state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateResult<S> {
    /// The change of the state.
    pub state: StateChange<S>,
}

impl<S> StateResult<S> {
    /// Keeps the state.
    pub fn keep() -> Self {
        Self { state: StateChange::Keep }
    }

    /// Sets the state.
    pub fn set(state: S) -> Self {
        Self { state: StateChange::Set(state) }
    }

    /// Clears the state.
    pub fn clear() -> Self {
        Self { state: StateChange::Clear }
    }
}

/// The parameters of `store`.
#[non_exhaustive]
pub struct StoreParams<S: ?Sized> {
    /// The items of the response, in order.
    pub new_items: Arc<[Arc<Item>]>,
    /// The whole conversation, with the new items.
    pub log: ItemLog,
    /// The response.
    pub response: Arc<LlmResponse>,
    /// The context of the hook.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
}

/// The result of `store`.
pub type StoreResult<S> = StateResult<S>;

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionOutcome {
    /// Successfully.
    Success,
    /// With an error.
    Failure,
    /// It was aborted or dropped.
    Aborted,
}

/// The parameters of `on_complete`.
#[non_exhaustive]
pub struct CompleteParams<S: ?Sized> {
    /// The whole conversation.
    pub log: ItemLog,
    /// The context of the hook.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
    /// How the execution ended.
    pub outcome: ExecutionOutcome,
}

/// The result of `on_complete`.
pub type CompleteResult<S> = StateResult<S>;

/// The parameters of `dispose`.
#[non_exhaustive]
pub struct DisposeParams<S: ?Sized> {
    /// The layer's last state.
    pub state: Arc<S>,
}
