//! Child executions: their initial state, what is separate, and what they return.

use std::sync::Arc;

use contexture_core::engine::EngineBuilder;
use contexture_core::layer::*;
use contexture_core::store::{MemoryStore, StorageAdapter};
use contexture_core::testing::{Recorder, ScriptedModel, engine};
use contexture_core::{Error, Item, Slot, memory};
use serde_json::json;

use crate::kit::{Diary, spec};

/// A list of words; `on_spawn` copies it, and `on_return` adds the child's new words.
fn words(spec: LayerSpec) -> LayerBuilder<Vec<String>> {
    let add = layer_fn("Adds a word.", |word: Word, words: Arc<Vec<String>>, _| async move {
        let mut words = Arc::unwrap_or_clone(words);
        words.push(word.word);
        Ok(FnResult::new(words.len()).with_state(words))
    });
    layer(spec).provides(LayerProvides::new().function("add", add))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Word {
    word: String,
}

fn carried() -> ClosureLayer<Vec<String>> {
    words(spec("words", 1))
        .init(|params| async move { Ok(InitResult { state: params.stored.unwrap_or_default() }) })
        .on_spawn(|params| async move {
            let items = vec![Item::developer(format!("you know {}", params.parent_state.join(" ")))];
            Ok(SpawnResult { child_state: Some((*params.parent_state).clone()), items })
        })
        .on_return(|params| async move {
            let result = json!({ "was": params.result, "items": params.child_log.len() });
            Ok(ReturnResult { parent_state: Some((*params.child_state).clone()), result: Some(result) })
        })
        .build()
}

type Words = (ClosureLayer<Vec<String>>,);

fn parent(layer: ClosureLayer<Vec<String>>) -> (EngineBuilder<Words>, Arc<dyn StorageAdapter>) {
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    (engine(memory((layer,))).store(store.clone()).model(ScriptedModel::new()), store)
}

async fn add(execution: &contexture_core::Execution<Words>, word: &str) {
    execution.memory().call_json("words/add", json!({ "word": word })).await.unwrap();
}

fn known(execution: &contexture_core::Execution<Words>) -> Vec<String> {
    execution.memory().state::<ClosureLayer<Vec<String>>, _>()
}

#[tokio::test]
async fn a_child_has_its_own_name_depth_log_and_state() {
    let depths = Diary::new();
    let noted = depths.clone();
    let watching = layer::<()>(spec("watching", 2)).recall(move |params| {
        noted.note(format!("{} {} {}", params.ctx.execution_id, params.ctx.thread_id, params.ctx.depth));
        async { Ok(RecallResult::nothing()) }
    });
    let engine = engine(memory((carried(), watching.build()))).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.memory().call_json("words/add", json!({ "word": "red" })).await.unwrap();
    execution.turn("hello").await.unwrap();
    let mut child = execution.spawn().await.unwrap();
    let first: Vec<_> = child.log().iter().cloned().collect();
    assert_eq!(first, [Item::developer("you know red")]);
    child.turn("go").await.unwrap();
    let mut grandchild = child.spawn().await.unwrap();
    grandchild.turn("go").await.unwrap();
    assert_eq!(depths.take(), ["id-0 thread 0", "id-1 thread/id-1 1", "id-2 thread/id-1/id-2 2"]);
    assert_eq!(execution.log().len(), 2, "the parent's log is its own");
}

#[tokio::test]
async fn tools_of_a_child_change_the_child_and_on_return_updates_the_parent() {
    let model = ScriptedModel::new().calls("words/add", r#"{"word":"blue"}"#).says("done");
    let engine = engine(memory((carried(),))).model(model).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    add(&execution, "red").await;
    let mut child = execution.spawn().await.unwrap();
    child.turn("add blue").await.unwrap();
    assert_eq!(known(&child), ["red", "blue"]);
    assert_eq!(known(&execution), ["red"]);
    let result = execution.join(child, json!("done")).await.unwrap();
    assert_eq!(result, json!({ "was": "done", "items": 5 }));
    assert_eq!(known(&execution), ["red", "blue"]);
}

#[tokio::test]
async fn what_a_child_writes_is_durable_in_its_own_thread() {
    let (builder, store) = parent(carried());
    let engine = builder.build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let child = execution.spawn().await.unwrap();
    add(&child, "blue").await;
    assert!(child.flush().await.is_empty());
    let of_child = "layers/words/thread/thread%2Fid-1/state";
    assert_eq!(store.list("layers/").await.unwrap(), [of_child, "layers/words/thread/thread/state"]);
    child.complete().await.unwrap();
}

#[tokio::test]
async fn a_layer_without_on_spawn_begins_as_in_any_execution() {
    let shared = LayerSpec::new("words", Slot(1), MemoryScope::Resource);
    let (builder, store) = parent(words(shared).build());
    let recorder = Recorder::new();
    let engine = builder.observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").resource("ann").start().await.unwrap();
    add(&execution, "red").await;
    assert!(execution.flush().await.is_empty());
    let child = execution.spawn().await.unwrap();
    assert_eq!(known(&child), ["red"], "the resource remembers");
    add(&child, "blue").await;
    execution.join(child, json!(null)).await.unwrap();
    assert_eq!(known(&execution), ["red", "blue"], "the parent does not write over what the child left");
    add(&execution, "green").await;
    execution.complete().await.unwrap();
    let next = engine.execution("thread").resource("ann").start().await.unwrap();
    assert_eq!(known(&next), ["red", "blue", "green"]);
    assert_eq!(store.list("layers/").await.unwrap(), ["layers/words/resource/ann/state"]);
    assert!(recorder.faults().is_empty(), "{:?}", recorder.faults());
}

#[tokio::test]
async fn a_failed_on_spawn_leaves_the_child_without_state() {
    let failing = |with_init: bool| {
        let layer = words(spec("words", 1)).on_spawn(|_| async { Err("no".into()) });
        let layer = layer.recall(|_| async { Ok("here".into()) });
        if with_init { layer.init(|_| async { Ok(InitResult { state: vec!["first".into()] }) }) } else { layer }.build()
    };
    for (with_init, recalled) in [(true, false), (false, true)] {
        let (builder, _) = parent(failing(with_init));
        let recorder = Recorder::new();
        let engine = builder.observer(recorder.clone()).build().unwrap();
        let mut execution = engine.execution("thread").start().await.unwrap();
        let mut child = execution.spawn().await.unwrap();
        assert_eq!(known(&child), [""; 0]);
        child.turn("go").await.unwrap();
        let spans = recorder.spans();
        let recall = spans.iter().find(|span| span.hook == Hook::Recall).unwrap();
        // A layer that has `init` and no state is uninitialised; one without `init` starts empty.
        assert_eq!(recall.status == contexture_core::event::SpanStatus::Ok, recalled);
        assert_eq!(recorder.faults()[0].message, "no");
    }
}

#[tokio::test]
async fn a_layer_may_have_no_state_in_a_child() {
    let home = words(spec("words", 1))
        .init(|_| async { Ok(InitResult { state: vec!["home".into()] }) })
        .on_spawn(|_| async { Ok(SpawnResult { child_state: None, items: vec![] }) })
        .on_return(|_| async { panic!("the child had none of it") })
        .on_complete(|params| async move {
            assert_eq!(params.ctx.depth, 0, "the child had none of it");
            Ok(CompleteResult::keep())
        })
        .build();
    let (builder, _) = parent(home);
    let recorder = Recorder::new();
    let engine = builder.observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let child = execution.spawn().await.unwrap();
    let refused = child.memory().call_json("words/add", json!({ "word": "x" })).await.unwrap_err();
    assert_eq!(refused.to_string(), "layer `words` is not running");
    assert_eq!(execution.join(child, json!(1)).await.unwrap(), json!(1));
    execution.complete().await.unwrap();
    assert!(recorder.faults().is_empty());
}

#[tokio::test]
async fn a_failed_on_return_leaves_the_parent_and_the_result_unchanged() {
    let failing = words(spec("words", 1)).on_return(|_| async { panic!("lost on the way") }).build();
    let (builder, _) = parent(failing);
    let engine = builder.build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    add(&execution, "red").await;
    let child = execution.spawn().await.unwrap();
    add(&child, "blue").await;
    assert_eq!(execution.join(child, json!("result")).await.unwrap(), json!("result"));
    assert_eq!(known(&execution), ["red"]);
}

#[tokio::test]
async fn a_child_begins_with_messages_alone() {
    let garbage = words(spec("words", 1))
        .on_spawn(|params| async move {
            params.child_ctx.trace.set_attribute("depth", f64::from(params.child_ctx.depth));
            let items = vec![Item::call("x", "y", "{}"), Item::developer("fine"), Item::output("x", "")];
            Ok(SpawnResult { child_state: None, items })
        })
        .build();
    let (builder, _) = parent(garbage);
    let recorder = Recorder::new();
    let engine = builder.observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let child = execution.spawn().await.unwrap();
    assert_eq!(child.log().iter().cloned().collect::<Vec<_>>(), [Item::developer("fine")]);
    assert_eq!(
        recorder.faults()[0].message,
        "2 items dropped: a child's log may only start with the layer's own messages"
    );
    assert_eq!(recorder.spans()[0].notes.len(), 1, "notes taken in the child's context belong to the span");
}

#[tokio::test]
async fn a_child_whose_layer_fails_to_start_is_an_error_and_the_parent_continues() {
    let diary = Diary::new();
    let ended = diary.clone();
    let picky = layer::<()>(spec("picky", 2)).init(|params| async move {
        if params.ctx.depth == 0 { Ok(InitResult { state: () }) } else { Err("not down there".into()) }
    });
    let other = layer::<()>(spec("other", 1)).on_complete(move |params| {
        ended.note(format!("{} {:?}", params.ctx.depth, params.outcome));
        async { Ok(CompleteResult::keep()) }
    });
    let engine = engine(memory((other.build(), picky.build()))).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert!(matches!(execution.spawn().await, Err(Error::Init { .. })));
    assert_eq!(diary.take(), ["1 Failure"]);
    assert_eq!(execution.turn("hello").await.unwrap().text(), "ok");
}

#[tokio::test]
async fn layers_added_late_are_in_the_child_too() {
    let engine = engine(memory(())).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.add_layer(carried()).await.unwrap();
    let child = execution.spawn().await.unwrap();
    child.memory().call_json("words/add", json!({ "word": "x" })).await.unwrap();
}

#[tokio::test]
async fn disabled_layers_stay_disabled_in_the_child() {
    let disabled = layer::<()>(spec("broken", 1).with_on_init_error(OnInitError::Disable))
        .init(|_| async { Err("no".into()) })
        .on_spawn(|_| async { panic!("it is disabled") })
        .recall(|_| async { panic!("it is disabled") })
        .build();
    let recorder = Recorder::new();
    let engine = engine(memory((disabled,))).model(ScriptedModel::new()).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.spawn().await.unwrap().turn("go").await.unwrap();
    assert_eq!(recorder.faults().len(), 1, "its init, and nothing since");
}
