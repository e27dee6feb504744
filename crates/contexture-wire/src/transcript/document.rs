//! A recording that is one JSON document: a list of messages, or an object with one.
//!
//! The document is split into its messages by counting brackets and each is parsed separately, so that one broken
//! message does not affect the rest and a long document is never held in memory.

use std::io::{self, BufRead};

use super::reading::{MAX_LINE_BYTES, ReadError, RecordingReading};

/// Reads the messages of a document one by one. Everything before a place that is not JSON is used.
pub(super) fn read(reader: impl BufRead, reading: &mut RecordingReading<'_>) -> Result<(), ReadError> {
    let mut cutter = Cutter { reader, line: 1 };
    cutter.skip_mark()?;
    let outcome = match cutter.peek_token()? {
        Some(b'[') => list(&mut cutter, reading)?,
        _ => object(&mut cutter, reading)?,
    };
    if let PartEnd::Cut(reason) = outcome {
        reading.report(cutter.line, reason.to_owned());
    } else if cutter.peek_token()?.is_some() {
        reading.report(cutter.line, "only the first document of a file is read".to_owned());
    }
    Ok(())
}

/// How a part of the document ended.
enum PartEnd {
    Whole,
    /// It cannot be read further, for this reason.
    Cut(&'static str),
}

const ENDS_TOO_SOON: PartEnd = PartEnd::Cut("the document ends before it is complete");
const NOT_JSON: PartEnd = PartEnd::Cut("not JSON from here on");

/// Reads `[message, …]`.
fn list(cutter: &mut Cutter<impl BufRead>, reading: &mut RecordingReading<'_>) -> Result<PartEnd, ReadError> {
    cutter.skip(1);
    let mut element = Vec::new();
    loop {
        match cutter.peek_token()? {
            None => return Ok(ENDS_TOO_SOON),
            Some(b']') => {
                cutter.skip(1);
                return Ok(PartEnd::Whole);
            }
            Some(b',') => cutter.skip(1),
            Some(b'}' | b':') => return Ok(NOT_JSON),
            Some(_) => {
                let line = cutter.line;
                element.clear();
                match cutter.value(Some(&mut element))? {
                    Value::Whole => reading.record(line, &element)?,
                    Value::TooLong => reading.report(line, format!("longer than {MAX_LINE_BYTES} bytes")),
                    Value::Cut => return Ok(ENDS_TOO_SOON),
                }
            }
        }
    }
}

/// Reads `{…, "messages": [message, …], …}`.
fn object(cutter: &mut Cutter<impl BufRead>, reading: &mut RecordingReading<'_>) -> Result<PartEnd, ReadError> {
    cutter.skip(1);
    let mut key = Vec::new();
    let mut has_messages = false;
    loop {
        match cutter.peek_token()? {
            None => return Ok(ENDS_TOO_SOON),
            Some(b'}') => {
                cutter.skip(1);
                return Ok(PartEnd::Whole);
            }
            Some(b',') => cutter.skip(1),
            Some(b'"') => {
                key.clear();
                cutter.value(Some(&mut key))?;
                if cutter.peek_token()? != Some(b':') {
                    return Ok(NOT_JSON);
                }
                cutter.skip(1);
                match member(&key, has_messages, cutter, reading)? {
                    PartEnd::Whole => has_messages |= key == MESSAGES_KEY,
                    cut => return Ok(cut),
                }
            }
            Some(_) => return Ok(NOT_JSON),
        }
    }
}

const MESSAGES_KEY: &[u8] = b"\"messages\"";
const SYSTEM_KEY: &[u8] = b"\"system\"";

/// Reads the value of one key of the document.
fn member(
    key: &[u8],
    has_messages: bool,
    cutter: &mut Cutter<impl BufRead>,
    reading: &mut RecordingReading<'_>,
) -> Result<PartEnd, ReadError> {
    let Some(first) = cutter.peek_token()? else { return Ok(ENDS_TOO_SOON) };
    if key == MESSAGES_KEY && first == b'[' {
        return list(cutter, reading);
    }
    let line = cutter.line;
    let mut system = Vec::new();
    let value = cutter.value((key == SYSTEM_KEY).then_some(&mut system))?;
    match value {
        Value::Cut => return Ok(ENDS_TOO_SOON),
        Value::Whole if key == SYSTEM_KEY && has_messages => {
            reading.report(line, "the system prompt comes after the messages and is left out".to_owned());
        }
        Value::Whole if key == SYSTEM_KEY => reading.system(line, &system),
        Value::Whole | Value::TooLong => {}
    }
    Ok(PartEnd::Whole)
}

/// How a value ended.
enum Value {
    Whole,
    /// Longer than the limit; skipped.
    TooLong,
    /// Ended by the end of the file.
    Cut,
}

/// Splits JSON into values without parsing them.
struct Cutter<R> {
    reader: R,
    /// The current line, counted from 1.
    line: u64,
}

/// The state of a walk through a value.
#[derive(Default)]
struct ValueWalk {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    has_begun: bool,
}

impl<R: BufRead> Cutter<R> {
    fn skip_mark(&mut self) -> io::Result<()> {
        if self.reader.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
            self.reader.consume(3);
        }
        Ok(())
    }

