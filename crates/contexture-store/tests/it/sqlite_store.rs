//! The embedded store: the suite, what it refuses to open, and what is left when its process is killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contexture_core::memory::memory;
use contexture_core::store::{Batch, Change, LeaseRequest, MemoryStore, Record, StorageAdapter, StoreError, Version};
use contexture_core::testing::{ScriptedModel, durable_store_conformance, engine};
use contexture_store::{OpenError, SqliteStore};
use futures_util::FutureExt as _;
use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::config::DbConfig;
use tempfile::TempDir;

use crate::kill::{self, Process, Random};

/// How often the writing process is killed.
const KILLS: usize = if kill::IS_LONG { 40 } else { 8 };

/// How often each of two processes adds one to the same number.
const INCREMENTS: u64 = 300;

fn place() -> (TempDir, PathBuf) {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("store.db");
    (directory, path)
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path).unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_store_conforms() {
    let directory = TempDir::new().unwrap();
    durable_store_conformance(async |name| Arc::new(open(&directory.path().join(name)))).await;
}

/// A batch over few keys, so that batches meet; expected versions are often right by chance.
fn any_batch() -> impl Strategy<Value = Batch> {
    let key = || proptest::sample::select(vec!["a", "a/", "a/b", "b\0", "é"]);
    let expectation = (key(), proptest::option::of((1..12_u64).prop_map(Version)));
    let change = (key(), proptest::option::of(vec(any::<u8>(), 0..3)));
    (vec(expectation, 0..2), vec(change, 0..4)).prop_map(|(expectations, changes)| {
        let batch = expectations.into_iter().fold(Batch::new(), |batch, (key, version)| batch.expect(key, version));
        changes.into_iter().fold(batch, |batch, (key, value)| match value {
            Some(value) => batch.set(key, value),
            None => batch.delete(key),
        })
    })
}

/// All keys with their records.
async fn everything(store: &dyn StorageAdapter) -> Vec<(String, Option<Record>)> {
    let keys = store.list("").await.expect("the store can be read");
    let records = store.get_many(&keys).await.expect("the store can be read");
    keys.into_iter().zip(records).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The store in memory is the model: same answers, same versions, same contents, also after reopening.
    #[test]
    fn it_answers_like_the_store_in_memory(batches in vec(any_batch(), 1..20), reopen_at in 0..20_usize) {
        let (_directory, path) = place();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (mut store, model) = (open(&path), MemoryStore::new());
            for (n, batch) in batches.into_iter().enumerate() {
                if n == reopen_at {
                    drop(store);
                    store = open(&path);
                }
                let told = |answer: Result<Version, StoreError>| answer.map_err(|error| error.to_string());
                let expected = told(model.apply(batch.clone()).await);
                prop_assert_eq!(told(store.apply(batch).await), expected);
                prop_assert_eq!(everything(&store).await, everything(&model).await);
            }
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn handles_on_one_file_see_each_other_and_cannot_overwrite_each_other() {
    let (_directory, path) = place();
    let (ours, theirs) = (open(&path), open(&path));
    let version = ours.set("a", b"ours".to_vec()).await.unwrap();
    assert_eq!(theirs.get("a").await.unwrap().map(|record| record.version), Some(version));
    let newer = theirs.compare_and_set("a", Some(version), b"theirs".to_vec()).await.unwrap();
    let late = ours.compare_and_set("a", Some(version), b"late".to_vec()).await;
    assert!(matches!(late, Err(StoreError::Conflict { key }) if key == "a"));
    drop(ours);
    theirs.compare_and_set("a", Some(newer), b"again".to_vec()).await.unwrap();
}

#[tokio::test]
async fn batches_that_wait_together_are_answered_each_for_itself() {
    let (_directory, path) = place();
    let store = open(&path);
    let batches = (0..100_u8).map(|n| match n % 4 {
        0 => Batch::new().set(format!("key/{n:03}"), [n]),
        1 => Batch::new().expect("first", None).set("first", [n]),
        2 => Batch::new().set("k".repeat(200_000), [n]),
        _ => Batch::new().expect("missing", Some(Version(1))).set("never", [n]),
    });
    let answers = futures_util::future::join_all(batches.map(|batch| store.apply(batch))).await;
    let mut firsts = Vec::new();
    for (n, answer) in answers.into_iter().enumerate() {
        match (n % 4, answer) {
            (0, Ok(_)) | (2, Err(StoreError::KeyTooLong { .. })) => {}
            (1, Ok(_)) => firsts.push(n as u8),
            (1, Err(StoreError::Conflict { key })) => assert_eq!(key, "first"),
            (3, Err(StoreError::Conflict { key })) => assert_eq!(key, "missing"),
            (_, answer) => panic!("batch {n} was answered {answer:?}"),
        }
    }
    assert_eq!(firsts.len(), 1, "only one may be the first");
    assert_eq!(store.get("first").await.unwrap().map(|record| record.value), Some(firsts));
    assert_eq!(store.list("key/").await.unwrap().len(), 25);
    assert_eq!(store.get("never").await.unwrap(), None);
}

#[tokio::test]
async fn a_write_whose_caller_gave_up_is_finished_before_the_store_closes() {
    let (_directory, path) = place();
    let store = open(&path);
    let clone = store.clone();
    let mut write = clone.set("a", b"1".to_vec());
    // Begun, and on all but the fastest file systems not done.
    let _ = write.as_mut().now_or_never();
    drop(write);
    drop((store, clone));
    assert_eq!(open(&path).get("a").await.unwrap().map(|record| record.value), Some(b"1".to_vec()));
}

#[tokio::test]
async fn closing_leaves_one_file() {
    let (directory, path) = place();
    let store = open(&path);
    store.set("a", b"1".to_vec()).await.unwrap();
    drop(store);
    let files: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["store.db"]);
}

/// Opens the file that `make` leaves at the path, expects to be refused, and to find everything untouched.
#[track_caller]
fn check_refused(make: impl FnOnce(&Path), expected: &str) {
    let (directory, path) = place();
    make(&path);
    let before = durable_files(directory.path());
    let error = SqliteStore::open(&path).expect_err("this file must be refused");
    let message = error.to_string().replace(&path.display().to_string(), "PATH");
    assert_eq!(message, expected);
    assert!(durable_files(directory.path()) == before, "a refused file must be left untouched");
}

/// The files of a directory with their bytes, without the index of a write-ahead log: it holds nothing of its own.
fn durable_files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let paths = entries.map(|entry| entry.expect("the directory can be read").path());
    let mut paths: Vec<_> = paths.filter(|path| path.is_file() && !path.ends_with("store.db-shm")).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("the file can be read"))).collect()
}

