//! The shared part of an execution: its layers, their states and locks, its context.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use tokio::sync::{Mutex, OwnedRwLockReadGuard, RwLockWriteGuard};

use super::abort::AbortHandle;
use super::core::Core;
use super::end_progress::EndProgress;
use super::eventual::ScopeKey;
use super::lease::TurnLease;
use super::roster::Roster;
use super::scope::OwnerScope;
use super::toolbox::Toolbox;
use crate::id::{ExecutionId, IdMap, LayerId};
use crate::layer::*;
use crate::log::{ItemLog, SharedLog};
use crate::model::Usage;
use crate::store::ScopedStorage;

/// The part of an execution that is shared with handles and background tasks.
pub(crate) struct SharedExecution {
    core: Arc<Core>,
    id: ExecutionId,
    roster: RwLock<Arc<Roster>>,
    toolbox: RwLock<Arc<Toolbox>>,
    context: RwLock<Arc<ContextData>>,
    /// The conversation so far, for functions, which may be called outside of turns.
    log: SharedLog,
    /// The conversation for background recalls.
    background: RwLock<Background>,
    /// Held by every background recall, so that the execution does not end in the meantime.
    refreshing: Arc<tokio::sync::RwLock<()>>,
    /// The lease of the running turn.
    lease: TurnLease,
    /// The execution has ended.
    ended: AtomicBool,
    /// Its parent was aborted, and has ended it or is about to.
    closed: AtomicBool,
    /// The progress of its end.
    ending: Arc<Mutex<EndProgress>>,
    /// The executions that it started and that may still exist.
    children: std::sync::Mutex<Vec<Weak<SharedExecution>>>,
    /// The execution that started this one.
    parent: Option<Arc<SharedExecution>>,
    abort: AbortHandle,
    /// One lock for each layer: its hooks and functions never run at the same time.
    locks: RwLock<IdMap<LayerId, Arc<Mutex<()>>>>,
}

/// The conversation for background recalls, as of the last turn.
#[derive(Clone, Default)]
pub(crate) struct Background {
    pub(crate) log: ItemLog,
    pub(crate) query: Arc<str>,
}

