//! Finds what was probably meant by a piece that a text does not contain.

/// How many lines of the nearest match are shown.
const MAX_SHOWN: usize = 12;

/// How many lines of a text and of a piece are compared: enough for any edit, and fast for any file.
const MAX_TEXT_LINES: usize = 50_000;
const MAX_PIECE_LINES: usize = 60;

/// The part of a text that has the most lines in common with a piece, with line numbers; `None` if it has none.
///
/// White space around lines is ignored, since that is what models most often get wrong.
pub(super) fn nearest(text: &str, piece: &str) -> Option<String> {
    let wanted: Vec<&str> = piece.lines().map(str::trim).take(MAX_PIECE_LINES).collect();
    let lines: Vec<&str> = text.lines().take(MAX_TEXT_LINES).collect();
    let trimmed: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    let mut best = (0, 0);
    for start in 0..lines.len() {
        let shared = wanted.iter().zip(&trimmed[start..]).map(|(wanted, line)| score(wanted, line)).sum();
        if shared > best.0 {
            best = (shared, start);
        }
    }
    let (shared, start) = best;
    if shared == 0 {
        return None;
    }
    let count = wanted.len().clamp(1, MAX_SHOWN);
    let shown = lines.iter().enumerate().skip(start).take(count);
    let mut nearest = String::new();
    for (index, line) in shown {
        nearest.push_str(&format!("{}\t{}\n", index + 1, &line[..line.floor_char_boundary(400)]));
    }
    Some(nearest)
}

/// The similarity of two lines: equal, or a common prefix or suffix that is longer than chance.
fn score(wanted: &str, line: &str) -> usize {
    if wanted.is_empty() || line.is_empty() {
        return 0;
    }
    if wanted == line {
        return 4 + wanted.len().min(40);
    }
    let start = wanted.bytes().zip(line.bytes()).take_while(|(one, other)| one == other).count();
    let end = wanted.bytes().rev().zip(line.bytes().rev()).take_while(|(one, other)| one == other).count();
    let common = (start + end).min(wanted.len()).min(line.len());
    if common * 2 > wanted.len().max(line.len()) { common.min(40) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    const TEXT: &str = "fn main() {\n    let total = sum(&numbers);\n    println!(\"{total}\");\n}\n";

    #[test]
    fn the_text_that_was_meant_is_found() {
        let found = nearest(TEXT, "  let total = sum(&numbers);\n  println!(\"{total}\");").unwrap();
        assert_eq!(found, "2\t    let total = sum(&numbers);\n3\t    println!(\"{total}\");\n");
        let found = nearest(TEXT, "let total = sum(numbers);").unwrap();
        assert_eq!(found, "2\t    let total = sum(&numbers);\n");
        assert_eq!(nearest(TEXT, "import os"), None);
        assert_eq!(nearest("", "x"), None);
        assert_eq!(nearest(TEXT, "\n\n"), None);
    }
}
