//! What a pipeline prints: lines of a file, a known text, hits of a search, or something unknown.

use super::sed::{Ranges, Sed};
use super::table::{Filter, Output, Trait, row};
use super::text;
use crate::mentions::looks_like_file;
use crate::numbering::line_number;
use crate::path::{Directory, is_device};
use crate::shell::{Redirect, Simple, Word};

/// What a pipeline prints, if it succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prints {
    /// Nothing.
    Nothing,
    /// A known text.
    Text(String),
    /// Lines of a file, unchanged.
    File(PrintedLines),
    /// Numbered lines that a search found, in one file or in several.
    Hits(Option<String>),
    /// Something about these files, or their text in another form.
    Looked(Vec<String>),
    /// Something else.
    Unknown,
}

/// Which lines of a file are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrintedLines {
    pub(crate) path: String,
    pub(crate) part: FilePart,
    /// Whether each line begins with its number and a tab.
    pub(crate) is_numbered: bool,
    /// Whether these numbers may begin again within the file.
    pub(crate) restarts: bool,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FilePart {
    /// Ranges of lines in rising order, each as its first line and its greatest length.
    Ranges(Ranges),
    /// At most this many lines from the end.
    Last(usize),
}

/// What a pipeline prints.
pub(crate) fn of_pipeline(commands: &[Simple], directory: &Directory) -> Prints {
    let Some((last, before)) = commands.split_last() else { return Prints::Unknown };
    let takes_output = |redirect: &Redirect| {
        matches!(
            redirect,
            Redirect::Write(_) | Redirect::Append(_) | Redirect::Both(_) | Redirect::Other(_) | Redirect::Copy
        )
    };
    let takes_input = |redirect: &Redirect| matches!(redirect, Redirect::Read(_) | Redirect::Document { .. });
    if commands.iter().any(|command| !command.assigns.is_empty())
        || before.iter().any(|command| command.redirects.iter().any(takes_output))
        || commands[1..].iter().any(|command| command.redirects.iter().any(takes_input))
        || commands.iter().any(|command| command.redirects.contains(&Redirect::Copy))
    {
        return Prints::Unknown;
    }
    if last.redirects.iter().any(takes_output) {
        return if is_silenced(commands) { Prints::Nothing } else { Prints::Unknown };
    }
    let mut prints = of_command(&commands[0], directory);
    for filter in &commands[1..] {
        prints = filtered(prints, filter);
    }
    prints
}

/// Letters of options with which programs that print nothing still do not.
const SILENT_LETTERS: &str = "frRpadnmstuTLHP";

/// Whether such a program still prints nothing with an argument.
fn keeps_silent(word: &&str) -> bool {
    match word.strip_prefix("--") {
        Some(name) => matches!(name, "" | "force" | "recursive" | "parents" | "symbolic"),
        None => word.strip_prefix('-').is_none_or(|letters| letters.chars().all(|c| SILENT_LETTERS.contains(c))),
    }
}

/// Whether a pipeline's output is not shown, except for error messages that begin with a program's name.
fn is_silenced(commands: &[Simple]) -> bool {
    // Other devices are where output goes by default.
    let is_away = |word: &Word| word.plain().is_some_and(|path| path == "/dev/null" || !is_device(path));
    commands.iter().enumerate().all(|(index, command)| {
        let (mut output, mut errors) = (index + 1 < commands.len(), false);
        for redirect in &command.redirects {
            match redirect {
                Redirect::Write(word) | Redirect::Append(word) => output = is_away(word),
                Redirect::Errors(word) => errors = is_away(word),
                Redirect::Both(word) => (output, errors) = (is_away(word), is_away(word)),
                Redirect::ErrorsToOutput => errors = output,
                Redirect::Copy => return false,
                Redirect::Other(_) | Redirect::Read(_) | Redirect::Document { .. } => {}
            }
        }
        output
            && (errors
                || command.words.is_empty()
                || command.program().is_some_and(|program| row(program).has(Trait::NamesItself)))
    })
}

