//! Child executions.

use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::Value;

use super::core::SystemPrompt;
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
use crate::model::{DynModel, Model};
use crate::state::{Durable, describe, encode_record};
use crate::store::Record;
use crate::tool::{DynTool, Tool};

/// Builds a child execution. Created by [`Execution::child`] and [`ToolContext::child`](crate::tool::ToolContext::child).
#[must_use = "call `start` to get the child"]
pub struct ChildBuilder<'a, Ls, Cs> {
    parent: Result<Parent<'a>, Error>,
    /// The child's own layers; `None`: those of the parent.
    layers: Option<Vec<LayerRef>>,
    /// The child's own tools; `None`: those of the parent.
    tools: Option<Vec<Arc<dyn DynTool>>>,
    model: Option<Arc<dyn DynModel>>,
    instructions: Option<Arc<str>>,
    forked: bool,
    shape: PhantomData<fn() -> (Ls, Cs)>,
}

/// The execution that starts a child.
pub(crate) enum Parent<'a> {
    /// Between two turns.
    Idle(&'a mut ExecutionParts),
    /// One of its tools is running.
    InCall(&'a Arc<SharedExecution>),
}

impl Parent<'_> {
    fn shared(&self) -> &Arc<SharedExecution> {
        match self {
            Parent::Idle(run) => run.shared(),
            Parent::InCall(shared) => shared,
        }
    }

    /// Makes as much as possible durable: the child must see what was just set in the scopes that both share. What a
    /// running turn holds back the child gets from memory.
    async fn settle(&mut self) {
        if let Parent::Idle(run) = self {
            run.settle().await;
        }
    }
}

impl<'a, Ls, Cs> ChildBuilder<'a, Ls, Cs> {
    pub(crate) fn new(parent: Result<Parent<'a>, Error>) -> Self {
        Self { parent, layers: None, tools: None, model: None, instructions: None, forked: false, shape: PhantomData }
    }

    /// Sets the child's own layers, instead of the parent's.
    ///
    /// A layer that both have, with the same id and type, gets its initial state from the parent's `on_spawn` and returns
    /// it through `on_return`; the others start with `init`.
    pub fn layers<Own>(self, memory: MemoryConfig<Own>) -> ChildBuilder<'a, Ls, Own> {
        let Self { parent, tools, model, instructions, forked, .. } = self;
        let layers = Some(memory.layers.into_iter().map(|layer| layer.0).collect());
        ChildBuilder { parent, layers, tools, model, instructions, forked, shape: PhantomData }
    }

    /// Keeps only those of the parent's tools whose name `keep` accepts. The functions of layers are no part of them.
    pub fn keep_tools(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.own_tools().retain(|tool| keep(tool.name()));
        self
    }

    /// Adds a tool that only the child, and its children, may call.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.own_tools().push(Arc::new(tool));
        self
    }

    fn own_tools(&mut self) -> &mut Vec<Arc<dyn DynTool>> {
        let of_parent =
            || self.parent.as_ref().map_or_else(|_| Vec::new(), |parent| parent.shared().core().tools.clone());
        self.tools.get_or_insert_with(of_parent)
    }

    /// Sets the child's model. Its layers call the model that those of the parent call.
    pub fn model(mut self, model: impl Model) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Sets the child's system prompt, instead of the parent's.
    pub fn instructions(mut self, instructions: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(instructions.into());
        self
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
    /// As [`ExecutionBuilder::start`](super::ExecutionBuilder::start), and [`Error::Spec`] if its own layers or tools are
    /// not valid together.
    pub async fn start(self) -> Result<Execution<Cs>, Error> {
        let Self { parent, layers, tools, model, instructions, forked, .. } = self;
        let mut parent = parent?;
        let shared = parent.shared().clone();
        let mut core = (**shared.core()).clone();
        core.roster = match layers {
            Some(layers) => Arc::new(Roster::new(layers)?),
            None => shared.roster(),
        };
        core.roster.check_policy(&core.settings.policy)?;
        if let Some(model) = model {
            core.layer_model = core.model_for_layers();
            core.model = Some(model);
        }
        if let Some(instructions) = instructions {
            core.instructions = SystemPrompt::new(instructions, &*core.counter);
        }
        core.tools = tools.unwrap_or(core.tools);
        core.toolbox = Arc::new(Toolbox::new(&core.roster, &core.tools, &*core.counter)?);
        let context = shared.context_data();
        let id = ExecutionId::from(core.host.ids.fresh());
        let beginning = ExecutionBeginning {
            thread: ThreadId::from(format!("{}/{}", context.thread_id, id)),
            id,
            resources: context.resources.clone(),
            parent: Some(shared.clone()),
        };
        let mut child = Execution::new(Arc::new(core), beginning);
        let run = child.run_mut()?;
        shared.add_child(run.shared());
        let log = if forked { shared.log().get() } else { ItemLog::new() };
        parent.settle().await;
        if let Err(error) = begin(&shared, run, &log).await {
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
        ChildBuilder::new(self.run_mut().map(Parent::Idle))
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
    pub async fn join<Cs>(&mut self, child: Execution<Cs>, result: Value) -> Result<Value, Error> {
        join(self.run_mut()?.shared(), child, result).await
    }
}

/// Ends a child as a success and returns its result, as the layers of the parent changed it.
pub(crate) async fn join<Cs>(
    parent: &Arc<SharedExecution>,
    mut child: Execution<Cs>,
    mut result: Value,
) -> Result<Value, Error> {
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

/// Calls `on_return` of a layer, if the child has that layer too.
async fn on_return(parent: &Arc<SharedExecution>, child: &ExecutionParts, layer: &LayerRef, result: Value) -> Value {
    let id = &layer.spec().id;
    let (shared, states) = (child.shared(), &parent.core().states);
    if !shared.roster().get(id.as_str()).is_some_and(|other| other.is_like(layer)) || !states.has(shared.id(), id) {
        return result;
    }
    let (child_state, child_log, child_ctx) = (shared.state(id), child.thread().log().clone(), shared.context());
    let given = result.clone();
    let returned = parent.run(layer, Hook::OnReturn, move |parent_state, ctx| {
        let parent_state = layer.state_or_default(parent_state.as_ref());
        let child_state = layer.state_or_default(child_state.as_ref());
        layer.on_return(ReturnParams { child_state, child_log, child_ctx, parent_state, result: given, ctx })
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
