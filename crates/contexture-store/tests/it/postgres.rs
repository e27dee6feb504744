//! The store in PostgreSQL, against a real server.

mod chaos;
mod copied;
mod proxy;
mod server;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use contexture_core::engine::{Engine, EngineBuilder};
use contexture_core::error::{BoxError, Error};
use contexture_core::id::IdSource;
use contexture_core::item::Role;
use contexture_core::memory::{MemoryConfig, memory};
use contexture_core::store::{Batch, LeaseRequest, StorageAdapter, StoreError};
use contexture_core::testing::{
    ScriptedModel, durable_store_conformance, engine, lease_conformance, store_conformance,
};
use contexture_core::tool::{Tool, ToolContext};
use contexture_store::{Place, PostgresStore, SqliteStore, SystemClock};
use contexture_text::testing::search_conformance;
use proxy::Proxy;
use serde_json::{Value, json};
use server::Server;

/// Opens one database for each name.
struct Named<'a> {
    server: &'a Server,
    databases: std::sync::Mutex<std::collections::HashMap<String, String>>,
}

impl<'a> Named<'a> {
    fn new(server: &'a Server) -> Self {
        Self { server, databases: std::sync::Mutex::default() }
    }

    fn url(&self, name: &str) -> String {
        let mut databases = self.databases.lock().unwrap();
        let database = databases.entry(name.to_owned()).or_insert_with(|| self.server.make_database());
        self.server.url(database)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_does_what_every_store_does() {
    let Some(server) = Server::start() else { return };
    let named = Named::new(&server);
    store_conformance(async |name| Arc::new(PostgresStore::open(&named.url(name)).unwrap())).await;
    durable_store_conformance(async |name| Arc::new(PostgresStore::open(&named.url(&format!("d-{name}"))).unwrap()))
        .await;
    lease_conformance(async |name, clock| {
        Arc::new(PostgresStore::open_with_clock(&named.url(&format!("l-{name}")), clock).unwrap())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_index_finds_what_every_index_finds() {
    let Some(server) = Server::start() else { return };
    let named = Named::new(&server);
    search_conformance(async |name| Arc::new(PostgresStore::open(&named.url(name)).unwrap().index())).await;
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_refused_with_a_reason() {
    let Some(server) = Server::start() else { return };
    for odd in ["mysql://x/y", "", "postgres://host:notaport/x", "/tmp/agent.db"] {
        let error = PostgresStore::open(odd).unwrap_err().to_string();
        assert!(error.contains("postgres://user:password@host:5432/database"), "{error}");
    }
    let refused = async |url: &str| {
        let store = PostgresStore::open(url).unwrap();
        let error = store.check().await.unwrap_err();
        let cause = std::error::Error::source(&error).map(|cause| cause.to_string()).unwrap_or_default();
        let shown = format!("{error}: {cause}\n{store:?} {error:?}");
        assert!(!shown.contains("wrong-word") && !shown.contains("secret-word"), "{shown}");
        shown
    };
    let shown = refused(&server.url_at(server.port, "tester", "wrong-word", "postgres")).await;
    assert!(shown.contains("password authentication failed"), "{shown}");
    let shown = refused(&server.url("nowhere")).await;
    assert!(shown.contains("\"nowhere\" does not exist"), "{shown}");

    let newer = server.make_database();
    PostgresStore::open(&server.url(&newer)).unwrap().check().await.unwrap();
    server.run(&newer, "UPDATE contexture_meta SET value = '99' WHERE name = 'format'");
    let shown = refused(&server.url(&newer)).await;
    assert!(shown.contains("tables of format 99") && shown.contains("newer version"), "{shown}");

    let other = server.make_database();
    server.run(&other, "CREATE TABLE contexture_meta (something int)");
    let shown = refused(&server.url(&other)).await;
    assert!(shown.contains("not of a Contexture store"), "{shown}");

    let closed = server.make_database();
    server.run(&closed, "CREATE ROLE guest LOGIN PASSWORD 'secret-word'; REVOKE ALL ON SCHEMA public FROM PUBLIC");
    let shown = refused(&server.url_at(server.port, "guest", "secret-word", &closed)).await;
    assert!(shown.contains("right to create tables"), "{shown}");

    let gone = format!("postgres://tester@127.0.0.1:{}/x?connect_timeout=1", 9);
    let shown = refused(&gone).await;
    assert!(shown.contains("connect to PostgreSQL `x` at 127.0.0.1:9"), "{shown}");
}

/// Adds its own lines to one record with many others, by versions that it read. Returns the lines whose write was
/// acknowledged.
async fn add_lines(store: PostgresStore, writer: usize, lines: usize) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for number in 0..lines {
        let line = format!("{writer}-{number}");
        // A write whose outcome is not known is not repeated: the line is there or not.
        for _ in 0..200 {
            let Ok(record) = store.get("lines").await else { continue };
            let (text, version) = record.map_or((String::new(), None), |record| {
                (String::from_utf8(record.value).unwrap(), Some(record.version))
            });
            match store.compare_and_set("lines", version, format!("{text}{line}\n").into_bytes()).await {
                Ok(_) => {
                    acknowledged.push(line);
                    break;
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(_) => break,
            }
        }
    }
    acknowledged
}

async fn check_lines(store: &PostgresStore, acknowledged: Vec<String>) {
    let record = store.get("lines").await.unwrap().unwrap();
    let text = String::from_utf8(record.value).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let distinct: HashSet<&str> = lines.iter().copied().collect();
    assert_eq!(distinct.len(), lines.len(), "a write took place twice");
    for line in &acknowledged {
        assert!(distinct.contains(line.as_str()), "`{line}` was acknowledged and is not there");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_take_place_once_while_connections_are_cut() {
    let Some(server) = Server::start() else { return };
    let database = server.make_database();
    let proxy = Proxy::start(server.port, 900, 7).await;
    let cut = server.url_at(proxy.port, "tester", "secret-word", &database);
    let mut writers = Vec::new();
    for writer in 0..4 {
        // Each has connections of its own, as on a machine of its own.
        let store = PostgresStore::open(&cut).unwrap();
        writers.push(tokio::spawn(add_lines(store, writer, 25)));
    }
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    assert!(proxy.cuts() > 20, "connections were cut {} times only", proxy.cuts());
    assert!(acknowledged.len() > 20, "{} writes of 100 were acknowledged", acknowledged.len());
    check_lines(&PostgresStore::open(&server.url(&database)).unwrap(), acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_survive_a_server_that_is_killed() {
    let Some(mut server) = Server::start() else { return };
    let database = server.make_database();
    let url = server.url(&database);
    let writers: Vec<_> =
        (0..4).map(|writer| tokio::spawn(add_lines(PostgresStore::open(&url).unwrap(), writer, 60))).collect();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        tokio::task::block_in_place(|| server.restart_hard());
    }
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    assert!(acknowledged.len() > 100, "{} writes of 240 were acknowledged", acknowledged.len());
    check_lines(&PostgresStore::open(&url).unwrap(), acknowledged).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_holder_that_was_paused_too_long_commits_nothing() {
    let Some(server) = Server::start() else { return };
    let url = server.url(&server.make_database());
    let (first, second) = (PostgresStore::open(&url).unwrap(), PostgresStore::open(&url).unwrap());
    let request = |owner: &str| LeaseRequest {
        key: "thread".to_owned(),
        owner: owner.to_owned(),
        duration: Duration::from_secs(2),
    };
    let held = first.acquire_lease(request("first")).await.unwrap();
    let StoreError::Held(holder) = second.acquire_lease(request("second")).await.unwrap_err() else { panic!() };
    assert_eq!(holder.owner, "first");
    assert!(holder.remaining.unwrap() <= Duration::from_secs(2));
    let fenced = Batch::new().fenced(Some(held.fence().clone())).set("log", "one");
    first.apply(fenced.clone()).await.unwrap();
    // By the clock of the database, which nobody here can set.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert!(matches!(first.apply(fenced.clone()).await, Err(StoreError::LeaseLost { .. })));
    let taken = second.acquire_lease(request("second")).await.unwrap();
    assert!(taken.fence().token > held.fence().token);
    assert!(matches!(first.apply(fenced).await, Err(StoreError::LeaseLost { .. })));
    assert!(matches!(first.renew_lease(held.fence(), Duration::from_secs(1)).await, Err(StoreError::LeaseLost { .. })));
}

/// Ids that no other process makes.
struct Unique;

impl IdSource for Unique {
    fn fresh(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}

/// An engine on the store at a place, with the clock and the ids of a program.
fn engine_at<Ls>(place: &str, memory: MemoryConfig<Ls>) -> EngineBuilder<Ls> {
    let store: Arc<dyn StorageAdapter> = match Place::new(place) {
        Place::File(path) => Arc::new(SqliteStore::open(&path).unwrap()),
        Place::Postgres(url) => Arc::new(PostgresStore::open(&url).unwrap()),
    };
    let builder = Engine::builder(memory, Arc::new(SystemClock::new()), Arc::new(Unique));
    builder.store(store).owner(format!("process {}", std::process::id()))
}

/// A tool that counts how often it ran, for each call.
struct Effect(Arc<AtomicUsize>);

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

    async fn call(&self, _: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok("done".to_owned())
    }
}

/// Turns of several engines on one thread, as of several machines: one at a time, nothing lost, no tool twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn engines_on_several_machines_share_a_thread() {
    let Some(server) = Server::start() else { return };
    let url = server.url(&server.make_database());
    let effects = Arc::new(AtomicUsize::new(0));
    let mut machines = Vec::new();
    for machine in 0..4 {
        let (url, effects) = (url.clone(), effects.clone());
        machines.push(tokio::spawn(async move {
            let mut turns = 0;
            while turns < 5 {
                let model = ScriptedModel::new().calls("effect", "{}").says(format!("said by {machine}"));
                let store: Arc<dyn StorageAdapter> = Arc::new(PostgresStore::open(&url).unwrap());
                let built = engine(memory(())).store(store).model(model).tool(Effect(effects.clone())).build();
                let mut execution = built.unwrap().execution("shared").start().await.unwrap();
                match execution.turn(format!("turn {turns} of {machine}")).await {
                    Ok(_) => turns += 1,
                    Err(Error::Held { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
                    Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string)),
                }
            }
        }));
    }
    for machine in machines {
        machine.await.unwrap();
    }
    let store: Arc<dyn StorageAdapter> = Arc::new(PostgresStore::open(&url).unwrap());
    let built = engine(memory(())).store(store).model(ScriptedModel::new()).build().unwrap();
    let execution = built.execution("shared").start().await.unwrap();
    let said: Vec<String> = execution
        .log()
        .iter()
        .filter(|item| item.is_message_of(Role::User))
        .map(|item| item.as_message().unwrap().text())
        .collect();
    assert_eq!(said.iter().collect::<HashSet<_>>().len(), 20, "{said:?}");
    assert_eq!(effects.load(Ordering::SeqCst), 20);
    // Each turn is in one piece: what the user said, the call, its output, what the model said.
    assert_eq!(execution.log().len(), 80);
}
