//! What can be seen of a run: spans, faults, decisions and usage.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::id::{ExecutionId, LayerId};
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
    /// It was late and was cancelled.
    Timeout,
    /// It was not run, because its layer is disabled or uninitialised.
    Skipped,
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
    /// What went wrong.
    pub error: Option<String>,
    /// What the hook noted with `ctx.trace`.
    pub notes: Vec<TraceNote>,
}

/// Something went wrong, and the turn went on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Fault {
    /// The execution it happened in.
    pub execution_id: ExecutionId,
    /// The layer at fault; `None` for the engine's own doings.
    pub layer_id: Option<LayerId>,
    /// Where: the name of a hook, or `function`, `render_delta`, `persist`, `restore`, `merge`, `overflow`, `model`.
    pub place: &'static str,
    /// What went wrong, in plain words.
    pub message: String,
}

/// A piece of a response that is arriving.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResponseDelta {
    /// The execution whose model answers.
    pub execution_id: ExecutionId,
    /// Which model call of the execution it is, from 0. A response that a layer sends back is followed by the next call.
    pub step_number: u64,
    /// The piece.
    pub delta: Delta,
}

/// What an [`Observer`] is told.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A hook ran, or was skipped.
    Span(&'a MemoryTraceSpan),
    /// Something went wrong, and the turn went on.
    Fault(&'a Fault),
    /// The projection changed.
    Decision(&'a Decision),
    /// A window was assembled.
    Usage(&'a StepUsage),
    /// A piece of a response arrived.
    Delta(&'a ResponseDelta),
}

/// Watches a run.
///
/// The engine calls it synchronously, in the order in which things happen, from whatever task they happen in.
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
