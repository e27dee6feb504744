//! Recordings that are too long to be held.

use std::cell::Cell;
use std::io::{self, BufReader, Read};

use contexture_wire::transcript::read;

/// Lines that may be read before a message leaves: those looked at to tell the layout, and those held for answers.
const MAX_HELD_LINES: u64 = 3_000;

/// A recording that is made while it is read, and knows how much of it was.
struct Endless<'a, F> {
    line_of: F,
    lines: u64,
    made: &'a Cell<u64>,
    rest: io::Cursor<Vec<u8>>,
}

impl<F: FnMut(u64) -> String> Read for Endless<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.rest.read(buffer)?;
        if count > 0 || self.made.get() == self.lines {
            return Ok(count);
        }
        self.rest = io::Cursor::new((self.line_of)(self.made.get()).into_bytes());
        self.made.set(self.made.get() + 1);
        self.rest.read(buffer)
    }
}

/// Reads a long recording and checks that messages leave as fast as lines come.
#[track_caller]
fn check_held(lines: u64, line_of: impl FnMut(u64) -> String, messages: u64) {
    let made = Cell::new(0);
    let (mut received, mut held) = (0, 0);
    let reader = Endless { line_of, lines, made: &made, rest: io::Cursor::default() };
    let report = read(BufReader::with_capacity(1 << 12, reader), &mut |_| {
        received += 1;
        held = held.max(made.get().saturating_sub(received * lines / messages));
    });
    let report = report.expect("a known format");
    assert_eq!((received, report.messages), (messages, messages));
    assert!(held <= MAX_HELD_LINES, "{held} lines were held");
}

#[test]
fn very_many_lines_stream() {
    let lines = if cfg!(feature = "long-tests") { 1_000_000 } else { 200_000 };
    check_held(lines, |n| format!("{{\"role\":\"user\",\"text\":\"{n}\"}}\n"), lines);
}

#[test]
fn the_lines_of_an_agent_stream_though_no_call_is_ever_answered() {
    let line = |n| {
        let block = format!("{{\"type\":\"tool_use\",\"id\":\"{n}\",\"name\":\"t\"}}");
        format!("{{\"type\":\"assistant\",\"message\":{{\"id\":\"{n}\",\"content\":[{block}]}}}}\n")
    };
    check_held(50_000, line, 100_000);
}

#[test]
fn the_messages_of_a_document_stream() {
    let line = |n| match n {
        0 => "{\"messages\":[\n".to_owned(),
        _ => format!("{{\"role\":\"user\",\"content\":\"{n}\"}},\n"),
    };
    check_held(50_000, line, 49_999);
}
