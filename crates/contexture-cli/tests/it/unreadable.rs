//! Other processes of the user cannot read the memory and the environment of a gateway; and what this user cannot read or
//! write is said.
#![cfg(target_os = "linux")]
// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{Permissions, set_permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A user who may not read everything, which `root` may.
const NOBODY: u32 = 65_534;

/// A program of such a user, with a directory for what it stores.
fn as_user(program: &str, state: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("XDG_STATE_HOME", state).env("HOME", state).current_dir(state);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn directory() -> tempfile::TempDir {
    let state = tempfile::tempdir().unwrap();
    set_permissions(state.path(), Permissions::from_mode(0o777)).unwrap();
    state
}

#[test]
fn an_agent_cannot_read_the_gateway_that_runs_it() {
    let state = directory();
    let look = "cat /proc/$$/environ > own; cat /proc/$PPID/environ > read 2> refused; true";
    let arguments = ["run", "--no-store", "--set", "OPENAI_BASE_URL={url}", "sh", "-c", look];
    let output = as_user(env!("CARGO_BIN_EXE_contexture"), state.path()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(state.path().join(name)).unwrap();
    assert!(read("own").contains("OPENAI_BASE_URL="), "its own can be read, so `cat` works");
    assert_eq!(read("read"), "");
    assert!(read("refused").to_lowercase().contains("permission denied"), "{}", read("refused"));
}

#[test]
fn nobody_reads_a_gateway_that_serves() {
    let state = directory();
    let arguments = ["serve", "--quiet", "--no-store", "--listen", "127.0.0.1:0"];
    let mut command = as_user(env!("CARGO_BIN_EXE_contexture"), state.path());
    let mut child = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let environment = format!("/proc/{}/environ", child.id());
    let read = as_user("cat", state.path()).arg(environment).output().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("listening on "), "{line}");
    assert!(!read.status.success() && read.stdout.is_empty(), "{read:?}");
}

/// A store with a conversation of which only the record of a request is left, and how it is named.
fn store(directory: &Path) -> String {
    let path = directory.join("gateway.db");
    drop(contexture_gateway::open_store(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    let record = r#"{"session":"s","conversation":"c-listed","time_ms":1}"#;
    let sql = "INSERT INTO requests (conversation, session, time_ms, record) VALUES ('c-listed', 's', 1, ?1)";
    connection.execute(sql, [record]).unwrap();
    drop(connection);
    set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What a program of a user who may not read everything says: its exit code, its output and its errors.
fn said(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = as_user(env!("CARGO_BIN_EXE_contexture"), directory).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn receipts_are_read_where_nothing_can_be_written() {
    let (state, kept) = (directory(), tempfile::tempdir().unwrap());
    let store = store(kept.path());
    set_permissions(&store, Permissions::from_mode(0o444)).unwrap();
    set_permissions(kept.path(), Permissions::from_mode(0o555)).unwrap();
    let (code, text, errors) = said(state.path(), &["receipts", "--store", &store]);
    assert!(code == 0 && text.contains("c-listed"), "{text} {errors}");
    let (code, _, errors) = said(state.path(), &["forget", "--all", "--store", &store]);
    assert!(code == 1 && errors.contains("read-only") && !errors.contains("can be deleted"), "{errors}");
    set_permissions(kept.path(), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_store_of_another_user_is_not_empty() {
    let (state, kept) = (directory(), tempfile::tempdir().unwrap());
    let store = store(kept.path());
    set_permissions(kept.path(), Permissions::from_mode(0o000)).unwrap();
    let (code, text, errors) = said(state.path(), &["receipts", "--store", &store]);
    set_permissions(kept.path(), Permissions::from_mode(0o755)).unwrap();
    assert!(code == 1 && text.is_empty(), "{text}");
    assert!(errors.to_lowercase().contains("permission denied") && errors.contains("hint: "), "{errors}");
}

#[test]
fn a_directory_that_cannot_be_listed_does_not_end_it_for_others() {
    let state = directory();
    let (open, closed) = (state.path().join("open"), state.path().join("closed"));
    for directory in [&open, &closed] {
        std::fs::create_dir(directory).unwrap();
        set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(open.join("one.jsonl"), crate::replay::recording(3)).unwrap();
    set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
    let (code, _, errors) = said(state.path(), &["replay", state.path().to_str().unwrap()]);
    let (alone, ..) = said(state.path(), &["replay", closed.to_str().unwrap()]);
    set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
    assert!(code == 0 && errors.contains("closed`") && errors.contains("skipped"), "{errors}");
    assert_eq!(alone, 1);
}

#[test]
fn a_store_of_a_newer_version_is_not_checked() {
    let kept = directory();
    let store = store(kept.path());
    rusqlite::Connection::open(&store).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_contexture")).args(["store", "check", &store]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(1) && output.stdout.is_empty() && errors.contains("newer version"),
        "{errors}"
    );
}

#[test]
fn everything_is_forgotten_also_where_no_file_may_grow() {
    for limit in ["unlimited", "0"] {
        let kept = directory();
        let store = store(kept.path());
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_contexture"), "forget", "--all", "--store", &store]);
        let output = command.env("HOME", kept.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "forgot 1 conversation\n", "{output:?}");
        let left = std::fs::read(&store).unwrap_or_default();
        assert!(!left.windows(8).any(|words| words == b"c-listed"), "it is gone, with a limit of {limit}");
    }
}