    /// Returns the next byte that is not white space, without consuming it.
    fn peek_token(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let space = buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let token = buffer.get(space).copied();
            self.line += count_lines(&buffer[..space]);
            self.reader.consume(space);
            if token.is_some() {
                return Ok(token);
            }
        }
    }

    /// Consumes bytes that were seen by `peek_token`.
    fn skip(&mut self, count: usize) {
        self.reader.consume(count);
    }

    /// Consumes one value and copies it to `copy`.
    fn value(&mut self, mut copy: Option<&mut Vec<u8>>) -> io::Result<Value> {
        let mut walk = ValueWalk::default();
        let mut is_too_long = false;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                // A bare number may end with the file; anything else is cut.
                return Ok(if walk.has_begun && walk.depth == 0 && !walk.in_string {
                    Value::Whole
                } else {
                    Value::Cut
                });
            }
            let end = walk.end_in(buffer);
            let used = &buffer[..end.unwrap_or(buffer.len())];
            self.line += count_lines(used);
            if let Some(copy) = copy.as_deref_mut() {
                is_too_long |= copy.len() + used.len() > MAX_LINE_BYTES;
                if !is_too_long {
                    copy.extend_from_slice(used);
                }
            }
            let count = used.len();
            self.reader.consume(count);
            if end.is_some() {
                return Ok(if is_too_long { Value::TooLong } else { Value::Whole });
            }
        }
    }
}

impl ValueWalk {
    /// Continues through `buffer` and returns the position after the end of the value, if it ends there.
    fn end_in(&mut self, buffer: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < buffer.len() {
            if self.in_string {
                at += self.pass_string(&buffer[at..]);
                if !self.in_string && self.depth == 0 {
                    return Some(at);
                }
                continue;
            }
            match buffer[at] {
                b'"' if self.has_begun && self.depth == 0 => return Some(at),
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 0 => return Some(at),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => return Some(at),
                _ => {}
            }
            self.has_begun = true;
            at += 1;
        }
        None
    }

    /// Consumes the rest of a string and returns how many bytes it had.
    fn pass_string(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        if std::mem::take(&mut self.is_escaped) {
            at = 1;
        }
        while let Some(found) = bytes[at.min(bytes.len())..].iter().position(|&byte| byte == b'"' || byte == b'\\') {
            at += found + 1;
            if bytes[at - 1] == b'"' {
                self.in_string = false;
                return at;
            }
            if at == bytes.len() {
                self.is_escaped = true;
                return at;
            }
            at += 1;
        }
        bytes.len()
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}
