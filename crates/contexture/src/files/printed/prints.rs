//! What a pipeline prints.

use super::super::mentions::looks_like_file;
use super::super::numbering::line_number;
use super::super::shell::Command;
use super::git;
use super::sed::ranges;
use super::{Headed, Printed, Prints};

/// What a pipeline prints, seen from its first command through its filters.
pub(super) fn of_pipeline(pipeline: &[Command], place: &dyn Fn(&str) -> String) -> Prints {
    let mut prints = of_command(&pipeline[0], place);
    for filter in &pipeline[1..] {
        prints = filtered(prints, filter);
    }
    let last = pipeline.last().expect("a pipeline has at least one command");
    if last.writes.iter().all(|write| write.of_errors) { prints } else { Prints::Nothing }
}

/// What a command prints by itself.
pub(super) fn of_command(command: &Command, place: &dyn Fn(&str) -> String) -> Prints {
    let arguments = command.arguments();
    let operands: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    match command.program() {
        "cat" | "bat" | "nl" => match operands.as_slice() {
            [path] => {
                let numbered = command.program() == "nl" || arguments.iter().any(|word| word == "-n");
                Prints::File(Printed { numbered, ..Printed::whole(place(path)) })
            }
            [] => Prints::Nothing,
            paths if command.program() == "cat" && arguments.len() == paths.len() && paths.iter().all(is_path) => {
                Prints::Files(paths.iter().map(|path| place(path)).collect())
            }
            _ => Prints::Anything,
        },
        "head" | "tail" => head_or_tail(command, &operands, place),
        "sed" => sed_prints(command, &operands, place),
        "echo" | "printf" => echoed(command),
        "grep" | "rg" | "ag" => Prints::Matches(searched_file(&operands).map(place)),
        "git" => git::prints(arguments, place),
        "cd" | "mkdir" | "mv" | "rm" | "cp" | "touch" | "export" | "set" | "true" | "test" | "chmod" | "sleep"
        | "gofmt" | "" => Prints::Nothing,
        _ => Prints::Anything,
    }
}

/// Whether a word names one file: no variable, no pattern.
pub(super) fn is_path(word: &&str) -> bool {
    !word.is_empty() && !word.contains(['$', '`', '*', '?', '[', '{'])
}

fn echoed(command: &Command) -> Prints {
    let text = command.arguments().join(" ");
    if command.program() == "printf" || text.contains(['$', '`']) { Prints::Anything } else { Prints::Text(text) }
}

/// The only file that a search looked into, if there is one.
fn searched_file<'a>(operands: &[&'a str]) -> Option<&'a str> {
    match operands {
        [_, path] if looks_like_file(path) => Some(path),
        _ => None,
    }
}

/// What `sed` prints of a file.
fn sed_prints(command: &Command, operands: &[&str], place: &dyn Fn(&str) -> String) -> Prints {
    match operands {
        [script, path] if command.arguments().iter().any(|word| word == "-n") => {
            let whole = Printed::whole(place(path));
            let Some(mut ranges) = ranges(script) else { return Prints::File(Printed { first: None, ..whole }) };
            let (first, count) = ranges.remove(0);
            Prints::File(Printed { first: Some(first), count, more: ranges, ..whole })
        }
        _ => Prints::Anything,
    }
}

/// Lines that `head` prints when it is not told how many.
const HEAD_LINES: usize = 10;

/// What `head` and `tail` print of one or more files.
fn head_or_tail(command: &Command, operands: &[&str], place: &dyn Fn(&str) -> String) -> Prints {
    let arguments = command.arguments();
    let files: Vec<&str> = operands.iter().copied().filter(|word| !is_count(word)).collect();
    if arguments.iter().any(|word| is_other_unit(word)) {
        return Prints::Anything;
    }
    let each = |path: String| match command.program() {
        "head" => Printed { count: Some(line_count(arguments).unwrap_or(HEAD_LINES)), ..Printed::whole(path) },
        _ => Printed { first: tail_start(arguments), ..Printed::whole(path) },
    };
    match files.as_slice() {
        [] => Prints::Anything,
        [path] if is_path(path) => Prints::File(each(place(path))),
        _ if arguments.iter().any(|word| word == "-q") => Prints::Anything,
        _ => {
            let headed =
                Headed { prefix: "==> ".into(), suffix: " <==".into(), directory: None, each: each(String::new()) };
            Prints::Headed(Headed { directory: directory_of(place), ..headed })
        }
    }
}

