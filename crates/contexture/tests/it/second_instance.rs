//! Every built-in layer can be in a memory twice, under two ids.

use std::sync::Arc;

use contexture::layers::*;
use contexture::memory::At;
use contexture::prelude::*;
use contexture::store::MemoryStore;
use contexture::testing::{ScriptedModel, engine};
use contexture_memory::layers::episodic::ForgetEpisodes;
use serde_json::json;

fn files() -> FileReference {
    FileReference::new(FileReferenceOptions::default()).unwrap()
}

/// All layers that can be twice in one engine, each twice.
fn doubled() -> contexture::memory::MemoryConfig<(TaskState, TaskState)> {
    memory((TaskState::new(), TaskState::new().with_id("task-state-2")))
        .with_layer(Reminder::new())
        .with_layer(Reminder::new().with_id("reminder-2"))
        .with_layer(Temporal::new())
        .with_layer(Temporal::new().with_id("temporal-2"))
        .with_layer(Steering::new())
        .with_layer(Steering::new().with_id("steering-2"))
        .with_layer(WorkingMemory::new())
        .with_layer(WorkingMemory::new().with_id("working-memory-2"))
        .with_layer(Instructions::new())
        .with_layer(Instructions::new().with_id("instructions-2"))
        .with_layer(Plan::new())
        .with_layer(Plan::new().with_id("plan-2"))
        .with_layer(ToolMemory::new())
        .with_layer(ToolMemory::new().with_id("tool-memory-2"))
        .with_layer(Entity::new())
        .with_layer(Entity::new().with_id("entity-2"))
        .with_layer(Observations::new())
        .with_layer(Observations::new().with_id("observations-2"))
        .with_layer(Procedural::new())
        .with_layer(Procedural::new().with_id("procedural-2"))
        .with_layer(Episodic::new())
        .with_layer(Episodic::new().with_id("episodic-2"))
        .with_layer(SemanticRecall::new())
        .with_layer(SemanticRecall::new().with_id("semantic-recall-2"))
        .with_layer(files())
        .with_layer(files().with_id("file-reference-2"))
}

/// The two layers that say what of the past is shown exclude each other, but have an id too.
#[tokio::test]
async fn every_built_in_layer_can_have_another_id() {
    let twice = doubled().len() / 2;
    assert_eq!(twice + 2, built_in().len(), "a new layer is missing here");
    assert!(engine(doubled()).model(ScriptedModel::new()).build().is_ok());
    let model = ScriptedModel::new();
    let renamed = engine(memory((FileHistory::default().with_id("past"),))).model(model.clone()).build().unwrap();
    renamed.execution("t").start().await.unwrap().turn("hello").await.unwrap();
    assert_eq!(&*model.requests()[0].tools[0].public_name, "past/output");
    assert!(engine(memory((HistoryWindow::new(8).with_id("newest"),))).build().is_ok());
}

#[tokio::test]
async fn two_instances_have_states_of_their_own() {
    let model = ScriptedModel::new()
        .calls("task-state-2/set_task_data", r#"{"set":{"port":8080}}"#)
        .calls("plan-2/propose", r#"{"goal":"second","steps":[{"title":"one"}]}"#)
        .says("done");
    let store = Arc::new(MemoryStore::new());
    let agent = engine(doubled()).store(store.clone()).model(model.clone()).build().unwrap();
    let mut execution = agent.execution("t").resource("ada").start().await.unwrap();
    execution.turn("go").await.unwrap();
    let memory = execution.memory();
    let first = memory.read::<TaskState, _, At<0>>(TaskState::DATA).unwrap();
    let second = memory.read::<TaskState, _, At<1>>(TaskState::DATA).unwrap();
    assert_eq!((json!(first), json!(second)), (json!({}), json!({ "port": 8080 })));
    execution.turn("go on").await.unwrap();
    let shown: String = model.requests().last().unwrap().items.iter().map(|item| json!(item).to_string()).collect();
    assert!(shown.contains("second"), "{shown}");
    execution.complete().await.unwrap();
    let agent = engine(doubled()).store(store).model(ScriptedModel::new()).build().unwrap();
    let execution = agent.execution("t").resource("ada").start().await.unwrap();
    let kept = execution.memory().read::<TaskState, _, At<1>>(TaskState::DATA).unwrap();
    assert_eq!(json!(kept), json!({ "port": 8080 }));
    for layer in ["episodic", "episodic-2"] {
        let forget = json!(ForgetEpisodes { text: "go".into() });
        let forgotten = execution.memory().call_json(&format!("{layer}/forget"), forget).await.unwrap();
        assert_eq!(forgotten.result, json!("1 records removed"));
    }
}
