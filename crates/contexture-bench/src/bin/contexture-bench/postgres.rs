//! Measures the store in PostgreSQL: commits, round trips, turns of several workers, and many threads.
//!
//! `cargo run --release -p contexture-bench -- postgres postgres://user:password@host/database` in an empty database,
//! which it fills.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use contexture::prelude::*;
use contexture::store::{Batch, Change, PostgresStore, StorageAdapter};
use contexture_bench::store::turn_batch;
use contexture_cli::failure::Failure;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type BenchResult<T> = Result<T, Box<dyn Error>>;

/// Rounds of commits that are compared.
const ROUNDS: usize = 1_000;

/// How long workers take turns.
const WORK: Duration = Duration::from_secs(10);

/// Threads that are open at once.
const OPEN: usize = 1_000;

/// A model that says one sentence at once.
struct Echo;

impl Model for Echo {
    async fn call(&self, _: ModelRequest) -> Result<LlmResponse, BoxError> {
        Ok(LlmResponse::text("A sentence of some length, as a model might say it after a short question."))
    }
}

/// Measure the store in PostgreSQL.
#[derive(Args)]
pub struct PostgresCommand {
    /// An empty database, which is filled: postgres://user:password@host/database
    #[arg(value_name = "URL")]
    url: String,
    /// What is measured
    #[arg(value_enum, default_value_t = PostgresBenchmark::All)]
    measure: PostgresBenchmark,
    /// How many threads are made, or were made before
    #[arg(default_value_t = 100_000)]
    count: usize,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PostgresBenchmark {
    /// All but what `open` measures, since memory that was used before is used again
    All,
    /// The commit of a step beside the server's own, and round trips
    Commits,
    /// Turns of one worker, and of eight
    Turns,
    /// Many threads: their size, and how long they take to write
    Threads,
    /// A turn on each of some of the threads that `threads` made
    Open,
}

pub fn run(arguments: &PostgresCommand) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(arguments)).map_err(|error| Failure::work(error.to_string()))
}

async fn measure(PostgresCommand { url, measure, count }: &PostgresCommand) -> BenchResult<()> {
    let has = |one: PostgresBenchmark| {
        *measure == one || (*measure == PostgresBenchmark::All && one != PostgresBenchmark::Open)
    };
    if has(PostgresBenchmark::Commits) {
        commits(url).await?;
        round_trips(url).await?;
    }
    if has(PostgresBenchmark::Turns) {
        for workers in [1, 8] {
            turns(url, workers).await?;
        }
    }
    if has(PostgresBenchmark::Threads) {
        threads(url, *count).await?;
    }
    if has(PostgresBenchmark::Open) {
        open(url, *count).await?;
    }
    Ok(())
}

/// A plain connection.
async fn connect(url: &str) -> BenchResult<tokio_postgres::Client> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(async move {
        // The client reports what went wrong.
        let _ = connection.await;
    });
    Ok(client)
}

