//! The end of an execution: `on_complete` and `dispose`, exactly once.

use std::sync::atomic::Ordering;

use super::execution::{Execution, Run};
use crate::error::Error;
use crate::layer::{ExecutionOutcome, Hook, LayerRef};

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
        let mut run = self.take_run()?;
        run.core().states.leave(&run.shared.id);
        let error = run.complete(outcome).await;
        run.dispose().await;
        error
    }
}

impl<Ls> Drop for Execution<Ls> {
    fn drop(&mut self) {
        let Some(mut run) = self.take_run() else { return };
        // Whoever opens the thread from now on may go on with what this one left.
        run.core().states.leave(&run.shared.id);
        // Hooks are async; without a runtime there is nobody to run them.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                run.complete(ExecutionOutcome::Aborted).await;
                run.dispose().await;
            });
        }
    }
}

impl Run {
    /// Runs `on_complete` of every layer, in order of registration, and makes their last states durable.
    pub(crate) async fn complete(&mut self, outcome: ExecutionOutcome) -> Option<Error> {
        let shared = self.shared.clone();
        let roster = shared.roster();
        for layer in roster.by_registration().filter(|layer| self.was_initialised(layer)) {
            let log = self.log.clone();
            shared.run(layer, Hook::OnComplete, move |state, ctx| layer.on_complete(state, log, ctx, outcome)).await;
        }
        if self.is_behind() {
            return self.commit_all().await.err().map(Error::Journal);
        }
        let not_durable = shared.core.states.flush(&shared.id).await;
        not_durable.into_iter().next().map(|not_durable| Error::Journal(not_durable.error))
    }

    /// Runs `dispose` of every layer, in reverse order of registration, and forgets the execution.
    pub(crate) async fn dispose(&mut self) {
        let shared = self.shared.clone();
        let roster = shared.roster();
        for layer in roster.by_registration().rev().filter(|layer| self.was_initialised(layer)) {
            shared.run(layer, Hook::Dispose, move |state, _| layer.dispose(state)).await;
        }
        shared.ended.store(true, Ordering::Relaxed);
        shared.core.states.cleanup(&shared.id);
    }

    /// A layer whose `init` never succeeded has nothing to complete.
    fn was_initialised(&self, layer: &LayerRef) -> bool {
        self.shared.core.states.has(&self.shared.id, &layer.spec().id)
    }
}
