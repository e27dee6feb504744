//! A line of progress, on a terminal only.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The shortest time between two updates of the line.
const REFRESH: Duration = Duration::from_millis(100);

/// Clears the line of the cursor and returns to its start.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Shows how many of a known number of steps are done. May be shared between threads.
pub struct ProgressCounter {
    verb: &'static str,
    total: usize,
    done: AtomicUsize,
    /// When the line was last written; `None` without a terminal.
    shown: Option<Mutex<Option<Instant>>>,
}

impl ProgressCounter {
    /// Starts work of `total` steps, shown as `VERB 3/107` if standard error is a terminal.
    pub fn new(verb: &'static str, total: usize) -> Self {
        let shown = (total > 1 && io::stderr().is_terminal()).then(|| Mutex::new(None));
        Self { verb, total, done: AtomicUsize::new(0), shown }
    }

    /// Counts a step.
    pub fn advance(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(shown) = &self.shown else { return };
        let mut shown = shown.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let now = Instant::now();
        if shown.is_some_and(|last| now - last < REFRESH) {
            return;
        }
        *shown = Some(now);
        write(&format!("{CLEAR_LINE}{} {done}/{}", self.verb, self.total));
    }
}

/// A line that says how far something is, where the number of steps is not known before.
pub struct ProgressLine {
    /// When the line was last written; `None` without a terminal.
    shown: Option<Option<Instant>>,
}

impl ProgressLine {
    /// A line that is empty until something is shown.
    #[expect(clippy::new_without_default, reason = "it depends on the terminal")]
    pub fn new() -> Self {
        Self { shown: io::stderr().is_terminal().then_some(None) }
    }

    /// Shows a text, unless another one was shown a moment ago.
    pub fn show(&mut self, text: &str) {
        let Some(shown) = &mut self.shown else { return };
        let now = Instant::now();
        if shown.is_none_or(|last| now - last >= REFRESH) {
            *shown = Some(now);
            write(&format!("{CLEAR_LINE}{text}"));
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown.is_some() {
            write(CLEAR_LINE);
        }
    }
}

impl Drop for ProgressCounter {
    fn drop(&mut self) {
        if self.shown.is_some() {
            write(CLEAR_LINE);
        }
    }
}

fn write(text: &str) {
    let mut stderr = io::stderr();
    // An error in showing progress must not stop the work.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