/// Runs SQL on a file, and leaves the write-ahead log behind if there is one.
fn sql(path: &Path, text: &str) {
    let connection = rusqlite::Connection::open(path).expect("a database");
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("a known option");
    connection.execute_batch(text).expect("correct SQL");
}

#[test]
fn files_of_others_are_refused_and_left_untouched() {
    let not_a_store = "open store `PATH`: this is not a Contexture store";
    for length in [1, 2, 15, 16, 100, 511] {
        check_refused(|path| fs::write(path, &"Dear diary".repeat(60)[..length]).unwrap(), not_a_store);
    }
    check_refused(|path| fs::write(path, "Dear diary, today").unwrap(), not_a_store);
    check_refused(|path| fs::write(path, vec![0; 100_000]).unwrap(), not_a_store);
    check_refused(|path| fs::create_dir(path).unwrap(), not_a_store);
    check_refused(|path| sql(path, "CREATE TABLE records (key, value)"), not_a_store);
    check_refused(
        |path| sql(path, "PRAGMA application_id = 7; PRAGMA user_version = 1; CREATE TABLE t (a)"),
        not_a_store,
    );
    check_refused(
        |path| sql(path, "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)"),
        not_a_store,
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_store_is_its_owners_alone_and_an_old_one_keeps_its_rights() {
    use std::os::unix::fs::PermissionsExt as _;
    let (directory, path) = place();
    let rights = |name: &str| {
        let metadata = fs::metadata(directory.path().join(name)).expect("the file is there");
        metadata.permissions().mode() & 0o777
    };
    let store = open(&path);
    store.set("key", b"secret".to_vec()).await.unwrap();
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        assert_eq!(rights(name), 0o600, "{name}");
    }
    drop(store);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    open(&path).set("key", b"more".to_vec()).await.unwrap();
    assert_eq!(rights("store.db"), 0o640);
}

#[test]
fn a_newer_format_is_refused_and_left_untouched() {
    let newer = |path: &Path| {
        drop(open(path));
        sql(path, "PRAGMA user_version = 3");
        sql(path, "PRAGMA wal_checkpoint(TRUNCATE)");
    };
    check_refused(newer, "open store `PATH`: it has format 3, and this program reads up to format 2");
}

/// The page on the format is all that another program needs, and older formats stay readable for ever.
#[tokio::test]
async fn a_file_made_after_the_page_on_the_format_opens() {
    let page = include_str!("../../../../docs/reference/on-disk-format.md");
    let (_, behind) = page.split_once("```sql\n").expect("the page shows the tables");
    let (tables, _) = behind.split_once("```").expect("the block ends");
    for format in [1, 2] {
        let (_directory, path) = place();
        sql(&path, tables);
        if format == 1 {
            sql(&path, "DROP TABLE leases");
        }
        sql(&path, &format!("PRAGMA application_id = 1129601108; PRAGMA user_version = {format};"));
        sql(&path, "INSERT INTO counter VALUES (1, 41); INSERT INTO records VALUES (1, 40, x'C3A900', x'FF');");

        for _ in 0..2 {
            let store = open(&path);
            let record = Record { value: vec![0xFF], version: Version(40) };
            assert_eq!(store.get("é\0").await.unwrap(), Some(record));
            let request = LeaseRequest { key: "a".to_owned(), owner: String::new(), duration: Duration::from_secs(30) };
            assert!(store.acquire_lease(request).await.is_ok());
        }
    }
}

/// A store with some records.
fn filled(path: &Path) -> SqliteStore {
    let store = open(path);
    let batch = (0..500).fold(Batch::new(), |batch, n| batch.set(format!("key/{n}"), vec![1; 500]));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(store.apply(batch)).expect("nothing is in the way");
    store
}

/// Changes the bytes of a file.
fn rewrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("the file is there");
    change(&mut bytes);
    fs::write(path, bytes).expect("the file can be written");
}

