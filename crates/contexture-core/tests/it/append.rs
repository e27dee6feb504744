//! How layers change user messages and tool outputs before they are logged, and tool calls that fail.

use contexture_core::item::{Origin, Outcome};
use contexture_core::layer::*;
use contexture_core::testing::{Recorder, ScriptedModel, engine};
use contexture_core::{Execution, Item, ItemLog, memory};
use serde_json::json;

use crate::kit::{Diary, FnTool, counting_tool, spec};

/// A layer that changes what is about to be logged.
fn changing(id: &str, slot: i32, change: impl Fn(Vec<Item>) -> Vec<Item> + Send + Sync + 'static) -> ClosureLayer<u32> {
    let append = move |params: OnItemAppendParams<u32>| {
        let items = change(params.items);
        async { Ok(OnItemAppendResult::items(items)) }
    };
    layer(spec(id, slot)).on_item_append(append).build()
}

fn lines(log: &ItemLog) -> Vec<String> {
    let line = |item: &Item| match item {
        Item::Message(message) => format!("{}: {}", message.role.as_str(), message.text()),
        Item::FunctionCall(call) => format!("call {}", call.name),
        Item::FunctionCallOutput(output) if output.outcome.is_error() => format!("error: {}", output.output),
        Item::FunctionCallOutput(output) => format!("output: {}", output.output),
        Item::Reasoning(reasoning) => format!("thought: {}", reasoning.text),
        Item::Opaque(value) => value.to_string(),
    };
    log.iter().map(line).collect()
}

#[tokio::test]
async fn layers_change_items_one_after_the_other_and_never_what_the_model_says() {
    let suffix = |id: &str, slot, mark: &'static str| {
        changing(id, slot, move |items| {
            let mark = |item: Item| match item {
                Item::Message(message) => Item::user(message.text() + mark),
                other => other,
            };
            items.into_iter().map(mark).collect()
        })
    };
    let layers = memory((suffix("second", 2, " two"), suffix("first", 1, " one")));
    let engine = engine(layers).model(ScriptedModel::new().says("mine")).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("zero").await.unwrap();
    assert_eq!(lines(execution.log()), ["user: zero one two", "assistant: mine"]);
}

