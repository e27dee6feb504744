//! Answers as a terminal shows them: Markdown, line by line, broken between words.

mod inline;
mod table;

use unicode_width::UnicodeWidthChar;

use crate::code::{self, Language};
use crate::screen::Screen;
use inline::inline;

/// A character with its style, a code of the terminal that is empty for plain text.
pub(super) type Glyph = (char, &'static str);

const BOLD: &str = "1";
const DIM: &str = "2";
const CODE: &str = "36";
const HEADING: &str = "1;36";

/// The columns of a tab.
const TAB: usize = 4;

/// The most lines of a table; what follows is a table of its own.
const MAX_TABLE_LINES: usize = 500;

/// An answer that is being shown. It knows whether it is inside a block of code, or of a table.
#[derive(Clone, Debug, Default)]
pub struct Markdown {
    /// The fence that ends the block of code, and its language.
    code: Option<(String, Language)>,
    /// The lines of a table that has not ended: its columns are as wide as all of them need.
    table: Vec<String>,
    /// Whether a word that is longer than a row is broken; otherwise it is left to the terminal, which keeps it whole for
    /// those who copy it.
    breaks_words: bool,
}

impl Markdown {
    /// The rows that can be shown after a whole line. Those of a table come when it has ended.
    pub fn line(&mut self, line: &str, screen: Screen) -> Vec<String> {
        if self.code.is_none() && table::is_row(line) && self.table.len() < MAX_TABLE_LINES {
            self.table.push(line.to_owned());
            return Vec::new();
        }
        let mut rows = self.end(screen);
        rows.extend(self.rows(line, screen));
        rows
    }

    /// The rows that are left when the answer has ended.
    pub fn end(&mut self, screen: Screen) -> Vec<String> {
        let lines = std::mem::take(&mut self.table);
        match table::table(&lines, screen.columns) {
            Some(rows) => rows.iter().map(|row| painted(row, screen)).collect(),
            None => lines.iter().flat_map(|line| self.rows(line, screen)).collect(),
        }
    }

    /// The rows of a line that is not complete, after what is shown already. They can be drawn over: none is wider than
    /// the screen.
    pub fn unfinished(&self, line: &str, screen: Screen) -> Vec<String> {
        let mut ahead = Self { breaks_words: true, ..self.clone() };
        let mut rows = if line.is_empty() { Vec::new() } else { ahead.line(line, screen) };
        rows.extend(ahead.end(screen));
        rows
    }

    fn rows(&mut self, line: &str, screen: Screen) -> Vec<String> {
        let (glyphs, indent) = self.glyphs(line);
        let mut rows = wrapped(&glyphs, indent, screen.columns);
        if self.breaks_words {
            rows = rows.iter().flat_map(|row| broken(row, screen.columns)).collect();
        }
        rows.iter().map(|row| painted(row, screen)).collect()
    }

    /// The line in its styles, and the indent of its further rows.
    fn glyphs(&mut self, line: &str) -> (Vec<Glyph>, usize) {
        let start = line.trim_start();
        let indent = columns(&line[..line.len() - start.len()]);
        if let Some((fence, language)) = &self.code {
            if start.trim_end().starts_with(fence.as_str()) && start.trim_end().chars().all(|c| fence.starts_with(c)) {
                self.code = None;
                return (plain(line, DIM), 0);
            }
            return (code::coloured(line, *language), indent + 2);
        }
        let fence: String = start.chars().take_while(|c| matches!(c, '`' | '~')).collect();
        if fence.len() >= 3 && fence.chars().all(|c| fence.starts_with(c)) {
            let language = Language::named(start[fence.len()..].trim());
            self.code = Some((fence, language));
            return (plain(line, DIM), 0);
        }
        let marks = start.chars().take_while(|c| *c == '#').count();
        if (1..=6).contains(&marks) && start[marks..].starts_with(' ') {
            return (plain(start[marks..].trim(), HEADING), 0);
        }
        if start.len() >= 3 && ["-", "*", "_"].iter().any(|mark| start.trim_end().chars().all(|c| mark.starts_with(c)))
        {
            return (plain(&"─".repeat(12), DIM), 0);
        }
        if let Some(quoted) = start.strip_prefix("> ").or(start.strip_prefix('>')) {
            let mut glyphs = plain("│ ", DIM);
            glyphs.extend(inline(quoted));
            return (glyphs, 2);
        }
        listed(line, start, indent)
    }
}

/// A line that may be a point of a list.
fn listed(line: &str, start: &str, indent: usize) -> (Vec<Glyph>, usize) {
    let digits = start.bytes().take_while(u8::is_ascii_digit).count();
    let is_numbered = (1..=9).contains(&digits) && start[digits..].starts_with(". ");
    let is_point = ["- ", "* ", "+ "].iter().any(|mark| start.starts_with(mark));
    let before = &line[..line.len() - start.len()];
    match (is_point, is_numbered) {
        (true, _) => {
            let mut glyphs = plain(before, "");
            glyphs.extend(plain("• ", ""));
            glyphs.extend(inline(&start[2..]));
            (glyphs, indent + 2)
        }
        (false, true) => (inline(line), indent + digits + 2),
        (false, false) => (inline(line), indent),
    }
}

fn plain(text: &str, style: &'static str) -> Vec<Glyph> {
    text.chars().map(|character| (character, style)).collect()
}

/// Rows of at most so many columns, broken at spaces; a word that is longer than a row keeps its row to itself and is
/// left to the terminal.
pub(super) fn wrapped(glyphs: &[Glyph], indent: usize, columns: usize) -> Vec<Vec<Glyph>> {
    let columns = columns.max(2);
    let indent = if indent * 2 > columns { 0 } else { indent };
    let mut rows: Vec<Vec<Glyph>> = vec![Vec::new()];
    let mut column = 0;
    for word in glyphs.split_inclusive(|(character, _)| *character == ' ') {
        let is_spaced = word.last().is_some_and(|(character, _)| *character == ' ');
        let width: usize = word.iter().map(|(character, _)| columns_of(*character)).sum();
        let needed = width - usize::from(is_spaced);
        let is_begun = rows.last().is_some_and(|row| row.iter().any(|(character, _)| *character != ' '));
        if is_begun && column + needed > columns {
            if let Some(row) = rows.last_mut() {
                while row.last().is_some_and(|(character, _)| *character == ' ') {
                    row.pop();
                }
            }
            rows.push(vec![(' ', ""); indent]);
            column = indent;
        }
        if let Some(row) = rows.last_mut() {
            row.extend_from_slice(word);
        }
        column += width;
    }
    rows
}

/// A row in rows of at most so many columns, wherever its words end.
fn broken(row: &[Glyph], columns: usize) -> Vec<Vec<Glyph>> {
    let (mut rows, mut column) = (vec![Vec::new()], 0);
    for glyph in row {
        let width = columns_of(glyph.0);
        if column > 0 && column + width > columns {
            rows.push(Vec::new());
            column = 0;
        }
        if let Some(row) = rows.last_mut() {
            row.push(*glyph);
        }
        column += width;
    }
    rows
}

/// A row with its styles, if there are colours.
pub(super) fn painted(row: &[Glyph], screen: Screen) -> String {
    let mut text = String::new();
    for run in row.chunk_by(|(_, one), (_, other)| one == other) {
        let style = run.first().map_or("", |(_, style)| style);
        let plain: String = run.iter().map(|(character, _)| *character).collect();
        let plain = plain.replace('\t', &" ".repeat(TAB));
        match screen.has_colours && !style.is_empty() {
            true => text.push_str(&format!("\x1b[{style}m{plain}\x1b[0m")),
            false => text.push_str(&plain),
        }
    }
    text
}

/// Plain text in rows that are broken between words, all but the first with an indent.
pub fn wrapped_text(text: &str, indent: usize, columns: usize) -> Vec<String> {
    let none = Screen { columns, has_colours: false };
    wrapped(&plain(text, ""), indent, columns).iter().map(|row| painted(row, none)).collect()
}

/// A text that is cut where a row ends.
pub fn cut(text: &str, columns: usize) -> String {
    let mut width = 0;
    for (at, character) in text.char_indices() {
        width += columns_of(character);
        if width > columns {
            let kept: String = text[..at].chars().collect();
            let kept = kept.strip_suffix(|_: char| true).unwrap_or_default();
            return format!("{kept}…");
        }
    }
    text.replace('\t', &" ".repeat(TAB))
}

fn columns_of(character: char) -> usize {
    if character == '\t' { TAB } else { character.width().unwrap_or(0) }
}

/// The columns that a plain text takes in a row.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: Screen = Screen { columns: 24, has_colours: false };
    const COLOURED: Screen = Screen { columns: 40, has_colours: true };

    #[track_caller]
    fn check(text: &str, screen: Screen, expected: &[&str]) {
        let mut markdown = Markdown::default();
        let mut rows: Vec<String> = text.lines().flat_map(|line| markdown.line(line, screen)).collect();
        rows.extend(markdown.end(screen));
        assert_eq!(rows, expected);
    }

    #[test]
    fn words_are_never_cut() {
        check("one two three four five six", BARE, &["one two three four five", "six"]);
        check("- a point that needs two rows", BARE, &["• a point that needs two", "  rows"]);
        check("12. a point that needs two", BARE, &["12. a point that needs", "    two"]);
        check("a-word-that-is-longer-than-a-row and", BARE, &["a-word-that-is-longer-than-a-row", "and"]);
        check("日本語の 日本語の 日本語の", BARE, &["日本語の 日本語の", "日本語の"]);
        check("> quoted words in rows, more", BARE, &["│ quoted words in rows,", "  more"]);
        check("\n", BARE, &[""]);
        check("                              x", BARE, &["                              x"]);
    }

    #[test]
    fn markdown_has_colours_where_there_are_any() {
        check("# Title", COLOURED, &["\x1b[1;36mTitle\x1b[0m"]);
        check("see `one` and **two**", COLOURED, &["see \x1b[36mone\x1b[0m and \x1b[1mtwo\x1b[0m"]);
        check("see `one` and **two**", BARE, &["see one and two"]);
        check("2 ** 3 and a ` tick", COLOURED, &["2 ** 3 and a ` tick"]);
        check("---", BARE, &["────────────"]);
        check("#hashtag", BARE, &["#hashtag"]);
    }

    #[test]
    fn emphasis_and_links_are_shown_and_their_marks_are_not() {
        check("an *old* _thing_ ~~gone~~", COLOURED, &["an \x1b[3mold\x1b[0m \x1b[3mthing\x1b[0m \x1b[9mgone\x1b[0m"]);
        check("**so *very* bold**", COLOURED, &["\x1b[1mso \x1b[0m\x1b[1;3mvery\x1b[0m\x1b[1m bold\x1b[0m"]);
        check("***all***", BARE, &["all"]);
        check("see [the page](https://x.y)", BARE, &["see the page", "(https://x.y)"]);
        check("[https://x.y](https://x.y)", BARE, &["https://x.y"]);
        check("[#a.rs](#a-rs)", BARE, &["#a.rs"]);
        check("a[0](x) b", BARE, &["a[0](x) b"]);
    }

    #[test]
    fn what_is_no_emphasis_is_left_alone() {
        for text in ["snake_case_name", "2*3*4", "a * b * c", "*x", "__init__.py x", "f(*args, **kw)", "[x] done"] {
            check(text, BARE, &[text]);
        }
        check(r"\*not\* C:\dir", BARE, &[r"*not* C:\dir"]);
        // Marks without an end cost time for the line, not for its square.
        let long = "*a [c ".repeat(2_000);
        assert_eq!(inline(&long).len(), long.len());
    }

    #[test]
    fn tables_have_columns() {
        let text = "| name | is |\n| --- | :-: |\n| `a\\|b` | **one** |\n| c |\nend";
        check(text, BARE, &["name │ is", "─────┼────", "a|b  │ one", "c    │", "end"]);
        let wide = "| a | about |\n|---|---|\n| x | words that need two rows |";
        check(wide, BARE, &["a │ about", "──┼─────────────────────", "x │ words that need two", "  │ rows"]);
        let too_wide = "| a |\n|---|\n| a-word-that-is-longer-than-a-row |";
        check(too_wide, BARE, &["| a |", "|---|", "|", "a-word-that-is-longer-than-a-row", "|"]);
        check("| no table", BARE, &["| no table"]);
        check("|x|\ny", BARE, &["|x|", "y"]);
    }

    #[test]
    fn code_is_left_as_it_is() {
        let text = "```rust\n# not a title\n**x** // why\n```\n# title";
        check(text, BARE, &["```rust", "# not a title", "**x** // why", "```", "title"]);
        let rows = ["\x1b[2m```py\x1b[0m", "\x1b[35mreturn\x1b[0m \x1b[33m1\x1b[0m \x1b[2m# a\x1b[0m"];
        check("```py\nreturn 1 # a", COLOURED, &rows);
        // A longer fence may hold a shorter one.
        check("````\n```\n````\n- x", BARE, &["````", "```", "````", "• x"]);
    }
}
