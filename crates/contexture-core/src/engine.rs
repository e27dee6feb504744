//! What runs it all: the engine drives turns against a model, tools and a store.
//!
//! [`Engine::builder`] takes a memory and everything the outside world must give; [`Engine::execution`] opens a
//! thread; [`Execution::turn`] runs one turn. Decisions are made by [`turn`](crate::turn), [`window`](crate::window)
//! and [`budget`](crate::budget); here they are carried out.

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
mod ending;
mod answer;
mod run;
mod abort;
mod access;
mod execution;
mod child;

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

use self::core::{Core, Host, Instructions, Settings, emit_fault};
pub use self::core::{DEFAULT_CACHE_TTL, DEFAULT_LEASE, DEFAULT_MAX_CALLS, DEFAULT_MAX_STEPS, JournalPolicy, WhenHeld};
pub use abort::AbortHandle;
pub use access::{Called, ContextMemory, MemoryAccess};
pub use answer::{TurnAnswer, TurnInput};
pub use child::ChildBuilder;
use endings::Endings;
use eventual::EventualCache;
use execution::Beginning;
pub use execution::Execution;
use removal::remove_thread;
use roster::Roster;
use toolbox::Toolbox;

/// Runs executions over one set of layers. Cheap to clone.
///
/// `Ls` remembers the types of the layers, so that asking for one that is not there does not compile.
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
    /// Starts an engine over these layers, with the clock and the names that the outside world gives.
    ///
    /// Most people call `contexture::open` instead, which fills in everything.
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
            settings: Settings::default(),
            observer: None,
        }
    }

    /// Begins a run over a thread: `start` opens it, with everything that was committed before.
    pub fn execution(&self, thread: impl Into<ThreadId>) -> ExecutionBuilder<Ls> {
        let (core, thread) = (self.core.clone(), thread.into());
        ExecutionBuilder { core, thread, resources: Resources::default(), shape: PhantomData }
    }

    /// Removes a thread from the store: its log, its decisions, and what the layers of this engine kept for it alone.
    ///
    /// Returns `false` if there was no such thread. What layers keep for users, projects and everyone stays, and so do
    /// threads of children that were not joined. End the thread's executions first: one that still runs writes it anew.
    ///
    /// # Errors
    /// [`Error::Remove`] if the store failed; then the thread is still whole.
    pub async fn delete_thread(&self, thread: impl Into<ThreadId>) -> Result<bool, Error> {
        let thread = thread.into();
        self.core.endings.wait(&thread).await;
        let removed = remove_thread(&*self.core.store, &self.core.roster, &thread).await;
        removed.map_err(|source| Error::Remove { thread, source })
    }

    /// The tools that the model is told about.
    pub fn tool_schemas(&self) -> &[ToolSchema] {
        self.core.toolbox.schemas()
    }

    /// The schemas of items that layers make, with the layer that declared each.
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

/// Collects what an engine needs.
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
    settings: Settings,
    observer: Option<Arc<dyn Observer>>,
}

impl<Ls> EngineBuilder<Ls> {
    /// The model that answers. Without one an engine can still assemble windows.
    pub fn model(mut self, model: impl Model) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// The model that layers call with `call_model`: a cheaper one, or a script of its own in a test. Default: the model
    /// that answers.
    pub fn layer_model(mut self, model: impl Model) -> Self {
        self.layer_model = Some(Arc::new(model));
        self
    }

    /// Where everything durable goes. Default: memory, which forgets.
    pub fn store(mut self, store: Arc<dyn StorageAdapter>) -> Self {
        self.store = Some(store);
        self
    }

