//! Makes an output shorter without losing information, by writing once what every line repeats.
//!
//! Line numbers that a tool added are kept on the first line of a run, on every tenth line, and on lines that begin
//! with a number of their own. Hits of a search are listed below the path of their file. Line numbers are a fifth of
//! what reads cost.

use contexture_files::numbering::{Passage, Style, seems_numbered, split_number, split_surely_numbered};

/// The smallest number of consecutive numbered lines that is worth shortening.
const LEAST_RUN_LINES: usize = 4;

/// Lines whose number is a multiple of this keep it.
const NUMBERED_EVERY: usize = 10;

/// Returns the shorter output, or `None` if nothing is repeated in it.
///
/// `read` is what the output shows of files. A number is removed only from a line that is known without it, because in
/// a table of data the number may belong to the file. Where a file is shown, lines that look like hits are kept.
///
/// ```
/// use contexture_files::numbering::numbered;
/// use contexture_fold::compact::compact;
///
/// let read = "  8→fn main() {\n  9→    hello();\n 10→    world();\n 11→}\n";
/// let blocks = numbered(read).unwrap();
/// let short = compact(read, &blocks.iter().collect::<Vec<_>>()).unwrap();
/// assert_eq!(short, "8→fn main() {\n    hello();\n10→    world();\n}\n");
///
/// let hits = "src/main.rs:3:hello\nsrc/main.rs:9:hello again\n";
/// assert_eq!(compact(hits, &[]).unwrap(), "src/main.rs\n3:hello\n9:hello again\n");
/// ```
pub fn compact(text: &str, read: &[&Passage]) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut short = String::new();
    let mut at = 0;
    while at < lines.len() {
        let rest = &lines[at..];
        let taken = if read.is_empty() { hits(rest, &mut short) } else { numbered_run(rest, read, &mut short) };
        if taken.is_none() {
            short.push_str(rest[0]);
        }
        at += taken.unwrap_or(1);
    }
    (short.len() < text.len()).then_some(short)
}

/// Writes a run of numbered lines with fewer numbers. Returns how many lines it has.
fn numbered_run(lines: &[&str], read: &[&Passage], short: &mut String) -> Option<usize> {
    let (first, style, _) = split_surely_numbered(body(lines[0]))?;
    let bare = |index: usize| {
        let (number, text) = split_number(body(lines[index]), style)?;
        (number == first + index).then_some(text)
    };
    let texts: Vec<&str> = (0..lines.len()).map_while(bare).collect();
    if texts.len() < LEAST_RUN_LINES {
        return None;
    }
    if !read.iter().any(|block| holds(block, first, &texts)) {
        short.extend(lines[..texts.len()].iter().copied());
        return Some(texts.len());
    }
    for (index, (line, text)) in lines.iter().zip(&texts).enumerate() {
        // Without the line's number before it, a number in the text would be taken for the line's.
        let keeps_number = index == 0 || (first + index).is_multiple_of(NUMBERED_EVERY) || seems_numbered(text);
        match keeps_number {
            true if matches!(style, Style::Arrow | Style::Tab) => short.push_str(line.trim_start_matches(' ')),
            true => short.push_str(line),
            false => {
                short.push_str(text);
                short.push_str(&line[body(line).len()..]);
            }
        }
    }
    Some(texts.len())
}

/// Whether a block has these lines, starting at line `first`.
fn holds(block: &Passage, first: usize, texts: &[&str]) -> bool {
    let start = block.first.and_then(|start| first.checked_sub(start));
    let lines = start.and_then(|start| block.lines.get(start..)?.get(..texts.len()));
    lines.is_some_and(|lines| lines == texts)
}

/// A line without its line feed.
fn body(line: &str) -> &str {
    line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line))
}

/// Writes hits in one file below its path. Returns how many lines they have.
fn hits(lines: &[&str], short: &mut String) -> Option<usize> {
    let path = hit_path(lines[0])?;
    let is_hit = |line: &&&str| in_file(line, path).is_some();
    let belongs = |line: &&&str| is_hit(line) || body(line) == BETWEEN_HITS;
    let run = lines.iter().take_while(belongs).count();
    let count = run - lines[..run].iter().rev().take_while(|line| !is_hit(line)).count();
    if lines[..count].iter().filter(is_hit).count() < 2 {
        return None;
    }
    short.push_str(path);
    short.push('\n');
    for line in &lines[..count] {
        short.push_str(in_file(line, path).unwrap_or(line));
    }
    // The next line is not a hit in this file, and must not look like one.
    if lines.get(count).is_some_and(|next| hit_path(next).is_none() && !next.trim().is_empty()) {
        short.push('\n');
    }
    Some(count)
}

/// What searches print between hits that are not adjacent.
const BETWEEN_HITS: &str = "--";

/// The path before the number of a hit.
fn hit_path(line: &str) -> Option<&str> {
    let (path, rest) = line.split_once(':')?;
    let looks_right = path.contains(['/', '.']) && !path.contains(char::is_whitespace);
    (looks_right && is_numbered_by(rest, ':')).then_some(path)
}

/// A hit, or a line around one, without the path of its file.
fn in_file<'a>(line: &'a str, path: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(path)?;
    let mark = rest.chars().next().filter(|mark| matches!(mark, ':' | '-'))?;
    let rest = &rest[1..];
    is_numbered_by(rest, mark).then_some(rest)
}

