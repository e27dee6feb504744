//! The cost of a durable commit compared with one sync of the disk, and of opening a store.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use contexture::store::{Batch, Change, OpenError, SqliteStore, StorageAdapter, StoreError};

/// The number of layers in a measured turn, and the size of each layer's state.
const STATES: usize = 8;
const STATE_BYTES: usize = 1024;

/// The size of the items of a measured turn.
const LOG_RECORD_BYTES: usize = 2048;

/// Bytes that cannot be compressed or predicted from those of another round.
fn noise(bytes: usize, seed: usize) -> Vec<u8> {
    let mut state = seed as u64 ^ 0x9E37_79B9_7F4A_7C15;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// The durable commit of one turn: every layer's state is overwritten, and one record is appended to the log.
pub fn turn_batch(turn: usize) -> Batch {
    let states = (0..STATES).fold(Batch::new(), |batch, layer| {
        batch.set(format!("layers/layer-{layer}/thread/thread-1/state"), noise(STATE_BYTES, turn * STATES + layer))
    });
    states.set(format!("threads/thread-1/log/{turn:012}"), noise(LOG_RECORD_BYTES, turn))
}

/// The times of many operations of one kind.
#[derive(Clone, Debug)]
pub struct Timings(Vec<Duration>);

impl Timings {
    /// Sorts the measurements, of which there is at least one.
    fn new(mut times: Vec<Duration>) -> Self {
        assert!(!times.is_empty(), "at least one round is measured");
        times.sort_unstable();
        Timings(times)
    }

    /// The time within which `share` of all operations finish: 0.5 is the median.
    pub fn quantile(&self, share: f64) -> Duration {
        self.0[((self.0.len() - 1) as f64 * share) as usize]
    }

    /// The mean.
    pub fn mean(&self) -> Duration {
        self.0.iter().sum::<Duration>() / self.0.len() as u32
    }
}

/// The result of one run of [`commit_latency`].
#[derive(Clone, Debug)]
pub struct CommitLatency {
    /// Appending a turn's bytes to a file, and `sync_all`.
    pub fsync: Timings,
    /// Applying the turn's batch to the store.
    pub commit: Timings,
}

impl CommitLatency {
    /// How many syncs a commit costs, by the medians.
    pub fn ratio(&self) -> f64 {
        self.commit.quantile(0.5).as_secs_f64() / self.fsync.quantile(0.5).as_secs_f64()
    }
}

/// Measures commits and bare syncs alternately, so that both see the same disk, in files that it creates in
/// `directory`.
///
/// # Errors
/// The disk or the store failed.
pub async fn commit_latency(directory: &Path, rounds: usize) -> Result<CommitLatency, Box<dyn std::error::Error>> {
    let store = SqliteStore::open(directory.join("commit-latency.db"))?;
    let mut file = OpenOptions::new().create(true).append(true).open(directory.join("fsync-latency"))?;
    let (mut fsync_times, mut commit_times) = (Vec::new(), Vec::new());
    for turn in 0..rounds {
        let batch = turn_batch(turn);
        let bytes = batch.changes.iter().flat_map(written_bytes).copied().collect::<Vec<_>>();
        fsync_times.push(time_append(&mut file, &bytes)?);
        commit_times.push(time_apply(&store, batch).await?);
    }
    Ok(CommitLatency { fsync: Timings::new(fsync_times), commit: Timings::new(commit_times) })
}

/// The least number of bytes that a change writes to disk.
fn written_bytes(change: &Change) -> &[u8] {
    match change {
        Change::Set { value, .. } => value,
        Change::Delete { .. } => &[],
    }
}

fn time_append(file: &mut std::fs::File, bytes: &[u8]) -> io::Result<Duration> {
    let start = Instant::now();
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(start.elapsed())
}

async fn time_apply(store: &SqliteStore, batch: Batch) -> Result<Duration, StoreError> {
    let start = Instant::now();
    store.apply(batch).await?;
    Ok(start.elapsed())
}

/// Creates a store of `threads` threads, each with a head, a log record and the state of one layer.
///
/// # Errors
/// The disk or the store failed.
pub async fn fill_threads(path: &Path, threads: usize) -> Result<(), Box<dyn std::error::Error>> {
    let store = SqliteStore::open(path)?;
    let batch = (0..threads).fold(Batch::new(), |batch, n| {
        batch
            .set(format!("threads/thread-{n}/head"), noise(200, n))
            .set(format!("threads/thread-{n}/log/{:012}", 0), noise(1024, n))
            .set(format!("layers/layer/thread/thread-{n}/state"), noise(1024, n))
    });
    store.apply(batch).await?;
    Ok(())
}

/// Measures opening the store at `path` and reading one record from it.
///
/// # Errors
/// The store cannot be opened.
pub async fn time_open(path: &Path, rounds: usize) -> Result<Timings, OpenError> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        let store = SqliteStore::open(path)?;
        let head = store.get("threads/thread-0/head").await;
        times.push(start.elapsed());
        assert!(matches!(head, Ok(Some(_))), "the store holds what it was filled with");
    }
    Ok(Timings::new(times))
}
