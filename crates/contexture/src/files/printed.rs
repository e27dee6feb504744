//! What shell commands printed, told apart by file.

use super::dialect::observe_patch;
use super::numbering::{Block, line_number, numbered, split_lines};
use super::observation::Observation;
use super::patch::{FilePatch, parse_unified};
use super::shell::{Command, parse};

/// What one pipeline of a command line prints.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Prints {
    /// Nothing.
    Nothing,
    /// A known line of text.
    Text(String),
    /// Lines of a file.
    File(Printed),
    /// Lines that a search found; the file, if it searched only one.
    Matches(Option<String>),
    /// A diff.
    Diff,
    /// Something else.
    Anything,
}

/// Which lines of a file are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Printed {
    path: String,
    /// The first line, if it is known.
    first: Option<usize>,
    /// How many lines at most.
    count: Option<usize>,
    /// More ranges behind the first, as first line and count.
    more: Vec<(usize, Option<usize>)>,
    /// Whether line numbers are printed.
    numbered: bool,
}

/// Looks into a command line and what it printed.
pub(crate) fn observe_shell(line: &str, result: &str, workdir: Option<&str>, failed: bool) -> Vec<Observation> {
    let commands = parse(line);
    let mut directory = workdir.map(str::to_owned);
    let mut observations = Vec::new();
    let mut prints = Vec::new();
    let mut start = 0;
    while start < commands.len() {
        let len = 1 + commands[start + 1..].iter().take_while(|command| command.piped).count();
        let pipeline = &commands[start..start + len];
        start += len;
        if let ("cd", Some(to)) = (pipeline[0].program(), pipeline[0].arguments().first()) {
            directory = Some(join(directory.as_deref(), to));
            continue;
        }
        let place = |path: &str| join(directory.as_deref(), path);
        if !failed {
            changes(pipeline, &place, &mut observations);
        }
        prints.push(pipeline_prints(pipeline, &place));
    }
    attribute(&prints, strip_harness(result), &mut observations);
    observations
}

/// A path seen from a directory.
fn join(directory: Option<&str>, path: &str) -> String {
    match directory {
        Some(directory) if !path.starts_with(['/', '~', '$']) => {
            format!("{}/{path}", directory.trim_end_matches('/'))
        }
        _ => path.to_owned(),
    }
}

/// The files that a pipeline changes.
fn changes(pipeline: &[Command], place: &dyn Fn(&str) -> String, observations: &mut Vec<Observation>) {
    for command in pipeline {
        for redirect in &command.writes {
            observations.push(redirected(command, place(&redirect.path), redirect.append));
        }
        let arguments = command.arguments();
        let operands: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
        match (command.program(), operands.as_slice()) {
            ("sed" | "perl", _) if is_in_place(arguments) => {
                let last = operands.last().filter(|_| operands.len() > 1 || arguments.iter().any(|word| word == "-e"));
                observations.extend(last.map(|path| Observation::Changed { path: place(path) }));
            }
            ("gofmt" | "goimports" | "rustfmt" | "black" | "prettier", _) => {
                let paths = operands.iter().filter(|path| looks_like_file(path));
                observations.extend(paths.map(|path| Observation::Changed { path: place(path) }));
            }
            ("tee", [path, ..]) => observations.push(Observation::Changed { path: place(path) }),
            ("mv", [from, to]) => {
                observations.push(Observation::Move { from: place(from), to: place(&destination(from, to)) })
            }
            ("rm", paths) => observations.extend(paths.iter().map(|path| Observation::Delete { path: place(path) })),
            ("apply_patch", _) => {
                let text = command.input.as_deref().or_else(|| operands.first().map(|word| word.as_str()));
                observations.extend(text.map(|text| observe_patch(text, None)).unwrap_or_default());
            }
            ("git", [action, rest @ ..]) => git_changes(action, rest, command, place, observations),
            _ => {}
        }
    }
}

