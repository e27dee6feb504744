//! When changes are durable, what is an error rather than lost, and the messages of errors.

use std::sync::Arc;

use contexture_core::layer::*;
use contexture_core::store::{Batch, Key, MemoryStore, ScopedStorage, StorageAdapter, StoreError, layer_prefix};
use contexture_core::testing::{FaultyStore, Recorder, ScriptedModel, engine};
use contexture_core::{Error, Item, memory};
use serde_json::json;

use crate::kit::{FnTool, spec};

/// Counts up by the function `count/up`.
fn counting(id: &str) -> ClosureLayer<u32> {
    let up = layer_fn("Counts.", |_: serde_json::Value, count: Arc<u32>, _| async move {
        Ok(FnResult::new(*count + 1).with_state(*count + 1))
    });
    layer(spec(id, 1)).provides(LayerProvides::new().function("up", up)).build()
}

const STATE: &str = "layers/count/thread/thread/state";

#[tokio::test]
async fn a_function_that_was_called_is_durable_when_it_returns() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(memory((counting("count"),))).store(store.clone()).build().unwrap();
    let execution = engine.execution("thread").start().await.unwrap();
    for expected in 1..5 {
        let called = execution.memory().call_json("count/up", json!(null)).await.unwrap();
        assert_eq!((called.as_u64(), called.durable), (Some(expected), true));
        let record = store.get(STATE).await.unwrap().expect("it is durable");
        assert!(String::from_utf8(record.value).unwrap().ends_with(&format!("\"state\":{expected}}}")));
    }
    const UP: LayerFunction<ClosureLayer<u32>, serde_json::Value, u32> = LayerFunction::new("up");
    let called = execution.memory().call(UP, json!(null)).await.unwrap();
    assert_eq!((called.result, called.durable), (5, true));
}

#[tokio::test]
async fn a_function_that_was_called_says_if_it_is_not_durable() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let engine = engine(memory((counting("count"),))).store(store.clone()).build().unwrap();
    let execution = engine.execution("thread").start().await.unwrap();
    store.fail_from(store.operations() + 1);
    let called = execution.memory().call_json("count/up", json!(null)).await.unwrap();
    assert_eq!((called.as_u64(), called.durable), (Some(1), false));
    store.heal();
    assert!(execution.memory().call_json("count/up", json!(null)).await.unwrap().durable);
    execution.complete().await.unwrap();
}

/// A tool calls the function in the middle of a turn, whose commit writes the state.
#[tokio::test]
async fn within_a_turn_a_function_is_committed_with_the_turn_and_returns_that() {
    let access = Arc::new(std::sync::OnceLock::<contexture_core::engine::MemoryAccess<_>>::new());
    let inside = access.clone();
    let tool = FnTool("tool", move |_| {
        let access = inside.get().expect("set before the turn").clone();
        async move {
            let called = access.call_json("count/up", json!(null)).await?;
            Ok(format!("{} {}", called.result, called.durable))
        }
    });
    let store = Arc::new(MemoryStore::new());
    let model = ScriptedModel::new().calls("tool", "{}");
    let engine = engine(memory((counting("count"),))).store(store.clone()).model(model).tool(tool).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert!(access.set(execution.memory()).is_ok());
    assert!(execution.turn("go").await.unwrap().durable);
    let output = execution.log().iter().find_map(Item::as_output).unwrap();
    assert_eq!(output.output, "1 false");
    assert!(store.get(STATE).await.unwrap().is_some(), "the turn has brought it");
}

