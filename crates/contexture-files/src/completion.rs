//! The outcome of a call: from the structure of its output, or from its text if the structure says nothing.

use contexture_core::item::Outcome;

/// The outcome of a call, as far as files are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// It did what it was asked for.
    Done,
    /// It did nothing.
    Undone,
    /// It failed, and may have done part of its work.
    Failed,
    /// Unknown.
    Open,
}

/// The outcome of a tool call that reads or changes a file as a whole or not at all.
pub(crate) fn of_tool(outcome: Outcome, text: &str) -> Completion {
    match outcome {
        Outcome::Done => Completion::Done,
        Outcome::Failed | Outcome::Denied => Completion::Undone,
        Outcome::Interrupted => Completion::Failed,
        Outcome::Unknown if says_denied(text) || says_failed(text) => Completion::Undone,
        Outcome::Unknown if says_interrupted(text) => Completion::Failed,
        Outcome::Unknown if says_done(text) => Completion::Done,
        Outcome::Unknown => Completion::Open,
    }
}

/// The outcome of a command line; `exit` is the status that the harness wrote into its output.
pub(crate) fn of_run(outcome: Outcome, text: &str, exit: Option<i64>) -> Completion {
    match (outcome, exit) {
        (Outcome::Denied, _) => Completion::Undone,
        (Outcome::Failed | Outcome::Interrupted, _) => Completion::Failed,
        (Outcome::Done | Outcome::Unknown, Some(code)) if code != 0 => Completion::Failed,
        (Outcome::Done, _) | (Outcome::Unknown, Some(_)) => Completion::Done,
        (Outcome::Unknown, None) if says_denied(text) => Completion::Undone,
        (Outcome::Unknown, None) if says_failed(text) || says_interrupted(text) => Completion::Failed,
        (Outcome::Unknown, None) => Completion::Open,
    }
}

/// How many characters at the start of a text are examined.
const HEAD_CHARS: usize = 160;

fn head(text: &str) -> String {
    text.trim_start().chars().take(HEAD_CHARS).collect::<String>().to_lowercase()
}

/// How the outputs of calls begin that were refused and did not run, in lower case.
const DENIED: &[&str] = &[
    "<tool_use_error>cancelled",
    "<tool_use_error>sibling tool call",
    "[operation cancelled",
    "[request interrupted by user for tool use",
    "aborted by user",
    "claude requested permissions",
    "command rejected",
    "denied",
    "exec command rejected",
    "operation cancelled",
    "patch rejected",
    "permission for this action has been denied",
    "permission to use",
    "rejected by user",
    "skipping",
    "the operation was cancelled",
    "the tool call was denied",
    "the user cancelled",
    "the user denied",
    "the user doesn't want to",
    "the user has denied",
    "the user rejected",
    "the user has rejected",
    "this call was denied",
    "this tool call was rejected",
    "tool call rejected",
    "tool use rejected",
    "user cancelled",
    "user declined",
    "user denied",
    "user did not allow",
    "user refused",
    "user rejected",
];

/// Whether an output says that a call was refused and did not run.
fn says_denied(text: &str) -> bool {
    let head = head(text);
    DENIED.iter().any(|start| head.starts_with(start))
        || head.contains("rejected by user")
        || head.contains("rejected by the user")
}

/// How the outputs of calls begin that were interrupted, in lower case.
const INTERRUPTED: &[&str] = &[
    "[request interrupted",
    "aborted",
    "command timed out",
    "interrupted",
    "the output of this call was withheld",
    "this call was interrupted",
    "timed out",
    "tool execution aborted",
    "tool execution was interrupted",
    "<error>command was aborted",
];

/// Whether an output says that a call was interrupted, or hides what it did.
fn says_interrupted(text: &str) -> bool {
    let head = head(text);
    INTERRUPTED.iter().any(|start| head.starts_with(start)) || head.contains("interrupted by user")
}

/// How the output of a failed tool begins, in lower case.
const FAILED: &[&str] = &[
    "### error",
    "<error",
    "<tool_use_error>",
    "[error",
    "apply_patch verification failed",
    "cannot ",
    "could not ",
    "couldn't ",
    "eacces",
    "eisdir",
    "enoent",
    "error",
    "eperm",
    "execution error",
    "failed",
    "failure",
    "file content (",
    "file does not exist",
    "file has been modified",
    "file has not been read",
    "file not found",
    "found 0 matches",
    "inputvalidationerror",
    "invalid",
    "multiple matches",
    "no change",
    "no match",
    "no occurrences",
    "no replacement",
    "no such file",
    "not found",
    "old_str",
    "old_string",
    "oldstring",
    "path does not exist",
    "permission denied",
    "search failed",
    "string not found",
    "string to replace not found",
    "the edit was not applied",
    "the file was not",
    "the requested edit",
    "the string to replace",
    "the tool execution failed",
    "tool execution failed",
    "traceback (most recent call last)",
    "unable to",
    "unknown tool",
    "write failed",
];

/// What the output of a failed tool has near its start, in lower case.
const FAILED_INSIDE: &[&str] = &[
    "0 occurrences found",
    "execution error",
    "failed in sandbox",
    "failed to apply",
    "failed to edit",
    "failed to find",
    "matches of the string to replace",
    "no replacement was performed",
    "not found in content",
    "not found in file",
    "did not match",
    "did not appear verbatim",
    "has not been read yet",
    "is not unique",
];

/// Whether a tool's output says that nothing was done.
pub fn says_failed(result: &str) -> bool {
    let head = head(result);
    if FAILED.iter().any(|start| head.starts_with(start)) || FAILED_INSIDE.iter().any(|part| head.contains(part)) {
        return true;
    }
    // Some harnesses put the exit code before the output, with or without a colon.
    let code = head.strip_prefix("exit code: ").or_else(|| head.strip_prefix("exit code "));
    code.is_some_and(|rest| !rest.trim_start().starts_with('0'))
}

/// What a tool's output has near its start when it did what it was asked for, in lower case.
const DONE: &[&str] = &[
    "success",
    "has been updated",
    "has been created",
    "has been written",
    "was written",
    "was updated",
    "was created",
    "updated with changes",
    "created file",
    "file created",
    "wrote ",
    "edit applied",
    "edited",
    "here's the result of running",
    "replaced",
    "applied",
    "deleted",
    "moved",
    "done",
    "ok",
];

/// Whether a tool's output says that it did what it was asked for.
pub(crate) fn says_done(text: &str) -> bool {
    let head = head(text);
    DONE.iter().any(|part| head.contains(part))
        && !head.contains(" not ")
        && !head.contains("n't ")
        && !head.contains("fail")
}
