//! A layer's decision about a tool call or a response.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::context::ExecutionContext;
use crate::item::FunctionCall;
use crate::log::ItemLog;
use crate::model::LlmResponse;

/// A layer's decision about a tool call or a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteeringDecision {
    /// Allows it.
    #[default]
    Allow,
    /// Deny it.
    Deny {
        /// Why, for the model or the caller.
        reason: String,
    },
    /// Ask for it to be done differently: a tool call does not run and this advice is its output; a response is retried
    /// with it. Empty advice, or only white space, is the same as [`Allow`](SteeringDecision::Allow).
    Guide {
        /// The advice.
        guidance: String,
    },
}

impl SteeringDecision {
    /// Allows it.
    pub fn allow() -> Self {
        SteeringDecision::Allow
    }

    /// Denies it, with this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        SteeringDecision::Deny { reason: reason.into() }
    }

    /// Asks for it to be done differently, with this advice.
    pub fn guide(guidance: impl Into<String>) -> Self {
        SteeringDecision::Guide { guidance: guidance.into() }
    }
}

/// A decision about a tool call or a response, and the state after it.
#[derive(Clone, Debug, PartialEq)]
pub struct SteeringResult<S> {
    /// The decision.
    pub decision: SteeringDecision,
    /// The new state; `None` keeps the old.
    pub state: Option<S>,
}

impl<S> From<SteeringDecision> for SteeringResult<S> {
    fn from(decision: SteeringDecision) -> Self {
        Self { decision, state: None }
    }
}

impl<S> SteeringResult<S> {
    /// Allows it.
    pub fn allow() -> Self {
        SteeringDecision::Allow.into()
    }

    /// Denies it, with this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        SteeringDecision::deny(reason).into()
    }

    /// Asks for it to be done differently, with this advice.
    pub fn guide(guidance: impl Into<String>) -> Self {
        SteeringDecision::guide(guidance).into()
    }

    /// Sets a new state.
    pub fn with_state(mut self, state: S) -> Self {
        self.state = Some(state);
        self
    }
}

/// The parameters of `before_tool_call`.
#[non_exhaustive]
pub struct BeforeToolCallParams<S: ?Sized> {
    /// The tool's public name: `layer/function`, or its own name.
    pub tool_name: Arc<str>,
    /// The call as the model wrote it.
    pub call: Arc<FunctionCall>,
    /// The log so far.
    pub log: ItemLog,
    /// The context of the hook.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
}

/// The result of `before_tool_call`.
pub type BeforeToolCallResult<S> = SteeringResult<S>;

/// The parameters of `after_model_call`.
#[non_exhaustive]
pub struct AfterModelCallParams<S: ?Sized> {
    /// The response, not logged yet.
    pub response: Arc<LlmResponse>,
    /// The log before it.
    pub log: ItemLog,
    /// The context of the hook.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
}

/// The result of `after_model_call`.
pub type AfterModelCallResult<S> = SteeringResult<S>;
