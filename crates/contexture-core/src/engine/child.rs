//! Children: executions that an execution starts and takes the result of.

use std::sync::Arc;

use serde_json::Value;

use super::execution::Execution;
use super::hook_run::HookRun;
use super::open::{init_layer, read_states};
use super::run::Run;
use super::shared::Shared;
use super::toolbox::Toolbox;
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
        let (core, context) = (parent.shared().core().clone(), parent.shared().context_data());
        let id = ExecutionId::from(core.host.ids.fresh());
        let thread = ThreadId::from(format!("{}/{}", parent.thread().id(), id));
        let roster = parent.shared().roster();
        let toolbox = Toolbox::new(&roster, &core.tools, &*core.counter)?;
        let mut child = Execution::new(core, id, thread, context.resource_id.clone(), context.depth + 1);
        let run = child.run_mut()?;
        run.shared().set_layers((*roster).clone(), toolbox);
        if let Err(error) = spawn_layers(parent.shared(), run).await {
            child.end(ExecutionOutcome::Failure).await;
            return Err(error);
        }
        Ok(child)
    }

    /// Ends a child as a success and takes over what it came to.
    ///
    /// The child's `on_complete` runs first, then `on_return` of every layer by slot, then the child's `dispose`.
    /// Returns `result` as the layers left it. A layer without `on_return` whose scope the child shares (a resource,
    /// or everyone) takes over what the child wrote there.
    ///
    /// # Errors
    /// [`Error::Journal`] if states could not be made durable.
    pub async fn join(&mut self, mut child: Execution<Ls>, mut result: Value) -> Result<Value, Error> {
        let parent = self.run_mut()?.shared();
        // The child stays in its place until its last hook has run: if this future is dropped, so is the child.
        let run = child.run_mut()?;
        let failed = run.complete(ExecutionOutcome::Success).await;
        let roster = parent.roster();
        for layer in roster.by_slot() {
            let id = &layer.spec().id;
            if !run.shared().core().states.has(run.shared().id(), id) {
                continue;
            }
            let (child_state, child_log) = (run.shared().state(id), run.thread().log().clone());
            let given = result.clone();
            let returned = parent.run(layer, Hook::OnReturn, move |parent_state, ctx| {
                let parent_state = layer.state_or_default(parent_state.as_ref());
                let child_state = layer.state_or_default(child_state.as_ref());
                layer.on_return(ReturnParams { child_state, child_log, parent_state, result: given, ctx })
            });
            match returned.await {
                HookRun::Done(ReturnResult { result: Some(changed), .. }) => result = changed,
                HookRun::Absent => take_over(parent, layer, run.shared()).await,
                HookRun::Done(_) | HookRun::Skipped | HookRun::Failed(_) => {}
            }
        }
        run.dispose().await;
        child.take_run();
        failed.map_or(Ok(result), Err)
    }
}

/// Gives every layer of the child its state: from `on_spawn` where there is one, from `init` otherwise.
async fn spawn_layers(parent: &Arc<Shared>, child: &mut Run) -> Result<(), Error> {
    let shared = child.shared().clone();
    let layers: Vec<LayerRef> = parent.roster().by_slot().cloned().collect();
    // A scope that parent and child share holds a state already.
    let records = read_states(&shared, &layers).await?;
    for (layer, record) in layers.iter().zip(records) {
        let id = &layer.spec().id;
        match on_spawn(parent, layer, &shared).await {
            HookRun::Done(SpawnResult { child_state, items }) => {
                child.append(first_items(&shared, layer, items));
                carry(&shared, layer, record, child_state);
            }
            HookRun::Failed(_) => carry(&shared, layer, record, None),
            HookRun::Absent => init_layer(&shared, layer, record).await?,
            HookRun::Skipped if parent.core().states.is_disabled(parent.id(), id) => {
                shared.core().states.disable(shared.id(), id);
            }
            HookRun::Skipped => carry(&shared, layer, record, None),
        }
    }
    child.commit().await
}

async fn on_spawn(parent: &Arc<Shared>, layer: &LayerRef, child: &Shared) -> HookRun<SpawnResult<StateValue>> {
    let (data, log) = (child.context_data(), child.log().clone());
    // The hook looks at the child, and its notes belong to its own span.
    let call = move |state: Option<StateValue>, ctx: ExecutionContext| {
        let parent_state = layer.state_or_default(state.as_ref());
        layer.on_spawn(SpawnParams { parent_state, child_ctx: ExecutionContext { data, log, ..ctx } })
    };
    parent.run(layer, Hook::OnSpawn, call).await
}

/// Reads what a child wrote to a scope that it shares with its parent, so that the parent does not write over it.
async fn take_over(parent: &Arc<Shared>, layer: &LayerRef, child: &Shared) {
    let spec = layer.spec();
    if spec.scope == MemoryScope::Execution || parent.scope_of(spec) != child.scope_of(spec) {
        return;
    }
    match parent.core().states.reconcile(parent.id(), &spec.id).await {
        Ok(_) => parent.refresh_later(layer),
        Err(error) => parent.fault(Some(&spec.id), "merge", describe(&error)),
    }
}

/// What of the items that `on_spawn` gave the child's log begins with: messages, since half a tool call is no
/// beginning.
fn first_items(child: &Shared, layer: &LayerRef, items: Vec<Item>) -> Vec<Item> {
    let given = items.len();
    let messages: Vec<Item> =
        items.into_iter().filter(|item| matches!(item, Item::Message(_) | Item::Opaque(_))).collect();
    if messages.len() < given {
        let message = format!("{} items left out: a child's log begins with messages", given - messages.len());
        child.fault(Some(&layer.spec().id), Hook::OnSpawn.as_str(), message);
    }
    messages
}

/// Gives the child a state from the parent. Without one, a layer that has `init` stays uninitialised.
fn carry(child: &Shared, layer: &LayerRef, record: Option<Record>, state: Option<StateValue>) {
    let spec = layer.spec();
    let (states, id) = (&child.core().states, child.id());
    if spec.scope != MemoryScope::Execution {
        let version = record.map(|record| record.version);
        let durable = Durable::new(child.storage_of(layer)).of_layer(layer.clone()).at(version);
        states.register(id, &spec.id, durable);
    }
    match state {
        Some(state) => states.set_erased(id, &spec.id, Some(state)),
        None if !layer.may_have(Hook::Init) => states.set_restored(id, &spec.id, None),
        None => {}
    }
}
