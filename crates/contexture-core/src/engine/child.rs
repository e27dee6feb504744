//! Child executions.

use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::Value;

use super::execution::{Execution, ExecutionBeginning};
use super::hook_run::HookRun;
use super::open::{init_layer, read_states};
use super::roster::Roster;
use super::run::ExecutionParts;
use super::shared::SharedExecution;
use super::toolbox::Toolbox;
use super::voice::{may_speak, meets_schema};
use crate::error::Error;
use crate::id::{ExecutionId, ThreadId};
use crate::item::Item;
use crate::layer::*;
use crate::log::ItemLog;
use crate::memory::MemoryConfig;
use crate::state::{Durable, describe, encode_record};
use crate::store::Record;

/// Builds a child execution. Created by [`Execution::child`].
#[must_use = "call `start` to get the child"]
pub struct ChildBuilder<'a, Ls, Cs> {
    parent: &'a mut Execution<Ls>,
    /// The child's own layers; `None`: those of the parent.
    layers: Option<Vec<LayerRef>>,
    forked: bool,
    shape: PhantomData<fn() -> Cs>,
}

impl<'a, Ls, Cs> ChildBuilder<'a, Ls, Cs> {
    /// Sets the child's own layers, instead of the parent's.
    ///
    /// A layer that both have, with the same id and type, gets its initial state from the parent's `on_spawn` and returns
    /// it through `on_return`; the others start with `init`.
    pub fn layers<Own>(self, memory: MemoryConfig<Own>) -> ChildBuilder<'a, Ls, Own> {
        let layers = memory.layers.into_iter().map(|layer| layer.0).collect();
        ChildBuilder { parent: self.parent, layers: Some(layers), forked: self.forked, shape: PhantomData }
    }

    /// Makes the child's log start with a copy of the parent's.
    ///
    /// A call of the parent that has no output yet is marked as interrupted in the child.
    pub fn fork(mut self) -> Self {
        self.forked = true;
        self
    }

    /// Starts the child.
    ///
    /// # Errors
    /// As [`ExecutionBuilder::start`](super::ExecutionBuilder::start), and [`Error::Spec`] if its own layers are not
    /// valid together.
    pub async fn start(self) -> Result<Execution<Cs>, Error> {
        let abort = self.parent.abort_handle();
        let parent = self.parent.run_mut()?;
        let (core, context) = (parent.shared().core().clone(), parent.shared().context_data());
        let roster = match self.layers {
            Some(layers) => Roster::new(layers)?,
            None => (*parent.shared().roster()).clone(),
        };
        roster.check_policy(&core.settings.policy)?;
        let toolbox = Toolbox::new(&roster, &core.tools, &*core.counter)?;
        let id = ExecutionId::from(core.host.ids.fresh());
        let beginning = ExecutionBeginning {
            thread: ThreadId::from(format!("{}/{}", parent.thread().id(), id)),
            id,
            resources: context.resources.clone(),
            parent: Some(parent.shared().clone()),
        };
        let mut child = Execution::new(core, beginning).aborted_with(&abort);
        let run = child.run_mut()?;
        parent.shared().add_child(run.shared());
        run.shared().set_layers(roster, toolbox);
        let log = if self.forked { parent.thread().log().clone() } else { ItemLog::new() };
        // The child must see what the parent has just set in the scopes that both share.
        parent.settle().await;
        if let Err(error) = begin(parent.shared(), run, &log).await {
            child.end(ExecutionOutcome::Failure).await;
            return Err(error);
        }
        Ok(child)
    }
}

impl<Ls> Execution<Ls> {
    /// Starts a child with the parent's layers. It has its own id, thread, log, states and tools, and a depth of one
    /// more; its log starts with the items that `on_spawn` returned.
    ///
    /// Its thread is named after this one and the child, so that its states are durable. In a scope that both share, the
    /// state that `on_spawn` returned is only the child's initial state and is not written; later changes are merged with
    /// the stored state. Aborting this execution ends the child as aborted, and the usage of its model calls is added to this
    /// execution's. [`child`](Execution::child) starts one with other layers, or with this log.
    ///
    /// # Errors
    /// As [`ExecutionBuilder::start`](super::ExecutionBuilder::start).
    pub async fn spawn(&mut self) -> Result<Execution<Ls>, Error> {
        self.child().start().await
    }

