//! Copies between a file and a database, and looking for damage in either.

use std::path::Path;
use std::sync::Arc;

use contexture_core::layer::{LayerSpec, MemoryScope, StoreResult, layer};
use contexture_core::memory::memory;
use contexture_core::search::{SearchDocument, SearchIndex};
use contexture_core::slot::Slot;
use contexture_core::store::StorageAdapter;
use contexture_core::testing::ScriptedModel;
use contexture_store::{CheckError, Checked, Copied, CopyError, Place, PostgresStore, SqliteIndex, SqliteStore};
use serde_json::json;

use super::engine_at;
use super::server::Server;

/// Two threads with turns and states, records of every length, and an index in two scopes.
async fn fill(place: &str) {
    let words = layer::<Vec<String>>(LayerSpec::new("words", Slot::ENTITY, MemoryScope::Resource))
        .store(|params| async move {
            let mut words = (*params.state).clone();
            words.push(params.response.output_text());
            Ok(StoreResult::set(words))
        })
        .build();
    let model = ScriptedModel::new().says("one").says("two").says("three");
    let engine = engine_at(place, memory((words,))).model(model).build().unwrap();
    for thread in ["first", "a/b % c"] {
        let mut execution = engine.execution(thread).resource("ann").start().await.unwrap();
        execution.turn("hello").await.unwrap();
        execution.turn("again").await.unwrap();
        execution.complete().await.unwrap();
    }
    for number in 0..250_usize {
        let key = format!("layers/odd/global/all/{}{number}", "k".repeat(number * 40));
        engine.store().set(&key, vec![number as u8; number * 300]).await.unwrap();
    }
}

async fn fill_index(index: &dyn SearchIndex) {
    for scope in ["notes", "ünï\0code"] {
        let documents = (0..230).map(|number| {
            let id = if number == 0 { String::new() } else { format!("{number}") };
            SearchDocument::new(id, format!("word{number} kettle {scope}")).with_metadata(json!({ "n": number }))
        });
        index.add(scope, documents.collect()).await.unwrap();
    }
}

async fn copy(from: &str, to: &str) -> Result<Copied, CopyError> {
    contexture_store::copy(&Place::new(from), &Place::new(to), &mut |_| {}).await
}

async fn check(place: &str) -> Result<Checked, CheckError> {
    contexture_store::check(&Place::new(place), &mut |_, _| {}).await
}

/// What is wrong with a store, one line for each.
async fn wrong(place: &str) -> Vec<String> {
    let findings = check(place).await.unwrap().findings;
    findings.into_iter().map(|finding| format!("{}: {}", finding.subject, finding.problem)).collect()
}

