//! The context of a hook.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::state::{LayerState, StateReader};
use super::trace::HookTrace;
use crate::clock::Clock;
use crate::error::BoxError;
use crate::host::{FsAdapter, ShellAdapter};
use crate::id::{ExecutionId, ResourceId, ResourceKind, ThreadId};
use crate::log::{ItemLog, SharedLog};
use crate::model::{DynModel, LlmResponse, MemoryCallModelRequest, ModelRequest, Usage};
use crate::search::SearchIndex;
use crate::tokens::TokenCounter;

/// The context of a hook: the execution it runs in, and access to files, shell, search, time and model.
///
/// Cheap to clone. The fields are those of [`ContextData`].
#[derive(Clone)]
pub struct ExecutionContext {
    pub(crate) data: Arc<ContextData>,
    pub(crate) log: SharedLog,
    /// Attributes and events for the span of this hook run.
    pub trace: HookTrace,
}

/// The fields of an [`ExecutionContext`].
#[derive(Clone)]
#[non_exhaustive]
pub struct ContextData {
    /// The execution.
    pub execution_id: ExecutionId,
    /// The conversation.
    pub thread_id: ThreadId,
    /// The user that it belongs to.
    pub resource_id: Option<ResourceId>,
    /// All resources that it belongs to, the user among them.
    pub resources: Resources,
    /// 0 for an execution that was not spawned, one more for each level of parents.
    pub depth: u32,
    /// Counts the model calls of this execution, from 0.
    pub step_number: u64,
    /// Tokens of all model calls of this execution so far, those of layers among them.
    pub token_usage: TokenUsage,
    /// Their cost in money, as far as the model client reported it.
    pub cost: f64,
    /// Access to files.
    pub fs: Arc<dyn FsAdapter>,
    /// Access to a shell.
    pub shell: Arc<dyn ShellAdapter>,
    /// Time. Use only this clock, so that tests can control time.
    pub clock: Arc<dyn Clock>,
    /// Full-text search. A layer keeps its documents under the `scope_key` that its `init` gets.
    pub search: Arc<dyn SearchIndex>,
    /// The model, if there is one; a layer must also work without it.
    pub call_model: Option<ModelCaller>,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) states: Arc<dyn StateReader>,
}

/// The resources that an execution belongs to, one of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources(BTreeMap<ResourceKind, ResourceId>);

impl Resources {
    /// The resource of that kind.
    pub fn get(&self, kind: &ResourceKind) -> Option<&ResourceId> {
        self.0.get(kind)
    }

    /// All of them, by kind.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceKind, &ResourceId)> {
        self.0.iter()
    }

    pub(crate) fn insert(&mut self, kind: ResourceKind, resource: ResourceId) {
        self.0.insert(kind, resource);
    }
}

/// Input and output tokens as the provider reported them, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// How many input tokens the provider read from its cache.
    #[serde(default)]
    pub cache_read: u64,
    /// How many input tokens the provider wrote to its cache.
    #[serde(default)]
    pub cache_write: u64,
}

impl ExecutionContext {
    /// The conversation as it is now.
    ///
    /// A function has no other way to it; a hook is given the log that it is about.
    pub fn log(&self) -> ItemLog {
        self.log.get()
    }

    /// Returns the number of tokens of `text`.
    pub fn tokenize(&self, text: &str) -> u64 {
        self.data.counter.count(text)
    }

    /// The counter that budgets are measured with, as a shared pointer.
    pub fn shared_counter(&self) -> Arc<dyn TokenCounter> {
        self.data.counter.clone()
    }

    /// The counter that budgets are measured with.
    pub fn counter(&self) -> &dyn TokenCounter {
        &*self.data.counter
    }

    /// A snapshot of another layer's state, by that layer's id.
    ///
    /// `None` if there is no such layer, if it has no state, or if its state is of another type.
    pub fn read_layer_state<T: LayerState>(&self, layer_id: &str) -> Option<T> {
        let state = self.data.states.read(&self.data.execution_id, &layer_id.into())?;
        Some(Arc::unwrap_or_clone(state.downcast()?))
    }
}

impl Deref for ExecutionContext {
    type Target = ContextData;

    fn deref(&self) -> &ContextData {
        &self.data
    }
}

/// Calls the model on behalf of a layer.
#[derive(Clone)]
pub struct ModelCaller {
    model: Arc<dyn DynModel>,
    account: UsageRecorder,
}

/// Adds the usage and the cost of a call to the totals of an execution.
pub(crate) type UsageRecorder = Arc<dyn Fn(&Usage, f64) + Send + Sync>;

impl ModelCaller {
    pub(crate) fn new(model: Arc<dyn DynModel>, account: UsageRecorder) -> Self {
        Self { model, account }
    }

    /// Calls the model. No hook runs and nothing is logged; its usage and cost count as the execution's.
    ///
    /// # Errors
    /// Returns the error of the model client.
    pub async fn call(&self, request: MemoryCallModelRequest) -> Result<LlmResponse, BoxError> {
        let items = request.items.into_iter().map(Arc::new).collect();
        let mut wire = ModelRequest::new(request.instructions.unwrap_or_default(), items);
        wire.model = Some(request.model).filter(|model| !model.is_empty());
        let response = self.model.call(wire).await?;
        (self.account)(&response.usage, response.cost.unwrap_or(0.0));
        Ok(response)
    }
}

impl fmt::Debug for ModelCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelCaller")
    }
}
