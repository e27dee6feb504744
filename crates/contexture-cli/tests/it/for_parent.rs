//! A gateway for the program that started it, as that program sees it through the pipes.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::gateway::{Rig, text};
use crate::strangers::asked;

struct Parented {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Parented {
    fn start(rig: &Rig, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_contexture"))
            .args(["serve", "--for-parent"])
            .args(flags)
            .env("XDG_STATE_HOME", rig.home.path())
            .env_remove("OPENAI_BASE_URL")
            .env_remove("ANTHROPIC_BASE_URL")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn end(mut self) -> Value {
        drop(self.child.stdin.take());
        let line = self.line();
        assert!(self.child.wait().unwrap().success());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "nothing follows the receipt");
        line
    }
}

#[test]
fn a_parent_reads_addresses_first_and_the_receipt_when_it_closes_the_pipe() {
    let rig = Rig::new();
    let upstream = format!("{}/v1", rig.answerer.url());
    let mut parented = Parented::start(&rig, &["--no-store", "--upstream", &upstream], &[]);
    let ready = parented.line();
    let openai = ready["ready"]["openai"].as_str().unwrap().to_owned();
    let (host, path) = openai.strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert_eq!(ready["ready"]["address"], host);
    assert_eq!(asked(host, "openai/chat/completions", ""), "401");
    assert_eq!(asked(host, &format!("{path}/chat/completions"), ""), "200");
    let ended = parented.end();
    assert_eq!(ended["ended"]["receipt"]["requests"], 1, "{ended}");
    assert_eq!(ended["ended"]["refused"], 1, "{ended}");
    assert_eq!(std::fs::read_dir(rig.home.path()).unwrap().count(), 0, "no key is kept, and nothing else");
}

#[test]
fn the_addresses_of_a_parents_own_clients_are_where_requests_go() {
    let rig = Rig::new();
    let upstream = format!("{}/v1", rig.answerer.url());
    let mut parented = Parented::start(&rig, &["--no-store"], &[("OPENAI_BASE_URL", &upstream)]);
    let ready = parented.line();
    let openai = ready["ready"]["openai"].as_str().unwrap().to_owned();
    let (host, path) = openai.strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert_eq!(asked(host, &format!("{path}/chat/completions"), ""), "200");
    parented.end();
}

#[test]
fn a_start_that_fails_prints_no_line_of_json() {
    let rig = Rig::new();
    let check = |flags: &[&str], variables: &[(&str, &str)], code: i32, words: &str| {
        let parented = Parented::start(&rig, flags, variables);
        drop(parented.lines);
        let output = parented.child.wait_with_output().unwrap();
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {told}");
        assert!(told.starts_with("error: ") && told.contains(words), "{flags:?}: {told}");
    };
    check(&["--budget", "0"], &[], 2, "invalid value '0'");
    check(&["--listen", "127.0.0.1:0"], &[], 2, "cannot be used with");
    check(&["--no-store", "--base", "/nowhere/at/all"], &[], 2, "cannot be the base directory");
    check(&["--no-store"], &[("OPENAI_BASE_URL", "nonsense")], 2, "the variable `OPENAI_BASE_URL`");
    let foreign = rig.home.path().join("text.db");
    std::fs::write(&foreign, "this is no database, and it has enough bytes to be seen as none").unwrap();
    check(&["--store", foreign.to_str().unwrap()], &[], 1, "hint: ");
}
