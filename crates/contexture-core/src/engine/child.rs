//! Children: executions that an execution starts and takes the result of.

use std::sync::Arc;

use serde_json::Value;

use super::execution::{Execution, Run};
use super::hook_run::{HookRun, Shared};
use crate::error::Error;
use crate::id::{ExecutionId, ThreadId};
use crate::item::Item;
use crate::layer::*;
use crate::state::Durable;
use crate::store::Version;

impl<Ls> Execution<Ls> {
    /// Starts a child: its own name, one deeper, a log of its own that begins with what `on_spawn` gave it, its own
    /// states and tools bound to itself.
    ///
    /// Its thread is named after this one and the child, so that its states are durable like anyone's.
    ///
    /// # Errors
    /// As [`ExecutionBuilder::start`](super::ExecutionBuilder::start).
    pub async fn spawn(&mut self) -> Result<Execution<Ls>, Error> {
        let parent = self.run_mut()?;
        let (core, context) = (parent.shared.core.clone(), parent.shared.context_data());
        let id = ExecutionId::from(core.ids.fresh());
        let thread = ThreadId::from(format!("{}/{}", parent.thread, id));
        let mut child = Execution::new(core, id, thread, context.resource_id.clone(), context.depth + 1);
        let roster = parent.shared.roster();
        let run = child.run_mut()?;
        run.shared
            .set_layers((*roster).clone(), super::Toolbox::new(&roster, &run.core().tools, &*run.core().counter)?);
        if let Err(error) = parent.spawn_layers(run).await {
            child.end(ExecutionOutcome::Failure).await;
            return Err(error);
        }
        Ok(child)
    }

    /// Ends a child as a success and takes over what it came to.
    ///
    /// The child's `on_complete` runs first, then `on_return` of every layer by slot, then the child's `dispose`.
    /// Answers `result` as the layers left it.
    ///
    /// # Errors
    /// [`Error::Journal`] if states could not be made durable.
    pub async fn join(&mut self, mut child: Execution<Ls>, mut result: Value) -> Result<Value, Error> {
        let parent = self.run_mut()?;
        let Some(mut child) = child.take_run() else { return Err(Error::Aborted) };
        let failed = child.complete(ExecutionOutcome::Success).await;
        let roster = parent.shared.roster();
        for layer in roster.by_slot() {
            let id = &layer.spec().id;
            if !child.shared.core.states.has(&child.shared.id, id) {
                continue;
            }
            let (child_state, child_log) = (child.shared.state(id), child.log.clone());
            let given = result.clone();
            let run = parent.shared.run(layer, Hook::OnReturn, move |parent_state, ctx| {
                layer.on_return(child_state, child_log, parent_state, given, ctx)
            });
            if let Some(changed) = run.await.done().and_then(|answer| answer.result) {
                result = changed;
            }
        }
        child.dispose().await;
        failed.map_or(Ok(result), Err)
    }
}

impl Run {
    /// Gives every layer of the child its state: from `on_spawn` where there is one, from `init` otherwise.
    async fn spawn_layers(&mut self, child: &mut Run) -> Result<(), Error> {
        let layers: Vec<LayerRef> = self.shared.roster().by_slot().cloned().collect();
        // A thread of its own is empty, but what belongs to a resource or to everyone may be there already.
        let records = child.read_states(&layers).await?;
        for (layer, record) in layers.iter().zip(records) {
            let version = record.as_ref().map(|record| record.version);
            match self.on_spawn(layer, &child.shared).await {
                HookRun::Done(SpawnResult { child_state, items }) => {
                    child.append(items.into_iter().filter(is_loggable).map(Arc::new));
                    child.carry(layer, version, child_state);
                }
                HookRun::Failed(_) => child.carry(layer, version, None),
                HookRun::Absent => child.init_layer(layer, record).await?,
                HookRun::Skipped => child.shared.core.states.disable(&child.shared.id, &layer.spec().id),
            }
        }
        child.commit().await
    }

    async fn on_spawn(&self, layer: &LayerRef, child: &Arc<Shared>) -> HookRun<SpawnResult<StateValue>> {
        let child_ctx = child.context();
        self.shared.run(layer, Hook::OnSpawn, move |state, _| layer.on_spawn(state, child_ctx)).await
    }

    /// Takes a state from the parent. Without one, a layer that has `init` stays uninitialised.
    fn carry(&mut self, layer: &LayerRef, version: Option<Version>, state: Option<StateValue>) {
        let spec = layer.spec();
        let (states, id) = (&self.shared.core.states, &self.shared.id);
        if spec.scope != MemoryScope::Execution {
            let durable = Durable::new(self.storage(layer)).of_layer(layer.clone()).at(version);
            states.register(id, &spec.id, durable);
        }
        match state {
            Some(state) => states.set_erased(id, &spec.id, Some(state)),
            None if !layer.may_have(Hook::Init) => states.set_restored(id, &spec.id, None),
            None => {}
        }
    }
}

/// A child's log begins with messages; half a tool call would be no beginning.
fn is_loggable(item: &Item) -> bool {
    matches!(item, Item::Message(_) | Item::Opaque(_))
}
