//! Shortens texts for lists.

/// The first non-blank line of a text, shortened to a number of characters.
pub fn first_line(text: &str, most: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    cut(line, most)
}

/// The start of a text on one line.
pub fn preview(text: &str, most: usize) -> String {
    // Enough bytes for the wanted characters, so that very long lines are not scanned whole.
    let start = &text[..floor(text, most.saturating_mul(8))];
    let words: Vec<&str> = start.split_whitespace().collect();
    cut(&words.join(" "), most)
}

/// The text up to a number of characters, with an ellipsis if it is longer.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The last character boundary at or before a byte.
pub fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

/// Formats a number of tokens for people.
pub fn about(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..10_000 => format!("{:.1}k", tokens as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_keep_characters_whole() {
        assert_eq!(preview("  a\n\tb  c ", 10), "a b c");
        assert_eq!(preview(&"ü".repeat(100), 3), "üüü…");
        assert_eq!(first_line("\n\n  hello \nyou", 20), "hello");
        assert_eq!(floor("aü", 2), 1);
        assert_eq!(
            (about(999), about(1_234), about(41_230), about(2_400_000)),
            ("999".into(), "1.2k".into(), "41k".into(), "2.4M".into())
        );
    }
}
