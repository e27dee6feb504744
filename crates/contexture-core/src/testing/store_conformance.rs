//! The conformance suite for stores.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::lease_conformance::leases_are_kept;
use crate::store::{Batch, MAX_KEY_BYTES, Record, StorageAdapter, StoreError, Version};

/// The store under test.
type Store = Arc<dyn StorageAdapter>;

/// The number of tasks that compete for one key, and of rounds.
const RIVALS: usize = 8;
const RIVAL_ROUNDS: usize = 12;

/// The number of batches that are written while others read.
const WATCHED_BATCHES: usize = 40;

/// The size of a batch that is far larger than that of a step, and than most databases accept in one statement.
const LARGE_BATCH: usize = 3_000;

/// Keys that a store could confuse, drop or reject.
const ODD_KEYS: &[&str] = &[
    "",
    " ",
    "a",
    "a ",
    "A",
    "a/b/c",
    "//",
    "/",
    ".",
    "..",
    "50%",
    "%",
    "%00",
    "_",
    "a_",
    "a*",
    "a?",
    "[a]",
    "\\",
    "'; DROP TABLE records; --",
    "\"",
    "\0",
    "a\0",
    "a\0b",
    "\u{1}",
    "\n",
    "é",
    "e\u{301}",
    "日本",
    "🦀",
    "👩‍👩‍👧",
    "\u{FFFF}",
    "\u{10000}",
    "\u{10FFFF}",
    "null",
];

/// Checks every requirement of [`StorageAdapter`].
///
/// `open` is called with a new name for each check and returns an empty store. Call it in a tokio runtime, preferably
/// one with several threads.
///
/// ```
/// use std::sync::Arc;
/// use contexture_core::store::MemoryStore;
/// use contexture_core::testing::store_conformance;
///
/// # tokio::runtime::Builder::new_multi_thread().build().expect("a runtime").block_on(async {
/// store_conformance(async |_name| Arc::new(MemoryStore::new())).await;
/// # });
/// ```
///
/// # Panics
/// At the first requirement that is not met, with a message that names it.
pub async fn store_conformance<S: StorageAdapter + 'static>(open: impl AsyncFn(&str) -> Arc<S>) {
    records_come_back_as_they_were_set(open("records").await).await;
    listing_is_exact_and_in_byte_order(open("listing").await).await;
    versions_never_repeat(open("versions").await).await;
    batches_are_made_in_order(open("order").await).await;
    a_conflict_changes_nothing(open("conflict").await).await;
    expectations_guard_a_batch(open("expectations").await).await;
    odd_keys_are_kept_apart(open("odd-keys").await).await;
    long_keys_are_kept_and_longer_ones_refused(open("long-keys").await).await;
    values_of_any_size_are_kept(open("values").await).await;
    large_batches_are_kept_whole(open("large-batch").await).await;
    one_rival_wins_each_round(open("rivals").await).await;
    no_increment_is_lost(open("increments").await).await;
    readers_never_see_half_a_batch(open("readers").await).await;
    leases_are_kept(async |name| {
        let store: Store = open(name).await;
        store
    })
    .await;
}

/// Like [`store_conformance`], for a store that outlives its process; also closes and reopens it.
///
/// `open` is called with a name: the first time it creates an empty store, and every later time it opens the one
/// that it created under that name. The previous handle has been dropped by then.
///
/// # Panics
/// At the first requirement that is not met, with a message that names it.
pub async fn durable_store_conformance<S: StorageAdapter + 'static>(open: impl AsyncFn(&str) -> Arc<S>) {
    store_conformance(&open).await;
    everything_is_there_after_reopening(&open).await;
    versions_never_repeat_across_reopening(&open).await;
    a_conflict_stays_a_conflict_after_reopening(&open).await;
}