    /// Returns a builder for a child; call [`start`](ChildBuilder::start).
    pub fn child(&mut self) -> ChildBuilder<'_, Ls, Ls> {
        ChildBuilder { parent: self, layers: None, forked: false, shape: PhantomData }
    }

    /// Ends a child as a success and returns its result.
    ///
    /// The child's `on_complete` runs first, then `on_return` of every layer that both have, by slot, then the child's
    /// `dispose`; then the child's thread is removed from the store.
    /// Returns `result` as the layers changed it. A layer without `on_return` in a shared scope (a resource, or global)
    /// gets the state that the child wrote there.
    ///
    /// # Errors
    /// [`Error::Journal`] if states could not be made durable; the child's thread then stays in the store.
    pub async fn join<Cs>(&mut self, mut child: Execution<Cs>, mut result: Value) -> Result<Value, Error> {
        let parent = self.run_mut()?.shared();
        // The child is kept until its last hook has run: if this future is dropped, so is the child.
        let run = child.run_mut()?;
        let failed = run.complete(ExecutionOutcome::Success).await;
        // States that `on_return` sets are written only after the child's writes to shared scopes were read.
        let held = parent.core().states.hold(parent.id());
        for layer in parent.roster().by_slot() {
            result = on_return(parent, run, layer, result).await;
        }
        drop(held);
        run.dispose().await;
        let removed = match failed {
            None => run.remove_thread().await,
            Some(error) => Err(error),
        };
        child.take_run();
        removed.map(|()| result)
    }
}

/// Calls `on_return` of a layer, if the child has that layer too.
async fn on_return(parent: &Arc<SharedExecution>, child: &ExecutionParts, layer: &LayerRef, result: Value) -> Value {
    let id = &layer.spec().id;
    let (shared, states) = (child.shared(), &parent.core().states);
    if !shared.roster().get(id.as_str()).is_some_and(|other| other.is_like(layer)) || !states.has(shared.id(), id) {
        return result;
    }
    let (child_state, child_log) = (shared.state(id), child.thread().log().clone());
    let given = result.clone();
    let returned = parent.run(layer, Hook::OnReturn, move |parent_state, ctx| {
        let parent_state = layer.state_or_default(parent_state.as_ref());
        let child_state = layer.state_or_default(child_state.as_ref());
        layer.on_return(ReturnParams { child_state, child_log, parent_state, result: given, ctx })
    });
    let before = parent.state(id);
    match returned.await {
        HookRun::Absent => take_over(parent, layer, shared).await,
        HookRun::Done(answer) => {
            if parent.share_scope(shared, layer) && !is_same(before.as_ref(), parent.state(id).as_ref()) {
                states.take_note(parent.id(), id, shared.id()).await;
            }
            return answer.result.unwrap_or(result);
        }
        HookRun::Skipped | HookRun::Failed(_) => {}
    }
    result
}

fn is_same(before: Option<&StateValue>, now: Option<&StateValue>) -> bool {
    match (before, now) {
        (Some(before), Some(now)) => before.is_same(now),
        (before, now) => before.is_none() && now.is_none(),
    }
}

/// Initialises the child's log and layers: with `on_spawn` where the parent's layer has it, with `init` otherwise.
async fn begin(parent: &Arc<SharedExecution>, child: &mut ExecutionParts, log: &ItemLog) -> Result<(), Error> {
    child.begin_with(log);
    let shared = child.shared().clone();
    let layers: Vec<LayerRef> = shared.roster().by_slot().cloned().collect();
    // A scope that parent and child share already has a state.
    let records = read_states(&shared, &layers).await?;
    for (layer, record) in layers.iter().zip(records) {
        let record = newest(parent, &shared, layer, record);
        let of_parent = parent.roster().get(layer.spec().id.as_str()).filter(|other| other.is_like(layer)).cloned();
        let Some(of_parent) = of_parent else {
            init_layer(&shared, layer, record).await?;
            continue;
        };
        match on_spawn(parent, &of_parent, &shared).await {
            HookRun::Done(SpawnResult { child_state, items }) => {
                child.append(first_items(&shared, layer, items));
                carry(parent, &shared, layer, record, child_state);
            }
            HookRun::Failed(_) => carry(parent, &shared, layer, record, None),
            HookRun::Absent => init_layer(&shared, layer, record).await?,
            HookRun::Skipped if parent.core().states.is_disabled(parent.id(), &layer.spec().id) => {
                shared.core().states.disable(shared.id(), &layer.spec().id);
            }
            HookRun::Skipped => carry(parent, &shared, layer, record, None),
        }
    }
    child.commit().await
}

