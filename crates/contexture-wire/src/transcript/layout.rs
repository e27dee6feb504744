//! Whether a recording has one record per line or is one document.

use std::io::{self, BufRead, Read};

/// How records are laid out in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordLayout {
    /// One record per line.
    Lines,
    /// One document for all of them.
    Document,
}

/// Bytes that are examined first to recognise the layout.
const FIRST_LOOK_BYTES: usize = 64 << 10;

/// Bytes that are examined when the first ones are not enough.
const LONGEST_LOOK_BYTES: usize = 8 << 20;

/// Recognises the layout by the beginning of a file, and returns the bytes that were read.
pub(super) fn layout(reader: &mut impl BufRead) -> io::Result<(RecordLayout, Vec<u8>)> {
    let mut prefix = Vec::new();
    let mut limit = FIRST_LOOK_BYTES;
    loop {
        let wanted = (limit - prefix.len()) as u64;
        reader.by_ref().take(wanted).read_to_end(&mut prefix)?;
        let is_all = prefix.len() < limit || limit >= LONGEST_LOOK_BYTES;
        match look(&prefix) {
            Look::Is(layout) => return Ok((layout, prefix)),
            Look::Unclear if is_all => return Ok((RecordLayout::Lines, prefix)),
            Look::Unclear => limit *= 2,
        }
    }
}

enum Look {
    Is(RecordLayout),
    Unclear,
}

/// What the beginning of a file says about its layout.
///
/// A document is a list of objects, or an object that has `messages` or is spread over lines. A record with a type or a
/// role, and without `messages`, is alone on its line.
fn look(prefix: &[u8]) -> Look {
    let mut scan = Scan { bytes: prefix.strip_prefix(b"\xef\xbb\xbf").unwrap_or(prefix), at: 0 };
    scan.skip_space();
    match scan.next() {
        Some(b'[') => look_at_list(scan),
        Some(b'{') => look_at_object(scan),
        Some(_) => Look::Is(RecordLayout::Lines),
        None => Look::Unclear,
    }
}

/// A bracket may also begin a line of a log.
fn look_at_list(mut scan: Scan<'_>) -> Look {
    scan.skip_space();
    match scan.next() {
        Some(b'{') => Look::Is(RecordLayout::Document),
        Some(_) => Look::Is(RecordLayout::Lines),
        None => Look::Unclear,
    }
}

fn look_at_object(mut scan: Scan<'_>) -> Look {
    let (mut depth, mut is_record) = (1, false);
    while let Some(byte) = scan.next() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return Look::Is(RecordLayout::Lines),
            b'}' | b']' => depth -= 1,
            b'\n' => return Look::Is(scan.layout_by_next_line()),
            b'"' => {
                let Some(text) = scan.rest_of_string() else { break };
                match text {
                    b"messages" if depth == 1 && scan.is_key_of_list() => return Look::Is(RecordLayout::Document),
                    b"type" | b"role" if depth == 1 => is_record = true,
                    _ if text.contains(&b'\n') => return Look::Is(RecordLayout::Lines),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    if is_record { Look::Is(RecordLayout::Lines) } else { Look::Unclear }
}

/// A walk over the tokens of JSON.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn skip_space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// The text up to the closing quote, which is skipped.
    fn rest_of_string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        loop {
            match self.next()? {
                b'"' => return self.bytes.get(start..self.at - 1),
                b'\\' => self.at += 1,
                _ => {}
            }
        }
    }

    /// The layout if an object continues after a line end: a document, unless the next line begins with an object. Then
    /// the first line was a truncated record.
    fn layout_by_next_line(&self) -> RecordLayout {
        match self.bytes.get(self.at) {
            Some(b'{') => RecordLayout::Lines,
            _ => RecordLayout::Document,
        }
    }

    /// Whether a colon and the beginning of a list follow.
    fn is_key_of_list(&self) -> bool {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let mut rest = rest.iter().filter(|byte| !byte.is_ascii_whitespace());
        rest.next() == Some(&b':') && rest.next() == Some(&b'[')
    }
}
