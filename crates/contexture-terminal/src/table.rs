//! Text tables that fit the screen.

use crate::harmless::written_out;
use crate::screen::{Screen, TextStyle};

/// Spaces between two columns.
const GAP: usize = 2;

/// The smallest width of a column of names or prose; below that, each row is split into lines.
const MIN_NAME_CHARS: usize = 16;

/// Spaces before the values of a row that is split into lines.
const INDENT: usize = 2;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text, to the left.
    Left,
    /// Names that people copy, such as paths. They are never cut: one that is too long has a line of its own.
    Name,
    /// Sentences in the last column, which are wrapped.
    Prose,
    /// Numbers, to the right.
    Right,
}

/// A table that is printed as text.
///
/// The widths are counted in characters.
#[derive(Clone, Debug)]
pub struct TextTable {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    /// A row that is shown in bold.
    strong: Option<usize>,
}

impl TextTable {
    /// An empty table with these titles.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        let columns = columns.into_iter().map(|(title, align)| (title.to_owned(), align)).collect();
        Self { columns, rows: Vec::new(), strong: None }
    }

    /// Adds a row; cells beyond the columns are not shown. Cells are texts of others, and are shown on one line.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| in_cell(&cell)).collect());
    }

    /// Shows the last row in bold, if there are colours.
    pub fn strong(&mut self) {
        self.strong = self.rows.len().checked_sub(1);
    }

    /// The table with one line for the titles and one for each row, of any width.
    pub fn render(&self) -> String {
        self.fit(Screen { columns: usize::MAX, has_colours: false })
    }

    /// The table for a screen. If it is too wide, long names get a line of their own and prose is wrapped; if that is not
    /// enough, every row is split into lines, with the title before each value. Nothing is cut.
    pub fn fit(&self, screen: Screen) -> String {
        match self.widths(screen.columns) {
            Some(widths) => self.in_columns(&widths, screen),
            None => self.in_lines(screen),
        }
    }

    /// The width of each column; `None` if they cannot be narrow enough.
    fn widths(&self, columns: usize) -> Option<Vec<usize>> {
        let mut widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        loop {
            let width = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
            if width <= columns {
                return Some(widths);
            }
            let is_flexible = |column: &usize| match self.columns[*column].1 {
                Align::Name => *column == 0,
                Align::Prose => true,
                Align::Left | Align::Right => false,
            };
            let names = (0..widths.len()).filter(is_flexible);
            let widest =
                names.max_by_key(|&column| widths[column]).filter(|&column| widths[column] > MIN_NAME_CHARS)?;
            widths[widest] -= (width - columns).min(widths[widest] - MIN_NAME_CHARS);
        }
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let title = &self.columns[column].0;
        cells.chain([title]).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    fn in_columns(&self, widths: &[usize], screen: Screen) -> String {
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.clone()).collect();
        let mut text = String::new();
        for (index, cells) in std::iter::once(&titles).chain(&self.rows).enumerate() {
            let is_bold = index == 0 || self.strong.is_some_and(|strong| strong + 1 == index);
            for line in self.row_lines(cells, widths) {
                match is_bold {
                    true => text.push_str(&screen.paint(TextStyle::Bold, line.trim_end())),
                    false => text.push_str(line.trim_end()),
                }
                text.push('\n');
            }
        }
        text
    }

    /// The lines of one row.
    fn row_lines(&self, cells: &[String], widths: &[usize]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = String::new();
        for (index, ((cell, (_, align)), &width)) in cells.iter().zip(&self.columns).zip(widths).enumerate() {
            let start = line.chars().count();
            match align {
                Align::Name if index == 0 && cell.chars().count() > width => {
                    lines.push(cell.clone());
                    line.push_str(&" ".repeat(width));
                }
                Align::Left | Align::Name => line.push_str(&format!("{cell:<width$}")),
                Align::Right => line.push_str(&format!("{cell:>width$}")),
                Align::Prose => {
                    let column = Screen { columns: width, has_colours: false };
                    let wrapped = column.wrap(cell, 0).replace('\n', &format!("\n{}", " ".repeat(start)));
                    line.push_str(&wrapped);
                }
            }
            line.push_str(&" ".repeat(GAP));
        }
        lines.extend(line.lines().map(str::to_owned));
        lines
    }

    fn in_lines(&self, screen: Screen) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let (name, values) = row.split_first().map_or(("", row.as_slice()), |(name, rest)| (name.as_str(), rest));
            let name = match self.columns.first() {
                Some((title, Align::Right)) => format!("{title} {name}"),
                _ => name.to_owned(),
            };
            text.push_str(&screen.paint(TextStyle::Bold, &name));
            text.push('\n');
            let mut line = " ".repeat(INDENT);
            for (value, (title, align)) in
                values.iter().zip(self.columns.iter().skip(1)).filter(|(value, _)| !value.is_empty())
            {
                let pair = if title.is_empty() { value.clone() } else { format!("{title} {value}") };
                let is_first = line.len() == INDENT;
                if !is_first && line.chars().count() + GAP + pair.chars().count() > screen.columns {
                    text.push_str(&line);
                    text.push('\n');
                    line = " ".repeat(INDENT);
                } else if !is_first {
                    line.push_str(&" ".repeat(GAP));
                }
                match line.chars().count() + pair.chars().count() > screen.columns {
                    // A name stays whole, and so its title is before it.
                    true if *align == Align::Name => {
                        line.push_str(&format!("{title}\n{}{value}", " ".repeat(2 * INDENT)))
                    }
                    true => line = screen.wrap(&format!("{line}{pair}"), 2 * INDENT),
                    false => line.push_str(&pair),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A text in a table. Spaces inside it stay, since some cells are drawings.
fn in_cell(text: &str) -> String {
    written_out(&text.replace(['\n', '\t'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        let mut table = TextTable::new([("policy", Align::Name), ("cost", Align::Right), ("why", Align::Left)]);
        table.row(["mask".to_owned(), "1.33".to_owned(), "so".to_owned()]);
        table.row(["größer als alles andere hier".to_owned(), "0.5".to_owned(), String::new()]);
        table
    }

    #[track_caller]
    fn check(columns: usize, expected: &str) {
        let screen = Screen { columns, has_colours: false };
        assert_eq!(table().fit(screen), expected);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let expected = "\
policy                        cost  why
mask                          1.33  so
größer als alles andere hier   0.5
";
        check(39, expected);
        assert_eq!(table().render(), expected);
    }

    #[test]
    fn a_name_that_is_too_long_has_a_line_of_its_own() {
        let expected = "\
policy            cost  why
mask              1.33  so
größer als alles andere hier
                   0.5
";
        check(27, expected);
    }

    #[test]
    fn prose_is_wrapped_in_its_column() {
        let mut table = TextTable::new([("layer", Align::Left), ("", Align::Prose)]);
        table.row(["plan".to_owned(), "what is to be done, step by step".to_owned()]);
        let fit = |columns| table.fit(Screen { columns, has_colours: false });
        assert_eq!(fit(26), "layer\nplan   what is to be done,\n       step by step\n");
        assert_eq!(fit(20), "plan\n  what is to be\n    done, step by\n    step\n");
    }

    #[test]
    fn a_name_that_fits_in_no_line_has_one_of_its_own() {
        let mut table = TextTable::new([("file", Align::Left), ("path", Align::Name), ("state", Align::Left)]);
        table.row(["project".to_owned(), "/a/directory/with/a/long/name.toml".to_owned(), "missing".to_owned()]);
        let screen = Screen { columns: 30, has_colours: false };
        let expected = "project\n  path\n    /a/directory/with/a/long/name.toml\n  state missing\n";
        assert_eq!(table.fit(screen), expected);
    }

    #[test]
    fn what_is_still_too_wide_is_broken_into_lines_and_nothing_is_cut() {
        check(26, "mask\n  cost 1.33  why so\ngrößer als alles andere hier\n  cost 0.5\n");
        check(12, "mask\n  cost 1.33\n  why so\ngrößer als alles andere hier\n  cost 0.5\n");
    }

    #[test]
    fn no_cell_controls_the_terminal_or_reads_differently() {
        let mut table = TextTable::new([("name", Align::Name)]);
        table.row(["a\u{202e}b\x1b[2J\nc".to_owned()]);
        assert_eq!(table.render(), "name\na\\u{202e}b\\u{1b}[2J c\n");
    }

    #[test]
    fn titles_are_bold_where_there_are_colours() {
        let screen = Screen { columns: 80, has_colours: true };
        assert!(table().fit(screen).starts_with("\x1b[1mpolicy "));
    }
}
