//! Lines of a limited length.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The longest line that is read: results may hold pictures.
pub(super) const MAX_BYTES: usize = 8 << 20;

/// What is read next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ServerLine {
    /// A line without its line feed.
    Whole(Vec<u8>),
    /// A line that is longer than [`MAX_BYTES`]; nothing can be read after it.
    TooLong,
    /// There is nothing more, or it can't be read.
    End,
}

/// Reads the next line. It never holds more than [`MAX_BYTES`] of it.
pub(super) async fn next_line(reader: &mut (impl AsyncBufRead + Unpin)) -> ServerLine {
    let mut line = Vec::new();
    loop {
        let Ok(bytes) = reader.fill_buf().await else { return ServerLine::End };
        if bytes.is_empty() {
            return if line.is_empty() { ServerLine::End } else { ServerLine::Whole(line) };
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        if line.len() + piece.len() > MAX_BYTES {
            return ServerLine::TooLong;
        }
        line.extend_from_slice(piece);
        let count = piece.len() + usize::from(end.is_some());
        reader.consume(count);
        if end.is_some() {
            return ServerLine::Whole(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_whole_up_to_the_limit() {
        let longest = vec![b'x'; MAX_BYTES];
        let text = [b"one\n\ntwo\n", &longest[..], b"\nlast"].concat();
        let mut reader = tokio::io::BufReader::with_capacity(4_096, &text[..]);
        for expected in [b"one".to_vec(), Vec::new(), b"two".to_vec(), longest, b"last".to_vec()] {
            assert!(next_line(&mut reader).await == ServerLine::Whole(expected));
        }
        assert_eq!(next_line(&mut reader).await, ServerLine::End);
    }

    /// The rest of the line is not even read.
    #[tokio::test]
    async fn a_longer_line_ends_it() {
        let endless = tokio::io::repeat(b'x');
        let mut reader = tokio::io::BufReader::new(endless);
        assert_eq!(next_line(&mut reader).await, ServerLine::TooLong);
    }
}
