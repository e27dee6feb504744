//! Reads the usage from a response while it is passed on.

use memchr::memchr2;
use serde_json::Value;

use super::diagnosis::{diagnosis_of, id_of};
use super::usage::Usage;

/// The longest response, or line of one, that is read.
const MAX_BYTES: usize = 32 << 20;

/// What a response reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// Its usage.
    pub usage: Option<Usage>,
    /// Its id.
    pub id: Option<String>,
    /// The provider's diagnosis of its cache, if it was asked for one.
    pub diagnosis: Option<String>,
}

/// Reads a response while it is passed on: one JSON value, or a stream of events.
#[derive(Debug, Default)]
pub struct AnswerReader {
    is_stream: bool,
    /// The bytes since the last end of a line.
    pending: Vec<u8>,
    /// The lines of data of the current event.
    data: String,
    is_too_long: bool,
    /// Whether the last byte was a carriage return, with which a line feed would be one end of a line.
    is_after_return: bool,
    answered: Answered,
    has_ended: bool,
    bytes: u64,
}

impl AnswerReader {
    /// A reader of events (`text/event-stream`) or of one value.
    pub fn new(is_stream: bool) -> Self {
        Self { is_stream, ..Self::default() }
    }

    /// Adds the next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if !self.is_stream {
            return self.keep(bytes);
        }
        if let Some(last) = bytes.last() {
            if self.is_after_return && bytes[0] == b'\n' {
                bytes = &bytes[1..];
            }
            self.is_after_return = *last == b'\r';
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            match self.pending.is_empty() {
                true => self.line(&bytes[..end]),
                false => {
                    self.keep(&bytes[..end]);
                    let line = std::mem::take(&mut self.pending);
                    self.line(&line);
                }
            }
            self.is_too_long = false;
            let length = if bytes[end..].starts_with(b"\r\n") { 2 } else { 1 };
            bytes = &bytes[end + length..];
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.is_too_long || self.pending.len() + bytes.len() > MAX_BYTES {
            self.pending = Vec::new();
            self.is_too_long = true;
            return;
        }
        self.pending.extend_from_slice(bytes);
    }

    fn line(&mut self, line: &[u8]) {
        if line.is_empty() {
            return self.end_event();
        }
        let Some(data) = line.strip_prefix(b"data:") else { return };
        let data = std::str::from_utf8(data).unwrap_or_default().trim();
        if self.data.len() + data.len() > MAX_BYTES {
            return;
        }
        if !self.data.is_empty() {
            self.data.push('\n');
        }
        self.data.push_str(data);
    }

    fn end_event(&mut self) {
        let data = std::mem::take(&mut self.data);
        let ends =
            ["[DONE]", "\"message_stop\"", "\"response.completed\"", "\"response.incomplete\"", "\"response.failed\""];
        let start = |line: &str| line[..line.floor_char_boundary(200)].to_owned();
        self.has_ended |= data.lines().map(start).any(|start| ends.iter().any(|end| start.contains(end)));
        // Some providers leave out the empty lines between events.
        if data.contains("\"usage\"") && !self.read(&data) {
            data.lines().filter(|line| line.contains("\"usage\"")).for_each(|line| {
                self.read(line);
            });
        }
    }

    /// Returns whether it is a JSON value.
    fn read(&mut self, json: &str) -> bool {
        let value = serde_json::from_str::<Value>(json);
        if let Ok(value) = &value {
            let mut usage = self.answered.usage.unwrap_or_default();
            if usage.take(value) {
                self.answered.usage = Some(usage);
            }
            if let Some(id) = id_of(value) {
                self.answered.id = Some(id.to_owned());
            }
            self.answered.diagnosis = diagnosis_of(value).or(self.answered.diagnosis.take());
        }
        value.is_ok()
    }

    /// Ends the response; returns what it reported about itself.
    pub fn finish(&mut self) -> Answered {
        let rest = std::mem::take(&mut self.pending);
        match self.is_stream {
            true => {
                self.line(&rest);
                self.end_event();
            }
            false => {
                self.read(std::str::from_utf8(&rest).unwrap_or_default());
            }
        }
        self.answered.clone()
    }

    /// Whether the stream has reported its end.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a stream whole, and byte by byte.
    #[track_caller]
    fn check(stream: &str, output: u64, has_ended: bool) {
        for size in [stream.len(), 1, 7] {
            let mut reader = AnswerReader::new(true);
            stream.as_bytes().chunks(size).for_each(|bytes| reader.push(bytes));
            let usage = reader.finish().usage.unwrap_or_default();
            assert_eq!((usage.output, reader.has_ended()), (output, has_ended), "{stream:?} in pieces of {size}");
        }
    }

    #[test]
    fn usage_is_read_however_events_are_written() {
        let usage = "{\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":9}}";
        check(&format!("data: {usage}\n\ndata: [DONE]\n\n"), 9, true);
        check(&format!("data: {usage}\r\n\r\ndata: [DONE]\r\n\r\n"), 9, true);
        check(&format!("data: {usage}\r\rdata: [DONE]\r\r"), 9, true);
        check(&format!("data:{usage}\ndata: [DONE]"), 9, true);
        check(
            "event: x\ndata: {\"usage\":\ndata: {\"prompt_tokens\":3,\ndata: \"completion_tokens\":9}}\n\n",
            9,
            false,
        );
    }
}
