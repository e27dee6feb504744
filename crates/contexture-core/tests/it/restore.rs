//! Stored records that cannot be read: backed up or an error, never overwritten without a copy.

use std::sync::{Arc, Mutex};

use contexture_core::decision::{Action, Price};
use contexture_core::engine::Engine;
use contexture_core::item::{Message, Reasoning};
use contexture_core::layer::*;
use contexture_core::store::{MemoryStore, StorageAdapter, StoreError};
use contexture_core::testing::{CountingIds, FaultyStore, ManualClock, Recorder, ScriptedModel};
use contexture_core::{Content, Error, Item, LlmResponse, Role, Slot, memory};
use serde_json::{Value, json};

const STATE: &str = "layers/count/thread/thread/state";

/// Counts responses.
struct Count;

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Counted {
    responses: u32,
}

impl MemoryLayer for Count {
    type State = Counted;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("count", Slot::ENTITY, MemoryScope::Thread)
    }

    async fn store(&self, params: StoreParams<Counted>) -> HookResult<StoreResult<Counted>> {
        Ok(StoreResult::set(Counted { responses: params.state.responses + 1 }))
    }
}

fn engine(store: Arc<dyn StorageAdapter>, life: u64) -> (Engine<(Count,)>, Recorder) {
    let (recorder, ids) = (Recorder::new(), Arc::new(CountingIds::starting_at(life * 1000)));
    let engine = Engine::builder(memory((Count,)), Arc::new(ManualClock::hurried()), ids)
        .model(ScriptedModel::new())
        .store(store)
        .observer(recorder.clone())
        .build()
        .unwrap();
    (engine, recorder)
}

async fn value(store: &dyn StorageAdapter, key: &str) -> Option<Vec<u8>> {
    store.get(key).await.unwrap().map(|record| record.value)
}

/// All records, as keys and values.
async fn everything(store: &dyn StorageAdapter) -> Vec<(String, Vec<u8>)> {
    let keys = store.list("").await.unwrap();
    let records = store.get_many(&keys).await.unwrap();
    keys.into_iter().zip(records.into_iter().map(|record| record.unwrap().value)).collect()
}

async fn backups(store: &dyn StorageAdapter) -> Vec<Vec<u8>> {
    let mut backups = Vec::new();
    for key in store.list(&format!("{STATE}.backup.")).await.unwrap() {
        backups.extend(value(store, &key).await);
    }
    backups
}

const UNREADABLE: &[&[u8]] = &[
    br#"{"format":1,"state":{"responses":"many"}}"#,
    br#"{"format":1,"state":[1,2,3]}"#,
    br#"{"format":2,"state":{"responses":7}}"#,
    br#"{"format":2,"other":"shape"}"#,
    br#"{"format":1,"state":{"responses":7"#,
    br#"{"format":1}"#,
    br#"{"responses":7}"#,
    b"",
    b"not JSON at all",
    b"\xff\xfe\x00",
];

