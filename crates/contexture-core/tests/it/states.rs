//! The states of layers and their stored records.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use contexture_core::clock::Clock;
use contexture_core::engine::Engine;
use contexture_core::layer::*;
use contexture_core::state::LayerStateStore;
use contexture_core::store::{MemoryStore, ScopedStorage, StorageAdapter, layer_prefix};
use contexture_core::testing::{CountingIds, FaultyStore, ManualClock, Recorder, ScriptedModel};
use contexture_core::{Error, ExecutionId, LayerId, Slot, memory};

const STATE: &str = "layers/layer/thread/t/state";

/// A state store with one stored layer, its diagnostics, and the underlying store.
struct Mirror {
    states: Arc<LayerStateStore>,
    store: Arc<FaultyStore>,
    clock: ManualClock,
    reported: Arc<Mutex<Vec<String>>>,
    execution: ExecutionId,
    layer: LayerId,
}

impl Mirror {
    fn new() -> Self {
        let (clock, reported) = (ManualClock::hurried(), Arc::new(Mutex::new(Vec::new())));
        let sink = reported.clone();
        let states = Arc::new(LayerStateStore::new(
            Arc::new(clock.clone()),
            Arc::new(move |_: &ExecutionId, layer: &LayerId, place: &'static str, message: &str| {
                sink.lock().unwrap().push(format!("{layer} {place}: {message}"));
            }),
        ));
        let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
        let (execution, layer) = (ExecutionId::from("e"), LayerId::from("layer"));
        let target = ScopedStorage::new(store.clone(), layer_prefix("layer", "thread", "t"));
        states.register_durable(&execution, &layer, target);
        Self { states, store, clock, reported, execution, layer }
    }

    fn set(&self, state: Option<u32>) {
        self.states.set(&self.execution, &self.layer, state);
    }

    async fn flush(&self) -> Vec<String> {
        self.states.flush(&self.execution).await.iter().map(|failed| failed.layer_id.to_string()).collect()
    }

    async fn stored(&self) -> Option<String> {
        let record = self.store.inner().get(STATE).await.unwrap();
        record.map(|record| String::from_utf8(record.value).unwrap())
    }
}