#[test]
fn damaged_files_are_refused_and_left_untouched() {
    let damaged = "open store `PATH`: the file is damaged\nhint: restore it from a copy, or move it away";
    let truncated = |path: &Path| {
        drop(filled(path));
        rewrite(path, |bytes| bytes.truncate(bytes.len() / 2));
    };
    check_refused(truncated, damaged);
    let overwritten = |path: &Path| {
        drop(filled(path));
        rewrite(path, |bytes| bytes[100..].fill(0xAA));
    };
    check_refused(overwritten, damaged);
    let without_a_table = |path: &Path| {
        drop(filled(path));
        rusqlite::Connection::open(path).unwrap().execute_batch("DROP TABLE counter").unwrap();
    };
    check_refused(without_a_table, damaged);
}

/// A killed process left its log beside a file of which a part is missing.
#[test]
fn a_damaged_file_keeps_the_log_beside_it() {
    let with_log = |path: &Path| {
        let elsewhere = TempDir::new().unwrap();
        let source = elsewhere.path().join("store.db");
        let _store = filled(&source);
        sql(&source, "DROP TABLE counter");
        for end in ["", "-wal"] {
            fs::copy(format!("{}{end}", source.display()), format!("{}{end}", path.display())).unwrap();
        }
    };
    check_refused(with_log, "open store `PATH`: the file is damaged\nhint: restore it from a copy, or move it away");
}

#[tokio::test]
async fn damage_found_later_is_told_and_not_answered_with_nonsense() {
    let (_directory, path) = place();
    let thread_path = path.clone();
    std::thread::spawn(move || drop(filled(&thread_path))).join().unwrap();
    rewrite(&path, |bytes| {
        let (middle, end) = (bytes.len() / 3, bytes.len() - 4096);
        bytes[middle..end].fill(0xAA);
    });
    let store = open(&path);
    let keys: Vec<_> = (0..500).map(|n| format!("key/{n}")).collect();
    let error = store.get_many(&keys).await.unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("the store's file is damaged"), "{error}");
}

#[test]
fn a_missing_directory_is_named() {
    let (directory, _) = place();
    let error = SqliteStore::open(directory.path().join("a/b/store.db")).unwrap_err();
    assert!(matches!(&error, OpenError::NoDirectory { directory, .. } if directory.ends_with("a/b")));
    assert!(error.to_string().ends_with("does not exist\nhint: create it first"), "{error}");
}

