//! The line that a person is writing: a value without a terminal.

use std::sync::Arc;

use contexture_text::numbers::thousands;
use unicode_width::UnicodeWidthChar;

/// A paste of more lines is shown as one mark.
const MAX_PASTED_LINES: usize = 4;

/// A paste of more bytes is shown as one mark.
const MAX_PASTED_BYTES: usize = 1_000;

/// The columns of a tab.
const TAB: &str = "    ";

/// The most lines that can be called back.
const MAX_HISTORY: usize = 1_000;

/// One thing that the cursor moves over.
#[derive(Clone, Debug, PartialEq, Eq)]
enum EditorCell {
    Char(char),
    /// A long text that was pasted, shown as a mark.
    Pasted(Arc<str>),
}

/// A text that is being written, with a cursor, and what was written before.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    cells: Vec<EditorCell>,
    cursor: usize,
    history: Vec<String>,
    /// Which line of the history is shown, and what was being written before it was.
    shown: Option<(usize, Vec<EditorCell>)>,
}

/// How a text is shown: rows that fit the screen, and where the cursor is among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorLayout {
    /// The rows.
    pub rows: Vec<String>,
    /// The row of the cursor.
    pub row: usize,
    /// The column of the cursor.
    pub column: usize,
}

impl Editor {
    /// An empty line; earlier lines can be called back.
    pub fn new(history: Vec<String>) -> Self {
        Self { history, ..Self::default() }
    }

    /// The whole text, with what was pasted.
    pub fn text(&self) -> String {
        text_of(&self.cells)
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the text, keeps it in the history, and begins anew.
    pub fn take(&mut self) -> String {
        let text = self.text();
        self.clear();
        if !text.trim().is_empty() && self.history.last() != Some(&text) {
            self.history.push(text.clone());
            if self.history.len() > MAX_HISTORY {
                self.history.remove(0);
            }
        }
        text
    }

    /// Forgets the text.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.cursor = 0;
        self.shown = None;
    }

    /// Writes a character at the cursor. Characters that control a terminal are dropped.
    pub fn insert(&mut self, character: char) {
        if character.is_control() && !matches!(character, '\n' | '\t') {
            return;
        }
        self.cells.insert(self.cursor, EditorCell::Char(character));
        self.cursor += 1;
    }

