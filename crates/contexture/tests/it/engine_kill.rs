//! An engine over the embedded store: its process is killed again and again, or another works on the same thread.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use contexture::engine::WhenHeld;
use contexture::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::conversation::{
    Census, Facts, Heard, Layers, Mood, RESOURCE, Said, Scratch, Speaker, THREAD, check_whole, turns,
};
use crate::kill::{self, Process, Random};

/// How many stores there are, one after the other; each conversation is interrupted many times.
const STORES: usize = if kill::IS_LONG { 12 } else { 2 };
/// How often the process that works on one store is killed.
const KILLS_PER_STORE: usize = if kill::IS_LONG { 25 } else { 10 };
/// How many turns each of two processes on one thread takes.
const TURNS_OF_EACH: usize = 25;

/// A tool that writes every run into a file, so that runs of killed processes count.
struct Tick {
    runs: PathBuf,
}

impl Tool for Tick {
    fn name(&self) -> &str {
        "tick"
    }

    fn description(&self) -> &str {
        "Ticks."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(&self, _: Value, ctx: ToolContext<'_>) -> Result<String, BoxError> {
        let mut runs = OpenOptions::new().create(true).append(true).open(&self.runs)?;
        runs.write_all(format!("{}\n", ctx.call_id).as_bytes())?;
        // The call is in the log before it is run.
        kill::tell(format!("call {}", ctx.call_id));
        Ok("ticked".to_owned())
    }
}

async fn open(directory: &Path) -> Execution<Layers> {
    open_when_held(directory, WhenHeld::Fail).await
}

async fn open_when_held(directory: &Path, when_held: WhenHeld) -> Execution<Layers> {
    let layers = memory((Said, Heard, Facts, Census, Mood, Scratch));
    let builder = contexture::open(directory.join("agent.db"), layers).unwrap_or_else(|error| panic!("{error}"));
    let builder = builder.model(Speaker).tool(Tick { runs: directory.join("runs") });
    let engine = builder.when_held(when_held).build().expect("a good engine");
    engine.execution(THREAD).resource(RESOURCE).start().await.unwrap_or_else(|error| panic!("{error}"))
}

/// What ran, in order.
fn runs(directory: &Path) -> Vec<String> {
    let runs = fs::read_to_string(directory.join("runs")).unwrap_or_default();
    runs.lines().map(str::to_owned).collect()
}

/// Goes on with the conversation for ever, telling every step that is acknowledged; runs only as a child process.
#[test]
#[ignore = "a child process of `killed_processes_lose_no_step_that_was_acknowledged`"]
fn child_converses_for_ever() {
    kill::as_child(async |directory| {
        let mut execution = open(&directory).await;
        if execution.resume().await.expect("nothing is in the way").is_some() {
            kill::tell(format!("items {}", execution.log().len()));
        }
        loop {
            let text = format!("turn {}", turns(&execution).len());
            execution.turn(text).await.expect("nothing is in the way");
            kill::tell(format!("items {}", execution.log().len()));
        }
    });
}

/// Checks that everything acknowledged is there; answers how many items there are.
#[track_caller]
fn check_acknowledged(execution: &Execution<Layers>, told: &[String]) -> usize {
    for told in told {
        match told.split_once(' ').expect("a word and what it says") {
            ("items", count) => assert!(execution.log().len() >= count.parse::<usize>().expect("a number"), "{told}"),
            (_, call) => assert!(execution.log().iter().any(|item| has_call(item, call)), "{told}"),
        }
    }
    execution.log().len()
}

fn has_call(item: &Item, call_id: &str) -> bool {
    item.as_call().is_some_and(|call| *call.call_id == *call_id)
}

#[tokio::test]
async fn killed_processes_lose_no_step_that_was_acknowledged() {
    let mut random = Random::new(2026);
    for _ in 0..STORES {
        let directory = TempDir::new().expect("a temporary directory");
        let mut items = 0;
        for _ in 0..KILLS_PER_STORE {
            let mut process = Process::start("engine_kill::child_converses_for_ever", directory.path());
            let converses = "the child converses for ever";
            let mut told: Vec<String> = (0..random.below(5)).map(|_| process.next_told().expect(converses)).collect();
            random.pause();
            told.extend(process.kill());

            let execution = open(directory.path()).await;
            let found = check_acknowledged(&execution, &told);
            assert!(found >= items, "what a restart found once must be there for ever");
            items = found;
            check_whole(&execution);
        }
        let runs = runs(directory.path());
        assert_eq!(runs.iter().collect::<BTreeSet<_>>().len(), runs.len(), "no call runs twice");
        assert!(items > KILLS_PER_STORE, "the conversation must have come to something: {items} items");
    }
}

/// Stands for a log in one number.
fn fingerprint<'a>(items: impl Iterator<Item = &'a Item>) -> u64 {
    let mut hasher = DefaultHasher::new();
    items.for_each(|item| format!("{item:?}").hash(&mut hasher));
    hasher.finish()
}

