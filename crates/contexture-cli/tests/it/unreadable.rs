//! Other processes of the user cannot read the memory and the environment of a gateway.
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
