//! The engine runs turns with a model, tools and a store.
//!
//! [`Engine::builder`] takes a memory, a clock and a source of names; [`Engine::execution`] opens a thread;
//! [`Execution::turn`] runs one turn. `turn`, [`window`](crate::window) and [`budget`](crate::budget)
//! decide; the engine executes.

mod frame;
mod roster;
mod toolbox;
mod eventual;
mod endings;
mod core;
mod lease;
mod scope;
mod shared;
mod voice;
mod render;
mod hook_run;
mod function;
mod provider;
mod thread;
mod commit;
mod removal;
mod open;
mod recall;
mod pipeline;
mod steering;
mod summary;
mod assemble;
mod model_call;
mod tools;
mod end_progress;
mod ending;
mod answer;
mod run;
mod abort;
mod access;
mod execution;
mod child;
mod tool_context;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::error::{Error, SpecError};
use crate::event::Observer;
use crate::host::{FsAdapter, NoFiles, NoShell, ShellAdapter};
use crate::id::{ExecutionId, IdSource, LayerId, ResourceId, ResourceKind, ThreadId};
use crate::layer::{ItemSchema, Resources};
use crate::memory::MemoryConfig;
use crate::model::{DynModel, Model, ToolSchema};
use crate::search::{NoSearch, SearchIndex};
use crate::state::LayerStateStore;
use crate::store::{MemoryStore, StorageAdapter};
use crate::tokens::{Estimate, TokenCounter};
use crate::tool::{DynTool, Tool};
use crate::window::ProjectionPolicy;

use self::core::{Core, EngineSettings, Host, SystemPrompt, emit_fault};
pub use self::core::{DEFAULT_LEASE, JournalPolicy, WhenHeld};
pub use abort::AbortHandle;
pub use access::{Called, ContextMemory, MemoryAccess};
pub use answer::{TurnAnswer, TurnInput};
pub use child::ChildBuilder;
use endings::Endings;
use eventual::EventualCache;
pub use execution::Execution;
use execution::ExecutionBeginning;
use lease::hold_to_delete;
use removal::{remove_children, remove_thread};
use roster::Roster;
use toolbox::Toolbox;

/// Runs executions over one set of layers. Cheap to clone.
///
/// `Ls` is the tuple of layers, so that asking for one that is not there does not compile.
pub struct Engine<Ls> {
    core: Arc<Core>,
    shape: PhantomData<fn() -> Ls>,
}

impl<Ls> Clone for Engine<Ls> {
    fn clone(&self) -> Self {
        Self { core: self.core.clone(), shape: PhantomData }
    }
}

