//! The difference that a change makes to a file.

use similar::{ChangeTag, TextDiff};

use super::happening::FileEdit;
use contexture_terminal::harmless::written_out;
use contexture_terminal::screen::{Screen, TextStyle};

/// The most lines of a difference.
const MAX_LINES: usize = 40;

/// Unchanged lines around a change.
const CONTEXT: usize = 2;

/// Larger texts are not compared: it could take long.
const MAX_BYTES: usize = 2 << 20;

/// A change in numbers, on one line.
pub(super) fn counts(edit: &FileEdit) -> String {
    let path = written_out(&edit.path);
    let Some((added, removed)) = counted(edit) else { return format!("  {path} is replaced") };
    match edit.before {
        None => format!("  {path} is new: {added} lines"),
        Some(_) => format!("  {path} +{added} -{removed}"),
    }
}

fn counted(edit: &FileEdit) -> Option<(usize, usize)> {
    let before = edit.before.as_deref().unwrap_or_default();
    if before.len() + edit.after.len() > MAX_BYTES {
        return None;
    }
    let diff = TextDiff::from_lines(before, &edit.after);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    Some((count(ChangeTag::Insert), count(ChangeTag::Delete)))
}

/// A change as lines with signs, of at most a screen.
pub(super) fn coloured(edit: &FileEdit, screen: Screen) -> Vec<String> {
    let mut lines = vec![screen.paint(TextStyle::Bold, &counts(edit))];
    let before = edit.before.as_deref().unwrap_or_default();
    if before.len() + edit.after.len() > MAX_BYTES {
        return lines;
    }
    let diff = TextDiff::from_lines(before, &edit.after);
    let mut all = Vec::new();
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            all.push(screen.paint(TextStyle::Dim, "  ⋮"));
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let (sign, style, number) = match change.tag() {
                ChangeTag::Insert => ('+', TextStyle::Own, change.new_index()),
                ChangeTag::Delete => ('-', TextStyle::Error, change.old_index()),
                ChangeTag::Equal => (' ', TextStyle::Dim, change.new_index()),
            };
            let number = number.map_or(0, |index| index + 1);
            let text = written_out(change.value()).replace('\t', "    ");
            all.push(screen.paint(style, &format!("  {number:>4} {sign}{}", text.trim_end_matches('\n'))));
        }
    }
    let rest = all.len().saturating_sub(MAX_LINES);
    lines.extend(all.into_iter().take(MAX_LINES));
    if rest > 0 {
        lines.push(screen.paint(TextStyle::Dim, &format!("  … and {rest} more lines")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Screen = Screen { columns: 80, has_colours: false };

    fn edit(before: Option<&str>, after: &str) -> FileEdit {
        FileEdit { path: "a.rs".to_owned(), before: before.map(str::to_owned), after: after.to_owned() }
    }

    #[test]
    fn a_change_is_shown_with_numbers_and_signs() {
        let lines = coloured(&edit(Some("one\ntwo\nthree\nfour\nfive\n"), "one\ntwo\n3\nfour\nfive\n"), PLAIN);
        let expected = [
            "  a.rs +1 -1",
            "     1  one",
            "     2  two",
            "     3 -three",
            "     3 +3",
            "     4  four",
            "     5  five",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_large_change_is_cut_and_says_so() {
        let text: String = (0..1_000).map(|line| format!("{line}\n")).collect();
        let lines = coloured(&edit(None, &text), PLAIN);
        assert_eq!(lines[0], "  a.rs is new: 1000 lines");
        assert_eq!((lines.len(), lines[41].as_str()), (42, "  … and 960 more lines"));
        assert_eq!(coloured(&edit(None, &"x".repeat(3 << 20)), PLAIN), ["  a.rs is replaced"]);
    }

    #[test]
    fn colours_are_for_terminals_and_nothing_in_a_file_controls_them() {
        let screen = Screen { columns: 80, has_colours: true };
        let lines = coloured(&edit(Some("a\n"), "\x1b[2Jb\n"), screen);
        assert_eq!(lines[1], "\x1b[1;31m     1 -a\x1b[0m");
        assert_eq!(lines[2], "\x1b[32m     1 +\\u{1b}[2Jb\x1b[0m");
    }
}
