//! Percent-encoding, as in addresses and in the keys of stores.

use std::fmt::Write;

/// Decodes a percent-encoded text; `None` if a `%` is not followed by two hexadecimal digits, or the result is not text.
///
/// ```
/// use contexture_core::percent::decoded;
/// assert_eq!(decoded("a%20b%C3%A4").as_deref(), Some("a bä"));
/// assert_eq!(decoded("50%"), None);
/// assert_eq!(decoded("%FF"), None);
/// ```
pub fn decoded(text: &str) -> Option<String> {
    let (bytes, is_whole) = bytes_of(text);
    String::from_utf8(bytes).ok().filter(|_| is_whole)
}

/// Decodes a percent-encoded text as browsers do: what is no encoding stays as it is.
///
/// ```
/// use contexture_core::percent::decoded_lossy;
/// assert_eq!(decoded_lossy("a%2Fb%20c%"), "a/b c%");
/// assert_eq!(decoded_lossy("%zz%C3%BC"), "%zzü");
/// ```
pub fn decoded_lossy(text: &str) -> String {
    String::from_utf8_lossy(&bytes_of(text).0).into_owned()
}

/// The decoded bytes, and whether every `%` began an encoding.
fn bytes_of(text: &str) -> (Vec<u8>, bool) {
    let (mut bytes, mut is_whole) = (Vec::with_capacity(text.len()), true);
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let code = after.first_chunk().filter(|_| *first == b'%');
        match code.and_then(|[high, low]| Some(digit(*high)? * 16 + digit(*low)?)) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                is_whole &= *first != b'%';
                bytes.push(*first);
                rest = after;
            }
        }
    }
    (bytes, is_whole)
}

/// Whether a byte needs no encoding anywhere in an address: ASCII letters, digits and `-._~`.
pub fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Percent-encodes the bytes that are not kept.
///
/// ```
/// use contexture_core::percent::{encoded, is_unreserved};
/// assert_eq!(encoded("a b/ä".as_bytes(), is_unreserved), "a%20b%2F%C3%A4");
/// ```
pub fn encoded(bytes: &[u8], is_kept: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte.is_ascii() && is_kept(byte) {
            true => encoded.push(char::from(byte)),
            false => push_encoded(&mut encoded, byte),
        }
    }
    encoded
}

/// Adds the encoding of a byte.
pub(crate) fn push_encoded(encoded: &mut String, byte: u8) {
    write!(encoded, "%{byte:02X}").expect("writing to a String cannot fail");
}
