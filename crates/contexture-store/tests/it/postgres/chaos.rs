//! Many workers on many threads, each a process of its own, while workers are killed, connections are cut and delayed,
//! and the server is killed and started again.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_core::engine::{Engine, TurnAnswer, WhenHeld};
use contexture_core::error::{BoxError, Error};
use contexture_core::item::{FunctionCall, Item, Role};
use contexture_core::memory::memory;
use contexture_core::model::{LlmResponse, Model, ModelRequest};
use contexture_core::tool::{Tool, ToolContext};
use contexture_store::PostgresStore;
use serde_json::{Value, json};

use super::engine_at;
use super::proxy::{Faults, Proxy};
use super::server::Server;
use crate::kill::{self, Process, Random};

const WORKERS: usize = 8;
const THREADS: u64 = 50;

/// How long a thread may stay with a worker that has died.
const LEASE: Duration = Duration::from_secs(2);

/// How long after its lease a thread must be free on a machine that is busy.
const SLACK: Duration = Duration::from_secs(8);

/// How long it goes on, in seconds, unless this variable says otherwise.
const SECONDS_VARIABLE: &str = "CONTEXTURE_CHAOS_SECONDS";
const SECONDS: u64 = 60;

/// How often the server is killed.
const RESTARTS_EVERY: Duration = Duration::from_secs(8);

/// Adds a line to a file that many processes write to.
fn note(directory: &Path, file: &str, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(directory.join(file)).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn noted(directory: &Path, file: &str) -> Vec<String> {
    fs::read_to_string(directory.join(file)).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// A tool whose effect is outside of the store.
struct Effect(PathBuf);

impl Tool for Effect {
    fn name(&self) -> &str {
        "effect"
    }

    fn description(&self) -> &str {
        "Has an effect."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        note(&self.0, "effects", arguments["id"].as_str().unwrap_or("?"));
        // Long enough to be killed in the middle.
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok("done".to_owned())
    }
}

/// Does what the last message asks for: one call of the tool, then a word.
struct Obedient;

impl Model for Obedient {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        let asked = request.items.iter().rposition(|item| item.is_message_of(Role::User)).ok_or("nothing was asked")?;
        let text = request.items[asked].as_message().unwrap().text();
        let id = text.strip_prefix("do ").ok_or("an odd message")?;
        let has_output = request.items[asked..].iter().any(|item| matches!(&**item, Item::FunctionCallOutput(_)));
        if has_output {
            return Ok(LlmResponse::text(format!("did {id}")));
        }
        let call = FunctionCall::new(&format!("call-{id}"), "effect", json!({ "id": id }).to_string());
        Ok(LlmResponse { items: vec![call.into()], ..LlmResponse::default() })
    }
}

fn engine(url: &str, directory: &Path, when_held: WhenHeld) -> Engine<()> {
    let builder = engine_at(url, memory(()));
    let builder = builder.model(Obedient).tool(Effect(directory.to_owned()));
    builder.lease_duration(LEASE).when_held(when_held).build().unwrap()
}

/// Takes turns on threads for ever; runs only as a child process.
#[test]
#[ignore = "a child process of `nothing_is_lost_or_done_twice_in_chaos`"]
fn worker() {
    kill::as_child(async |directory| {
        let url = fs::read_to_string(directory.join("url")).unwrap();
        let engine = engine(&url, &directory, WhenHeld::Fail);
        let mut random = Random::new(u64::from(std::process::id()));
        for number in 0_u64.. {
            let thread = random.below(THREADS);
            let id = format!("{thread}-{}-{number}", std::process::id());
            // A store that is away for longer than it is tried: the next turn may find it.
            let Ok(mut execution) = engine.execution(format!("t{thread}")).start().await else { continue };
            if random.below(2) == 0 {
                let resumed = execution.resume().await;
                acknowledge(&directory, resumed.transpose());
            }
            let turned = execution.turn(format!("do {id}")).await;
            acknowledge(&directory, Some(turned));
        }
    });
}

fn acknowledge(directory: &Path, answer: Option<Result<TurnAnswer, Error>>) {
    match answer {
        Some(Ok(answer)) => {
            // A resumed turn that was complete already has no answer of its own.
            if let Some(id) = answer.text().strip_prefix("did ") {
                note(directory, "acknowledged", id);
            }
        }
        Some(Err(Error::Held(held))) if held.remaining.is_some_and(|remaining| remaining > LEASE) => {
            note(directory, "stuck", &held.to_string());
        }
        Some(Err(error)) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            note(directory, "errors", &format!("{error}: {cause}").replace('\n', " "));
        }
        None => {}
    }
}

/// What there was, for the report.
#[derive(Debug, Default)]
struct Count {
    kills: usize,
    restarts: usize,
}

