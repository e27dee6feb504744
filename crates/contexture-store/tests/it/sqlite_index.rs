//! The search index in the embedded store: the suite, restarts, kills, and an index of another version.

use std::path::Path;
use std::sync::Arc;

use contexture_core::search::{SearchDocument, SearchHit, SearchIndex};
use contexture_core::store::StorageAdapter;
use contexture_store::{SqliteIndex, SqliteStore};
use contexture_text::search::MemoryIndex;
use contexture_text::testing::search_conformance;
use tempfile::TempDir;

use crate::kill::{self, Process};

async fn ids(index: &dyn SearchIndex, scope: &str, query: &str) -> Vec<String> {
    let hits: Vec<SearchHit> = index.search(scope, query, 100).await.unwrap_or_else(|error| panic!("{error}"));
    hits.into_iter().map(|hit| hit.document.id).collect()
}

#[tokio::test]
async fn the_index_of_the_embedded_store_conforms() {
    let directory = TempDir::new().unwrap();
    search_conformance(async |name| Arc::new(SqliteIndex::new(directory.path().join(name)))).await;
}

#[tokio::test]
async fn what_was_added_is_there_after_a_restart_and_beside_a_store() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("agent.db");
    let store = SqliteStore::open(&path).unwrap();
    store.set("record", b"1".to_vec()).await.unwrap();
    let model = MemoryIndex::new();
    for round in 0..5 {
        let index = SqliteIndex::new(&path);
        let texts = ["leases run out", "a lease is held", "the store's clock"];
        let documents = |round: usize| {
            texts.iter().enumerate().map(move |(n, text)| SearchDocument::new(format!("{round} {n}"), *text)).collect()
        };
        index.add("s", documents(round)).await.unwrap();
        model.add("s", documents(round)).await.unwrap();
        let gone = [format!("{} 1", round / 2)];
        assert_eq!(index.remove("s", &gone).await.unwrap(), model.remove("s", &gone).await.unwrap());
        let other = SqliteIndex::new(&path);
        assert_eq!(
            other.search("s", "lease clock", 99).await.unwrap(),
            model.search("s", "lease clock", 99).await.unwrap()
        );
    }
    assert_eq!(store.list("").await.unwrap(), ["record"], "documents are no records");
}

/// Adds documents for ever, telling each that was acknowledged; runs only as a child process.
#[test]
#[ignore = "a child process of `a_killed_process_loses_nothing_that_was_acknowledged`"]
fn child_adds() {
    kill::as_child(async |directory| {
        let index = SqliteIndex::new(directory.join("agent.db"));
        for number in index.count("s").await.unwrap().. {
            let pair = ["a", "b"].map(|half| SearchDocument::new(format!("{number:06}{half}"), "found again"));
            index.add("s", pair.to_vec()).await.unwrap();
            kill::tell(number);
        }
    });
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_was_acknowledged() {
    let directory = TempDir::new().unwrap();
    let mut random = kill::Random::new(7);
    for _ in 0..8 {
        let mut child = Process::start("sqlite_index::child_adds", directory.path());
        let mut told: Vec<String> = (0..3).map(|_| child.next_told().unwrap()).collect();
        random.pause();
        told.extend(child.kill());
        let index = SqliteIndex::new(directory.path().join("agent.db"));
        let (found, count) = (index.search("s", "found", usize::MAX).await.unwrap(), index.count("s").await.unwrap());
        assert_eq!(found.len(), count, "what is counted is found");
        for number in told {
            let number: usize = number.parse().unwrap();
            for half in ["a", "b"] {
                let id = format!("{number:06}{half}");
                assert!(found.iter().any(|hit| hit.document.id == id), "`{id}` was acknowledged");
            }
        }
        assert_eq!(count % 2, 0, "both of a pair are there, or none");
    }
}

fn sql(path: &Path, statements: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(statements).unwrap();
}

#[tokio::test]
async fn an_index_of_another_splitting_is_made_anew() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("agent.db");
    let index = SqliteIndex::new(&path);
    let documents = || vec![SearchDocument::new("1", "parsing files"), SearchDocument::new("2", "files of others")];
    index.add("s", documents()).await.unwrap();
    let before = index.search("s", "parse files", 9).await.unwrap();
    drop(index);
    // What a version that splits otherwise would have left.
    sql(
        &path,
        "UPDATE search_splitting SET version = 0; UPDATE search_terms SET term = CAST('old' || id AS BLOB);
         UPDATE search_documents SET length = 7; UPDATE search_scopes SET length = 99",
    );
    let index = SqliteIndex::new(&path);
    assert_eq!(index.search("s", "parse files", 9).await.unwrap(), before);
    assert_eq!(index.remove("s", &["1".to_owned(), "2".to_owned()]).await.unwrap(), 2);
    assert_eq!(ids(&index, "s", "files").await, [""; 0]);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let left: i64 = connection
        .query_row("SELECT (SELECT count(*) FROM search_terms) + (SELECT count(*) FROM search_runs)", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(left, 0, "no word of what was removed is left");
}

#[tokio::test]
async fn two_processes_may_use_one_index() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("agent.db");
    let handles = [SqliteIndex::new(&path), SqliteIndex::new(&path)];
    let adding = handles.iter().enumerate().map(async |(number, index)| {
        for round in 0..25 {
            index.add("s", vec![SearchDocument::new(format!("{number} {round}"), "word")]).await.unwrap();
        }
    });
    futures_util::future::join_all(adding).await;
    assert_eq!((handles[0].count("s").await.unwrap(), ids(&handles[1], "s", "word").await.len()), (50, 50));
}

#[tokio::test]
async fn a_file_that_is_no_store_is_told_plainly() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("diary");
    std::fs::write(&path, "Dear diary, today").unwrap();
    let error = SqliteIndex::new(&path).count("s").await.unwrap_err();
    assert_eq!(error.to_string(), format!("count in the search index in store `{}`", path.display()));
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.ends_with("this is not a Contexture store"), "{cause}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "Dear diary, today");
}
