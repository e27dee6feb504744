//! Items that are about to be logged.

use std::sync::Arc;

use super::super::context::ExecutionContext;
use super::recall::Rerender;
use crate::item::Item;
use crate::log::ItemLog;

/// What `on_item_append` is given.
#[non_exhaustive]
pub struct OnItemAppendParams<S: ?Sized> {
    /// What is about to be logged, as the layers before let it through.
    pub items: Vec<Item>,
    /// The log before these items.
    pub log: ItemLog,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
}

/// What `on_item_append` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct OnItemAppendResult<S> {
    /// What shall be logged instead.
    pub items: Vec<Item>,
    /// The new state; `None` keeps the old.
    pub state: Option<S>,
    /// A wish to be recalled again.
    pub rerender: Option<Rerender>,
}

impl<S> OnItemAppendResult<S> {
    /// These items, nothing else.
    pub fn items(items: Vec<Item>) -> Self {
        Self { items, state: None, rerender: None }
    }

    /// The same with a new state.
    pub fn with_state(mut self, state: S) -> Self {
        self.state = Some(state);
        self
    }

    /// The same with a re-render.
    pub fn with_rerender(mut self, rerender: Rerender) -> Self {
        self.rerender = Some(rerender);
        self
    }
}
