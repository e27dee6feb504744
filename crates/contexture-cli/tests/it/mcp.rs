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
    assert_eq!(names.len(), 9);
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
fn files_are_those_of_a_project_or_of_all() {
    let directory = tempdir().unwrap();
    let store = directory.path().join("m.db");
    let view = |project: &str, more: &[&str], requests: &[Value]| {
        let place = directory.path().join(project);
        fs::create_dir_all(&place).unwrap();
        let input: String = requests.iter().map(|request| format!("{request}\n")).collect();
        let run = run_in(&place, &[&["mcp", "--store", store.to_str().unwrap()], more].concat(), &input);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        let answers: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        text(&answers[0]).0.to_owned()
    };
    let create = |text: &str| [call(1, "memory_create", json!({ "path": "/memories/a.md", "file_text": text }))];
    let shown = [call(1, "memory_view", json!({ "path": "/memories/a.md" }))];
    view("one", &[], &create("a heron"));
    view("two", &["--everywhere"], &create("a crane"));
    assert!(view("one", &[], &shown).contains("a heron"));
    assert!(view("one", &["--everywhere"], &shown).contains("a crane"));
    assert!(view("two", &["--resource", "user"], &shown).contains("a crane"), "files of earlier versions are there");
    assert!(!view("two", &[], &shown).contains("a heron"), "another project has none");
}

#[test]
fn a_secret_that_is_not_kept_is_named() {
    let directory = tempdir().unwrap();
    let key = format!("ghp_{}", "aZ9bY8cX7d".repeat(4));
    let fact = format!("The deployment uses the key {key}.");
    let told = talk(directory.path(), &[call(1, "remember", json!({ "text": fact }))]);
    let told = text(&told[0]).0;
    assert!(
        told.starts_with("remembered as ") && told.ends_with("; not kept, because it is secret: GitHub token"),
        "{told}"
    );
    let run = run_in(directory.path(), &["memory", "add", &format!("Another is {key}."), "--store", "m.db"], "");
    assert!(run.stdout.ends_with("; not kept, because it is secret: GitHub token\n"), "{}", run.stdout);
}

#[test]
fn tools_say_whether_they_destroy() {
    let directory = tempdir().unwrap();
    let answers = talk(directory.path(), &[request(1, "tools/list", json!({}))]);
    let tools = answers[0]["result"]["tools"].as_array().unwrap();
    let named = |hint: &str| -> Vec<&str> {
        let has = |tool: &&Value| tool["annotations"][hint] == true;
        tools.iter().filter(has).map(|tool| tool["name"].as_str().unwrap()).collect()
    };
    assert_eq!(named("readOnlyHint"), ["memory_view", "search_past", "show_text"]);
    assert_eq!(named("destructiveHint"), ["memory_str_replace", "memory_delete"]);
    assert_eq!(named("idempotentHint"), ["remember"]);
    assert_eq!(named("openWorldHint"), [""; 0]);
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
                 {\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"memory_none\"}}\n{\"id\":5,\"method\":7}\n\
                 {\"id\":6,\"result\":{}}\n{\"id\":4,\"method\":\"ping\"}\n";
    let run = run_in(directory.path(), &["mcp", "--store", "m.db"], input);
    let mut codes: Vec<i64> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["error"]["code"].as_i64().unwrap_or(0))
        .collect();
    // What is no request is refused at once, before requests that wait.
    codes.sort_unstable();
    assert_eq!((run.code, codes), (0, vec![-32700, -32602, -32602, -32601, -32600, -32600, -32600, -32600, 0]));
}

