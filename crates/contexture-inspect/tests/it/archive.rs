//! What is noted in an archive, by many at once and beside files of others.

use contexture_gateway::{RequestRecord, StoreError};
use contexture_inspect::Archive;

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
    assert!(contexture_inspect::inspector_of_gateway(Some(&path)).await.is_err());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}
