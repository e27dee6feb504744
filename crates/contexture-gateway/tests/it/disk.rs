//! Disks that are full and stores that are damaged.

use std::env;
use std::path::Path;
use std::process::Command;

use contexture::wire::Format;
use contexture_gateway::{Options, Receipt};

use super::played::{long, play, records, small};
use super::provider::{Provider, post};
use contexture_gateway::testing::rules;

const STORE: &str = "CONTEXTURE_TEST_FULL_STORE";

/// Works on a disk that becomes full, as a process of its own. As a test it does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn work_on_a_disk_that_becomes_full() {
    let Ok(store) = env::var(STORE) else { return };
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { store: Some(store.into()), ..small() }).await;
    let agent = long(Format::Messages, 16);
    let sent = play(&gateway, &provider, &agent).await;
    for body in &sent {
        rules::check(agent.format, body).unwrap();
    }
    let last = sent.last().unwrap();
    assert!(last.contains("[Contexture's note: `["), "it was folded all the same");
    let at = *agent.requests().last().unwrap();
    let (status, _) = post(&gateway, agent.format, agent.request(at, false)).await;
    assert_eq!(status, 200);
    let plain = |body: &str| body.replace("\"stream\":true", "\"stream\":false");
    assert_eq!(plain(&provider.last().body), plain(last), "a repeated request gets the same bytes");
    let receipt = Receipt::of(&records(&gateway, sent.len() + 1).await);
    assert!(receipt.unsaved > 0, "the receipt says that something could not be written");
    println!("the disk was full");
}

fn told(mut command: Command) -> (bool, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

fn worker(command: &mut Command, store: &Path) {
    command.arg(env::current_exe().unwrap());
    command.args(["--exact", "disk::work_on_a_disk_that_becomes_full", "--nocapture"]);
    command.env(STORE, store);
}

#[test]
fn files_that_may_not_grow_stop_no_request() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    // Without the signal, writing beyond the limit is an error.
    command.args(["-c", "trap '' XFSZ; ulimit -f 300; exec \"$@\"", "sh"]);
    worker(&mut command, &directory.path().join("gateway.db"));
    let (is_fine, text) = told(command);
    assert!(is_fine && text.contains("the disk was full"), "{text}");
}

/// A file system of its own that has too little room, where the system lets anybody make one.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_stops_no_request() {
    let directory = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=200k none '{}'", directory.path().display());
    let can = Command::new("unshare").args(["-rm", "sh", "-c", &mount]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &format!("{mount} && exec \"$@\""), "sh"]);
    worker(&mut command, &directory.path().join("gateway.db"));
    let (is_fine, text) = told(command);
    assert!(is_fine && text.contains("the disk was full"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_damaged_anywhere_stops_no_request() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    let provider = Provider::start().await;
    let options = || Options { store: Some(path.clone()), ..small() };
    let agent = long(Format::Messages, 10);
    let gateway = provider.gateway(options()).await;
    play(&gateway, &provider, &agent).await;
    gateway.stop().await;
    let whole = std::fs::read(&path).unwrap();
    let at = *agent.requests().last().unwrap();
    let mut refused = 0;
    for page in 0..whole.len().div_ceil(4096).min(40) {
        let mut damaged = whole.clone();
        let end = damaged.len().min((page + 1) * 4096);
        // The first hundred bytes say that it is a database at all.
        for byte in &mut damaged[(page * 4096).max(100)..end] {
            *byte = byte.wrapping_mul(31).wrapping_add(7);
        }
        for extra in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(path.with_extension(format!("db{extra}")));
        }
        std::fs::write(&path, damaged).unwrap();
        let options = Options { upstreams: contexture_gateway::Upstreams::one(&provider.url), ..options() };
        // One that cannot even be opened is told at the start.
        let Ok(gateway) = contexture_gateway::Gateway::start("127.0.0.1:0", options).await else {
            refused += 1;
            continue;
        };
        let (status, _) = post(&gateway, agent.format, agent.request(at, false)).await;
        assert_eq!(status, 200, "page {page}");
        rules::check(agent.format, &provider.last().body).unwrap();
        gateway.stop().await;
    }
    assert!(refused < 10, "most damage is no reason not to start: {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_locked_is_on_the_receipt() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { store: Some(path.clone()), ..small() }).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let agent = long(Format::Chat, 2);
    play(&gateway, &provider, &agent).await;
    let receipt = Receipt::of(&records(&gateway, agent.requests().len()).await);
    assert_eq!(receipt.unsaved, agent.requests().len());
    other.execute_batch("ROLLBACK").unwrap();
    let (status, _) = post(&gateway, agent.format, long(Format::Chat, 3).request(15, false)).await;
    assert_eq!(status, 200);
    // A record is listed a moment before it is written; one that stops waits for that.
    let last = gateway.stop().await.pop().unwrap();
    assert!(!last.is_unsaved, "it is written again once that is possible");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_a_hundred_megabytes_passes_and_says_why() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let text = "x".repeat(100 << 20);
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let (status, _) = post(&gateway, Format::Chat, body.clone()).await;
    assert_eq!(status, 200);
    assert!(provider.last().body == body, "it passed as it came");
    let passed = records(&gateway, 1).await[0].passed.clone().unwrap_or_default();
    assert!(passed.contains("too large to be looked into"), "{passed}");
}