impl<Ls> Engine<Ls> {
    /// Returns a builder for an engine with these layers, clock and source of names.
    ///
    /// Most programs call `contexture::open` instead, which has defaults for everything.
    pub fn builder(memory: MemoryConfig<Ls>, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> EngineBuilder<Ls> {
        EngineBuilder {
            memory,
            host: Host { clock, ids, fs: Arc::new(NoFiles), shell: Arc::new(NoShell), search: Arc::new(NoSearch) },
            model: None,
            layer_model: None,
            store: None,
            counter: Arc::new(Estimate),
            tools: Vec::new(),
            instructions: Arc::from(""),
            settings: EngineSettings::default(),
            observer: None,
        }
    }

    /// Returns a builder for an execution over a thread; its `start` opens the thread with everything that was committed.
    pub fn execution(&self, thread: impl Into<ThreadId>) -> ExecutionBuilder<Ls> {
        let (core, thread) = (self.core.clone(), thread.into());
        ExecutionBuilder { core, thread, resources: Resources::default(), shape: PhantomData }
    }

    /// Removes a thread from the store: its log, its decisions, and the states of this engine's layers in its scope.
    ///
    /// Returns `false` if there was no such thread. The threads of children that were not joined are removed with it;
    /// states of users, projects and the global scope are kept. Holds the lease of the thread meanwhile, as a turn does. End the
    /// thread's executions first: one that is still open writes the thread again with its next turn.
    ///
    /// # Errors
    /// [`Error::Held`] if a turn runs on the thread, here or in another process; with
    /// [`when_held`](EngineBuilder::when_held) it waits for the end of the turn first. [`Error::Remove`] if the store
    /// failed. In both cases the thread itself is unchanged.
    pub async fn delete_thread(&self, thread: impl Into<ThreadId>) -> Result<bool, Error> {
        let thread = thread.into();
        self.core.endings.wait(&thread).await;
        let lease = hold_to_delete(&self.core, &thread).await?;
        let store = &*self.core.store;
        let removed = match remove_children(store, &thread).await {
            Ok(()) => remove_thread(store, &self.core.roster.ids(), &thread, Some(lease.fence())).await,
            Err(error) => Err(error),
        };
        let removed = removed.map_err(|source| Error::Remove { thread, source })?;
        if removed {
            // The thread is gone all the same; what is left of it goes with the next one that is deleted.
            let _ = self.core.store.scrub().await;
        }
        Ok(removed)
    }

    /// The tools that are offered to the model.
    pub fn tool_schemas(&self) -> &[ToolSchema] {
        self.core.toolbox.schemas()
    }

    /// The schemas of items that layers create, with the layer that declared each.
    pub fn item_schemas(&self) -> Vec<(LayerId, ItemSchema)> {
        let layers = self.core.roster.by_slot();
        layers
            .flat_map(|layer| layer.spec().item_schemas.iter().map(|schema| (layer.spec().id.clone(), schema.clone())))
            .collect()
    }

    /// The store that the engine writes to.
    pub fn store(&self) -> &Arc<dyn StorageAdapter> {
        &self.core.store
    }
}

/// Builds an [`Engine`].
#[must_use = "call `build` to get the engine"]
pub struct EngineBuilder<Ls> {
    memory: MemoryConfig<Ls>,
    host: Host,
    model: Option<Arc<dyn DynModel>>,
    layer_model: Option<Arc<dyn DynModel>>,
    store: Option<Arc<dyn StorageAdapter>>,
    counter: Arc<dyn TokenCounter>,
    tools: Vec<Arc<dyn DynTool>>,
    instructions: Arc<str>,
    settings: EngineSettings,
    observer: Option<Arc<dyn Observer>>,
}

impl<Ls> EngineBuilder<Ls> {
    /// Sets the model. Without one an engine can still assemble windows.
    pub fn model(mut self, model: impl Model) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Sets the model that layers call with `call_model`: a cheaper one, or a separate script in a test. Default: the
    /// model of the engine.
    pub fn layer_model(mut self, model: impl Model) -> Self {
        self.layer_model = Some(Arc::new(model));
        self
    }

    /// Sets the store. Default: in memory.
    pub fn store(mut self, store: Arc<dyn StorageAdapter>) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets how tokens are counted. Default: the estimate.
    pub fn counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.counter = counter;
        self
    }

    /// Sets the files that hooks can read. Default: none.
    pub fn fs(mut self, fs: Arc<dyn FsAdapter>) -> Self {
        self.host.fs = fs;
        self
    }

    /// Sets the shell that hooks can use. Default: none.
    pub fn shell(mut self, shell: Arc<dyn ShellAdapter>) -> Self {
        self.host.shell = shell;
        self
    }

    /// Sets the search index that hooks can use. Default: none.
    pub fn search(mut self, search: Arc<dyn SearchIndex>) -> Self {
        self.host.search = search;
        self
    }

