//! An agent with a client and tools is killed, and goes on in another process.

use std::fs;
use std::path::Path;
use std::time::Duration;

use contexture::client::Client;
use contexture::event::Event;
use contexture::item::{Item, Role};
use contexture::layer::SteeringDecision;
use contexture::prelude::*;
use contexture::tools::{AllowAll, Workspace};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::provider::{Provider, Reply};
use crate::kill::{self, Process, Random};

const CHILD: &str = "client::kills::child_goes_on";

/// How many conversations are killed at random.
const CONVERSATIONS: u64 = if kill::IS_LONG { 6 } else { 2 };
/// How many commands each of them has.
const COMMANDS: usize = 6;

/// Calls of this id are held back before they begin, if the directory has a file of this name.
fn barrier(directory: &Path) -> impl MemoryLayer<State = ()> {
    let held = fs::read_to_string(directory.join("hold")).unwrap_or_default();
    layer::<()>(LayerSpec::new("barrier", Slot(10), MemoryScope::Thread))
        .before_tool_call(move |params| {
            let is_held = *params.call.call_id == *held;
            async move {
                if is_held {
                    kill::tell("between");
                    std::future::pending::<()>().await;
                }
                Ok(SteeringDecision::Allow.into())
            }
        })
        .build()
}

async fn open(directory: &Path) -> Execution<(impl MemoryLayer<State = ()>,)> {
    let url = fs::read_to_string(directory.join("url")).unwrap();
    let client = Client::chat(format!("{url}/v1"), "m").build().unwrap();
    let workspace = Workspace::open(directory.join("project")).unwrap().with_approval(AllowAll);
    let builder = contexture::open(directory.join("agent.db"), memory((barrier(directory),))).unwrap();
    let builder = workspace.add_tools(builder).model(client).observer(|event: Event<'_>| {
        if let Event::Delta(_) = event {
            kill::tell("heard");
        }
    });
    builder.build().unwrap().execution("t").start().await.unwrap()
}

/// Begins a turn, or goes on with the one that there is; runs only as a child process.
#[test]
#[ignore = "a child process of the tests in this file"]
fn child_goes_on() {
    kill::as_child(async |directory| {
        let mut execution = open(&directory).await;
        let text = match execution.log().is_empty() {
            true => execution.turn("do it").await.unwrap().text(),
            false => execution.resume().await.unwrap().map(|answer| answer.text()).unwrap_or_default(),
        };
        kill::tell(format!("done {text}"));
    });
}

fn place(provider: &Provider) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("project")).unwrap();
    fs::write(place.path().join("url"), &provider.url).unwrap();
    place
}

/// What ran, in order.
fn runs(place: &TempDir) -> Vec<String> {
    let runs = fs::read_to_string(place.path().join("project/runs")).unwrap_or_default();
    runs.lines().map(str::to_owned).collect()
}

/// A command that says that it runs.
fn command(id: &str, then: &str) -> Value {
    json!({ "command": format!("echo {id} >> runs{then}") })
}

/// Waits for something that a child tells, while the provider goes on.
async fn told(mut process: Process, wanted: &'static str) -> Process {
    tokio::task::spawn_blocking(move || {
        while process.next_told().expect("it is told before the end") != wanted {}
        process
    })
    .await
    .unwrap()
}

/// Goes on in another process; returns what was said at the end.
async fn goes_on(place: &TempDir) -> String {
    let mut process = Process::start(CHILD, place.path());
    let last = tokio::task::spawn_blocking(move || std::iter::from_fn(|| process.next_told()).last()).await.unwrap();
    last.and_then(|told| told.strip_prefix("done ").map(str::to_owned)).expect("it comes to its end")
}

/// Everything is in the log once: the question, and each call with its output. Returns the outputs.
async fn check_log(place: &TempDir) -> Vec<(String, String)> {
    let execution = open(place.path()).await;
    assert!(!execution.has_unfinished_turn());
    let log: Vec<&Item> = execution.log().iter().collect();
    assert_eq!(log.iter().filter(|item| item.is_message_of(Role::User)).count(), 1);
    let calls: Vec<&str> = log.iter().filter_map(|item| Some(&*item.as_call()?.call_id)).collect();
    let outputs = log.iter().filter_map(|item| item.as_output());
    let outputs: Vec<(String, String)> =
        outputs.map(|output| (output.call_id.to_string(), output.output.clone())).collect();
    assert_eq!(calls, outputs.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), "one output for each call");
    outputs
}

