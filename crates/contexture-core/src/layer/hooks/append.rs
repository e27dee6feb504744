//! Items that are about to be logged.

use std::sync::Arc;

use super::super::context::ExecutionContext;
use super::recall::Rerender;
use crate::item::Item;
use crate::log::ItemLog;

/// The parameters of `on_item_append`.
#[non_exhaustive]
pub struct OnItemAppendParams<S: ?Sized> {
    /// What is about to be logged, as returned by the previous layers.
    pub items: Vec<Item>,
    /// The log before these items.
    pub log: ItemLog,
    /// The context of the hook.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
    /// How many tokens the layer may use when it is recalled next; nothing if it has no `recall`. What it is given then
    /// can be less only where the newest message leaves layers hardly any room.
    pub budget: u64,
}

/// The result of `on_item_append`.
#[derive(Clone, Debug, PartialEq)]
pub struct OnItemAppendResult<S> {
    /// What is logged instead.
    pub items: Vec<Item>,
    /// The new state; `None` keeps the old.
    pub state: Option<S>,
    /// A request to recall layers again.
    pub rerender: Option<Rerender>,
}

impl<S> OnItemAppendResult<S> {
    /// Logs these items.
    pub fn items(items: Vec<Item>) -> Self {
        Self { items, state: None, rerender: None }
    }

    /// Sets a new state.
    pub fn with_state(mut self, state: S) -> Self {
        self.state = Some(state);
        self
    }

    /// Requests a re-render.
    pub fn with_rerender(mut self, rerender: Rerender) -> Self {
        self.rerender = Some(rerender);
        self
    }
}