    /// How tokens are counted. Default: the estimate.
    pub fn counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.counter = counter;
        self
    }

    /// Files that hooks may reach. Default: none.
    pub fn fs(mut self, fs: Arc<dyn FsAdapter>) -> Self {
        self.host.fs = fs;
        self
    }

    /// The shell that hooks may reach. Default: none.
    pub fn shell(mut self, shell: Arc<dyn ShellAdapter>) -> Self {
        self.host.shell = shell;
        self
    }

    /// The search index that hooks may reach. Default: none.
    pub fn search(mut self, search: Arc<dyn SearchIndex>) -> Self {
        self.host.search = search;
        self
    }

    /// Time. Default: what [`Engine::builder`] was given.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.host.clock = clock;
        self
    }

    /// A tool that the model may ask for.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// The system prompt.
    pub fn instructions(mut self, instructions: impl Into<Arc<str>>) -> Self {
        self.instructions = instructions.into();
        self
    }

    /// How large a window may be, and what gives way when it is full.
    pub fn policy(mut self, policy: ProjectionPolicy) -> Self {
        self.settings.policy = policy;
        self
    }

    /// What happens when the log cannot be made durable.
    pub fn journal(mut self, journal: JournalPolicy) -> Self {
        self.settings.journal = journal;
        self
    }

    /// Watches everything. Default: nobody.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Makes every layer's recall atomic, also of those that asked to be eventual.
    pub fn force_atomic_recall(mut self, force: bool) -> Self {
        self.settings.force_atomic_recall = force;
        self
    }

    /// How many model calls a turn may lead to.
    pub fn max_steps(mut self, max_steps: u32) -> Self {
        self.settings.max_steps = max_steps;
        self
    }

    /// How many tool calls of one response are run. The model is told that the rest did not run.
    pub fn max_calls(mut self, max_calls: usize) -> Self {
        self.settings.max_calls = max_calls;
        self
    }

    /// How long the provider keeps a prompt in its cache.
    pub fn cache_ttl(mut self, cache_ttl: Duration) -> Self {
        self.settings.cache_ttl = cache_ttl;
        self
    }

    /// How long the lease of a turn on its thread lasts unless it is renewed. Default: [`DEFAULT_LEASE`].
    ///
    /// It is renewed while the turn works. An owner that is paused for longer, or dies on another machine, can be
    /// followed by others once it has run out.
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.settings.lease.duration = duration;
        self
    }

    /// What a turn does when another execution runs one on the same thread. Default: it fails at once.
    pub fn when_held(mut self, when_held: WhenHeld) -> Self {
        self.settings.lease.when_held = when_held;
        self
    }

    /// Who runs turns here, in words for those who find a thread held: a program, a host, a process.
    pub fn owner(mut self, owner: impl Into<Arc<str>>) -> Self {
        self.settings.lease.owner = owner.into();
        self
    }

    /// Checks everything and makes the engine.
    ///
    /// # Errors
    /// Names the layer or option and the field that is not as it must be: duplicate or empty ids, budgets that
    /// make no sense, schemas that are none, tool names that clash, layers or a policy that would undo each other.
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
            instructions: Instructions::new(self.instructions, &*self.counter),
            counter: self.counter,
            host: self.host,
            settings: self.settings,
            observer: self.observer,
            eventual: Arc::new(EventualCache::default()),
            endings: Endings::default(),
        };
        Ok(Engine { core: Arc::new(core), shape: PhantomData })
    }
}

/// Says whose run it is before it starts.
#[must_use = "call `start` to open the thread"]
pub struct ExecutionBuilder<Ls> {
    core: Arc<Core>,
    thread: ThreadId,
    resources: Resources,
    shape: PhantomData<fn() -> Ls>,
}

impl<Ls> ExecutionBuilder<Ls> {
    /// The user that the thread belongs to: the resource of layers that name no other kind.
    pub fn resource(self, resource: impl Into<ResourceId>) -> Self {
        self.resource_of(ResourceKind::user(), resource)
    }

    /// A resource of some kind that the thread belongs to, such as a project.
    ///
    /// A layer says with [`LayerSpec::with_resource`](crate::layer::LayerSpec::with_resource) to which kind it belongs.
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
        let beginning = Beginning { id, thread: self.thread, resources: self.resources, parent: None };
        let mut execution = Execution::new(self.core, beginning);
        execution.open().await?;
        Ok(execution)
    }
}
