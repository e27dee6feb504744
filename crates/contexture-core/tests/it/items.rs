//! The serialised form of items: known fields, unknown fields, and the format of version 0.1.

use std::sync::Arc;

use contexture_core::item::{Content, Item, Meta, Origin, Outcome};
use serde_json::{Value, json};

/// Reads an item and writes it again.
#[track_caller]
fn survives(value: Value) -> Item {
    let item: Item = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&item).unwrap(), value);
    item
}

#[test]
fn fields_that_are_not_interpreted_survive_in_every_kind() {
    let text = json!({ "type": "text", "text": "hi" });
    survives(json!({ "type": "message", "role": "user", "content": [text], "status": "done", "n": { "deep": [1.5] } }));
    survives(json!({ "type": "function_call", "call_id": "a", "name": "t", "arguments": "{}", "namespace": null }));
    survives(json!({ "type": "function_call_output", "call_id": "a", "output": "", "name": "t" }));
    survives(json!({ "type": "reasoning", "text": "hm", "summary": [] }));
    survives(json!({ "type": "message", "role": "user", "content": [], "meta": { "compact": true } }));
    survives(json!({ "type": "web_search", "anything": 1 }));
}

#[test]
fn text_with_other_fields_is_kept_and_still_read_as_text() {
    let part = json!({ "type": "text", "text": "hi", "cache_control": { "type": "ephemeral" } });
    let item = survives(json!({ "type": "message", "role": "user", "content": [part.clone()] }));
    let message = item.as_message().unwrap();
    assert_eq!((&message.content[0], message.text().as_str()), (&Content::Opaque(part), "hi"));
}

#[test]
fn outputs_of_version_0_1_say_whether_they_failed() {
    let outcome = |fields: Value| {
        let mut output = json!({ "type": "function_call_output", "call_id": "a", "output": "x" });
        output.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let item: Item = serde_json::from_value(output).unwrap();
        item.as_output().unwrap().outcome
    };
    assert_eq!(outcome(json!({})), Outcome::Done);
    assert_eq!(outcome(json!({ "is_error": true })), Outcome::Failed);
    assert_eq!(outcome(json!({ "is_error": false })), Outcome::Done);
    assert_eq!(outcome(json!({ "outcome": "denied" })), Outcome::Denied);
    assert_eq!(outcome(json!({ "outcome": "interrupted", "is_error": true })), Outcome::Interrupted);
}

#[test]
fn metadata_survives_reading_and_writing() {
    let origin = Origin::Harness { kind: Some("file".into()), path: Some("src/a.rs".into()) };
    let meta = Meta { time_ms: Some(17), directory: Some(Arc::from("/repo")), origin, ..Meta::default() };
    let item = Item::user("look at this").with_meta(meta.clone());
    let written = serde_json::to_value(&item).unwrap();
    assert_eq!(
        written["meta"],
        json!({ "time_ms": 17, "directory": "/repo", "origin": { "by": "harness", "kind": "file", "path": "src/a.rs" } })
    );
    assert_eq!(serde_json::from_value::<Item>(written).unwrap().meta(), Some(&meta));
}
