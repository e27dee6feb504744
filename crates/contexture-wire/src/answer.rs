//! Reads the usage from a response while it is passed on.

use std::convert::Infallible;

use serde_json::Value;

use super::amazon_events::AmazonEvents;
use super::answer_text::AnswerText;
use super::diagnosis::{diagnosis_of, id_of};
use super::editing::{AppliedEdit, edits_of};
use super::events::{BadEvent, EventParser};
use super::usage::Usage;

/// The longest response that is read, unless it is a stream.
const MAX_BYTES: usize = 32 << 20;

/// The fields in which providers report the usage.
const USAGES: [&str; 3] = ["\"usage\"", "\"usageMetadata\"", "\"usage_metadata\""];

/// What a response reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// Its usage.
    pub usage: Option<Usage>,
    /// Its id.
    pub id: Option<String>,
    /// The provider's diagnosis of its cache, if it was asked for one.
    pub diagnosis: Option<String>,
    /// What the provider did to the window by itself.
    pub edits: Vec<AppliedEdit>,
    /// Its text, if it was to be read and ends the turn.
    pub said: Option<String>,
}

/// Reads a response while it is passed on: one JSON value, or a stream of events.
#[derive(Debug, Default)]
pub struct AnswerReader {
    /// `None` for one JSON value.
    events: Option<EventParser>,
    /// In place of both, for events as Amazon frames them.
    amazon: Option<AmazonEvents>,
    /// The JSON value so far.
    whole: Vec<u8>,
    is_too_long: bool,
    reported: Reported,
    bytes: u64,
}

/// What was read so far.
#[derive(Debug, Default)]
struct Reported {
    answered: Answered,
    has_ended: bool,
    /// `None` if its text is not read.
    text: Option<AnswerText>,
}

impl AnswerReader {
    /// A reader of events (`text/event-stream`) or of one value.
    pub fn new(is_stream: bool) -> Self {
        Self { events: is_stream.then(EventParser::default), ..Self::default() }
    }

    /// A reader of events as Amazon frames them (`application/vnd.amazon.eventstream`).
    pub fn of_amazon() -> Self {
        Self { amazon: Some(AmazonEvents::default()), ..Self::default() }
    }

    /// Reads the text of the response too.
    pub fn with_text(mut self) -> Self {
        self.reported.text = Some(AnswerText::default());
        self
    }

    /// Adds the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Self { amazon: Some(amazon), reported, .. } = self {
            return amazon.push(bytes, &mut |data| {
                let Ok(()) = reported.event(Ok(data));
            });
        }
        let Self { events: Some(events), reported, .. } = self else { return self.keep(bytes) };
        let Ok(()) = events.push(bytes, &mut |data| reported.event(data));
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.is_too_long || self.whole.len() + bytes.len() > MAX_BYTES {
            self.whole = Vec::new();
            self.is_too_long = true;
            return;
        }
        self.whole.extend_from_slice(bytes);
    }

    /// Ends the response; returns what it reported about itself.
    pub fn finish(&mut self) -> Answered {
        let Self { events, reported, .. } = self;
        match events {
            Some(events) => {
                let Ok(()) = events.finish(&mut |data| reported.event(data));
            }
            None if self.amazon.is_some() => {}
            None => reported.whole(&std::mem::take(&mut self.whole)),
        }
        self.reported.answered.said = self.reported.text.as_mut().and_then(AnswerText::finish);
        self.reported.answered.clone()
    }

    /// Whether the stream has reported its end.
    pub fn has_ended(&self) -> bool {
        self.reported.has_ended
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Reported {
    /// Reads the data of an event. What cannot be read reports nothing.
    fn event(&mut self, data: Result<&str, BadEvent>) -> Result<(), Infallible> {
        let Ok(data) = data else { return Ok(()) };
        let ends =
            ["[DONE]", "\"message_stop\"", "\"response.completed\"", "\"response.incomplete\"", "\"response.failed\""];
        let start = |line: &str| line[..line.floor_char_boundary(200)].to_owned();
        self.has_ended |= data.lines().map(start).any(|start| ends.iter().any(|end| start.contains(end)));
        // Some providers leave out the empty lines between events.
        let has_usage = |text: &str| USAGES.iter().any(|name| text.contains(name));
        if (self.text.is_some() || has_usage(data)) && !self.read(data) {
            data.lines().filter(|line| has_usage(line)).for_each(|line| {
                self.read(line);
            });
        }
        Ok(())
    }

    /// Reads a response that is no stream of events. It may be a list of pieces, of which the last may be cut off.
    fn whole(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let Some(mut rest) = text.trim_start().strip_prefix('[') else {
            self.read(&text);
            return;
        };
        loop {
            rest = rest.trim_start_matches(|sign: char| sign == ',' || sign.is_whitespace());
            let mut pieces = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            let Some(Ok(piece)) = pieces.next() else { return };
            rest = &rest[pieces.byte_offset()..];
            self.take(&piece);
        }
    }

    /// Returns whether it is a JSON value.
    fn read(&mut self, json: &str) -> bool {
        let value = serde_json::from_str::<Value>(json);
        if let Ok(value) = &value {
            self.take(value);
        }
        value.is_ok()
    }

    fn take(&mut self, value: &Value) {
        if let Some(text) = &mut self.text {
            text.take(value);
        }
        let mut usage = self.answered.usage.unwrap_or_default();
        if usage.take(value) {
            self.answered.usage = Some(usage);
        }
        if let Some(id) = id_of(value) {
            self.answered.id = Some(id.to_owned());
        }
        let edits = edits_of(value);
        if !edits.is_empty() {
            self.answered.edits = edits;
        }
        self.answered.diagnosis = diagnosis_of(value).or(self.answered.diagnosis.take());
        // Gemini has no event for the end: its last piece says why the model stopped.
        let places = [value, &value["response"]];
        let stops = |place: &&Value| !place["candidates"][0]["finishReason"].is_null();
        self.has_ended |= places.iter().any(stops);
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
