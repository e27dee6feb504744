//! What a layer tells the model, and requests to recall layers again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::context::ExecutionContext;
use super::super::spec::RerenderTiming;
use crate::item::Item;
use crate::log::ItemLog;

/// A request to recall layers again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rerender {
    /// When; `None` is the layer's default.
    pub timing: Option<RerenderTiming>,
    /// Which layers.
    pub scope: RerenderScope,
}

/// Which layers a [`Rerender`] recalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RerenderScope {
    /// The layer that requests it.
    #[default]
    OwnLayer,
    /// The layers of its slot and of all later slots.
    SlotAndAfter,
    /// All layers.
    All,
}

/// The parameters of `recall`.
#[non_exhaustive]
pub struct RecallParams<S: ?Sized> {
    /// The whole conversation.
    pub log: ItemLog,
    /// The text of the newest user message.
    pub query: Arc<str>,
    /// The context of the hook.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
    /// The largest number of tokens of the result.
    pub budget: u64,
}

/// The result of `recall`.
#[derive(Clone, Debug, PartialEq)]
pub struct RecallResult<S> {
    /// What the model is told.
    pub items: RecallItems,
    /// Its tokens, if the layer counted them; they are counted again.
    pub token_count: Option<u64>,
    /// The new state; `None` keeps the old.
    pub state: Option<S>,
    /// A request to recall layers again.
    pub rerender: Option<Rerender>,
}

/// What a layer tells the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RecallItems {
    /// Nothing this time.
    #[default]
    Nothing,
    /// Text, which the engine wraps in a developer message that names the layer.
    Text(String),
    /// Whole items, shown as they are.
    Items(Vec<Item>),
}

impl<S> RecallResult<S> {
    /// Contributes nothing.
    pub fn nothing() -> Self {
        Self { items: RecallItems::Nothing, token_count: None, state: None, rerender: None }
    }

    /// Contributes whole items.
    pub fn items(items: Vec<Item>) -> Self {
        Self { items: RecallItems::Items(items), ..Self::nothing() }
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

impl<S> From<String> for RecallResult<S> {
    fn from(text: String) -> Self {
        let items = if text.is_empty() { RecallItems::Nothing } else { RecallItems::Text(text) };
        Self { items, ..Self::nothing() }
    }
}

impl<S> From<&str> for RecallResult<S> {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl<S> From<Option<String>> for RecallResult<S> {
    fn from(text: Option<String>) -> Self {
        text.unwrap_or_default().into()
    }
}
