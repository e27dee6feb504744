//! Layers behind a pointer: the same hooks with the state's type erased.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::provides::FnFailure;
use super::*;
use crate::decision::Decision;
use crate::history::History;
use crate::item::{FunctionCall, Item};
use crate::log::ItemLog;
use crate::model::LlmResponse;
use crate::store::ScopedStorage;

/// A state of any layer, with the way to its JSON form.
#[derive(Clone)]
pub(crate) struct StateValue {
    value: Arc<dyn Any + Send + Sync>,
    encode: fn(&(dyn Any + Send + Sync)) -> Result<Vec<u8>, serde_json::Error>,
}

impl StateValue {
    pub(crate) fn new<S: LayerState>(state: S) -> Self {
        let encode = |value: &(dyn Any + Send + Sync)| {
            serde_json::to_vec(value.downcast_ref::<S>().expect("encoded by the type it was made of"))
        };
        Self { value: Arc::new(state), encode }
    }

    /// The state as JSON; an error also if the layer's own code panics over it.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let encoded = without_panic(|| (self.encode)(&*self.value));
        encoded.unwrap_or_else(|panic| Err(serde::ser::Error::custom(format!("panicked: {panic}"))))
    }

    /// Whether this is the very same state, not only an equal one.
    pub(crate) fn is_same(&self, other: &StateValue) -> bool {
        Arc::ptr_eq(&self.value, &other.value)
    }

    pub(crate) fn downcast<S: LayerState>(&self) -> Option<Arc<S>> {
        self.value.clone().downcast().ok()
    }
}

/// A layer as the engine holds it.
pub(crate) type LayerRef = Arc<dyn DynLayer>;

/// A function of a layer as the engine holds it.
pub(crate) struct ErasedFunction {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input: Value,
    pub(crate) output: Value,
    /// Whether the schemas were given as JSON and so may be wrong.
    pub(crate) given: bool,
}

/// [`MemoryLayer`] behind a pointer. A cleared state is passed as `None` and read as the default.
pub(crate) trait DynLayer: Send + Sync {
    fn spec(&self) -> &LayerSpec;
    fn functions(&self) -> &[ErasedFunction];
    /// Whether this is a layer of that type.
    fn type_id(&self) -> TypeId;
    /// Names declared as data.
    fn data_names(&self) -> Vec<&str>;
    /// Whether the layer may have that hook; `false` once it is known not to.
    fn may_have(&self, hook: Hook) -> bool;
    fn mark_absent(&self, hook: Hook);