#[tokio::test]
async fn a_kill_during_streaming_asks_again_and_shows_nothing_twice() {
    let piece = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    let slow = Reply::events(&[piece("half "), piece("of "), piece("it")]).pausing(Duration::from_millis(300));
    let provider = Provider::start(vec![slow, Reply::says("all of it")]).await;
    let place = place(&provider);
    told(Process::start(CHILD, place.path()), "heard").await.kill();
    assert_eq!(goes_on(&place).await, "all of it");
    check_log(&place).await;
    let bodies = provider.bodies();
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0]["messages"], bodies[1]["messages"], "the same is asked");
    assert!(!bodies[1].to_string().contains("half"), "{}", bodies[1]);
}

#[tokio::test]
async fn a_kill_during_a_tool_call_does_not_run_it_again() {
    let call = Reply::calls(&[("c1", "execute_bash", command("c1", "; sleep 5"))]);
    let provider = Provider::start(vec![call, Reply::says("I see.")]).await;
    let place = place(&provider);
    let process = Process::start(CHILD, place.path());
    while runs(&place).is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    process.kill();
    assert_eq!(goes_on(&place).await, "I see.");
    let outputs = check_log(&place).await;
    assert!(outputs[0].1.contains("it was not run again"), "{outputs:?}");
    assert_eq!(runs(&place), ["c1"]);
    assert_eq!(provider.bodies().len(), 2);
}

#[tokio::test]
async fn a_kill_between_two_tool_calls_runs_each_once() {
    let calls = [("c1", "execute_bash", command("c1", "")), ("c2", "execute_bash", command("c2", ""))];
    let provider = Provider::start(vec![Reply::calls(&calls), Reply::says("Both.")]).await;
    let place = place(&provider);
    fs::write(place.path().join("hold"), "c2").unwrap();
    told(Process::start(CHILD, place.path()), "between").await.kill();
    assert_eq!(runs(&place), ["c1"]);
    fs::remove_file(place.path().join("hold")).unwrap();
    assert_eq!(goes_on(&place).await, "Both.");
    assert_eq!(check_log(&place).await.len(), 2);
    assert_eq!(runs(&place), ["c1", "c2"]);
    assert_eq!(provider.bodies().len(), 2, "the model is not asked for the calls again");
}

/// Asks for two commands at a time until all have an output.
fn two_at_a_time(body: &Value) -> Reply {
    let messages = body["messages"].as_array().unwrap();
    let done = messages.iter().filter(|message| message["role"] == "tool").count();
    if done >= COMMANDS {
        return Reply::says("all of them");
    }
    let ids = [done, done + 1].map(|number| format!("c{number}"));
    Reply::calls(&ids.each_ref().map(|id| (id.as_str(), "execute_bash", command(id, ""))))
}

#[tokio::test]
async fn kills_at_any_time_repeat_and_lose_nothing() {
    let mut random = Random::new(18);
    for _ in 0..CONVERSATIONS {
        let provider = Provider::answering(|_, body| two_at_a_time(body)).await;
        let place = place(&provider);
        for _ in 0..4 {
            let process = Process::start(CHILD, place.path());
            tokio::time::sleep(Duration::from_millis(20 + random.below(150))).await;
            process.kill();
        }
        goes_on(&place).await;
        let outputs = check_log(&place).await;
        assert_eq!(outputs.len(), COMMANDS, "{outputs:?}");
        let runs = runs(&place);
        for (id, output) in &outputs {
            let count = runs.iter().filter(|run| *run == id).count();
            let is_unknown = output.contains("it was not run again");
            assert!(count == 1 || (count == 0 && is_unknown), "{id} ran {count} times: {output}");
        }
    }
}
