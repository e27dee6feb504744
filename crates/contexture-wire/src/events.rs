//! Server-sent events, from chunks of bytes.
//!
//! The format is that of the HTML standard, section "Parsing an event stream".

use memchr::memchr2;

/// The largest event that is read.
const MAX_EVENT_BYTES: usize = 32 << 20;

/// Why an event cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadEvent {
    /// It has too many bytes. The rest of it is skipped.
    #[error("an event of the stream is too large")]
    TooLarge,
    /// A line of it is not UTF-8, and is skipped.
    #[error("an event of the stream is not text")]
    NotText,
}

/// Assembles events from the bytes of a response.
///
/// Lines end in a line feed, a carriage return or both; an empty line ends an event. Comments, names and ids are
/// dropped, because the formats read here repeat the name in the data.
///
/// ```
/// use contexture_wire::EventParser;
///
/// let (mut parser, mut events) = (EventParser::default(), Vec::new());
/// parser.push(b"event: word\ndata: one\n\ndata: tw", &mut |data| data.map(|data| events.push(data.to_owned())))?;
/// parser.push(b"o\n\n", &mut |data| data.map(|data| events.push(data.to_owned())))?;
/// assert_eq!(events, ["one", "two"]);
/// # Ok::<(), contexture_wire::BadEvent>(())
/// ```
#[derive(Debug, Default)]
pub struct EventParser {
    /// The bytes since the last line end.
    line: Vec<u8>,
    /// The data of the event so far.
    data: String,
    has_data: bool,
    /// Whether the event is too large, so that the rest of it is skipped.
    is_too_large: bool,
    /// Whether the last byte was a carriage return, to which a line feed may belong.
    is_after_return: bool,
}

impl EventParser {
    /// Processes bytes. `event` is called with the data of each event that they complete, and with what cannot be read;
    /// the first error that it returns ends the processing.
    ///
    /// # Errors
    /// What `event` returned.
    pub fn push<E>(
        &mut self,
        mut bytes: &[u8],
        event: &mut impl FnMut(Result<&str, BadEvent>) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(last) = bytes.last() {
            if self.is_after_return && bytes[0] == b'\n' {
                bytes = &bytes[1..];
            }
            self.is_after_return = *last == b'\r';
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            if self.line.is_empty() {
                self.end_line(&bytes[..end], event)?;
            } else {
                self.keep(&bytes[..end], event)?;
                let line = std::mem::take(&mut self.line);
                self.end_line(&line, event)?;
            }
            let length = if bytes[end..].starts_with(b"\r\n") { 2 } else { 1 };
            bytes = &bytes[end + length..];
        }
        self.keep(bytes, event)
    }

    /// Ends the stream. An event without its final line end counts too, because some servers leave the empty line out.
    ///
    /// # Errors
    /// What `event` returned.
    pub fn finish<E>(&mut self, event: &mut impl FnMut(Result<&str, BadEvent>) -> Result<(), E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.end_line(&line, event)?;
        }
        self.end_event(event)
    }

    /// Keeps a part of a line.
    fn keep<E>(
        &mut self,
        bytes: &[u8],
        event: &mut impl FnMut(Result<&str, BadEvent>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.has_room(bytes.len(), event)? {
            self.line.extend_from_slice(bytes);
        } else if !bytes.is_empty() {
            // Something must be there, so that the end of this line is not mistaken for an empty line.
            self.line = b":".to_vec();
        }
        Ok(())
    }

    /// Whether the event may have so many more bytes.
    fn has_room<E>(
        &mut self,
        bytes: usize,
        event: &mut impl FnMut(Result<&str, BadEvent>) -> Result<(), E>,
    ) -> Result<bool, E> {
        if !self.is_too_large && self.line.len() + self.data.len() + bytes > MAX_EVENT_BYTES {
            self.is_too_large = true;
            (self.data, self.has_data) = (String::new(), false);
            event(Err(BadEvent::TooLarge))?;
        }
        Ok(!self.is_too_large)
    }

    fn end_line<E>(
        &mut self,
        line: &[u8],
        event: &mut impl FnMut(Result<&str, BadEvent>) -> Result<(), E>,
    ) -> Result<(), E> {
        if line.is_empty() {
            return self.end_event(event);
        }
        let Some(data) = line.strip_prefix(b"data:") else { return Ok(()) };
        if !self.has_room(data.len(), event)? {
            return Ok(());
        }
        let Ok(data) = std::str::from_utf8(data.strip_prefix(b" ").unwrap_or(data)) else {
            return event(Err(BadEvent::NotText));
        };
        if self.has_data {
            self.data.push('\n');
        }
        self.data.push_str(data);
        self.has_data = true;
        Ok(())
    }

    fn end_event<E>(&mut self, event: &mut impl FnMut(Result<&str, BadEvent>) -> Result<(), E>) -> Result<(), E> {
        self.is_too_large = false;
        let data = std::mem::take(&mut self.data);
        match std::mem::take(&mut self.has_data) {
            true => event(Ok(&data)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<Result<String, BadEvent>> {
        let (mut parser, mut events) = (EventParser::default(), Vec::new());
        let mut take = |data: Result<&str, BadEvent>| {
            events.push(data.map(str::to_owned));
            Ok::<(), BadEvent>(())
        };
        for piece in pieces {
            parser.push(piece, &mut take).unwrap();
        }
        parser.finish(&mut take).unwrap();
        events
    }

    #[track_caller]
    fn check(stream: &[u8], expected: &[Result<&str, BadEvent>]) {
        let expected: Vec<_> = expected.iter().map(|data| data.map(str::to_owned)).collect();
        assert_eq!(events(&[stream]), expected);
    }

    #[test]
    fn events_are_read_in_every_form() {
        let stream =
            ": hello\nevent: a\ndata: 1\n\ndata:2\r\ndata: more\r\n\r\nid: 7\rdata: é\r\rretry: 3\n\ndata: last";
        check(stream.as_bytes(), &[Ok("1"), Ok("2\nmore"), Ok("é"), Ok("last")]);
        check(b"data:\n\ndata: \n\ndata:  x \n\n", &[Ok(""), Ok(""), Ok(" x ")]);
        check(b"database: no\ndata\n\n", &[]);
    }

    #[test]
    fn what_cannot_be_read_is_told_and_the_rest_is_read() {
        check(b"data: \xff\ndata: 1\n\ndata: 2\n\n", &[Err(BadEvent::NotText), Ok("1"), Ok("2")]);
        let large = [b"data: ".as_slice(), &vec![b'x'; MAX_EVENT_BYTES], b"\ndata: tail\n\ndata: next\n\n"].concat();
        check(&large, &[Err(BadEvent::TooLarge), Ok("next")]);
        let pieces: Vec<&[u8]> = large.chunks(1 << 20).collect();
        assert_eq!(events(&pieces), [Err(BadEvent::TooLarge), Ok("next".to_owned())]);
    }

    #[test]
    fn an_error_ends_the_processing() {
        let mut count = 0;
        let mut take = |_: Result<&str, BadEvent>| {
            count += 1;
            Err("enough")
        };
        assert_eq!(EventParser::default().push(b"data: 1\n\ndata: 2\n\n", &mut take), Err("enough"));
        assert_eq!(count, 1);
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
