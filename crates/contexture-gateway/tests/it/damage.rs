//! Stores that are damaged, or cannot be written.

use std::fs;
use std::path::{Path, PathBuf};

use contexture::wire::Format;
use contexture_gateway::{Gateway, Options, check_store_file, copy_store_file, open_store};

use super::played::{long, play, small};
use super::provider::{Provider, post};

/// A store after some work. Everything is in the file itself.
async fn worked(provider: &Provider, path: &Path) {
    let gateway = provider.gateway(Options { store: Some(path.to_owned()), ..small() }).await;
    play(&gateway, provider, &long(Format::Messages, 10)).await;
    gateway.stop().await;
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

/// The files beside a store.
fn beside(path: &Path) -> Vec<String> {
    let files = fs::read_dir(path.parent().unwrap()).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_is_noticed_and_said_and_what_is_whole_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let whole = directory.path().join("whole.db");
    let provider = Provider::start().await;
    worked(&provider, &whole).await;
    let bytes = fs::read(&whole).unwrap();
    let before = open_store(&whole).unwrap().requests(None).unwrap().len();
    assert_eq!(check_store_file(&whole).unwrap().findings, [] as [String; 0]);
    // Bytes of each part that a request would be made of, and of the database itself.
    let find = |words: &[u8]| bytes.windows(words.len()).position(|found| found == words).unwrap() + words.len();
    let places =
        [0, 4, find(b"{\"messages\":"), find(b"\"billed\":"), find(b"[Contexture's note: "), find(b"\"session\":\"")];
    for place in places {
        let damaged: PathBuf = tempfile::tempdir().unwrap().keep().join("gateway.db");
        let mut flipped = bytes.clone();
        flipped[place] ^= 1;
        fs::write(&damaged, &flipped).unwrap();
        assert!(open_store(&damaged).is_err(), "the byte {place}");
        assert_eq!(fs::read(&damaged).unwrap(), flipped, "nothing but a gateway changes it");
        let gateway = provider.gateway(Options { store: Some(damaged.clone()), ..small() }).await;
        let notes = gateway.notes().to_vec();
        assert!(matches!(&*notes, [note] if note.contains("damaged")), "the byte {place}: {notes:?}");
        let agent = long(Format::Chat, 1);
        assert_eq!(post(&gateway, agent.format, agent.request(1, false)).await.0, 200);
        let receipt = gateway.end().await;
        assert_eq!((receipt.requests, receipt.notes), (1, notes));
        let aside = beside(&damaged).into_iter().find(|name| name.contains(".damaged-")).unwrap();
        assert_eq!(fs::read(damaged.with_file_name(aside)).unwrap(), flipped, "it is kept as it was");
        // The damaged one may be one of them.
        let after = open_store(&damaged).unwrap().requests(None).unwrap().len();
        assert!((before..=before + 1).contains(&after), "the byte {place}: {after} of {before} requests");
        fs::remove_dir_all(damaged.parent().unwrap()).unwrap();
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn without_a_place_to_write_the_agent_goes_on_and_is_told() {
    let provider = Provider::start().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    // A directory that cannot be made: its parent is a file.
    let store = file.join("gateway.db");
    let gateway = provider.gateway(Options { store: Some(store), ..small() }).await;
    assert!(gateway.notes()[0].contains("cannot be written"), "{:?}", gateway.notes());
    let agent = long(Format::Chat, 1);
    assert_eq!(post(&gateway, agent.format, agent.request(1, false)).await.0, 200);
    assert_eq!(gateway.end().await.notes.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_file_is_no_store_to_put_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("letter.txt");
    fs::write(&path, "Dear Ann, this is no database. ".repeat(1_000)).unwrap();
    let started = Gateway::start("127.0.0.1:0", Options { store: Some(path.clone()), ..small() }).await;
    assert!(started.is_err());
    assert_eq!(beside(&path), ["letter.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_has_everything_and_goes_on_with_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("gateway.db"), directory.path().join("copy.db"));
    let provider = Provider::start().await;
    let agent = long(Format::Messages, 12);
    let requests = agent.requests();
    let gateway = provider.gateway(Options { store: Some(one.clone()), ..small() }).await;
    for at in &requests[..requests.len() - 3] {
        post(&gateway, agent.format, agent.request(*at, false)).await;
    }
    // While the gateway runs.
    let copied = copy_store_file(&one, &two).unwrap();
    assert_eq!(copied.findings, [] as [String; 0]);
    assert!(copied.conversations == 1 && copied.requests > 0 && copied.rows > copied.requests);
    assert!(copy_store_file(&one, &two).is_err(), "nothing is copied over something");
    let repeated = agent.request(requests[requests.len() - 4], false);
    post(&gateway, agent.format, repeated.clone()).await;
    let sent = provider.last().body;
    let other = provider.gateway(Options { store: Some(two), ..small() }).await;
    post(&other, agent.format, repeated).await;
    assert_eq!(provider.last().body, sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_the_first_version_is_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    let provider = Provider::start().await;
    worked(&provider, &path).await;
    let before = open_store(&path).unwrap().requests(None).unwrap().len();
    let connection = rusqlite::Connection::open(&path).unwrap();
    for table in ["conversations", "steps", "decisions", "behind", "texts", "requests"] {
        connection.execute_batch(&format!("ALTER TABLE {table} DROP COLUMN sum")).unwrap();
    }
    for index in ["conversations_by_use", "conversations_by_end", "texts_by_conversation"] {
        connection.execute_batch(&format!("DROP INDEX {index}")).unwrap();
    }
    connection.execute_batch("PRAGMA user_version = 1").unwrap();
    drop(connection);
    assert_eq!(check_store_file(&path).unwrap().findings, [] as [String; 0]);
    let gateway = provider.gateway(Options { store: Some(path.clone()), ..small() }).await;
    assert_eq!(gateway.notes(), [] as [String; 0]);
    let agent = long(Format::Messages, 10);
    let last = provider.last().body;
    post(&gateway, agent.format, agent.request(*agent.requests().last().unwrap(), false)).await;
    let plain = |body: &str| body.replace("\"stream\":true", "\"stream\":false");
    assert_eq!(plain(&provider.last().body), plain(&last), "what was sent before the change of versions");
    gateway.stop().await;
    assert_eq!(open_store(&path).unwrap().requests(None).unwrap().len(), before + 1);
}

/// A store that is too large to be looked through at the start is looked through while it is used; the next start puts
/// it aside.
#[tokio::test(flavor = "multi_thread")]
async fn damage_in_a_large_store_is_found_and_said_and_the_next_start_puts_it_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    let provider = Provider::start().await;
    worked(&provider, &path).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch("CREATE TABLE padding (bytes BLOB); INSERT INTO padding VALUES (zeroblob(40000000)); PRAGMA wal_checkpoint(TRUNCATE);")
        .unwrap();
    drop(connection);
    let mut bytes = fs::read(&path).unwrap();
    let words = b"\"session\":\"";
    let place = bytes.windows(words.len()).position(|found| found == words).unwrap() + words.len();
    let whole = bytes.clone();
    bytes[place] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let gateway = provider.gateway(Options { store: Some(path.clone()), ..small() }).await;
    assert_eq!(gateway.notes(), [] as [String; 0], "the start does not wait for so much");
    let mark = directory.path().join("gateway.db-damaged");
    for _ in 0..2_000 {
        if mark.exists() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let notes = gateway.end().await.notes;
    assert!(matches!(&*notes, [note] if note.contains("is damaged") && note.contains("next start")), "{notes:?}");
    let gateway = provider.gateway(Options { store: Some(path.clone()), ..small() }).await;
    let notes = gateway.notes().to_vec();
    assert!(matches!(&*notes, [note] if note.contains("was damaged")), "{notes:?}");
    gateway.stop().await;
    assert!(!mark.exists() && beside(&path).iter().any(|name| name.contains(".damaged-")), "{:?}", beside(&path));
    // A store that is whole after all goes on.
    fs::write(&path, &whole).unwrap();
    let _ = fs::remove_file(directory.path().join("gateway.db-wal"));
    fs::write(&mark, "it was damaged").unwrap();
    let gateway = provider.gateway(Options { store: Some(path.clone()), ..small() }).await;
    assert_eq!(gateway.notes(), [] as [String; 0]);
    gateway.stop().await;
    assert!(!mark.exists());
}
