//! How harnesses hand over what commands print, and what they say about the directory.

use serde_json::{Value, json};

/// A harness by its habits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harness {
    /// As it is; the shell keeps its directory.
    Raw,
    /// Without blank lines at both ends; the shell keeps its directory.
    Trimmed,
    /// With a head before it; every command begins in the same directory.
    Headed,
    /// As it is, and every call says its directory.
    Stated,
    /// As a value of JSON; every command begins in the same directory, or in one that the call names.
    Object,
    /// With the exit status and the directory behind it; the shell keeps its directory.
    Trailed,
    /// A tool of which nobody knows whether it keeps its directory, and it does.
    Keeping,
    /// The same, and it does not.
    Forgetting,
    /// With the middle of long outputs left out; the shell keeps its directory.
    Cutting,
}

pub(crate) const HARNESSES: [Harness; 9] = [
    Harness::Raw,
    Harness::Trimmed,
    Harness::Headed,
    Harness::Stated,
    Harness::Object,
    Harness::Trailed,
    Harness::Keeping,
    Harness::Forgetting,
    Harness::Cutting,
];

/// Longest output of a harness that cuts, in bytes, and how much it keeps of both ends.
const MOST_BYTES: usize = 160;
const KEPT_BYTES: usize = 60;

impl Harness {
    /// Whether the next command begins where the last one ended.
    pub(crate) fn keeps_directory(self) -> bool {
        !matches!(self, Harness::Headed | Harness::Object | Harness::Forgetting)
    }

    /// The name of the tool and the arguments of a call that runs a line.
    pub(crate) fn call(self, line: &str) -> (&'static str, Value) {
        match self {
            Harness::Headed => ("exec_command", json!({"cmd": line})),
            Harness::Object => ("shell", json!({"command": ["bash", "-lc", line]})),
            Harness::Trailed => ("execute_bash", json!({"command": line})),
            Harness::Keeping | Harness::Forgetting => ("bash", json!({"command": line})),
            _ => ("Bash", json!({"command": line})),
        }
    }

    /// What the tool returns for what was printed.
    pub(crate) fn framed(self, text: &str, is_done: bool, directory: &str) -> String {
        let code = i32::from(!is_done);
        match self {
            Harness::Headed => {
                format!("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{text}")
            }
            Harness::Object => json!({"output": text, "metadata": {"exit_code": code}}).to_string(),
            Harness::Trailed => format!(
                "{}\n[Current working directory: {directory}]\n[The command completed with exit code {code}.]",
                text.trim_end_matches('\n')
            ),
            Harness::Trimmed => {
                let bare = text.trim_end();
                let blank =
                    bare.lines().take_while(|line| line.trim().is_empty()).map(|line| line.len() + 1).sum::<usize>();
                bare.get(blank..).unwrap_or_default().to_owned()
            }
            Harness::Cutting if text.len() > MOST_BYTES => {
                let (head, tail) =
                    (text.floor_char_boundary(KEPT_BYTES), text.ceil_char_boundary(text.len() - KEPT_BYTES));
                let count = tail - head;
                format!("{}\n\n... [{count} characters truncated] ...\n\n{}", &text[..head], &text[tail..])
            }
            _ => text.to_owned(),
        }
    }
}
