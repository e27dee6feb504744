//! A text as numbered rows, so that what was left out of it can be asked for by number.

use std::ops::Range;

/// Longest row, in bytes.
const MAX_ROW_BYTES: usize = 1_000;

/// The rows of a text: its lines, with a very long line split into several rows.
///
/// Code that names rows and code that shows them both use this type, so their numbers agree.
///
/// ```
/// use contexture_fold::rows::Rows;
/// let rows = Rows::new("one\ntwo\nthree");
/// assert_eq!(rows.len(), 3);
/// assert_eq!(rows.get(1..3), "two\nthree");
/// ```
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    text: &'a str,
    /// Where each row ends, in bytes.
    ends: Vec<usize>,
}

impl<'a> Rows<'a> {
    /// Cuts a text into rows.
    pub fn new(text: &'a str) -> Self {
        let mut ends = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            while end - start > MAX_ROW_BYTES {
                start = text.floor_char_boundary(start + MAX_ROW_BYTES);
                ends.push(start);
            }
            ends.push(end);
            start = end;
        }
        Self { text, ends }
    }

    /// The text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Some rows, counted from 0, with their line feeds.
    pub fn get(&self, rows: Range<usize>) -> &'a str {
        &self.text[self.bytes(rows)]
    }

    /// Every row, with its line feed.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + '_ {
        (0..self.len()).map(|row| self.get(row..row + 1))
    }

    /// The bytes of some rows, counted from 0; rows that do not exist have none.
    pub fn bytes(&self, rows: Range<usize>) -> Range<usize> {
        let end_of = |row: usize| row.min(self.len()).checked_sub(1).map_or(0, |row| self.ends[row]);
        let start = end_of(rows.start);
        start..end_of(rows.end).max(start)
    }

    /// The row that holds a byte.
    pub fn at(&self, byte: usize) -> usize {
        self.ends.partition_point(|end| *end <= byte)
    }
}
