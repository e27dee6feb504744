//! Percent-encoding, as in addresses and in the keys of stores.

/// Decodes a percent-encoded text; `None` if a `%` is not followed by two hexadecimal digits, or the result is not text.
///
/// ```
/// use contexture_core::percent::decoded;
/// assert_eq!(decoded("a%20b%C3%A4").as_deref(), Some("a bä"));
/// assert_eq!(decoded("50%"), None);
/// assert_eq!(decoded("%FF"), None);
/// ```
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        decoded.push(match byte {
            b'%' => u8::try_from(digit(bytes.next())? * 16 + digit(bytes.next())?).ok()?,
            plain => plain,
        });
    }
    String::from_utf8(decoded).ok()
}
