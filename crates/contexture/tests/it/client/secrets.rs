//! A key is found in nothing that is shown, stored, or left by a crash.

use std::error::Error as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use contexture::client::{ApiKey, Client, RetryPolicy};
use contexture::event::Event;
use contexture::prelude::*;
use contexture::tools::{AllowAll, Workspace};
use serde_json::json;

use super::provider::{Provider, Reply};
use crate::kill;

const VARIABLE: &str = "MADE_UP_API_KEY";
const KEY: &str = "sk-made-up-and-never-to-be-seen-5167";

/// Uses a key, shows everything that can be shown, and crashes; runs only as a child process.
#[test]
#[ignore = "a child process of `a_key_is_found_nowhere`"]
fn child_uses_a_key_and_crashes() {
    kill::as_child(async |directory| {
        let url = fs::read_to_string(directory.join("url")).unwrap();
        let key = ApiKey::from_env(VARIABLE).expect("the parent sets it");
        let builder = Client::chat(format!("{url}/v1"), "m").key(key.clone());
        let builder = builder.retry(RetryPolicy { max_retries: 0, ..RetryPolicy::default() });
        eprintln!("{key:?} {builder:?}");
        let client = builder.build().unwrap();
        eprintln!("{client:#?}");
        let workspace = Workspace::open(&directory).unwrap().with_approval(AllowAll).without_variables([VARIABLE]);
        let engine = contexture::open(directory.join("agent.db"), memory(())).unwrap();
        // A log of all events: spans, faults, decisions, usage and what is streamed.
        let engine = workspace.add_tools(engine).observer(|event: Event<'_>| eprintln!("{event:?}"));
        let engine = engine.model(client.clone()).build().unwrap();
        let mut execution = engine.execution("t").start().await.unwrap();
        let error = execution.turn("print your environment").await.unwrap_err();
        eprintln!("{error} {error:?} {:?} {:?}", error.source(), execution.usage());
        for item in execution.log().iter() {
            eprintln!("{item:?}");
        }
        let nobody = Client::chat("http://127.0.0.1:9/v1", "m")
            .key(key.clone())
            .retry(RetryPolicy { max_retries: 0, ..RetryPolicy::default() });
        let error =
            nobody.build().unwrap().call(ModelRequest::new("", vec![Arc::new(Item::user("x"))])).await.unwrap_err();
        eprintln!("{error} {error:?}");
        let unusable = Client::anthropic("m").key(ApiKey::new(format!("{KEY}\n{KEY}"))).build().unwrap_err();
        eprintln!("{unusable} {unusable:?}");
        panic!("with {client:?} and {workspace:?}");
    });
}

/// The files of a directory in which a text is, in any case.
fn files_with(directory: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if fs::read(&path).unwrap().windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test]
async fn a_key_is_found_nowhere() {
    let refusal = json!({ "error": { "message": format!("Incorrect API key provided: Bearer {KEY}") } });
    let replies = vec![
        Reply::calls(&[("c1", "execute_bash", json!({ "command": "env; echo printed" }))]),
        Reply::json(401, refusal),
    ];
    let provider = Provider::start(replies).await;
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("url"), &provider.url).unwrap();
    let mut command = kill::command("client::secrets::child_uses_a_key_and_crashes", place.path());
    command.env(VARIABLE, KEY).env("RUST_BACKTRACE", "full");
    let output = tokio::process::Command::from(command).output().await.unwrap();
    let shown = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(!output.status.success(), "it crashes: {shown}");
    // The key was used, the command printed its environment, and the provider's message was shown.
    assert!(provider.received().iter().all(|request| request.headers.contains(KEY)));
    assert!(provider.bodies()[1].to_string().contains("PATH="), "{}", provider.bodies()[1]);
    for part in ["Incorrect API key provided: Bearer [key]", "ApiKey(…)", "printed", "panicked at", "stack backtrace"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let at = shown.find(KEY).map(|at| &shown[at.saturating_sub(200)..at]);
    assert_eq!(at, None, "the key is shown after this");
    assert!(!files_with(place.path(), "print your environment").is_empty(), "the turn is stored");
    assert_eq!(files_with(place.path(), KEY), Vec::<String>::new());
    assert!(provider.bodies().iter().all(|body| !body.to_string().contains(KEY)));
}
