//! Programs that write where they are told to.

use super::options::CURL_WRITES;
use super::{Effects, command_label, is_looking, of_table, operands_of, reach};
use crate::observation::Observation;
use crate::patched::observe_patch;
use crate::path::{Directory, is_device};
use crate::shell::{Redirect, Simple, Word};

/// `find`, whose `-exec` may run something that only reads.
pub(super) fn found(command: &Simple, directory: &Directory) -> Effects {
    let is_run = |word: &Word| matches!(word.text.as_str(), "-exec" | "-execdir");
    let mut rest = command.arguments();
    let mut own = Simple { words: command.words[..1].to_vec(), ..command.clone() };
    let mut runs = false;
    while let Some(at) = rest.iter().position(is_run) {
        let Some(end) = rest[at..].iter().position(|word| matches!(word.text.as_str(), ";" | "+")) else { break };
        let inner = Simple { words: rest[at + 1..at + end].to_vec(), redirects: Vec::new(), ..command.clone() };
        if !is_looking(&inner, directory) {
            return Effects::all(command);
        }
        own.words.extend_from_slice(&rest[..at]);
        rest = &rest[at + end + 1..];
        runs = true;
    }
    own.words.extend_from_slice(rest);
    let effects = of_table(&own, "find", directory);
    if runs && effects == Effects::none() { Effects::presumed() } else { effects }
}

/// `awk` writes only where its program says to.
pub(super) fn awk(command: &Simple) -> Effects {
    let Some(arguments) = command.plain_arguments() else { return Effects::all(command) };
    let is_risky = |word: &&str| {
        let bare = code_of_awk(word);
        // Only what is printed goes into a file; elsewhere the sign compares.
        let is_output = |statement: &str| statement.split("print").skip(1).any(|rest| rest.contains(['>', '|']));
        ["system", "getline", "close", "fflush", "@"].iter().any(|name| bare.contains(name))
            || bare.split([';', '{', '}']).any(is_output)
    };
    let is_odd = |word: &&str| word.starts_with('-') && !word.starts_with("-F") && !word.starts_with("-v");
    let mut rest = arguments.iter();
    let mut program = None;
    while let Some(word) = rest.next() {
        match *word {
            "-F" | "-v" => drop(rest.next()),
            option if option.starts_with('-') => {}
            text => {
                program = Some(text);
                break;
            }
        }
    }
    let is_known = program.is_some_and(|text| !is_risky(&text)) && !arguments.iter().any(is_odd);
    if is_known { Effects::none() } else { Effects::all(command) }
}

/// A program of `awk` without the texts and patterns in it, and without signs that only compare.
fn code_of_awk(program: &str) -> String {
    let mut code = String::with_capacity(program.len());
    let mut chars = program.chars();
    while let Some(c) = chars.next() {
        let before = code.trim_end().chars().next_back();
        // After a value a slash divides.
        let is_pattern = c == '/' && before.is_none_or(|before| "(,{};!&|~\n".contains(before));
        if c != '"' && !is_pattern {
            code.push(c);
            continue;
        }
        let end = c;
        while let Some(inner) = chars.next().filter(|inner| *inner != end) {
            if inner == '\\' {
                chars.next();
            }
        }
        code.push('0');
    }
    code.replace("||", " ").replace(">=", " ")
}

/// `make`, which is presumed to leave sources alone with some targets.
pub(super) fn make(command: &Simple, targets: &[&str]) -> Effects {
    let Some(arguments) = command.plain_arguments() else { return Effects::all(command) };
    let is_known = |word: &&str| {
        targets.contains(word)
            || matches!(*word, "-s" | "-k" | "-j")
            || word.strip_prefix("-j").is_some_and(|count| count.chars().all(|c| c.is_ascii_digit()))
    };
    let only_prints = arguments.iter().any(|word| matches!(*word, "-n" | "--dry-run" | "--just-print"));
    if only_prints || arguments.iter().all(is_known) { Effects::presumed() } else { Effects::all(command) }
}