/// The commit of a step, and the server's own commit of the same bytes in the same number of rows, side by side.
async fn commits(url: &str) -> BenchResult<()> {
    let (store, client) = (PostgresStore::open(url)?, connect(url).await?);
    store.check().await?;
    client
        .batch_execute(
            "DROP TABLE IF EXISTS bare_commits; CREATE TABLE bare_commits (key BYTEA PRIMARY KEY, value BYTEA NOT NULL)",
        )
        .await?;
    let insert = "INSERT INTO bare_commits SELECT * FROM unnest($1::bytea[], $2::bytea[]) \
                  ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value";
    let insert = client.prepare(insert).await?;
    let lease = store
        .acquire_lease(contexture::store::LeaseRequest {
            key: "bench".to_owned(),
            owner: "bench".to_owned(),
            duration: Duration::from_secs(600),
        })
        .await?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let mut head = store.set("threads/thread-1/head", b"first".to_vec()).await?;
    for round in 0..ROUNDS {
        let batch = turn_batch(round);
        let (keys, values): (Vec<Vec<u8>>, Vec<Vec<u8>>) = batch.changes.iter().filter_map(row).unzip();
        let begun = Instant::now();
        client.execute(&insert, &[&keys, &values]).await?;
        bare.push(begun.elapsed());
        // As the engine writes it: under a lease, expecting the head that it read.
        let batch = batch
            .fenced(Some(lease.fence().clone()))
            .expect("threads/thread-1/head", Some(head))
            .set("threads/thread-1/head", round.to_string());
        let begun = Instant::now();
        head = store.apply(batch).await?;
        ours.push(begun.elapsed());
    }
    for (name, share) in [("a tenth", 0.1), ("half", 0.5)] {
        let (ours, bare) = (within(&mut ours, share), within(&mut bare, share));
        println!(
            "within which {name} are done: commit of a step {ours:.2?}, the server's own commit of the same bytes \
             {bare:.2?}, {:.2} times as long",
            ours.as_secs_f64() / bare.as_secs_f64()
        );
    }
    client.batch_execute("DROP TABLE bare_commits").await?;
    Ok(())
}

fn row(change: &Change) -> Option<(Vec<u8>, Vec<u8>)> {
    match change {
        Change::Set { key, value } => Some((key.clone().into_bytes(), value.clone())),
        Change::Delete { .. } => None,
    }
}

/// The time within which a share of all were done.
fn within(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize]
}

/// Passes bytes on and counts how often a request follows a response.
async fn count_turns(client: TcpStream, server: String, trips: Arc<AtomicU64>) -> std::io::Result<()> {
    let server = TcpStream::connect(server).await?;
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let (mut asked, mut said) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut is_asking = false;
    loop {
        tokio::select! {
            count = from_client.read(&mut asked) => {
                let count = count?;
                if count == 0 {
                    return Ok(());
                }
                if !std::mem::replace(&mut is_asking, true) {
                    trips.fetch_add(1, Ordering::Relaxed);
                }
                to_server.write_all(&asked[..count]).await?;
            }
            count = from_server.read(&mut said) => {
                let count = count?;
                if count == 0 {
                    return Ok(());
                }
                is_asking = false;
                to_client.write_all(&said[..count]).await?;
            }
        }
    }
}

/// How often a request waits for a response: for the commit of a step, and for a whole turn.
async fn round_trips(url: &str) -> BenchResult<()> {
    let config: tokio_postgres::Config = url.parse()?;
    let Some(tokio_postgres::config::Host::Tcp(host)) = config.get_hosts().first() else {
        println!("round trips: counted over TCP only");
        return Ok(());
    };
    let server = format!("{host}:{}", config.get_ports().first().unwrap_or(&5432));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let trips = Arc::new(AtomicU64::new(0));
    let counter = trips.clone();
    let direct = server.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(count_turns(client, direct.clone(), counter.clone()));
        }
    });
    let counted = url.replacen(&server, &address.to_string(), 1);
    let store = PostgresStore::open(&counted)?;
    store.check().await?;
    let mut version = store.set("trips/head", b"0".to_vec()).await?;
    let before = trips.load(Ordering::Relaxed);
    for round in 0..100_usize {
        let batch = turn_batch(round).expect("trips/head", Some(version)).set("trips/head", round.to_string());
        version = store.apply(batch).await?;
    }
    let commit = (trips.load(Ordering::Relaxed) - before) as f64 / 100.0;
    let engine = contexture::open(&counted, memory(()))?.model(Echo).build()?;
    // A lease that was not released when the program ended would be in the way of the next run.
    let mut execution = engine.execution(format!("trips-{}", std::process::id())).start().await?;
    execution.turn("hello").await?;
    let before = trips.load(Ordering::Relaxed);
    for _ in 0..20 {
        execution.turn("hello").await?;
    }
    // Releasing a lease may overlap with the next turn.
    let turn = (trips.load(Ordering::Relaxed) - before) as f64 / 20.0;
    println!("round trips: {commit:.2} for the commit of a step, {turn:.1} for a turn without tools");
    Ok(())
}

