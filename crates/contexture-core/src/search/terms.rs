//! Splits texts into terms for an index.

use std::collections::BTreeMap;

use super::stem::stem;
use crate::words::{parts, words};

/// The version of the splitting. An index built with another version has other terms.
pub const SPLITTING_VERSION: u32 = 1;

/// The largest number of different terms of a query; further ones are ignored.
pub const MAX_QUERY_TERMS: usize = 128;

/// A longer term, such as a hash or encoded data, is cut to this many bytes.
const MAX_TERM_BYTES: usize = 64;

/// The terms of a text, in order, with repetitions.
///
/// Words are lower-cased and stemmed. An identifier gives its parts (`camelCase`, `snake_case`, letters and digits) and
/// the whole. Chinese, Japanese and Korean text gives every pair of adjacent characters.
///
/// ```
/// use contexture_core::search::terms;
/// assert_eq!(terms("Parsing files"), ["pars", "file"]);
/// assert_eq!(terms("parseHTTPHeader2"), ["parsehttpheader2", "pars", "http", "header", "2"]);
/// assert_eq!(terms("東京都 x"), ["東京", "京都", "x"]);
/// ```
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for word in words(text) {
        for (run, is_dense) in runs(word) {
            if is_dense { add_pairs(&mut terms, run) } else { add_word(&mut terms, run) }
        }
    }
    terms
}

/// The terms of a text with their counts, and their total number.
pub fn count_terms(text: &str) -> (BTreeMap<String, u32>, u32) {
    let (mut counts, mut length) = (BTreeMap::new(), 0);
    for term in terms(text) {
        *counts.entry(term).or_default() += 1;
        length += 1;
    }
    (counts, length)
}

/// The different terms of a query, sorted: an index ranks in this order.
pub fn query_terms(query: &str) -> Vec<String> {
    let mut different: Vec<String> = Vec::new();
    for term in terms(query) {
        if different.len() < MAX_QUERY_TERMS && !different.contains(&term) {
            different.push(term);
        }
    }
    different.sort_unstable();
    different
}

/// Splits a word where scripts with and without spaces between words meet.
fn runs(word: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let is_dense = is_dense(rest.chars().next()?);
        let end = rest.find(|c| self::is_dense(c) != is_dense).unwrap_or(rest.len());
        let (run, tail) = rest.split_at(end);
        rest = tail;
        Some((run, is_dense))
    })
}

/// Whether a character belongs to a script without spaces between words, or, like Korean, with spaces that do not
/// separate what a search needs.
fn is_dense(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11FF | 0x3005..=0x3007 | 0x3040..=0x30FF | 0x3130..=0x318F | 0x31F0..=0x31FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0xFF66..=0xFFDC | 0x20000..=0x3FFFF)
}

/// Every pair of adjacent characters; a single one is its own term.
fn add_pairs(terms: &mut Vec<String>, run: &str) {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    match starts.len() {
        0..=2 => terms.push(run.to_owned()),
        _ => terms.extend(starts.windows(3).map(|window| run[window[0]..window[2]].to_owned())),
    }
}

fn add_word(terms: &mut Vec<String>, word: &str) {
    let pieces: Vec<&str> = parts(word).flat_map(pieces).collect();
    if let [piece] = pieces.as_slice() {
        return terms.push(term(&stem(&piece.to_lowercase())));
    }
    if !pieces.is_empty() {
        terms.push(term(word.trim_matches('_').to_lowercase().as_str()));
    }
    terms.extend(pieces.into_iter().map(|piece| term(&stem(&piece.to_lowercase()))));
}

fn term(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TERM_BYTES)].to_owned()
}

/// Splits where letters and digits meet, and where capitals end: `HTTPServer2` is `HTTP`, `Server` and `2`.
fn pieces(part: &str) -> impl Iterator<Item = &str> {
    let mut rest = part;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, tail) = rest.split_at(piece_len(rest));
        rest = tail;
        Some(piece)
    })
}

fn piece_len(part: &str) -> usize {
    let mut characters = part.char_indices().peekable();
    let Some((_, mut before)) = characters.next() else { return 0 };
    while let Some((at, c)) = characters.next() {
        let next_is_small = characters.peek().is_some_and(|(_, next)| next.is_lowercase());
        let numbers_meet = before.is_numeric() != c.is_numeric();
        let capitals_end = before.is_uppercase() && c.is_uppercase() && next_is_small;
        let small_ends = before.is_lowercase() && c.is_uppercase();
        if numbers_meet || capitals_end || small_ends {
            return at;
        }
        before = c;
    }
    part.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(terms(text), expected, "{text}");
    }

    #[test]
    fn words_identifiers_and_dense_scripts_are_split() {
        check("", &[]);
        check("___ -- \0 ''", &[]);
        check("The users' connections", &["the", "user", "connect"]);
        check("file_tracker.rs", &["file_tracker", "file", "tracker", "rs"]);
        check("__init__", &["init"]);
        check("sha256sum", &["sha256sum", "sha", "256", "sum"]);
        check("XMLHttpRequest", &["xmlhttprequest", "xml", "http", "request"]);
        check("MAX_KEY_BYTES", &["max_key_bytes", "max", "kei", "byte"]);
        check("Über Straße", &["über", "straße"]);
        check("日", &["日"]);
        check("ファイル", &["ファ", "ァイ", "イル"]);
        check("한국어", &["한국", "국어"]);
        check("GPT4で書く", &["gpt4", "gpt", "4", "で書", "書く"]);
        check(&"x".repeat(1_000), &[&"x".repeat(64)]);
    }

    #[test]
    fn a_query_has_different_terms_in_order_and_an_end() {
        assert_eq!(query_terms("b a b A"), ["a", "b"]);
        let long: String = (0..10_000).map(|number| format!("{number} ")).collect();
        assert_eq!(query_terms(&long).len(), MAX_QUERY_TERMS);
    }

    proptest! {
        #[test]
        fn every_text_is_split_and_terms_are_small(text in "\\PC{0,80}") {
            for term in terms(&text) {
                prop_assert!(!term.is_empty() && term.len() <= MAX_TERM_BYTES);
            }
            let (counts, length) = count_terms(&text);
            prop_assert_eq!(counts.values().sum::<u32>(), length);
        }

        #[test]
        fn a_part_of_an_identifier_finds_it(first in "[a-z]{3,8}", second in "[a-z]{3,8}") {
            let mut capital = second.clone();
            capital[..1].make_ascii_uppercase();
            for whole in [format!("{first}_{second}"), format!("{first}{capital}")] {
                let found = terms(&whole);
                prop_assert!(terms(&second).iter().chain(&terms(&first)).all(|term| found.contains(term)), "{whole}");
                prop_assert!(found.contains(&whole.to_lowercase()));
            }
        }
    }
}
