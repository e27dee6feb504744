//! What a tool can do on behalf of its execution: start children, and read and call memory.

use std::sync::Arc;

use contexture_core::error::BoxError;
use contexture_core::layer::*;
use contexture_core::model::{LlmResponse, ModelRequest, Usage};
use contexture_core::store::{MemoryStore, StorageAdapter};
use contexture_core::testing::{Recorder, ScriptedModel, engine};
use contexture_core::tool::{ClosureTool, tool};
use contexture_core::{Error, Item, Model, memory};
use serde_json::{Value, json};

use crate::kit::{Diary, spec};

/// Reports of children.
struct Reports(Diary);

impl Reports {
    const ALL: LayerData<Reports, Vec<String>> = LayerData::new("all");
    const ADD: LayerFunction<Reports, Word, usize> = LayerFunction::new("add");
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Word {
    word: String,
}

impl MemoryLayer for Reports {
    type State = Vec<String>;

    fn spec(&self) -> LayerSpec {
        spec("reports", 1)
    }

    fn provides(&self) -> LayerProvides<Vec<String>> {
        let add = layer_fn("Adds a word.", |word: Word, words: Arc<Vec<String>>, _| async move {
            let words = [(*words).clone(), vec![word.word]].concat();
            Ok(FnResult::new(words.len()).with_state(words))
        });
        LayerProvides::new().data("all", layer_data(Vec::clone)).function("add", add.for_program())
    }

    async fn on_spawn(&self, params: SpawnParams<Vec<String>>) -> HookResult<SpawnResult<Vec<String>>> {
        self.0.note(format!("spawned {}", params.child_ctx.depth));
        Ok(SpawnResult::state((*params.parent_state).clone()))
    }

    async fn on_return(&self, params: ReturnParams<Vec<String>>) -> HookResult<ReturnResult<Vec<String>>> {
        let child = &params.child_ctx;
        self.0.note(format!("{} came back from depth {} to {}", child.execution_id, child.depth, params.ctx.depth));
        let report = params.result.as_str().unwrap_or_default().to_owned();
        let result = Value::from(format!("report: {report}"));
        Ok(ReturnResult::state([(*params.child_state).clone(), vec![report]].concat()).with_result(result))
    }