#[tokio::test]
async fn the_key_of_the_state_is_refused_in_a_layers_storage() {
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    let storage = ScopedStorage::new(store.clone(), layer_prefix("layer", "thread", "thread"));
    for key in ["state", "state.backup.7"] {
        let refused = storage.set(key, &1).await.unwrap_err();
        assert!(matches!(refused, StoreError::Reserved { .. }));
        assert_eq!(refused.to_string(), format!("key `{key}`: it is reserved for the engine\nhint: use another key"));
        assert!(matches!(storage.delete(key).await, Err(StoreError::Reserved { .. })));
    }
    assert!(matches!(storage.get::<u32>("state").await, Err(StoreError::Reserved { .. })));
    assert!(matches!(storage.get_many::<u32>(&["a", "state"]).await, Err(StoreError::Reserved { .. })));
    store.set("layers/layer/thread/thread/state.backup.7", b"5".to_vec()).await.unwrap();
    assert_eq!(storage.get::<u32>("state.backup.7").await.unwrap(), Some(5), "what was kept aside can be read");
    for key in ["states", "state.backup", "State", "state/"] {
        storage.set(key, &key).await.unwrap();
    }
    let found = storage.get_many::<String>(&["states", "nothing", "state/"]).await.unwrap();
    assert_eq!(found, [Some("states".to_owned()), None, Some("state/".to_owned())]);
    storage.set("bad", &"text").await.unwrap();
    let error = storage.get_many::<u32>(&["nothing", "bad"]).await.unwrap_err();
    assert!(error.to_string().contains("layers/layer/thread/thread/bad"), "{error}");
}

#[tokio::test]
async fn a_thread_without_its_head_is_an_error_and_no_empty_thread() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(memory(())).store(store.clone()).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("a thread").start().await.unwrap();
    execution.turn("remember me").await.unwrap();
    execution.complete().await.unwrap();
    let head = Key::new("threads").then("a thread").then("head").into_string();
    store.apply(Batch::new().delete(head.clone())).await.unwrap();
    let Err(error) = engine.execution("a thread").start().await else { panic!("the thread was not empty") };
    assert_eq!(error.to_string(), "open thread `a thread`");
    let Error::Open { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.to_string(), format!("read `{head}`: it is missing, and 4 records of the thread are there"));
    assert!(engine.execution("another").start().await.unwrap().log().is_empty());
}

#[tokio::test]
async fn errors_name_what_they_are_about() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let engine = engine(memory(())).store(store.clone()).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("mine").start().await.unwrap();
    store.fail_from(0);
    assert_eq!(execution.turn("hello").await.unwrap_err().to_string(), "write thread `mine`");
    let Err(error) = engine.execution("mine").start().await else { panic!("the store fails") };
    assert_eq!(error.to_string(), "open thread `mine`");
    assert_eq!(engine.delete_thread("mine").await.unwrap_err().to_string(), "remove thread `mine` from the store");
    let too_long = MemoryStore::new().set(&"k".repeat(200_000), vec![]).await.unwrap_err().to_string();
    assert!(too_long.starts_with("key `kkkkk") && too_long.len() < 200, "{too_long}");
}

/// A rule that a stored state breaks, though it parses.
#[tokio::test]
async fn a_state_that_breaks_a_rule_of_its_layer_is_kept_aside_and_reported() {
    struct Even(bool);
    impl MemoryLayer for Even {
        type State = u32;

        fn spec(&self) -> LayerSpec {
            spec("even", 1)
        }

        fn check_state(&self, state: &u32) -> Result<(), String> {
            if self.0 && state % 2 == 1 { Err(format!("{state} is odd")) } else { Ok(()) }
        }

        async fn store(&self, params: StoreParams<u32>) -> HookResult<StoreResult<u32>> {
            Ok(StoreResult::set(*params.state + 1))
        }
    }
    let (store, recorder) = (Arc::new(MemoryStore::new()), Recorder::new());
    for strict in [false, true] {
        let builder = engine(memory((Even(strict),))).store(store.clone()).model(ScriptedModel::new());
        let engine = builder.observer(recorder.clone()).build().unwrap();
        let mut execution = engine.execution("thread").start().await.unwrap();
        assert_eq!(execution.memory().state::<Even, _>(), 0);
        execution.turn("hello").await.unwrap();
        execution.complete().await.unwrap();
    }
    let faults = recorder.faults();
    assert!(faults[0].message.contains("1 is odd"), "{faults:?}");
    let keys = store.list("layers/even/").await.unwrap();
    assert_eq!(keys.len(), 2, "{keys:?}");
    let kept = store.get(&keys[1]).await.unwrap().expect("it is listed").value;
    assert_eq!(String::from_utf8(kept).unwrap(), r#"{"format":1,"state":1}"#);
}
