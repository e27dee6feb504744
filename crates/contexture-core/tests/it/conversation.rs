//! A conversation of many turns with six layers, and the invariants of its stored records.
//!
//! The model's responses depend only on the request, so that the conversation is the same wherever it is interrupted
//! and resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use contexture_core::engine::{Engine, Execution, JournalPolicy};
use contexture_core::error::BoxError;
use contexture_core::layer::*;
use contexture_core::store::StorageAdapter;
use contexture_core::testing::{CountingIds, ManualClock, Recorder};
use contexture_core::tool::ToolContext;
use contexture_core::{Error, Item, LlmResponse, Model, ModelRequest, Role, Slot, Tool, memory};
use serde_json::{Value, json};

/// The thread and the resource that everything happens in.
pub const THREAD: &str = "thread";
pub const RESOURCE: &str = "resource";

/// Counts the items of responses.
pub struct Said;

impl MemoryLayer for Said {
    type State = usize;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("said", Slot::WORKING_MEMORY, MemoryScope::Thread)
    }

    async fn recall(&self, params: RecallParams<usize>) -> HookResult<RecallResult<usize>> {
        Ok(format!("The model has said {} things.", params.state).into())
    }

    async fn store(&self, params: StoreParams<usize>) -> HookResult<StoreResult<usize>> {
        Ok(StoreResult::set(*params.state + params.new_items.len()))
    }
}

/// Counts user messages and tool outputs.
pub struct Heard;

impl MemoryLayer for Heard {
    type State = usize;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("heard", Slot::STEERING, MemoryScope::Thread)
    }

    async fn on_item_append(&self, params: OnItemAppendParams<usize>) -> HookResult<OnItemAppendResult<usize>> {
        let heard = *params.state + params.items.len();
        Ok(OnItemAppendResult::items(params.items).with_state(heard))
    }
}

/// Stores facts through a tool; `merge` unites two sets of facts.
pub struct Facts;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Remember {
    fact: String,
}

impl MemoryLayer for Facts {
    type State = BTreeSet<String>;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("facts", Slot::ENTITY, MemoryScope::Resource)
    }

    fn provides(&self) -> LayerProvides<Self::State> {
        let remember = |input: Remember, facts: Arc<BTreeSet<String>>, _: ExecutionContext| async move {
            let mut facts = Arc::unwrap_or_clone(facts);
            facts.insert(input.fact);
            Ok(FnResult::new(facts.len()).with_state(facts))
        };
        LayerProvides::new().function("remember", layer_fn("Remembers a fact.", remember))
    }

    async fn recall(&self, params: RecallParams<Self::State>) -> HookResult<RecallResult<Self::State>> {
        Ok(params.state.last().cloned().into())
    }

    fn merge(&self, ours: &Self::State, theirs: &Self::State) -> Option<Self::State> {
        Some(ours.union(theirs).cloned().collect())
    }
}

/// Counts the responses of every thread; of two counts of one thread the larger is the newer.
pub struct Census;

impl MemoryLayer for Census {
    type State = BTreeMap<String, usize>;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("census", Slot::EPISODIC, MemoryScope::Global)
    }

    async fn store(&self, params: StoreParams<Self::State>) -> HookResult<StoreResult<Self::State>> {
        let mut census = (*params.state).clone();
        *census.entry(params.ctx.thread_id.to_string()).or_default() += 1;
        Ok(StoreResult::set(census))
    }

    fn merge(&self, ours: &Self::State, theirs: &Self::State) -> Option<Self::State> {
        let mut census = theirs.clone();
        for (thread, count) in ours {
            let known = census.entry(thread.clone()).or_default();
            *known = (*known).max(*count);
        }
        Some(census)
    }
}

/// Stores the last message, and clears it after every fourth response.
pub struct Mood;

impl MemoryLayer for Mood {
    type State = Option<String>;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("mood", Slot::REMINDER, MemoryScope::Thread)
    }

    async fn store(&self, params: StoreParams<Self::State>) -> HookResult<StoreResult<Self::State>> {
        let responses = params.log.iter().filter(|item| item.is_message_of(Role::Assistant)).count();
        Ok(if responses % 4 == 3 { StoreResult::clear() } else { StoreResult::set(Some(format!("mood {responses}"))) })
    }
}

/// Counts its own steps, in this execution only.
pub struct Scratch;

impl MemoryLayer for Scratch {
    type State = u32;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("scratch", Slot::OBSERVATIONS, MemoryScope::Execution)
    }

    async fn recall(&self, params: RecallParams<u32>) -> HookResult<RecallResult<u32>> {
        Ok(RecallResult::from("Scratch.").with_state(*params.state + 1))
    }
}

/// Which layers the conversation has.
pub type Layers = (Said, Heard, Facts, Census, Mood, Scratch);

/// The model: tool calls in the first of three turns, a fact in the second, plain text in the third.
#[derive(Clone, Copy)]
pub struct Speaker;