/// Options of `curl` with which it writes to a file that follows.
const CURL_FILES: &[(char, &str)] = &[('o', "output"), ('D', "dump-header"), ('c', "cookie-jar")];

/// What `curl` writes. All else is presumed to stay, whatever it was sent.
pub(super) fn curl(command: &Simple, directory: &Directory) -> Effects {
    let Some(arguments) = command.plain_arguments() else { return Effects::all(command) };
    let by = command_label(command);
    let mut doubts = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let file = match word.strip_prefix("--") {
            Some(name) => match CURL_FILES.iter().any(|(_, long)| *long == name) {
                true => rest.next().copied(),
                false if writes_by_name(name) => return Effects::all(command),
                false => continue,
            },
            None => {
                match word.strip_prefix('-').and_then(|letters| letters.find(['o', 'D', 'c', 'O', 'J', 'K', 'T'])) {
                    // The file follows directly, or is the next word.
                    Some(at) if CURL_FILES.iter().any(|(letter, _)| word[1 + at..].starts_with(*letter)) => {
                        let own = &word[2 + at..];
                        if own.is_empty() { rest.next().copied() } else { Some(own) }
                    }
                    Some(_) => return Effects::all(command),
                    None if word.contains("%output{") || word.starts_with("file:") => return Effects::all(command),
                    None => continue,
                }
            }
        };
        match file {
            Some("-") => {}
            Some(file) if is_device(file) => {}
            Some(file) => match directory.place(file) {
                Some(path) => doubts.push(Observation::Doubted { path, by: by.clone() }),
                None => return Effects::all(command),
            },
            None => return Effects::all(command),
        }
    }
    Effects { doubts, ..Effects::presumed() }
}

/// Whether a long option of `curl` writes a file. Options may be abbreviated.
fn writes_by_name(name: &str) -> bool {
    let name = name.split('=').next().unwrap_or(name);
    CURL_WRITES.iter().any(|part| name.starts_with(part) || (name.len() > 1 && part.starts_with(name)))
}

/// What `touch` makes.
pub(super) fn touched(command: &Simple, directory: &Directory) -> Effects {
    // Options may prevent files from being created, or take arguments that are not files.
    let has_options = command.arguments().iter().any(|word| word.text.starts_with('-'));
    let made = |word: &Word| Some(Observation::Made { path: directory.place(word.plain()?)? });
    let made: Option<Vec<Observation>> = operands_of(command).map(made).collect();
    match made.filter(|_| !has_options) {
        Some(made) => Effects::changes(made),
        None => {
            let by = command_label(command);
            Effects::doubts(operands_of(command).map(|word| reach(word, directory, &by)).collect())
        }
    }
}

/// What `tee` writes, if its input is known.
pub(super) fn teed(command: &Simple, directory: &Directory) -> Effects {
    let by = command_label(command);
    let one = |word: &Word| match word.plain().and_then(|path| directory.place(path)) {
        Some(path) => Observation::Changed { path, by: by.clone() },
        None => reach(word, directory, &by),
    };
    Effects::changes(operands_of(command).filter(|word| !is_device(&word.text)).map(one).collect())
}

/// What `apply_patch` does when run as a command.
pub(super) fn patched(command: &Simple, directory: &Directory) -> Effects {
    let document = command.redirects.iter().find_map(|redirect| match redirect {
        Redirect::Document { text, is_plain: true } => Some(text.as_str()),
        _ => None,
    });
    let argument = command.plain_arguments().and_then(|arguments| arguments.first().copied());
    let Some(patch) = document.or(argument) else { return Effects::all(command) };
    let placed: Option<Vec<Observation>> =
        observe_patch(patch, None).into_iter().map(|change| change.placed(&|path| directory.place(path))).collect();
    placed.map_or_else(|| Effects::all(command), Effects::changes)
}
