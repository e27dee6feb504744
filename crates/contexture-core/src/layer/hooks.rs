//! What each hook is given and what each may return.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::context::ExecutionContext;
use super::spec::RerenderTiming;
use crate::decision::Decision;
use crate::history::History;
use crate::item::{FunctionCall, Item};
use crate::log::ItemLog;
use crate::model::LlmResponse;
use crate::store::ScopedStorage;

/// A change of state that a hook asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StateChange<S> {
    /// The state stays as it is.
    #[default]
    Keep,
    /// This is the state from now on.
    Set(S),
    /// The state is empty from now on, and its durable record is deleted.
    Clear,
}

impl<S> StateChange<S> {
    /// The same change with another form of the state.
    pub(crate) fn map<T>(self, form: impl FnOnce(S) -> T) -> StateChange<T> {
        match self {
            StateChange::Keep => StateChange::Keep,
            StateChange::Set(state) => StateChange::Set(form(state)),
            StateChange::Clear => StateChange::Clear,
        }
    }
}

/// What `init` is given.
#[non_exhaustive]
pub struct InitParams<S> {
    /// The layer's own corner of the store.
    pub storage: ScopedStorage,
    /// The scope that this execution gives the layer: `thread:main`, `resource:ann`, `resource.project:site`,
    /// `global:all`.
    pub scope_key: String,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The state that the last execution in this scope left.
    pub stored: Option<S>,
}

/// What `init` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct InitResult<S> {
    /// The first state.
    pub state: S,
}

impl<S> InitResult<S> {
    /// This is the first state.
    pub fn new(state: S) -> Self {
        Self { state }
    }
}

impl<S> From<S> for InitResult<S> {
    fn from(state: S) -> Self {
        Self { state }
    }
}

/// What `on_item_append` is given.
#[non_exhaustive]
pub struct OnItemAppendParams<S: ?Sized> {
    /// What is about to be logged, as the layers before let it through.
    pub items: Vec<Item>,
    /// The log before these items.
    pub log: ItemLog,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
}

/// What `on_item_append` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct OnItemAppendResult<S> {
    /// What shall be logged instead.
    pub items: Vec<Item>,
    /// The new state; `None` keeps the old.
    pub state: Option<S>,
    /// A wish to be recalled again.
    pub rerender: Option<Rerender>,
}

impl<S> OnItemAppendResult<S> {
    /// These items, nothing else.
    pub fn items(items: Vec<Item>) -> Self {
        Self { items, state: None, rerender: None }
    }

    /// The same with a new state.
    pub fn with_state(mut self, state: S) -> Self {
        self.state = Some(state);
        self
    }

    /// The same with a re-render.
    pub fn with_rerender(mut self, rerender: Rerender) -> Self {
        self.rerender = Some(rerender);
        self
    }
}

/// A wish to have layers recalled again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rerender {
    /// When; `None` is the layer's own default.
    pub timing: Option<RerenderTiming>,
    /// Which layers.
    pub scope: RerenderScope,
}

/// Which layers a [`Rerender`] concerns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RerenderScope {
    /// The layer that asks.
    #[default]
    OwnLayer,
    /// Its slot and all after it.
    SlotAndAfter,
    /// All layers.
    All,
}

/// What `recall` is given.
#[non_exhaustive]
pub struct RecallParams<S: ?Sized> {
    /// The whole conversation.
    pub log: ItemLog,
    /// The text of the newest user message.
    pub query: Arc<str>,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
    /// How many tokens the answer may have.
    pub budget: u64,
}

/// What `recall` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct RecallResult<S> {
    /// What the model is told.
    pub items: RecallItems,
    /// Its tokens, if the layer counted them; they are counted again.
    pub token_count: Option<u64>,
    /// The new state; `None` keeps the old.
    pub state: Option<S>,
    /// A wish to have layers recalled again.
    pub rerender: Option<Rerender>,
}

/// What a layer tells the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RecallItems {
    /// Nothing this time.
    #[default]
    Nothing,
    /// Text, which the engine wraps in a developer message that names the layer.
    Text(String),
    /// Whole items, shown as they are.
    Items(Vec<Item>),
}

impl<S> RecallResult<S> {
    /// Contributes nothing.
    pub fn nothing() -> Self {
        Self { items: RecallItems::Nothing, token_count: None, state: None, rerender: None }
    }

    /// Contributes whole items.
    pub fn items(items: Vec<Item>) -> Self {
        Self { items: RecallItems::Items(items), ..Self::nothing() }
    }

    /// The same with a new state.
    pub fn with_state(mut self, state: S) -> Self {
        self.state = Some(state);
        self
    }

    /// The same with a re-render.
    pub fn with_rerender(mut self, rerender: Rerender) -> Self {
        self.rerender = Some(rerender);
        self
    }
}