fn record(state: u32) -> Option<String> {
    Some(format!(r#"{{"format":1,"state":{state}}}"#))
}

#[tokio::test]
async fn many_changes_are_few_writes_and_the_latest_wins() {
    let mirror = Mirror::new();
    (1..=1000).for_each(|state| mirror.set(Some(state)));
    assert_eq!(mirror.states.get::<u32>(&mirror.execution, &mirror.layer).as_deref(), Some(&1000));
    assert_eq!(mirror.stored().await, None, "`set` waits for nothing");
    assert!(mirror.flush().await.is_empty());
    assert_eq!(mirror.stored().await, record(1000));
    assert!(mirror.store.writes() <= 2, "{} writes", mirror.store.writes());
}

#[tokio::test]
async fn a_cleared_state_is_deleted_and_still_an_entry() {
    let mirror = Mirror::new();
    mirror.set(Some(1));
    mirror.flush().await;
    mirror.set(None);
    mirror.flush().await;
    assert_eq!(mirror.stored().await, None);
    assert!(mirror.states.has(&mirror.execution, &mirror.layer));
}

#[tokio::test]
async fn a_failing_write_is_retried_with_growing_pauses_and_reported() {
    let mirror = Mirror::new();
    (1..=4).for_each(|number| mirror.store.fail_at(number));
    let before = mirror.clock.monotonic();
    mirror.set(Some(1));
    assert!(mirror.flush().await.is_empty());
    assert_eq!(mirror.stored().await, record(1));
    assert_eq!(mirror.clock.monotonic() - before, Duration::from_millis(20 + 40 + 80 + 160));
    let reported = mirror.reported.lock().unwrap();
    assert_eq!(reported.len(), 4);
    assert!(reported.iter().all(|message| message.starts_with("layer persist: write 1 records")), "{reported:?}");
}

#[tokio::test]
async fn flush_returns_what_is_not_durable_and_the_next_one_writes_it() {
    let mirror = Mirror::new();
    mirror.store.fail_from(1);
    mirror.set(Some(1));
    assert_eq!(mirror.flush().await, ["layer"]);
    mirror.store.heal();
    assert!(mirror.flush().await.is_empty());
    assert_eq!(mirror.stored().await, record(1));
}

#[tokio::test]
async fn a_lost_result_is_not_mistaken_for_a_change_by_another_writer() {
    for later in [None, Some(2)] {
        let mirror = Mirror::new();
        mirror.store.lose_answer_at(1);
        (2..=5).for_each(|number| mirror.store.fail_at(number));
        mirror.set(Some(1));
        assert_eq!(mirror.flush().await, ["layer"]);
        if later.is_some() {
            mirror.set(later);
        }
        assert!(mirror.flush().await.is_empty());
        assert_eq!(mirror.stored().await, record(later.unwrap_or(1)));
        let reported = mirror.reported.lock().unwrap();
        assert!(reported.iter().all(|message| message.starts_with("layer persist: ")), "{reported:?}");
    }
}

#[tokio::test]
async fn clearing_a_state_that_another_writer_changed_is_reported() {
    let mirror = Mirror::new();
    mirror.set(Some(1));
    mirror.flush().await;
    mirror.store.inner().set(STATE, record(7).unwrap().into_bytes()).await.unwrap();
    mirror.set(None);
    assert!(mirror.flush().await.is_empty());
    assert_eq!(mirror.stored().await, None);
    let reported = mirror.reported.lock().unwrap();
    assert!(reported.iter().any(|message| message.starts_with("layer merge: another writer changed")), "{reported:?}");
}

/// A state that cannot be serialised to JSON: its keys are pairs.
struct Pairs;

impl MemoryLayer for Pairs {
    type State = BTreeMap<String, BTreeMap<(u8, u8), u8>>;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("pairs", Slot::ENTITY, MemoryScope::Thread)
    }

    async fn store(&self, _: StoreParams<Self::State>) -> HookResult<StoreResult<Self::State>> {
        Ok(StoreResult::set(BTreeMap::from([("a".to_owned(), BTreeMap::from([((1, 2), 3)]))])))
    }
}

fn engine<L: MemoryLayer>(layer: L, store: Arc<dyn StorageAdapter>) -> (Engine<(L,)>, Recorder) {
    let recorder = Recorder::new();
    let engine = Engine::builder(memory((layer,)), Arc::new(ManualClock::hurried()), Arc::new(CountingIds::new()))
        .model(ScriptedModel::new())
        .store(store)
        .observer(recorder.clone())
        .build()
        .unwrap();
    (engine, recorder)
}

#[tokio::test]
async fn a_state_without_a_json_form_is_reported_and_stops_nothing() {
    let (engine, recorder) = engine(Pairs, Arc::new(MemoryStore::new()));
    let mut execution = engine.execution("t").start().await.unwrap();
    assert!(execution.turn("hello").await.unwrap().durable);
    assert_eq!(execution.flush().await.len(), 1);
    let faults = recorder.faults();
    assert!(faults.iter().any(|fault| fault.place == "persist" && fault.message.contains("JSON")), "{faults:?}");
}

/// Has a function that changes its state.
struct Doubles;

impl MemoryLayer for Doubles {
    type State = usize;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("layer", Slot::ENTITY, MemoryScope::Thread)
    }

    fn provides(&self) -> LayerProvides<usize> {
        let double = |_: (), state: Arc<usize>, _: ExecutionContext| async move {
            Ok(FnResult::new(()).with_state(*state * 2 + 1))
        };
        LayerProvides::new().function("double", layer_fn("Doubles.", double))
    }
}

#[tokio::test]
async fn an_ended_execution_accepts_no_calls_and_leaves_no_state() {
    let store = Arc::new(MemoryStore::new());
    let (engine, _) = engine(Doubles, store.clone());
    let execution = engine.execution("t").start().await.unwrap();
    let memory = execution.memory();
    memory.call_json("layer/double", serde_json::Value::Null).await.unwrap();
    assert_eq!(memory.state::<Doubles, _>(), 1);
    execution.complete().await.unwrap();
    let answer = memory.call_json("layer/double", serde_json::Value::Null).await;
    assert!(matches!(answer, Err(Error::Function(_))), "{answer:?}");
    assert_eq!(memory.state::<Doubles, _>(), 0);
}