fn file(directory: &Path, name: &str) -> String {
    directory.join(name).display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_moves_to_a_database_and_back() {
    let Some(server) = Server::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (first, last) = (file(directory.path(), "first.db"), file(directory.path(), "last.db"));
    let url = server.url(&server.make_database());
    fill(&first).await;
    fill_index(&SqliteIndex::new(&first)).await;

    let there = copy(&first, &url).await.unwrap();
    assert_eq!((there.documents, there.already), (460, 0));
    assert!(there.records > 250);
    let back = copy(&url, &last).await.unwrap();
    assert_eq!((&back.digest, back.records, back.bytes), (&there.digest, there.records, there.bytes));
    for place in [&first, &url, &last] {
        let checked = check(place).await.unwrap();
        assert_eq!((checked.findings, checked.more), (Vec::new(), 0));
        assert_eq!((checked.threads, checked.documents), (2, 460));
        assert_eq!((checked.records as usize, checked.bytes), (there.records, there.bytes));
    }
    let hits = PostgresStore::open(&url).unwrap().index().search("notes", "word7", 3).await.unwrap();
    assert_eq!(hits[0].document.metadata, json!({ "n": 7 }));
    assert_eq!(SqliteIndex::new(&last).search("notes", "word7", 3).await.unwrap(), hits);

    // The copy is a store that goes on.
    let engine = engine_at(&url, memory(())).model(ScriptedModel::new()).build().unwrap();
    let mut execution = engine.execution("first").start().await.unwrap();
    assert_eq!(execution.log().len(), 4);
    execution.turn("on the other machine").await.unwrap();
    // Repeated by mistake, the copy would bring back what was before.
    let error = copy(&first, &url).await.unwrap_err();
    assert!(matches!(error, CopyError::NotEmpty(_)), "{error}");
    assert!(!error.to_string().contains("secret-word"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_copy_goes_on() {
    let Some(server) = Server::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let from = file(directory.path(), "from.db");
    let url = server.url(&server.make_database());
    fill(&from).await;
    fill_index(&SqliteIndex::new(&from)).await;
    for stop_after in [1, 2] {
        let (place, to) = (Place::new(&from), Place::new(&url));
        let mut steps = 0;
        let (stopped, stop) = tokio::sync::oneshot::channel::<()>();
        let mut stopped = Some(stopped);
        let mut told = |_| {
            steps += 1;
            if steps == stop_after {
                stopped.take().map(|stopped| stopped.send(()));
            }
        };
        // Dropped in the middle, as when the process is killed.
        tokio::select! {
            biased;
            _ = stop => {}
            _ = contexture_store::copy(&place, &to, &mut told) => panic!("it was to be interrupted"),
        }
        let found = wrong(&url).await;
        assert_eq!(found, ["copy/unfinished: this store is a copy that was not finished"]);
    }
    let other = file(directory.path(), "other.db");
    SqliteStore::open(&other).unwrap().set("key", b"value".to_vec()).await.unwrap();
    assert!(matches!(copy(&other, &url).await, Err(CopyError::OtherCopy { .. })));
    assert!(matches!(copy(&url, &file(directory.path(), "new.db")).await, Err(CopyError::Unfinished { .. })));

    // What changed in between is copied again, and what was deleted is deleted.
    let changed = SqliteStore::open(&from).unwrap();
    changed.set("layers/odd/global/all/0", b"other".to_vec()).await.unwrap();
    changed.delete("layers/odd/global/all/k").await.unwrap_or_default();
    SqliteIndex::new(&from).remove("notes", &["7".to_owned()]).await.unwrap();
    let copied = copy(&from, &url).await.unwrap();
    assert!(copied.already > 0, "{copied:?}");
    assert_eq!(wrong(&url).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_cannot_be_made_changes_nothing() {
    let Some(server) = Server::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (from, missing) = (file(directory.path(), "from.db"), file(directory.path(), "missing.db"));
    fill(&from).await;
    let said = async |from: &str, to: &str| {
        let error = copy(from, to).await.unwrap_err();
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(next) = cause {
            text = format!("{text} | {next}");
            cause = next.source();
        }
        assert!(text.contains("hint: "), "{text}");
        assert!(!text.contains("wrong-word") && !text.contains("secret-word"), "{text}");
        text
    };
    let url = server.url(&server.make_database());
    assert!(said(&missing, &url).await.contains("there is no store at"));
    assert!(!Path::new(&missing).exists());
    assert!(said(&from, &from).await.contains("into itself"));
    assert!(said(&url, &missing).await.contains("has no Contexture store"));
    assert!(said(&from, &server.url_at(server.port, "tester", "wrong-word", "postgres")).await.contains("log in to"));
    assert!(said(&from, &server.url("nowhere")).await.contains("does not exist"));
    assert!(said(&from, "postgres://tester:wrong-word@127.0.0.1:9/x").await.contains("connect to"));
    assert!(said(&from, "postgres://host:wrong-word/x").await.contains("not one of PostgreSQL"));
    assert!(said(&from, &format!("{}/no/dir.db", directory.path().display())).await.contains("does not exist"));
    let other = server.make_database();
    server.run(&other, "CREATE TABLE contexture_meta (something int)");
    assert!(said(&from, &server.url(&other)).await.contains("not of a Contexture store"));
    let newer = server.make_database();
    PostgresStore::open(&server.url(&newer)).unwrap().check().await.unwrap();
    server.run(&newer, "UPDATE contexture_meta SET value = '99' WHERE name = 'format'");
    assert!(said(&from, &server.url(&newer)).await.contains("format 99"));
    let closed = server.make_database();
    server.run(&closed, "CREATE ROLE guest LOGIN PASSWORD 'secret-word'; REVOKE ALL ON SCHEMA public FROM PUBLIC");
    let guest = server.url_at(server.port, "guest", "secret-word", &closed);
    assert!(said(&from, &guest).await.contains("use the tables"));
    // Reading without the right to read.
    let full = server.make_database();
    copy(&from, &server.url(&full)).await.unwrap();
    let guest = server.url_at(server.port, "guest", "secret-word", &full);
    assert!(said(&guest, &missing).await.contains("use the tables"));
    assert!(!Path::new(&missing).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_in_a_database_is_found_and_named() {
    let Some(server) = Server::start() else { return };
    let database = server.make_database();
    let url = server.url(&database);
    fill(&url).await;
    fill_index(&PostgresStore::open(&url).unwrap().index()).await;
    assert_eq!(wrong(&url).await, Vec::<String>::new());
    let key = |text: &str| format!("convert_to('{text}', 'UTF8')");
    let log = "threads/first/log/00000000000000000001";
    for sql in [
        format!("DELETE FROM contexture_records WHERE key = {}", key(log)),
        format!("UPDATE contexture_records SET value = 'x' WHERE key = {}", key("threads/first/epoch")),
        format!("UPDATE contexture_records SET prefix = 'zz' WHERE key = {}", key("layers/odd/global/all/0")),
        "UPDATE contexture_search_scopes SET documents = documents + 1 WHERE name = 'notes'".to_owned(),
        "UPDATE contexture_search_documents SET text = 'other' WHERE name = '9' AND length > 0".to_owned(),
    ] {
        server.run(&database, &sql);
    }
    let before = server.run(&database, "SELECT count(*), sum(version) FROM contexture_records");
    let found = wrong(&url).await.join("\n");
    for expected in [
        &format!("{log}: the record is missing"),
        "threads/first/epoch: its value is not JSON",
        "layers/odd/global/all/0: it is listed under another key",
        "scope `notes` of the search index: it has 230 documents and says 231",
        "document `9` of `notes` in the search index: its terms are not those of its text",
    ] {
        assert!(found.contains(expected), "`{expected}` is missing in\n{found}");
    }
    assert_eq!(server.run(&database, "SELECT count(*), sum(version) FROM contexture_records"), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_in_a_file_is_found_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "agent.db");
    fill(&path).await;
    fill_index(&SqliteIndex::new(&path)).await;
    assert_eq!(wrong(&path).await, Vec::<String>::new());
    let store = SqliteStore::open(&path).unwrap();
    let head = store.get("threads/first/head").await.unwrap().unwrap();
    let changed = String::from_utf8(head.value).unwrap().replacen("\"items\":4", "\"items\":5", 1);
    store.set("threads/first/head", changed.into_bytes()).await.unwrap();
    store.set("threads/orphan/log/00000000000000000000", br#"{"format":1,"items":[]}"#.to_vec()).await.unwrap();
    store.set("layers/words/resource/ann/state", b"[]".to_vec()).await.unwrap();
    drop(store);
    let before = std::fs::read(&path).unwrap();
    let found = wrong(&path).await.join("\n");
    for expected in [
        "threads/first/log/: the log has 4 items and the head says 5",
        "threads/orphan/: the thread has records and no head",
        "layers/words/resource/ann/state: its value has no format",
    ] {
        assert!(found.contains(expected), "`{expected}` is missing in\n{found}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before, "a check changes nothing");

    // Pages that a disk has lost.
    let mut torn = before.clone();
    let half = torn.len() / 2;
    torn[half..half + 8_192].fill(0xAA);
    let torn_path = file(directory.path(), "torn.db");
    std::fs::write(&torn_path, &torn).unwrap();
    let found = wrong(&torn_path).await.join("\n");
    assert!(found.contains("the file `"), "{found}");
    assert_eq!(std::fs::read(&torn_path).unwrap(), torn);

    std::fs::write(directory.path().join("note.txt"), "hello").unwrap();
    assert!(matches!(check(&file(directory.path(), "note.txt")).await, Err(CheckError::Open(_))));
    assert!(matches!(check(&file(directory.path(), "gone.db")).await, Err(CheckError::Missing(_))));
}

/// An operation of the index whose future is dropped in the middle leaves nothing behind, neither half of itself nor an
/// open transaction for the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_the_index_that_is_dropped_leaves_nothing_behind() {
    let Some(server) = Server::start() else { return };
    let url = server.url(&server.make_database());
    let index = Arc::new(PostgresStore::open(&url).unwrap().index());
    fill_index(&*index).await;
    for pause_us in (0..40).map(|step| step * 150) {
        let documents = (0..50).map(|number| SearchDocument::new(format!("{number}"), format!("changed {pause_us}")));
        let change = index.add("notes", documents.collect());
        let _ = tokio::time::timeout(std::time::Duration::from_micros(pause_us), change).await;
    }
    index.add("notes", vec![SearchDocument::new("new", "the last one")]).await.unwrap();
    assert_eq!(wrong(&url).await, Vec::<String>::new());
    let open = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'";
    assert_eq!(server.run("postgres", open).trim(), "0");
}
