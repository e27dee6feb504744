//! What is noted in an archive, by many at once and beside files of others.

use std::path::Path;

use contexture::wire::Format;
use contexture_gateway::{RequestRecord, StoreError};
use contexture_inspect::{
    Archive, ArchivedRequest, check_archive_file, copy_archive_file, inspector_of_gateway, is_archive,
};
use serde_json::json;

#[test]
fn requests_that_come_at_once_are_all_noted() {
    let archive = Archive::temporary().unwrap();
    let (threads, each) = (8, 40);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for time_ms in 0..each {
                    let conversation = Some("c".to_owned());
                    let record = RequestRecord { conversation, time_ms, status: 200, ..RequestRecord::default() };
                    archive.note_record(&record).unwrap();
                }
            });
        }
    });
    assert_eq!(archive.conversation("c").unwrap().unwrap().requests, threads * each);
}

#[test]
fn a_file_of_somebody_else_is_not_written_into() {
    let directory = tempfile::tempdir().unwrap();
    let check = |name: &str, sql: &str| {
        let path = directory.path().join(name);
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(Archive::open(&path), Err(StoreError::Foreign(_))), "{name}");
        assert!(before == std::fs::read(&path).unwrap(), "{name} is as it was");
    };
    check("notes.db", "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine');");
    check("alike.db", "CREATE TABLE conversations (id TEXT); CREATE TABLE requests (id TEXT);");
    check("marked.db", "PRAGMA user_version = 7;");
}

/// Beside a file that is no store of the gateway, nothing is made.
#[tokio::test(flavor = "multi_thread")]
async fn an_inspector_writes_nothing_beside_a_file_of_somebody_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("letter.txt");
    std::fs::write(&path, "Dear Ann, this is no database. ".repeat(100)).unwrap();
    assert!(inspector_of_gateway(Some(&path)).await.is_err());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

/// An archive as the first version of the schema had it: its tables and rows, as SQL.
const FIRST: &str = include_str!("archive_1.sql");

/// Adds a request of the conversation `c`, in which a user has said some things.
fn note(archive: &Archive, said: &[&str]) {
    let messages: Vec<_> = said.iter().map(|text| json!({"role": "user", "content": text})).collect();
    let came = json!({"model": "m", "system": "Be brief.", "messages": messages}).to_string();
    let record = RequestRecord {
        conversation: Some("c".to_owned()),
        time_ms: 1_750_000_000_000 + said.len() as u64,
        model: "m".to_owned(),
        status: 200,
        ..RequestRecord::default()
    };
    let seen = ArchivedRequest {
        conversation: "c",
        parent: None,
        format: Format::Messages,
        came: &came,
        sent: None,
        record: record.clone(),
    };
    let ticket = archive.note_sent(seen).unwrap();
    archive.note_over(&ticket, &record).unwrap();
}

fn first_version(path: &Path) {
    rusqlite::Connection::open(path).unwrap().execute_batch(FIRST).unwrap();
}

#[test]
fn an_archive_of_the_first_version_is_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("inspector.db");
    first_version(&path);
    assert!(is_archive(&path));
    for round in 0..2 {
        let archive = Archive::open(&path).unwrap();
        let conversation = archive.conversation("c").unwrap().unwrap();
        assert_eq!((conversation.requests, &*conversation.title), (2 + round, "First things first"));
        let page = archive.conversations(0, 10).unwrap();
        assert!(page.items[0].shape.iter().all(|tokens| *tokens > 0), "{:?}", page.items[0].shape);
        let story = archive.story("c", 2).unwrap().unwrap();
        assert_eq!((story.line.n, story.blocks), (2, 3));
        assert_eq!(story.line.parts.values().sum::<u64>(), story.line.sent_tokens, "{:?}", story.line.parts);
        assert_eq!(archive.search("second", None, None, 10).unwrap().items.len(), 1);
        // What comes now goes on where it ended, and texts that are known are not stored again.
        let mut said = vec!["First things first", "A second thing"];
        said.extend(["and a third"].iter().cycle().take(round as usize + 1));
        note(&archive, &said);
    }
    assert_eq!(check_archive_file(&path).unwrap().findings, [] as [String; 0]);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let blocks: i64 = connection.query_row("SELECT count(*) FROM blocks", [], |row| row.get(0)).unwrap();
    assert_eq!(blocks, 4);
}

#[test]
fn an_archive_of_the_first_version_may_be_opened_by_many_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("inspector.db");
    first_version(&path);
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..8).map(|_| scope.spawn(|| Archive::open(&path).map(drop))).collect();
        opened.into_iter().for_each(|opened| opened.join().unwrap().unwrap());
    });
    assert_eq!(Archive::open(&path).unwrap().conversation("c").unwrap().unwrap().requests, 2);
}

#[test]
fn an_archive_is_checked_and_copied_while_it_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("inspector.db"), directory.path().join("copy.db"));
    let archive = Archive::open(&path).unwrap();
    note(&archive, &["one"]);
    note(&archive, &["one", "two"]);
    let copied = copy_archive_file(&path, &copy).unwrap();
    assert_eq!((copied.conversations, copied.requests, copied.rows), (1, 2, 5));
    assert_eq!(copied.findings, [] as [String; 0]);
    assert!(copy_archive_file(&path, &copy).is_err(), "nothing is copied over something");
    assert_eq!(Archive::open(&copy).unwrap().conversation("c").unwrap().unwrap().requests, 2);
    // Every text has a sum, and every request can be read.
    for (sql, found) in [
        ("UPDATE blocks SET text = 'Two' WHERE text = 'two'", "the text of block"),
        ("UPDATE requests SET line = substr(line, 2) WHERE n = 2", "request 2 of `c`"),
    ] {
        let damaged = directory.path().join("damaged.db");
        std::fs::copy(&copy, &damaged).unwrap();
        rusqlite::Connection::open(&damaged).unwrap().execute_batch(sql).unwrap();
        let findings = check_archive_file(&damaged).unwrap().findings;
        assert!(matches!(&*findings, [finding] if finding.contains(found)), "{findings:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_archive_keeps_no_gateway_from_starting() {
    let directory = tempfile::tempdir().unwrap();
    let (store, path) = (directory.path().join("gateway.db"), directory.path().join("inspector.db"));
    let archive = Archive::open(&path).unwrap();
    (0..200).for_each(|n| note(&archive, &[&format!("{n} {}", "x".repeat(500))]));
    drop(archive);
    let whole = std::fs::read(&path).unwrap();
    let names = || {
        let files = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name());
        files.filter(|name| name.to_string_lossy().contains("inspector.db.damaged-")).count()
    };
    // A page that is overwritten in the middle.
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2 / 4096 * 4096;
    damaged[middle..middle + 4096].fill(0xab);
    std::fs::write(&path, damaged).unwrap();
    let server = inspector_of_gateway(Some(&store)).await.unwrap();
    assert_eq!(server.inspector().archive().conversations(0, 10).unwrap().total, Some(0));
    assert_eq!(names(), 1);
    drop(server);
    // A file that is no archive stays as it is. It is elsewhere: the first one may still be open.
    let elsewhere = tempfile::tempdir().unwrap();
    let (store, path) = (elsewhere.path().join("gateway.db"), elsewhere.path().join("inspector.db"));
    std::fs::write(&path, "Dear Ann, this is no database. ".repeat(100)).unwrap();
    let server = inspector_of_gateway(Some(&store)).await.unwrap();
    note(server.inspector().archive(), &["kept for now"]);
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("Dear Ann"));
    let names = std::fs::read_dir(elsewhere.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().contains("damaged")));
}
