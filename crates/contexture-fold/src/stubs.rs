//! Texts that are sent in place of something else. Replacing an output that was not sent yet costs nothing.

use contexture_core::window::fence_for;

use contexture_files::observation::{Kind, Observation, Seen};
use contexture_text::one_line::one_line;

/// Shortest output that is replaced by a pointer.
pub(super) const LEAST_POINTED_BYTES: usize = 600;

/// How every pointer begins.
const POINTER_START: &str = "[Unchanged: ";

/// How every note on contents that are left out begins.
const LEFT_OUT_START: &str = "[Left out for lack of room: ";

/// The note for contents of a message that are no text and do not fit. It is the last line of a text, or all of it.
pub(super) fn left_out(what: &str) -> String {
    format!("{LEFT_OUT_START}{what}]")
}

/// Whether a text says that contents which are no text are left out.
pub(super) fn leaves_out(text: &str) -> bool {
    text.lines().next_back().is_some_and(|line| line.starts_with(LEFT_OUT_START))
}

/// Whether a text is a pointer.
pub(super) fn is_pointer(text: &str) -> bool {
    text.starts_with(POINTER_START)
}

/// The text for an output that is already shown above.
pub(super) fn pointer(seen: &Seen, text: &str) -> String {
    let what = match (seen.paths.first(), &seen.command) {
        (Some(path), _) => one_line(path).into_owned(),
        (None, Some(command)) => format!("`{}`", one_line(command.lines().next().unwrap_or_default())),
        (None, None) => "this call".to_owned(),
    };
    format!("{POINTER_START}the same {} lines of {what} are shown above]", text.lines().count())
}

/// The text for an output that came after its call was folded away.
pub(super) fn late(tool: &str, text: &str) -> String {
    let fence = fence_for(text);
    format!("[`{}`, which you called earlier, returned this only now]\n{fence}\n{text}\n{fence}", one_line(tool))
}

/// Whether an output is not a file's text, so that its middle can be left out.
pub(super) fn can_cap(seen: &Seen) -> bool {
    let is_text = |seen: &Observation| {
        matches!(seen, Observation::Read { .. } | Observation::Found { .. } | Observation::Printed { .. })
    };
    let is_printed = matches!(seen.kind, Kind::Run | Kind::Search | Kind::Other);
    is_printed && !seen.is_mixed && !seen.observations.iter().any(is_text)
}
