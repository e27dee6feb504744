//! What simple commands do to files: certainly, possibly, or certainly not.

use super::observation::Observation;
use super::path::{Directory, is_device};
use super::shell::{Expands, Redirect, Script, Simple, Word, parse};

mod builtins;
mod copies;
mod effects;
pub mod formatters;
mod git;
mod inline;
mod loose;
pub mod options;
pub(crate) mod prints;
pub(crate) mod sed;
pub mod table;
pub mod tasks;
pub(crate) mod text;
pub mod unknown;
mod utilities;
mod wrapped;

pub(crate) use builtins::{bare, changes_shell, moves, set_options};
use builtins::{declared, risky, sets_up, sets_variables, settings};
use copies::{Way, copied, linked, removed};
use effects::makes_links;
pub(crate) use effects::{Effects, any_link, may_link};
use options::{APART_VARIABLES, WRITES, WRITES_WHOLE};
use table::{Action, ActionEffect, Changes, Reading, Runs, Trait, acts, leaves_sources, row};

/// Most characters of a command that an observation includes.
const MAX_TOLD_CHARS: usize = 40;

/// A command in short, for people.
pub(crate) fn command_label(command: &Simple) -> String {
    let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
    in_short(&words.join(" "))
}

/// Shortens a command line.
pub(crate) fn in_short(line: &str) -> String {
    let text = line.replace(['\n', '`'], " ");
    match text.char_indices().nth(MAX_TOLD_CHARS) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// Every file may have changed.
pub(crate) fn everything(by: String) -> Observation {
    Observation::Swept { under: None, extensions: Vec::new(), by }
}

/// Returns what a command does to files.
pub(crate) fn effects(command: &Simple, directory: &Directory) -> Effects {
    if risky(command).any(|name| !is_of_git_elsewhere(name, command)) {
        return Effects::all(command);
    }
    let own = match command.words.is_empty() {
        true => Effects::none(),
        false => of_program(command, directory),
    };
    let redirected = redirected(command, directory);
    if !own.changes.is_empty() && !redirected.changes.is_empty() {
        let by = command_label(command);
        return own.unproven(&by).and(redirected.unproven(&by));
    }
    own.and(redirected)
}

/// Whether a variable only tells `git` something, and the command is another one that is at best presumed to leave
/// files alone.
fn is_of_git_elsewhere(name: &str, command: &Simple) -> bool {
    let is_harmless =
        ["GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_TERMINAL_PROMPT"].iter().any(|begin| name.starts_with(begin));
    let ignores = || command.program().is_some_and(|program| row(program).has(Trait::IgnoresGit));
    is_harmless || (name.starts_with("GIT_") && ignores())
}

/// Returns which files a word may name: one file, those of a pattern, or any.
pub(crate) fn reach(word: &Word, directory: &Directory, by: &str) -> Observation {
    let swept = |under: Option<String>, extensions| Observation::Swept { under, extensions, by: by.to_owned() };
    match word.expands {
        Expands::Never => match directory.place(&word.text).or_else(|| directory.place_anywhere(&word.text)) {
            Some(path) => swept(Some(path), Vec::new()),
            None => everything(by.to_owned()),
        },
        // Part of a word may be quoted, and then its patterns are not where they seem to be. After a pattern, two dots
        // lead to an unknown place.
        Expands::ToNames if !word.is_quoted && !word.text.contains("..") => {
            let open = word.text.find(['*', '?', '[']).unwrap_or(0);
            let fixed = word.text[..open].rfind('/').map_or("", |slash| &word.text[..=slash]);
            let extension = word.text[open..].rsplit_once('.').map(|(_, extension)| extension.to_owned());
            let is_plain = |text: &String| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
            let extensions = extension.filter(is_plain).into_iter().collect();
            match directory.place(if fixed.is_empty() { "." } else { fixed }) {
                Some(path) => swept(Some(path), extensions),
                None => swept(None, extensions),
            }
        }
        _ => everything(by.to_owned()),
    }
}

/// The same for programs that take directories, of which a pattern says nothing about what is in them.
pub(crate) fn reach_all(word: &Word, directory: &Directory, by: &str) -> Observation {
    match reach(word, directory, by) {
        Observation::Swept { under, by, .. } => Observation::Swept { under, extensions: Vec::new(), by },
        other => other,
    }
}

/// Returns what redirections of output do.
fn redirected(command: &Simple, directory: &Directory) -> Effects {
    let by = command_label(command);
    let is_device = |word: &Word| word.plain().is_some_and(is_device);
    let mut targets = Vec::new();
    for redirect in &command.redirects {
        match redirect {
            Redirect::Write(word)
            | Redirect::Append(word)
            | Redirect::Errors(word)
            | Redirect::Both(word)
            | Redirect::Other(word)
                if !is_device(word) =>
            {
                targets.push((redirect, word));
            }
            _ => {}
        }
    }
    if let [(redirect @ (Redirect::Write(_) | Redirect::Append(_)), word)] = targets.as_slice()
        && let Some(path) = word.plain().filter(|path| !path.is_empty()).and_then(|path| directory.place(path))
    {
        let append = matches!(redirect, Redirect::Append(_));
        // Any further redirection of output may lead it elsewhere.
        let is_only = command.redirects.iter().all(|other| match other {
            Redirect::Write(_) | Redirect::Append(_) => std::ptr::eq(other, *redirect),
            Redirect::Both(_) | Redirect::Other(_) | Redirect::Copy => false,
            Redirect::Errors(_) | Redirect::ErrorsToOutput | Redirect::Read(_) | Redirect::Document { .. } => true,
        });
        return Effects::changes(vec![match text::printed(command).filter(|_| is_only) {
            Some(text) if append => Observation::Append { path, text },
            Some(text) => Observation::Write { path, text },
            None => match copied_by_cat(command, directory).filter(|_| !append) {
                Some(from) => Observation::Copy { from, to: path, into: false },
                None => Observation::Changed { path, by },
            },
        }]);
    }
    let target = |word: &Word| match word.plain().filter(|path| !path.is_empty()).and_then(|path| directory.place(path))
    {
        Some(path) => Observation::Doubted { path, by: by.clone() },
        None => reach(word, directory, &by),
    };
    Effects::doubts(targets.into_iter().map(|(_, word)| target(word)).collect())
}

/// The file that `cat FILE > …` copies.
fn copied_by_cat(command: &Simple, directory: &Directory) -> Option<String> {
    let is_plain_cat = command.program() == Some("cat") && command.redirects.len() == 1;
    match command.plain_arguments()?.as_slice() {
        [from] if is_plain_cat && !from.starts_with('-') => directory.place(from),
        _ => None,
    }
}

/// Returns what a program does, apart from redirections.
fn of_program(command: &Simple, directory: &Directory) -> Effects {
    if let Some(named) = of_home(command) {
        return of_program(&named, directory);
    }
    if command.words.first().is_none_or(|word| word.plain().is_none()) {
        return Effects::all(command);
    }
    if sets_up(command) {
        return Effects::presumed();
    }
    let evaluates = command.program().is_some_and(|program| row(program).has(Trait::Evaluates));
    if evaluates && command.arguments().iter().any(Word::has_subscript_command) {
        return Effects::all(command);
    }
    let own = of_words(command, directory);
    // What is not understood because of a variable or a pattern may not depend on it.
    if own.doubts.iter().any(reaches_everything) {
        return loose::whatever_they_are(command, directory).unwrap_or(own);
    }
    own
}

/// A command whose program was installed for a person, by its name alone: `~/.cargo/bin/cargo test`.
fn of_home(command: &Simple) -> Option<Simple> {
    let path = command.words.first().filter(|word| !word.is_quoted)?.text.strip_prefix("~/.")?;
    let (place, name) = path.rsplit_once('/').filter(|(place, _)| place.ends_with("/bin"))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
    if name.is_empty() || !path.chars().all(is_plain) || place.contains("..") {
        return None;
    }
    let mut named = command.clone();
    named.words[0] = Word { text: name.to_owned(), expands: Expands::Never, ..named.words[0].clone() };
    Some(named)
}

/// Whether an observation puts every file in doubt.
pub(crate) fn reaches_everything(observation: &Observation) -> bool {
    matches!(observation, Observation::Swept { under: None, extensions, .. } if extensions.is_empty())
}

/// Returns what a program does according to its words.
fn of_words(command: &Simple, directory: &Directory) -> Effects {
    let Some(program) = command.program() else { return of_table(command, "", directory) };
    let row = row(program);
    if sets_variables(row, command) {
        return declared(command);
    }
    let by_table = || of_table(command, program, directory);
    match row.changes {
        Changes::Unknown | Changes::Reads(_) => by_table(),
        Changes::Never => Effects::none(),
        Changes::Searches(_) => utilities::found(command, directory),
        Changes::Settings => settings(command),
        Changes::Sed => sed::effects(command, directory),
        Changes::Awk => utilities::awk(command),
        Changes::Git => git::effects(command, directory),
        Changes::Make { targets } => utilities::make(command, targets),
        Changes::Curl => utilities::curl(command, directory),
        Changes::Touch => utilities::touched(command, directory),
        Changes::Remove => removed(command, command.arguments(), directory),
        Changes::Copy => copied(command, command.arguments(), directory, Way::Copy),
        Changes::Move => copied(command, command.arguments(), directory, Way::Move),
        Changes::Link => linked(command, directory),
        Changes::Tee => utilities::teed(command, directory),
        Changes::Truncate => {
            Effects::doubts(operands_of(command).map(|word| reach(word, directory, &command_label(command))).collect())
        }
        Changes::Patch => utilities::patched(command, directory),
        Changes::Code(language) => inline::effects(language, command, directory).unwrap_or_else(by_table),
        Changes::Inner(wrapper) => match wrapped::inner(wrapper, command) {
            Some(wrapped::WrappedCommand::Command(inner)) => {
                effects(&inner, directory).unproven(&command_label(command))
            }
            Some(wrapped::WrappedCommand::Line(line)) => of_line(&line, command, directory),
            Some(wrapped::WrappedCommand::Fed(inner)) if is_harmless_with_anything(&inner) => Effects::none(),
            Some(wrapped::WrappedCommand::Fed(inner)) if is_looking(&inner, directory) => Effects::presumed(),
            // Names of files are no options, and what is presumed to leave files alone leaves more of them alone.
            Some(wrapped::WrappedCommand::Fed(inner)) if leaves_files(&inner, directory) => Effects::presumed(),
            Some(wrapped::WrappedCommand::Fed(_)) => Effects::all(command),
            None => by_table(),
        },
    }
}

/// Whether a command changes nothing with the arguments that it is given, so that more of them, which are names of
/// files, are presumed to change nothing either.
fn is_looking(command: &Simple, directory: &Directory) -> bool {
    reading(command).is_some() && command.redirects.is_empty() && of_words(command, directory) == Effects::none()
}

/// Whether a command is known to leave all files alone, or presumed to, and not only because no table has it.
fn leaves_files(command: &Simple, directory: &Directory) -> bool {
    let effects = of_words(command, directory);
    let row = row(command.program().unwrap_or_default());
    // After a script, `sed` and `awk` take files.
    let is_in_place = |word: &Word| word.text.starts_with('-') && word.text.contains('i');
    let reads = matches!(row.changes, Changes::Sed | Changes::Awk)
        && operands_of(command).next().is_some()
        && !command.arguments().iter().any(is_in_place);
    let is_known = row.runs != Runs::Anything && (effects.is_presumed || reads);
    is_known && effects.changes.is_empty() && effects.doubts.is_empty() && !effects.is_guess
}

/// Returns what a command line does that another command runs. It is unknown how far it got.
fn of_line(line: &str, command: &Simple, directory: &Directory) -> Effects {
    let Some(script) = parse(line) else { return Effects::all(command) };
    effects_in_any_order(&script, directory)
}

/// Returns what the commands of a script do, whichever of them run, in any order.
pub(crate) fn effects_in_any_order(script: &Script, directory: &Directory) -> Effects {
    let lost = Directory::Lost;
    let directory = if script.commands().any(moves) { &lost } else { directory };
    script
        .commands()
        .fold(Effects::none(), |sum, command| sum.and(effects(command, directory).unproven(&command_label(command))))
}

/// Returns what the tables say about a command.
fn of_table(command: &Simple, program: &str, directory: &Directory) -> Effects {
    let reading = row(program).reading();
    if let Some(reading) = reading {
        let is_plain = reading.is_whatever_it_is_given() || command.plain_arguments().is_some();
        let is_within = reading.most_operands.is_none_or(|most| operands_of(command).count() <= most);
        if is_plain && is_within && !reading.unless.iter().any(|option| has_option(command, option)) {
            return Effects::none();
        }
    }
    let Some(words) = command.words.iter().map(Word::plain).collect::<Option<Vec<_>>>() else {
        // A word that is not plain may be an option. What a formatter may change is known even so.
        return Effects::all(command);
    };
    let count = words.len();
    let words = wrapped::of_package(wrapped::without_starter(&words));
    let words = words.as_slice();
    if let Some(effects) = of_started(command, words, words.len() < count, directory) {
        return effects;
    }
    if acts(words, ActionEffect::StaysApart)
        && !command.assigns.iter().any(|name| APART_VARIABLES.contains(&name.as_str()))
    {
        return Effects::none();
    }
    if (is_presumed_by_name(words) || words.contains(&"--dry-run")) && !sets_to_write(command) {
        return Effects::presumed();
    }
    // A program of the project may do anything; one of a package is known by its name.
    if program.is_empty() && words.first().is_none_or(|name| name.contains('/')) {
        return unknown::effects(command, words, directory);
    }
    match words {
        [_, "--version" | "-V" | "--help"] => return Effects::presumed(),
        [program, "-v"] if row(program).has(Trait::ShortVersion) => return Effects::presumed(),
        // For other programs `version` is a file.
        [program, "version"] if row(program).actions.iter().any(Action::leaves_sources) => return Effects::presumed(),
        _ => {}
    }
    if is_presumed(words) && !sets_to_write(command) {
        return Effects::presumed();
    }
    if let Some(action) = table::action(words, |action| action.does == ActionEffect::Makes) {
        return made(words.get(1 + action.len()), command, directory);
    }
    if let Some(extensions) = installed(words) {
        let extensions = extensions.iter().map(|extension| (*extension).to_owned()).collect();
        let doubts = vec![Observation::Swept { under: None, extensions, by: command_label(command) }];
        return Effects { doubts, ..Effects::presumed() };
    }
    match formatters::formatted(words) {
        Some(formatted) => of_formatter(&formatted, command, directory),
        // With other options it may do anything.
        None if reading.is_some() || formatters::writes(words) => Effects::all(command),
        None => unknown::effects(command, words, directory),
    }
}

/// What a command does by what it starts, if it is known by that: a program that only reads, or one in a container.
fn of_started(command: &Simple, words: &[&str], is_started: bool, directory: &Directory) -> Option<Effects> {
    let rest = |inner: &[&str]| command.words[command.words.len() - inner.len()..].to_vec();
    // What only reads does so whoever starts it.
    if is_started && words.first().is_some_and(|program| row(program).reading().is_some()) {
        let inner = Simple { words: rest(words), ..command.clone() };
        return Some(of_words(&inner, directory).and(Effects::presumed()));
    }
    // A container may have the files of the project.
    let inner = Simple { words: rest(wrapped::contained(words)?), redirects: Vec::new(), ..command.clone() };
    let looks = is_looking(&inner, directory) || leaves_files(&inner, directory);
    Some(if looks { Effects::presumed() } else { Effects::all(command) })
}

/// What a formatter does.
fn of_formatter(formatted: &formatters::Formatted<'_>, command: &Simple, directory: &Directory) -> Effects {
    let formatted_by = |under: Option<String>, extensions: &[&str]| Observation::Formatted {
        under,
        extensions: extensions.iter().map(|extension| (*extension).to_owned()).collect(),
        formatter: formatted.family.clone(),
        is_local: formatted.is_local,
        is_proven: true,
        by: command_label(command),
    };
    let changes = match &formatted.reach {
        formatters::FormatterReach::Kinds(extensions) => vec![formatted_by(None, extensions)],
        formatters::FormatterReach::Named(names) => {
            let place = |name: &str| directory.place(name).or_else(|| directory.place_anywhere(name));
            names.iter().map(|(name, extensions)| formatted_by(place(name), extensions)).collect()
        }
    };
    Effects { changes, ..Effects::presumed() }
}

/// What a command does that only makes the file that it names.
fn made(name: Option<&&str>, command: &Simple, directory: &Directory) -> Effects {
    match name.and_then(|name| directory.place(name)) {
        Some(path) => {
            Effects { doubts: vec![Observation::Doubted { path, by: command_label(command) }], ..Effects::presumed() }
        }
        None => Effects::all(command),
    }
}

/// Whether a variable that is set for a command asks for files to be changed.
fn sets_to_write(command: &Simple) -> bool {
    command.assigns.iter().any(|name| asks_to_write(&name.to_lowercase().replace('_', "-")))
}

/// Whether a command is presumed not to change sources because of the words that it consists of.
fn is_presumed_by_name(words: &[&str]) -> bool {
    tasks::is_looking_task(words) || tasks::is_question(words) || tasks::is_help(words) || tasks::is_elsewhere(words)
}

/// Whether a command is an action that changes no file, or only the repository.
pub(crate) fn changes_no_file(words: &[&str]) -> bool {
    acts(words, ActionEffect::Reads) || acts(words, ActionEffect::ChangesRepository)
}

/// Whether a command is in the table of those that are presumed not to change sources.
fn is_presumed(words: &[&str]) -> bool {
    let is_git = words.first() == Some(&"git");
    leaves_sources(words) && (is_git || !words.iter().any(|word| word.starts_with('-') && asks_to_write(word)))
}

/// The extensions of the files that a command changes because it installs packages.
fn installed(words: &[&str]) -> Option<&'static [&'static str]> {
    let bare = tasks::without_leads(words);
    let words = bare.as_slice();
    match table::action(words, |action| matches!(action.does, ActionEffect::Installs(_)))?.does {
        ActionEffect::Installs(extensions) => Some(extensions),
        _ => None,
    }
}