/// Kills workers and the server until the time is up.
async fn havoc(server: &mut Server, directory: &Path, until: Instant) -> Count {
    let start = || Process::start("postgres::chaos::worker", directory);
    let mut workers: Vec<Process> = (0..WORKERS).map(|_| start()).collect();
    let (mut random, mut count, mut restarted) = (Random::new(20), Count::default(), Instant::now());
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(200 + random.below(800))).await;
        let which = random.below(WORKERS as u64) as usize;
        let killed = std::mem::replace(&mut workers[which], start());
        tokio::task::block_in_place(|| killed.kill());
        count.kills += 1;
        if restarted.elapsed() > RESTARTS_EVERY {
            tokio::task::block_in_place(|| server.restart_hard());
            restarted = Instant::now();
            count.restarts += 1;
        }
    }
    // Dropped, the workers are killed in the middle of what they do.
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: --features long-tests")]
async fn nothing_is_lost_or_done_twice_in_chaos() {
    let Some(mut server) = Server::start() else { return };
    let seconds = std::env::var(SECONDS_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let directory = tempfile::tempdir().unwrap();
    let database = server.make_database();
    let direct = server.url(&database);
    PostgresStore::open(&direct).unwrap().check().await.unwrap();
    let faults = Faults { least: 8_000, cuts_requests: true, delays_one_in: 60, delay: Duration::from_millis(120) };
    let proxy = Proxy::with(server.port, faults, 11).await;
    let cut = server.url_at(proxy.port, "tester", "secret-word", &database);
    fs::write(directory.path().join("url"), cut).unwrap();

    let count = havoc(&mut server, directory.path(), Instant::now() + Duration::from_secs(seconds)).await;
    let begun = Instant::now();
    let freed = free_all(&direct, directory.path()).await;
    let (acknowledged, effects) = (noted(directory.path(), "acknowledged"), noted(directory.path(), "effects"));
    let errors = noted(directory.path(), "errors");
    eprintln!(
        "{seconds} s: {} turns acknowledged, {} effects, {count:?}, {} connections cut, {} turns failed, every thread \
         was free after {freed:.1?}, looked at in {:.1?}",
        acknowledged.len(),
        effects.len(),
        proxy.cuts(),
        errors.len(),
        begun.elapsed()
    );
    assert!(acknowledged.len() > 20, "{} turns; errors: {errors:?}", acknowledged.len());
    assert!(count.restarts > 0 && count.kills > 5 && proxy.cuts() > 10, "{count:?}, {} cuts", proxy.cuts());
    assert_eq!(noted(directory.path(), "stuck"), Vec::<String>::new());
    check_effects(&effects);
    check_logs(&direct, directory.path(), &acknowledged, &effects).await;
}

/// Takes a turn on every thread, after all workers are dead. Returns how long the slowest one took.
async fn free_all(url: &str, directory: &Path) -> Duration {
    let engine = Arc::new(engine(url, directory, WhenHeld::Wait(LEASE + SLACK)));
    let begun = Instant::now();
    let mut turns = Vec::new();
    for thread in 0..THREADS {
        let engine = engine.clone();
        turns.push(tokio::spawn(async move {
            let mut execution = engine.execution(format!("t{thread}")).start().await.unwrap();
            let answer = execution.turn(format!("do {thread}-last")).await;
            let answer = answer.unwrap_or_else(|error| panic!("thread {thread} is stuck: {error}"));
            assert_eq!(answer.text(), format!("did {thread}-last"));
        }));
    }
    for turn in turns {
        turn.await.unwrap();
    }
    begun.elapsed()
}

#[track_caller]
fn check_effects(effects: &[String]) {
    let mut times: HashMap<&String, usize> = HashMap::new();
    effects.iter().for_each(|id| *times.entry(id).or_default() += 1);
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "tools ran twice: {twice:?}");
}

/// Every acknowledged turn is in the log of its thread, once and in one piece, and every call that ran.
async fn check_logs(url: &str, directory: &Path, acknowledged: &[String], effects: &[String]) {
    let engine = engine(url, directory, WhenHeld::Fail);
    let (mut said, mut called, mut whole) = (HashSet::new(), HashSet::new(), HashSet::new());
    for thread in 0..THREADS {
        let execution = engine.execution(format!("t{thread}")).start().await.unwrap();
        let items: Vec<&Item> = execution.log().iter().collect();
        for (at, item) in items.iter().enumerate() {
            if let Some(call) = item.as_call() {
                assert!(called.insert(call.call_id.to_string()), "`{}` is in the logs twice", call.call_id);
            }
            let Some(message) = item.as_message().filter(|_| item.is_message_of(Role::User)) else { continue };
            let text = message.text();
            let id = text.strip_prefix("do ").unwrap().to_owned();
            assert!(id.starts_with(&format!("{thread}-")), "`{id}` is in thread {thread}");
            assert!(said.insert(id.clone()), "`{id}` was said twice");
            let is_whole = match items.get(at + 1..at + 4) {
                Some([call, Item::FunctionCallOutput(output), answer]) => {
                    call.as_call().is_some_and(|call| call.call_id == output.call_id)
                        && answer.as_message().is_some_and(|answer| answer.text() == format!("did {id}"))
                }
                _ => false,
            };
            if is_whole {
                whole.insert(id);
            }
        }
    }
    for id in acknowledged {
        assert!(whole.contains(id), "turn `{id}` was acknowledged and is not there, or not in one piece");
    }
    for id in effects {
        assert!(called.contains(&format!("call-{id}")), "`{id}` ran, and its call is not in the log");
    }
}
