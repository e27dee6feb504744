//! The end of an execution: `on_complete` and `dispose`, exactly once.

use std::sync::Arc;

use super::core::WhenHeld;
use super::end_progress::EndProgress;
use super::shared::SharedExecution;
use super::thread::Thread;
use crate::error::Error;
use crate::layer::*;
use crate::log::ItemLog;

impl EndProgress {
    /// Runs `on_complete` of every layer, in order of registration, and makes everything durable.
    ///
    /// The first reported outcome is used.
    pub(crate) async fn complete(
        &mut self,
        shared: &Arc<SharedExecution>,
        thread: &mut Thread,
        outcome: ExecutionOutcome,
    ) -> Option<Error> {
        self.on_complete(shared, thread.log(), outcome).await;
        let id = thread.id().clone();
        let failed = move |source| Error::Journal { thread: id, source };
        if thread.is_behind() {
            return commit_rest(shared, thread).await.err();
        }
        let not_durable = shared.core().states.flush(shared.id()).await;
        not_durable.into_iter().next().map(|not_durable| failed(not_durable.error))
    }

    /// Runs `on_complete` of every layer that it was not called for.
    async fn on_complete(&mut self, shared: &Arc<SharedExecution>, log: &ItemLog, outcome: ExecutionOutcome) {
        let outcome = *self.outcome.get_or_insert(outcome);
        let roster = shared.roster();
        for layer in roster.by_registration().skip(self.completed) {
            self.completed += 1;
            if was_initialised(shared, layer, Hook::OnComplete) {
                let log = log.clone();
                let run = shared.run(layer, Hook::OnComplete, move |state, ctx| {
                    let state = layer.state_or_default(state.as_ref());
                    layer.on_complete(CompleteParams { log, ctx, state, outcome })
                });
                run.await;
            }
        }
    }

    /// Runs `dispose` of every layer, in reverse order of registration, and removes the execution.
    pub(crate) async fn dispose(&mut self, shared: &Arc<SharedExecution>) {
        let roster = shared.roster();
        let _nothing_runs = shared.end_refreshing().await;
        for layer in roster.by_registration().rev().skip(self.disposed) {
            self.disposed += 1;
            if was_initialised(shared, layer, Hook::Dispose) {
                let run = shared.run(layer, Hook::Dispose, move |state, _| {
                    layer.dispose(DisposeParams { state: layer.state_or_default(state.as_ref()) })
                });
                run.await;
            }
        }
        shared.end();
        shared.core().states.cleanup(shared.id());
    }
}

/// Ends the children of an execution that is aborted, and theirs, although the program still holds them: their last
/// hooks run now, and what the program does with them later fails as aborted.
///
/// The youngest end first. A child that is ending already is left to that.
pub(crate) async fn abort_children(shared: &Arc<SharedExecution>) {
    for child in shared.take_children().into_iter().rev() {
        child.close();
        Box::pin(abort_children(&child)).await;
        let Ok(mut ending) = child.ending().clone().try_lock_owned() else { continue };
        let log = child.log().get();
        ending.on_complete(&child, &log, ExecutionOutcome::Aborted).await;
        // What is not durable was reported as a diagnostic.
        let _ = child.core().states.flush(child.id()).await;
        ending.dispose(&child).await;
    }
}

/// Commits the items and states of an unfinished turn together, if we still hold the thread.
async fn commit_rest(shared: &Arc<SharedExecution>, thread: &mut Thread) -> Result<(), Error> {
    let (core, id) = (shared.core(), thread.id().clone());
    let _lease = shared.turn_lease().acquire(core, shared.id(), &id, WhenHeld::Fail).await?;
    thread.commit_all(shared).await.map_err(|source| Error::Journal { thread: id, source })
}

/// A layer whose `init` never succeeded is skipped, and its span says so.
fn was_initialised(shared: &SharedExecution, layer: &LayerRef, hook: Hook) -> bool {
    let initialised = shared.core().states.has(shared.id(), &layer.spec().id);
    if !initialised && layer.may_have(hook) {
        shared.skipped(layer, hook);
    }
    initialised
}
