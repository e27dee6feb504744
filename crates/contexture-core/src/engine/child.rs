//! Children: executions that an execution starts and takes the result of.

use std::sync::Arc;

use serde_json::Value;

use super::execution::{Execution, Run};
use super::hook_run::{HookRun, Shared};
use super::open::scope_prefix;
use crate::error::Error;
use crate::id::{ExecutionId, ThreadId};
use crate::item::Item;
use crate::layer::*;
use crate::state::{Durable, describe};
use crate::store::Record;

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
    /// Answers `result` as the layers left it. A layer without `on_return` whose scope the child shares (a resource,
    /// or everyone) takes over what the child wrote there.
    ///
    /// # Errors
    /// [`Error::Journal`] if states could not be made durable.
    pub async fn join(&mut self, mut child: Execution<Ls>, mut result: Value) -> Result<Value, Error> {
        let parent = self.run_mut()?;
        // The child stays in its place until its last hook has run: if this is dropped in the middle, it is dropped.
        let run = child.run_mut()?;
        let failed = run.complete(ExecutionOutcome::Success).await;
        let roster = parent.shared.roster();
        for layer in roster.by_slot() {
            let id = &layer.spec().id;
            if !run.shared.core.states.has(&run.shared.id, id) {
                continue;
            }
            let (child_state, child_log) = (run.shared.state(id), run.log.clone());
            let given = result.clone();
            let returned = parent.shared.run(layer, Hook::OnReturn, move |parent_state, ctx| {
                let parent_state = layer.state_or_default(parent_state.as_ref());
                let child_state = layer.state_or_default(child_state.as_ref());
                layer.on_return(ReturnParams { child_state, child_log, parent_state, result: given, ctx })
            });
            match returned.await {
                HookRun::Done(ReturnResult { result: Some(changed), .. }) => result = changed,
                HookRun::Absent => parent.take_over(layer, &run.shared).await,
                HookRun::Done(_) | HookRun::Skipped | HookRun::Failed(_) => {}
            }
        }
        run.dispose().await;
        child.take_run();
        failed.map_or(Ok(result), Err)
    }
}

impl Run {
    /// Gives every layer of the child its state: from `on_spawn` where there is one, from `init` otherwise.
    async fn spawn_layers(&mut self, child: &mut Run) -> Result<(), Error> {
        let roster = self.shared.roster();
        let layers: Vec<LayerRef> = roster.by_slot().cloned().collect();
        // A scope that parent and child share holds a state already.
        let records = child.read_states(&layers).await?;
        for (layer, record) in layers.iter().zip(records) {
            match self.on_spawn(layer, &child.shared).await {
                HookRun::Done(SpawnResult { child_state, items }) => {
                    child.begin_with(layer, items);
                    child.carry(layer, record, child_state);
                }
                HookRun::Failed(_) => child.carry(layer, record, None),
                HookRun::Absent => child.init_layer(layer, record).await?,
                HookRun::Skipped if self.shared.core.states.is_disabled(&self.shared.id, &layer.spec().id) => {
                    child.shared.core.states.disable(&child.shared.id, &layer.spec().id);
                }
                HookRun::Skipped => child.carry(layer, record, None),
            }
        }
        child.commit().await
    }

    async fn on_spawn(&self, layer: &LayerRef, child: &Arc<Shared>) -> HookRun<SpawnResult<StateValue>> {
        let (data, log) = (child.context_data(), child.log().clone());
        // The hook looks at the child, and its notes belong to its own span.
        let call = move |state: Option<StateValue>, ctx: ExecutionContext| {
            let parent_state = layer.state_or_default(state.as_ref());
            layer.on_spawn(SpawnParams { parent_state, child_ctx: ExecutionContext { data, log, ..ctx } })
        };
        self.shared.run(layer, Hook::OnSpawn, call).await
    }

    /// Reads what a child wrote to a scope that it shares with its parent, lest the parent write over it.
    async fn take_over(&mut self, layer: &LayerRef, child: &Shared) {
        let spec = layer.spec();
        let scope = scope_prefix(spec, &self.shared.context_data());
        if spec.scope == MemoryScope::Execution || scope != scope_prefix(spec, &child.context_data()) {
            return;
        }
        match self.shared.core.states.reconcile(&self.shared.id, &spec.id).await {
            Ok(_) => self.shared.refresh_later(layer),
            Err(error) => self.shared.fault(Some(&spec.id), "merge", describe(&error)),
        }
    }

    /// Logs what `on_spawn` gave. A log begins with messages; half a tool call would be no beginning.
    fn begin_with(&mut self, layer: &LayerRef, items: Vec<Item>) {
        let given = items.len();
        let messages: Vec<Arc<Item>> =
            items.into_iter().filter(|item| matches!(item, Item::Message(_) | Item::Opaque(_))).map(Arc::new).collect();
        if messages.len() < given {
            let message = format!("{} items left out: a child's log begins with messages", given - messages.len());
            self.shared.fault(Some(&layer.spec().id), Hook::OnSpawn.as_str(), message);
        }
        self.append(messages);
    }

    /// Takes a state from the parent. Without one, a layer that has `init` stays uninitialised.
    fn carry(&mut self, layer: &LayerRef, record: Option<Record>, state: Option<StateValue>) {
        let spec = layer.spec();
        let (states, id) = (&self.shared.core.states, &self.shared.id);
        if spec.scope != MemoryScope::Execution {
            let version = record.map(|record| record.version);
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