fn redirected(command: &Command, path: String, append: bool) -> Observation {
    let text = match (command.program(), &command.input) {
        ("cat" | "tee" | "", Some(text)) => Some(text.clone()),
        ("echo", _) if !command.words.iter().any(|word| word.contains('$') || word == "-e") => {
            Some(format!("{}\n", command.arguments().join(" ")))
        }
        _ => None,
    };
    match text {
        Some(text) if append => Observation::Append { path, text },
        Some(text) => Observation::Write { path, text },
        None => Observation::Changed { path },
    }
}

fn is_in_place(arguments: &[String]) -> bool {
    arguments
        .iter()
        .any(|word| word == "--in-place" || (word.starts_with('-') && !word.starts_with("--") && word.contains('i')))
}

/// Where `mv` puts a file: a directory keeps the file's name.
fn destination(from: &str, to: &str) -> String {
    let name = from.rsplit('/').next().unwrap_or(from);
    if to.ends_with('/') { format!("{to}{name}") } else { to.to_owned() }
}

fn git_changes(
    action: &str,
    operands: &[&String],
    command: &Command,
    place: &dyn Fn(&str) -> String,
    observations: &mut Vec<Observation>,
) {
    match (action, operands) {
        ("apply", _) => {
            let patches = command.input.as_deref().map(|text| observe_patch(text, None));
            observations.extend(patches.unwrap_or_default());
        }
        ("mv", [from, to]) => {
            observations.push(Observation::Move { from: place(from), to: place(&destination(from, to)) })
        }
        ("rm", paths) => observations.extend(paths.iter().map(|path| Observation::Delete { path: place(path) })),
        ("checkout" | "restore", paths) => {
            let files = paths.iter().filter(|path| looks_like_file(path));
            observations.extend(files.map(|path| Observation::Changed { path: place(path) }));
        }
        _ => {}
    }
}

/// Whether a word names a file: its last part has an extension.
fn looks_like_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        !extension.is_empty() && extension.len() <= 8 && extension.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// What a pipeline prints, seen from its first command through its filters.
fn pipeline_prints(pipeline: &[Command], place: &dyn Fn(&str) -> String) -> Prints {
    let mut prints = command_prints(&pipeline[0], place);
    for filter in &pipeline[1..] {
        prints = filtered(prints, filter);
    }
    let last = pipeline.last().expect("a pipeline has at least one command");
    if last.writes.is_empty() { prints } else { Prints::Nothing }
}

fn command_prints(command: &Command, place: &dyn Fn(&str) -> String) -> Prints {
    let arguments = command.arguments();
    let operands: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    match command.program() {
        "cat" | "bat" | "nl" => match operands.as_slice() {
            [path] => {
                let numbered = command.program() == "nl" || arguments.iter().any(|word| word == "-n");
                Prints::File(Printed { path: place(path), first: Some(1), count: None, numbered, more: Vec::new() })
            }
            [] => Prints::Nothing,
            _ => Prints::Anything,
        },
        "head" | "tail" | "sed" => file_prints(command, &operands, place),
        "echo" | "printf" => echoed(command),
        "grep" | "rg" | "ag" => Prints::Matches(searched_file(&operands).map(place)),
        "git" if git_file(&operands).is_some() => {
            let path = git_file(&operands).unwrap_or_default().to_owned();
            Prints::File(Printed { path, first: Some(1), count: None, numbered: false, more: Vec::new() })
        }
        "git" if operands.iter().any(|word| ["diff", "show", "log"].contains(word)) => Prints::Diff,
        "git" if operands.iter().any(|word| ["add", "checkout", "mv"].contains(word)) => Prints::Nothing,
        "cd" | "mkdir" | "mv" | "rm" | "cp" | "touch" | "export" | "set" | "true" | "test" | "chmod" | "sleep"
        | "gofmt" => Prints::Nothing,
        "" => Prints::Nothing,
        _ => Prints::Anything,
    }
}

/// The file at a revision that `git show REVISION:PATH` prints. It is another file than the one on disk.
fn git_file<'a>(operands: &[&'a str]) -> Option<&'a str> {
    let at = operands.iter().position(|word| *word == "show")?;
    operands.get(at + 1).copied().filter(|word| word.contains(':') && !word.starts_with(':'))
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

