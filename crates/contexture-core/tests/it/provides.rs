//! Data and functions of layers: names, inputs, outputs, and invalid calls.

use std::sync::Arc;

use contexture_core::engine::{Engine, MemoryAccess};
use contexture_core::item::Origin;
use contexture_core::layer::*;
use contexture_core::testing::{Recorder, ScriptedModel, engine};
use contexture_core::{Error, Item, MemoryStore, StorageAdapter, memory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kit::{Diary, counting_tool, spec, timed};

/// A counter with its own type, so that its data and functions have typed names.
struct Counter;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Add {
    /// How much to add.
    by: u32,
}

impl Counter {
    const COUNT: LayerData<Counter, u32> = LayerData::new("count");
    const AS_TEXT: LayerData<Counter, u32> = LayerData::new("text");
    const ADD: LayerFunction<Counter, Add, u32> = LayerFunction::new("add");
}

impl MemoryLayer for Counter {
    type State = u32;

    fn spec(&self) -> LayerSpec {
        spec("counter", 1)
    }

    fn provides(&self) -> LayerProvides<u32> {
        LayerProvides::new()
            .data("count", layer_data(|count: &u32| *count))
            .data("text", layer_data(|count: &u32| format!("{count} so far")))
            .function(
                "add",
                layer_fn("Adds to the count.", |add: Add, count: Arc<u32>, _| async move {
                    // Without the layer's lock another call could run in between.
                    tokio::task::yield_now().await;
                    let count = count.checked_add(add.by).ok_or("the count is full")?;
                    Ok(FnResult::new(count).with_state(count))
                }),
            )
            .function("panic", layer_fn("Panics.", |_: Add, _, _| async { panic_with("as asked") }))
            .function(
                "lie",
                layer_fn_with_schema(
                    "Lies.",
                    json!({ "type": "object" }),
                    json!({ "type": "string" }),
                    |_, _, _| async { Ok(FnResult::new(json!(7)).with_state(99)) },
                ),
            )
    }
}

fn panic_with(text: &str) -> HookResult<FnResult<u32, u32>> {
    panic!("{text}")
}

fn counting() -> Engine<(Counter,)> {
    timed(memory((Counter,))).0.model(ScriptedModel::new()).build().unwrap()
}

#[tokio::test]
async fn data_and_functions_are_accessed_by_their_types() {
    let execution = counting().execution("thread").start().await.unwrap();
    let memory: MemoryAccess<(Counter,)> = execution.memory();
    assert_eq!(memory.read(Counter::COUNT), Some(0));
    assert_eq!(memory.call(Counter::ADD, Add { by: 2 }).await.unwrap().result, 2);
    assert_eq!((memory.read(Counter::COUNT), memory.state::<Counter, _>()), (Some(2), 2));
    assert_eq!(memory.read(Counter::AS_TEXT), None, "declared as text, asked for as a number");
    assert_eq!(json!(memory.context_memory()), json!({ "counter": { "count": 2, "text": "2 so far" } }));
    assert_eq!(memory.call_json("counter/add", json!({ "by": 3 })).await.unwrap().result, json!(5));
}

#[tokio::test]
async fn functions_become_tools_with_the_schema_of_their_types() {
    let engine = counting();
    let schema = &engine.tool_schemas()[0];
    assert_eq!((schema.name.as_str(), schema.public_name.as_str()), ("counter__add", "counter/add"));
    assert_eq!(schema.description, "Adds to the count.");
    assert_eq!(schema.parameters["required"], json!(["by"]));
    assert_eq!(schema.parameters["properties"]["by"]["description"], "How much to add.");
}

#[tokio::test]
async fn the_model_may_use_either_name_and_the_log_has_the_public_one() {
    for name in ["counter/add", "counter__add"] {
        let model = ScriptedModel::new().calls(name, r#"{"by":1}"#);
        let engine = timed(memory((Counter,))).0.model(model).build().unwrap();
        let mut execution = engine.execution("thread").start().await.unwrap();
        execution.turn("count").await.unwrap();
        let call = execution.log().iter().find_map(|item| item.as_call()).unwrap();
        assert_eq!(&*call.name, "counter/add");
        assert_eq!(execution.memory().read(Counter::COUNT), Some(1));
    }
}

/// Says of itself that it is a small number, and is none.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Odd {
    #[schemars(range(max = 3))]
    number: u32,
}

#[tokio::test]
async fn what_a_typed_function_returns_is_checked_against_its_schema_too() {
    let odd = layer_fn("Returns too much.", |_: Value, _: Arc<u32>, _| async {
        Ok(FnResult::new(Odd { number: 7 }).with_state(1))
    });
    let layer = layer::<u32>(spec("odd", 1)).provides(LayerProvides::new().function("f", odd)).build();
    let engine = engine(memory((layer,))).model(ScriptedModel::new()).build().unwrap();
    let execution = engine.execution("thread").start().await.unwrap();
    let error = execution.memory().call_json("odd/f", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("number"), "{error}");
    assert_eq!(execution.memory().state::<ClosureLayer<u32>, _>(), 0, "and its state is not kept");
}

/// Has the model call a function; returns the output, the count and the faults.
async fn answered(name: &str, arguments: &str) -> (String, u32, Vec<String>) {
    let (model, recorder) = (ScriptedModel::new().calls(name, arguments), Recorder::new());
    let (builder, _) = timed(memory((Counter,)));
    let engine = builder.model(model).observer(recorder.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("count").await.unwrap();
    let output = execution.log().iter().find_map(|item| item.as_output()).unwrap();
    let text = if output.outcome.is_error() { format!("error: {}", output.output) } else { output.output.clone() };
    let faults = recorder.faults().into_iter().map(|fault| fault.message).collect();
    (text, execution.memory().read(Counter::COUNT).unwrap(), faults)
}

#[tokio::test]
async fn a_bad_call_is_a_clear_error_and_changes_nothing() {
    let cases = [
        (
            "counter/add",
            "not json",
            "error: Arguments of `counter/add` are not JSON: expected ident at line 1 column 2.",
        ),
        ("counter/add", "", "error: arguments of `counter/add`: `by` is missing"),
        ("counter/add", r#"{"by":"one"}"#, "error: arguments of `counter/add`: `by` is a string, expected an integer"),
        ("counter/add", r#"{"by":-1}"#, "error: arguments of `counter/add`: `by` is -1, expected at least 0"),
        ("counter/add", "[1]", "error: arguments of `counter/add`: the value is an array, expected an object"),
        ("counter/sub", "{}", "error: There is no tool `counter/sub`."),
    ];
    for (name, arguments, expected) in cases {
        assert_eq!(answered(name, arguments).await, (expected.to_owned(), 0, vec![]), "{name}({arguments})");
    }
}

#[tokio::test]
async fn a_function_that_misbehaves_is_an_error_a_fault_and_no_change() {
    let panicked = "`counter/panic` panicked: as asked";
    assert_eq!(
        answered("counter/panic", r#"{"by":1}"#).await,
        ("error: `counter/panic` failed: panicked: as asked".to_owned(), 0, vec![panicked.to_owned()])
    );
    let (text, count, faults) = answered("counter/lie", "{}").await;
    assert_eq!(text, "error: result of `counter/lie`: the value is a number, expected a string");
    assert_eq!((count, faults.len()), (0, 1));
}

#[tokio::test]
async fn a_function_may_fail_in_its_own_words() {
    let execution = counting().execution("thread").start().await.unwrap();
    let memory = execution.memory();
    memory.call(Counter::ADD, Add { by: u32::MAX }).await.unwrap();
    let error = memory.call(Counter::ADD, Add { by: 1 }).await.unwrap_err();
    assert_eq!(error.to_string(), "`counter/add` failed");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the count is full");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_run_one_after_the_other_and_no_update_is_lost() {
    let execution = counting().execution("thread").start().await.unwrap();
    let calls = (0..100).map(|_| {
        let memory = execution.memory();
        tokio::spawn(async move { memory.call(Counter::ADD, Add { by: 1 }).await.unwrap() })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(execution.memory().read(Counter::COUNT), Some(100));
}

#[tokio::test]
async fn nothing_can_be_called_once_the_execution_has_ended() {
    let execution = counting().execution("thread").start().await.unwrap();
    let memory = execution.memory();
    execution.complete().await.unwrap();
    let error = memory.call(Counter::ADD, Add { by: 1 }).await.unwrap_err();
    assert_eq!(error.to_string(), "layer `counter` is not running");
    assert_eq!(memory.read(Counter::COUNT), Some(0));
}

#[tokio::test]
async fn unknown_names_are_refused() {
    let execution = counting().execution("thread").start().await.unwrap();
    for name in ["counter/none", "nobody/add", "add", "", "/", "counter/"] {
        let error = execution.memory().call_json(name, json!({})).await.unwrap_err();
        assert_eq!(error.to_string(), format!("there is no function `{name}`"));
    }
    const NONE: LayerFunction<Counter, Add, u32> = LayerFunction::new("none");
    let error = execution.memory().call(NONE, Add { by: 1 }).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no function `counter/none`");
    const NO_DATA: LayerData<Counter, u32> = LayerData::new("none");
    assert_eq!(execution.memory().read(NO_DATA), None);
}

/// A tool with a state: how often it was asked to add, and the sum.
fn adder() -> ClosureLayer<(u32, u32)> {
    layer(spec("adder", 1))
        .tool("add", "Adds.", |add: Add, (calls, sum): &mut (u32, u32)| {
            *calls += 1;
            *sum = sum.checked_add(add.by).ok_or("the sum is too large")?;
            Ok(*sum)
        })
        .recall(|params| async move { Ok(format!("The sum is {}.", params.state.1).into()) })
        .build()
}

#[tokio::test]
async fn the_state_of_a_tool_is_stored_and_shown_and_a_failed_call_leaves_it() {
    let store = Arc::new(MemoryStore::new());
    let model =
        ScriptedModel::new().calls("adder/add", r#"{"by":2}"#).calls("adder/add", r#"{"by":4294967295}"#).says("2");
    let engine = engine(memory((adder(),))).model(model).store(store.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("add").await.unwrap();
    let outputs: Vec<String> =
        execution.log().iter().filter_map(|item| item.as_output()).map(|output| output.output.to_string()).collect();
    assert!(outputs[0] == "2" && outputs[1].contains("the sum is too large"), "{outputs:?}");
    execution.complete().await.unwrap();
    let model = ScriptedModel::new();
    let engine = self::engine(memory((adder(),))).model(model.clone()).store(store).build().unwrap();
    let mut again = engine.execution("thread").start().await.unwrap();
    again.turn("How much is it?").await.unwrap();
    assert_eq!(again.memory().state::<ClosureLayer<(u32, u32)>, _>(), (1, 2));
    assert!(model.last_texts().iter().any(|text| text.contains("The sum is 2.")));
}

#[tokio::test]
async fn layers_read_each_others_state() {
    let reader = layer::<()>(spec("reader", 2)).recall(|params| async move {
        let read = |id| params.ctx.read_layer_state::<u32>(id);
        let text = params.ctx.read_layer_state::<String>("counter");
        Ok(format!("{:?} {:?} {text:?}", read("counter"), read("nobody")).into())
    });
    let model = ScriptedModel::new();
    let engine = timed(memory((Counter, reader.build()))).0.model(model.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.memory().call_json("counter/add", json!({ "by": 5 })).await.unwrap();
    execution.turn("hello").await.unwrap();
    assert!(model.last_texts()[0].contains("Some(5) None None"), "{}", model.last_texts()[0]);
}

#[tokio::test]
async fn a_function_sees_the_conversation_so_far_also_after_a_restart_and_in_a_child() {
    let length =
        || layer_fn("Counts items.", |_: Value, _: Arc<()>, ctx| async move { Ok(FnResult::new(ctx.log().len())) });
    let counts = || layer(spec("log", 1)).provides(LayerProvides::new().function("length", length())).build();
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    let start = async |model: ScriptedModel| {
        let built = engine(memory((counts(),))).store(store.clone()).model(model).build().unwrap();
        built.execution("thread").start().await.unwrap()
    };
    let mut execution = start(ScriptedModel::new().calls("log/length", "{}").says("two")).await;
    execution.turn("how long is it?").await.unwrap();
    let told = |position: usize| execution.log().get(position).unwrap().item.as_output().unwrap().output.clone();
    assert_eq!(told(2), "2", "the question and the call itself");
    drop(execution);

    let mut execution = start(ScriptedModel::new()).await;
    let length = async |access: MemoryAccess<_>| access.call_json("log/length", json!({})).await.unwrap().result;
    assert_eq!(length(execution.memory()).await, json!(4));
    let mut child = execution.spawn().await.unwrap();
    child.import([Item::user("of its own")]).await.unwrap();
    assert_eq!((length(child.memory()).await, length(execution.memory()).await), (json!(1), json!(4)));
}

/// A layer with functions of these names that do nothing.
fn with_functions(id: &str, names: &[&str]) -> ClosureLayer<()> {
    let idle = || layer_fn("Idles.", |_: Value, _: Arc<()>, _| async { Ok(FnResult::new(())) });
    let provides = names.iter().fold(LayerProvides::new(), |provides, name| provides.function(*name, idle()));
    layer(spec(id, 1)).provides(provides).build()
}

#[tokio::test]
async fn names_on_the_wire_are_one_to_one() {
    let engine = engine(memory((with_functions("a.b/ü", &["x/y", "z z"]),))).build().unwrap();
    let names: Vec<_> = engine.tool_schemas().iter().map(|tool| (&*tool.name, &*tool.public_name)).collect();
    assert_eq!(names, [("a_b_____x__y", "a.b/ü/x/y"), ("a_b_____z_z", "a.b/ü/z z")]);
    let execution = engine.execution("thread").start().await.unwrap();
    for name in ["a.b/ü/x/y", "a.b/ü/z z"] {
        assert_eq!(execution.memory().call_json(name, json!({})).await.unwrap().result, json!(null));
    }
}

#[track_caller]
fn refused(result: Result<Engine<impl Sized>, Error>, expected: &str) {
    match result {
        Ok(_) => panic!("it must be refused: {expected}"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

#[test]
fn clashes_are_refused_when_the_engine_is_built() {
    let diary = Diary::new();
    let built = engine(memory((with_functions("a", &["f"]), with_functions("b", &["f"])))).build();
    assert!(built.is_ok(), "the same function of two layers");
    refused(
        engine(memory((with_functions("a.b", &["f"]), with_functions("a-b", &["f"]), with_functions("a b", &["f"]))))
            .build(),
        "layer `a b`: `name` `a b/f` makes `a_b__f` on the wire, like another tool",
    );
    refused(
        engine(memory((with_functions("a", &["f"]),))).tool(counting_tool("a__f", &diary)).build(),
        "layer `a`: `name` `a/f` makes `a__f` on the wire, like another tool",
    );
    refused(
        engine(memory((with_functions("a", &["f"]),))).tool(counting_tool("a/f", &diary)).build(),
        "layer `a`: `name` `a/f` is used by another tool too",
    );
    refused(
        engine(memory(())).tool(counting_tool("t", &diary)).tool(counting_tool("t", &diary)).build(),
        "tool `t`: `name` `t` is used by another tool too",
    );
    refused(engine(memory(())).tool(counting_tool("", &diary)).build(), "tool ``: `name` is empty");
}

#[tokio::test]
async fn what_a_function_returns_is_the_layers_and_what_a_tool_returns_is_not() {
    let model = ScriptedModel::new().calls("counter/add", r#"{"by":2}"#).calls("count", "{}").says("Done.");
    let tool = counting_tool("count", &Diary::default());
    let engine = engine(memory((Counter,))).model(model).tool(tool).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("Count.").await.unwrap();
    let origins: Vec<Origin> = execution
        .log()
        .iter()
        .filter(|item| item.as_output().is_some())
        .map(|item| item.meta().unwrap().origin.clone())
        .collect();
    assert_eq!(origins, [Origin::Layer { id: "counter".into() }, Origin::Said]);
}