impl<S> From<String> for RecallResult<S> {
    fn from(text: String) -> Self {
        let items = if text.is_empty() { RecallItems::Nothing } else { RecallItems::Text(text) };
        Self { items, ..Self::nothing() }
    }
}

impl<S> From<&str> for RecallResult<S> {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl<S> From<Option<String>> for RecallResult<S> {
    fn from(text: Option<String>) -> Self {
        text.unwrap_or_default().into()
    }
}

/// What is known of the provider's cache before a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// It holds the last request, as far as is known: a change bills everything after it again.
    #[default]
    Warm,
    /// It holds nothing that the next request begins with: all of it is billed in full, whatever is changed.
    Cold,
}

/// What `project_history` is given.
#[non_exhaustive]
pub struct ProjectHistoryParams<S: ?Sized> {
    /// The past as the layers before left it.
    pub history: History,
    /// What this layer decided before, in this thread, oldest first.
    pub decisions: Arc<Vec<Decision>>,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
    /// How many tokens history may use.
    pub budget: u64,
    /// Whether changing what was sent before costs anything.
    pub cache: CacheState,
}

/// What `project_history` returns.
#[derive(Clone, Debug)]
pub struct ProjectHistoryResult {
    /// The past to be shown.
    pub history: History,
    /// What was decided anew, with the reason; committed with this step.
    pub decisions: Vec<NewDecision>,
}

impl From<History> for ProjectHistoryResult {
    fn from(history: History) -> Self {
        Self { history, decisions: Vec::new() }
    }
}

/// A decision that a layer makes.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDecision {
    /// What was done, in the layer's own words.
    pub what: Value,
    /// Why, in plain words.
    pub reason: String,
    /// What it cost and saves, if that was reckoned.
    pub price: Option<crate::decision::Price>,
}

/// A layer's word on a tool call or a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteeringDecision {
    /// Let it pass.
    #[default]
    Allow,
    /// Stop it.
    Deny {
        /// Why, for the model or the caller.
        reason: String,
    },
    /// Have it done differently: a tool call does not run and this advice is its output; a response is tried again
    /// with it. Empty advice, or white space alone, is the same as [`Allow`](SteeringDecision::Allow).
    Guide {
        /// The advice.
        guidance: String,
    },
}

impl SteeringDecision {
    /// Let it pass.
    pub fn allow() -> Self {
        SteeringDecision::Allow
    }

    /// Stop it, for this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        SteeringDecision::Deny { reason: reason.into() }
    }

    /// Have it done differently, with this advice.
    pub fn guide(guidance: impl Into<String>) -> Self {
        SteeringDecision::Guide { guidance: guidance.into() }
    }
}

/// What `before_tool_call` is given.
#[non_exhaustive]
pub struct BeforeToolCallParams<S: ?Sized> {
    /// The tool's public name: `layer/function`, or its own name.
    pub tool_name: Arc<str>,
    /// The call as the model wrote it.
    pub call: Arc<FunctionCall>,
    /// The log so far.
    pub log: ItemLog,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
}

/// What `before_tool_call` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct BeforeToolCallResult<S> {
    /// The layer's word.
    pub decision: SteeringDecision,
    /// The new state; `None` keeps the old.
    pub state: Option<S>,
}

impl<S> From<SteeringDecision> for BeforeToolCallResult<S> {
    fn from(decision: SteeringDecision) -> Self {
        Self { decision, state: None }
    }
}

impl<S> BeforeToolCallResult<S> {
    /// Let it pass.
    pub fn allow() -> Self {
        SteeringDecision::Allow.into()
    }

    /// Stop it, for this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        SteeringDecision::deny(reason).into()
    }

    /// Have it done differently, with this advice.
    pub fn guide(guidance: impl Into<String>) -> Self {
        SteeringDecision::guide(guidance).into()
    }

    /// The same with a new state.
    pub fn with_state(mut self, state: S) -> Self {
        self.state = Some(state);
        self
    }
}

/// What `after_model_call` is given.
#[non_exhaustive]
pub struct AfterModelCallParams<S: ?Sized> {
    /// The response, not logged yet.
    pub response: Arc<LlmResponse>,
    /// The log before it.
    pub log: ItemLog,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
}

/// What `after_model_call` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct AfterModelCallResult<S> {
    /// The layer's word.
    pub decision: SteeringDecision,
    /// The new state; `None` keeps the old.
    pub state: Option<S>,
}

impl<S> From<SteeringDecision> for AfterModelCallResult<S> {
    fn from(decision: SteeringDecision) -> Self {
        Self { decision, state: None }
    }
}

impl<S> AfterModelCallResult<S> {
    /// Let it pass.
    pub fn allow() -> Self {
        SteeringDecision::Allow.into()
    }