/// A notification has no response, so whoever sends one that is malformed is told nothing, and is served on.
#[test]
fn notifications_of_any_form_end_nothing() {
    let directory = tempdir().unwrap();
    for params in ["7", "\"x\"", "[]", "true", "{}", "{\"requestId\":[1]}"] {
        for method in ["cancelled", "initialized"] {
            let told = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#);
            let input = format!("{told}\n{{\"id\":4,\"method\":\"ping\"}}\n");
            let run = run_in(directory.path(), &["mcp", "--store", "m.db"], &input);
            assert_eq!((run.code, run.stdout.lines().count()), (0, 1), "{told}: {}", run.stderr);
        }
    }
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

/// A request of the revision without a handshake.
fn stateless(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    request(id, method, params)
}

#[test]
fn a_request_without_a_handshake_says_itself_what_it_is_of() {
    let directory = tempdir().unwrap();
    let view = json!({ "name": "memory_view", "arguments": { "path": "/memories" } });
    let answers = talk(
        directory.path(),
        &[
            stateless(1, "server/discover", json!({})),
            stateless(2, "tools/list", json!({})),
            stateless(3, "tools/call", view),
            stateless(4, "ping", json!({})),
            stateless(5, "tools/list", json!({ "cursor": "2" })),
            stateless(6, "tools/call", json!({ "name": "search_past", "arguments": { "text": "x" } })),
        ],
    );
    let discovered = &answers[0]["result"];
    assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(discovered["capabilities"], json!({ "tools": {} }));
    for answer in &answers[..3] {
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        assert_eq!(answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "contexture");
    }
    for answer in &answers[..2] {
        assert!(answer["result"]["ttlMs"].is_u64() && answer["result"]["cacheScope"] == "public", "{answer}");
    }
    assert_eq!((&answers[3]["error"]["code"], &answers[4]["error"]["code"]), (&json!(-32601), &json!(-32602)));
    assert_eq!(answers[5]["result"]["structuredContent"]["is_found"], false);
}

#[test]
fn revisions_are_negotiated_down_and_wrong_ones_are_named() {
    let directory = tempdir().unwrap();
    let hello = |id, version: &str| request(id, "initialize", json!({ "protocolVersion": version }));
    let mut future = stateless(5, "tools/list", json!({}));
    future["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2031-01-01".into();
    let mut bare = stateless(6, "tools/list", json!({}));
    bare["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].take();
    let mut odd = stateless(7, "tools/list", json!({}));
    odd["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(["2026-07-28"]);
    let versions = [hello(1, "2025-11-25"), hello(2, "2024-11-05"), hello(3, "2026-07-28"), hello(4, "x")];
    let rest = [future, bare, odd, request(8, "server/discover", json!({})), request(9, "tools/list", json!([]))];
    let answers = talk(directory.path(), &[&versions[..], &rest[..]].concat());
    let spoken: Vec<&Value> = answers[..4].iter().map(|answer| &answer["result"]["protocolVersion"]).collect();
    assert_eq!(spoken, ["2025-11-25", "2024-11-05", "2025-11-25", "2025-11-25"]);
    assert_eq!(answers[4]["error"]["code"], -32022);
    assert_eq!(answers[4]["error"]["data"], json!({ "supported": ["2026-07-28"], "requested": "2031-01-01" }));
    let codes: Vec<&Value> = answers[5..].iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [-32602, -32602, -32602, -32602]);
}

#[test]
fn progress_is_told() {
    let directory = tempdir().unwrap();
    let view = |id: u64, token: Value| {
        let meta = json!({ "progressToken": token });
        let params = json!({ "name": "memory_view", "arguments": { "path": "/memories" }, "_meta": meta });
        request(id, "tools/call", params)
    };
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } });
    let answers =
        talk(directory.path(), &[view(1, json!("t")), cancel, view(2, json!({})), view(3, json!("x".repeat(1_000)))]);
    let progress = json!({ "progressToken": "t", "progress": 0, "total": 1, "message": "memory_view" });
    assert_eq!(answers[0]["params"], progress);
    let ids: Vec<&Value> = answers[1..].iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [1, 2, 3], "{answers:?}");
    assert!(answers[2]["error"]["code"] == -32602 && answers[3]["error"]["code"] == -32602);
}

/// A server over HTTP, which ends with the value.
struct Http {
    child: std::process::Child,
    address: String,
    token: String,
}