async fn records_come_back_as_they_were_set(store: Store) {
    assert_eq!(read(&store, "a").await, None, "an empty store must hold nothing");
    assert_eq!(list(&store, "").await, [""; 0], "an empty store must list nothing");
    let first = set(&store, "a", b"one").await;
    let expected = Record { value: b"one".to_vec(), version: first };
    assert_eq!(read(&store, "a").await, Some(expected), "`get` must return the value and version of `set`");
    let second = set(&store, "a", b"two").await;
    let expected = Record { value: b"two".to_vec(), version: second };
    assert_eq!(read(&store, "a").await, Some(expected.clone()), "`set` must replace the previous value");

    let keys = ["a", "missing", "a"].map(str::to_owned);
    let found = must("get_many", store.get_many(&keys).await);
    let in_order = [Some(expected.clone()), None, Some(expected)];
    assert_eq!(
        found, in_order,
        "`get_many` must return records in the order of the keys, also for missing and repeated ones"
    );
    assert_eq!(must("get_many", store.get_many(&[]).await), [], "`get_many` of no keys must return nothing");

    must("delete", store.delete("a").await);
    assert_eq!(read(&store, "a").await, None, "`delete` must remove the record");
    assert_eq!(list(&store, "").await, [""; 0], "a deleted key must not be listed");
    must("delete", store.delete("a").await);
}

async fn versions_never_repeat(store: Store) {
    let mut seen = Vec::new();
    for round in 0..4 {
        seen.push(set(&store, "a", b"same").await);
        seen.push(set(&store, "a", b"same").await);
        must("delete", store.delete("a").await);
        seen.push(must("compare_and_set", store.compare_and_set("a", None, b"same".to_vec()).await));
        must("apply", store.apply(Batch::new().delete("a").set("other", [round])).await);
    }
    assert_distinct(seen);
}

async fn batches_are_made_in_order(store: Store) {
    set(&store, "old", b"1").await;
    let batch = Batch::new()
        .set("twice", b"1".to_vec())
        .set("twice", b"2".to_vec())
        .set("gone", b"1".to_vec())
        .delete("gone")
        .delete("back")
        .set("back", b"1".to_vec())
        .delete("old")
        .delete("never there");
    let version = must("apply", store.apply(batch).await);
    assert_eq!(list(&store, "").await, ["back", "twice"], "the changes of a batch must be made in their order");
    let twice = read(&store, "twice").await.expect("it was just listed");
    assert_eq!(twice.value, b"2", "of two values for one key the later must stay");
    let back = read(&store, "back").await.expect("it was just listed");
    let versions = [twice.version, back.version];
    assert_eq!(versions, [version; 2], "all records of a batch must get the version that `apply` returns");
    must("apply", store.apply(Batch::new()).await);
}

async fn expectations_guard_a_batch(store: Store) {
    let version = must("compare_and_set", store.compare_and_set("a", None, b"1".to_vec()).await);
    conflicts_on("a", "must not exist, but does", store.compare_and_set("a", None, b"2".to_vec()).await);
    conflicts_on("b", "must exist, but does not", store.compare_and_set("b", Some(version), b"2".to_vec()).await);
    let newer = must("compare_and_set", store.compare_and_set("a", Some(version), b"3".to_vec()).await);
    conflicts_on("a", "was changed since", store.compare_and_set("a", Some(version), b"4".to_vec()).await);
    let impossible = Some(Version(u64::MAX));
    conflicts_on("a", "has another version", store.compare_and_set("a", impossible, b"5".to_vec()).await);

    // A batch's own changes do not affect its expectations.
    let batch = Batch::new().expect("a", Some(newer)).expect("c", None).delete("a").set("c", b"1".to_vec());
    must("apply", store.apply(batch).await);
    conflicts_on("a", "was deleted since", store.compare_and_set("a", Some(newer), b"6".to_vec()).await);
    must("apply", store.apply(Batch::new().expect("a", None)).await);
    assert_eq!(list(&store, "").await, ["c"], "only batches whose expectations hold may change anything");
}

