//! Agents over the embedded store whose conversations are opened again: after every turn, and right after a turn was
//! dropped in its middle.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use contexture::prelude::*;
use contexture::testing::ScriptedModel;
use serde_json::{Value, json};

/// Fields that no version knows, with every kind of value.
fn unknown() -> Value {
    json!({
        "status": "completed",
        "z": null,
        "a": [0.1, 1.0, -0.0, 1e300, u64::MAX, i64::MIN, true, "\u{0}\u{2028}\"\\ é 😀"],
        "nested": { "b": { "c": [] }, "a": {} },
        "": "a field without a name",
    })
}

fn with_unknown(mut value: Value) -> Value {
    value.as_object_mut().unwrap().extend(unknown().as_object().unwrap().clone());
    value
}

/// Items of every kind, all with fields that are not interpreted, wherever there can be some.
fn odd_items(turn: usize) -> Vec<Value> {
    let text = with_unknown(json!({ "type": "text", "text": "hi" }));
    let image = with_unknown(json!({ "type": "image", "url": "data:" }));
    let call = format!("call {turn}");
    vec![
        with_unknown(json!({ "type": "message", "id": "m", "role": "user", "content": [text, image, "bare", 5] })),
        with_unknown(json!({ "type": "message", "role": "developer", "content": [], "meta": unknown() })),
        with_unknown(json!({ "type": "reasoning", "text": "hm", "encrypted": "x", "summary": [text] })),
        with_unknown(json!({ "type": "message", "role": "assistant", "content": [text] })),
        with_unknown(json!({ "type": "function_call", "call_id": call, "name": "t", "arguments": "{not json" })),
        with_unknown(
            json!({ "type": "function_call_output", "call_id": call, "output": "\u{0}", "outcome": "failed" }),
        ),
        with_unknown(json!({ "type": "web_search_call", "id": turn })),
        json!([1, { "type": "message" }]),
    ]
}

fn bytes(request: &ModelRequest) -> String {
    serde_json::to_string(&request.items).unwrap()
}

#[tokio::test]
async fn items_with_unknown_fields_are_the_same_bytes_after_every_restart() {
    let directory = tempfile::tempdir().unwrap();
    let converse = async |name: &str, reopens: bool| {
        let open = async |model: &ScriptedModel| {
            let builder = contexture::open(directory.path().join(name), memory(())).unwrap();
            let engine = builder.model(model.clone()).policy(ProjectionPolicy::new(8_000)).build().unwrap();
            engine.execution("thread").start().await.unwrap()
        };
        let said: Value = odd_items(0)[3].clone();
        let model = (0..20).fold(ScriptedModel::new(), |model, _| {
            let said: Item = serde_json::from_value(said.clone()).unwrap();
            model.responds(move |_| Ok(LlmResponse { items: vec![said], ..LlmResponse::default() }))
        });
        let mut execution = open(&model).await;
        for turn in 0..20 {
            let items: Vec<Item> =
                odd_items(turn).into_iter().map(|item| serde_json::from_value(item).unwrap()).collect();
            execution.import(items).await.unwrap();
            execution.turn(format!("turn {turn}")).await.unwrap();
            if reopens {
                let before: Vec<String> =
                    execution.log().iter().map(|item| serde_json::to_string(item).unwrap()).collect();
                execution.complete().await.unwrap();
                execution = open(&model).await;
                let after: Vec<String> =
                    execution.log().iter().map(|item| serde_json::to_string(item).unwrap()).collect();
                assert_eq!(after, before);
            }
        }
        let logged: Vec<Value> = execution.log().iter().map(|item| serde_json::to_value(item).unwrap()).collect();
        for turn in 0..20 {
            assert_eq!(logged[turn * 10..][..8], odd_items(turn), "what was imported is in the log as it came");
            assert_eq!(logged[turn * 10 + 9], said, "what the model said is in the log as it came");
        }
        model.requests().iter().map(bytes).collect::<Vec<_>>()
    };
    let (whole, reopened) = (converse("whole", false).await, converse("reopened", true).await);
    assert!(whole.windows(2).any(|pair| pair[1].len() < pair[0].len()), "history was cut at least once");
    for (number, (whole, reopened)) in whole.iter().zip(&reopened).enumerate() {
        assert_eq!(whole, reopened, "request {number}");
    }
    assert_eq!(whole.len(), reopened.len());
}

/// Asks for two calls, one after the other, and ends.
struct Worker;

impl Model for Worker {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        tokio::task::yield_now().await;
        let newest = request.items.iter().rev().take_while(|item| !item.is_message_of(Role::User));
        match newest.filter(|item| item.as_output().is_some()).count() {
            2.. => Ok(LlmResponse::text("done")),
            _ => Ok(LlmResponse { items: vec![Item::call("", "note", "{}")], ..LlmResponse::default() }),
        }
    }
}

/// Notes every call that ran.
struct Note(Arc<Mutex<BTreeMap<String, usize>>>);

impl Tool for Note {
    fn name(&self) -> &str {
        "note"
    }

    fn description(&self) -> &str {
        "Notes."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(&self, _: Value, ctx: ToolContext<'_>) -> Result<String, BoxError> {
        *self.0.lock().unwrap().entry(format!("{} {}", ctx.thread_id, ctx.call_id)).or_default() += 1;
        tokio::task::yield_now().await;
        Ok("noted".into())
    }
}

/// Where a turn is dropped depends on the machine; that it can be resumed at once must not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_turns_that_are_dropped_are_resumed_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let runs = Arc::new(Mutex::new(BTreeMap::new()));
    let builder = contexture::open(directory.path().join("agent.db"), memory(())).unwrap();
    let engine = builder.model(Worker).tool(Note(runs.clone())).build().unwrap();
    let mut resumed = 0;
    for number in 0..if crate::kill::IS_LONG { 500_u64 } else { 150 } {
        let thread = format!("thread {}", number % 50);
        let mut execution = engine.execution(thread.as_str()).start().await.unwrap();
        let patience = Duration::from_micros(number * 37 % 2_000);
        // The turn, or the whole execution, is dropped where it is.
        drop(tokio::time::timeout(patience, execution.turn(format!("turn {number}"))).await);
        drop(execution);
        let mut next = engine.execution(thread.as_str()).start().await.unwrap();
        let answer = next.resume().await.unwrap_or_else(|error| panic!("turn {number}: {error}"));
        resumed += usize::from(answer.is_some());
        assert_eq!(next.log().open_calls().count(), 0, "turn {number}");
        assert!(!next.has_unfinished_turn(), "turn {number}");
        next.complete().await.unwrap();
    }
    assert!(resumed > 0, "some were dropped in mid-turn");
    let runs = runs.lock().unwrap();
    assert!(!runs.is_empty(), "some calls ran");
    assert!(runs.values().all(|runs| *runs == 1), "no call ran twice");
}