/// What `head`, `tail` and `sed` print of a file.
fn file_prints(command: &Command, operands: &[&str], place: &dyn Fn(&str) -> String) -> Prints {
    let program = command.program();
    let arguments = command.arguments();
    if program == "sed" {
        return match operands {
            [script, path] if arguments.iter().any(|word| word == "-n") => {
                let Some(mut ranges) = sed_ranges(script) else { return anything_of(place(path)) };
                let (first, count) = ranges.remove(0);
                Prints::File(Printed { path: place(path), first: Some(first), count, numbered: false, more: ranges })
            }
            _ => Prints::Anything,
        };
    }
    let count = line_count(arguments);
    let files: Vec<&&str> = operands.iter().filter(|word| word.parse::<usize>().is_err()).collect();
    match files.as_slice() {
        [path] if program == "head" => Prints::File(Printed {
            path: place(path),
            first: Some(1),
            count: Some(count.unwrap_or(10)),
            numbered: false,
            more: Vec::new(),
        }),
        [path] => Prints::File(Printed {
            path: place(path),
            first: tail_start(arguments),
            count: None,
            numbered: false,
            more: Vec::new(),
        }),
        _ => Prints::Anything,
    }
}

/// Lines of a file, nobody knows which.
fn anything_of(path: String) -> Prints {
    Prints::File(Printed { path, first: None, count: None, numbered: false, more: Vec::new() })
}

/// The ranges of a `sed -n` script that only prints: `1,20p`, `5p`, `7,$p`, `1,5p;9,12p`.
///
/// Each is a first line and a count. They must rise, so that what is printed is in order.
fn sed_ranges(script: &str) -> Option<Vec<(usize, Option<usize>)>> {
    let mut ranges: Vec<(usize, Option<usize>)> = Vec::new();
    for part in script.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = sed_range(part)?;
        let rises = ranges.last().is_none_or(|(before, count)| count.is_some_and(|count| before + count <= first));
        if !rises {
            return None;
        }
        ranges.push((first, last.map(|last| last.saturating_sub(first) + 1)));
    }
    (!ranges.is_empty()).then_some(ranges)
}

fn sed_range(part: &str) -> Option<(usize, Option<usize>)> {
    let range = part.strip_suffix('p')?;
    let Some((first, last)) = range.split_once(',') else {
        let line = line_number(range.trim())?;
        return Some((line, Some(line)));
    };
    let first = line_number(first.trim())?;
    match last.trim() {
        "$" => Some((first, None)),
        last => match last.strip_prefix('+') {
            Some(more) => Some((first, Some(first + line_number(more)?))),
            None => Some((first, Some(line_number(last)?))),
        },
    }
}

/// The number in `-n 20`, `-n20` or `-20`.
fn line_count(arguments: &[String]) -> Option<usize> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "-n" || word == "--lines" {
            return line_number(words.next()?.trim_start_matches('+'));
        }
        let digits = word.strip_prefix("-n").or_else(|| word.strip_prefix('-'));
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
            match script.and_then(|script| sed_ranges(script)) {
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
            Prints::File(Printed { first: tail_start(arguments), count: None, ..printed })
        }
        (Prints::File(printed), "cat" | "nl") => {
            let numbered = printed.numbered || filter.program() == "nl";
            // Numbers that `nl` puts on a part of a file are not the file's.
            let first = if filter.program() == "nl" && printed.first != Some(1) { None } else { printed.first };
            Prints::File(Printed { numbered, first, ..printed })
        }
        (Prints::File(printed), "grep" | "rg") => Prints::Matches(Some(printed.path)),
        (matches @ (Prints::Matches(_) | Prints::Diff), "head" | "tail" | "grep" | "rg" | "sort" | "cat" | "sed") => {
            matches
        }
        (Prints::Nothing, _) => Prints::Nothing,
        _ => Prints::Anything,
    }
}

