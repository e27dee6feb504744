//! A folder in process returns what a gateway sends, byte for byte.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use contexture::wire::Format;
use contexture_gateway::in_process::{Pinned, RequestError, UsageError, WireFolder, WireFolderOptions};
use contexture_gateway::{Options, References};
use serde_json::{Value, json};

use super::agent::Agent;
use super::played::{long, small};
use super::provider::{Provider, post};

fn options() -> WireFolderOptions {
    WireFolderOptions { budget: small().budget, ..WireFolderOptions::default() }
}

/// Sends a conversation through a gateway and through a folder that hears of the same responses. `between` may replace
/// the folder before each request.
async fn compare(agent: &Agent, gateway: Options, mut folder: WireFolder, between: impl Fn(WireFolder) -> WireFolder) {
    let provider = Provider::start().await;
    let gateway = provider.gateway(gateway).await;
    let mut changed = 0;
    for (n, at) in agent.requests().into_iter().enumerate() {
        let body = agent.request(at, n % 2 == 0);
        let (status, answer) = post(&gateway, agent.format, body.clone()).await;
        assert_eq!(status, 200, "{answer}");
        folder = between(folder);
        let folded = tokio::task::block_in_place(|| folder.request(body.as_bytes()).unwrap());
        let sent = provider.last().body;
        assert!(sent.as_bytes() == &folded.body[..], "request {n} in {:?} differs", agent.format);
        assert_eq!(folded.report.is_changed, sent != body);
        changed += usize::from(folded.report.is_changed);
        folder.usage(Some(folded.report.number), answer.as_bytes()).unwrap();
    }
    let records = gateway.stop().await;
    assert!(records.iter().any(|record| record.decided.iter().any(|note| note.is_fold())), "something is folded");
    assert!(changed > 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_folder_returns_is_what_the_gateway_sends() {
    for format in Format::ALL {
        let folder = WireFolder::new(options()).unwrap();
        compare(&long(format, 16), small(), folder, |folder| folder).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_folder_goes_on_with_the_same_bytes() {
    for format in Format::ALL {
        let count = Cell::new(0);
        let restored = |folder: WireFolder| {
            count.set(count.get() + 1);
            if count.get() % 3 != 0 {
                return folder;
            }
            let snapshot = folder.snapshot();
            WireFolder::restore(folder.options().clone(), &snapshot).unwrap()
        };
        compare(&long(format, 10), small(), WireFolder::new(options()).unwrap(), restored).await;
    }
}

/// The request before each message of the agent in a recording, which has a message a line.
fn recorded(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let messages: Vec<Value> = text.lines().map(|line| chat(&serde_json::from_str(line).unwrap())).collect();
    let asked = (1..messages.len()).filter(|at| messages[*at]["role"] == "assistant");
    asked.map(|at| json!({ "model": "gpt-5", "messages": messages[..at] }).to_string()).collect()
}

/// A message of a recording in OpenAI's chat format.
fn chat(message: &Value) -> Value {
    let text = message["text"].as_str().unwrap_or_default();
    if message["role"] == "tool" {
        return json!({ "role": "tool", "tool_call_id": message["tool_call_id"], "content": text });
    }
    let called = |call: &Value| {
        let arguments = call["arguments"].as_str().map_or_else(|| call["arguments"].to_string(), str::to_owned);
        json!({ "id": call["id"], "type": "function", "function": { "name": call["name"], "arguments": arguments } })
    };
    let calls: Vec<Value> = message["tool_calls"].as_array().into_iter().flatten().map(called).collect();
    if calls.is_empty() {
        return json!({ "role": message["role"], "content": text });
    }
    json!({ "role": message["role"], "content": text, "tool_calls": calls })
}

/// `CONTEXTURE_RECORDINGS` names a directory with other recordings.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_sessions_are_sent_alike() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../contexture-bench/judge/recordings");
    let directory = std::env::var_os("CONTEXTURE_RECORDINGS").map_or(own, PathBuf::from);
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    paths.sort();
    assert!(paths.len() > 1);
    for path in paths {
        let provider = Provider::start().await;
        let gateway = provider.gateway(Options { budget: Some(8_000), ..small() }).await;
        let options = WireFolderOptions { budget: Some(8_000), ..WireFolderOptions::default() };
        let folder = WireFolder::new(options).unwrap();
        let mut changed = 0;
        for (n, body) in recorded(&path).into_iter().enumerate() {
            let (status, answer) = post(&gateway, Format::Chat, body.clone()).await;
            assert_eq!(status, 200, "{answer}");
            let folded = tokio::task::block_in_place(|| folder.request(body.as_bytes()).unwrap());
            let sent = provider.last().body;
            assert!(sent.as_bytes() == &folded.body[..], "request {n} of {} differs", path.display());
            changed += usize::from(folded.report.is_changed);
            folder.usage(Some(folded.report.number), answer.as_bytes()).unwrap();
        }
        gateway.stop().await;
        println!("{}: {changed} changed", path.display());
        assert!(changed > 0, "{}", path.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_messages_name_are_the_same() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("notes.md"), "the word is marmalade\n").unwrap();
    let base = directory.path().canonicalize().unwrap();
    let mut agent = long(Format::Chat, 8);
    agent.say("See #notes.md, and go on.");
    agent.work(9);
    let references = References::Typed;
    let gateway = Options { directory: base.to_str().map(Arc::from), references, ..small() };
    let folder = WireFolder::new(WireFolderOptions { base_dir: Some(base), ..options() }).unwrap();
    compare(&agent, gateway, folder, |folder| folder).await;
}

#[test]
fn a_repeated_request_gets_the_same_bytes_and_a_rewound_one_a_branch() {
    let folder = WireFolder::new(options()).unwrap();
    let agent = long(Format::Messages, 14);
    let requests = agent.requests();
    let bodies: Vec<_> = requests.iter().map(|at| agent.request(*at, false)).collect();
    let sent: Vec<_> = bodies.iter().map(|body| folder.request(body.as_bytes()).unwrap()).collect();
    let last = sent.last().unwrap();
    let again = folder.request(bodies.last().unwrap().as_bytes()).unwrap();
    assert!(again.body == last.body && again.report.passed.is_some(), "{:?}", again.report);
    let mut other = agent.clone();
    other.steps.truncate(requests[requests.len() / 2]);
    other.call("Another way.", "Bash", json!({"command": "ls"}), "a\nb");
    let branch = folder.request(other.request(other.steps.len(), false).as_bytes()).unwrap();
    assert_ne!(branch.report.conversation, last.report.conversation);
}

#[test]
fn many_threads_with_one_folder_get_what_one_would() {
    let folder = WireFolder::new(options()).unwrap();
    let agent = long(Format::Chat, 12);
    let bodies: Vec<_> = agent.requests().iter().map(|at| agent.request(*at, false)).collect();
    for body in &bodies {
        folder.request(body.as_bytes()).unwrap();
    }
    let last = folder.request(bodies.last().unwrap().as_bytes()).unwrap().body;
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(folder.request(bodies.last().unwrap().as_bytes()).unwrap().body, last);
                }
            });
        }
    });
}