#[tokio::test]
async fn names_that_look_like_options_are_only_names() {
    let directory = TempDir::new().unwrap();
    for name in ["a?mode=memory", "100%41.db", "#.db", "file:x.db", "日本 🦀.db", ":memory:"] {
        let path = directory.path().join(name);
        open(&path).set("a", name.as_bytes().to_vec()).await.unwrap();
        assert!(path.is_file(), "`{name}` must be a file");
        assert_eq!(open(&path).get("a").await.unwrap().map(|record| record.value), Some(name.as_bytes().to_vec()));
    }
}

/// Writes batches for ever, telling each acknowledged number; runs only as a child process.
#[test]
#[ignore = "a child process of `killed_processes_lose_nothing_that_was_acknowledged`"]
fn child_writes_for_ever() {
    kill::as_child(async |path| {
        kill::tell("opening");
        let store = open(&path);
        let mut number = newest(&store).await;
        loop {
            number += 1;
            store.apply(numbered_batch(number)).await.expect("nothing is in the way");
            kill::tell(number);
        }
    });
}

fn numbered_batch(number: u64) -> Batch {
    let text = number.to_string();
    let states = (0..8).fold(Batch::new(), |batch, n| batch.set(format!("state/{n}"), text.repeat(200)));
    states.set(format!("log/{number:08}"), text.repeat(400)).set("head", text)
}

/// The number of the newest batch in the store.
async fn newest(store: &SqliteStore) -> u64 {
    store.get("head").await.expect("the store can be read").map_or(0, |head| number(&head))
}

fn number(record: &Record) -> u64 {
    String::from_utf8_lossy(&record.value).parse().expect("a number as it was written")
}

/// Checks that the store holds all batches up to the newest, each whole, and answers the newest.
async fn check_whole(store: &SqliteStore) -> u64 {
    let newest = newest(store).await;
    let log: Vec<_> = (1..=newest).map(|number| format!("log/{number:08}")).collect();
    assert_eq!(store.list("log/").await.expect("the store can be read"), log, "every batch must be there");
    if newest > 0 {
        let batch = numbered_batch(newest);
        for change in batch.changes {
            let Change::Set { key, value } = change else { continue };
            let found = store.get(&key).await.expect("the store can be read").map(|record| record.value);
            assert!(found == Some(value), "`{key}` must be as batch {newest} left it");
        }
    }
    newest
}

#[tokio::test]
async fn killed_processes_lose_nothing_that_was_acknowledged() {
    let (_directory, path) = place();
    let mut random = Random::new(42);
    // What the child told, or what a restart found: either must be there for ever.
    let mut acknowledged = 0;
    for round in 0..KILLS {
        let mut process = Process::start("sqlite_store::child_writes_for_ever", &path);
        assert_eq!(process.next_told().as_deref(), Some("opening"));
        for _ in 0..random.below(8) {
            let told = process.next_told().expect("the child writes for ever");
            acknowledged = told.parse().expect("the child tells numbers");
        }
        random.pause();
        for told in process.kill() {
            acknowledged = told.parse().expect("the child tells numbers");
        }
        let newest = check_whole(&open(&path)).await;
        assert!(newest >= acknowledged, "round {round}: {acknowledged} was acknowledged, {newest} is there");
        assert!(newest <= acknowledged + 1, "round {round}: only one batch can be in flight");
        acknowledged = newest;
    }
    assert!(acknowledged > KILLS as u64, "the child must have come to write");
}

#[tokio::test]
async fn a_process_killed_while_it_makes_a_store_leaves_one_that_opens() {
    let mut random = Random::new(7);
    for round in 0..KILLS {
        let (_directory, path) = place();
        let mut process = Process::start("sqlite_store::child_writes_for_ever", &path);
        assert_eq!(process.next_told().as_deref(), Some("opening"));
        random.pause();
        let told = process.kill();
        let acknowledged = told.last().map_or(0, |told| told.parse().expect("the child tells numbers"));
        let newest = check_whole(&open(&path)).await;
        assert!(newest >= acknowledged, "round {round}: {acknowledged} was acknowledged, {newest} is there");
    }
}

