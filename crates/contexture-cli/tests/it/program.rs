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

/// A configuration file that says nothing.
const NO_CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/nothing.toml");

/// The program in a directory, without a home and without variables of its own: whatever configuration the machine has
/// is not seen. The search for a project's file is left on.
pub fn bare_program(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_contexture"));
    command.current_dir(directory);
    for (name, _) in std::env::vars_os() {
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("CONTEXTURE_"));
        if is_ours
            || ["COLUMNS", "NO_COLOR", "TERM", "HOME", "XDG_CONFIG_HOME", "APPDATA"].iter().any(|other| name == *other)
        {
            command.env_remove(name);
        }
    }
    command
}

/// The program in a directory, with a configuration that says nothing in place of the project's.
pub fn program(directory: &Path) -> Command {
    let mut command = bare_program(directory);
    command.env("CONTEXTURE_CONFIG", NO_CONFIG);
    command
}

/// Runs the program in a directory with something on its standard input.
pub fn run_in(directory: &Path, arguments: &[&str], input: &str) -> Run {
    let mut command = program(directory);
    command.args(arguments);
    run(command, input)
}

/// Runs a program with something on its standard input.
pub fn run(mut command: Command, input: &str) -> Run {
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
