//! Notes, at their door.

use contexture_core::engine::{Engine, Execution};
use contexture_core::error::FunctionError;
use contexture_core::testing::{Recorder, ScriptedModel, engine, layer_conformance};
use contexture_core::{Error, MemoryStore, StorageAdapter, memory};

use super::*;

type OneLayer = (WorkingMemory,);

fn profile() -> WorkingMemory {
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "likes": { "type": "object" } },
        "additionalProperties": false,
    });
    WorkingMemory::object(schema).expect("a schema within the part that can be checked")
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn agent(layer: WorkingMemory, store: &Arc<dyn StorageAdapter>, model: &ScriptedModel) -> Engine<OneLayer> {
    engine(memory((layer,))).store(store.clone()).model(model.clone()).build().expect("a good memory")
}

fn forgetful() -> Arc<dyn StorageAdapter> {
    Arc::new(MemoryStore::new())
}

async fn started(layer: WorkingMemory) -> Execution<OneLayer> {
    agent(layer, &forgetful(), &ScriptedModel::new()).execution("thread").start().await.expect("a start")
}

fn notes(execution: &Execution<OneLayer>) -> Notes {
    execution.memory().read(WorkingMemory::SNAPSHOT).expect("declared data")
}

/// The result of `update` itself.
#[track_caller]
fn reason(error: Error) -> String {
    match error {
        Error::Function(FunctionError::Failed { source, .. }) => source.to_string(),
        other => panic!("another error: {other}"),
    }
}

#[tokio::test]
async fn conforms_in_every_form() {
    layer_conformance(WorkingMemory::new).await;
    layer_conformance(|| WorkingMemory::new().with_scope(MemoryScope::Resource)).await;
    layer_conformance(profile).await;
    // Far longer than any budget: the layer itself shortens what it shows.
    let long = Notes::Text("</memory> A line of notes.\n".repeat(2_000));
    layer_conformance(|| WorkingMemory::new().with_template(long.clone()).read_only()).await;
}

