//! Child executions: initial state and return.

use std::sync::Arc;

use serde_json::Value;

use super::super::context::ExecutionContext;
use crate::item::Item;
use crate::log::ItemLog;

/// The parameters of `on_spawn`.
#[non_exhaustive]
pub struct SpawnParams<S: ?Sized> {
    /// The state of this layer in the parent.
    pub parent_state: Arc<S>,
    /// The context of the child.
    pub child_ctx: ExecutionContext,
}

/// The result of `on_spawn`.
#[derive(Clone, Debug, PartialEq)]
pub struct SpawnResult<S> {
    /// The child's initial state; `None`: the layer has no state in the child.
    ///
    /// In a scope that parent and child share it is not written to the store.
    pub child_state: Option<S>,
    /// The first items of the child's log.
    pub items: Vec<Item>,
}

impl<S> SpawnResult<S> {
    /// The layer has no state in the child.
    pub fn nothing() -> Self {
        Self { child_state: None, items: Vec::new() }
    }

    /// The child starts with this state.
    pub fn state(child_state: S) -> Self {
        Self { child_state: Some(child_state), items: Vec::new() }
    }

    /// Sets the first items of the child's log.
    pub fn with_items(mut self, items: Vec<Item>) -> Self {
        self.items = items;
        self
    }
}

/// The parameters of `on_return`.
#[non_exhaustive]
pub struct ReturnParams<S: ?Sized> {
    /// The child's last state.
    pub child_state: Arc<S>,
    /// The child's log.
    pub child_log: ItemLog,
    /// The state of this layer in the parent.
    pub parent_state: Arc<S>,
    /// The child's result, as returned by the previous layers.
    pub result: Value,
    /// The context of the child as it ended: who came back, at which depth, with which usage.
    pub child_ctx: ExecutionContext,
    /// The context of the parent.
    pub ctx: ExecutionContext,
}

/// The result of `on_return`.
#[derive(Clone, Debug, PartialEq)]
pub struct ReturnResult<S> {
    /// The parent's new state; `None` keeps the old. In a scope that both share it replaces what the child
    /// wrote there.
    pub parent_state: Option<S>,
    /// The changed result of the child; `None` keeps it.
    pub result: Option<Value>,
}

impl<S> ReturnResult<S> {
    /// Keeps the parent's state.
    pub fn keep() -> Self {
        Self { parent_state: None, result: None }
    }

    /// Sets the parent's state.
    pub fn state(parent_state: S) -> Self {
        Self { parent_state: Some(parent_state), result: None }
    }

    /// Sets another result of the child.
    pub fn with_result(mut self, result: Value) -> Self {
        self.result = Some(result);
        self
    }
}
