//! What can be saved before an output is first sent, when saving costs nothing.

use super::digest::says_error;
use crate::files::observation::{Kind, Seen};

/// Shortest output that is worth a pointer.
pub(super) const LEAST_POINTED_BYTES: usize = 600;

/// How every pointer begins.
const POINTER_START: &str = "[Unchanged: ";

/// Whether a text is a pointer.
pub(super) fn is_pointer(text: &str) -> bool {
    text.starts_with(POINTER_START)
}

/// What stands for an output that is shown above already.
pub(super) fn pointer(seen: &Seen, text: &str) -> String {
    let what = match (seen.paths.first(), &seen.command) {
        (Some(path), _) => path.clone(),
        (None, Some(command)) => format!("`{}`", command.lines().next().unwrap_or_default()),
        (None, None) => "this call".to_owned(),
    };
    format!("{POINTER_START}the same {} lines of {what} stand above]", text.lines().count())
}

/// What stands for an answer that came after its call was folded away.
pub(super) fn late(tool: &str, text: &str) -> String {
    format!("[`{tool}`, which you called earlier, answered only now]\n{text}")
}

/// Whether an output is no file's text, so that its middle can go.
pub(super) fn can_cap(seen: &Seen) -> bool {
    matches!(seen.kind, Kind::Run | Kind::Search | Kind::Other) && seen.observations.is_empty()
}

/// Lines with errors that a capped output keeps from its middle.
const MAX_ERROR_LINES: usize = 12;

/// Longest line with an error that is kept.
const MAX_ERROR_LINE_BYTES: usize = 300;

/// An output with its middle left out, except for lines with errors.
pub(super) fn cap(text: &str, bytes: usize, at: usize) -> String {
    let errors: Vec<&str> = text
        .lines()
        .filter(|line| says_error(line) && line.len() <= MAX_ERROR_LINE_BYTES)
        .take(MAX_ERROR_LINES)
        .collect();
    let errors = errors.join("\n");
    let keep = bytes.saturating_sub(errors.len() + 120);
    let head = text.floor_char_boundary(keep / 3);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(keep - keep / 3)).max(head);
    let gap = tail - head;
    format!("{}\n[… {gap} bytes of message {at} left out …]\n{errors}\n[…]\n{}", &text[..head], &text[tail..])
}
