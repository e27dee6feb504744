//! What a terminal shows after some output: as much of a terminal as the program uses.

use unicode_width::UnicodeWidthChar;

/// How a character looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub is_bold: bool,
    pub is_dim: bool,
    /// The number of a colour, such as 31 for red.
    pub colour: Option<u8>,
}

/// A character in one or two columns; the second column of a wide one is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    pub look: Look,
}

/// All rows that were ever written, and the cursor.
pub struct Screen {
    columns: usize,
    rows: Vec<Vec<Cell>>,
    row: usize,
    column: usize,
    look: Look,
}

impl Screen {
    /// What is shown after this output.
    pub fn after(output: &str, columns: usize) -> Self {
        let mut screen = Self { columns, rows: vec![Vec::new()], row: 0, column: 0, look: Look::default() };
        let mut rest = output;
        while let Some(character) = rest.chars().next() {
            rest = &rest[character.len_utf8()..];
            match character {
                '\x1b' => rest = screen.escape(rest),
                '\r' => screen.column = 0,
                '\n' => screen.down(),
                character => screen.put(character),
            }
        }
        screen
    }

    /// The rows, without empty ones at the end.
    pub fn rows(&self) -> &[Vec<Cell>] {
        let is_blank = |row: &Vec<Cell>| row.iter().all(|cell| cell.text.trim().is_empty());
        let count = self.rows.iter().rposition(|row| !is_blank(row)).map_or(0, |last| last + 1);
        &self.rows[..count]
    }

    /// The row and the column of the cursor.
    pub fn cursor(&self) -> (usize, usize) {
        (self.row, self.column)
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }

    fn put(&mut self, character: char) {
        let width = character.width().unwrap_or(0);
        if self.column + width > self.columns {
            self.column = 0;
            self.down();
        }
        let row = &mut self.rows[self.row];
        if row.len() < self.column + width {
            row.resize(self.column + width, Cell::default());
        }
        for (offset, cell) in row[self.column..self.column + width].iter_mut().enumerate() {
            let text = if offset == 0 { character.to_string() } else { String::new() };
            *cell = Cell { text, look: self.look };
        }
        self.column += width;
    }

    /// Does what a sequence says that begins after its escape; returns what follows it.
    fn escape<'a>(&mut self, rest: &'a str) -> &'a str {
        let Some(body) = rest.strip_prefix('[') else { return rest };
        let end = body.find(|character: char| ('@'..='~').contains(&character)).expect("a whole sequence");
        let (parameters, kind) = (&body[..end], body.as_bytes()[end]);
        let count = parameters.parse::<usize>().unwrap_or(1);
        match kind {
            b'A' => self.row = self.row.saturating_sub(count),
            b'C' => self.column += count,
            b'J' => {
                self.rows.truncate(self.row + 1);
                self.rows[self.row].truncate(self.column);
            }
            b'm' => parameters.split(';').for_each(|code| self.change_look(code)),
            // Modes of the keyboard, which are not seen.
            b'h' | b'l' => {}
            other => panic!("the program uses a sequence that is not known here: {:?}", other as char),
        }
        &body[end + 1..]
    }

    fn change_look(&mut self, code: &str) {
        match code.parse::<u8>().unwrap_or(0) {
            0 => self.look = Look::default(),
            1 => self.look.is_bold = true,
            2 => self.look.is_dim = true,
            colour @ 30..=37 => self.look.colour = Some(colour),
            other => panic!("the program uses a style that is not known here: {other}"),
        }
    }
}
