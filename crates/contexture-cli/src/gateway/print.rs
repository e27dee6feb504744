//! Receipts as people read them: one line, or all of them.

use contexture_gateway::Receipt;
use contexture_gateway::report::told::ToldLine;

use contexture_terminal::harmless::on_one_line;
use contexture_terminal::screen::Screen;

/// The width of the subjects before the lines of a receipt.
const SUBJECT_CHARS: usize = 10;

/// How much of a receipt is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiptExtent {
    /// One sentence, and what a person has to know.
    Line,
    /// All of it.
    Details,
}

impl ReceiptExtent {
    pub(super) fn with(has_details: bool) -> Self {
        if has_details { Self::Details } else { Self::Line }
    }
}

/// A receipt. `is_watching` says that nothing was to be changed.
pub(super) fn receipt(receipt: &Receipt, is_watching: bool, extent: ReceiptExtent, screen: Screen) -> String {
    // Models, kinds of blocks and reasons are named as requests and providers name them.
    let mut text = screen.wrap(&format!("contexture: {}", on_one_line(&receipt.told(is_watching))), 2) + "\n";
    for ToldLine { subject, text: told, is_urgent } in receipt.details(is_watching) {
        if is_urgent || extent == ReceiptExtent::Details {
            let told = on_one_line(&told);
            text.push_str(&screen.wrap(&format!("  {subject:<SUBJECT_CHARS$} {told}"), SUBJECT_CHARS + 3));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_requests_name_does_not_control_the_terminal() {
        let reason = "`\u{1b}[31mX\u{7}\u{202e}\n  billed     nothing` is of a kind that is not known".to_owned();
        let receipt = Receipt { requests: 1, passed: [(reason, 1)].into(), ..Receipt::default() };
        let screen = Screen { columns: usize::MAX, has_colours: false };
        let text = super::receipt(&receipt, false, ReceiptExtent::Details, screen);
        assert!(text.contains("`\\u{1b}[31mX\\u{7}\\u{202e} billed nothing`"), "{text}");
    }
}