#[tokio::test]
async fn a_state_that_does_not_parse_is_kept_aside_and_the_layer_starts_fresh() {
    for unreadable in UNREADABLE {
        let store = Arc::new(MemoryStore::new());
        store.set(STATE, unreadable.to_vec()).await.unwrap();
        let (engine, recorder) = engine(store.clone(), 1);
        let mut execution = engine.execution("thread").start().await.unwrap();
        let faults = recorder.faults();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!((faults[0].place, faults[0].layer_id.as_ref().unwrap().as_str()), ("restore", "count"));
        assert_eq!(backups(&*store).await, [unreadable.to_vec()]);
        assert_eq!(execution.memory().state::<Count, _>(), Counted::default());

        execution.turn("hello").await.unwrap();
        execution.complete().await.unwrap();
        assert_eq!(value(&*store, STATE).await.unwrap(), br#"{"format":1,"state":{"responses":1}}"#);
        assert_eq!(backups(&*store).await, [unreadable.to_vec()]);
    }
}

#[tokio::test]
async fn a_second_unreadable_state_does_not_replace_the_backup_of_the_first() {
    let store = Arc::new(MemoryStore::new());
    for (life, unreadable) in (1..).zip(UNREADABLE) {
        store.set(STATE, unreadable.to_vec()).await.unwrap();
        let (engine, _) = engine(store.clone(), life);
        let mut execution = engine.execution("thread").start().await.unwrap();
        execution.turn("hello").await.unwrap();
        execution.complete().await.unwrap();
    }
    let mut kept = backups(&*store).await;
    let mut expected: Vec<Vec<u8>> = UNREADABLE.iter().map(|unreadable| unreadable.to_vec()).collect();
    kept.sort();
    expected.sort();
    assert_eq!(kept, expected);
}

#[tokio::test]
async fn opening_again_and_again_keeps_one_copy() {
    let store = Arc::new(MemoryStore::new());
    store.set(STATE, UNREADABLE[0].to_vec()).await.unwrap();
    for life in 1..4 {
        let (engine, _) = engine(store.clone(), life);
        engine.execution("thread").start().await.unwrap().complete().await.unwrap();
    }
    assert_eq!(backups(&*store).await, [UNREADABLE[0].to_vec()]);
    assert_eq!(value(&*store, STATE).await.unwrap(), UNREADABLE[0]);
}

/// If the backup fails at first, it is made in the same batch that overwrites the state.
#[tokio::test]
async fn an_unreadable_state_is_never_overwritten_without_a_copy() {
    let disk = Arc::new(MemoryStore::new());
    disk.set(STATE, UNREADABLE[0].to_vec()).await.unwrap();
    let store = Arc::new(FaultyStore::new(disk.clone()));
    // Two operations look for the thread, the third writes the backup.
    store.fail_at(3);
    let (engine, recorder) = engine(store.clone(), 1);
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(recorder.faults()[0].place, "restore");
    assert!(backups(&*disk).await.is_empty());
    execution.turn("hello").await.unwrap();
    assert_eq!(backups(&*disk).await, [UNREADABLE[0].to_vec()]);
}

#[tokio::test]
async fn an_unreadable_state_that_someone_writes_while_we_run_is_kept_too() {
    let store = Arc::new(MemoryStore::new());
    let (engine, recorder) = engine(store.clone(), 1);
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("one").await.unwrap();
    store.set(STATE, UNREADABLE[2].to_vec()).await.unwrap();
    execution.turn("two").await.unwrap();
    assert_eq!(backups(&*store).await, [UNREADABLE[2].to_vec()]);
    assert_eq!(value(&*store, STATE).await.unwrap(), br#"{"format":1,"state":{"responses":2}}"#);
    assert!(recorder.faults().iter().any(|fault| fault.place == "restore"));
}

/// A thread of two turns, one of them unfinished, so that it has a record of every kind.
async fn a_thread() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let (engine, _) = engine(store.clone(), 1);
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("one").await.unwrap();
    execution.window("two").await.unwrap();
    execution.complete().await.unwrap();
    store
}

#[tokio::test]
async fn a_damaged_record_of_a_thread_is_refused_and_nothing_is_overwritten() {
    let keys = a_thread().await.list("threads/").await.unwrap();
    let kinds = ["/head", "/epoch", "/log/", "/decisions/", "/turns/"];
    assert!(kinds.iter().all(|kind| keys.iter().any(|key| key.contains(kind))), "{keys:?}");
    for key in keys {
        let whole = value(&*a_thread().await, &key).await.unwrap();
        let truncated = whole[..whole.len() - 1].to_vec();
        let newer = String::from_utf8(whole).unwrap().replacen("\"format\":1", "\"format\":9", 1);
        for (damage, reason) in
            [(truncated, "EOF"), (newer.into_bytes(), "format 9"), (b"{}".to_vec(), "missing field")]
        {
            let store = a_thread().await;
            store.set(&key, damage).await.unwrap();
            let before = everything(&*store).await;
            let (engine, _) = engine(store.clone(), 2);
            let error = engine.execution("thread").start().await.err().unwrap_or_else(|| panic!("`{key}` was taken"));
            let Error::Open { source: cause @ StoreError::Corrupt { .. }, .. } = &error else { panic!("{error:?}") };
            assert!(cause.to_string().starts_with(&format!("read `{key}`: ")), "{cause}");
            assert!(cause.to_string().contains(reason), "{cause}");
            assert_eq!(everything(&*store).await, before);
        }
    }
}

#[tokio::test]
async fn a_missing_record_of_a_thread_is_refused() {
    for key in ["threads/thread/log/00000000000000000001", "threads/thread/decisions/00000000000000000000"] {
        let store = a_thread().await;
        store.delete(key).await.unwrap();
        let (engine, _) = engine(store.clone(), 2);
        let error = engine.execution("thread").start().await.err().expect("a gap in the log");
        let Error::Open { source: cause, .. } = error else { panic!("{error:?}") };
        assert_eq!(cause.to_string(), format!("read `{key}`: the record is missing"));
    }
}

#[tokio::test]
async fn a_log_that_does_not_have_what_the_head_counts_is_refused() {
    let store = a_thread().await;
    let key = "threads/thread/log/00000000000000000000";
    store.set(key, br#"{"format":1,"counter":"x","tokens":[],"items":[]}"#.to_vec()).await.unwrap();
    let (engine, _) = engine(store.clone(), 2);
    let error = engine.execution("thread").start().await.err().expect("an item is gone");
    let Error::Open { source: cause, .. } = error else { panic!("{error:?}") };
    assert_eq!(cause.to_string(), "read `threads/thread/head`: it counts 3 items, and the log has 2");
}

#[tokio::test]
async fn decisions_of_layers_are_any_json_and_come_back_as_they_were() {
    let said = [json!("folded"), json!(null), json!([1, "two"]), json!({ "action": "epoch", "number": 7 }), json!(2.5)];
    let store = Arc::new(MemoryStore::new());
    for life in 1..3 {
        let given = said.clone();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        let decider = layer::<()>(LayerSpec::new("decider", Slot::ENTITY, MemoryScope::Thread))
            .project_history(move |params: ProjectHistoryParams<()>| {
                let known: Vec<Value> = params.decisions.iter().map(|decision| what(&decision.action)).collect();
                let given = if known.is_empty() { given.to_vec() } else { Vec::new() };
                *kept.lock().unwrap() = known;
                let price = Some(Price { cost: f64::NAN, saves_per_request: 1.0 });
                let new = move |what| NewDecision { what, reason: "because".to_owned(), price };
                async move {
                    let decisions = given.into_iter().map(new).collect();
                    Ok(ProjectHistoryResult { history: params.history, decisions })
                }
            })
            .build();
        let ids = Arc::new(CountingIds::starting_at(life * 1000));
        let engine = Engine::builder(memory((decider,)), Arc::new(ManualClock::hurried()), ids)
            .model(ScriptedModel::new())
            .store(store.clone())
            .build()
            .unwrap();
        let mut execution = engine.execution("thread").start().await.unwrap();
        execution.turn("hello").await.unwrap();
        execution.complete().await.unwrap();
        assert_eq!(seen.lock().unwrap().len(), if life == 1 { 0 } else { said.len() });
        if life == 2 {
            assert_eq!(*seen.lock().unwrap(), said);
        }
    }
}

fn what(action: &Action) -> Value {
    match action {
        Action::Layer(what) => what.clone(),
        other => panic!("{other:?} is not a layer's"),
    }
}

/// Opaque items and content are kept, whatever they are.
#[tokio::test]
async fn items_of_every_kind_come_back_as_they_were() {
    let opaque =
        [json!("text"), json!(null), json!(5), json!([1, 2]), json!({}), json!({ "type": "web_search", "id": 1 })];
    let odd_message = json!({ "type": "message", "role": "assistant", "content": 7 });
    let mut items: Vec<Item> = opaque.iter().cloned().chain([odd_message]).map(Item::Opaque).collect();
    let content = opaque.iter().cloned().map(Content::Opaque).chain([Content::Text { text: String::new() }]).collect();
    items.push(Item::Message(Message { id: Some("m".into()), ..Message::new(Role::Assistant, content) }));
    items.push(Item::from(Reasoning::new("\0", Some(json!({ "signature": "x" })))));
    items.push(Item::assistant("done"));
    let store = Arc::new(MemoryStore::new());
    let response = LlmResponse { items, ..LlmResponse::default() };
    let given = response.clone();
    let model = ScriptedModel::new().responds(move |_| Ok(given));
    let engine_of = |model: ScriptedModel, life: u64| {
        let ids = Arc::new(CountingIds::starting_at(life * 1000));
        let builder = Engine::builder(memory((Count,)), Arc::new(ManualClock::hurried()), ids);
        builder.model(model).store(store.clone()).build().unwrap()
    };
    let mut execution = engine_of(model, 1).execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    execution.complete().await.unwrap();
    let reopened = engine_of(ScriptedModel::new(), 2).execution("thread").start().await.unwrap();
    assert_eq!(reopened.log().iter().skip(1).cloned().collect::<Vec<_>>(), response.items);
}