#[tokio::test]
async fn the_model_sees_what_it_noted() {
    let model = ScriptedModel::new().calls("working-memory/update", r#"{"text":"The user is Ada."}"#).says("Noted.");
    let engine = agent(WorkingMemory::new(), &forgetful(), &model);
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("I am Ada.").await.unwrap();
    execution.turn("Who am I?").await.unwrap();
    let shown = model.last_texts().join("\n");
    assert!(shown.contains("layer=\"working-memory\">\nThe user is Ada.\n</"), "{shown}");
}

#[tokio::test]
async fn notes_survive_a_restart_and_are_shared_within_their_scope() {
    let store = forgetful();
    let shared = || WorkingMemory::new().with_scope(MemoryScope::Resource);
    let engine = agent(shared(), &store, &ScriptedModel::new());
    let first = engine.execution("one").resource("ada").start().await.unwrap();
    first.memory().call(WorkingMemory::UPDATE, Update::Text("Likes tea.".into())).await.unwrap();
    first.complete().await.unwrap();

    let engine = agent(shared(), &store, &ScriptedModel::new());
    let same_user = engine.execution("two").resource("ada").start().await.unwrap();
    assert_eq!(notes(&same_user), Notes::Text("Likes tea.".into()));
    let other_user = engine.execution("three").resource("bob").start().await.unwrap();
    assert_eq!(notes(&other_user), Notes::default());
}

#[tokio::test]
async fn an_update_that_breaks_the_schema_changes_nothing_and_says_why() {
    let execution = started(profile()).await;
    let access = execution.memory();
    let update = |changes| access.call(WorkingMemory::UPDATE, Update::set(object(changes)));
    update(json!({ "name": "Ada" })).await.unwrap();
    let refused = update(json!({ "name": 7 })).await.unwrap_err();
    assert_eq!(reason(refused), "`name` is a number, expected a string");
    assert_eq!(notes(&execution), Notes::Object(object(json!({ "name": "Ada" }))));
}

#[tokio::test]
async fn an_update_of_the_other_kind_is_refused() {
    let execution = started(WorkingMemory::new()).await;
    let refused = execution.memory().call(WorkingMemory::UPDATE, Update::set(Map::new())).await.unwrap_err();
    assert!(refused.to_string().starts_with("arguments of `working-memory/update`: "), "{refused}");
}

#[tokio::test]
async fn notes_that_are_too_long_are_refused() {
    let execution = started(WorkingMemory::new()).await;
    let text = "word ".repeat(10_000);
    let refused = execution.memory().call(WorkingMemory::UPDATE, Update::Text(text)).await.unwrap_err();
    assert!(reason(refused).ends_with("tokens, more than 1400"));
    assert_eq!(notes(&execution), Notes::default());
}

/// Text becomes an object, an object gets another schema, and an object becomes text.
#[tokio::test]
async fn stored_notes_that_do_not_fit_any_more_are_kept_aside_and_reported() {
    let other = WorkingMemory::object(json!({ "type": "object", "required": ["age"] })).unwrap();
    let name = Notes::Object(object(json!({ "name": "Ada" })));
    let cases = [
        (WorkingMemory::new(), Update::Text("tea".into()), profile(), r#"{"format":1,"state":"tea"}"#),
        (profile(), Update::set(object(json!({ "name": "Ada" }))), other, r#"{"format":1,"state":{"name":"Ada"}}"#),
        (
            profile(),
            Update::set(object(json!({ "name": "Ada" }))),
            WorkingMemory::new(),
            r#"{"format":1,"state":{"name":"Ada"}}"#,
        ),
    ];
    for (before, update, after, kept) in cases {
        let store = forgetful();
        let first = agent(before, &store, &ScriptedModel::new());
        let execution = first.execution("thread").start().await.unwrap();
        execution.memory().call(WorkingMemory::UPDATE, update).await.unwrap();
        execution.complete().await.unwrap();

        let (recorder, model) = (Recorder::new(), ScriptedModel::new());
        let builder = engine(memory((after.clone(),))).store(store.clone()).model(model.clone());
        let second = builder.observer(recorder.clone()).build().unwrap();
        let mut execution = second.execution("thread").start().await.unwrap();
        assert!(notes(&execution).is_empty(), "it starts fresh");
        assert_eq!((recorder.faults().len(), recorder.faults()[0].place), (1, "restore"));
        execution.turn("hello").await.unwrap();
        assert!(!model.last_texts().iter().any(|text| text.contains("Ada") || text.contains("tea")));
        if after.schema.is_none() {
            execution.memory().call(WorkingMemory::UPDATE, Update::Text("new".into())).await.unwrap();
        }
        execution.complete().await.unwrap();
        let backups = store.list("layers/working-memory/thread/thread/state.backup.").await.unwrap();
        let aside = store.get(&backups[0]).await.unwrap().expect("it is listed").value;
        assert_eq!((backups.len(), String::from_utf8(aside).unwrap().as_str()), (1, kept));
    }
    assert!(profile().check_state(&name).is_ok() && profile().check_state(&Notes::default()).is_ok());
}

#[tokio::test]
async fn read_only_notes_have_no_tool() {
    let layer = WorkingMemory::new().with_template(Notes::Text("Be kind.".into())).read_only();
    let engine = agent(layer, &forgetful(), &ScriptedModel::new());
    assert_eq!(engine.tool_schemas(), []);
    let execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(notes(&execution), Notes::Text("Be kind.".into()));
}

#[tokio::test]
async fn a_template_that_does_not_fit_ends_the_start() {
    let layer = profile().with_template(Notes::Text("text".into()));
    let engine = agent(layer, &forgetful(), &ScriptedModel::new());
    let refused = engine.execution("thread").start().await.err().expect("an error");
    let Error::Init { source, .. } = refused else { panic!("another error: {refused}") };
    assert_eq!(source.to_string(), "the template does not fit: the notes are text, expected an object");
}

#[test]
fn a_schema_that_cannot_be_checked_is_refused_by_name() {
    let refused = WorkingMemory::object(json!({ "type": "objekt" })).unwrap_err();
    assert!(refused.to_string().starts_with("layer `working-memory`: `schema` "), "{refused}");
}

#[test]
fn what_is_set_is_merged_and_null_changes_nothing() {
    #[track_caller]
    fn check(before: Value, set: Value, after: Value) {
        let mut merged = object(before);
        merge_object(&mut merged, object(set), MAX_DEPTH).unwrap();
        assert_eq!(Value::Object(merged), after);
    }
    check(json!({}), json!({ "a": 1 }), json!({ "a": 1 }));
    check(json!({ "a": { "b": 1, "c": 2 } }), json!({ "a": { "c": 3 } }), json!({ "a": { "b": 1, "c": 3 } }));
    check(json!({ "a": { "b": 1 } }), json!({ "a": { "b": null } }), json!({ "a": { "b": 1 } }));
    check(json!({ "a": 1 }), json!({ "a": null, "b": null }), json!({ "a": 1 }));
    check(json!({ "a": 1 }), json!({ "a": { "b": { "c": null } } }), json!({ "a": { "b": {} } }));
    check(json!({ "a": [1, 2] }), json!({ "a": [3] }), json!({ "a": [3] }));
}

#[test]
fn what_is_removed_is_named_by_its_path() {
    #[track_caller]
    fn check(path: &str, expected: Result<Value, &str>) {
        let mut notes = object(json!({ "a": { "b": 1, "c.d": 2 }, "e": 3 }));
        let removed = remove_path(&mut notes, path).map(|()| Value::Object(notes));
        assert_eq!(removed, expected.map_err(str::to_owned));
    }
    check("a.b", Ok(json!({ "a": { "c.d": 2 }, "e": 3 })));
    check("/a/c.d", Ok(json!({ "a": { "b": 1 }, "e": 3 })));
    check("a", Ok(json!({ "e": 3 })));
    check("e.f", Err("`remove` names `e.f`, which is not there"));
    check("", Err("`remove` names ``, which is not there"));
}

#[tokio::test]
async fn an_update_is_made_whole_or_not_at_all() {
    let execution = started(profile()).await;
    let update = |input: Value| {
        let access = execution.memory();
        async move { access.call_json("working-memory/update", input).await.map(|called| called.result) }
    };
    update(json!({ "set": { "name": "Ada", "likes": { "tea": 1 } } })).await.unwrap();
    update(json!({ "set": { "name": null }, "remove": null })).await.unwrap();
    let refused = update(json!({ "set": { "name": "Bob" }, "remove": ["likes.milk"] })).await.unwrap_err();
    assert_eq!(reason(refused), "`remove` names `likes.milk`, which is not there");
    let deep = (0..20).fold(json!(1), |inner, _| json!({ "x": inner }));
    let refused = update(json!({ "set": { "likes": deep }, "remove": ["name"] })).await.unwrap_err();
    assert_eq!(reason(refused), "the notes would nest deeper than 8 levels");
    let expected = json!({ "name": "Ada", "likes": { "tea": 1 } });
    assert_eq!(notes(&execution), Notes::Object(object(expected)));
}

#[test]
fn two_writers_lose_nothing() {
    let text = |text: &str| Notes::Text(text.into());
    let merged = WorkingMemory::new().merge(&text("tea\nours"), &text("tea\ntheirs"));
    assert_eq!(merged, Some(text("tea\ntheirs\nours")));

    let likes = |likes: Value| Notes::Object(object(json!({ "likes": likes })));
    let merged = profile().merge(&likes(json!({ "tea": 1, "rain": 1 })), &likes(json!({ "tea": 0, "snow": 1 })));
    assert_eq!(merged, Some(likes(json!({ "tea": 1, "rain": 1, "snow": 1 }))));
}

#[tokio::test]
async fn secrets_are_not_kept_and_the_model_is_told() {
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let execution = started(WorkingMemory::new()).await;
    let told = execution.memory().call(WorkingMemory::UPDATE, Update::Text(format!("the key is {key}"))).await.unwrap();
    assert!(told.result.contains("a secret in it was replaced"), "{}", told.result);
    assert_eq!(notes(&execution), Notes::Text("the key is [redacted: GitHub token]".to_owned()));
    let execution = started(profile()).await;
    let set = object(json!({ "name": key, "likes": { "password": "hunter2-Xq9", "tea": ["green"] } }));
    execution.memory().call(WorkingMemory::UPDATE, Update::set(set)).await.unwrap();
    let kept = json!({ "name": "[redacted: GitHub token]", "likes": { "password": "[redacted: password]", "tea": ["green"] } });
    assert_eq!(notes(&execution), Notes::Object(object(kept)));
}