/// Whether a text begins with a number and a mark.
fn is_numbered_by(text: &str, mark: char) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < text.len() && rest.starts_with(mark)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use contexture_files::numbering::numbered;

    /// Compacts an output, assuming that numbers in front of lines were added by the tool.
    fn compact_read(text: &str) -> Option<String> {
        let blocks = numbered(text).unwrap_or_default();
        compact(text, &blocks.iter().collect::<Vec<_>>())
    }

    #[test]
    fn numbers_that_are_the_file_s_own_stay() {
        let table = "1\tone\n2\ttwo\n3\tthree\n4\tfour\n5\tfive\n";
        assert_eq!(compact(table, &[&Passage::plain(Some(1), table)]), None);
        assert_eq!(compact(table, &[]), None);
        let log = "src/a.rs:1:one\nsrc/a.rs:2:two\n";
        assert_eq!(compact(log, &[&Passage::plain(Some(1), log)]), None);
        assert!(compact_read(table).is_some() && compact(log, &[]).is_some());
    }

    #[test]
    fn what_is_said_once_stays_as_it_is() {
        let cases = [
            "",
            "no numbers\nat all\n",
            "1\tone\n2\ttwo\n3\tthree\n",
            "1\tone\n3\tthree\n5\tfive\n7\tseven\n9\tnine\n",
            "src/a.rs:1:one\nsrc/b.rs:2:two\n",
            "12:30:45 started\n12:30:46 done\n",
            "error: one\nerror: two\n",
        ];
        for text in cases {
            assert_eq!(compact_read(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_stands_around_is_kept() {
        let cases = [
            (
                "<file>\n00009| a\n00010| b\n00011| \n00012| d\n00013| e\n</file>\n",
                "<file>\n00009| a\n00010| b\n\nd\ne\n</file>\n",
            ),
            ("  1\ta\r\n  2\tb\r\n  3\tc\r\n  4\td", "1\ta\r\nb\r\nc\r\nd"),
            ("7: a\n8:\n9: c\n10: d\n", "7: a\n\nc\n10: d\n"),
            // Without their numbers the second line would seem to be line 7, and the fourth line 1.
            ("1\ta\n2\t7\tb\n3\tc\n4\t1. d\n5\te\n", "1\ta\n2\t7\tb\nc\n4\t1. d\ne\n"),
            (
                "x/a.c-8-before\nx/a.c:9:hit\n--\nx/a.c:20:hit\nx/b.c:1:hit\n2 matches\n",
                "x/a.c-8-before\nx/a.c\n9:hit\n--\n20:hit\nx/b.c:1:hit\n2 matches\n",
            ),
            ("x/a.c:9:hit\nx/a.c-10-after\n2 lines\n", "x/a.c\n9:hit\n10-after\n\n2 lines\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(compact_read(text).as_deref(), Some(expected), "{text:?}");
        }
    }

    fn line() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[ a-z(){};]{0,12}",
            1 => "[0-9]{1,3}(\t|: |→|\\| |:)[a-z]{0,3}",
            1 => "[a-z]{1,3}\\.rs:[0-9]{1,2}:[a-z]{0,3}",
            1 => Just("--".to_owned()),
        ]
    }

    /// Reads back numbered lines of which most have lost their number.
    fn lines_from(text: &str, first: usize) -> Vec<String> {
        let plain = |(index, line): (usize, &str)| match split_surely_numbered(line) {
            Some((number, _, rest)) if number == first + index => rest.to_owned(),
            _ => line.to_owned(),
        };
        text.lines().enumerate().map(plain).collect()
    }

    /// Reads back hits of which most have lost their path.
    fn hits_from(text: &str) -> Vec<String> {
        let mut path = None;
        let mut hits = Vec::new();
        for line in text.lines() {
            match path {
                _ if hit_path(line).is_some() => hits.push(line.to_owned()),
                Some(path) if is_numbered_by(line, ':') => hits.push(format!("{path}:{line}")),
                _ => path = Some(line),
            }
        }
        hits
    }

    proptest! {
        #[test]
        fn numbered_lines_can_be_read_back(
            lines in prop::collection::vec(line(), 1..40),
            first in 1_usize..2_000,
            mark in prop::sample::select(vec!["\t", "→", ": "]),
            width in 1_usize..7,
        ) {
            let pad = if mark == ": " { 1 } else { width };
            let numbered = lines.iter().enumerate().map(|(index, line)| format!("{:>pad$}{mark}{line}\n", first + index));
            let text: String = numbered.collect();
            let short = compact_read(&text).unwrap_or(text.clone());
            prop_assert!(short.len() <= text.len());
            prop_assert_eq!(lines_from(&short, first), lines_from(&text, first));
        }

        #[test]
        fn hits_can_be_read_back(hits in prop::collection::vec((0_usize..3, 1_usize..200, "[ a-z(){};]{0,12}"), 0..30)) {
            let text: String = hits.iter().map(|(file, line, hit)| format!("src/{file}.rs:{line}:{hit}\n")).collect();
            let short = compact(&text, &[]).unwrap_or(text.clone());
            prop_assert_eq!(hits_from(&short), text.lines().collect::<Vec<_>>());
        }

        #[test]
        fn any_text_only_gets_shorter(lines in prop::collection::vec(line(), 0..40)) {
            let text = lines.join("\n");
            for short in [compact(&text, &[]), compact_read(&text)] {
                prop_assert!(short.is_none_or(|short| short.len() < text.len()));
            }
        }
    }
}