/// The stored state of a layer, or the parent's if it could not be stored yet.
fn newest(
    parent: &SharedExecution,
    child: &SharedExecution,
    layer: &LayerRef,
    record: Option<Record>,
) -> Option<Record> {
    let newer = parent.core().states.dirty_state(parent.id(), &layer.spec().id);
    let Some(newer) = newer.filter(|_| parent.share_scope(child, layer)) else { return record };
    let record = record?;
    Some(Record { value: encode_record(&newer).unwrap_or(record.value), version: record.version })
}

async fn on_spawn(
    parent: &Arc<SharedExecution>,
    layer: &LayerRef,
    child: &SharedExecution,
) -> HookRun<SpawnResult<StateValue>> {
    let (data, log) = (child.context_data(), child.log().clone());
    // The hook gets the child's context, and its trace belongs to its own span.
    let call = move |state: Option<StateValue>, ctx: ExecutionContext| {
        let parent_state = layer.state_or_default(state.as_ref());
        layer.on_spawn(SpawnParams { parent_state, child_ctx: ExecutionContext { data, log, ..ctx } })
    };
    parent.run(layer, Hook::OnSpawn, call).await
}

/// Reads what a child wrote to a scope that it shares with its parent, so that the parent does not overwrite it.
async fn take_over(parent: &Arc<SharedExecution>, layer: &LayerRef, child: &SharedExecution) {
    if !parent.share_scope(child, layer) {
        return;
    }
    let id = &layer.spec().id;
    match parent.core().states.reconcile(parent.id(), id).await {
        Ok(_) => parent.refresh_later(layer),
        Err(error) => parent.fault(Some(id), "merge", describe(&error)),
    }
}

/// The items that the child's log starts with: only the layer's own messages, since half a tool call would be
/// invalid.
fn first_items(child: &SharedExecution, layer: &LayerRef, items: Vec<Item>) -> Vec<Item> {
    let (given, spec) = (items.len(), layer.spec());
    let is_fine = |item: &Item| may_speak(spec, item) && meets_schema(spec, item) != Some(false);
    let messages: Vec<Item> = items.into_iter().filter(is_fine).collect();
    if messages.len() < given {
        let message = format!(
            "{} items dropped: a child's log may only start with the layer's own messages",
            given - messages.len()
        );
        child.fault(Some(&layer.spec().id), Hook::OnSpawn.as_str(), message);
    }
    messages
}

/// Sets the child's state from the parent. Without one, a layer that has `init` stays uninitialised.
///
/// In a scope that both share it is only the initial state: it is not written, and later changes are merged with the
/// stored state.
fn carry(
    parent: &SharedExecution,
    child: &SharedExecution,
    layer: &LayerRef,
    record: Option<Record>,
    state: Option<StateValue>,
) {
    let spec = layer.spec();
    let (states, id) = (&child.core().states, child.id());
    let shared = parent.share_scope(child, layer);
    if spec.scope != MemoryScope::Execution {
        let encoded = state.as_ref().and_then(|state| encode_record(state).ok());
        let same = encoded.as_ref() == record.as_ref().map(|record| &record.value);
        let durable = Durable::new(child.storage_of(layer)).of_layer(layer.clone());
        let durable = durable.at(record.map(|record| record.version));
        states.register(id, &spec.id, if shared && !same { durable.apart() } else { durable });
    }
    match state {
        Some(state) if shared => states.set_restored(id, &spec.id, Some(state)),
        Some(state) => states.set_erased(id, &spec.id, Some(state)),
        None if !layer.may_have(Hook::Init) => states.set_restored(id, &spec.id, None),
        None => {}
    }
}
