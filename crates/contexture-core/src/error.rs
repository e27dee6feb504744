//! Errors of turns and of building an engine.

use std::fmt;
use std::time::Duration;

use crate::id::{LayerId, ThreadId};
use crate::store::StoreError;

/// Any error of a hook, a tool or a model client.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a turn, or building an engine, failed.
///
/// All other errors leave a [`Fault`](crate::event::Fault) in the trace, and the turn continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A layer, tool or option is invalid. Only returned when an engine is built.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The `init` hook of a layer failed or exceeded its timeout, and its spec does not allow disabling it.
    #[error("layer `{layer}`: `init` failed")]
    Init {
        /// The layer.
        layer: LayerId,
        /// What it said.
        #[source]
        source: BoxError,
    },
    /// A layer denied the model's response.
    #[error("layer `{layer}` denied the response: {reason}")]
    SteeringDenied {
        /// The layer.
        layer: LayerId,
        /// The reason that the layer gave.
        reason: String,
    },
    /// The model failed.
    #[error("call the model")]
    Model(#[source] BoxError),
    /// Items could not be made durable, after all retries.
    #[error("write thread `{thread}`")]
    Journal {
        /// The thread.
        thread: ThreadId,
        /// What stopped it.
        #[source]
        source: StoreError,
    },
    /// The stored thread could not be read.
    #[error("open thread `{thread}`")]
    Open {
        /// The thread.
        thread: ThreadId,
        /// What stopped it.
        #[source]
        source: StoreError,
    },
    /// A thread could not be removed.
    #[error("remove thread `{thread}` from the store")]
    Remove {
        /// The thread.
        thread: ThreadId,
        /// What stopped it.
        #[source]
        source: StoreError,
    },
    /// The window has no room for what must be in it.
    #[error("`{field}` is {taken} tokens, which leaves {available} for the window, and at least {needed} are needed")]
    NoRoom {
        /// The part of the budget that takes too much: `token_budget` itself, `response_reserve`, `system` or `tools`.
        field: &'static str,
        /// How many tokens that part takes; for `token_budget`, how many there are.
        taken: u64,
        /// What is left.
        available: u64,
        /// What it takes at least.
        needed: u64,
    },
    /// The turn reached its limit of steps.
    #[error("the turn reached its limit of {limit} steps")]
    TooManySteps {
        /// How many it may have.
        limit: u32,
    },
    /// Hooks started turns inside turns, too deeply nested.
    #[error("hooks run turns inside turns, more than {limit} deep")]
    TooDeep {
        /// How deep it may go.
        limit: usize,
    },
    /// Another execution runs a turn on the thread, or an engine deletes it.
    #[error("{_0}\nhint: try again when that has ended, or wait for it with `when_held`")]
    Held(Box<HeldThread>),
    /// Another execution of the thread, most likely in another process, took over this turn.
    ///
    /// What was logged until then is kept; nothing more was run here.
    #[error("the turn was taken over by another execution of the thread")]
    TakenOver,
    /// The execution was aborted or has ended.
    #[error("the execution was aborted")]
    Aborted,
    /// A function of a layer could not be called or failed.
    #[error(transparent)]
    Function(#[from] FunctionError),
}

/// The execution that runs a turn on a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldThread {
    /// The thread.
    pub thread: ThreadId,
    /// The owner of the lease.
    pub owner: String,
    /// When the lease expires by the store's clock, since the Unix epoch, unless it is renewed; `None` if the store has
    /// no clock.
    pub expires_at: Option<Duration>,
    /// The time until then, when the error occurred.
    pub remaining: Option<Duration>,
}

impl fmt::Display for HeldThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldThread { thread, owner, remaining, .. } = self;
        write!(f, "thread `{thread}` is held by {owner}, whose lease ")?;
        match remaining {
            Some(remaining) => write!(f, "expires in {:.1} s unless it is renewed", remaining.as_secs_f64()),
            None => write!(f, "does not expire"),
        }
    }
}

/// What is wrong with a layer, a tool or an option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: `{field}` {problem}")]
pub struct SpecError {
    /// What has the field: ``layer `facts` ``, ``tool `read` ``, `projection policy`.
    pub subject: String,
    /// Which field.
    pub field: String,
    /// What is wrong with it, to be read after the field's name.
    pub problem: String,
}

impl SpecError {
    /// A problem with a field of a layer.
    pub fn layer(layer: &str, field: &str, problem: impl Into<String>) -> Self {
        Self { subject: format!("layer `{layer}`"), field: field.into(), problem: problem.into() }
    }

    /// A problem with something else.
    pub fn other(subject: impl Into<String>, field: &str, problem: impl Into<String>) -> Self {
        Self { subject: subject.into(), field: field.into(), problem: problem.into() }
    }
}

/// Why a function of a layer failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// There is no such layer or function.
    #[error("there is no function `{name}`")]
    Unknown {
        /// The public name that was asked for.
        name: String,
    },
    /// The arguments are not JSON, or do not match the schema. Nothing ran.
    #[error("arguments of `{name}`: {problem}")]
    BadInput {
        /// The public name.
        name: String,
        /// Where and what.
        problem: String,
    },
    /// The function returned something that its schema does not allow. Its state change is discarded.
    #[error("result of `{name}`: {problem}")]
    BadOutput {
        /// The public name.
        name: String,
        /// Where and what.
        problem: String,
    },
    /// The layer is disabled or was never initialised.
    #[error("layer `{layer}` is not running")]
    NotRunning {
        /// The layer.
        layer: LayerId,
    },
    /// The layer called itself while it was running.
    #[error("layer `{layer}` called itself from `{doing}`")]
    Reentrant {
        /// The layer.
        layer: LayerId,
        /// What it was doing: the name of a hook, or `function`.
        doing: &'static str,
    },
    /// The function failed. Its state is unchanged.
    #[error("`{name}` failed")]
    Failed {
        /// The public name.
        name: String,
        /// What it said.
        source: BoxError,
    },
}