/// The directory that paths are placed in.
fn directory_of(place: &dyn Fn(&str) -> String) -> Option<String> {
    place("").strip_suffix('/').map(str::to_owned)
}

fn is_count(word: &str) -> bool {
    word.trim_start_matches('+').parse::<usize>().is_ok()
}

/// Whether an option counts bytes, or from the end, so that nothing can be said about lines.
fn is_other_unit(word: &str) -> bool {
    word.starts_with("-c") || word.starts_with("-n-") || word.starts_with("--bytes")
}

/// The number in `-n 20`, `-n20` or `-20`.
fn line_count(arguments: &[String]) -> Option<usize> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "-n" || word == "--lines" {
            return line_number(words.next()?.trim_start_matches('+'));
        }
        let digits =
            word.strip_prefix("-n").or_else(|| word.strip_prefix("--lines=")).or_else(|| word.strip_prefix('-'));
        if let Some(count) = digits.and_then(line_number) {
            return Some(count);
        }
    }
    None
}

/// The first line of `tail -n +20`.
fn tail_start(arguments: &[String]) -> Option<usize> {
    let word = arguments.iter().find_map(|word| word.strip_prefix("-n+").or_else(|| word.strip_prefix('+')))?;
    line_number(word)
}

/// What is left of a print after a filter.
fn filtered(prints: Prints, filter: &Command) -> Prints {
    let arguments = filter.arguments();
    match (prints, filter.program()) {
        (Prints::File(printed), "sed") => {
            let script = arguments.iter().find(|word| !word.starts_with('-'));
            match script.and_then(|script| ranges(script)) {
                Some(mut ranges) if printed.first == Some(1) || ranges.len() == 1 => {
                    let (first, count) = ranges.remove(0);
                    let start = printed.first.map(|start| start + first.saturating_sub(1));
                    Prints::File(Printed { first: start, count, more: ranges, ..printed })
                }
                Some(_) => Prints::Anything,
                None if printed.numbered => Prints::File(printed),
                None => Prints::Anything,
            }
        }
        (Prints::File(printed), "head") => {
            let count = line_count(arguments).unwrap_or(10);
            Prints::File(Printed { count: Some(printed.count.map_or(count, |known| known.min(count))), ..printed })
        }
        (Prints::File(printed), "tail") => {
            let start = tail_start(arguments).zip(printed.first).map(|(start, first)| first + start.max(1) - 1);
            Prints::File(Printed { first: start, count: None, more: Vec::new(), ..printed })
        }
        (Prints::File(printed), "cat" | "nl") => {
            let numbered = printed.numbered || filter.program() == "nl";
            // Numbers that `nl` puts on a part of a file are not the file's.
            let first = if filter.program() == "nl" && printed.first != Some(1) { None } else { printed.first };
            Prints::File(Printed { numbered, first, ..printed })
        }
        // Numbers that a search puts on a part of a file are not the file's.
        (Prints::File(printed), "grep" | "rg") if printed.first == Some(1) && printed.more.is_empty() => {
            Prints::Matches(Some(printed.path))
        }
        (
            matches @ (Prints::Matches(_) | Prints::Diff(_) | Prints::Blame(..)),
            "head" | "tail" | "grep" | "rg" | "sort" | "cat" | "sed",
        ) => matches,
        // Whatever is cut off, names and lines that are left still belong together.
        (headed @ Prints::Headed(_), "head" | "cat") => headed,
        (Prints::Nothing, _) => Prints::Nothing,
        _ => Prints::Anything,
    }
}
