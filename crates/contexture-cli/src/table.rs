//! Tables of plain text: columns by width, numbers to the right.

/// Spaces between two columns.
const GAP: &str = "  ";

/// Where the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table that is printed as text.
///
/// The widths are counted in characters.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these titles.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        let columns = columns.into_iter().map(|(title, align)| (title.to_owned(), align)).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row; cells beyond the columns are not shown.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table, a line for the titles and one for each row.
    pub fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.clone()).collect();
        let mut text = String::new();
        for cells in std::iter::once(&titles).chain(&self.rows) {
            let cells = cells.iter().zip(&self.columns).zip(&widths);
            let cells = cells.map(|((cell, (_, align)), width)| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
            text.push_str(cells.collect::<Vec<_>>().join(GAP).trim_end());
            text.push('\n');
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let title = &self.columns[column].0;
        cells.chain([title]).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

/// A count with its noun: `1 file`, `2 files`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([("policy", Align::Left), ("cost", Align::Right)]);
        table.row(["mask".to_owned(), "1.33".to_owned()]);
        table.row(["größer als alles".to_owned(), "0.5".to_owned()]);
        assert_eq!(table.render(), "policy            cost\nmask              1.33\ngrößer als alles   0.5\n");
    }
}