/// Gives each print its part of the output.
fn attribute(prints: &[Prints], output: &str, observations: &mut Vec<Observation>) {
    let prints: Vec<&Prints> = prints.iter().filter(|prints| **prints != Prints::Nothing).collect();
    let lines: Vec<&str> = split_lines(output).collect();
    if lines.is_empty() {
        return;
    }
    if let [only] = prints.as_slice() {
        return take(only, &lines, observations);
    }
    let Some(ends) = boundaries(&prints, &lines) else { return together(&prints, &lines, observations) };
    let mut start = 0;
    for (prints, end) in prints.iter().zip(ends) {
        take(prints, &lines[start..end], observations);
        start = end;
    }
}

/// Where each print's lines end, if that can be said without a guess.
fn boundaries(prints: &[&Prints], lines: &[&str]) -> Option<Vec<usize>> {
    let mut ends = Vec::with_capacity(prints.len());
    let mut at = 0;
    for (index, print) in prints.iter().enumerate() {
        let end = match (print, prints.get(index + 1)) {
            (Prints::Text(text), _) => at + text.split('\n').count(),
            (_, None) => lines.len(),
            (_, Some(Prints::Text(mark))) => {
                let mark = mark.split('\n').next().unwrap_or_default();
                at + lines.get(at..)?.iter().position(|line| line.trim() == mark.trim())?
            }
            // The same file further down: it only prints if the first range is complete.
            (Prints::File(before), Some(Prints::File(behind)))
                if before.path == behind.path
                    && before.more.is_empty()
                    && before.first < behind.first
                    && before.count.is_some_and(|count| lines.len() - at > count) =>
            {
                at + before.count.unwrap_or(0)
            }
            (Prints::File(Printed { count: Some(count), .. }), Some(_))
                if counts_fill(&prints[index..], lines.len() - at) =>
            {
                at + count
            }
            _ => return None,
        };
        if end > lines.len() {
            return None;
        }
        ends.push(end);
        at = end;
    }
    Some(ends)
}

/// Whether the lines that are left are exactly those that the rest of the commands ask for.
fn counts_fill(prints: &[&Prints], left: usize) -> bool {
    let counts: Option<usize> = prints
        .iter()
        .map(|print| match print {
            Prints::File(Printed { count, .. }) => *count,
            _ => None,
        })
        .sum();
    counts == Some(left)
}

/// Notes lines of several files that nobody can tell apart.
fn together(prints: &[&Prints], lines: &[&str], observations: &mut Vec<Observation>) {
    let file = |print: &&Prints| match print {
        Prints::File(printed) => Some(printed.path.clone()),
        _ => None,
    };
    let paths: Vec<String> = prints.iter().filter_map(file).collect();
    if !paths.is_empty() {
        observations.push(Observation::ReadTogether { paths, block: block_of(None, lines) });
    }
}

fn block_of(first: Option<usize>, lines: &[&str]) -> Block {
    Block { first, lines: lines.iter().map(|line| (*line).to_owned()).collect() }
}

/// Notes the lines of one print.
fn take(prints: &Prints, lines: &[&str], observations: &mut Vec<Observation>) {
    match prints {
        Prints::File(printed) => take_file(printed, lines, observations),
        Prints::Matches(path) => observations.extend(observe_search(&lines.join("\n"), path.as_deref())),
        Prints::Diff => observations.extend(observe_diff(&lines.join("\n"))),
        Prints::Nothing | Prints::Text(_) | Prints::Anything => {}
    }
}

