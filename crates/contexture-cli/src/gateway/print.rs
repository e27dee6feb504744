//! Receipts as people read them: one line, or all of them.

use contexture_gateway::Receipt;
use contexture_gateway::account::told::ToldLine;

use contexture_terminal::screen::Screen;

/// The width of the subjects before the lines of a receipt.
const SUBJECT_CHARS: usize = 10;

/// How much of a receipt is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// One sentence, and what a person has to know.
    Line,
    /// All of it.
    Details,
}

impl Extent {
    pub(super) fn with(has_details: bool) -> Self {
        if has_details { Self::Details } else { Self::Line }
    }
}

/// A receipt. `is_watching` says that nothing was to be changed.
pub(super) fn receipt(receipt: &Receipt, is_watching: bool, extent: Extent, screen: Screen) -> String {
    let mut text = screen.wrap(&format!("contexture: {}", receipt.told(is_watching)), 2) + "\n";
    for ToldLine { subject, text: told, is_urgent } in receipt.details(is_watching) {
        if is_urgent || extent == Extent::Details {
            text.push_str(&screen.wrap(&format!("  {subject:<SUBJECT_CHARS$} {told}"), SUBJECT_CHARS + 3));
            text.push('\n');
        }
    }
    text
}
