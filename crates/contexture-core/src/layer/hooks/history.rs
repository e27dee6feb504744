//! Which part of the past is shown.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::context::ExecutionContext;
use crate::decision::{Decision, Price};
use crate::history::History;

/// The expected state of the provider's cache before a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// It probably has the last request: after a change, everything that follows it is billed again.
    #[default]
    Warm,
    /// It has no prefix of the next request: everything is billed in full, so changes are free.
    Cold,
}

/// The parameters of `project_history`.
#[non_exhaustive]
pub struct ProjectHistoryParams<S: ?Sized> {
    /// The past as returned by the previous layers.
    pub history: History,
    /// What this layer decided before, in this thread, oldest first.
    pub decisions: Arc<Vec<Decision>>,
    /// The context of the hook.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
    /// How many tokens history may use.
    pub budget: u64,
    /// Whether changing what was sent before is free.
    pub cache: CacheState,
}

/// The result of `project_history`.
#[derive(Clone, Debug)]
pub struct ProjectHistoryResult {
    /// The part of the past that is shown.
    pub history: History,
    /// New decisions; committed with this step.
    pub decisions: Vec<NewDecision>,
}

impl From<History> for ProjectHistoryResult {
    fn from(history: History) -> Self {
        Self { history, decisions: Vec::new() }
    }
}

/// A decision that a layer makes.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDecision {
    /// What was done, in the layer's own format.
    pub what: Value,
    /// Why, in plain words.
    pub reason: String,
    /// What it cost and saves, if that was computed.
    pub price: Option<Price>,
}