/// Turns per second of workers that have engines and connections of their own.
async fn turns(url: &str, workers: usize) -> BenchResult<()> {
    let (until, mut tasks) = (Instant::now() + WORK, Vec::new());
    for worker in 0..workers {
        let engine = contexture::open(url, memory(()))?.model(Echo).build()?;
        tasks.push(tokio::spawn(async move {
            let mut turns = 0_u64;
            while Instant::now() < until {
                // A new thread from time to time, so that logs stay as short as they usually are.
                let thread = format!("worker-{worker}-{}", turns / 20);
                let Ok(mut execution) = engine.execution(thread).start().await else { break };
                for _ in 0..20 {
                    if execution.turn("A question of some length, as a person might ask it.").await.is_ok() {
                        turns += 1;
                    }
                }
            }
            turns
        }));
    }
    let mut total = 0;
    for task in tasks {
        total += task.await?;
    }
    println!("{workers} workers: {:.0} turns per second", total as f64 / WORK.as_secs_f64());
    Ok(())
}

/// Fills the database with copies of a real thread, and measures size, memory and a turn among them.
async fn threads(url: &str, count: usize) -> BenchResult<()> {
    let (store, client) = (PostgresStore::open(url)?, connect(url).await?);
    let engine = contexture::open(url, memory(()))?.model(Echo).build()?;
    let mut execution = engine.execution("pattern").start().await?;
    for _ in 0..3 {
        execution.turn("A question of some length, as a person might ask it.").await?;
    }
    execution.complete().await?;
    let keys = store.list("threads/pattern/").await?;
    let records = store.get_many(&keys).await?;
    let before = size(&client).await?;
    let begun = Instant::now();
    for chunk in (0..count).collect::<Vec<_>>().chunks(500) {
        let mut batch = Batch::new();
        for number in chunk {
            for (key, record) in keys.iter().zip(&records) {
                let Some(record) = record else { continue };
                let key = key.replacen("threads/pattern/", &format!("threads/many-{number}/"), 1);
                batch = batch.set(key, record.value.clone());
            }
        }
        store.apply(batch).await?;
    }
    let filled = begun.elapsed();
    client.batch_execute("VACUUM ANALYZE contexture_records").await?;
    let bytes = size(&client).await? - before;
    println!(
        "{count} threads of 3 turns, {} records each, written in {filled:.0?}: {:.0} MB in the database, {:.1} kB each",
        keys.len(),
        bytes as f64 / 1e6,
        bytes as f64 / 1e3 / count as f64,
    );
    Ok(())
}

/// Opens some of the threads that are there, takes a turn on each, and measures what that takes.
async fn open(url: &str, count: usize) -> BenchResult<()> {
    let engine = contexture::open(url, memory(()))?.model(Echo).build()?;
    drop(engine.execution(format!("first-{}", std::process::id())).start().await?);
    let (rest, mut open, mut times) = (rss_kb(), Vec::new(), Vec::new());
    for number in 0..OPEN {
        let begun = Instant::now();
        let thread = format!("many-{}", number * 7_919 % count);
        let mut execution = engine.execution(thread).start().await?;
        execution.turn("One more question.").await?;
        times.push(begun.elapsed());
        open.push(execution);
    }
    println!(
        "this program has {:.1} MB with no thread open, and {:.1} kB more for each of {OPEN} that are; opening one and \
         taking a turn takes {:.1?}",
        rest as f64 / 1e3,
        rss_kb().saturating_sub(rest) as f64 / OPEN as f64,
        within(&mut times, 0.5),
    );
    Ok(())
}

async fn size(client: &tokio_postgres::Client) -> BenchResult<i64> {
    let sql = "SELECT pg_total_relation_size('contexture_records')";
    Ok(client.query_one(sql, &[]).await?.get(0))
}

/// The memory of this process, in kB.
fn rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
