//! The values of cookies.

use super::random::entropy;
use super::{Secret, begins_word};

pub(super) const KIND: &str = "cookie";
const NAME: &str = "cookie:";
/// The shortest value, and the bits for each character of it.
const MIN_VALUE: usize = 16;
const MIN_ENTROPY: f64 = 3.0;

/// Adds the random values of headers such as `Cookie: session=…; theme=dark`.
pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at + NAME.len() < bytes.len() {
        let is_name = bytes[at] | 0x20 == b'c' && bytes[at..at + NAME.len()].eq_ignore_ascii_case(NAME.as_bytes());
        if is_name && (begins_word(text, at) || text[..at].ends_with('-')) {
            let start = at + NAME.len();
            let end = text[start..].find(['\n', '\r', '"', '\'']).map_or(text.len(), |len| start + len);
            add_values(text, start, end, found);
            at = end;
        }
        at += 1;
    }
}

fn add_values(text: &str, start: usize, end: usize, found: &mut Vec<Secret>) {
    let mut at = start;
    for cookie in text[start..end].split(';') {
        if let Some((name, value)) = cookie.split_once('=') {
            let from = at + name.len() + 1;
            let value = &value[..value.find(|c: char| c.is_whitespace() || c == '\\').unwrap_or(value.len())];
            if value.len() >= MIN_VALUE && value.is_ascii() && entropy(value) >= MIN_ENTROPY {
                found.push(Secret { range: from..from + value.len(), kind: KIND });
            }
        }
        at += cookie.len() + 1;
    }
}
