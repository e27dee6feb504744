//! An answer as it is shown: with a mark before it and an indent, so that it is told from what people say.

use contexture_terminal::markdown::Markdown;
use contexture_terminal::screen::{Screen, TextStyle};

/// What is before an answer.
const MARK: &str = "◆";

/// The columns before every row of an answer.
const INDENT: usize = 2;

/// An answer that is being shown.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkedAnswer {
    markdown: Markdown,
    /// Whether a row of it was shown.
    is_begun: bool,
    /// Whether an empty row is to be shown before the next one.
    has_gap: bool,
}

impl MarkedAnswer {
    /// The rows that can be shown after a whole line.
    pub(super) fn line(&mut self, line: &str, screen: Screen) -> Vec<String> {
        let rows = self.markdown.line(line, narrower(screen));
        self.marked(rows, screen)
    }

    /// The rows that are left when it has ended. What comes after that is another answer.
    pub(super) fn end(&mut self, screen: Screen) -> Vec<String> {
        let rows = self.markdown.end(narrower(screen));
        let rows = self.marked(rows, screen);
        (self.is_begun, self.has_gap) = (false, false);
        rows
    }

    /// The rows of a line that is not complete, which are drawn over: none is wider than the screen.
    pub(super) fn unfinished(&self, line: &str, screen: Screen) -> Vec<String> {
        let rows = self.markdown.unfinished(line, narrower(screen));
        self.clone().marked(rows, screen)
    }

    /// The rows with what is before them. Empty ones at the beginning and the end are none of the answer.
    fn marked(&mut self, rows: Vec<String>, screen: Screen) -> Vec<String> {
        let mut marked = Vec::new();
        for row in rows {
            if row.trim().is_empty() {
                self.has_gap = true;
                continue;
            }
            if self.has_gap || !self.is_begun {
                marked.push(String::new());
            }
            match self.is_begun {
                true => marked.push(format!("{}{row}", " ".repeat(INDENT))),
                false => marked.push(format!("{} {row}", screen.paint(TextStyle::Own, MARK))),
            }
            (self.is_begun, self.has_gap) = (true, false);
        }
        marked
    }
}

fn narrower(screen: Screen) -> Screen {
    Screen { columns: screen.columns.saturating_sub(INDENT).max(2), ..screen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_mark_an_indent_and_a_blank_line_before_it() {
        let screen = Screen { columns: 12, has_colours: false };
        let mut answer = MarkedAnswer::default();
        assert_eq!(answer.line("", screen), Vec::<String>::new());
        assert_eq!(answer.unfinished("a word", screen), ["", "◆ a word"]);
        assert_eq!(answer.line("one two three", screen), ["", "◆ one two", "  three"]);
        assert_eq!(answer.line("", screen), Vec::<String>::new());
        assert_eq!(answer.line("- point", screen), ["", "  • point"]);
        assert_eq!(answer.line("", screen), Vec::<String>::new());
        assert_eq!(answer.end(screen), Vec::<String>::new());
        assert_eq!(answer.line("next", screen), ["", "◆ next"]);
    }

    #[test]
    fn a_word_that_is_longer_than_the_screen_is_broken_where_it_is_drawn_over() {
        for columns in [12, 40, 100] {
            let screen = Screen { columns, has_colours: false };
            let rows = MarkedAnswer::default().unfinished(&"日x".repeat(columns), screen);
            assert!(
                rows.len() > 2 && rows.iter().all(|row| contexture_terminal::markdown::columns(row) <= columns),
                "{rows:?}"
            );
        }
    }
}
