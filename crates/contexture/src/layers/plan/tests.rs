//! What a plan does, at its door.

use contexture_core::engine::{Engine, Execution};
use contexture_core::testing::{ScriptedModel, engine, layer_conformance};
use contexture_core::{Tool, memory};
use serde_json::{Value, json};

use super::*;
use crate::files::dialect::ToolEntry;

struct Named(&'static str);

impl Tool for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        "Does something."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(
        &self,
        _: Value,
        _: contexture_core::tool::ToolContext<'_>,
    ) -> Result<String, contexture_core::error::BoxError> {
        Ok("ran".to_owned())
    }
}

fn agent(layer: Plan, model: &ScriptedModel) -> Engine<(Plan,)> {
    let builder = engine(memory((layer,))).model(model.clone());
    builder.tool(Named("Read")).tool(Named("Write")).tool(Named("look_up")).build().unwrap()
}

async fn started(layer: Plan, model: &ScriptedModel) -> Execution<(Plan,)> {
    agent(layer, model).execution("thread").start().await.unwrap()
}

async fn call(execution: &Execution<(Plan,)>, function: &str, input: Value) -> Result<String, String> {
    let called = execution.memory().call_json(&format!("plan/{function}"), input).await;
    called.map(|called| called.result.as_str().unwrap_or_default().to_owned()).map_err(|error| match error {
        contexture_core::Error::Function(contexture_core::error::FunctionError::Failed { source, .. }) => {
            source.to_string()
        }
        other => other.to_string(),
    })
}

fn three_steps() -> Value {
    json!({ "goal": "Ship it", "steps": [
        { "text": "Write" }, { "text": "Test", "after": ["1"] }, { "text": "Unit tests", "under": "2" },
        { "text": "Release", "id": "go", "after": ["2"] },
    ] })
}

fn outputs(model: &ScriptedModel) -> Vec<String> {
    let requests = model.requests();
    let items = &requests.last().expect("a request").items;
    items.iter().filter_map(|item| Some(item.as_output()?.output.clone())).collect()
}

#[tokio::test]
async fn conforms() {
    layer_conformance(Plan::new).await;
    layer_conformance(|| Plan::new().asking()).await;
}

#[tokio::test]
async fn only_reading_tools_run_while_planning() {
    let model = ScriptedModel::new()
        .calls("plan/propose", three_steps().to_string())
        .calls("Write", "{}")
        .calls("Read", "{}")
        .calls("look_up", "{}")
        .calls("plan/approve", "{}")
        .calls("Write", "{}")
        .says("Done.");
    let mut execution = started(Plan::new().with_reading_tool("look*"), &model).await;
    execution.turn("Go.").await.unwrap();
    let outputs = outputs(&model);
    assert!(outputs[1].contains("only tools that read may run until then"), "{outputs:?}");
    assert_eq!((outputs[2].as_str(), outputs[3].as_str(), outputs[5].as_str()), ("ran", "ran", "ran"));
}

#[tokio::test]
async fn only_the_user_approves_where_that_is_asked_for() {
    let model = ScriptedModel::new()
        .calls("plan/propose", three_steps().to_string())
        .calls("plan/approve", "{}")
        .says("Please approve.");
    let mut execution = started(Plan::new().asking(), &model).await;
    execution.turn("Go.").await.unwrap();
    assert!(outputs(&model)[1].contains("only the user approves"));
    call(&execution, "approve", json!({})).await.unwrap();
    let plan = execution.memory().read(Plan::PLAN).unwrap();
    assert_eq!((plan.phase(), plan.approved().map(|approval| approval.revision)), (Phase::Executing, Some(2)));
    call(&execution, "revise", json!({ "add": [{ "text": "Celebrate" }] })).await.unwrap();
    assert_eq!(execution.memory().read(Plan::PLAN).unwrap().phase(), Phase::Planning, "it waits for approval again");
}

#[tokio::test]
async fn the_plan_is_shown_as_decided_with_the_next_step() {
    let model = ScriptedModel::new();
    let mut execution = started(Plan::new(), &model).await;
    call(&execution, "propose", three_steps()).await.unwrap();
    call(&execution, "approve", json!({})).await.unwrap();
    let told =
        call(&execution, "update", json!({ "step": "1", "status": "done", "note": "it\nbuilds" })).await.unwrap();
    assert_eq!(told, "next is step 2.1: Unit tests");
    execution.turn("Go on.").await.unwrap();
    let expected = "<memory layer=\"plan\">\nGoal: Ship it\nApproved 2026-01-01 00:00 UTC. This is decided: carry it \
                    out step by step.\n- [x] 1 Write: it builds\n- [ ] 2 Test (after 1)\n  - [ ] 2.1 Unit tests\n\
                    - [ ] go Release (after 2)\nNext: step 2.1, Unit tests\n</memory>";
    assert_eq!(model.last_texts()[0], expected);
}

