//! What is below the conversation while a turn runs: what is being done, for how long, and what a command prints.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use contexture_terminal::markdown::cut;
use contexture_terminal::screen::{Screen, TextStyle};

/// How often it is drawn anew.
pub(super) const TICK: Duration = Duration::from_millis(120);

/// The most lines of a command's output.
pub(super) const MAX_PRINTED: usize = 5;

/// The most rows of an answer whose line is not complete.
const MAX_PARTIAL: usize = 8;

/// The columns that what is done has at least.
const MIN_DOING: usize = 12;

/// Turns while something is done.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The rows below the conversation, which are drawn over again and again.
pub(super) struct Live {
    /// What is being done; `None` if nothing is.
    doing: Option<(String, Instant)>,
    frame: usize,
    /// The line that the model is in, in rows.
    pub(super) partial: Vec<String>,
    /// The last lines that a command printed.
    printed: VecDeque<String>,
    /// What is typed ahead.
    pub(super) typed: String,
    /// How many rows are on the screen.
    drawn: usize,
}

impl Live {
    pub(super) fn new() -> Self {
        let (partial, printed, typed) = (Vec::new(), VecDeque::new(), String::new());
        Self { doing: None, frame: 0, partial, printed, typed, drawn: 0 }
    }

    /// From now on this is being done.
    pub(super) fn begin(&mut self, doing: &str) {
        if self.doing.as_ref().is_none_or(|(before, _)| before != doing) {
            self.doing = Some((doing.to_owned(), Instant::now()));
        }
    }

    /// Nothing is being done: somebody is asked, or the turn is over.
    pub(super) fn pause(&mut self) {
        self.doing = None;
    }

    /// Whether something is being done.
    pub(super) fn is_busy(&self) -> bool {
        self.doing.is_some()
    }

    /// How long it has been done, in seconds.
    pub(super) fn seconds(&self) -> u64 {
        self.doing.as_ref().map_or(0, |(_, since)| since.elapsed().as_secs())
    }

    /// A command printed a line.
    pub(super) fn print(&mut self, line: String) {
        self.printed.push_back(line);
        if self.printed.len() > MAX_PRINTED {
            self.printed.pop_front();
        }
    }

    /// Forgets what was printed.
    pub(super) fn clear_printed(&mut self) {
        self.printed.clear();
    }

    pub(super) fn turn(&mut self) {
        self.frame = (self.frame + 1) % FRAMES.len();
    }

    /// Goes to where it begins on the screen, and clears it.
    pub(super) fn erased(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            1 => "\r\x1b[J".to_owned(),
            rows => format!("\x1b[{}A\r\x1b[J", rows - 1),
        }
    }

    /// Its rows, which are on the screen after they are written.
    pub(super) fn drawn(&mut self, screen: Screen, columns: usize, max_rows: usize) -> String {
        let rows = self.rows(screen, columns.saturating_sub(1).max(1));
        let rows = &rows[rows.len().saturating_sub(max_rows.max(1))..];
        self.drawn = rows.len();
        rows.join("\r\n")
    }

    fn rows(&self, screen: Screen, columns: usize) -> Vec<String> {
        let Some((doing, since)) = &self.doing else { return Vec::new() };
        let mut rows: Vec<String> = self.partial[self.partial.len().saturating_sub(MAX_PARTIAL)..].to_vec();
        let dim = |text: &str| screen.paint(TextStyle::Dim, &cut(text, columns));
        rows.extend(self.printed.iter().map(|line| dim(&format!("  │ {line}"))));
        let seconds = match since.elapsed().as_secs() {
            0 => String::new(),
            seconds => format!(" · {seconds} s"),
        };
        // How long it takes is seen, however long the rest is.
        let hint = format!("{seconds} · Ctrl-C interrupts");
        let ends = [hint.as_str(), seconds.as_str()];
        let end = ends.into_iter().find(|end| end.chars().count() + MIN_DOING <= columns).unwrap_or_default();
        let doing = cut(doing, columns.saturating_sub(end.chars().count() + 2));
        rows.push(dim(&format!("{} {doing}{end}", FRAMES[self.frame])));
        if !self.typed.is_empty() {
            rows.push(cut(&self.typed, columns));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Screen = Screen { columns: 20, has_colours: false };

    #[test]
    fn it_is_drawn_over_and_leaves_nothing() {
        let mut live = Live::new();
        assert_eq!((live.erased(), live.drawn(SCREEN, 20, 24)), (String::new(), String::new()));
        live.begin("make");
        (0..9).for_each(|line| live.print(format!("line {line}")));
        live.typed = "› and then a long sentence".to_owned();
        let drawn = live.drawn(SCREEN, 20, 24);
        let rows: Vec<&str> = drawn.split("\r\n").collect();
        assert_eq!(rows[..5], ["  │ line 4", "  │ line 5", "  │ line 6", "  │ line 7", "  │ line 8"]);
        assert_eq!(rows[5..], ["⠋ make", "› and then a long …"]);
        assert_eq!(live.erased(), "\x1b[6A\r\x1b[J");
        assert_eq!(live.drawn(SCREEN, 20, 2).split("\r\n").count(), 2);
        assert!(live.rows(SCREEN, 60)[5].ends_with("make · Ctrl-C interrupts"));
        live.begin(&"long ".repeat(40));
        assert!(live.rows(SCREEN, 60)[5].ends_with("… · Ctrl-C interrupts"), "{:?}", live.rows(SCREEN, 60));
        live.pause();
        assert_eq!((live.erased(), live.drawn(SCREEN, 20, 24)), ("\x1b[1A\r\x1b[J".to_owned(), String::new()));
        assert_eq!(live.erased(), "");
    }
}
