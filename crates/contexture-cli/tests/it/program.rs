//! Runs the program and looks at everything it says.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run of the program left behind.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program in a directory with something on its standard input.
pub fn run_in(directory: &Path, arguments: &[&str], input: &str) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_contexture"));
    command.args(arguments).current_dir(directory);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that fails before it reads closes its input, which is fine.
    let _ = child.stdin.take().expect("its input is a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    Run {
        code: output.status.code().expect("no signal ended the program"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Runs the program and checks its exit code and all that it prints.
#[track_caller]
pub fn check(arguments: &[&str], code: i32, stdout: &str, stderr: &str) {
    let run = run_in(Path::new("."), arguments, "");
    assert_eq!(run, Run { code, stdout: stdout.to_owned(), stderr: stderr.to_owned() });
}
