//! Parses server-sent events from chunks of bytes.

use super::error::{ClientError, malformed};

/// The largest event that is read.
const MAX_EVENT_BYTES: usize = 32 << 20;

/// Assembles events from the bytes of a response.
///
/// Lines end in a line feed, a carriage return or both; an empty line ends an event. Comments, names and ids are
/// dropped, because the formats read here repeat the name in the data.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    /// The bytes since the last line end.
    line: Vec<u8>,
    /// The data of the event so far.
    data: String,
    has_data: bool,
    /// Whether the last byte was a carriage return, to which a line feed may belong.
    is_after_return: bool,
}

impl SseParser {
    /// Processes bytes and calls `event` with the data of each completed event.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        mut event: impl FnMut(&str) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        for &byte in bytes {
            let is_second = std::mem::take(&mut self.is_after_return) && byte == b'\n';
            match byte {
                b'\n' if is_second => {}
                b'\n' | b'\r' => {
                    self.is_after_return = byte == b'\r';
                    self.end_line(&mut event)?;
                }
                _ if self.line.len() + self.data.len() >= MAX_EVENT_BYTES => {
                    return Err(malformed("an event of the stream is too large"));
                }
                _ => self.line.push(byte),
            }
        }
        Ok(())
    }

    /// Ends the stream. An event without its final line end counts too, because some servers leave the empty line out.
    pub(super) fn finish(&mut self, mut event: impl FnMut(&str) -> Result<(), ClientError>) -> Result<(), ClientError> {
        if !self.line.is_empty() {
            self.end_line(&mut event)?;
        }
        self.end_event(&mut event)
    }

    fn end_line(&mut self, event: &mut impl FnMut(&str) -> Result<(), ClientError>) -> Result<(), ClientError> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.end_event(event);
        }
        let Some(data) = line.strip_prefix(b"data:") else { return Ok(()) };
        let data = data.strip_prefix(b" ").unwrap_or(data);
        let data = std::str::from_utf8(data).map_err(|_| malformed("an event of the stream is not text"))?;
        if self.has_data {
            self.data.push('\n');
        }
        self.data.push_str(data);
        self.has_data = true;
        Ok(())
    }

    fn end_event(&mut self, event: &mut impl FnMut(&str) -> Result<(), ClientError>) -> Result<(), ClientError> {
        let data = std::mem::take(&mut self.data);
        match std::mem::take(&mut self.has_data) {
            true => event(&data),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        let mut take = |data: &str| {
            events.push(data.to_owned());
            Ok(())
        };
        for piece in pieces {
            parser.push(piece, &mut take).unwrap();
        }
        parser.finish(&mut take).unwrap();
        events
    }

    #[test]
    fn events_are_read_in_every_form() {
        let stream =
            ": hello\nevent: a\ndata: 1\n\ndata:2\r\ndata: more\r\n\r\nid: 7\rdata: é\r\rretry: 3\n\ndata: last";
        assert_eq!(events(&[stream.as_bytes()]), ["1", "2\nmore", "é", "last"]);
    }

    #[test]
    fn an_event_that_is_too_large_is_refused() {
        let mut parser = SseParser::default();
        let piece = vec![b'x'; MAX_EVENT_BYTES];
        assert!(parser.push(&piece, |_| Ok(())).is_ok());
        assert!(parser.push(b"x", |_| Ok(())).is_err());
    }

    proptest! {
        #[test]
        fn where_bytes_are_split_does_not_matter(
            lines in prop::collection::vec("(data: ?|event: |: |)[a-z日é]{0,6}(\r\n|\n|\r)", 0..20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let bytes = lines.concat().into_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.sort_unstable();
            let (mut pieces, mut start) = (Vec::new(), 0);
            for end in at {
                pieces.push(&bytes[start..end]);
                start = end;
            }
            pieces.push(&bytes[start..]);
            prop_assert_eq!(events(&pieces), events(&[&bytes]));
        }
    }
}
