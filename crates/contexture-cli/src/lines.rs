//! Lines of an input that others write, which may have no end.

use std::io::{self, BufRead};

/// How much of a line is kept that is too long.
const MAX_HEAD_BYTES: usize = 4 * 1024;

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine {
    /// All of it, without its line feed.
    Whole(Vec<u8>),
    /// How a line begins that is longer than the limit.
    TooLong(Vec<u8>),
}

/// The next line; never more than `max_bytes` of it are kept.
pub(crate) fn next_line(input: &mut impl BufRead, max_bytes: usize) -> io::Result<Option<InputLine>> {
    let (mut line, mut is_long) = (Vec::new(), false);
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(match (is_long, line.is_empty()) {
                (true, _) => Some(InputLine::TooLong(line)),
                (false, true) => None,
                (false, false) => Some(InputLine::Whole(line)),
            });
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        if !is_long {
            line.extend_from_slice(piece);
        }
        let count = piece.len() + usize::from(end.is_some());
        input.consume(count);
        if line.len() > max_bytes {
            is_long = true;
            line.truncate(MAX_HEAD_BYTES);
            line.shrink_to_fit();
        }
        if end.is_some() {
            return Ok(Some(if is_long { InputLine::TooLong(line) } else { InputLine::Whole(line) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_line_without_an_end_only_the_beginning_is_kept() {
        let long = format!("{}\nnext\n\nlast", "x".repeat(20_000));
        let mut input = io::BufReader::with_capacity(1_000, long.as_bytes());
        let Some(InputLine::TooLong(head)) = next_line(&mut input, 8_000).unwrap() else { panic!("it is too long") };
        assert_eq!(head.len(), MAX_HEAD_BYTES);
        for expected in ["next", "", "last"] {
            assert_eq!(next_line(&mut input, 8_000).unwrap(), Some(InputLine::Whole(expected.into())));
        }
        assert_eq!(next_line(&mut input, 8_000).unwrap(), None);
    }
}