#[tokio::test]
async fn what_breaks_the_order_is_refused_with_a_reason() {
    let execution = started(Plan::new(), &ScriptedModel::new()).await;
    #[track_caller]
    fn check(refused: Result<String, String>, expected: &str) {
        assert_eq!(refused.unwrap_err(), expected);
    }
    check(call(&execution, "approve", json!({})).await, "there is no plan: propose one first");
    check(call(&execution, "propose", json!({ "goal": " ", "steps": [] })).await, "`goal` is empty");
    let circle = json!({ "goal": "x", "steps": [{ "text": "a", "after": ["2"] }, { "text": "b", "after": ["1"] }] });
    check(call(&execution, "propose", circle).await, "step `1` comes after itself, by way of others");
    let unknown = json!({ "goal": "x", "steps": [{ "text": "a", "after": ["9"] }] });
    check(call(&execution, "propose", unknown).await, "there is no step `9`; the steps are 1");
    call(&execution, "propose", three_steps()).await.unwrap();
    let update = |step: &str, status: &str| json!({ "step": step, "status": status });
    check(call(&execution, "update", update("1", "done")).await, "the plan is not approved yet, so no step has begun");
    call(&execution, "approve", json!({})).await.unwrap();
    check(
        call(&execution, "update", update("2.1", "in_progress")).await,
        "step `2.1` comes after `1`, which is pending",
    );
    call(&execution, "update", update("1", "done")).await.unwrap();
    call(&execution, "update", update("2.1", "in_progress")).await.unwrap();
    check(
        call(&execution, "update", update("1", "in_progress")).await,
        "step `2.1` is in progress: set it to done, failed or skipped first",
    );
    check(call(&execution, "update", update("go", "done")).await, "step `go` comes after `2`, which is pending");
    check(call(&execution, "update", update("2", "done")).await, "step `2.1`, a part of `2`, is in progress");
    for step in ["2.1", "2", "go"] {
        call(&execution, "update", update(step, "done")).await.unwrap();
    }
    assert_eq!(execution.memory().read(Plan::PLAN).unwrap().phase(), Phase::Finished);
    assert_eq!(execution.memory().read(Plan::HISTORY).unwrap().len(), 7);
}

#[tokio::test]
async fn children_bring_back_the_steps_that_they_finished() {
    let mut parent = started(Plan::new(), &ScriptedModel::new()).await;
    let steps: Vec<Value> = ["a", "b", "c"].map(|text| json!({ "text": text })).to_vec();
    call(&parent, "propose", json!({ "goal": "all", "steps": steps })).await.unwrap();
    call(&parent, "approve", json!({})).await.unwrap();
    let (one, two) = (parent.spawn().await.unwrap(), parent.spawn().await.unwrap());
    call(&one, "update", json!({ "step": "1", "status": "done" })).await.unwrap();
    call(&two, "update", json!({ "step": "2", "status": "failed", "note": "no disk" })).await.unwrap();
    call(&two, "update", json!({ "step": "3", "status": "in_progress" })).await.unwrap();
    parent.join(two, Value::Null).await.unwrap();
    parent.join(one, Value::Null).await.unwrap();
    let plan = parent.memory().read(Plan::PLAN).unwrap();
    let statuses: Vec<Status> = plan.steps().iter().map(|step| step.status).collect();
    assert_eq!(statuses, [Status::Done, Status::Failed, Status::Pending]);
}

#[test]
fn readers_are_tools_that_the_table_says_to_read() {
    let view = |plan: &Plan, name: &str| {
        plan.only_reads(name, &FunctionCall::new("1", name, r#"{"command":"view","path":"a"}"#))
    };
    for name in ["Read", "grep", "list_dir", "view", "text_editor", "cat_file"] {
        assert!(view(&Plan::new(), name), "{name}");
    }
    for name in ["Bash", "Edit", "fetch", "mcp__files__read_file", "Task"] {
        assert!(!view(&Plan::new(), name), "{name}");
    }
    let edit = FunctionCall::new("1", "str_replace_editor", r#"{"command":"create","path":"a"}"#);
    assert!(!Plan::new().only_reads("str_replace_editor", &edit));
    // A configuration can take a reader away, and cannot make one.
    let configured = |name: &str, does| Plan::new().with_dialects(Dialects::builtin().with(ToolEntry::new(name, does)));
    assert!(!view(&configured("view", Does::Edit), "view"));
    assert!(!view(&configured("Bash", Does::Read), "Bash"));
    assert!(!view(&configured("peek", Does::Read), "peek"));
}