async fn a_conflict_changes_nothing(store: Store) {
    let version = set(&store, "kept", b"1").await;
    let batch = Batch::new()
        .expect("kept", Some(version))
        .expect("absent", Some(version))
        .expect("kept", None)
        .set("kept", b"2".to_vec())
        .set("new", b"2".to_vec())
        .delete("kept");
    conflicts_on("absent", "is the first that is not as expected", store.apply(batch).await);
    let expected = Record { value: b"1".to_vec(), version };
    assert_eq!(read(&store, "kept").await, Some(expected), "a batch in conflict must leave records as they were");
    assert_eq!(read(&store, "new").await, None, "a batch in conflict must not add records");
}

async fn odd_keys_are_kept_apart(store: Store) {
    let mut batch = Batch::new();
    for key in ODD_KEYS {
        batch = batch.set(*key, key.as_bytes());
    }
    must("apply", store.apply(batch).await);
    let mut sorted = ODD_KEYS.to_vec();
    sorted.sort_unstable();
    assert_eq!(list(&store, "").await, sorted, "keys must be kept as they are and listed in byte order");
    for key in ODD_KEYS {
        let value = read(&store, key).await.map(|record| record.value);
        assert_eq!(value.as_deref(), Some(key.as_bytes()), "key {key:?} must have a record of its own");
        let with_prefix: Vec<_> = sorted.iter().filter(|other| other.starts_with(key)).copied().collect();
        assert_eq!(list(&store, key).await, with_prefix, "prefix {key:?} must be taken literally");
    }
    let half: Vec<_> = ODD_KEYS.iter().step_by(2).collect();
    let batch = half.iter().fold(Batch::new(), |batch, key| batch.delete(**key));
    must("apply", store.apply(batch).await);
    sorted.retain(|key| !half.contains(&key));
    assert_eq!(list(&store, "").await, sorted, "deleting one key must not delete another that looks alike");
}

async fn long_keys_are_kept_and_longer_ones_refused(store: Store) {
    let long_keys = [
        "k".repeat(10_000),
        "k".repeat(10_001),
        "🦀".repeat(2_500),
        "%2F/".repeat(2_500),
        "k".repeat(MAX_KEY_BYTES - 1) + "a",
        "k".repeat(MAX_KEY_BYTES - 1) + "b",
    ];
    for key in &long_keys {
        set(&store, key, &key.as_bytes()[key.len() - 1..]).await;
    }
    for key in &long_keys {
        let value = read(&store, key).await.map(|record| record.value);
        let last = &key.as_bytes()[key.len() - 1..];
        assert!(value.as_deref() == Some(last), "a key of {} bytes must have a record of its own", key.len());
    }
    let mut sorted = long_keys.to_vec();
    sorted.sort_unstable();
    assert!(list(&store, "").await == sorted, "keys of up to {MAX_KEY_BYTES} bytes must be listed in byte order");

    let too_long = "k".repeat(MAX_KEY_BYTES + 1);
    let refused = |answer| matches!(answer, Err(StoreError::KeyTooLong { .. }));
    let batch = Batch::new().set("short", b"1".to_vec()).set(too_long.clone(), b"1".to_vec());
    assert!(refused(store.apply(batch).await), "a key of more than {MAX_KEY_BYTES} bytes must be refused as too long");
    assert_eq!(read(&store, "short").await, None, "a batch with a refused key must change nothing");
    let found = store.get(&too_long).await;
    assert!(!matches!(found, Ok(Some(_))), "a key that was refused must not be there");
}

async fn listing_is_exact_and_in_byte_order(store: Store) {
    let keys = ["A", "`", "a", "a/", "a/b", "ab", "a\u{10FFFF}", "b", "á"];
    for key in keys.iter().rev() {
        set(&store, key, b"").await;
    }
    assert_eq!(list(&store, "a").await, ["a", "a/", "a/b", "ab", "a\u{10FFFF}"], "`list` of prefix `a` must be exact");
    assert_eq!(list(&store, "a/").await, ["a/", "a/b"], "`list` of prefix `a/` must be exact");
    assert_eq!(list(&store, "a\u{10FFFF}").await, ["a\u{10FFFF}"], "the last of all characters must not be lost");
    assert_eq!(list(&store, "ac").await, [""; 0], "a prefix that no key has must list nothing");
    assert_eq!(list(&store, "").await, keys, "the empty prefix must list everything");
}