    fn decode(&self, bytes: &[u8]) -> Result<StateValue, String>;
    fn merge(&self, ours: &StateValue, theirs: &StateValue) -> Option<StateValue>;
    /// `Err`: it panicked, with this text.
    fn render_delta(&self, pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Result<Option<String>, String>;
    fn read(&self, name: &str, state: Option<&StateValue>) -> Option<Box<dyn Any + Send>>;
    fn read_json(&self, name: &str, state: Option<&StateValue>) -> Option<Value>;

    fn execute(
        &self,
        function: &str,
        arguments: Value,
        state: Option<StateValue>,
        ctx: ExecutionContext,
    ) -> Option<BoxFuture<'static, Result<FnResult<Value, StateValue>, FnFailure>>>;

    fn init(
        &self,
        storage: ScopedStorage,
        scope_key: String,
        ctx: ExecutionContext,
        stored: Option<StateValue>,
    ) -> BoxFuture<'_, HookResult<StateValue>>;

    fn on_item_append(
        &self,
        state: Option<StateValue>,
        items: Vec<Item>,
        log: ItemLog,
        ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<OnItemAppendResult<StateValue>>>;

    fn recall(
        &self,
        state: Option<StateValue>,
        log: ItemLog,
        query: Arc<str>,
        ctx: ExecutionContext,
        budget: u64,
    ) -> BoxFuture<'_, HookResult<RecallResult<StateValue>>>;

    fn project_history(
        &self,
        state: Option<StateValue>,
        history: History,
        decisions: Arc<Vec<Decision>>,
        ctx: ExecutionContext,
        budget: u64,
        cache: CacheState,
    ) -> BoxFuture<'_, HookResult<ProjectHistoryResult>>;

    fn before_tool_call(
        &self,
        state: Option<StateValue>,
        tool_name: Arc<str>,
        call: Arc<FunctionCall>,
        log: ItemLog,
        ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<BeforeToolCallResult<StateValue>>>;

    fn after_model_call(
        &self,
        state: Option<StateValue>,
        response: Arc<LlmResponse>,
        log: ItemLog,
        ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<AfterModelCallResult<StateValue>>>;

    fn store(
        &self,
        state: Option<StateValue>,
        new_items: Arc<[Arc<Item>]>,
        log: ItemLog,
        response: Arc<LlmResponse>,
        ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<StateChange<StateValue>>>;

    fn on_spawn(
        &self,
        parent_state: Option<StateValue>,
        child_ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<SpawnResult<StateValue>>>;

    fn on_return(
        &self,
        child_state: Option<StateValue>,
        child_log: ItemLog,
        parent_state: Option<StateValue>,
        result: Value,
        ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<ReturnResult<StateValue>>>;

    fn on_complete(
        &self,
        state: Option<StateValue>,
        log: ItemLog,
        ctx: ExecutionContext,
        outcome: ExecutionOutcome,
    ) -> BoxFuture<'_, HookResult<StateChange<StateValue>>>;

    fn dispose(&self, state: Option<StateValue>) -> BoxFuture<'_, HookResult<()>>;
}

impl dyn DynLayer {
    /// Whether this is a layer of the type `L`.
    pub(crate) fn is_made_by<L: MemoryLayer>(&self) -> bool {
        self.type_id() == TypeId::of::<L>()
    }
}

/// Runs code of a layer that answers at once; a panic is answered as its text.
fn without_panic<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(code)).map_err(|panic| panic_text(&*panic))
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// The hooks that a layer writes itself: those whose future is not the one of the defaults.
fn written_hooks<L: MemoryLayer>() -> HookSet {
    /// Takes the method itself and never calls it.
    fn is_written<L: 'static, P, T: 'static, F: Future<Output = HookResult<T>> + 'static>(
        _: fn(&'static L, P) -> F,
    ) -> bool {
        TypeId::of::<F>() != TypeId::of::<Absent<T>>()
    }
    let written = [
        (Hook::Init, is_written(L::init)),
        (Hook::OnItemAppend, is_written(L::on_item_append)),
        (Hook::Recall, is_written(L::recall)),
        (Hook::ProjectHistory, is_written(L::project_history)),
        (Hook::BeforeToolCall, is_written(L::before_tool_call)),
        (Hook::AfterModelCall, is_written(L::after_model_call)),
        (Hook::Store, is_written(L::store)),
        (Hook::OnSpawn, is_written(L::on_spawn)),
        (Hook::OnReturn, is_written(L::on_return)),
        (Hook::OnComplete, is_written(L::on_complete)),
        (Hook::Dispose, is_written(L::dispose)),
    ];
    written.into_iter().filter(|(_, written)| *written).fold(HookSet::NONE, |set, (hook, _)| set.with(hook))
}

/// Erases a layer, reading its spec and what it provides once.
pub(crate) fn erase<L: MemoryLayer>(layer: L) -> LayerRef {
    let provides = layer.provides();
    let functions = provides.entries().iter().filter_map(|(name, declaration)| match declaration {
        LayerDecl::Data(_) => None,
        LayerDecl::Function(function) => Some(ErasedFunction {
            name: name.clone(),
            description: function.description.clone(),
            input: function.input.clone(),
            output: function.output.clone(),
            given: function.given,
        }),
    });
    let functions = functions.collect();
    let absent = layer.hooks().missing_bits() | written_hooks::<L>().missing_bits();
    Arc::new(Erased { spec: layer.spec(), functions, provides, absent: AtomicU16::new(absent), layer })
}

struct Erased<L: MemoryLayer> {
    layer: L,
    spec: LayerSpec,
    provides: LayerProvides<L::State>,
    functions: Vec<ErasedFunction>,
    /// One bit for each hook that the layer does not have, as far as is known.
    absent: AtomicU16,
}

impl<L: MemoryLayer> Erased<L> {
    fn state(&self, state: Option<&StateValue>) -> Arc<L::State> {
        match state {
            Some(state) => state.downcast().expect("a layer's state is of the layer's own type"),
            None => Arc::default(),
        }
    }

    fn data(&self, name: &str) -> Option<&LayerDataDecl<L::State>> {
        self.provides.entries().iter().find_map(|(declared, declaration)| match declaration {
            LayerDecl::Data(data) if declared == name => Some(data),
            _ => None,
        })
    }
}

fn erase_change<S: LayerState>(change: StateChange<S>) -> StateChange<StateValue> {
    match change {
        StateChange::Keep => StateChange::Keep,
        StateChange::Set(state) => StateChange::Set(StateValue::new(state)),
        StateChange::Clear => StateChange::Clear,
    }
}

impl<L: MemoryLayer> DynLayer for Erased<L> {
    fn spec(&self) -> &LayerSpec {
        &self.spec
    }

    fn functions(&self) -> &[ErasedFunction] {
        &self.functions
    }

    fn type_id(&self) -> TypeId {
        TypeId::of::<L>()
    }

    fn data_names(&self) -> Vec<&str> {
        let data = self.provides.entries().iter().filter(|(_, declaration)| matches!(declaration, LayerDecl::Data(_)));
        data.map(|(name, _)| name.as_str()).collect()
    }

    fn may_have(&self, hook: Hook) -> bool {
        self.absent.load(Ordering::Relaxed) & (1 << hook as u16) == 0
    }

    fn mark_absent(&self, hook: Hook) {
        self.absent.fetch_or(1 << hook as u16, Ordering::Relaxed);
    }

    fn decode(&self, bytes: &[u8]) -> Result<StateValue, String> {
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let decoded = without_panic(|| serde_path_to_error::deserialize::<_, L::State>(&mut deserializer));
        let state = decoded.map_err(|panic| format!("panicked: {panic}"))?.map_err(|error| error.to_string())?;
        Ok(StateValue::new(state))
    }

    fn merge(&self, ours: &StateValue, theirs: &StateValue) -> Option<StateValue> {
        // A merge that panics unites nothing: the newer state wins, and a diagnostic says so.
        let united = without_panic(|| self.layer.merge(&self.state(Some(ours)), &self.state(Some(theirs))));
        united.ok().flatten().map(StateValue::new)
    }

    fn render_delta(&self, pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Result<Option<String>, String> {
        without_panic(|| self.layer.render_delta(pinned, current))
    }

    fn read(&self, name: &str, state: Option<&StateValue>) -> Option<Box<dyn Any + Send>> {
        Some((self.data(name)?.read)(&self.state(state)))
    }

    fn read_json(&self, name: &str, state: Option<&StateValue>) -> Option<Value> {
        Some((self.data(name)?.read_json)(&self.state(state)))
    }

    fn execute(
        &self,
        function: &str,
        arguments: Value,
        state: Option<StateValue>,
        ctx: ExecutionContext,
    ) -> Option<BoxFuture<'static, Result<FnResult<Value, StateValue>, FnFailure>>> {
        let execute = self.provides.entries().iter().find_map(|(name, declaration)| match declaration {
            LayerDecl::Function(declared) if name == function => Some(&declared.execute),
            _ => None,
        })?;
        let running = execute(arguments, self.state(state.as_ref()), ctx);
        Some(Box::pin(async move {
            let answer = running.await?;
            Ok(FnResult { result: answer.result, state: answer.state.map(StateValue::new) })
        }))
    }

    fn init(
        &self,
        storage: ScopedStorage,
        scope_key: String,
        ctx: ExecutionContext,
        stored: Option<StateValue>,
    ) -> BoxFuture<'_, HookResult<StateValue>> {
        let stored = stored.map(|state| (*self.state(Some(&state))).clone());
        let running = self.layer.init(InitParams { storage, scope_key, ctx, stored });
        Box::pin(async move { Ok(StateValue::new(running.await?.state)) })
    }

    fn on_item_append(
        &self,
        state: Option<StateValue>,
        items: Vec<Item>,
        log: ItemLog,
        ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<OnItemAppendResult<StateValue>>> {
        let state = self.state(state.as_ref());
        let running = self.layer.on_item_append(OnItemAppendParams { items, log, ctx, state });
        Box::pin(async move {
            let OnItemAppendResult { items, state, rerender } = running.await?;
            Ok(OnItemAppendResult { items, state: state.map(StateValue::new), rerender })
        })
    }

    fn recall(
        &self,
        state: Option<StateValue>,
        log: ItemLog,
        query: Arc<str>,
        ctx: ExecutionContext,
        budget: u64,
    ) -> BoxFuture<'_, HookResult<RecallResult<StateValue>>> {
        let state = self.state(state.as_ref());
        let running = self.layer.recall(RecallParams { log, query, ctx, state, budget });
        Box::pin(async move {
            let RecallResult { items, token_count, state, rerender } = running.await?;
            Ok(RecallResult { items, token_count, state: state.map(StateValue::new), rerender })
        })
    }

    fn project_history(
        &self,
        state: Option<StateValue>,
        history: History,
        decisions: Arc<Vec<Decision>>,
        ctx: ExecutionContext,
        budget: u64,
        cache: CacheState,
    ) -> BoxFuture<'_, HookResult<ProjectHistoryResult>> {
        let state = self.state(state.as_ref());
        Box::pin(self.layer.project_history(ProjectHistoryParams { history, decisions, ctx, state, budget, cache }))
    }

    fn before_tool_call(
        &self,
        state: Option<StateValue>,
        tool_name: Arc<str>,
        call: Arc<FunctionCall>,
        log: ItemLog,
        ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<BeforeToolCallResult<StateValue>>> {
        let state = self.state(state.as_ref());
        let running = self.layer.before_tool_call(BeforeToolCallParams { tool_name, call, log, ctx, state });
        Box::pin(async move {
            let BeforeToolCallResult { decision, state } = running.await?;
            Ok(BeforeToolCallResult { decision, state: state.map(StateValue::new) })
        })
    }

    fn after_model_call(
        &self,
        state: Option<StateValue>,
        response: Arc<LlmResponse>,
        log: ItemLog,
        ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<AfterModelCallResult<StateValue>>> {
        let state = self.state(state.as_ref());
        let running = self.layer.after_model_call(AfterModelCallParams { response, log, ctx, state });
        Box::pin(async move {
            let AfterModelCallResult { decision, state } = running.await?;
            Ok(AfterModelCallResult { decision, state: state.map(StateValue::new) })
        })
    }

    fn store(
        &self,
        state: Option<StateValue>,
        new_items: Arc<[Arc<Item>]>,
        log: ItemLog,
        response: Arc<LlmResponse>,
        ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<StateChange<StateValue>>> {
        let state = self.state(state.as_ref());
        let running = self.layer.store(StoreParams { new_items, log, response, ctx, state });
        Box::pin(async move { Ok(erase_change(running.await?.state)) })
    }

    fn on_spawn(
        &self,
        parent_state: Option<StateValue>,
        child_ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<SpawnResult<StateValue>>> {
        let parent_state = self.state(parent_state.as_ref());
        let running = self.layer.on_spawn(SpawnParams { parent_state, child_ctx });
        Box::pin(async move {
            let SpawnResult { child_state, items } = running.await?;
            Ok(SpawnResult { child_state: child_state.map(StateValue::new), items })
        })
    }

    fn on_return(
        &self,
        child_state: Option<StateValue>,
        child_log: ItemLog,
        parent_state: Option<StateValue>,
        result: Value,
        ctx: ExecutionContext,
    ) -> BoxFuture<'_, HookResult<ReturnResult<StateValue>>> {
        let child_state = self.state(child_state.as_ref());
        let parent_state = self.state(parent_state.as_ref());
        let running = self.layer.on_return(ReturnParams { child_state, child_log, parent_state, result, ctx });
        Box::pin(async move {
            let ReturnResult { parent_state, result } = running.await?;
            Ok(ReturnResult { parent_state: parent_state.map(StateValue::new), result })
        })
    }

    fn on_complete(
        &self,
        state: Option<StateValue>,
        log: ItemLog,
        ctx: ExecutionContext,
        outcome: ExecutionOutcome,
    ) -> BoxFuture<'_, HookResult<StateChange<StateValue>>> {
        let state = self.state(state.as_ref());
        let running = self.layer.on_complete(CompleteParams { log, ctx, state, outcome });
        Box::pin(async move { Ok(erase_change(running.await?.state)) })
    }

    fn dispose(&self, state: Option<StateValue>) -> BoxFuture<'_, HookResult<()>> {
        Box::pin(self.layer.dispose(DisposeParams { state: self.state(state.as_ref()) }))
    }
}
