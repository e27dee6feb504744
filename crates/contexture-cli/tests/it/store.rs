//! `contexture store`, and the gateway with a store in PostgreSQL.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../contexture-store/tests/it/postgres/server.rs"]
pub mod server;

use std::path::Path;

use contexture::store::{SqliteStore, StorageAdapter};
use server::Server;

use crate::program::{self, Run};

/// Runs the program with the password in the environment.
fn run(directory: &Path, arguments: &[&str]) -> Run {
    let mut command = program::program(directory);
    command.args(arguments).env("PGPASSWORD", "secret-word").env("COLUMNS", "200");
    command.env("XDG_STATE_HOME", directory);
    let run = program::run(command, "");
    assert!(!format!("{run:?}").contains("secret-word"), "the password is printed: {run:?}");
    run
}

fn fill(path: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = SqliteStore::open(path).unwrap();
    for number in 0..3 {
        let value = br#"{"format":1,"state":{}}"#.to_vec();
        runtime.block_on(store.set(&format!("layers/notes/thread/t{number}/state"), value)).unwrap();
    }
}

#[test]
fn a_store_is_copied_and_checked() {
    let Some(server) = Server::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    fill(&directory.path().join("agent.db"));
    // Without the password, which is in the environment.
    let url = format!("postgres://tester@127.0.0.1:{}/{}?sslmode=disable", server.port, server.make_database());

    let checked = run(directory.path(), &["store", "check", "agent.db"]);
    let expected = "agent.db: 3 records of 153 bytes, 0 threads, 0 documents of the search index\nnothing is damaged\n";
    assert_eq!((checked.code, checked.stdout.as_str(), checked.stderr.as_str()), (0, expected, ""));
    let copied = run(directory.path(), &["store", "copy", "agent.db", &url]);
    assert_eq!((copied.code, copied.stderr.as_str()), (0, ""), "{copied:?}");
    assert!(copied.stdout.starts_with("copied 3 records of 153 bytes and 0 documents"), "{copied:?}");
    assert!(copied.stdout.contains("both have the digest "), "{copied:?}");

    let again = run(directory.path(), &["store", "copy", "agent.db", &url]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("is not empty") && again.stderr.contains("hint: copy into"), "{again:?}");
    let back = run(directory.path(), &["store", "copy", &url, "back.db", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&back.stdout).unwrap();
    assert_eq!((&json["copied"]["records"], &json["to"]), (&3.into(), &"back.db".into()));
    let checked = run(directory.path(), &["store", "check", &url, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!((&json["checked"]["records"], &json["checked"]["findings"]), (&3.into(), &serde_json::json!([])));

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = SqliteStore::open(directory.path().join("back.db")).unwrap();
    runtime.block_on(store.set("layers/notes/thread/t1/state", b"{".to_vec())).unwrap();
    drop(store);
    let damaged = run(directory.path(), &["store", "check", "back.db"]);
    assert_eq!(damaged.code, 1);
    assert!(damaged.stdout.contains("  layers/notes/thread/t1/state: its value is not JSON"), "{damaged:?}");
    assert!(damaged.stderr.starts_with("error: 1 damaged place in `back.db`\nhint: "), "{damaged:?}");
}

#[test]
fn what_cannot_be_used_is_refused_with_one_sentence_and_a_hint() {
    let Some(server) = Server::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    fill(&directory.path().join("agent.db"));
    let at =
        |user: &str, database: &str| format!("postgres://{user}@127.0.0.1:{}/{database}?sslmode=disable", server.port);
    let said = |arguments: &[&str], code: i32, expected: &str| {
        let run = run(directory.path(), arguments);
        assert_eq!(run.code, code, "{run:?}");
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(expected), "{run:?}");
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert!(lines.len() == 2 && lines[1].starts_with("hint: "), "{run:?}");
    };
    let check = |store: &str, expected: &str| said(&["store", "check", store], 1, expected);
    check("gone.db", "there is no store at `gone.db`");
    check(&at("tester", "nowhere"), "does not exist");
    check(&at("nobody", "postgres"), "log in to PostgreSQL `postgres`");
    check(&at("tester:wrong-word", "postgres"), "log in to PostgreSQL `postgres`");
    check("postgres://tester@127.0.0.1:9/x", "connect to PostgreSQL `x` at 127.0.0.1:9");
    check(&at("tester", "postgres"), "has no Contexture store");
    let newer = server.make_database();
    let made = run(directory.path(), &["store", "copy", "agent.db", &at("tester", &newer)]);
    assert_eq!(made.code, 0, "{made:?}");
    server.run(&newer, "UPDATE contexture_meta SET value = '99' WHERE name = 'format'");
    check(&at("tester", &newer), "has tables of format 99");
    let other = server.make_database();
    server.run(&other, "CREATE TABLE contexture_meta (something int)");
    check(&at("tester", &other), "not of a Contexture store");
    server.run(&other, "CREATE ROLE guest LOGIN PASSWORD 'secret-word'; REVOKE ALL ON SCHEMA public FROM PUBLIC");
    said(&["store", "copy", "agent.db", &at("guest", &other)], 1, "use the tables of the store");
    said(&["store", "check", "mysql://ann:secret-word@host/x"], 2, "mysql://ann@host/x");
    said(&["serve", "postgres://ann:secret-word@host/x"], 2, "postgres://ann@host/x");
    said(&["serve", "--store", &at("tester:wrong-word", "postgres")], 1, "log in to PostgreSQL `postgres`");
    said(&["receipts", "--store", &at("tester", "nowhere")], 1, "does not exist");
}

#[test]
fn the_commands_of_the_gateway_use_the_store_that_is_named() {
    let Some(server) = Server::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let url = format!("postgres://tester@127.0.0.1:{}/{}?sslmode=disable", server.port, server.make_database());
    for (arguments, expected) in [
        (&["receipts"][..], "no request was seen yet"),
        (&["status"], "no gateway runs"),
        (&["forget", "--all"], "forgot 0 conversations"),
    ] {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--store", &url]).collect();
        let run = run(directory.path(), &arguments);
        assert!(run.code == 0 && run.stdout.contains(expected), "{run:?}");
    }
}

#[test]
fn memory_can_be_in_a_database() {
    let Some(server) = Server::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("talk.jsonl"), r#"{"id":"1","role":"user","text":"My kettle is blue."}"#)
        .unwrap();
    let url = format!("postgres://tester@127.0.0.1:{}/{}?sslmode=disable", server.port, server.make_database());
    let search = || run(directory.path(), &["memory", "search", "which kettle?", "--thread", "t", "--store", &url]);
    let early = search();
    assert!(early.code == 1 && early.stderr.contains("has no Contexture store"), "{early:?}");
    let imported = run(directory.path(), &["memory", "import", "talk.jsonl", "--thread", "t", "--store", &url]);
    assert_eq!((imported.code, imported.stdout.as_str()), (0, "1 items added to thread t\n"), "{imported:?}");
    let found = search();
    assert!(found.code == 0 && found.stdout.contains("My kettle is blue."), "{found:?}");
}