async fn values_of_any_size_are_kept(store: Store) {
    let every_byte: Vec<u8> = (0..=255).collect();
    let megabyte: Vec<u8> = (0..1_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (key, value) in [("empty", vec![]), ("every byte", every_byte), ("megabyte", megabyte)] {
        set(&store, key, &value).await;
        let found = read(&store, key).await.map(|record| record.value);
        assert!(found == Some(value), "the value `{key}` must come back byte for byte");
    }
    set(&store, "megabyte", b"").await;
    let found = read(&store, "megabyte").await.map(|record| record.value);
    assert_eq!(found, Some(vec![]), "an empty value must replace a large one, and is not a missing one");
}

async fn large_batches_are_kept_whole(store: Store) {
    let keys: Vec<String> = (0..LARGE_BATCH).map(|n| format!("k/{n:05}")).collect();
    let batch = keys.iter().fold(Batch::new(), |batch, key| batch.set(key.clone(), key.as_bytes()));
    let version = must("apply", store.apply(batch).await);
    assert!(list(&store, "k/").await == keys, "a batch of {LARGE_BATCH} records must be listed whole");
    let found = must("get_many", store.get_many(&keys).await);
    let whole = keys.iter().map(|key| Some(Record { value: key.clone().into_bytes(), version }));
    assert!(found.into_iter().eq(whole), "`get_many` must give all of {LARGE_BATCH} records, with one version");
}

/// In each round every task tries to change the record from the version that all have read.
async fn one_rival_wins_each_round(store: Store) {
    let mut version = None;
    for round in 0..RIVAL_ROUNDS {
        let mut rivals = JoinSet::new();
        for rival in 0..RIVALS {
            let store = store.clone();
            rivals.spawn(async move { store.compare_and_set("prize", version, vec![rival as u8]).await });
        }
        let answers = rivals.join_all().await;
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1, "of {RIVALS} who expect the same version, exactly one must win (round {round})");
        for answer in lost {
            conflicts_on("prize", "was won by another", answer);
        }
        version = won.into_iter().next().and_then(Result::ok);
        let found = read(&store, "prize").await.map(|record| record.version);
        assert_eq!(found, version, "the value after round {round} must be the winner's");
    }
}

/// Each task adds one, several times, and retries after a conflict.
async fn no_increment_is_lost(store: Store) {
    const EACH: u64 = 5;
    let mut tasks = JoinSet::new();
    for _ in 0..RIVALS {
        let store = store.clone();
        tasks.spawn(async move {
            for _ in 0..EACH {
                while !increment(&store, "count").await {}
            }
        });
    }
    tasks.join_all().await;
    let count = read(&store, "count").await.map(|record| number(&record));
    assert_eq!(count, Some(EACH * RIVALS as u64), "no increment by `compare_and_set` may be lost");
}

/// Adds one to the number under `key`; `false` after a conflict.
async fn increment(store: &Store, key: &str) -> bool {
    let record = read(store, key).await;
    let next = record.as_ref().map_or(0, number) + 1;
    let expected = record.map(|record| record.version);
    match store.compare_and_set(key, expected, next.to_le_bytes().to_vec()).await {
        Err(StoreError::Conflict { .. }) => false,
        answer => {
            must("compare_and_set", answer);
            true
        }
    }
}

fn number(record: &Record) -> u64 {
    u64::from_le_bytes(record.value.as_slice().try_into().expect("a number as it was written"))
}

