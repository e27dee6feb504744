//! Text for a single line.

use std::borrow::Cow;

/// Replaces what could end the line or the backticks around the text.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let breaks = |c: char| c.is_control() || c == '`' || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(breaks) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if breaks(c) { char::REPLACEMENT_CHARACTER } else { c }).collect::<String>().into()
}
