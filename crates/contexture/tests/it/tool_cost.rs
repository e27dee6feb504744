//! What the definitions of the layers' tools cost in every request, and that a compact tool does what its functions do.

use std::sync::Arc;

use contexture::bpe::Bpe;
use contexture::layers::*;
use contexture::prelude::*;
use contexture::testing::{Recorder, ScriptedModel, engine};
use serde_json::json;

/// The limit for all layers together, in real tokens.
const MOST_TOKENS: u64 = 1_300;

fn all_layers() -> contexture::memory::MemoryConfig<(TaskState,)> {
    memory((TaskState::new(),))
        .with_layer(Reminder::new())
        .with_layer(Temporal::new())
        .with_layer(Steering::new())
        .with_layer(WorkingMemory::new())
        .with_layer(Instructions::new())
        .with_layer(Plan::new())
        .with_layer(ToolMemory::new())
        .with_layer(Entity::new())
        .with_layer(Observations::new())
        .with_layer(Procedural::new())
        .with_layer(Episodic::new())
        .with_layer(SemanticRecall::new())
        .with_layer(FileReference::new(FileReferenceOptions::default()).unwrap())
        .with_layer(FileHistory::default())
}

#[tokio::test]
async fn the_tools_of_all_layers_fit_their_limit() {
    let (model, counter) = (ScriptedModel::new(), Bpe::o200k());
    let agent = engine(all_layers()).counter(Arc::new(counter)).model(model.clone()).build().unwrap();
    let mut execution = agent.execution("t").start().await.unwrap();
    execution.turn("hi").await.unwrap();
    let sent = execution.usage().unwrap().tools;
    let each: Vec<(String, u64)> =
        agent.tool_schemas().iter().map(|tool| (tool.public_name.clone(), tool.tokens(&counter))).collect();
    assert!(sent <= MOST_TOKENS, "{sent} tokens: {each:?}");
    assert_eq!(sent, each.iter().map(|(_, tokens)| tokens).sum::<u64>());
    let listed: u64 = built_in().iter().map(|layer| layer.tool_tokens(&counter)).sum();
    assert_eq!(sent, listed, "the catalogue says the same");
}

#[tokio::test]
async fn a_compact_tool_calls_its_functions_and_so_do_their_own_names() {
    let recorder = Recorder::new();
    let model = ScriptedModel::new()
        .calls("task-state__do", r#"{"action":"set_task_data","set":{"port":8080}}"#)
        .calls("task-state/set_task_data", r#"{"set":{"host":"a"}}"#)
        .calls("task-state__checkpoint", r#"{"name":"half"}"#)
        .calls("task-state/do", r#"{"action":"checkpoint","note":"no name"}"#)
        .calls("task-state/do", r#"{"action":"nothing"}"#)
        .calls("task-state/do", "[1]")
        .says("done");
    let gate = Steering::new().call_rule("seen", |name: &str, call| match name {
        "task-state/checkpoint" if call.arguments.contains("half") => SteeringDecision::guide("not yet"),
        _ => SteeringDecision::allow(),
    });
    let layers = memory((TaskState::new(), gate));
    let agent = engine(layers).model(model).observer(recorder.clone()).build().unwrap();
    let names: Vec<&str> = agent.tool_schemas().iter().map(|tool| tool.public_name.as_str()).collect();
    assert_eq!(names, ["task-state/do"]);
    let mut execution = agent.execution("t").start().await.unwrap();
    execution.turn("go").await.unwrap();
    assert_eq!(json!(execution.memory().read(TaskState::DATA)), json!({ "port": 8080, "host": "a" }));
    assert_eq!(json!(execution.memory().read(TaskState::CHECKPOINTS)), json!([]));
    let outputs: Vec<String> =
        execution.log().iter().filter_map(|item| item.as_output()).map(|output| output.output.clone()).collect();
    assert_eq!(outputs[..3], ["1 values", "2 values", "not yet"]);
    assert!(outputs[3].contains("name"), "{outputs:?}");
    let actions = "`action` of `task-state/do` is one of [\"checkpoint\",\"record_artifact\",\"set_task_data\"]";
    assert_eq!(outputs[4..], [actions, actions]);
    let logged: Vec<&str> = execution.log().iter().filter_map(|item| item.as_call()).map(|call| &*call.name).collect();
    assert_eq!(logged[..3], ["task-state/do", "task-state/set_task_data", "task-state/checkpoint"]);
}

/// What is sent of a schema says everything that a call needs: names, types and what is required.
#[test]
fn definitions_are_plain_and_complete() {
    for layer in built_in() {
        for tool in &layer.definitions {
            let text = tool.parameters.to_string();
            assert!(!text.contains("$schema") && !text.contains("\"title\"") && !text.contains("uint"), "{text}");
            assert!(tool.parameters["properties"].is_object(), "{}", tool.public_name);
        }
    }
    let plan = built_in().into_iter().find(|layer| layer.id.as_str() == "plan").unwrap();
    assert_eq!(plan.tools, ["plan/propose", "plan/approve", "plan/update", "plan/revise"]);
    let step = &plan.definitions[0].parameters["properties"]["steps"]["items"];
    assert_eq!((&step["required"], &step["properties"]["text"]), (&json!(["text"]), &json!({ "type": "string" })));
    assert!(
        plan.definitions[0].description.contains("\nupdate(status, step, note?): "),
        "{}",
        plan.definitions[0].description
    );
}
