//! Text that cannot leave the line it is put into.

use std::borrow::Cow;

/// A text that stays in one line and within backticks: what could end either is replaced.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    let breaks = |c: char| c.is_control() || c == '`' || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(breaks) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if breaks(c) { char::REPLACEMENT_CHARACTER } else { c }).collect::<String>().into()
}
