//! Tables of an answer, in columns that are as wide as they must be.

use super::inline::inline;
use super::{BOLD, DIM, Glyph, columns_of, plain, wrapped};

/// What is between two columns.
const BETWEEN: &str = " │ ";

/// Whether a line may be a row of a table.
pub(super) fn is_row(line: &str) -> bool {
    let line = line.trim();
    line.len() > 1 && line.starts_with('|')
}

/// The rows of a table for a screen; `None` if the lines are no table, or if it is too wide in any form.
pub(super) fn table(lines: &[String], columns: usize) -> Option<Vec<Vec<Glyph>>> {
    let [head, rule, rows @ ..] = lines else { return None };
    let is_rule = |cell: &String| !cell.is_empty() && cell.chars().all(|sign| matches!(sign, '-' | ':'));
    if !cells(rule).iter().all(is_rule) {
        return None;
    }
    let head = cells(head).iter().map(|cell| bold(inline(cell))).collect::<Vec<_>>();
    let rows = rows.iter().map(|row| cells(row).iter().map(|cell| inline(cell)).collect::<Vec<_>>());
    let rows: Vec<Vec<Vec<Glyph>>> = std::iter::once(head).chain(rows).collect();
    let widths = widths(&rows, columns)?;
    let mut shown = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        shown.extend(row_lines(row, &widths));
        if at == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            shown.push(plain(&rule.join("─┼─"), DIM));
        }
    }
    Some(shown)
}

/// The cells of a row: what is between bars that are not in code and have no backslash before them.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let (mut cells, mut cell, mut is_code, mut before) = (Vec::new(), String::new(), false, ' ');
    for sign in line.chars() {
        is_code ^= sign == '`';
        match sign {
            '|' if before == '\\' => {
                cell.pop();
                cell.push('|');
            }
            '|' if !is_code => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            sign => cell.push(sign),
        }
        before = sign;
    }
    if !cell.trim().is_empty() {
        cells.push(cell.trim().to_owned());
    }
    cells
}

fn bold(glyphs: Vec<Glyph>) -> Vec<Glyph> {
    glyphs.into_iter().map(|(sign, style)| (sign, if style.is_empty() { BOLD } else { style })).collect()
}

fn width_of(glyphs: &[Glyph]) -> usize {
    glyphs.iter().map(|(sign, _)| columns_of(*sign)).sum()
}

/// The width of each column: of its widest cell, or less where that is too wide, but not less than its longest word.
fn widths(rows: &[Vec<Vec<Glyph>>], columns: usize) -> Option<Vec<usize>> {
    let count = rows.first()?.len();
    let widest = |at: usize, width: fn(&[Glyph]) -> usize| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..count).map(|at| widest(at, width_of)).collect();
    let least: Vec<usize> = (0..count).map(|at| widest(at, longest_word)).collect();
    let between = BETWEEN.chars().count() * count.saturating_sub(1);
    while widths.iter().sum::<usize>() + between > columns {
        let shrinks = (0..count).filter(|at| widths[*at] > least[*at]);
        let at = shrinks.max_by_key(|at| widths[*at])?;
        widths[at] -= 1;
    }
    Some(widths)
}

fn longest_word(cell: &[Glyph]) -> usize {
    cell.split(|(sign, _)| *sign == ' ').map(width_of).max().unwrap_or(0)
}

/// The lines of one row.
fn row_lines(row: &[Vec<Glyph>], widths: &[usize]) -> Vec<Vec<Glyph>> {
    let empty = Vec::new();
    let cells: Vec<Vec<Vec<Glyph>>> =
        (0..widths.len()).map(|at| wrapped(row.get(at).unwrap_or(&empty), 0, widths[at])).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1);
    let mut lines = Vec::new();
    for number in 0..height {
        let mut line: Vec<Glyph> = Vec::new();
        for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if at > 0 {
                line.extend(plain(BETWEEN, DIM));
            }
            let text: &[Glyph] = cell.get(number).map_or(&[], Vec::as_slice);
            line.extend_from_slice(text);
            line.extend(plain(&" ".repeat(width.saturating_sub(width_of(text))), ""));
        }
        while line.last().is_some_and(|(sign, _)| *sign == ' ') {
            line.pop();
        }
        lines.push(line);
    }
    lines
}
