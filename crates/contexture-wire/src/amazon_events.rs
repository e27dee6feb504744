//! Events as Amazon frames them (`application/vnd.amazon.eventstream`), from chunks of bytes.
//!
//! From the public reference of event stream encoding: all numbers are big-endian; a message is its whole length and that
//! of its headers, four bytes each, a checksum of these, the headers, a payload, and a checksum of all. The payload of
//! Bedrock's events is JSON with the event of the model in Base64 under `bytes`. The checksums are not looked at: only
//! figures are read here, and the bytes themselves go on to the client.

use serde_json::Value;

/// The bytes of a message that are neither headers nor payload.
const FRAME_BYTES: usize = 16;

/// The bytes before the headers.
const PRELUDE_BYTES: usize = 12;

/// The longest message that is read.
const MAX_MESSAGE_BYTES: usize = 24 << 20;

/// Assembles events from the bytes of a response.
#[derive(Debug, Default)]
pub(super) struct AmazonEvents {
    bytes: Vec<u8>,
    /// Whether something was no message, so that nothing more can be found.
    is_lost: bool,
}

impl AmazonEvents {
    /// Processes bytes. `event` is called with the JSON of each event that they complete.
    pub(super) fn push(&mut self, bytes: &[u8], event: &mut impl FnMut(&str)) {
        if self.is_lost {
            return;
        }
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(prelude) = self.bytes.get(at..at + PRELUDE_BYTES) {
            let number = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|n| prelude[at + n])) as usize;
            let (total, headers) = (number(0), number(4));
            if !(FRAME_BYTES..=MAX_MESSAGE_BYTES).contains(&total) || headers > total - FRAME_BYTES {
                (self.is_lost, self.bytes) = (true, Vec::new());
                return;
            }
            let Some(message) = self.bytes.get(at..at + total) else { break };
            if let Some(text) = text_of(&message[PRELUDE_BYTES + headers..total - 4]) {
                event(&text);
            }
            at += total;
        }
        self.bytes.drain(..at);
    }
}

/// The JSON of the model's event in a payload; the payload itself if it wraps none.
fn text_of(payload: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(payload).ok()?;
    let value: Value = serde_json::from_str(text).ok()?;
    match value["bytes"].as_str() {
        Some(packed) => String::from_utf8(unpacked(packed)?).ok(),
        None => Some(text.to_owned()),
    }
}

/// The bytes that a text in Base64 is for.
fn unpacked(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits) = (0_u32, 0);
    for sign in text.trim_end_matches('=').bytes() {
        let value = match sign {
            b'A'..=b'Z' => sign - b'A',
            b'a'..=b'z' => sign - b'a' + 26,
            b'0'..=b'9' => sign - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with one header, as the reference describes it.
    fn message(payload: &str) -> Vec<u8> {
        let mut header = vec![11];
        header.extend(b":event-type\x07\x00\x05chunk");
        let mut bytes = Vec::new();
        bytes.extend(((FRAME_BYTES + header.len() + payload.len()) as u32).to_be_bytes());
        bytes.extend((header.len() as u32).to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(header);
        bytes.extend(payload.as_bytes());
        bytes.extend([0; 4]);
        bytes
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &[&str]) {
        for size in [bytes.len().max(1), 1, 7] {
            let (mut events, mut seen) = (AmazonEvents::default(), Vec::new());
            bytes.chunks(size).for_each(|bytes| events.push(bytes, &mut |text| seen.push(text.to_owned())));
            assert_eq!(seen, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn events_are_found_however_they_are_cut() {
        // `{"a":1}`, `{"b":"ä?>"}` and an event that wraps nothing.
        let packed = [r#"{"bytes":"eyJhIjoxfQ==","p":"abc"}"#, r#"{"bytes":"eyJiIjoiw6Q/PiJ9"}"#, r#"{"usage":{}}"#];
        let bytes: Vec<u8> = packed.iter().flat_map(|payload| message(payload)).collect();
        check(&bytes, &[r#"{"a":1}"#, r#"{"b":"ä?>"}"#, r#"{"usage":{}}"#]);
        check(&bytes[..bytes.len() - 1], &[r#"{"a":1}"#, r#"{"b":"ä?>"}"#]);
    }

    #[test]
    fn what_is_no_message_ends_the_reading_and_nothing_else() {
        let good = message(r#"{"bytes":"e30="}"#);
        for bad in [[0; 16].to_vec(), [0xff; 40].to_vec(), b"data: {}\n\ndata: {}\n\n".to_vec()] {
            check(&[good.clone(), bad, good.clone()].concat(), &["{}"]);
        }
        let mut long_headers = message("{}");
        long_headers[7] = 0xff;
        check(&[good.clone(), long_headers].concat(), &["{}"]);
        check(&[message("no json"), message(r#"{"bytes":"%%"}"#), good].concat(), &["{}"]);
    }
}