/// What a command prints by itself.
fn of_command(command: &Simple, directory: &Directory) -> Prints {
    let program = command.program().unwrap_or_default();
    let has_input = command.redirects.iter().any(|redirect| matches!(redirect, Redirect::Read(_)));
    if let Some(text) = text::printed(command) {
        return if text.is_empty() { Prints::Nothing } else { Prints::Text(text) };
    }
    let looked = || match looked_at(command, directory) {
        paths if paths.is_empty() => Prints::Unknown,
        paths => Prints::Looked(paths),
    };
    let Some(arguments) = command.plain_arguments() else { return Prints::Unknown };
    let is_plain = arguments.iter().all(|word| !word.starts_with(['-', '+']));
    let nothing_if = |is_silent: bool| if is_silent { Prints::Nothing } else { looked() };
    let shown = match row(program).prints {
        _ if has_input => None,
        Output::Unknown => None,
        Output::Whole => concatenated(program, &arguments),
        Output::Ends => ends(program, &arguments),
        Output::Sed => match Sed::printed(command) {
            Some((Some(path), ranges)) => Some((path, FilePart::Ranges(ranges), false)),
            _ if Sed::is_silent(command) => return Prints::Nothing,
            _ => None,
        },
        Output::Hits => return searched(program, &arguments, directory).unwrap_or_else(looked),
        Output::Directory if arguments.first() == Some(&"-") => return Prints::Unknown,
        // With these, each command may be printed before it runs.
        Output::Settings if arguments.iter().any(|word| word.contains(['x', 'v'])) => return Prints::Unknown,
        // Without a name, `set` lists options.
        Output::Settings => {
            return nothing_if(arguments.last().is_some_and(|word| word.len() > 1 && !word.ends_with('o')));
        }
        Output::Variables => return nothing_if(!arguments.is_empty() && is_plain),
        Output::Nothing | Output::Directory => return nothing_if(arguments.iter().all(keeps_silent)),
    };
    let Some((path, part, is_numbered)) = shown else { return looked() };
    match directory.place(path).filter(|_| path != "-" && !is_device(path)) {
        Some(path) => Prints::File(PrintedLines { path, part, is_numbered, restarts: program == "nl" }),
        None => Prints::Unknown,
    }
}

/// The files that a command looks at, if they are written out.
pub(crate) fn looked_at(command: &Simple, directory: &Directory) -> Vec<String> {
    if !command.program().is_some_and(|program| row(program).has(Trait::ShowsOperands)) {
        return Vec::new();
    }
    let operands = command.arguments().iter().filter_map(|word| word.plain());
    let inputs = command.redirects.iter().filter_map(|redirect| match redirect {
        Redirect::Read(word) => word.plain(),
        _ => None,
    });
    let files = operands.chain(inputs).filter(|word| !word.starts_with('-') && looks_like_file(word));
    files.filter_map(|file| directory.place(file)).collect()
}

type PrintedFilePart<'a> = Option<(&'a str, FilePart, bool)>;

fn concatenated<'a>(program: &str, arguments: &[&'a str]) -> PrintedFilePart<'a> {
    let whole = |path: &'a str, is_numbered| Some((path, FilePart::Ranges(vec![(1, None)]), is_numbered));
    match (program, arguments) {
        ("cat", [path]) if !path.starts_with('-') => whole(path, false),
        ("cat", ["-n", path]) | ("nl", ["-ba", path]) if !path.starts_with('-') => whole(path, true),
        _ => None,
    }
}

/// Lines that `head` and `tail` print by default.
const DEFAULT_LINES: usize = 10;

/// What `head` and `tail` print of one file.
fn ends<'a>(program: &str, arguments: &[&'a str]) -> PrintedFilePart<'a> {
    let (count, files) = count_of(arguments)?;
    let [path] = files else { return None };
    let part = match (program, count) {
        ("head", Count::Lines(count)) => FilePart::Ranges(vec![(1, Some(count))]),
        ("tail", Count::Lines(count)) => FilePart::Last(count),
        ("tail", Count::From(first)) => FilePart::Ranges(vec![(first.max(1), None)]),
        _ => return None,
    };
    (!path.starts_with('-')).then_some((*path, part, false))
}

/// How many lines `head` and `tail` are asked for.
enum Count {
    Lines(usize),
    From(usize),
}

/// The count in `-n 20`, `-n20`, `-20`, `--lines=20` and `-n +20`, and the operands.
fn count_of<'a, 'b>(arguments: &'b [&'a str]) -> Option<(Count, &'b [&'a str])> {
    let (written, files) = match arguments {
        ["-n" | "--lines", count, files @ ..] => (*count, files),
        [first, files @ ..] if first.starts_with('-') => {
            let count = first.strip_prefix("--lines=").or_else(|| first.strip_prefix("-n"));
            (count.or_else(|| first.strip_prefix('-'))?, files)
        }
        files => return Some((Count::Lines(DEFAULT_LINES), files)),
    };
    match written.strip_prefix('+') {
        Some(first) => Some((Count::From(number(first)?), files)),
        None => Some((Count::Lines(number(written)?), files)),
    }
}

fn number(text: &str) -> Option<usize> {
    text.chars().all(|c| c.is_ascii_digit()).then(|| line_number(text)).flatten()
}

/// Letters of options that do not change the form of a search's hits, by program; others take values, or print more.
const GREP_LETTERS: &str = "niwEFPvsrRIxUG";
const RG_LETTERS: &str = "niwFPvsSxU";

/// Options whose value follows.
const SEARCH_VALUES: [&str; 10] = ["-e", "-A", "-B", "-C", "-m", "-g", "-t", "--include", "--exclude", "--glob"];