#[tokio::test]
async fn a_dropped_message_ends_the_pipeline_without_a_model_call() {
    let diary = Diary::new();
    let noted = diary.clone();
    let layers = memory((
        changing("censor", 1, |_| vec![]),
        changing("after", 2, move |items| {
            noted.note("asked");
            items
        }),
    ));
    let model = ScriptedModel::new();
    let engine = engine(layers).model(model.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let answer = execution.turn("secret").await.unwrap();
    assert_eq!((answer.response, answer.steps, answer.usage, answer.durable), (None, 0, None, true));
    assert_eq!((execution.log().len(), model.requests().len(), diary.len()), (0, 0, 0));
    assert!(!execution.has_unfinished_turn());
}

#[tokio::test]
async fn injected_items_are_logged_and_shown() {
    let layers = memory((changing("notes", 1, |mut items| {
        items.insert(0, Item::developer("by the way"));
        items
    }),));
    let model = ScriptedModel::new();
    let engine = engine(layers).model(model.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    assert_eq!(lines(execution.log()), ["developer: by the way", "user: hello", "assistant: ok"]);
    assert_eq!(model.last_texts(), ["by the way", "hello"]);
}

/// Runs a turn in which the model calls the tool `look`; returns the log and the faults.
async fn looked(layer: ClosureLayer<u32>) -> (Vec<String>, Vec<String>) {
    let (recorder, model) = (Recorder::new(), ScriptedModel::new().calls("look", "{}"));
    let builder = engine(memory((layer,))).model(model).observer(recorder.clone());
    let engine = builder.tool(counting_tool("look", &Diary::new())).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    let faults = recorder.faults().into_iter().map(|fault| fault.message).collect();
    (lines(execution.log()), faults)
}

fn is_output(items: &[Item]) -> bool {
    items.iter().any(|item| item.as_output().is_some())
}

#[tokio::test]
async fn a_dropped_tool_output_is_replaced_by_a_note() {
    let (log, _) = looked(changing("censor", 1, |items| if is_output(&items) { vec![] } else { items })).await;
    assert_eq!(log, ["user: hello", "call look", "output: The output of this call was withheld.", "assistant: ok"]);
}

#[tokio::test]
async fn an_output_stays_directly_after_its_call() {
    let (log, _) = looked(changing("notes", 1, |mut items| {
        if is_output(&items) {
            items.insert(0, Item::developer("before"));
            items.push(Item::developer("after"));
        }
        items
    }))
    .await;
    assert_eq!(
        log,
        ["user: hello", "call look", "output: done", "developer: before", "developer: after", "assistant: ok"]
    );
}

#[tokio::test]
async fn a_layer_cannot_speak_for_the_model_or_its_tools() {
    let garbage = |mut items: Vec<Item>| {
        items.push(Item::call("x", "look", "{}"));
        items.push(Item::output("x", "made up"));
        items.push(Item::output("call-0", "once more"));
        items.push(Item::Opaque(json!({ "type": "note" })));
        items
    };
    let (log, faults) = looked(changing("inventive", 1, garbage)).await;
    let note = r#"{"type":"note"}"#;
    assert_eq!(log, ["user: hello", note, "call look", "output: done", note, "assistant: ok"]);
    assert_eq!(faults, ["3 items dropped: a layer may only add its own messages, as its schemas declare them"; 2]);
}

#[tokio::test]
async fn a_layer_may_change_user_messages_but_not_add_any() {
    let opaque_user = || Item::Opaque(json!({ "type": "message", "role": "user", "content": "forged" }));
    type Change = fn(Vec<Item>) -> Vec<Item>;
    let cases: [(Change, &[&str]); 5] = [
        (|_| vec![Item::user("changed")], &["user: changed"]),
        (|items| [vec![Item::user("forged")], items].concat(), &["user: hello"]),
        (|items| [items.clone(), items].concat(), &["user: hello"]),
        (|items| [items, vec![Item::assistant("forged")]].concat(), &["user: hello"]),
        (|items| [vec![Item::developer("note")], items].concat(), &["developer: note", "user: hello"]),
    ];
    for (change, expected) in cases {
        let (log, _) = looked(changing("changing", 1, change)).await;
        assert_eq!(log[..expected.len()], *expected, "{log:?}");
        assert!(!log.iter().any(|line| line.contains("forged")), "{log:?}");
    }
    let forge = move |items: Vec<Item>| [items, vec![opaque_user(), Item::user("forged")]].concat();
    let (log, faults) = looked(changing("forging", 1, forge)).await;
    assert_eq!(log, ["user: hello", "call look", "output: done", "assistant: ok"], "of outputs too");
    assert_eq!(faults.len(), 2);
    let trusted = layer::<u32>(spec("trusted", 1).with_speaking_for_others(true))
        .on_item_append(|params| async move {
            Ok(OnItemAppendResult::items([params.items, vec![Item::assistant("as said before")]].concat()))
        })
        .build();
    let (log, faults) = looked(trusted).await;
    assert_eq!((&*log[1], faults.len()), ("assistant: as said before", 0));
}

#[tokio::test]
async fn declared_schemas_hold_for_messages_too() {
    let schema = json!({ "type": "object", "properties": { "role": { "const": "developer" }, "id": { "type": "string" } }, "required": ["id"] });
    let with_id = |id: &str| {
        let message = Item::developer("note");
        let Item::Message(mut message) = message else { unreachable!("made as one") };
        message.id = Some(id.into());
        Item::from(message)
    };
    let adding = |items: Vec<Item>| {
        let schema = schema.clone();
        layer::<u32>(spec("adding", 1).with_item_schema("message", schema)).on_item_append(move |params| {
            std::future::ready(Ok(OnItemAppendResult::items([params.items, items.clone()].concat())))
        })
    };
    let (log, faults) = looked(adding(vec![Item::developer("no id"), with_id("one")]).build()).await;
    assert_eq!(log[..2], ["user: hello", "developer: note"]);
    assert_eq!(faults.len(), 2);
    let breaking = layer::<u32>(spec("breaking", 1).with_item_schema("message", schema.clone()))
        .on_item_append(|_| async { Ok(OnItemAppendResult::items(vec![Item::user("changed, and no developer")])) });
    let (log, faults) = looked(breaking.build()).await;
    assert_eq!(log[0], "user: hello", "what the user said is not lost over it");
    assert!(faults[0].contains("schema"), "{faults:?}");
}

#[tokio::test]
async fn a_failed_or_panicking_append_keeps_items_and_state() {
    let failing = layer::<u32>(spec("failing", 1)).on_item_append(|_| async { Err("no".into()) }).build();
    let panicking = layer::<u32>(spec("panicking", 2)).on_item_append(|_| async { panic!("no") }).build();
    let engine = engine(memory((failing, panicking))).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    assert_eq!(lines(execution.log()), ["user: hello", "assistant: ok"]);
}

#[tokio::test]
async fn a_huge_item_is_logged_whole_and_shown_within_the_budget() {
    let layers = memory((changing("verbose", 1, |_| vec![Item::user("word ".repeat(200_000))]),));
    let model = ScriptedModel::new();
    let engine = engine(layers).model(model.clone()).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    let usage = execution.turn("hello").await.unwrap().usage.unwrap();
    assert!(usage.total() + usage.response_reserve <= usage.budget);
    assert_eq!(execution.log().iter().next().unwrap().as_message().unwrap().text().len(), 1_000_000);
}

/// Runs a turn in which the model calls `name`; returns the output of the call.
async fn answered(name: &str, arguments: &str) -> String {
    let model = ScriptedModel::new().calls(name, arguments);
    let engine = engine(memory(()))
        .model(model)
        .tool(FnTool("fine", |arguments: serde_json::Value| async move { Ok(arguments.to_string()) }))
        .tool(FnTool("failing", |_| async { Err("the disk is full".into()) }))
        .tool(FnTool("panicking", |_| async { panic!("in the tool") }))
        .build()
        .unwrap();
    let mut execution: Execution<()> = engine.execution("thread").start().await.unwrap();
    assert_eq!(execution.turn("hello").await.unwrap().text(), "ok", "the turn goes on");
    lines(execution.log()).remove(2)
}

#[tokio::test]
async fn every_tool_call_gets_an_output() {
    let cases = [
        ("fine", r#"{"a":1}"#, r#"output: {"a":1}"#),
        ("fine", "", "output: {}"),
        ("fine", "  ", "output: {}"),
        ("fine", "{ not json", "error: Arguments of `fine` are not JSON: key must be a string at line 1 column 3."),
        ("fine", "[]", "error: Arguments of `fine`: the value is an array, expected an object"),
        ("failing", "{}", "error: the disk is full"),
        ("panicking", "{}", "error: `panicking` panicked."),
        ("missing", "{}", "error: There is no tool `missing`."),
    ];
    for (name, arguments, expected) in cases {
        assert_eq!(answered(name, arguments).await, expected, "{name}({arguments})");
    }
}

#[tokio::test]
async fn calls_without_a_unique_id_get_one() {
    let model = ScriptedModel::new().responds(|_| {
        let items =
            vec![Item::call("", "look", "{}"), Item::call("same", "look", "{}"), Item::call("same", "look", "{}")];
        Ok(contexture_core::LlmResponse { items, ..Default::default() })
    });
    let diary = Diary::new();
    let engine = engine(memory(())).model(model).tool(counting_tool("look", &diary)).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    let calls: Vec<_> = execution.log().iter().filter_map(|item| Some(item.as_call()?.call_id.clone())).collect();
    let outputs: Vec<_> = execution.log().iter().filter_map(|item| Some(item.as_output()?.call_id.clone())).collect();
    assert_eq!((&*calls[0], &*calls[1], &*calls[2]), ("call_1", "same", "call_3"));
    assert_eq!(calls, outputs);
    assert_eq!(diary.len(), 3);
}

#[tokio::test]
async fn items_of_a_layer_name_it_and_a_changed_failure_stays_a_failure() {
    let append = |params: OnItemAppendParams<()>| async move {
        let mut items = params.items;
        if let Some(output) = items[0].as_output() {
            items[0] = Item::output(&output.call_id, "all is well");
        }
        items.push(Item::developer("a reminder"));
        Ok(OnItemAppendResult::items(items))
    };
    let adds = layer(spec("adds", 1)).on_item_append(append).build();
    let model = ScriptedModel::new().calls("missing", "{}").says("done");
    let engine = engine(memory(()).with_layer(adds)).model(model).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("hello").await.unwrap();
    let log: Vec<Item> = execution.log().iter().cloned().collect();
    let origins: Vec<&Origin> = log.iter().filter_map(|item| Some(&item.as_message()?.meta.origin)).collect();
    let layer = Origin::Layer { id: "adds".into() };
    assert_eq!(origins, [&Origin::Said, &layer, &layer, &Origin::Said]);
    let output = log.iter().find_map(Item::as_output).unwrap();
    assert_eq!((output.output.as_str(), output.outcome), ("all is well", Outcome::Failed));
}
