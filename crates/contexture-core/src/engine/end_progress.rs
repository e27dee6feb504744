//! How far the end of an execution has come.

use crate::layer::ExecutionOutcome;

/// The progress of ending an execution, so that every hook is called once even if it is interrupted.
#[derive(Default)]
pub(crate) struct EndProgress {
    /// The first reported outcome.
    pub(crate) outcome: Option<ExecutionOutcome>,
    /// How many layers `on_complete` was called for, including a call in progress.
    pub(crate) completed: usize,
    /// The same for `dispose`.
    pub(crate) disposed: usize,
}