    /// Sets the clock. Default: the one passed to [`Engine::builder`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.host.clock = clock;
        self
    }

    /// Adds a tool that the model may call.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Sets the system prompt.
    pub fn instructions(mut self, instructions: impl Into<Arc<str>>) -> Self {
        self.instructions = instructions.into();
        self
    }

    /// Sets how large a window may be, and what is removed when it is full.
    pub fn policy(mut self, policy: ProjectionPolicy) -> Self {
        self.settings.policy = policy;
        self
    }

    /// Sets what happens when the log cannot be made durable.
    pub fn journal(mut self, journal: JournalPolicy) -> Self {
        self.settings.journal = journal;
        self
    }

    /// Sets the observer. Default: none.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Makes every layer's recall atomic, including those of eventual layers.
    pub fn force_atomic_recall(mut self, force: bool) -> Self {
        self.settings.force_atomic_recall = force;
        self
    }

    /// Sets the largest number of model calls of a turn, which is 100 otherwise.
    pub fn max_steps(mut self, max_steps: u32) -> Self {
        self.settings.max_steps = max_steps;
        self
    }

    /// Sets how many tool calls of one response are run, otherwise 1 000. The model is told that the rest did not run.
    pub fn max_calls(mut self, max_calls: usize) -> Self {
        self.settings.max_calls = max_calls;
        self
    }

    /// Sets how long the provider keeps a prompt in its cache, otherwise 5 minutes.
    pub fn cache_ttl(mut self, cache_ttl: Duration) -> Self {
        self.settings.cache_ttl = cache_ttl;
        self
    }

    /// Sets how long the lease of a turn on its thread lasts unless it is renewed. Default: [`DEFAULT_LEASE`].
    ///
    /// It is renewed while the turn runs. After an owner was paused for longer, or died on another machine, others can
    /// continue once the lease has expired.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.settings.lease.duration = duration;
        self
    }

    /// Sets what a turn does when another execution runs one on the same thread. Default: it fails at once.
    pub fn when_held(mut self, when_held: WhenHeld) -> Self {
        self.settings.lease.when_held = when_held;
        self
    }

    /// Sets the owner that others see when a thread is held: a program, a host, a process.
    pub fn owner(mut self, owner: impl Into<Arc<str>>) -> Self {
        self.settings.lease.owner = owner.into();
        self
    }

    /// Checks everything and returns the engine.
    ///
    /// # Errors
    /// Names the layer or option and the invalid field: duplicate or empty ids, invalid budgets or schemas, colliding tool
    /// names, or layers or a policy that would undo each other.
    pub fn build(self) -> Result<Engine<Ls>, Error> {
        self.settings.policy.validate()?;
        if self.settings.max_steps == 0 {
            return Err(SpecError::other("engine", "max_steps", "is zero").into());
        }
        if self.settings.max_calls == 0 {
            return Err(SpecError::other("engine", "max_calls", "is zero").into());
        }
        if self.settings.lease.duration.is_zero() {
            return Err(SpecError::other("engine", "lease_duration", "is zero").into());
        }
        let layers = self.memory.layers.into_iter().map(|layer| layer.0).collect();
        let roster = Arc::new(Roster::new(layers)?);
        roster.check_policy(&self.settings.policy)?;
        let toolbox = Arc::new(Toolbox::new(&roster, &self.tools, &*self.counter)?);
        let observer = self.observer.clone();
        let states = LayerStateStore::new(
            self.host.clock.clone(),
            Arc::new(move |execution, layer, place, message| {
                emit_fault(observer.as_deref(), execution, Some(layer), place, message.to_owned());
            }),
        );
        let core = Core {
            roster,
            toolbox,
            tools: self.tools,
            model: self.model,
            layer_model: self.layer_model,
            store: self.store.unwrap_or_else(|| Arc::new(MemoryStore::new())),
            states: Arc::new(states),
            instructions: SystemPrompt::new(self.instructions, &*self.counter),
            counter: self.counter,
            host: self.host,
            settings: self.settings,
            observer: self.observer,
            eventual: Arc::new(EventualCache::default()),
            endings: Arc::new(Endings::default()),
        };
        Ok(Engine { core: Arc::new(core), shape: PhantomData })
    }
}

/// Builds an [`Execution`].
#[must_use = "call `start` to open the thread"]
pub struct ExecutionBuilder<Ls> {
    core: Arc<Core>,
    thread: ThreadId,
    resources: Resources,
    shape: PhantomData<fn() -> Ls>,
}

impl<Ls> ExecutionBuilder<Ls> {
    /// Sets the user that the thread belongs to: the resource of layers that name no other kind.
    pub fn resource(self, resource: impl Into<ResourceId>) -> Self {
        self.resource_of(ResourceKind::user(), resource)
    }

    /// Adds a resource of another kind that the thread belongs to, such as a project.
    ///
    /// A layer selects a kind with [`LayerSpec::with_resource`](crate::layer::LayerSpec::with_resource).
    pub fn resource_of(mut self, kind: impl Into<ResourceKind>, resource: impl Into<ResourceId>) -> Self {
        self.resources.insert(kind.into(), resource.into());
        self
    }

    /// Opens the thread and initialises every layer.
    ///
    /// # Errors
    /// [`Error::Open`] if the store cannot be read, [`Error::Init`] if a layer's `init` failed.
    pub async fn start(self) -> Result<Execution<Ls>, Error> {
        self.core.endings.wait(&self.thread).await;
        let id = ExecutionId::from(self.core.host.ids.fresh());
        let beginning = ExecutionBeginning { id, thread: self.thread, resources: self.resources, parent: None };
        let mut execution = Execution::new(self.core, beginning);
        execution.open().await?;
        Ok(execution)
    }
}