    async fn on_complete(&self, params: CompleteParams<Vec<String>>) -> HookResult<CompleteResult<Vec<String>>> {
        self.0.note(format!("depth {} ended as {:?}", params.ctx.depth, params.outcome));
        Ok(CompleteResult::keep())
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Task {
    task: String,
}

/// Lets a child do its argument.
fn task() -> ClosureTool {
    tool("task", "Lets a helper do a task.", |task: Task, ctx| {
        Box::pin(async move {
            let mut helper = ctx.child().keep_tools(|name| name != "task").start().await?;
            let report = helper.turn(task.task).await?.text();
            Ok(ctx.join(helper, report).await?)
        })
    })
}

/// The arguments of a tool that has none.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// The outputs of all tools in the log.
fn outputs(log: &contexture_core::ItemLog) -> Vec<String> {
    log.iter().filter_map(|item| Some(item.as_output()?.output.to_string())).collect()
}

#[tokio::test]
async fn a_tool_lets_a_child_work_with_both_hooks_its_usage_and_its_depth() {
    let (diary, store) = (Diary::new(), Arc::new(MemoryStore::new()));
    let usage = |text: &str| LlmResponse {
        usage: Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() },
        ..LlmResponse::text(text)
    };
    let model = ScriptedModel::new().calls("task", r#"{"task":"look"}"#).responds(move |_| Ok(usage("found it")));
    let builder = engine(memory((Reports(diary.clone()),))).store(store.clone()).model(model.clone()).tool(task());
    let engine = builder.build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(execution.turn("delegate").await.unwrap().text(), "ok");
    assert_eq!(outputs(execution.log()), ["report: found it"]);
    assert_eq!(execution.memory().read(Reports::ALL).unwrap(), ["found it"]);
    assert_eq!(execution.token_usage().input, 10);
    let offered: Vec<usize> = model.requests().iter().map(|request| request.tools.len()).collect();
    assert_eq!(offered, [1, 0, 1], "the child has no `task`");
    assert_eq!(diary.take(), ["spawned 1", "depth 1 ended as Success", "id-1 came back from depth 1 to 0"]);
    assert_eq!(store.list("threads/thread%2F").await.unwrap(), [""; 0], "a child that was joined leaves nothing");
    execution.complete().await.unwrap();
    let again = engine.execution("thread").start().await.unwrap();
    assert_eq!(again.memory().read(Reports::ALL).unwrap(), ["found it"], "what came back is durable");
}

#[tokio::test]
async fn several_children_at_once_are_told_apart_when_they_return() {
    let diary = Diary::new();
    let fan_out = tool("fan_out", "Asks two.", |_: Nothing, ctx| {
        Box::pin(async move {
            let (mut one, mut two) = (ctx.child().start().await?, ctx.child().start().await?);
            let (first, second) = tokio::join!(one.turn("one"), two.turn("two"));
            let second = ctx.join(two, second?.text()).await?;
            Ok(vec![ctx.join(one, first?.text()).await?, second])
        })
    });
    let model = ScriptedModel::new().calls("fan_out", "{}").says("a").says("b");
    let engine = engine(memory((Reports(diary.clone()),))).model(model).tool(fan_out).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("go").await.unwrap();
    assert_eq!(outputs(execution.log()), [r#"["report: a","report: b"]"#]);
    let noted = diary.take();
    let returned: Vec<&str> = noted.iter().filter_map(|note| note.split_once(" came back")).map(|(id, _)| id).collect();
    assert_eq!(returned, ["id-2", "id-1"]);
}

#[tokio::test]
async fn a_child_may_have_its_own_layers_tools_model_and_instructions() {
    struct Strict;
    impl Model for Strict {
        async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
            let names: Vec<&str> = request.tools.iter().map(|tool| tool.public_name.as_str()).collect();
            if request.items.iter().any(|item| item.as_output().is_some()) {
                return Ok(LlmResponse::text(format!("{} {names:?}", request.instructions)));
            }
            Ok(LlmResponse { items: vec![Item::call("c", "measure", "{}")], ..LlmResponse::default() })
        }
    }
    let diary = Diary::new();
    let (noted, depth) = (diary.clone(), diary.clone());
    let own = tool("own", "Delegates.", move |_: Nothing, ctx| {
        let (noted, depth) = (noted.clone(), depth.clone());
        Box::pin(async move {
            let measure = tool("measure", "Measures.", move |_: Nothing, ctx| {
                depth.note(format!("depth {}", ctx.execution().depth));
                Box::pin(async { Ok(1) })
            });
            let child = ctx.child().layers(memory((Reports(noted),))).keep_tools(|_| false).tool(measure);
            let mut child = child.model(Strict).instructions("measure").start().await?;
            let said = child.turn("go").await?.text();
            let words = child.memory().read(Reports::ALL).unwrap_or_default();
            Ok(format!("{said} {words:?} {}", ctx.join(child, Value::Null).await?))
        })
    });
    let engine = engine(memory(())).model(ScriptedModel::new().calls("own", "{}")).tool(own).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("go").await.unwrap();
    assert_eq!(outputs(execution.log()), [r#"measure ["measure"] [] null"#]);
    assert_eq!(diary.take(), ["depth 1", "depth 1 ended as Success"], "the parent has no such layer to return to");
}

#[tokio::test]
async fn a_tool_reads_and_calls_memory_by_type_and_by_id() {
    let read = tool("read", "Reads.", |_: Nothing, ctx| {
        Box::pin(async move {
            let memory = ctx.memory();
            let count = memory.call(Reports::ADD, Word { word: "red".into() }).await?;
            memory.call_json("reports/add", json!({ "word": "blue" })).await?;
            assert!(!count.durable, "the commit of the call's output makes it durable");
            let (typed, state) = (memory.read(Reports::ALL), memory.state::<Reports, _>());
            assert_eq!(typed.as_ref(), Some(&state));
            assert_eq!(memory.read_json("reports/none"), None);
            Ok(memory.read_json("reports/all"))
        })
    });
    let model = ScriptedModel::new().calls("read", "{}");
    let engine = engine(memory((Reports(Diary::new()),))).model(model).tool(read).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("go").await.unwrap();
    assert_eq!(outputs(execution.log()), [r#"["red","blue"]"#]);
    execution.complete().await.unwrap();
    let again = engine.execution("thread").start().await.unwrap();
    assert_eq!(again.memory().read(Reports::ALL).unwrap(), ["red", "blue"]);
}

#[tokio::test]
async fn aborting_the_turn_ends_the_child_of_its_tool() {
    /// Calls the tool, and then never returns.
    struct Waits(Diary);
    impl Model for Waits {
        async fn call(&self, _: ModelRequest) -> Result<LlmResponse, BoxError> {
            self.0.note("called");
            if self.0.len() > 1 {
                std::future::pending::<()>().await;
            }
            let call = Item::call("c", "task", r#"{"task":"wait"}"#);
            Ok(LlmResponse { items: vec![call], ..LlmResponse::default() })
        }
    }
    let (diary, calls) = (Diary::new(), Diary::new());
    let model = Waits(calls.clone());
    let engine = engine(memory((Reports(diary.clone()),))).model(model).tool(task()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let handle = execution.abort_handle();
    let (turned, ()) = tokio::join!(execution.turn("delegate"), async {
        while calls.len() < 2 {
            tokio::task::yield_now().await;
        }
        handle.abort();
    });
    assert!(matches!(turned, Err(Error::Aborted)));
    crate::kit::settle().await;
    assert_eq!(diary.take(), ["spawned 1", "depth 1 ended as Aborted"]);
}

/// A thread that a program named like a child is none.
#[tokio::test]
async fn children_that_were_dropped_are_deleted_with_their_parent() {
    let (store, recorder) = (Arc::new(MemoryStore::new()), Recorder::new());
    let model = ScriptedModel::new().says("mine").calls("leave", "{}");
    let leave = tool("leave", "Drops a child and its child.", |_: Nothing, ctx| {
        Box::pin(async move {
            let mut child = ctx.child().layers(memory((Reports(Diary::new()),))).start().await?;
            child.memory().call(Reports::ADD, Word { word: "left".into() }).await?;
            child.turn("say something").await?;
            child.spawn().await?.turn("and you").await?;
            Ok("left")
        })
    });
    let builder = engine(memory(())).store(store.clone()).model(model).tool(leave).observer(recorder.clone());
    let engine = builder.build().unwrap();
    let mut named = engine.execution("thread/mine").start().await.unwrap();
    named.turn("mine").await.unwrap();
    named.complete().await.unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("go").await.unwrap();
    execution.complete().await.unwrap();
    crate::kit::settle().await;
    let kept = store.list("threads/thread%2Fmine/").await.unwrap();
    let all = store.list("").await.unwrap();
    assert!(all.iter().any(|key| key.starts_with("layers/reports/thread/thread%2Fid-")), "{all:?}");
    assert!(engine.delete_thread("thread").await.unwrap());
    assert_eq!(store.list("").await.unwrap(), kept);
    assert!(recorder.faults().is_empty(), "{:?}", recorder.faults());
}