/// Adds one, many times; runs only as a child process.
#[test]
#[ignore = "a child process of `two_processes_lose_no_increment`"]
fn child_increments() {
    kill::as_child(async |path| {
        let store = open(&path);
        for _ in 0..INCREMENTS {
            while !increment(&store).await {}
        }
        kill::tell("done");
    });
}

/// Adds one to the number in the store; `false` if another was faster.
async fn increment(store: &SqliteStore) -> bool {
    let record = store.get("head").await.expect("the store can be read");
    let next = record.as_ref().map_or(0, number) + 1;
    let expected = record.map(|record| record.version);
    match store.compare_and_set("head", expected, next.to_string().into_bytes()).await {
        Ok(_) => true,
        Err(StoreError::Conflict { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn two_processes_lose_no_increment() {
    let (_directory, path) = place();
    let mut processes = [(); 2].map(|()| Process::start("sqlite_store::child_increments", &path));
    for process in &mut processes {
        assert_eq!(process.next_told().as_deref(), Some("done"));
        assert_eq!(process.next_told(), None);
    }
    assert_eq!(newest(&open(&path)).await, 2 * INCREMENTS);
}

/// Opens the store and writes one record of its own; runs only as a child process.
#[test]
#[ignore = "a child process of `processes_that_make_one_store_at_once_all_get_it`"]
fn child_opens_once() {
    kill::as_child(async |path| {
        let own_key = std::process::id().to_string();
        open(&path).set(&own_key, b"here".to_vec()).await.expect("nothing is in the way");
        kill::tell(own_key);
    });
}

#[tokio::test]
async fn processes_that_make_one_store_at_once_all_get_it() {
    for _ in 0..5 {
        let (_directory, path) = place();
        let mut processes = [(); 6].map(|()| Process::start("sqlite_store::child_opens_once", &path));
        let mut keys: Vec<_> = processes.iter_mut().map(|process| process.next_told().expect("it opens")).collect();
        keys.sort();
        assert_eq!(open(&path).list("").await.unwrap(), keys);
    }
}

/// What the files of a store have, also where nothing is stored any more.
fn on_disk(path: &Path) -> String {
    let name = path.display();
    let files = ["", "-wal"].map(|end| fs::read(format!("{name}{end}")).unwrap_or_default());
    String::from_utf8_lossy(&files.concat()).into_owned()
}

#[tokio::test]
async fn what_was_deleted_or_replaced_is_not_in_the_files() {
    let (_directory, path) = place();
    let store = open(&path);
    for (at, length) in [20, 3_000, 40_000].into_iter().enumerate() {
        let secret = "secretOne ".repeat(length / 10);
        store.set(&format!("deleted {at}"), secret.clone().into_bytes()).await.unwrap();
        store.set(&format!("replaced {at}"), secret.into_bytes()).await.unwrap();
        store.set(&format!("other {at}"), "kept ".repeat(length / 5).into_bytes()).await.unwrap();
    }
    assert!(on_disk(&path).contains("secretOne"));
    for at in 0..3 {
        store.delete(&format!("deleted {at}")).await.unwrap();
        store.set(&format!("replaced {at}"), b"less".to_vec()).await.unwrap();
    }
    store.scrub().await.unwrap();
    let kept = on_disk(&path);
    assert!(!kept.contains("secretOne") && kept.contains("kept kept"));
    // Somebody who reads keeps the log as it is, and nobody has to wait for long.
    store.set("new", b"secretTwo".to_vec()).await.unwrap();
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM records").unwrap();
    store.delete("new").await.unwrap();
    store.scrub().await.unwrap();
    drop(reader);
    store.scrub().await.unwrap();
    assert!(!on_disk(&path).contains("secretTwo"));
}

#[tokio::test]
async fn a_deleted_thread_is_not_in_the_files() {
    let (_directory, path) = place();
    let model = ScriptedModel::new().says("I see.");
    let engine = engine(memory(())).store(Arc::new(open(&path))).model(model).build().unwrap();
    let mut execution = engine.execution("one").start().await.unwrap();
    execution.turn("The secretOne is mine.").await.unwrap();
    execution.complete().await.unwrap();
    assert!(on_disk(&path).contains("secretOne"));
    assert!(engine.delete_thread("one").await.unwrap());
    assert!(!on_disk(&path).contains("secretOne"));
}
