//! Reads the usage from a response while it is passed on.

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
    is_too_long: bool,
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
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            match self.pending.is_empty() {
                true => self.line(&bytes[..end]),
                false => {
                    self.keep(&bytes[..end]);
                    let line = std::mem::take(&mut self.pending);
                    self.line(&line);
                }
            }
            self.is_too_long = false;
            bytes = &bytes[end + 1..];
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
        let Some(data) = line.strip_prefix(b"data:") else { return };
        let data = std::str::from_utf8(data).unwrap_or_default().trim();
        let ends =
            ["[DONE]", "\"message_stop\"", "\"response.completed\"", "\"response.incomplete\"", "\"response.failed\""];
        let start = &data[..data.floor_char_boundary(200)];
        self.has_ended |= ends.iter().any(|end| start.contains(end));
        if data.contains("\"usage\"") {
            self.read(data);
        }
    }

    fn read(&mut self, json: &str) {
        if let Ok(value) = serde_json::from_str::<Value>(json) {
            let mut usage = self.answered.usage.unwrap_or_default();
            if usage.take(&value) {
                self.answered.usage = Some(usage);
            }
            if let Some(id) = id_of(&value) {
                self.answered.id = Some(id.to_owned());
            }
            self.answered.diagnosis = diagnosis_of(&value).or(self.answered.diagnosis.take());
        }
    }

    /// Ends the response; returns what it reported about itself.
    pub fn finish(&mut self) -> Answered {
        let rest = std::mem::take(&mut self.pending);
        match self.is_stream {
            true => self.line(&rest),
            false => self.read(std::str::from_utf8(&rest).unwrap_or_default()),
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
