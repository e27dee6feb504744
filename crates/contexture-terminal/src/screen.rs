//! The properties of the output: width and colours.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal};

/// The default width.
const DEFAULT_COLUMNS: usize = 80;

/// The smallest width that output is formatted for.
const MIN_COLUMNS: usize = 20;

/// The destination of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// The width of lines.
    pub columns: usize,
    /// Whether text has colours.
    pub has_colours: bool,
}

/// The style of a text, if there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    /// Titles and important text.
    Bold,
    /// Unimportant text.
    Dim,
    /// Contexture's own values.
    Own,
    /// Errors.
    Error,
    /// Hints.
    Hint,
}

impl TextStyle {
    fn code(self) -> &'static str {
        match self {
            TextStyle::Bold => "1",
            TextStyle::Dim => "2",
            TextStyle::Own => "32",
            TextStyle::Error => "1;31",
            TextStyle::Hint => "1;36",
        }
    }
}

impl Screen {
    /// Standard output: as wide as the terminal, or else as the variable `COLUMNS` says.
    pub fn of_output() -> Self {
        let variable = || env::var("COLUMNS").ok()?.trim().parse().ok().filter(|columns| *columns > 0);
        let columns = columns_of(&io::stdout()).or_else(variable).unwrap_or(DEFAULT_COLUMNS);
        Self { columns: columns.max(MIN_COLUMNS), has_colours: has_colours_on(io::stdout().is_terminal()) }
    }

    /// Standard error, whose lines are not wrapped.
    pub fn of_errors() -> Self {
        Self { columns: usize::MAX, has_colours: has_colours_on(io::stderr().is_terminal()) }
    }

    /// Standard error for prose, which is wrapped on a terminal.
    pub fn of_prose_errors() -> Self {
        let columns = columns_of(&io::stderr()).map_or(usize::MAX, |columns| columns.max(MIN_COLUMNS));
        Self { columns, ..Self::of_errors() }
    }

    /// Returns a text in a style.
    pub fn paint(&self, style: TextStyle, text: &str) -> String {
        match self.has_colours && !text.is_empty() {
            true => format!("\x1b[{}m{text}\x1b[0m", style.code()),
            false => text.to_owned(),
        }
    }

    /// Wraps a text of one line; all lines but the first begin with an indent.
    pub fn wrap(&self, text: &str, indent: usize) -> String {
        let mut wrapped = String::new();
        let mut column = 0;
        for (index, word) in text.split(' ').enumerate() {
            let len = visible_len(word);
            if index > 0 && column > indent && column + 1 + len > self.columns {
                wrapped.push('\n');
                wrapped.push_str(&" ".repeat(indent));
                column = indent;
            } else if index > 0 {
                wrapped.push(' ');
                column += 1;
            }
            wrapped.push_str(word);
            column += len;
        }
        wrapped
    }

    /// Wraps the lines of a text; continuation lines are indented further.
    pub fn wrap_lines(&self, text: &str) -> String {
        let wrapped = text.split_inclusive('\n').map(|line| {
            let (bare, end) = line.strip_suffix('\n').map_or((line, ""), |bare| (bare, "\n"));
            let indent = bare.len() - bare.trim_start().len();
            match visible_len(bare) > self.columns {
                true => self.wrap(bare, indent + 2) + end,
                false => line.to_owned(),
            }
        });
        wrapped.collect()
    }

    /// The last lines of an output: what to do next.
    pub fn next(&self, text: &str) -> String {
        let line = self.wrap(&format!("next: {text}"), 2);
        format!("\n{}\n", self.paint(TextStyle::Dim, &line))
    }
}

/// The width of a terminal; `None` if it is none.
#[cfg(unix)]
fn columns_of(file: &impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(file).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(not(unix))]
fn columns_of<T>(_file: &T) -> Option<usize> {
    None
}

/// The number of visible characters, without colour codes.
fn visible_len(text: &str) -> usize {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().map_or(0, |piece| piece.chars().count());
    let seen = |piece: &str| piece.split_once('m').map_or(0, |(_, seen)| seen.chars().count());
    first + pieces.map(seen).sum::<usize>()
}

fn has_colours_on(is_terminal: bool) -> bool {
    has_colours(is_terminal, env::var_os("NO_COLOR").as_deref(), env::var_os("TERM").as_deref())
}

/// Whether to use colours: on a terminal that supports them, unless they are turned off.
fn has_colours(is_terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    let is_unwanted = no_color.is_some_and(|value| !value.is_empty());
    is_terminal && !is_unwanted && term != Some(OsStr::new("dumb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_and_can_be_turned_off() {
        let check = |is_terminal, no_color: Option<&str>, term: Option<&str>| {
            has_colours(is_terminal, no_color.map(OsStr::new), term.map(OsStr::new))
        };
        assert!(check(true, None, Some("xterm")));
        assert!(check(true, None, None));
        assert!(check(true, Some(""), None));
        assert!(!check(false, None, Some("xterm")));
        assert!(!check(true, Some("1"), Some("xterm")));
        assert!(!check(true, None, Some("dumb")));
    }

    #[test]
    fn lines_are_broken_between_words() {
        let screen = Screen { columns: 20, has_colours: false };
        assert_eq!(screen.wrap("one two three four five six", 2), "one two three four\n  five six");
        assert_eq!(
            screen.wrap("a-word-that-is-longer-than-a-line and more", 2),
            "a-word-that-is-longer-than-a-line\n  and more"
        );
        assert_eq!(screen.wrap("    one two three four", 4), "    one two three\n    four");
        assert_eq!(screen.wrap("", 2), "");
        assert_eq!(
            screen.wrap_lines("as it is\n  one two three four five\n"),
            "as it is\n  one two three four\n    five\n"
        );
        let painted = screen.wrap_lines("\x1b[1mone\x1b[0m \x1b[1;31mtwo three four\x1b[0m five");
        assert_eq!(painted, "\x1b[1mone\x1b[0m \x1b[1;31mtwo three four\x1b[0m\n  five");
    }

    #[test]
    fn painted_text_is_reset() {
        let screen = Screen { columns: 20, has_colours: true };
        assert_eq!(screen.paint(TextStyle::Error, "no"), "\x1b[1;31mno\x1b[0m");
        assert_eq!(Screen { has_colours: false, ..screen }.paint(TextStyle::Error, "no"), "no");
    }
}
