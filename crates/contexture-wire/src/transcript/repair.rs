//! Repairs JSON that agents write and parsers refuse.

use std::borrow::Cow;

/// A record as text: bytes that are not UTF-8 are replaced by `U+FFFD`.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The same JSON with every lone surrogate escape (`\ud83d` without its other half) replaced by `\ufffd`; `None` if
/// there is none.
///
/// Agents cut long output by UTF-16 units, which can leave half of a character at the end.
pub(super) fn without_lone_surrogates(json: &str) -> Option<String> {
    let mut mended: Option<String> = None;
    let (mut done, mut at) = (0, 0);
    while let Some(found) = json[at..].find('\\') {
        let escape = at + found;
        at = match unit_at(json, escape) {
            Some(0xD800..=0xDBFF) if matches!(unit_at(json, escape + ESCAPE_LEN), Some(0xDC00..=0xDFFF)) => {
                escape + 2 * ESCAPE_LEN
            }
            Some(0xD800..=0xDFFF) => {
                let mended = mended.get_or_insert_default();
                mended.push_str(&json[done..escape]);
                mended.push_str("\\ufffd");
                done = escape + ESCAPE_LEN;
                done
            }
            Some(_) => escape + ESCAPE_LEN,
            None => next_boundary(json, escape + 1),
        };
    }
    mended.map(|mut text| {
        text.push_str(&json[done..]);
        text
    })
}

/// The length of `\uXXXX`.
const ESCAPE_LEN: usize = 6;

/// The UTF-16 unit written as `\uXXXX` at a position.
fn unit_at(json: &str, at: usize) -> Option<u16> {
    let digits = json.as_bytes().get(at..at + ESCAPE_LEN)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The place after the character that a backslash escapes.
fn next_boundary(json: &str, at: usize) -> usize {
    at + json[at..].chars().next().map_or(0, char::len_utf8)
}