/// One task writes the same number under several keys, again and again, and removes them in between.
async fn readers_never_see_half_a_batch(store: Store) {
    let keys: Arc<[String]> = ["a", "m", "m/n", "z"].map(str::to_owned).into();
    let mut tasks = JoinSet::new();
    let (done, watch_done) = tokio::sync::watch::channel(false);
    for _ in 0..3 {
        let (store, keys, watch_done) = (store.clone(), keys.clone(), watch_done.clone());
        tasks.spawn(async move {
            let mut looks = 0;
            while !*watch_done.borrow() || looks == 0 {
                let found = must("get_many", store.get_many(&keys).await);
                assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "`get_many` must never see half a batch");
                let listed = list(&store, "").await.len();
                assert!([0, keys.len()].contains(&listed), "`list` must never see half a batch");
                looks += 1;
                tokio::task::yield_now().await;
            }
        });
    }
    for round in 0..WATCHED_BATCHES {
        let batch = keys.iter().fold(Batch::new(), |batch, key| match round % 4 {
            3 => batch.delete(key.clone()),
            _ => batch.set(key.clone(), vec![round as u8; 2_000]),
        });
        must("apply", store.apply(batch).await);
    }
    done.send_replace(true);
    tasks.join_all().await;
}

async fn everything_is_there_after_reopening<S: StorageAdapter + 'static>(open: &impl AsyncFn(&str) -> Arc<S>) {
    let large = vec![7; 1_000_000];
    let long_key = "k".repeat(MAX_KEY_BYTES);
    let store: Store = open("reopened").await;
    let batch = ODD_KEYS.iter().fold(Batch::new(), |batch, key| batch.set(*key, key.as_bytes()));
    must("apply", store.apply(batch.set(long_key.clone(), large)).await);
    set(&store, "changed", b"1").await;
    set(&store, "changed", b"2").await;
    set(&store, "deleted", b"1").await;
    must("delete", store.delete("deleted").await);
    let keys = list(&store, "").await;
    let records = must("get_many", store.get_many(&keys).await);
    drop(store);

    let store: Store = open("reopened").await;
    assert!(list(&store, "").await == keys, "the same keys must be there after reopening");
    let found = must("get_many", store.get_many(&keys).await);
    assert!(found == records, "the same values and versions must be there after reopening");
}

async fn versions_never_repeat_across_reopening<S: StorageAdapter + 'static>(open: &impl AsyncFn(&str) -> Arc<S>) {
    let mut seen = Vec::new();
    for _ in 0..4 {
        let store: Store = open("reopened-versions").await;
        seen.push(set(&store, "a", b"same").await);
        must("delete", store.delete("a").await);
    }
    assert_distinct(seen);
}

async fn a_conflict_stays_a_conflict_after_reopening<S: StorageAdapter + 'static>(open: &impl AsyncFn(&str) -> Arc<S>) {
    let store: Store = open("reopened-conflict").await;
    let older = set(&store, "a", b"1").await;
    let newer = set(&store, "a", b"2").await;
    drop(store);
    let store: Store = open("reopened-conflict").await;
    conflicts_on("a", "was changed before reopening", store.compare_and_set("a", Some(older), b"3".to_vec()).await);
    must("compare_and_set", store.compare_and_set("a", Some(newer), b"3".to_vec()).await);
}

async fn set(store: &Store, key: &str, value: &[u8]) -> Version {
    must("set", store.set(key, value.to_vec()).await)
}

async fn read(store: &Store, key: &str) -> Option<Record> {
    must("get", store.get(key).await)
}

async fn list(store: &Store, prefix: &str) -> Vec<String> {
    must("list", store.list(prefix).await)
}

/// The result of an operation that must succeed.
#[track_caller]
fn must<T>(operation: &str, answer: Result<T, StoreError>) -> T {
    answer.unwrap_or_else(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        panic!("`{operation}` must succeed, but returned: {error}{cause}")
    })
}

#[track_caller]
fn conflicts_on(key: &str, why: &str, answer: Result<Version, StoreError>) {
    match answer {
        Err(StoreError::Conflict { key: named }) => {
            assert_eq!(named, key, "the conflict must name the record that {why}");
        }
        Err(error) => panic!("a batch must be refused as a conflict, since `{key}` {why}; the result was: {error}"),
        Ok(_) => panic!("a batch must be refused as a conflict, since `{key}` {why}; it was applied"),
    }
}

#[track_caller]
fn assert_distinct(mut versions: Vec<Version>) {
    let count = versions.len();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), count, "no version may be given twice for one key, not even after it was deleted");
}