impl SharedExecution {
    pub(crate) fn new(core: Arc<Core>, context: ContextData, parent: Option<Arc<SharedExecution>>) -> Self {
        let abort = AbortHandle::default();
        if let Some(parent) = &parent {
            parent.abort.add_child(&abort);
        }
        let locks = core.roster.by_registration().map(|layer| (layer.spec().id.clone(), Arc::default())).collect();
        Self {
            id: context.execution_id.clone(),
            roster: RwLock::new(core.roster.clone()),
            toolbox: RwLock::new(core.toolbox.clone()),
            context: RwLock::new(Arc::new(context)),
            log: SharedLog::default(),
            locks: RwLock::new(locks),
            background: RwLock::default(),
            refreshing: Arc::default(),
            lease: TurnLease::default(),
            ended: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            ending: Arc::default(),
            children: std::sync::Mutex::default(),
            parent,
            abort,
            core,
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn id(&self) -> &ExecutionId {
        &self.id
    }

    pub(crate) fn roster(&self) -> Arc<Roster> {
        self.roster.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn toolbox(&self) -> Arc<Toolbox> {
        self.toolbox.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_layers(&self, roster: Roster, toolbox: Toolbox) {
        let locks = &mut *self.locks.write().unwrap_or_else(PoisonError::into_inner);
        for layer in roster.by_registration() {
            locks.entry(layer.spec().id.clone()).or_default();
        }
        *self.roster.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(roster);
        *self.toolbox.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(toolbox);
    }

    pub(crate) fn context_data(&self) -> Arc<ContextData> {
        self.context.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a model call of the agent, with its usage.
    pub(crate) fn count_call(&self, usage: &Usage, cost: f64) {
        self.update_context(|context| context.step_number += 1);
        self.count_usage(usage, cost);
    }

    /// Adds what a call cost, of the agent or of a layer, to this execution and its parents.
    pub(crate) fn count_usage(&self, usage: &Usage, cost: f64) {
        for shared in std::iter::once(self).chain(self.ancestors()) {
            shared.update_context(|context| {
                context.token_usage.input += usage.input_tokens;
                context.token_usage.output += usage.output_tokens;
                context.token_usage.cache_read += usage.cache_read_tokens.unwrap_or(0);
                context.token_usage.cache_write += usage.cache_write_tokens.unwrap_or(0);
                context.cost += cost;
            });
        }
    }

    /// The executions that it was started by, the nearest first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &SharedExecution> {
        std::iter::successors(self.parent.as_deref(), |shared| shared.parent.as_deref())
    }

    /// The handle that aborts its turn.
    pub(crate) fn abort(&self) -> &AbortHandle {
        &self.abort
    }

    fn update_context(&self, update: impl FnOnce(&mut ContextData)) {
        update(Arc::make_mut(&mut self.context.write().unwrap_or_else(PoisonError::into_inner)));
    }

    /// The lease of the running turn.
    pub(crate) fn turn_lease(&self) -> &TurnLease {
        &self.lease
    }

    pub(crate) fn log(&self) -> &SharedLog {
        &self.log
    }

    /// The context for one hook run or function call.
    pub(crate) fn context(&self) -> ExecutionContext {
        let trace = if self.core.observer.is_some() { HookTrace::watched() } else { HookTrace::default() };
        ExecutionContext { data: self.context_data(), log: self.log.clone(), trace }
    }

    pub(crate) fn fault(&self, layer: Option<&LayerId>, place: &'static str, message: String) {
        self.core.fault(&self.id, layer, place, message);
    }

    pub(crate) fn state(&self, layer: &LayerId) -> Option<StateValue> {
        self.core.states.get_erased(&self.id, layer)
    }

    /// Applies a state change; `false` if there was none.
    pub(crate) fn set_state(&self, layer: &LayerRef, change: StateChange<StateValue>) -> bool {
        let state = match change {
            StateChange::Keep => return false,
            StateChange::Set(state) => Some(state),
            StateChange::Clear => None,
        };
        self.core.states.set_erased(&self.id, &layer.spec().id, state);
        true
    }

    /// Whether the layer is initialised and not disabled in this execution.
    pub(crate) fn is_running(&self, layer: &LayerRef) -> bool {
        let (present, disabled) = self.core.states.standing(&self.id, &layer.spec().id);
        let uninitialised = layer.may_have(Hook::Init) && !present;
        !uninitialised && !disabled && !self.ended.load(Ordering::Relaxed)
    }

    /// Marks the execution as ended.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Marks the execution as ended by its parent: the program can do nothing more with it.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Whether its parent ended it.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// The progress of its end.
    pub(crate) fn ending(&self) -> &Arc<Mutex<EndProgress>> {
        &self.ending
    }

    /// Notes that it started a child.
    pub(crate) fn add_child(&self, child: &Arc<SharedExecution>) {
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain(|child| child.strong_count() > 0);
        children.push(Arc::downgrade(child));
    }

    /// The children that still exist, in the order in which they were started.
    pub(crate) fn take_children(&self) -> Vec<Arc<SharedExecution>> {
        let children = std::mem::take(&mut *self.children.lock().unwrap_or_else(PoisonError::into_inner));
        children.iter().filter_map(Weak::upgrade).collect()
    }

    /// The lock of a layer.
    pub(crate) fn lock_of(&self, layer: &LayerId) -> Arc<Mutex<()>> {
        let locks = self.locks.read().unwrap_or_else(PoisonError::into_inner);
        locks.get(layer).cloned().unwrap_or_default()
    }

    /// The scope of a layer in this execution.
    ///
    /// Without a resource, a resource scope is the thread's own scope, so that a thread and a resource of the same name
    /// do not collide.
    pub(crate) fn scope_of(&self, spec: &LayerSpec) -> OwnerScope {
        let context = self.context_data();
        let of_thread = || OwnerScope::new(MemoryScope::Thread.as_str(), context.thread_id.as_str());
        match (spec.scope, context.resources.get(&spec.resource)) {
            (MemoryScope::Resource, Some(resource)) => OwnerScope::of_resource(&spec.resource, resource),
            (MemoryScope::Resource, None) | (MemoryScope::Thread, _) => of_thread(),
            (MemoryScope::Global, _) => OwnerScope::new(MemoryScope::Global.as_str(), "all"),
            (MemoryScope::Execution, _) => {
                OwnerScope::new(MemoryScope::Execution.as_str(), context.execution_id.as_str())
            }
        }
    }

    /// Whether a layer's state here and in another execution is the same stored record.
    pub(crate) fn share_scope(&self, other: &SharedExecution, layer: &LayerRef) -> bool {
        let spec = layer.spec();
        spec.scope != MemoryScope::Execution && self.scope_of(spec) == other.scope_of(spec)
    }

    /// A layer's part of the store.
    pub(crate) fn storage_of(&self, layer: &LayerRef) -> ScopedStorage {
        let spec = layer.spec();
        ScopedStorage::new(self.core.store.clone(), self.scope_of(spec).prefix(&spec.id))
    }

    pub(crate) fn is_eventual(&self, layer: &LayerRef) -> bool {
        layer.spec().recall_mode == RecallMode::Eventual && !self.core.settings.force_atomic_recall
    }

    /// The cache key of an eventual layer.
    pub(crate) fn cache_key(&self, layer: &LayerRef) -> ScopeKey {
        let spec = layer.spec();
        (spec.id.clone(), self.scope_of(spec).prefix(&spec.id))
    }

    pub(crate) fn background(&self) -> Background {
        self.background.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the conversation for background recalls to the current one.
    pub(crate) fn keep_for_background(&self, log: &ItemLog, query: &Arc<str>) {
        if self.roster().by_slot().any(|layer| self.is_eventual(layer)) {
            let background = Background { log: log.clone(), query: query.clone() };
            *self.background.write().unwrap_or_else(PoisonError::into_inner) = background;
        }
    }

    /// Keeps the execution from ending while it is held; `None` if it is ending.
    pub(crate) fn stay_open(&self) -> Option<OwnedRwLockReadGuard<()>> {
        self.refreshing.clone().try_read_owned().ok()
    }

    /// Waits until no background recall of this execution is running, and prevents new ones while the returned guard is
    /// held.
    pub(crate) async fn end_refreshing(&self) -> RwLockWriteGuard<'_, ()> {
        let nothing_runs = self.refreshing.write().await;
        let passing = |layer: &&LayerRef| layer.spec().scope == MemoryScope::Execution && self.is_eventual(layer);
        for layer in self.roster().by_registration().filter(passing) {
            self.core.eventual.forget(&self.cache_key(layer));
        }
        nothing_runs
    }
}