    /// Writes a text at the cursor; a long one is shown as a mark and is one thing to delete.
    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        if text.lines().count() <= MAX_PASTED_LINES && text.len() <= MAX_PASTED_BYTES {
            text.chars().for_each(|character| self.insert(character));
            return;
        }
        self.cells.insert(self.cursor, EditorCell::Pasted(text.into()));
        self.cursor += 1;
    }

    /// Deletes what is before the cursor.
    pub fn backspace(&mut self) {
        // A character without a width belongs to the one before it.
        while self.cursor > 0 {
            self.cursor -= 1;
            if self.cells.remove(self.cursor).width() > 0 {
                break;
            }
        }
    }

    /// Deletes what is under the cursor.
    pub fn delete(&mut self) {
        if self.cursor < self.cells.len() {
            self.right();
            self.backspace();
        }
    }

    /// Moves the cursor to the left.
    pub fn left(&mut self) {
        while self.cursor > 0 {
            self.cursor -= 1;
            if self.cells[self.cursor].width() > 0 {
                break;
            }
        }
    }

    /// Moves the cursor to the right.
    pub fn right(&mut self) {
        self.cursor = (self.cursor + 1).min(self.cells.len());
        while self.cells.get(self.cursor).is_some_and(|cell| cell.width() == 0) {
            self.cursor += 1;
        }
    }

    /// Moves the cursor to the beginning of a word.
    pub fn word_left(&mut self) {
        while self.cursor > 0 && self.cells[self.cursor - 1].is_space() {
            self.cursor -= 1;
        }
        while self.cursor > 0 && !self.cells[self.cursor - 1].is_space() {
            self.cursor -= 1;
        }
    }

    /// Moves the cursor to the end of a word.
    pub fn word_right(&mut self) {
        while self.cells.get(self.cursor).is_some_and(EditorCell::is_space) {
            self.cursor += 1;
        }
        while self.cells.get(self.cursor).is_some_and(|cell| !cell.is_space()) {
            self.cursor += 1;
        }
    }

    /// Moves the cursor to the beginning of its line.
    pub fn home(&mut self) {
        let before = &self.cells[..self.cursor];
        self.cursor = before.iter().rposition(EditorCell::is_line_feed).map_or(0, |at| at + 1);
    }

    /// Moves the cursor to the end of its line.
    pub fn end(&mut self) {
        let after = &self.cells[self.cursor..];
        self.cursor = after.iter().position(EditorCell::is_line_feed).map_or(self.cells.len(), |at| self.cursor + at);
    }

    /// Deletes the word before the cursor.
    pub fn delete_word(&mut self) {
        let end = self.cursor;
        self.word_left();
        self.cells.drain(self.cursor..end);
    }

    /// Deletes everything before the cursor in its line.
    pub fn delete_to_start(&mut self) {
        let end = self.cursor;
        self.home();
        self.cells.drain(self.cursor..end);
    }

    /// Deletes everything after the cursor in its line.
    pub fn delete_to_end(&mut self) {
        let start = self.cursor;
        self.end();
        self.cells.drain(start..self.cursor);
        self.cursor = start;
    }

    /// Shows the line that was written before.
    pub fn older(&mut self) {
        let at = self.shown.as_ref().map_or(self.history.len(), |(at, _)| *at);
        let Some(older) = at.checked_sub(1) else { return };
        let kept = self.shown.take().map_or_else(|| self.cells.clone(), |(_, kept)| kept);
        self.show(cells_of(&self.history[older]));
        self.shown = Some((older, kept));
    }

    /// Shows the line that was written after the one that is shown, at last the one that was being written.
    pub fn newer(&mut self) {
        let Some((at, kept)) = self.shown.take() else { return };
        match self.history.get(at + 1) {
            Some(newer) => {
                self.show(cells_of(newer));
                self.shown = Some((at + 1, kept));
            }
            None => self.show(kept),
        }
    }

    fn show(&mut self, cells: Vec<EditorCell>) {
        self.cursor = cells.len();
        self.cells = cells;
    }

    /// The letters after a `#` that the cursor is behind, if they may become a reference.
    pub fn reference(&self) -> Option<String> {
        let start = self.reference_start()?;
        Some(text_of(&self.cells[start + 1..self.cursor]))
    }

    /// Puts a reference in place of these letters.
    pub fn complete(&mut self, reference: &str) {
        let Some(start) = self.reference_start() else { return };
        let cells = cells_of(&format!("{reference} "));
        let end = start + cells.len();
        self.cells.splice(start..self.cursor, cells);
        self.cursor = end;
    }

    fn reference_start(&self) -> Option<usize> {
        let before = &self.cells[..self.cursor];
        let start = before.iter().rposition(|cell| cell.is_space() || *cell == EditorCell::Char('#'))?;
        let is_free =
            start == 0 || matches!(before[start - 1], EditorCell::Char(' ' | '\n' | '\t' | '(' | '[' | '"' | '\''));
        (before[start] == EditorCell::Char('#') && is_free).then_some(start)
    }

    /// The text in rows of at most so many columns; the first begins with a prompt, and the others with as many spaces.
    /// At most `max_rows` rows are shown, with that of the cursor among them.
    pub fn layout(&self, prompt: &str, columns: usize, max_rows: usize) -> EditorLayout {
        let indent: usize = prompt.chars().map(|character| character.width().unwrap_or(0)).sum();
        // The last column stays free: terminals differ in what they do when it is written.
        let columns = columns.saturating_sub(1).max(indent + 2);
        let mut rows = vec![prompt.to_owned()];
        let (mut column, mut at) = (indent, (0, indent));
        for (index, cell) in self.cells.iter().enumerate() {
            if index == self.cursor {
                at = (rows.len() - 1, column);
            }
            if cell.is_line_feed() {
                rows.push(" ".repeat(indent));
                column = indent;
                continue;
            }
            for character in cell.shown().chars() {
                let width = character.width().unwrap_or(0);
                if column + width > columns {
                    rows.push(" ".repeat(indent));
                    column = indent;
                    // The cursor is where its character is, not at the end of the row before.
                    if index == self.cursor && at == (rows.len() - 2, columns) {
                        at = (rows.len() - 1, column);
                    }
                }
                if let Some(row) = rows.last_mut() {
                    row.push(character);
                }
                column += width;
            }
        }
        if self.cursor == self.cells.len() {
            at = (rows.len() - 1, column);
        }
        let first = (at.0 + 1).saturating_sub(max_rows.max(1));
        let rows: Vec<String> = rows.into_iter().skip(first).take(max_rows.max(1)).collect();
        EditorLayout { rows, row: at.0 - first, column: at.1 }
    }
}

