//! `contexture inspect`: recordings on a page that asks for a token.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that is ended with the test.
struct Inspecting(Child);

impl Drop for Inspecting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks for a path and returns the whole answer.
fn get(address: &str, path: &str, token: Option<&str>) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\n{token}connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_recording_is_shown_behind_a_token() {
    let place = tempfile::tempdir().unwrap();
    let recording = place.path().join("work.jsonl");
    std::fs::write(&recording, crate::replay::recording(26)).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_contexture"))
        .arg("inspect")
        .arg(&recording)
        .args(["--budget", "4000"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut inspecting = Inspecting(child);
    let mut told = String::new();
    BufReader::new(inspecting.0.stdout.take().unwrap()).read_line(&mut told).unwrap();
    let url = told.trim().strip_prefix("the inspector is at http://").unwrap_or_else(|| panic!("{told}"));
    let (address, token) = url.split_once("/inspect/#token=").unwrap();
    assert!(get(address, "/api/v1/conversations", None).starts_with("HTTP/1.1 401"));
    let page = get(address, "/inspect/", None);
    assert!(page.starts_with("HTTP/1.1 200") && !page.contains(token) && !page.contains("set-cookie"), "{page}");
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = get(address, "/api/v1/conversations", Some(token));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        if answer.contains("\"requests\":27") && answer.contains("\"is_reading\":false") {
            assert!(answer.contains("\"name\":\"work.jsonl\""), "{answer}");
            return;
        }
        assert!(Instant::now() < end, "the recording is not read: {answer}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Who has no store yet is shown the session of the demo, and told so.
#[test]
fn without_a_store_the_recording_of_the_program_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_contexture"))
        .arg("inspect")
        .env("HOME", home.path())
        .env_remove("XDG_STATE_HOME")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut inspecting = Inspecting(child);
    let mut told = String::new();
    BufReader::new(inspecting.0.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert!(told.contains("nothing passed through a gateway yet") && told.contains("`contexture demo`"), "{told}");
    let mut address = String::new();
    BufReader::new(inspecting.0.stdout.take().unwrap()).read_line(&mut address).unwrap();
    assert!(address.starts_with("the inspector is at http://127.0.0.1:"), "{address}");
}

#[test]
fn files_that_are_no_recordings_end_it() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("notes.txt"), "not a recording\n").unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_contexture")).arg("inspect").arg(directory.path().join("notes.txt")).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("none of the files is a recording in a known format\nhint: "), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "who is told an address looks there");
}

#[test]
fn a_page_that_other_machines_can_reach_is_warned_of() {
    let place = tempfile::tempdir().unwrap();
    let recording = place.path().join("work.jsonl");
    std::fs::write(&recording, crate::replay::recording(26)).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_contexture"))
        .arg("inspect")
        .arg(&recording)
        .args(["--listen", "0.0.0.0:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut inspecting = Inspecting(child);
    let mut told = String::new();
    BufReader::new(inspecting.0.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert!(told.contains("warning: other machines can reach 0.0.0.0:"), "{told}");
}