fn take_file(printed: &Printed, lines: &[&str], observations: &mut Vec<Observation>) {
    let mut read = |block: Block, whole| {
        observations.push(Observation::Read { path: printed.path.clone(), block, whole });
    };
    if let [only] = lines {
        // One line is as likely a complaint of the command as a file's text.
        if only.contains("No such file") || only.contains("Permission denied") || only.trim().is_empty() {
            return;
        }
    }
    if printed.numbered
        && let Some(blocks) = numbered(&lines.join("\n"))
    {
        blocks.into_iter().for_each(|block| read(block, false));
        return;
    }
    let mut ranges = [(printed.first, printed.count)]
        .into_iter()
        .chain(printed.more.iter().map(|(first, count)| (Some(*first), *count)));
    if !printed.more.is_empty() {
        let mut rest = lines;
        // A later range only prints if the file reaches it, so all but the last that prints are complete.
        while let (Some((first, count)), false) = (ranges.next(), rest.is_empty()) {
            let (part, behind) = rest.split_at(count.unwrap_or(rest.len()).min(rest.len()));
            read(block_of(first, part), false);
            rest = behind;
        }
        return;
    }
    let mut first = printed.first;
    let whole = printed.first == Some(1) && printed.count.is_none();
    let mut parts = lines.split(|line| is_cut_mark(line)).peekable();
    let mut is_first = true;
    while let Some(part) = parts.next() {
        let cut = !is_first || parts.peek().is_some();
        if !part.is_empty() {
            read(block_of(first.take(), part), whole && !cut);
        }
        first = None;
        is_first = false;
    }
}

/// Whether a line says that the harness left out lines here.
fn is_cut_mark(line: &str) -> bool {
    let line = line.trim();
    line.len() < 120
        && line.contains("truncated")
        && (line.contains('…') || line.contains("...") || line.starts_with('['))
}

/// Lines that a search found: `path:12:text`, or `12:text` for one file.
pub(crate) fn observe_search(output: &str, only: Option<&str>) -> Vec<Observation> {
    let mut found: Vec<(String, Vec<Block>)> = Vec::new();
    for line in split_lines(output) {
        let Some((path, number, text)) = search_line(line, only) else { continue };
        if found.last().is_none_or(|(last, _)| *last != path) {
            found.push((path, Vec::new()));
        }
        let blocks = &mut found.last_mut().expect("one was just pushed").1;
        match blocks.last_mut() {
            Some(block) if block.first.is_some_and(|first| first + block.lines.len() == number) => {
                block.lines.push(text.to_owned());
            }
            _ => blocks.push(Block { first: Some(number), lines: vec![text.to_owned()] }),
        }
    }
    found.into_iter().map(|(path, blocks)| Observation::Found { path, blocks }).collect()
}

fn search_line<'a>(line: &'a str, only: Option<&str>) -> Option<(String, usize, &'a str)> {
    if let Some(path) = only
        && let Some((number, text)) = split_location(line)
    {
        return Some((path.to_owned(), number, text));
    }
    let end = line.find(':')?;
    let (path, rest) = (&line[..end], &line[end + 1..]);
    let (number, text) = split_location(rest)?;
    looks_like_file(path).then(|| (path.to_owned(), number, text))
}

fn split_location(text: &str) -> Option<(usize, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text[digits..].strip_prefix([':', '-'])?;
    Some((line_number(&text[..digits])?, rest))
}

/// The new sides of a printed diff are lines of the files as they are now, if the diff is of the working tree.
fn observe_diff(output: &str) -> Vec<Observation> {
    parse_unified(output)
        .into_iter()
        .filter_map(|patch| match patch {
            FilePatch::Update { path, hunks, .. } => {
                let blocks = hunks.into_iter().map(|hunk| Block { first: hunk.first, lines: hunk.new }).collect();
                Some(Observation::Found { path, blocks })
            }
            _ => None,
        })
        .collect()
}

/// What the harness puts around a command's output, taken off.
pub(crate) fn strip_harness(result: &str) -> &str {
    let mut body = result;
    if ["Command:", "Chunk ID:", "Exit code:", "Wall time:"].iter().any(|start| body.starts_with(start)) {
        body = body.split_once("\nOutput:\n").map_or("", |(_, output)| output);
    }
    if let Some(at) = body.find("\n<system-reminder>") {
        body = &body[..at];
    }
    for mark in ["\n<shellId:", "\n[The command completed", "\n<exited with exit code"] {
        if let Some(at) = body.rfind(mark) {
            body = &body[..at];
        }
    }
    body
}