/// Whether an option, or the name of a variable, asks for files to be changed.
fn asks_to_write(option: &str) -> bool {
    // `-U` is a user, or lines around.
    if option == "-U" {
        return false;
    }
    let name = option.split('=').next().unwrap_or(option).to_lowercase();
    name.split('-').any(|part| WRITES.iter().any(|begin| part.starts_with(begin)) || WRITES_WHOLE.contains(&part))
}

/// Whether an option is given, in any spelling that programs take.
fn has_option(command: &Simple, option: &str) -> bool {
    command.arguments().iter().any(|word| {
        let text = word.text.as_str();
        match option.strip_prefix("--") {
            Some(_) => {
                text.len() > 2 && text.starts_with("--") && {
                    let name = text.split('=').next().unwrap_or(text);
                    option.starts_with(name) || name.starts_with(option)
                }
            }
            // A single letter may be grouped with others; a word after one dash is only itself.
            None if option.len() == 2 => {
                text.starts_with('-') && !text.starts_with("--") && text.contains(&option[1..])
            }
            None => text.split('=').next() == Some(option),
        }
    })
}

/// The arguments of a command that are not options.
fn operands_of(command: &Simple) -> impl Iterator<Item = &Word> {
    operands(command.arguments())
}

/// Those of some arguments that are not options; after `--` all are operands.
fn operands(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    let mut are_all = false;
    arguments.iter().filter(move |word| {
        let is_operand = are_all || !word.text.starts_with('-') || word.text == "-";
        are_all |= word.text == "--";
        is_operand
    })
}

/// How far the program of a command only reads, if it does.
fn reading(command: &Simple) -> Option<Reading> {
    row(command.program()?).reading()
}

/// Whether a program changes no file, whatever arguments it is given.
fn is_harmless_with_anything(command: &Simple) -> bool {
    reading(command).is_some_and(|reading| reading.is_whatever_it_is_given()) && command.redirects.is_empty()
}
