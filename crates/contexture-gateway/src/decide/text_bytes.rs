//! How much of a body is text that a provider counts by its length.

use memchr::{memchr, memchr_iter, memmem};

use crate::account::growth::BodyBytes;

/// Fields whose values say little for their length: encrypted reasoning, and the signatures of thinking.
const OPAQUE: [&[u8]; 4] =
    [b"\"encrypted_content\"", b"\"signature\"", b"\"thoughtSignature\"", b"\"thought_signature\""];

/// The bytes of a body: those of the values of such fields, and all others. What only JSON needs to write a sign is left
/// out, since models are given the text.
pub fn text_bytes(body: &[u8]) -> BodyBytes {
    let opaque: usize = OPAQUE
        .iter()
        .map(|field| memmem::find_iter(body, field).map(|at| value_bytes(&body[at + field.len()..])).sum::<usize>())
        .sum();
    BodyBytes { text: body.len().saturating_sub(opaque + escaping_bytes(body)) as u64, opaque: opaque as u64 }
}

/// How many bytes fewer a body would have with every sign written as itself.
fn escaping_bytes(body: &[u8]) -> usize {
    let (mut bytes, mut end) = (0, 0);
    for at in memchr_iter(b'\\', body) {
        if at < end {
            continue;
        }
        let is_number = body.get(at + 1) == Some(&b'u');
        (bytes, end) = if is_number { (bytes + 4, at + 6) } else { (bytes + 1, at + 2) };
    }
    bytes
}

/// The bytes of the text after the name of a field; 0 if it is no text.
fn value_bytes(rest: &[u8]) -> usize {
    let start = rest.iter().position(|byte| !b" \t\r\n:".contains(byte)).unwrap_or(rest.len());
    match rest.get(start) {
        // Such values have no quotes inside.
        Some(b'"') => memchr(b'"', &rest[start + 1..]).unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, opaque: u64) {
        check_escaped(body, opaque, 0);
    }

    #[track_caller]
    fn check_escaped(body: &str, opaque: u64, escaping: u64) {
        let expected = BodyBytes { text: body.len() as u64 - opaque - escaping, opaque };
        assert_eq!(text_bytes(body.as_bytes()), expected, "{body}");
    }

    #[test]
    fn values_that_say_little_are_left_out() {
        check(r#"{"type":"reasoning","encrypted_content":"0123456789"}"#, 10);
        check(r#"[{"signature" : "abc"},{"signature":"de"},{"signature":null}]"#, 5);
        check_escaped(r#"{"text":"he wrote \"signature\":\"abc\" there"}"#, 0, 4);
        check(r#"{"signature""#, 0);
        check(r#"{"signature":"abc"#, 0);
        check("", 0);
    }

    #[test]
    fn what_only_json_needs_is_left_out() {
        check_escaped(r#"{"text":"a\nb\\n \u001b[0m \u2713"}"#, 0, 10);
        check_escaped("\\", 0, 1);
        check_escaped(r"\u00", 0, 4);
        check_escaped(r"\u", 0, 2);
    }
}