/// The hits of a search that prints line numbers.
fn searched(program: &str, arguments: &[&str], directory: &Directory) -> Option<Prints> {
    let (mut is_numbered, mut is_recursive, mut has_pattern) = (false, program == "rg", false);
    let own_letters = if program == "rg" { RG_LETTERS } else { GREP_LETTERS };
    let mut operands = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--line-number" => is_numbered = true,
            "--" => operands.extend(words.by_ref().copied()),
            option if SEARCH_VALUES.contains(&option) => {
                words.next()?;
                has_pattern |= option == "-e";
            }
            option
                if ["--include=", "--exclude=", "--exclude-dir=", "--glob="]
                    .iter()
                    .any(|name| option.starts_with(name)) => {}
            option
                if option.len() > 2
                    && ["-A", "-B", "-C", "-m"].iter().any(|name| option.starts_with(name))
                    && number(&option[2..]).is_some() => {}
            option if option.starts_with('-') && option.len() > 1 => {
                let letters = option[1..].chars();
                if !letters.clone().all(|c| own_letters.contains(c)) {
                    return None;
                }
                is_numbered |= option.contains('n');
                is_recursive |= program != "rg" && option.contains(['r', 'R']);
            }
            operand => operands.push(operand),
        }
    }
    if !is_numbered {
        return None;
    }
    let files = if has_pattern { operands.as_slice() } else { operands.get(1..)? };
    match files {
        [] if !is_recursive => None,
        // For one file no name is printed; for a directory it is.
        [file] if !is_recursive || (program == "rg" && looks_like_file(file)) => {
            Some(Prints::Hits(Some(directory.place(file)?)))
        }
        [file] if looks_like_file(file) => None,
        _ if *directory == Directory::Lost => None,
        _ => Some(Prints::Hits(None)),
    }
}

/// Returns what remains of a print after a filter.
fn filtered(prints: Prints, filter: &Simple) -> Prints {
    let Some(arguments) = filter.plain_arguments() else { return unshaped(prints) };
    let program = filter.program().unwrap_or_default();
    match (prints, row(program).filters) {
        (prints @ Prints::File(_), Filter::Passes) if arguments.is_empty() => prints,
        (Prints::File(shown), Filter::Ends | Filter::Sed) => narrowed(shown, program, filter, &arguments),
        (prints @ Prints::Hits(_), Filter::Ends) if count_of(&arguments).is_some_and(|(_, files)| files.is_empty()) => {
            prints
        }
        // With an operand they would print another file.
        (prints @ Prints::Hits(_), Filter::Sorts | Filter::Passes) if arguments.is_empty() => prints,
        (prints @ Prints::Hits(_), Filter::Greps)
            if matches!(arguments.as_slice(), [word] if !word.starts_with('-'))
                || matches!(arguments.as_slice(), ["-v" | "-i" | "-E" | "-F" | "-vE" | "-iE", _]) =>
        {
            prints
        }
        (Prints::Nothing, _) => Prints::Unknown,
        (prints, _) => unshaped(prints),
    }
}

/// A print whose lines are no longer the file's.
fn unshaped(prints: Prints) -> Prints {
    match prints {
        Prints::File(shown) => Prints::Looked(vec![shown.path]),
        Prints::Looked(paths) => Prints::Looked(paths),
        _ => Prints::Unknown,
    }
}

/// Lines of a file after a filter that keeps some of them.
fn narrowed(shown: PrintedLines, program: &str, filter: &Simple, arguments: &[&str]) -> Prints {
    let wanted: Option<FilePart> = match program {
        "sed" => Sed::printed(filter).filter(|(file, _)| file.is_none()).map(|(_, ranges)| FilePart::Ranges(ranges)),
        _ => count_of(arguments).filter(|(_, files)| files.is_empty()).and_then(|(count, _)| match (program, count) {
            ("head", Count::Lines(count)) => Some(FilePart::Ranges(vec![(1, Some(count))])),
            ("tail", Count::Lines(count)) => Some(FilePart::Last(count)),
            ("tail", Count::From(first)) => Some(FilePart::Ranges(vec![(first.max(1), None)])),
            _ => None,
        }),
    };
    let part = match (&shown.part, wanted) {
        (FilePart::Ranges(ranges), Some(part)) if ranges.as_slice() == [(1, None)] => Some(part),
        // The first lines of a range are a shorter range.
        (FilePart::Ranges(ranges), Some(FilePart::Ranges(wanted))) => match (ranges.as_slice(), wanted.as_slice()) {
            ([(first, count)], [(1, Some(most))]) => {
                Some(FilePart::Ranges(vec![(*first, Some(count.map_or(*most, |count| count.min(*most))))]))
            }
            _ => None,
        },
        // The last lines of a part of a file may be anywhere in it.
        (FilePart::Ranges(_) | FilePart::Last(_), Some(FilePart::Last(count))) => Some(FilePart::Last(count)),
        _ => None,
    };
    // The last lines do not show that numbers began again before them.
    let part = part.filter(|part| !(shown.restarts && matches!(part, FilePart::Last(_))));
    match part {
        Some(part) => Prints::File(PrintedLines { part, ..shown }),
        None => Prints::Looked(vec![shown.path]),
    }
}
