//! Prints the cost of the embedded store: `cargo bench -p contexture-bench --bench store [-- DIRECTORY]`.

use std::path::PathBuf;
use std::time::Duration;

use contexture_bench::store::{Timings, commit_latency, fill_threads, time_open};

const COMMITS: usize = 1_000;
const THREADS: usize = 10_000;
const OPENINGS: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo bench` adds an option of its own.
    let parent = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let parent = parent.map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::tempdir_in(parent)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    runtime.block_on(async {
        let latency = commit_latency(directory.path(), COMMITS).await?;
        print("append and sync_all", &latency.fsync);
        print("commit of a turn", &latency.commit);
        println!("a commit takes {:.2} times one sync (median of {COMMITS})", latency.ratio());
        let path = directory.path().join("threads.db");
        fill_threads(&path, THREADS).await?;
        print("open 10 000 threads", &time_open(&path, OPENINGS).await?);
        Ok(())
    })
}

fn print(what: &str, timings: &Timings) {
    let ms = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
    let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| ms(timings.quantile(share)));
    println!("{what:<20}  p50 {p50}  p90 {p90}  p99 {p99}  mean {}", ms(timings.mean()));
}
