//! How much of a body is text that a provider counts by its length.

use memchr::{memchr, memmem};

use crate::account::growth::BodyBytes;

/// Fields whose values say little for their length: encrypted reasoning, and the signatures of thinking.
const OPAQUE: [&[u8]; 4] =
    [b"\"encrypted_content\"", b"\"signature\"", b"\"thoughtSignature\"", b"\"thought_signature\""];

/// The bytes of a body: those of the values of such fields, and all others.
pub fn text_bytes(body: &[u8]) -> BodyBytes {
    let opaque: usize = OPAQUE
        .iter()
        .map(|field| memmem::find_iter(body, field).map(|at| value_bytes(&body[at + field.len()..])).sum::<usize>())
        .sum();
    BodyBytes { text: (body.len() - opaque) as u64, opaque: opaque as u64 }
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
        let expected = BodyBytes { text: body.len() as u64 - opaque, opaque };
        assert_eq!(text_bytes(body.as_bytes()), expected, "{body}");
    }

    #[test]
    fn values_that_say_little_are_left_out() {
        check(r#"{"type":"reasoning","encrypted_content":"0123456789"}"#, 10);
        check(r#"[{"signature" : "abc"},{"signature":"de"},{"signature":null}]"#, 5);
        check(r#"{"text":"he wrote \"signature\":\"abc\" there"}"#, 0);
        check(r#"{"signature""#, 0);
        check(r#"{"signature":"abc"#, 0);
        check("", 0);
    }
}
