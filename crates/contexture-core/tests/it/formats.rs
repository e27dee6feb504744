//! Records of every released format can be read by this version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use contexture_core::decision::{Action, Decision, Price};
use contexture_core::engine::Engine;
use contexture_core::item::{FunctionCall, Message, Outcome, Reasoning};
use contexture_core::layer::*;
use contexture_core::store::{MemoryStore, StorageAdapter};
use contexture_core::testing::{CountingIds, ManualClock, Recorder, ScriptedModel};
use contexture_core::{Content, Item, Role, Slot, memory};
use serde_json::{Value, json};

const FORMAT_1: &str = include_str!("../fixtures/format-1.json");

/// Keeps notes, and shows its earlier decisions.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Decision>>>);

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Noted {
    notes: Vec<String>,
}

impl MemoryLayer for Notes {
    type State = Noted;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new("notes", Slot::ENTITY, MemoryScope::Thread)
    }

    async fn project_history(&self, params: ProjectHistoryParams<Noted>) -> HookResult<ProjectHistoryResult> {
        *self.0.lock().unwrap() = params.decisions.to_vec();
        Ok(params.history.into())
    }

    async fn recall(&self, params: RecallParams<Noted>) -> HookResult<RecallResult<Noted>> {
        Ok(params.state.notes.join("\n").into())
    }
}

async fn stored(fixture: &str) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let records: BTreeMap<String, Value> = serde_json::from_str(fixture).unwrap();
    for (key, record) in records {
        store.set(&key, serde_json::to_vec(&record).unwrap()).await.unwrap();
    }
    store
}

fn engine(store: &Arc<MemoryStore>, notes: &Notes, model: &ScriptedModel, life: u64) -> (Engine<(Notes,)>, Recorder) {
    let recorder = Recorder::new();
    let ids = Arc::new(CountingIds::starting_at(life * 1000));
    let engine = Engine::builder(memory((notes.clone(),)), Arc::new(ManualClock::hurried()), ids)
        .model(model.clone())
        .store(store.clone())
        .observer(recorder.clone())
        .build()
        .unwrap();
    (engine, recorder)
}

fn items_of_format_1() -> Vec<Item> {
    let text = |text: &str| Content::Text { text: text.to_owned() };
    let image = Content::Opaque(json!({ "type": "image", "url": "a.png" }));
    let call = FunctionCall { id: Some("fc_1".into()), ..FunctionCall::new("call-1", "boil", "{}") };
    vec![
        Item::from(Message::new(Role::User, vec![text("hello"), image])),
        Item::Reasoning(Reasoning {
            id: Some("rs_1".into()),
            ..Reasoning::new("a greeting", Some(json!({ "signature": "x" })))
        }),
        Item::Opaque(json!({ "type": "web_search", "query": "tea" })),
        Item::Message(Message { id: Some("msg_1".into()), ..Message::new(Role::Assistant, vec![text("hi")]) }),
        Item::user("make tea"),
        Item::FunctionCall(call),
        Item::call("call-2", "pour", r#"{"cups":2}"#),
        Item::error_output("call-1", "the kettle is dry"),
    ]
}

fn decisions_of_format_1() -> Vec<Decision> {
    let price = Price { cost: 120.5, saves_per_request: 30.0 };
    let decision = |number, at, what, reason: &str, price| Decision {
        number,
        at,
        layer: Some("notes".into()),
        action: Action::Layer(what),
        reason: reason.to_owned(),
        price,
    };
    vec![
        decision(4, 5, json!({ "fold": [1, 2] }), "it pays", Some(price)),
        decision(5, 8, json!("unfold"), "asked for", None),
    ]
}

#[tokio::test]
async fn a_thread_of_format_1_opens_and_goes_on() {
    let (store, notes, model) = (stored(FORMAT_1).await, Notes::default(), ScriptedModel::new().says("done"));
    let (first, recorder) = engine(&store, &notes, &model, 1);
    let mut execution = first.execution("t-1").start().await.unwrap();
    assert_eq!(execution.log().iter().cloned().collect::<Vec<_>>(), items_of_format_1());
    assert_eq!(execution.log().get(3).unwrap().tokens, 5, "counted by the same counter");
    assert_ne!(execution.log().get(4).unwrap().tokens, 99, "counted anew");
    assert_eq!(execution.memory().state::<Notes, _>(), Noted { notes: vec!["likes tea".to_owned()] });
    assert!(recorder.faults().is_empty());

    assert_eq!(execution.resume().await.unwrap().unwrap().text(), "done");
    assert_eq!(*notes.0.lock().unwrap(), decisions_of_format_1());
    let interrupted = execution.log().get(8).unwrap().item.as_output().unwrap().clone();
    assert_eq!(
        (&*interrupted.call_id, interrupted.outcome),
        ("call-2", Outcome::Interrupted),
        "it may have run, and is not run again"
    );
    let log: Vec<Item> = execution.log().iter().cloned().collect();
    execution.complete().await.unwrap();

    let (second, _) = engine(&store, &notes, &model, 2);
    let execution = second.execution("t-1").start().await.unwrap();
    assert_eq!(execution.log().iter().cloned().collect::<Vec<_>>(), log);
    let backup = store.get("layers/notes/thread/t-1/state.backup.3").await.unwrap();
    assert!(backup.is_some(), "what was kept aside stays");
}

/// Records written today have the shape of the fixture; a new shape needs a new format and a new fixture.
#[tokio::test]
async fn what_is_written_now_has_the_shape_of_the_newest_fixture() {
    let store = Arc::new(MemoryStore::new());
    let (notes, model) = (Notes::default(), ScriptedModel::new().says("hi").calls("pour", "{}").fails("overloaded"));
    let (engine, _) = engine(&store, &notes, &model, 1);
    let mut execution = engine.execution("t-1").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    assert!(execution.turn("make tea").await.is_err());
    let fixture: BTreeMap<String, Value> = serde_json::from_str(FORMAT_1).unwrap();
    for (key, like) in [
        ("threads/t-1/head", "threads/t-1/head"),
        ("threads/t-1/epoch", "threads/t-1/epoch"),
        ("threads/t-1/log/00000000000000000000", "threads/t-1/log/00000000000000000000"),
        ("threads/t-1/decisions/00000000000000000000", "threads/t-1/decisions/00000000000000000000"),
        ("threads/t-1/turns/id-1000", "threads/t-1/turns/run-2"),
    ] {
        let record = store.get(key).await.unwrap().unwrap_or_else(|| panic!("`{key}` is missing"));
        let written: Value = serde_json::from_slice(&record.value).unwrap();
        assert_eq!(fields(&written), fields(&fixture[like]), "`{key}`");
    }
}

/// The names of a record's fields, and of theirs.
fn fields(record: &Value) -> Vec<String> {
    let Some(object) = record.as_object() else { return Vec::new() };
    let below = |(name, value): (&String, &Value)| {
        let within = value.as_object().filter(|_| matches!(name.as_str(), "last" | "epoch" | "decision" | "turn"));
        let within = within
            .into_iter()
            .flat_map(|within| within.keys().map(|field| format!("{name}.{field}")).collect::<Vec<_>>());
        std::iter::once(name.clone()).chain(within).collect::<Vec<_>>()
    };
    object.iter().flat_map(below).collect()
}
