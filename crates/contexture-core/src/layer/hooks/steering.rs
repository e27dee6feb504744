//! A layer's word on a tool call or a response.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::context::ExecutionContext;
use crate::item::FunctionCall;
use crate::log::ItemLog;
use crate::model::LlmResponse;

/// A layer's word on a tool call or a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteeringDecision {
    /// Let it pass.
    #[default]
    Allow,
    /// Stop it.
    Deny {
        /// Why, for the model or the caller.
        reason: String,
    },
    /// Have it done differently: a tool call does not run and this advice is its output; a response is tried again
    /// with it. Empty advice, or white space alone, is the same as [`Allow`](SteeringDecision::Allow).
    Guide {
        /// The advice.
        guidance: String,
    },
}

impl SteeringDecision {
    /// Let it pass.
    pub fn allow() -> Self {
        SteeringDecision::Allow
    }

    /// Stop it, for this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        SteeringDecision::Deny { reason: reason.into() }
    }

    /// Have it done differently, with this advice.
    pub fn guide(guidance: impl Into<String>) -> Self {
        SteeringDecision::Guide { guidance: guidance.into() }
    }
}

/// What `before_tool_call` is given.
#[non_exhaustive]
pub struct BeforeToolCallParams<S: ?Sized> {
    /// The tool's public name: `layer/function`, or its own name.
    pub tool_name: Arc<str>,
    /// The call as the model wrote it.
    pub call: Arc<FunctionCall>,
    /// The log so far.
    pub log: ItemLog,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
}

/// What `before_tool_call` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct BeforeToolCallResult<S> {
    /// The layer's word.
    pub decision: SteeringDecision,
    /// The new state; `None` keeps the old.
    pub state: Option<S>,
}

impl<S> From<SteeringDecision> for BeforeToolCallResult<S> {
    fn from(decision: SteeringDecision) -> Self {
        Self { decision, state: None }
    }
}

impl<S> BeforeToolCallResult<S> {
    /// Let it pass.
    pub fn allow() -> Self {
        SteeringDecision::Allow.into()
    }

    /// Stop it, for this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        SteeringDecision::deny(reason).into()
    }

    /// Have it done differently, with this advice.
    pub fn guide(guidance: impl Into<String>) -> Self {
        SteeringDecision::guide(guidance).into()
    }

    /// The same with a new state.
    pub fn with_state(mut self, state: S) -> Self {
        self.state = Some(state);
        self
    }
}

/// What `after_model_call` is given.
#[non_exhaustive]
pub struct AfterModelCallParams<S: ?Sized> {
    /// The response, not logged yet.
    pub response: Arc<LlmResponse>,
    /// The log before it.
    pub log: ItemLog,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
}

/// What `after_model_call` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct AfterModelCallResult<S> {
    /// The layer's word.
    pub decision: SteeringDecision,
    /// The new state; `None` keeps the old.
    pub state: Option<S>,
}

impl<S> From<SteeringDecision> for AfterModelCallResult<S> {
    fn from(decision: SteeringDecision) -> Self {
        Self { decision, state: None }
    }
}

impl<S> AfterModelCallResult<S> {
    /// Let it pass.
    pub fn allow() -> Self {
        SteeringDecision::Allow.into()
    }

    /// Stop it, for this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        SteeringDecision::deny(reason).into()
    }

    /// Have it done differently, with this advice.
    pub fn guide(guidance: impl Into<String>) -> Self {
        SteeringDecision::guide(guidance).into()
    }

    /// The same with a new state.
    pub fn with_state(mut self, state: S) -> Self {
        self.state = Some(state);
        self
    }
}
