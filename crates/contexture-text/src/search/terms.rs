//! Splits texts into terms for an index.

use std::borrow::Cow;
use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;

use super::irregular;
use super::stem::stem;
use crate::words::{parts, words};

/// The version of the splitting. An index built with another version has other terms.
pub const SPLITTING_VERSION: u32 = 2;

/// The largest number of different terms of a query; further ones are ignored.
pub const MAX_QUERY_TERMS: usize = 128;

/// A longer term, such as a hash or encoded data, is cut to this many bytes.
const MAX_TERM_BYTES: usize = 64;

/// The terms of a text, in order, with repetitions.
///
/// Words are lower-cased, lose their accents and are stemmed; `bought` is `buy`. An identifier gives its parts
/// (`camelCase`, `snake_case`, letters and digits) and the whole. Chinese, Japanese and Korean text gives every pair of
/// adjacent characters, and every single one that is a Chinese character.
///
/// ```
/// use contexture_text::search::terms;
/// assert_eq!(terms("Parsing files"), ["pars", "file"]);
/// assert_eq!(terms("parseHTTPHeader2"), ["parsehttpheader2", "pars", "http", "header", "2"]);
/// assert_eq!(terms("東京都 café"), ["東", "東京", "京", "京都", "都", "cafe"]);
/// ```
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for_each_term(text, |term| terms.push(term.to_owned()));
    terms
}

/// Calls `visit` with each of the [`terms`] of a text, in order, without allocating for each.
pub fn for_each_term(text: &str, mut visit: impl FnMut(&str)) {
    let text = &*without_accents(text);
    let mut buffer = String::new();
    for word in words(text) {
        if is_plain(word) {
            visit_stem(word, &mut buffer, &mut visit);
            continue;
        }
        for (run, is_dense) in runs(word) {
            if is_dense { visit_pairs(run, &mut visit) } else { visit_word(run, &mut buffer, &mut visit) }
        }
    }
}

/// The terms of a text with their counts, and their total number.
pub fn count_terms(text: &str) -> (BTreeMap<String, u32>, u32) {
    let (mut counts, mut length) = (BTreeMap::<String, u32>::new(), 0);
    for_each_term(text, |term| {
        match counts.get_mut(term) {
            Some(count) => *count += 1,
            None => drop(counts.insert(term.to_owned(), 1)),
        }
        length += 1;
    });
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

/// Whether a word is one piece for sure: most words are.
fn is_plain(word: &str) -> bool {
    let mut bytes = word.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic()) && bytes.all(|byte| byte.is_ascii_lowercase())
}

/// The text in one form of those that Unicode has for it, wide letters and ligatures as plain ones, and without accents.
///
/// Of ASCII, only a character before another one can be part of a letter with an accent, so that the rest is copied.
fn without_accents(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    // Only marks of letters: those of Japanese and of Indian scripts make other words.
    let is_accent = |c: &char| matches!(u32::from(*c), 0x0300..=0x036F | 0x0591..=0x05BD | 0x064B..=0x065F);
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| !byte.is_ascii()) {
        let (ascii, other) = rest.split_at(at.saturating_sub(1));
        let end = other.bytes().skip(1).position(|byte| byte.is_ascii()).map_or(other.len(), |end| end + 1);
        plain.push_str(ascii);
        plain.extend(other[..end].nfkd().filter(|c| !is_accent(c)).nfc());
        rest = &other[end..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Every pair of adjacent characters, and each that can be a word.
fn visit_pairs(run: &str, visit: &mut impl FnMut(&str)) {
    let mut characters = run.char_indices().peekable();
    let is_single = run.chars().nth(1).is_none();
    while let Some((start, c)) = characters.next() {
        let end = start + c.len_utf8();
        if is_single || is_chinese(c) {
            visit(&run[start..end]);
        }
        if let Some((next, other)) = characters.peek() {
            visit(&run[start..next + other.len_utf8()]);
        }
    }
}

fn is_chinese(c: char) -> bool {
    matches!(u32::from(c), 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

fn visit_word(word: &str, buffer: &mut String, visit: &mut impl FnMut(&str)) {
    let mut pieces = parts(word).flat_map(pieces);
    let Some(first) = pieces.next() else { return };
    let mut rest = pieces.peekable();
    if rest.peek().is_some() {
        visit(cut(&word.trim_matches('_').to_lowercase()));
    }
    for piece in std::iter::once(first).chain(rest) {
        visit_stem(piece, buffer, visit);
    }
}

fn visit_stem(piece: &str, buffer: &mut String, visit: &mut impl FnMut(&str)) {
    buffer.clear();
    if piece.is_ascii() {
        buffer.push_str(piece);
        buffer.make_ascii_lowercase();
    } else {
        buffer.push_str(&piece.to_lowercase());
    }
    if let Some(base) = irregular::base(buffer) {
        buffer.clear();
        buffer.push_str(base);
    }
    stem(buffer);
    visit(cut(buffer));
}

fn cut(term: &str) -> &str {
    &term[..term.floor_char_boundary(MAX_TERM_BYTES)]
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
        check("Über Straße", &["uber", "straße"]);
        check("cafe\u{301} Zu\u{308}rich \u{ff21}\u{ff22}\u{ff11} phở", &["cafe", "zurich", "ab1", "ab", "1", "pho"]);
        check("She bought mice", &["she", "bui", "mous"]);
        check("ﾊﾞｽ が", &["バス", "が"]);
        check("我的狗", &["我", "我的", "的", "的狗", "狗"]);
        check("日", &["日"]);
        check("ファイル", &["ファ", "ァイ", "イル"]);
        check("한국어", &["한국", "국어"]);
        check("GPT4で書く", &["gpt4", "gpt", "4", "で書", "書", "書く"]);
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
        fn accents_are_gone_as_if_the_text_were_one_piece(text in "[a-zé\u{301}\u{ff21}…→ぁ\u{3099}ᄀ\u{1161}\u{650} ]{0,12}") {
            let is_accent = |c: &char| matches!(u32::from(*c), 0x0300..=0x036F | 0x064B..=0x065F);
            prop_assert_eq!(without_accents(&text), text.nfkd().filter(|c| !is_accent(c)).nfc().collect::<String>());
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
