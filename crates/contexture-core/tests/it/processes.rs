//! Several engines over one store, like several processes, with a tool that the test controls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use contexture_core::engine::{Engine, EngineBuilder, Execution, JournalPolicy};
use contexture_core::error::BoxError;
use contexture_core::layer::*;
use contexture_core::store::{
    Batch, Fence, Lease, LeaseRequest, MemoryStore, Record, StorageAdapter, StoreError, Version,
};
use contexture_core::testing::{CountingIds, ManualClock, Recorder, ScriptedModel};
use contexture_core::tool::ToolContext;
use contexture_core::{Error, Item, ItemLog, Slot, Tool, memory};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Counts the responses of each execution; `merge` adds two counts.
pub struct Tally;

impl MemoryLayer for Tally {
    type State = BTreeMap<String, usize>;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("tally", Slot::ENTITY, MemoryScope::Thread)
    }

    async fn store(&self, params: StoreParams<Self::State>) -> HookResult<StoreResult<Self::State>> {
        let mut tally = (*params.state).clone();
        *tally.entry(params.ctx.execution_id.to_string()).or_default() += 1;
        Ok(StoreResult::set(tally))
    }

    fn merge(&self, ours: &Self::State, theirs: &Self::State) -> Option<Self::State> {
        let mut tally = theirs.clone();
        for (execution, count) in ours {
            let known = tally.entry(execution.clone()).or_default();
            *known = (*known).max(*count);
        }
        Some(tally)
    }
}

/// Stores the last execution; `merge` panics.
pub struct Last;

impl MemoryLayer for Last {
    type State = String;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("last", Slot::ENTITY, MemoryScope::Thread)
    }

    async fn store(&self, params: StoreParams<String>) -> HookResult<StoreResult<String>> {
        Ok(StoreResult::set(params.ctx.execution_id.to_string()))
    }

    fn merge(&self, _: &String, _: &String) -> Option<String> {
        panic!("no idea how")
    }
}

pub type Both = (Tally, Last);

/// A tool that signals its start and waits for the test to end it.
#[derive(Clone)]
pub struct Slow {
    pub begun: Arc<Semaphore>,
    pub may_end: Arc<Semaphore>,
}

impl Slow {
    pub fn new() -> Self {
        Self { begun: Arc::new(Semaphore::new(0)), may_end: Arc::new(Semaphore::new(0)) }
    }

    pub fn runs(&self) -> usize {
        self.begun.available_permits()
    }
}

impl Tool for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn description(&self) -> &str {
        "Takes its time."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(&self, _: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        self.begun.add_permits(1);
        self.may_end.acquire().await?.forget();
        Ok("took its time".to_owned())
    }
}

/// One process over a shared store.
pub struct Process {
    pub model: ScriptedModel,
    pub recorder: Recorder,
    pub clock: ManualClock,
    pub engine: Engine<Both>,
}

impl Process {
    pub fn new(number: u64, store: Arc<dyn StorageAdapter>, slow: &Slow, clock: ManualClock) -> Self {
        Self::with(number, store, slow, clock, |builder| builder)
    }

    /// A process that cannot acquire a lease, and runs turns all the same.
    pub fn without_leases(number: u64, store: Arc<dyn StorageAdapter>, slow: &Slow, clock: ManualClock) -> Self {
        let store = Arc::new(Leaseless(store));
        Self::with(number, store, slow, clock, |builder| builder.journal(JournalPolicy::BestEffort))
    }

    pub fn with(
        number: u64,
        store: Arc<dyn StorageAdapter>,
        slow: &Slow,
        clock: ManualClock,
        options: impl FnOnce(EngineBuilder<Both>) -> EngineBuilder<Both>,
    ) -> Self {
        let (model, recorder) = (ScriptedModel::new(), Recorder::new());
        let ids = Arc::new(CountingIds::starting_at(number * 1000));
        let builder = Engine::builder(memory((Tally, Last)), Arc::new(clock.clone()), ids)
            .model(model.clone())
            .tool(slow.clone())
            .store(store)
            .observer(recorder.clone());
        let engine = options(builder).build().unwrap();
        Self { model, recorder, clock, engine }
    }

    pub async fn open(&self) -> Execution<Both> {
        self.engine.execution("thread").start().await.unwrap()
    }

    pub fn faults(&self, place: &str) -> usize {
        self.recorder.faults().iter().filter(|fault| fault.place == place).count()
    }
}

pub fn pair(store: &Arc<MemoryStore>, slow: &Slow) -> (Process, Process) {
    let process = |number| Process::new(number, store.clone(), slow, ManualClock::hurried());
    (process(1), process(2))
}

pub fn texts(log: &ItemLog) -> Vec<String> {
    let text = |item: &Item| match item {
        Item::Message(message) => message.text(),
        Item::FunctionCall(call) => format!("call {}", call.call_id),
        Item::FunctionCallOutput(output) => format!("output {}: {}", output.call_id, output.output),
        other => format!("{other:?}"),
    };
    log.iter().map(text).collect()
}

pub fn pair_without_leases(store: &Arc<MemoryStore>, slow: &Slow) -> (Process, Process) {
    let process = |number| Process::without_leases(number, store.clone(), slow, ManualClock::hurried());
    (process(1), process(2))
}

/// A store that gives no leases.
struct Leaseless(Arc<dyn StorageAdapter>);

impl StorageAdapter for Leaseless {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.0.get(key)
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        self.0.list(prefix)
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.0.apply(batch)
    }

    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        self.0.get_many(keys)
    }

    fn acquire_lease(&self, _: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(async { Err(StoreError::Io { doing: "take a lease".to_owned(), source: "there are none".into() }) })
    }

    fn renew_lease<'a>(&'a self, _: &'a Fence, _: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
}

#[track_caller]
pub fn check_no_doubles(log: &ItemLog) {
    let texts = texts(log);
    assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), texts.len(), "{texts:#?}");
}

#[track_caller]
pub fn check_every_call_has_one_output(log: &ItemLog) {
    let mut calls: Vec<_> = log.iter().filter_map(|item| Some(item.as_call()?.call_id.clone())).collect();
    let mut outputs: Vec<_> = log.iter().filter_map(|item| Some(item.as_output()?.call_id.clone())).collect();
    calls.sort();
    outputs.sort();
    assert_eq!(calls, outputs, "{:#?}", texts(log));
}

/// Begins a turn that waits in its tool.
pub async fn begin(execution: &mut Execution<Both>, slow: &Slow, then: impl AsyncFnOnce()) -> Result<String, Error> {
    let interruption = async {
        slow.begun.acquire().await.unwrap().forget();
        then().await;
        slow.may_end.add_permits(1);
    };
    let (answer, ()) = tokio::join!(execution.turn("take your time"), interruption);
    slow.begun.add_permits(1);
    answer.map(|answer| answer.text())
}
