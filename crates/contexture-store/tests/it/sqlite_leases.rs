//! Leases of the embedded store, between handles and between processes that are killed or stopped.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture_core::store::{Batch, Lease, LeaseRequest, StorageAdapter, StoreError};
use contexture_core::testing::lease_conformance;
use contexture_store::SqliteStore;
use tempfile::TempDir;

use crate::kill::{self, Process};

/// Longer than any test may take, so that only death or a word frees it.
const LONG: Duration = Duration::from_secs(3_600);
/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(400);

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path).unwrap_or_else(|error| panic!("{error}"))
}

async fn acquire(store: &SqliteStore, owner: &str, duration: Duration) -> Result<Lease, StoreError> {
    let request = LeaseRequest { key: "thread".to_owned(), owner: owner.to_owned(), duration };
    store.acquire_lease(request).await
}

fn lock_files(directory: &Path) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().contains("-lease-")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_of_the_embedded_store_conform() {
    let directory = TempDir::new().unwrap();
    let open = async |name: &str, clock| {
        Arc::new(SqliteStore::open_with_clock(directory.path().join(name), clock).unwrap_or_else(|e| panic!("{e}")))
    };
    lease_conformance(open).await;
}

#[tokio::test]
async fn a_dropped_lease_is_free_at_once_for_every_handle() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store.db");
    let handles = [open(&path), open(&path)];
    let mut lease = acquire(&handles[0], "first", LONG).await.unwrap();
    for round in 1..300 {
        let next = &handles[round % 2];
        assert!(matches!(acquire(next, "early", LONG).await, Err(StoreError::Held(_))));
        drop(lease);
        lease = acquire(next, "next", LONG).await.unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    assert_eq!(lock_files(directory.path()), 1);
    drop(lease);
    drop(handles);
    assert_eq!(lock_files(directory.path()), 0, "nothing is left behind");
}

#[tokio::test]
async fn a_lease_whose_asker_gave_up_is_free() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory.path().join("store.db"));
    for _ in 0..200 {
        let asked = acquire(&store, "gave up", LONG);
        tokio::select! { biased; _ = asked => {}, () = tokio::task::yield_now() => {} }
        let lease = acquire(&store, "next", LONG).await.unwrap_or_else(|error| panic!("{error}"));
        drop(lease);
    }
}

/// Takes the lease and keeps it; runs only as a child process.
#[test]
#[ignore = "a child process of `death_frees_a_lease_at_once`"]
fn child_holds() {
    kill::as_child(async |directory| {
        let store = open(&directory.join("store.db"));
        let _lease = acquire(&store, "child", LONG).await.expect("the one before is dead");
        kill::tell("held");
        std::future::pending::<()>().await;
    });
}

#[tokio::test]
async fn death_frees_a_lease_at_once() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory.path().join("store.db"));
    for _ in 0..5 {
        let mut child = Process::start("sqlite_leases::child_holds", directory.path());
        assert_eq!(child.next_told().as_deref(), Some("held"));
        match acquire(&store, "parent", LONG).await {
            Err(StoreError::Held(holder)) => assert_eq!(holder.owner, "child"),
            other => panic!("the child lives: {other:?}"),
        }
        child.kill();
        let lease = acquire(&store, "parent", LONG).await;
        assert!(lease.is_ok(), "the child is dead: {lease:?}");
        assert_eq!(lock_files(directory.path()), 1, "what the dead one left is removed");
    }
}

/// Takes a short lease, waits for a word, and writes; runs only as a child process.
#[cfg(unix)]
#[test]
#[ignore = "a child process of `a_process_that_was_stopped_too_long_writes_nothing`"]
fn child_writes_late() {
    kill::as_child(async |directory| {
        let store = open(&directory.join("store.db"));
        let lease = acquire(&store, "child", SHORT).await.expect("nobody has it");
        kill::tell(format!("{}", std::process::id()));
        while !directory.join("go on").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let batch = Batch::new().fenced(Some(lease.fence().clone())).set("record", *b"child");
        let (written, renewed) = (store.apply(batch).await, store.renew_lease(lease.fence(), LONG).await);
        let lost = |lost| if lost { "lost" } else { "held" };
        let (written, renewed) = (
            lost(matches!(written, Err(StoreError::LeaseLost { .. }))),
            lost(matches!(renewed, Err(StoreError::LeaseLost { .. }))),
        );
        kill::tell(format!("{written} {renewed}"));
    });
}

#[cfg(unix)]
#[tokio::test]
async fn a_process_that_was_stopped_too_long_writes_nothing() {
    use rustix::process::{Pid, Signal, kill_process};

    let directory = TempDir::new().unwrap();
    let store = open(&directory.path().join("store.db"));
    let mut child = Process::start("sqlite_leases::child_writes_late", directory.path());
    let pid: i32 = child.next_told().unwrap().parse().unwrap();
    let pid = Pid::from_raw(pid).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let (begun, lease) = (
        Instant::now(),
        loop {
            match acquire(&store, "parent", LONG).await {
                Ok(lease) => break lease,
                Err(StoreError::Held(holder)) => {
                    assert_eq!(holder.owner, "child");
                    std::thread::sleep(holder.remaining.unwrap().max(Duration::from_millis(1)));
                }
                Err(error) => panic!("{error}"),
            }
        },
    );
    assert!(begun.elapsed() <= SHORT + Duration::from_secs(5), "it is free when it has run out");
    store.apply(Batch::new().fenced(Some(lease.fence().clone())).set("record", *b"parent")).await.unwrap();
    std::fs::write(directory.path().join("go on"), "").unwrap();
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(child.next_told().as_deref(), Some("lost lost"));
    assert_eq!(store.get("record").await.unwrap().unwrap().value, b"parent");
    drop(lease);
}