impl Http {
    fn start(directory: &Path) -> Self {
        let mut child = crate::program::program(directory)
            .args(["mcp", "--store", "m.db", "--listen", "127.0.0.1:0"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        let address = lines.next().unwrap().unwrap();
        let address = address.trim_start_matches("listening on http://").trim_end_matches("/mcp").to_owned();
        let token = lines.next().unwrap().unwrap().trim_start_matches("token: ").to_owned();
        Self { child, address, token }
    }

    /// The status and the body of a response.
    fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = std::net::TcpStream::connect(&self.address).unwrap();
        let has = |name: &str| headers.iter().any(|(given, _)| *given == name);
        let mut head = format!("{method} /mcp HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        let bearer = format!("Bearer {}", self.token);
        for (name, value) in
            [("host", self.address.as_str()), ("authorization", &bearer), ("content-type", "application/json")]
        {
            if !has(name) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        std::io::Write::write_all(&mut stream, format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut response = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut response);
        let response = String::from_utf8_lossy(&response).into_owned();
        let status = response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, response.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned()))
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn over_http_only_who_has_the_token_and_comes_from_here_is_served() {
    let directory = tempdir().unwrap();
    let server = Http::start(directory.path());
    let ping = request(1, "ping", json!({})).to_string();
    let status = |headers: &[(&str, &str)]| server.send("POST", headers, &ping).0;
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&[("authorization", "")]), 401);
    assert_eq!(status(&[("authorization", &format!("Bearer {}x", server.token))]), 401);
    assert_eq!(status(&[("authorization", &format!("Basic {}", server.token))]), 401);
    assert_eq!(status(&[("host", "evil.example")]), 403);
    assert_eq!(status(&[("origin", "https://evil.example")]), 403);
    assert_eq!(status(&[("origin", "null")]), 403);
    assert_eq!(status(&[("origin", "http://localhost:1")]), 200);
    assert_eq!(status(&[("content-type", "text/plain")]), 415);
    assert_eq!(status(&[("mcp-protocol-version", "2025-06-18")]), 200);
    assert_eq!(status(&[("mcp-protocol-version", "2031-01-01")]), 400);
    assert_eq!(server.send("GET", &[], "").0, 405);
    assert_eq!(server.send("DELETE", &[], "").0, 405);
    assert_eq!(server.send("POST", &[], &format!("[{ping}]")).0, 400);
    assert_eq!(server.send("POST", &[], &"[".repeat(100_000)).0, 400);
    let long = format!("{{\"id\":1,\"method\":\"ping\",\"params\":{{\"x\":\"{}\"}}}}", "x".repeat(5 << 20));
    // Who sends much reads why it was refused, too.
    assert_eq!(server.send("POST", &[], &long).0, 413);
    assert_eq!(server.send("POST", &[("authorization", "Bearer x")], &long).0, 401);
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(server.send("POST", &[], &initialized), (202, String::new()));
}

#[test]
fn over_http_headers_and_body_must_say_the_same() {
    let directory = tempdir().unwrap();
    let server = Http::start(directory.path());
    let view = json!({ "name": "memory_view", "arguments": { "path": "/memories" } });
    let body = stateless(1, "tools/call", view.clone()).to_string();
    let code = |headers: &[(&str, &str)]| {
        let (status, body) = server.send("POST", headers, &body);
        (status, serde_json::from_str::<Value>(&body).unwrap()["error"]["code"].as_i64())
    };
    let (version, method) = (("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"));
    let name = ("mcp-name", "memory_view");
    assert_eq!(code(&[version, method, name]), (200, None));
    assert_eq!(code(&[]), (400, Some(-32020)));
    assert_eq!(code(&[version, name]), (400, Some(-32020)));
    assert_eq!(code(&[version, method]), (400, Some(-32020)));
    assert_eq!(code(&[version, method, ("mcp-name", "memory_delete")]), (400, Some(-32020)));
    assert_eq!(code(&[version, method, name, name]), (400, Some(-32020)));
    assert_eq!(code(&[("mcp-protocol-version", "2025-11-25"), method, name]), (400, Some(-32020)));
    let unknown = stateless(2, "resources/list", json!({})).to_string();
    let (status, body) = server.send("POST", &[version, ("mcp-method", "resources/list")], &unknown);
    assert!(status == 404 && body.contains("-32601"), "{status} {body}");
    // Progress makes it a stream of events.
    let mut told = view;
    told["_meta"]["progressToken"] = "t".into();
    let told = stateless(3, "tools/call", told).to_string();
    let accept = ("accept", "application/json, text/event-stream");
    let (status, body) = server.send("POST", &[version, method, name, accept], &told);
    let events: Vec<&str> = body.lines().filter(|line| line.starts_with("data: ")).collect();
    assert!(status == 200 && events.len() == 2, "{body}");
    assert!(events[0].contains("notifications/progress") && events[1].contains("\"id\":3"), "{body}");
}

#[test]
fn an_address_that_others_reach_needs_a_token_of_ones_own() {
    let directory = tempdir().unwrap();
    let run = run_in(directory.path(), &["mcp", "--store", "m.db", "--listen", "0.0.0.0:0"], "");
    assert!(run.code == 2 && run.stderr.contains("--token-env"), "{run:?}");
    let mut command = crate::program::program(directory.path());
    command.args(["mcp", "--store", "m.db", "--listen", "127.0.0.1:0", "--token-env", "SHORT"]).env("SHORT", "guess");
    let run = crate::program::run(command, "");
    assert!(run.code == 2 && run.stderr.contains("32 to 256"), "{run:?}");
    let run = run_in(directory.path(), &["mcp", "--store", "m.db", "--listen", "nowhere"], "");
    assert!(run.code == 2 && run.stderr.contains("listen on `nowhere`"), "{run:?}");
}
