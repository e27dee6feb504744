//! The part of a long passage that fits a question.

use contexture_core::search::TermWeights;
use contexture_text::search::terms;

use contexture_text::block::flat;

/// Passages up to this many bytes are shown whole, of longer ones about so much: some 150 tokens.
const EXCERPT_BYTES: usize = 640;

/// The part of a text with most of the words, on one line.
pub(crate) fn excerpt(text: &str, wanted: &TermWeights) -> String {
    let text = flat(text);
    if text.len() <= EXCERPT_BYTES {
        return text;
    }
    let pieces = pieces(&text);
    let values: Vec<f64> = pieces.iter().map(|piece| value(piece, wanted)).collect();
    // The window of pieces that is worth most, and of equals the first.
    let (mut best, mut best_value) = (0..0, -1.0);
    for start in 0..pieces.len() {
        let (mut bytes, mut sum, mut end) = (0, 0.0, start);
        while end < pieces.len() && (end == start || bytes + pieces[end].len() <= EXCERPT_BYTES) {
            bytes += pieces[end].len();
            sum += values[end];
            end += 1;
        }
        if sum > best_value {
            (best, best_value) = (start..end, sum);
        }
    }
    let shown: String = pieces[best.clone()].concat();
    let cut = shown.floor_char_boundary(EXCERPT_BYTES);
    let before = if best.start > 0 { "… " } else { "" };
    let after = if best.end < pieces.len() || cut < shown.len() { " …" } else { "" };
    format!("{before}{}{after}", shown[..cut].trim())
}

/// Sentences; longer ones in parts.
fn pieces(text: &str) -> Vec<&str> {
    const LONGEST: usize = 200;
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let within = &rest[..rest.floor_char_boundary(LONGEST)];
        let ends = |(at, c): (usize, char)| {
            let end = at + c.len_utf8();
            let is_end = matches!(c, '。' | '！' | '？' | ';' | '}')
                || (matches!(c, '.' | '!' | '?') && rest[end..].starts_with(' '));
            is_end.then_some(end)
        };
        let at_space = || within.rfind(' ').filter(|_| within.len() < rest.len()).map(|at| at + 1);
        let end = within.char_indices().find_map(ends).or_else(at_space).unwrap_or(within.len()).max(1);
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(end));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// What a piece is worth: each wanted term once.
fn value(piece: &str, wanted: &TermWeights) -> f64 {
    let mut found: Vec<String> = terms(piece);
    found.sort_unstable();
    found.dedup();
    found.iter().filter_map(|term| wanted.get(term)).sum()
}

#[cfg(test)]
mod tests {
    use contexture_text::search::query_terms;
    use proptest::prelude::*;

    use super::*;

    fn wanted(text: &str) -> TermWeights {
        query_terms(text).into_iter().map(|term| (term, 1.0)).collect()
    }

    #[test]
    fn the_sentences_with_the_words_are_shown() {
        let filler = "Nothing of interest is in this sentence at all. ".repeat(40);
        let text = format!("{filler}The violin was sold to a collector.\n\n{filler}");
        let shown = excerpt(&text, &wanted("who bought the violin, a collector?"));
        assert!(shown.contains("violin was sold") && shown.starts_with("… ") && shown.ends_with(" …"), "{shown}");
        assert_eq!(excerpt("short\n text", &wanted("x")), "short text");
    }

    proptest! {
        #[test]
        fn excerpts_are_one_line_and_not_too_long(text in "\\PC{0,3000}", question in "\\PC{0,40}") {
            let shown = excerpt(&text, &wanted(&question));
            prop_assert!(shown.len() <= EXCERPT_BYTES + 10 && shown.lines().count() <= 1);
        }
    }
}
