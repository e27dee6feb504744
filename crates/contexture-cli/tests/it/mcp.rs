//! `contexture mcp`.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::program::run_in;

/// The responses to requests, by their ids.
#[track_caller]
fn talk(directory: &Path, requests: &[Value]) -> Vec<Value> {
    let input: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let run = run_in(directory, &["mcp", "--store", "m.db", "--thread", "t"], &input);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn call(id: u64, name: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({ "name": name, "arguments": arguments }))
}

fn text(response: &Value) -> (&str, bool) {
    let result = &response["result"];
    (result["content"][0]["text"].as_str().unwrap_or_default(), result["isError"].as_bool().unwrap_or(true))
}

#[test]
fn an_agent_keeps_files_across_two_servers() {
    let directory = tempdir().unwrap();
    let hello =
        json!({ "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let answers = talk(
        directory.path(),
        &[
            request(1, "initialize", hello),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            request(2, "tools/list", json!({})),
            call(3, "memory_create", json!({ "path": "/memories/a.md", "file_text": "one\ntwo\n" })),
            call(4, "memory_str_replace", json!({ "path": "/memories/a.md", "old_str": "two", "new_str": "three" })),
        ],
    );
    assert_eq!(answers.len(), 4, "a notification has no response");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-03-26");
    let names: Vec<&str> =
        answers[1]["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 8);
    assert_eq!(text(&answers[2]), ("File created successfully at: /memories/a.md", false));
    assert!(!text(&answers[3]).1, "{}", answers[3]);
    let answers = talk(
        directory.path(),
        &[
            call(1, "memory_view", json!({ "path": "/memories/a.md" })),
            call(2, "memory_rename", json!({ "old_path": "/memories/a.md", "new_path": "/memories/b.md" })),
            call(3, "memory_insert", json!({ "path": "/memories/b.md", "insert_line": 0, "insert_text": "zero\n" })),
            call(4, "memory_view", json!({ "path": "/memories/b.md" })),
            call(5, "memory_delete", json!({ "path": "/memories/b.md" })),
            call(6, "memory_view", json!({ "path": "/memories/b.md" })),
        ],
    );
    assert!(text(&answers[0]).0.contains("three") && !text(&answers[0]).0.contains("two"));
    assert!(text(&answers[3]).0.contains("zero"));
    assert!(!text(&answers[4]).1 && text(&answers[5]).1);
    assert!(text(&answers[5]).0.contains("/memories/b.md"), "the cause is told: {}", answers[5]);
}

#[test]
fn past_conversations_are_searched() {
    let directory = tempdir().unwrap();
    let line = r#"{"id":"1","role":"user","text":"The violin is in the attic.","at":"2026-01-01"}"#;
    fs::write(directory.path().join("talk.jsonl"), line).unwrap();
    run_in(directory.path(), &["memory", "import", "talk.jsonl", "--thread", "t", "--store", "m.db"], "");
    let answers = talk(
        directory.path(),
        &[
            call(1, "search_past", json!({ "text": "Where is the violin?" })),
            call(2, "search_past", json!({ "text": "zeppelin" })),
            call(3, "search_past", json!({})),
            call(4, "show_text", json!({ "hash": "0123456789ab" })),
        ],
    );
    assert!(text(&answers[0]).0.contains("[2026-01-01]\nuser: The violin is in the attic."), "{}", answers[0]);
    let nothing = "nothing was found in the conversations of the thread `t`; --resource and --thread of `contexture mcp` \
                   choose others";
    assert_eq!(text(&answers[1]), (nothing, false));
    assert_eq!(text(&answers[2]), ("`text` is missing", true));
    assert!(text(&answers[3]).1, "the gateway has no store here");
}

#[test]
fn nonsense_is_answered_with_errors_of_the_protocol() {
    let directory = tempdir().unwrap();
    let input = "{\n\n[]\n7\nnull\n{\"id\":1,\"method\":\"none\"}\n{\"id\":2,\"method\":\"tools/call\"}\n\
                 {\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"memory_none\"}}\n{\"id\":4,\"method\":\"ping\"}\n";
    let run = run_in(directory.path(), &["mcp", "--store", "m.db"], input);
    let codes: Vec<i64> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["error"]["code"].as_i64().unwrap_or(0))
        .collect();
    assert_eq!((run.code, codes), (0, vec![-32700, -32600, -32600, -32600, -32601, -32602, -32602, 0]));
}

/// A client waits for the response to its request, so the response has its id.
#[test]
fn a_request_that_is_too_long_is_refused_by_its_id() {
    let directory = tempdir().unwrap();
    let long = "x".repeat(5 << 20);
    let requests = [
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"x":"{long}"}}}}"#),
        format!(r#" {{ "method" : "ping", "id" : "se\"ven", "params":{{"x":"{long}"}}}}"#),
        format!(r#"{{"params":{{"id":1,"x":"{long}"}},"id":7}}"#),
        format!("[{long}"),
    ];
    let run = run_in(directory.path(), &["mcp", "--store", "m.db"], &(requests.join("\n") + "\n"));
    let answers: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(7), &json!("se\"ven"), &Value::Null, &Value::Null]);
    assert!(answers.iter().all(|answer| answer["error"]["code"] == -32600), "{answers:?}");
}
