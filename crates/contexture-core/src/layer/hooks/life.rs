//! The beginning and the end of an execution, and what a layer learns in between.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::context::ExecutionContext;
use crate::item::Item;
use crate::log::ItemLog;
use crate::model::LlmResponse;
use crate::store::ScopedStorage;

/// A change of state that a hook asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StateChange<S> {
    /// The state stays as it is.
    #[default]
    Keep,
    /// This is the state from now on.
    Set(S),
    /// The state is empty from now on, and its durable record is deleted.
    Clear,
}

impl<S> StateChange<S> {
    /// The same change with another form of the state.
    pub(crate) fn map<T>(self, form: impl FnOnce(S) -> T) -> StateChange<T> {
        match self {
            StateChange::Keep => StateChange::Keep,
            StateChange::Set(state) => StateChange::Set(form(state)),
            StateChange::Clear => StateChange::Clear,
        }
    }
}

/// What `init` is given.
#[non_exhaustive]
pub struct InitParams<S> {
    /// The layer's own corner of the store.
    pub storage: ScopedStorage,
    /// The scope that this execution gives the layer: `thread:main`, `resource:ann`, `resource.project:site`,
    /// `global:all`.
    pub scope_key: String,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The state that the last execution in this scope left.
    pub stored: Option<S>,
}

/// What `init` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct InitResult<S> {
    /// The first state.
    pub state: S,
}

impl<S> InitResult<S> {
    /// This is the first state.
    pub fn new(state: S) -> Self {
        Self { state }
    }
}

impl<S> From<S> for InitResult<S> {
    fn from(state: S) -> Self {
        Self { state }
    }
}

/// What `store` is given.
#[non_exhaustive]
pub struct StoreParams<S: ?Sized> {
    /// The items of the response, in order.
    pub new_items: Arc<[Arc<Item>]>,
    /// The whole conversation, with the new items.
    pub log: ItemLog,
    /// The response.
    pub response: Arc<LlmResponse>,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
}

/// What `store` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreResult<S> {
    /// What becomes of the state.
    pub state: StateChange<S>,
}

impl<S> StoreResult<S> {
    /// The state stays as it is.
    pub fn keep() -> Self {
        Self { state: StateChange::Keep }
    }

    /// This is the state from now on.
    pub fn set(state: S) -> Self {
        Self { state: StateChange::Set(state) }
    }

    /// The state is empty from now on.
    pub fn clear() -> Self {
        Self { state: StateChange::Clear }
    }
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionOutcome {
    /// As it should.
    Success,
    /// With an error.
    Failure,
    /// It was stopped, or dropped without a word.
    Aborted,
}

/// What `on_complete` is given.
#[non_exhaustive]
pub struct CompleteParams<S: ?Sized> {
    /// The whole conversation.
    pub log: ItemLog,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
    /// How the execution ended.
    pub outcome: ExecutionOutcome,
}

/// What `on_complete` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct CompleteResult<S> {
    /// What becomes of the state.
    pub state: StateChange<S>,
}

impl<S> CompleteResult<S> {
    /// The state stays as it is.
    pub fn keep() -> Self {
        Self { state: StateChange::Keep }
    }

    /// This is the state from now on.
    pub fn set(state: S) -> Self {
        Self { state: StateChange::Set(state) }
    }

    /// The state is empty from now on.
    pub fn clear() -> Self {
        Self { state: StateChange::Clear }
    }
}

/// What `dispose` is given.
#[non_exhaustive]
pub struct DisposeParams<S: ?Sized> {
    /// The layer's last state.
    pub state: Arc<S>,
}