impl EditorCell {
    fn is_space(&self) -> bool {
        matches!(self, EditorCell::Char(character) if character.is_whitespace())
    }

    fn is_line_feed(&self) -> bool {
        *self == EditorCell::Char('\n')
    }

    /// The columns it takes.
    fn width(&self) -> usize {
        match self {
            // A line feed is something to stop at.
            EditorCell::Char('\n') => 1,
            EditorCell::Char('\t') => TAB.len(),
            EditorCell::Char(character) => character.width().unwrap_or(0),
            EditorCell::Pasted(_) => 1,
        }
    }

    fn shown(&self) -> String {
        match self {
            EditorCell::Char('\t') => TAB.to_owned(),
            EditorCell::Char(character) => character.to_string(),
            EditorCell::Pasted(text) => match text.lines().count() {
                1 => format!("[pasted {} characters]", thousands(text.chars().count() as u64)),
                lines => format!("[pasted {} lines]", thousands(lines as u64)),
            },
        }
    }
}

fn cells_of(text: &str) -> Vec<EditorCell> {
    let mut editor = Editor::default();
    editor.paste(text);
    editor.cells
}

fn text_of(cells: &[EditorCell]) -> String {
    let mut text = String::new();
    for cell in cells {
        match cell {
            EditorCell::Char(character) => text.push(*character),
            EditorCell::Pasted(pasted) => text.push_str(pasted),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> Editor {
        let mut editor = Editor::default();
        text.chars().for_each(|character| editor.insert(character));
        editor
    }

    #[test]
    fn a_large_paste_is_one_mark_and_comes_out_whole() {
        let text: String = (0..10_000).map(|line| format!("line {line}\r\n")).collect();
        let mut editor = written("see: ");
        editor.paste(&text);
        editor.insert('!');
        assert_eq!(editor.layout("› ", 80, 10).rows, ["› see: [pasted 10 000 lines]!"]);
        assert_eq!(editor.text(), format!("see: {}!", text.replace("\r\n", "\n")));
        editor.backspace();
        editor.backspace();
        assert_eq!(editor.text(), "see: ");
        editor.paste("a\rb");
        assert_eq!(editor.text(), "see: a\nb");
        editor.clear();
        editor.paste(&"x".repeat(5_000));
        assert_eq!(editor.layout("› ", 80, 10).rows, ["› [pasted 5 000 characters]"]);
    }

    #[test]
    fn wide_and_combining_characters_take_the_columns_they_have() {
        let mut editor = written("日本e\u{301}!");
        assert_eq!(editor.layout("› ", 80, 10).column, 2 + 2 + 2 + 1 + 1);
        editor.left();
        editor.left();
        assert_eq!(editor.layout("› ", 80, 10).column, 6);
        editor.delete();
        assert_eq!(editor.text(), "日本!");
        editor.backspace();
        assert_eq!(editor.text(), "日!");
        // Three columns are left for characters, so a wide one does not fit beside another.
        let layout = written("日本語").layout("› ", 6, 10);
        assert_eq!(layout, EditorLayout { rows: vec!["› 日".into(), "  本".into(), "  語".into()], row: 2, column: 4 });
    }

    #[test]
    fn words_and_lines_can_be_moved_over_and_deleted() {
        let mut editor = written("one two\nthree four");
        editor.word_left();
        editor.delete_word();
        assert_eq!(editor.text(), "one two\nfour");
        editor.delete_to_end();
        assert_eq!(editor.text(), "one two\n");
        editor.left();
        editor.home();
        editor.word_right();
        editor.delete_to_end();
        assert_eq!(editor.text(), "one\n");
        editor.delete_to_start();
        assert_eq!(editor.text(), "\n");
    }

    #[test]
    fn the_history_gives_back_what_was_being_written() {
        let mut editor = Editor::new(vec!["first".to_owned()]);
        written("second").text().chars().for_each(|character| editor.insert(character));
        assert_eq!(editor.take(), "second");
        editor.insert('x');
        let mut seen = vec![editor.text()];
        for step in [Editor::older, Editor::older, Editor::older, Editor::newer, Editor::newer, Editor::newer] {
            step(&mut editor);
            seen.push(editor.text());
        }
        assert_eq!(seen, ["x", "second", "first", "first", "second", "x", "x"]);
    }

    #[test]
    fn references_are_completed_where_they_begin() {
        for (text, expected) in [
            ("see #li", Some("li")),
            ("#", Some("")),
            ("(#a", Some("a")),
            ("a#b", None),
            ("# b", None),
            ("##", None),
            ("", None),
        ] {
            assert_eq!(written(text).reference().as_deref(), expected, "{text:?}");
        }
        let mut editor = written("see #li now");
        (0..4).for_each(|_| editor.left());
        editor.complete("#src/lib.rs");
        assert_eq!(editor.text(), "see #src/lib.rs  now");
    }

    #[test]
    fn only_rows_around_the_cursor_are_shown() {
        let mut editor = written("1\n2\n3\n4\n5");
        assert_eq!(editor.layout("> ", 20, 2).rows, ["  4", "  5"]);
        (0..9).for_each(|_| editor.left());
        assert_eq!(
            editor.layout("> ", 20, 2),
            EditorLayout { rows: vec!["> 1".into(), "  2".into()], row: 0, column: 2 }
        );
    }

    proptest! {
        /// Whatever is typed, the rows fit the screen and the cursor is in one of them.
        #[test]
        fn every_layout_fits(keys in prop::collection::vec(0_u8..12, 0..60), columns in 6_usize..40) {
            let mut editor = Editor::default();
            for key in keys {
                match key {
                    0 => editor.insert('a'),
                    1 => editor.insert('語'),
                    2 => editor.insert('\u{301}'),
                    3 => editor.insert('\n'),
                    4 => editor.insert(' '),
                    5 => editor.left(),
                    6 => editor.right(),
                    7 => editor.backspace(),
                    8 => editor.delete(),
                    9 => editor.word_left(),
                    10 => editor.paste("a\nb\nc\nd\ne\nf\n"),
                    _ => editor.home(),
                }
                let layout = editor.layout("› ", columns, 5);
                prop_assert!(layout.rows.len() <= 5 && layout.row < layout.rows.len());
                prop_assert!(layout.column <= columns);
                for row in &layout.rows {
                    let width: usize = row.chars().filter_map(UnicodeWidthChar::width).sum();
                    prop_assert!(width < columns, "{row:?} in {columns}");
                }
            }
        }
    }
}