/// Takes some turns on a thread that another process works on too; runs only as a child process.
#[test]
#[ignore = "a child process of `two_processes_on_one_thread_lose_and_double_nothing`"]
fn child_takes_turns() {
    kill::as_child(async |directory| {
        let mut execution = open_when_held(&directory, WhenHeld::Wait(Duration::from_secs(60))).await;
        for number in 0..TURNS_OF_EACH {
            let text = format!("process {} turn {number}", std::process::id());
            execution.turn(text.clone()).await.unwrap_or_else(|error| panic!("{error}"));
            kill::tell(format!("turn {text}"));
            let log = execution.log();
            kill::tell(format!("log {} {}", log.len(), fingerprint(log.iter())));
        }
        execution.complete().await.expect("nothing is in the way");
        kill::tell("all done");
    });
}

#[tokio::test]
async fn two_processes_on_one_thread_lose_and_double_nothing() {
    let directory = TempDir::new().expect("a temporary directory");
    let mut processes = [(); 2].map(|()| Process::start("engine_kill::child_takes_turns", directory.path()));
    let told: Vec<Vec<String>> =
        processes.iter_mut().map(|process| std::iter::from_fn(|| process.next_told()).collect()).collect();
    assert!(told.iter().all(|told| told.last().is_some_and(|last| last == "all done")), "{told:#?}");
    let execution = open(directory.path()).await;
    assert!(!execution.has_unfinished_turn());

    let log: Vec<&Item> = execution.log().iter().collect();
    let users: Vec<String> = turns(&execution);
    let facts = execution.memory().state::<Facts, _>();
    let answers = |text: &str| log.iter().filter(|item| says(item, &format!("answer to {text}"))).count();
    let mut acknowledged = 0;
    for told in told.iter().flatten() {
        match told.split_once(' ').expect("a word and what it says") {
            ("turn", text) => {
                acknowledged += 1;
                assert_eq!(users.iter().filter(|user| *user == text).count(), 1, "`{text}` is there once");
                let number: usize = text.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number");
                assert!(number % 3 == 2 || facts.contains(text), "`{text}` was remembered");
            }
            ("log", rest) => {
                let (len, expected) = rest.split_once(' ').expect("two numbers");
                let known = log.iter().take(len.parse().expect("a number")).copied();
                assert_eq!(fingerprint(known).to_string(), expected, "what one knew is how the log begins");
            }
            _ => {}
        }
    }
    assert_eq!(acknowledged, 2 * TURNS_OF_EACH, "{told:#?}");
    assert!(users.iter().all(|text| answers(text) <= 1), "every turn is answered once");
    let (calls, outputs) =
        (ids(&log, |item| Some(&item.as_call()?.call_id)), ids(&log, |item| Some(&item.as_output()?.call_id)));
    assert_eq!(calls, outputs, "every call has one output");
    let runs = runs(directory.path());
    assert_eq!(runs.iter().collect::<BTreeSet<_>>().len(), runs.len(), "no call runs twice");
}

fn says(item: &Item, text: &str) -> bool {
    item.is_message_of(Role::Assistant) && item.as_message().is_some_and(|message| message.text() == text)
}

/// The call ids of some items, sorted, each as often as it is there.
fn ids<'a>(log: &[&'a Item], id: impl Fn(&'a Item) -> Option<&'a Box<str>>) -> Vec<&'a str> {
    let mut ids: Vec<&str> = log.iter().filter_map(|item| Some(&**id(item)?)).collect();
    ids.sort_unstable();
    ids
}

/// A tool that never ends.
struct Hang;

impl Tool for Hang {
    fn name(&self) -> &str {
        "tick"
    }

    fn description(&self) -> &str {
        "Never ends."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(&self, _: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        kill::tell(std::process::id());
        std::future::pending().await
    }
}

/// Begins a turn that never ends; runs only as a child process.
#[test]
#[ignore = "a child process of `a_thread_is_deleted_once_the_process_that_runs_its_turn_is_gone`"]
fn child_hangs_in_a_turn() {
    kill::as_child(async |directory| {
        let builder = contexture::open(directory.join("agent.db"), memory(())).expect("the store opens");
        let model = contexture::testing::ScriptedModel::new().calls("tick", "{}");
        let engine = builder.model(model).tool(Hang).build().expect("a good engine");
        let mut execution = engine.execution(THREAD).start().await.expect("the thread opens");
        drop(execution.turn("hello").await);
    });
}

#[tokio::test]
async fn a_thread_is_deleted_once_the_process_that_runs_its_turn_is_gone() {
    let directory = TempDir::new().expect("a temporary directory");
    let mut process = Process::start("engine_kill::child_hangs_in_a_turn", directory.path());
    let pid = process.next_told().expect("the child runs its tool");
    let engine = contexture::open(directory.path().join("agent.db"), memory(())).expect("the store opens");
    let engine = engine.build().expect("a good engine");
    let Err(Error::Held(held)) = engine.delete_thread(THREAD).await else { panic!("the child runs a turn") };
    assert!(held.owner.starts_with(&format!("process {pid}, execution ")), "{held}");
    assert_eq!(engine.execution(THREAD).start().await.expect("it can be read").log().len(), 2, "nothing is gone");
    process.kill();
    assert!(engine.delete_thread(THREAD).await.expect("nobody holds it any more"));
    assert!(engine.execution(THREAD).start().await.expect("it is empty").log().is_empty());
}
