//! What of the past is shown.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::context::ExecutionContext;
use crate::decision::{Decision, Price};
use crate::history::History;

/// What is known of the provider's cache before a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// It holds the last request, as far as is known: a change bills everything after it again.
    #[default]
    Warm,
    /// It holds nothing that the next request begins with: all of it is billed in full, whatever is changed.
    Cold,
}

/// What `project_history` is given.
#[non_exhaustive]
pub struct ProjectHistoryParams<S: ?Sized> {
    /// The past as the layers before left it.
    pub history: History,
    /// What this layer decided before, in this thread, oldest first.
    pub decisions: Arc<Vec<Decision>>,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
    /// How many tokens history may use.
    pub budget: u64,
    /// Whether changing what was sent before costs anything.
    pub cache: CacheState,
}

/// What `project_history` returns.
#[derive(Clone, Debug)]
pub struct ProjectHistoryResult {
    /// The past to be shown.
    pub history: History,
    /// What was decided anew, with the reason; committed with this step.
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
    /// What was done, in the layer's own words.
    pub what: Value,
    /// Why, in plain words.
    pub reason: String,
    /// What it cost and saves, if that was reckoned.
    pub price: Option<Price>,
}