impl Model for Speaker {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        let position = request.items.iter().rposition(|item| item.is_message_of(Role::User)).expect("a user message");
        let text = request.items[position].as_message().expect("just found").text();
        let answered = request.items[position..].iter().any(|item| item.as_output().is_some());
        let number: usize = text.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default();
        let fact = json!({ "fact": text }).to_string();
        let items = match number % 3 {
            0 if !answered => vec![
                Item::call(&format!("{text}: tick"), "tick", "{}"),
                Item::call(&format!("{text}: fact"), "facts__remember", fact),
                Item::call(&format!("{text}: tock"), "tick", "{}"),
            ],
            1 if !answered => vec![Item::call(&format!("{text}: fact"), "facts__remember", fact)],
            _ => vec![Item::assistant(format!("answer to {text}"))],
        };
        Ok(LlmResponse { items, ..LlmResponse::default() })
    }
}

/// A tool that counts how often each call ran. Clones share the count.
#[derive(Clone, Default)]
pub struct Tick(Arc<Mutex<BTreeMap<String, u32>>>);

impl Tick {
    pub fn runs(&self) -> BTreeMap<String, u32> {
        self.0.lock().unwrap().clone()
    }
}

impl Tool for Tick {
    fn name(&self) -> &str {
        "tick"
    }

    fn description(&self) -> &str {
        "Ticks."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(&self, _: Value, ctx: ToolContext<'_>) -> Result<String, BoxError> {
        *self.0.lock().unwrap().entry(ctx.call_id.to_owned()).or_default() += 1;
        Ok("ticked".to_owned())
    }
}

/// Builds one engine of the conversation after another, each as in a new process.
pub struct World {
    pub tick: Tick,
    pub recorder: Recorder,
    pub policy: JournalPolicy,
    lives: u64,
}

impl World {
    pub fn new(policy: JournalPolicy) -> Self {
        Self { tick: Tick::default(), recorder: Recorder::new(), policy, lives: 0 }
    }

    pub fn engine(&mut self, store: Arc<dyn StorageAdapter>) -> Engine<Layers> {
        self.lives += 1;
        let ids = CountingIds::starting_at(self.lives * 1000);
        let layers = memory((Said, Heard, Facts, Census, Mood, Scratch));
        Engine::builder(layers, Arc::new(ManualClock::hurried()), Arc::new(ids))
            .model(Speaker)
            .tool(self.tick.clone())
            .store(store)
            .journal(self.policy)
            .observer(self.recorder.clone())
            .build()
            .expect("a good engine")
    }

    pub async fn open(&mut self, store: Arc<dyn StorageAdapter>) -> Result<Execution<Layers>, Error> {
        self.engine(store).execution(THREAD).resource(RESOURCE).start().await
    }
}

/// The turns that the log has, by their user messages.
pub fn turns(execution: &Execution<Layers>) -> Vec<String> {
    let users = execution.log().iter().filter(|item| item.is_message_of(Role::User));
    users.filter_map(|item| Some(item.as_message()?.text())).collect()
}

/// Everything that is stored about layers and items, without versions.
pub async fn picture(store: &dyn StorageAdapter) -> BTreeMap<String, String> {
    let keys = store.list("").await.expect("the store can be read");
    let records = store.get_many(&keys).await.expect("the store can be read");
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("records are text");
    let all = keys.into_iter().zip(records).filter_map(|(key, record)| Some((key, text(&record?.value))));
    all.filter(|(key, _)| key.starts_with("layers/")).collect()
}

/// Checks that states and log are from one moment, and that providers accept the log.
#[track_caller]
pub fn check_whole(execution: &Execution<Layers>) {
    let log: Vec<&Item> = execution.log().iter().collect();
    let said = log.iter().filter(|item| item.is_message_of(Role::Assistant) || item.as_call().is_some()).count();
    let heard = log.iter().filter(|item| item.is_message_of(Role::User) || item.as_output().is_some()).count();
    let memory = execution.memory();
    assert_eq!(memory.state::<Said, _>(), said, "what the model said, by its layer and by the log: {log:#?}");
    assert_eq!(memory.state::<Heard, _>(), heard, "what the model heard, by its layer and by the log: {log:#?}");
    let calls: Vec<&str> = log.iter().filter_map(|item| Some(&*item.as_call()?.call_id)).collect();
    let outputs: Vec<&str> = log.iter().filter_map(|item| Some(&*item.as_output()?.call_id)).collect();
    assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), calls.len(), "every call is there once");
    assert_eq!(outputs.iter().collect::<BTreeSet<_>>().len(), outputs.len(), "every output is there once");
    assert!(outputs.iter().all(|output| calls.contains(output)), "every output has its call");
    if !execution.has_unfinished_turn() {
        assert_eq!(outputs.len(), calls.len(), "every call has its output: {log:#?}");
    }
}

/// Checks that no tool ran twice.
#[track_caller]
pub fn check_ran_once(tick: &Tick) {
    let twice: Vec<(String, u32)> = tick.runs().into_iter().filter(|(_, runs)| *runs > 1).collect();
    assert!(twice.is_empty(), "these calls ran more than once: {twice:?}");
}
