//! Events of a run: spans, faults, decisions and usage.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::id::{ExecutionId, LayerId};
use crate::item::{FunctionCall, FunctionCallOutput};
use crate::layer::Hook;
use crate::model::Delta;
use crate::usage::StepUsage;

pub use crate::layer::trace::{TraceNote, TraceValue};

/// How a hook run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanStatus {
    /// It returned a result.
    Ok,
    /// It failed or panicked.
    Error,
    /// It exceeded its timeout and was cancelled.
    Timeout,
    /// It was not run, because its layer is disabled or uninitialised.
    Skipped,
    /// A recall that was not waited for: the last result of an eventual layer was used.
    Cached,
}

/// The budget of one recall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanBudget {
    /// What the layer could have used.
    pub allocated: u64,
    /// What it used.
    pub used: u64,
    /// What it left to history.
    pub yielded: u64,
}

/// One run of one hook.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MemoryTraceSpan {
    /// The execution it ran in.
    pub execution_id: ExecutionId,
    /// The layer.
    pub layer_id: LayerId,
    /// Its name, if it has one besides the id.
    pub layer_name: Option<String>,
    /// The hook.
    pub hook: Hook,
    /// How long it took.
    pub duration: Duration,
    /// How it ended.
    pub status: SpanStatus,
    /// For `recall`: its budget.
    pub budget: Option<SpanBudget>,
    /// How many items it returned.
    pub item_count: Option<usize>,
    /// For a recall from the cache: how old the result is; `None` if there was none yet.
    pub age: Option<Duration>,
    /// What went wrong.
    pub error: Option<String>,
    /// What the hook added with `ctx.trace`.
    pub notes: Vec<TraceNote>,
}

/// An error after which the turn continued.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Fault {
    /// The execution it happened in.
    pub execution_id: ExecutionId,
    /// The layer; `None` for the engine itself.
    pub layer_id: Option<LayerId>,
    /// The place: the name of a hook, or `function`, `render_delta`, `persist`, `restore`, `merge`, `overflow`, `model`.
    pub place: &'static str,
    /// A message for people.
    pub message: String,
}

/// A piece of a streamed response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResponseDelta {
    /// The execution that called the model.
    pub execution_id: ExecutionId,
    /// The index of the model call in the execution, from 0. A retry after guidance is the next call.
    pub step_number: u64,
    /// The piece.
    pub delta: Delta,
}

/// A call of the model with its output, before layers see it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallOutput<'a> {
    /// The execution.
    pub execution_id: &'a ExecutionId,
    /// The call.
    pub call: &'a FunctionCall,
    /// Its output.
    pub output: &'a FunctionCallOutput,
}

/// An event for an [`Observer`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A hook ran, or was skipped.
    Span(&'a MemoryTraceSpan),
    /// An error after which the turn continued.
    Fault(&'a Fault),
    /// The projection changed.
    Decision(&'a Decision),
    /// A window was assembled.
    Usage(&'a StepUsage),
    /// A piece of a response arrived.
    Delta(&'a ResponseDelta),
    /// A call of the model has an output, whether it ran or not.
    Output(CallOutput<'a>),
}

/// Receives the events of a run.
///
/// The engine calls it synchronously, in the order of events, from the task in which each happens.
/// It should return quickly and must not call the engine.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn event(&self, event: Event<'_>);
}

impl<F: Fn(Event<'_>) + Send + Sync> Observer for F {
    fn event(&self, event: Event<'_>) {
        self(event);
    }
}
