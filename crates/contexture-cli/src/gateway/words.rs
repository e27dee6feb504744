//! What a program says on its outputs, as much as a person wants to read of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Child;
use tokio::task::JoinHandle;

use contexture_terminal::harmless::spoken;

/// The most bytes that are kept, of the end.
const MOST_BYTES: usize = 64 << 10;

/// The most lines that are shown, of the end.
const MOST_LINES: usize = 12;

/// The most characters of a line.
const MOST_IN_LINE: usize = 300;

/// How long to wait for the rest after the program has ended: what it started may hold its outputs open.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a program says on both of its outputs.
pub(super) struct ProgramWords {
    heard: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

impl ProgramWords {
    /// Reads what a program says from now on, if its outputs are pipes.
    pub(super) fn of(child: &mut Child) -> Self {
        let heard = Arc::new(Mutex::default());
        let mut readers = Vec::new();
        if let Some(output) = child.stdout.take() {
            readers.push(tokio::spawn(read(output, Arc::clone(&heard))));
        }
        if let Some(errors) = child.stderr.take() {
            readers.push(tokio::spawn(read(errors, Arc::clone(&heard))));
        }
        Self { heard, readers }
    }

    /// The last lines of it, indented; empty if it said nothing.
    pub(super) async fn finish(self) -> String {
        for reader in self.readers {
            // What comes later is not shown.
            let _ = tokio::time::timeout(PATIENCE, reader).await;
        }
        shown(&String::from_utf8_lossy(&lock(&self.heard)))
    }
}

async fn read(mut from: impl AsyncRead + Unpin, heard: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let mut heard = lock(&heard);
        heard.extend(&buffer[..count]);
        let more = heard.len().saturating_sub(MOST_BYTES);
        heard.drain(..more);
    }
}

fn lock(heard: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The last lines of a text, indented.
fn shown(text: &str) -> String {
    let plain = spoken(&without_sequences(text));
    let lines: Vec<&str> = plain.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
    let mut shown = String::new();
    for line in &lines[lines.len().saturating_sub(MOST_LINES)..] {
        let cut: String = line.chars().take(MOST_IN_LINE).collect();
        let more = if cut.len() < line.len() { "…" } else { "" };
        shown.push_str(&format!("  {cut}{more}\n"));
    }
    shown
}

/// A text without the sequences that colour it or move the cursor. A line that was written over counts as it is at last.
fn without_sequences(text: &str) -> String {
    let (mut plain, mut signs) = (String::with_capacity(text.len()), text.chars().peekable());
    while let Some(sign) = signs.next() {
        match (sign, signs.peek()) {
            ('\u{1b}', Some('[')) => {
                signs.next();
                // It ends with a letter.
                while signs.next().is_some_and(|sign| !('@'..='~').contains(&sign)) {}
            }
            ('\u{1b}', Some(']')) => {
                // A title; it ends with a bell or with another escape.
                while signs.next_if(|sign| *sign != '\u{7}' && *sign != '\u{1b}').is_some() {}
                signs.next_if_eq(&'\u{7}');
            }
            ('\u{1b}', _) => {
                signs.next();
            }
            ('\r', Some('\n')) => {}
            ('\r', _) => {
                let start = plain.rfind('\n').map_or(0, |at| at + 1);
                plain.truncate(start);
            }
            _ => plain.push(sign),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn the_last_lines_are_shown_as_they_are_read() {
        check("", "");
        check(" \n\n", "");
        check("Not logged in · Please run /login\n", "  Not logged in · Please run /login\n");
        check("\u{1b}[31merror\u{1b}[0m\r\nmore", "  error\n  more\n");
        check("loading 1\rloading 2\rdone\n", "  done\n");
        check("\u{1b}]0;a title\u{7}text\u{1b}", "  text\n");
        let many: String = (0..30).map(|at| format!("line {at}\n")).collect();
        assert!(shown(&many).starts_with("  line 18\n") && shown(&many).ends_with("  line 29\n"));
        assert_eq!(shown(&"é".repeat(9_000)).chars().count(), MOST_IN_LINE + 4);
    }
}