    /// Stop it, for this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        SteeringDecision::deny(reason).into()
    }

    /// Have it done differently, with this advice.
    pub fn guide(guidance: impl Into<String>) -> Self {
        SteeringDecision::guide(guidance).into()
    }

    /// The same with a new state.
    pub fn with_state(mut self, state: S) -> Self {
        self.state = Some(state);
        self
    }
}

/// What `store` is given.
#[non_exhaustive]
pub struct StoreParams<S: ?Sized> {
    /// The items of the response, in order.
    pub new_items: Arc<[Arc<Item>]>,
    /// The whole conversation, with the new items.
    pub log: ItemLog,
    /// The response.
    pub response: Arc<LlmResponse>,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
}

/// What `store` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreResult<S> {
    /// What becomes of the state.
    pub state: StateChange<S>,
}

impl<S> StoreResult<S> {
    /// The state stays as it is.
    pub fn keep() -> Self {
        Self { state: StateChange::Keep }
    }

    /// This is the state from now on.
    pub fn set(state: S) -> Self {
        Self { state: StateChange::Set(state) }
    }

    /// The state is empty from now on.
    pub fn clear() -> Self {
        Self { state: StateChange::Clear }
    }
}

/// What `on_spawn` is given.
#[non_exhaustive]
pub struct SpawnParams<S: ?Sized> {
    /// The state of this layer in the parent.
    pub parent_state: Arc<S>,
    /// Where the child will run.
    pub child_ctx: ExecutionContext,
}

/// What `on_spawn` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct SpawnResult<S> {
    /// The child's state; `None`: the layer is not carried into the child.
    ///
    /// In a scope that parent and child share it is where the child starts, and is not written there.
    pub child_state: Option<S>,
    /// Items that the child's log begins with.
    pub items: Vec<Item>,
}

impl<S> SpawnResult<S> {
    /// The layer is not carried into the child.
    pub fn nothing() -> Self {
        Self { child_state: None, items: Vec::new() }
    }

    /// The child starts with this state.
    pub fn state(child_state: S) -> Self {
        Self { child_state: Some(child_state), items: Vec::new() }
    }

    /// The same with items that the child's log begins with.
    pub fn with_items(mut self, items: Vec<Item>) -> Self {
        self.items = items;
        self
    }
}

/// What `on_return` is given.
#[non_exhaustive]
pub struct ReturnParams<S: ?Sized> {
    /// The child's last state.
    pub child_state: Arc<S>,
    /// The child's log.
    pub child_log: ItemLog,
    /// The state of this layer in the parent.
    pub parent_state: Arc<S>,
    /// What the child came to, as the layers before left it.
    pub result: Value,
    /// Where the parent runs.
    pub ctx: ExecutionContext,
}

/// What `on_return` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct ReturnResult<S> {
    /// The parent's new state; `None` keeps the old. In a scope that both share it takes the place of what the child
    /// wrote there.
    pub parent_state: Option<S>,
    /// What the child came to, changed; `None` passes it on.
    pub result: Option<Value>,
}

impl<S> ReturnResult<S> {
    /// The parent stays as it is.
    pub fn keep() -> Self {
        Self { parent_state: None, result: None }
    }

    /// The parent's state from now on.
    pub fn state(parent_state: S) -> Self {
        Self { parent_state: Some(parent_state), result: None }
    }

    /// The same with another result of the child.
    pub fn with_result(mut self, result: Value) -> Self {
        self.result = Some(result);
        self
    }
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionOutcome {
    /// As it should.
    Success,
    /// With an error.
    Failure,
    /// It was stopped, or dropped without a word.
    Aborted,
}

/// What `on_complete` is given.
#[non_exhaustive]
pub struct CompleteParams<S: ?Sized> {
    /// The whole conversation.
    pub log: ItemLog,
    /// Where the hook runs.
    pub ctx: ExecutionContext,
    /// The layer's state.
    pub state: Arc<S>,
    /// How the execution ended.
    pub outcome: ExecutionOutcome,
}

/// What `on_complete` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct CompleteResult<S> {
    /// What becomes of the state.
    pub state: StateChange<S>,
}

impl<S> CompleteResult<S> {
    /// The state stays as it is.
    pub fn keep() -> Self {
        Self { state: StateChange::Keep }
    }

    /// This is the state from now on.
    pub fn set(state: S) -> Self {
        Self { state: StateChange::Set(state) }
    }

    /// The state is empty from now on.
    pub fn clear() -> Self {
        Self { state: StateChange::Clear }
    }
}

/// What `dispose` is given.
#[non_exhaustive]
pub struct DisposeParams<S: ?Sized> {
    /// The layer's last state.
    pub state: Arc<S>,
}