#[test]
fn what_is_no_request_is_an_error_and_changes_nothing() {
    let folder = WireFolder::new(options()).unwrap();
    for body in ["", "hello", "5", "[]", "null", "{}", r#"{"messages":5}"#, r#"{"messages":[],"messages":[]}"#] {
        assert!(folder.request(body.as_bytes()).is_err(), "{body}");
    }
    assert!(matches!(folder.request(b"\xff\xfe"), Err(RequestError::NoText)));
    assert!(matches!(folder.usage(None, br#"{"usage":{"input_tokens":5}}"#), Err(UsageError::NoRequest)));
    let body = br#"{"model":"m","messages":[{"role":"user","content":"hello"}]}"#;
    let folded = folder.request(body).unwrap();
    assert_eq!(&folded.body[..], body);
    for reported in ["", "{}", "5", "null", r#"{"usage":null}"#, r#"{"tokens":5}"#] {
        assert!(matches!(folder.usage(None, reported.as_bytes()), Err(UsageError::NoUsage)), "{reported}");
    }
    folder.usage(None, br#"{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}"#).unwrap();
    assert!(matches!(folder.usage(None, br#"{"usage":{"input_tokens":5}}"#), Err(UsageError::NoRequest)));
}

#[test]
fn options_that_cannot_be_meant_are_refused() {
    let make = |options: WireFolderOptions| WireFolder::new(options).err().map(|error| error.to_string());
    let budget = |tokens| make(WireFolderOptions { budget: Some(tokens), ..WireFolderOptions::default() });
    assert!(budget(0).unwrap().contains("too small") && budget(3_999).is_some() && budget(4_000).is_none());
    let models = serde_json::from_value(json!([{"input": -1.0}])).unwrap();
    assert!(make(WireFolderOptions { models, ..options() }).unwrap().contains("`input`"));
    assert!(make(WireFolderOptions { base_dir: Some("/nowhere/at/all".into()), ..options() }).is_some());
    assert!(serde_json::from_value::<WireFolderOptions>(json!({"bugdet": 5})).is_err());
}

#[test]
fn what_is_pinned_stays() {
    // So long that the first steps have left for the account.
    let agent = long(Format::Messages, 28);
    let stays = |pins: Pinned| {
        let folder = WireFolder::new(WireFolderOptions { pins, ..options() }).unwrap();
        let folded =
            agent.requests().into_iter().map(|at| folder.request(agent.request(at, false).as_bytes()).unwrap());
        // The first change of a file, which is small enough to be kept for ever.
        String::from_utf8_lossy(&folded.last().unwrap().body).contains("\"call_0002\"")
    };
    assert!(!stays(Pinned::default()));
    assert!(stays(Pinned { tools: vec!["Edit".to_owned()], paths: Vec::new() }));
}

#[test]
fn a_damaged_snapshot_is_refused_and_never_ends_the_process() {
    let folder = WireFolder::new(options()).unwrap();
    let agent = long(Format::Chat, 10);
    for at in agent.requests() {
        folder.request(agent.request(at, false).as_bytes()).unwrap();
    }
    let whole = folder.snapshot();
    let read = |text: &str| WireFolder::restore(options(), text);
    assert!(read(&whole).is_ok());
    for text in ["", "{}", "5", r#"{"contexture_folder":99,"conversations":[]}"#, &whole[..whole.len() - 1]] {
        assert!(read(text).is_err(), "{text:.50}");
    }
    let mut value: Value = serde_json::from_str(&whole).unwrap();
    let damages: [(&str, Value); 4] = [
        ("seen", json!("zz")),
        ("points", json!([9_999_999])),
        ("decisions", json!([{"messages": 1, "decision": {}}])),
        ("steps", json!([{"messages": 9_999_999, "keep": 5, "segments": [], "covered": 1}])),
    ];
    for (name, damage) in damages {
        let kept = value["conversations"][0][name].take();
        value["conversations"][0][name] = damage;
        assert!(read(&value.to_string()).is_err(), "{name}");
        value["conversations"][0][name] = kept;
    }
    // What can be read but does not fit the conversation is not applied to it.
    value["conversations"][0]["steps"][0]["keep"] = json!(1_000);
    if let Ok(folder) = read(&value.to_string()) {
        let last = agent.request(agent.requests().pop().unwrap(), false);
        folder.request(last.as_bytes()).unwrap();
    }
}

#[test]
fn a_refused_request_is_decided_anew_or_no_more() {
    let agent = long(Format::Chat, 12);
    let folder = WireFolder::new(options()).unwrap();
    let mut refused = None;
    for at in agent.requests() {
        let folded = folder.request(agent.request(at, false).as_bytes()).unwrap();
        if refused.is_none() && folded.report.decisions.iter().any(|note| note.is_fold()) {
            folder.refused(Some(folded.report.number), true).unwrap();
            refused = Some(at);
        }
    }
    assert!(refused.is_some());
    let body = agent.request(agent.requests().pop().unwrap(), false);
    let passed = folder.request(body.as_bytes()).unwrap().report.passed;
    assert!(passed.is_some(), "nothing more is folded");
}
