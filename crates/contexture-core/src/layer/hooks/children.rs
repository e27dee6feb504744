//! A child execution: what it is given, and what it brings home.

use std::sync::Arc;

use serde_json::Value;

use super::super::context::ExecutionContext;
use crate::item::Item;
use crate::log::ItemLog;

/// What `on_spawn` is given.
#[non_exhaustive]
pub struct SpawnParams<S: ?Sized> {
    /// The state of this layer in the parent.
    pub parent_state: Arc<S>,
    /// Where the child will run.
    pub child_ctx: ExecutionContext,
}

/// What `on_spawn` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct SpawnResult<S> {
    /// The child's state; `None`: the layer is not carried into the child.
    ///
    /// In a scope that parent and child share it is where the child starts, and is not written there.
    pub child_state: Option<S>,
    /// Items that the child's log begins with.
    pub items: Vec<Item>,
}

impl<S> SpawnResult<S> {
    /// The layer is not carried into the child.
    pub fn nothing() -> Self {
        Self { child_state: None, items: Vec::new() }
    }

    /// The child starts with this state.
    pub fn state(child_state: S) -> Self {
        Self { child_state: Some(child_state), items: Vec::new() }
    }

    /// The same with items that the child's log begins with.
    pub fn with_items(mut self, items: Vec<Item>) -> Self {
        self.items = items;
        self
    }
}

/// What `on_return` is given.
#[non_exhaustive]
pub struct ReturnParams<S: ?Sized> {
    /// The child's last state.
    pub child_state: Arc<S>,
    /// The child's log.
    pub child_log: ItemLog,
    /// The state of this layer in the parent.
    pub parent_state: Arc<S>,
    /// What the child came to, as the layers before left it.
    pub result: Value,
    /// Where the parent runs.
    pub ctx: ExecutionContext,
}

/// What `on_return` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct ReturnResult<S> {
    /// The parent's new state; `None` keeps the old. In a scope that both share it takes the place of what the child
    /// wrote there.
    pub parent_state: Option<S>,
    /// What the child came to, changed; `None` passes it on.
    pub result: Option<Value>,
}

impl<S> ReturnResult<S> {
    /// The parent stays as it is.
    pub fn keep() -> Self {
        Self { parent_state: None, result: None }
    }

    /// The parent's state from now on.
    pub fn state(parent_state: S) -> Self {
        Self { parent_state: Some(parent_state), result: None }
    }

    /// The same with another result of the child.
    pub fn with_result(mut self, result: Value) -> Self {
        self.result = Some(result);
        self
    }
}
