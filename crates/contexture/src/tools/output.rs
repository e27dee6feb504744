//! The output of a command, of which only the beginning and the end are kept.

/// How many bytes of the beginning and of the end are shown.
const HEAD_BYTES: usize = 12 * 1024;
const TAIL_BYTES: usize = 12 * 1024;

/// Keeps the beginning and the end of a command's output, however long it is.
#[derive(Debug, Default)]
pub(super) struct BoundedOutput {
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: usize,
}

impl BoundedOutput {
    /// Adds output.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = HEAD_BYTES - self.head.len();
        let (head, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        // Trimmed only occasionally, so that each byte is moved only a few times.
        if self.tail.len() > 4 * TAIL_BYTES {
            self.cut_tail();
        }
    }

    fn cut_tail(&mut self) {
        let over = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..over);
        self.dropped += over;
    }

    /// The text, including how much is not shown.
    pub(super) fn into_text(mut self) -> String {
        self.cut_tail();
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.dropped > 0 {
            text.push_str(&format!("\n[… {} bytes of output are not shown …]\n", self.dropped));
        }
        text.push_str(&String::from_utf8_lossy(&self.tail));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept() {
        let mut output = BoundedOutput::default();
        output.push(b"first\n");
        for number in 0..100_000 {
            output.push(format!("{number}\n").as_bytes());
        }
        output.push(b"last\n");
        let text = output.into_text();
        assert!(text.starts_with("first\n0\n1\n") && text.ends_with("99999\nlast\n"));
        assert!(text.contains("bytes of output are not shown"));
        assert!(text.len() < HEAD_BYTES + TAIL_BYTES + 100);
    }

    #[test]
    fn short_output_is_whole() {
        let mut output = BoundedOutput::default();
        output.push(&b"x".repeat(HEAD_BYTES + TAIL_BYTES));
        assert_eq!(output.into_text().len(), HEAD_BYTES + TAIL_BYTES);
    }
}
