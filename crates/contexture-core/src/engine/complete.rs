//! The end of an execution: `on_complete` and `dispose`, exactly once.

use super::execution::{Execution, Run};
use crate::error::Error;
use crate::layer::*;

impl<Ls> Execution<Ls> {
    /// Ends the execution as a success.
    ///
    /// # Errors
    /// [`Error::Journal`] if the last states could not be made durable.
    pub async fn complete(mut self) -> Result<(), Error> {
        self.end(ExecutionOutcome::Success).await.map_or(Ok(()), Err)
    }

    /// Ends the execution as a failure.
    ///
    /// # Errors
    /// As [`complete`](Execution::complete).
    pub async fn fail(mut self) -> Result<(), Error> {
        self.end(ExecutionOutcome::Failure).await.map_or(Ok(()), Err)
    }

    /// Ends the execution as aborted.
    ///
    /// # Errors
    /// As [`complete`](Execution::complete).
    pub async fn abort(mut self) -> Result<(), Error> {
        self.end(ExecutionOutcome::Aborted).await.map_or(Ok(()), Err)
    }

    pub(crate) async fn end(&mut self, outcome: ExecutionOutcome) -> Option<Error> {
        // The run stays in its place until the last hook has run: whoever drops this future drops the execution,
        // which then goes on where this left off.
        let run = self.run_mut().ok()?;
        run.core().states.leave(&run.shared.id);
        let error = run.complete(outcome).await;
        run.dispose().await;
        self.take_run();
        error
    }
}

impl<Ls> Drop for Execution<Ls> {
    fn drop(&mut self) {
        let Some(mut run) = self.take_run() else { return };
        // Whoever opens the thread from now on may go on with what this one left.
        run.core().states.leave(&run.shared.id);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // Hooks are async; without a runtime there is nobody to run them.
            let message = "the execution was dropped outside of a runtime, so its layers were not told";
            run.shared.fault(None, Hook::OnComplete.as_str(), message.to_owned());
            return;
        };
        runtime.spawn(async move {
            // Whoever dropped it does not wait for an answer; what is not durable was reported as a diagnostic.
            let _ = run.complete(ExecutionOutcome::Aborted).await;
            run.dispose().await;
        });
    }
}

/// How far the end of an execution has come, so that every layer is told once, whatever interrupts it.
#[derive(Default)]
pub(crate) struct Ending {
    outcome: Option<ExecutionOutcome>,
    /// How many layers `on_complete` was called for, or is being called for.
    completed: usize,
    /// The same for `dispose`.
    disposed: usize,
}

impl Run {
    /// Runs `on_complete` of every layer, in order of registration, and makes everything durable.
    ///
    /// The first outcome that is named is the one that counts.
    pub(crate) async fn complete(&mut self, outcome: ExecutionOutcome) -> Option<Error> {
        let outcome = *self.ending.outcome.get_or_insert(outcome);
        let shared = self.shared.clone();
        let roster = shared.roster();
        for layer in roster.by_registration().skip(self.ending.completed) {
            self.ending.completed += 1;
            if self.was_initialised(layer) {
                let log = self.log.clone();
                let run = shared.run(layer, Hook::OnComplete, move |state, ctx| {
                    let state = layer.state_or_default(state.as_ref());
                    layer.on_complete(CompleteParams { log, ctx, state, outcome })
                });
                run.await;
            }
        }
        if self.is_behind() {
            // A turn was left in the middle: its items and states stay together.
            return self.commit_all().await.err().map(Error::Journal);
        }
        let not_durable = shared.core.states.flush(&shared.id).await;
        not_durable.into_iter().next().map(|not_durable| Error::Journal(not_durable.error))
    }

    /// Runs `dispose` of every layer, in reverse order of registration, and forgets the execution.
    pub(crate) async fn dispose(&mut self) {
        let shared = self.shared.clone();
        let roster = shared.roster();
        let _nothing_runs = shared.end_refreshing().await;
        for layer in roster.by_registration().rev().skip(self.ending.disposed) {
            self.ending.disposed += 1;
            if self.was_initialised(layer) {
                let run = shared.run(layer, Hook::Dispose, move |state, _| {
                    layer.dispose(DisposeParams { state: layer.state_or_default(state.as_ref()) })
                });
                run.await;
            }
        }
        shared.end();
        shared.core.states.cleanup(&shared.id);
    }

    /// A layer whose `init` never succeeded has nothing to complete.
    fn was_initialised(&self, layer: &LayerRef) -> bool {
        self.shared.core.states.has(&self.shared.id, &layer.spec().id)
    }
}
