//! What simple commands do to files: what they change, as far as that can be followed, and whether they could write more.

use super::observation::{Observation, Who};
use super::patched::observe_patch;
use super::path::{Directory, is_device};
use super::shell::{Redirect, Script, Simple, Word, parse};

mod builtins;
mod copies;
mod effects;
mod git;
pub(crate) mod prints;
pub(crate) mod sed;
pub mod table;
pub(crate) mod text;
mod wrapped;

pub(crate) use builtins::{bare, changes_shell, moves, set_options};
use builtins::{declared, risky, sets_up, sets_variables, settings};
use copies::{Way, copied, removed};
pub(crate) use effects::{Effects, could_link};
use table::{Deed, Program, Trait, row};

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

/// Returns what a command does to files.
pub(crate) fn effects(command: &Simple, directory: &Directory) -> Effects {
    if risky(command).next().is_some() {
        return Effects::any(command);
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

/// Returns what the commands of a script do, whichever of them run, in any order.
pub(crate) fn effects_in_any_order(script: &Script, directory: &Directory) -> Effects {
    let lost = Directory::Lost;
    let directory = if script.commands().any(moves) { &lost } else { directory };
    let one = |command: &Simple| effects(command, directory).unproven(&command_label(command));
    script.commands().fold(Effects::none(), |sum, command| sum.and(one(command)))
}

/// A change of a file that cannot be followed.
fn changed(word: &Word, directory: &Directory, by: &str) -> Observation {
    let by = by.to_owned();
    match word.plain().and_then(|path| directory.place(path)) {
        Some(path) => Observation::Changed { path, by, who: Who::Agent },
        None => Observation::could_write(by),
    }
}

/// Returns what redirections of output do.
fn redirected(command: &Simple, directory: &Directory) -> Effects {
    let by = command_label(command);
    let is_device = |word: &Word| word.plain().is_some_and(is_device);
    let target = |redirect: &Redirect| match redirect {
        Redirect::Write(word)
        | Redirect::Append(word)
        | Redirect::Errors(word)
        | Redirect::Both(word)
        | Redirect::Other(word) => Some(word.clone()).filter(|word| !is_device(word)),
        _ => None,
    };
    let targets: Vec<(&Redirect, Word)> =
        command.redirects.iter().filter_map(|redirect| Some((redirect, target(redirect)?))).collect();
    let place = |word: &Word| word.plain().filter(|path| !path.is_empty()).and_then(|path| directory.place(path));
    if let [(redirect @ (Redirect::Write(_) | Redirect::Append(_)), word)] = targets.as_slice()
        && let Some(path) = place(word)
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
                None => Observation::Changed { path, by, who: Who::Agent },
            },
        }]);
    }
    if targets.is_empty() { Effects::none() } else { Effects::could_write(command) }
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
    if sets_up(command) {
        return Effects::none();
    }
    let Some(program) = command.program() else { return Effects::any(command) };
    let row = row(program);
    if row.has(Trait::Evaluates) && command.arguments().iter().any(Word::has_subscript_command) {
        return Effects::any(command);
    }
    if sets_variables(row, command) {
        return declared(command);
    }
    let Some(deed) = row.does else {
        return if reads(row, command) { Effects::none() } else { Effects::any(command) };
    };
    let by = command_label(command);
    let operands = || operands_of(command).filter(|word| !is_device(&word.text));
    match deed {
        Deed::Nothing => Effects::none(),
        Deed::Settings => settings(command),
        Deed::Sed => sed::effects(command, directory),
        Deed::Awk => awk(command),
        Deed::Git => git::effects(command, directory),
        Deed::Touch => touched(command, directory),
        Deed::Remove => removed(command, command.arguments(), directory),
        Deed::Copy => copied(command, command.arguments(), directory, Way::Copy),
        Deed::Move => copied(command, command.arguments(), directory, Way::Move),
        // From then on two names may refer to one file.
        Deed::Link => Effects::links(command),
        Deed::Tee | Deed::Truncate => Effects::changes(operands().map(|word| changed(word, directory, &by)).collect()),
        Deed::InPlace => in_place(command, directory),
        Deed::Patch => patched(command, directory),
        wrapper => match wrapped::inner(wrapper, command) {
            Some(wrapped::WrappedCommand::Command(inner)) => effects(&inner, directory).unproven(&by),
            Some(wrapped::WrappedCommand::Line(line)) => match parse(&line) {
                Some(script) => effects_in_any_order(&script, directory),
                None => Effects::any(command),
            },
            _ => Effects::any(command),
        },
    }
}

/// Whether a command of the table changes no file with the arguments that it is given.
fn reads(row: &Program, command: &Simple) -> bool {
    let is_plain = row.only_reads() || command.plain_arguments().is_some();
    row.reads.is_some_and(|reading| {
        is_plain
            && reading.most_operands.is_none_or(|most| operands_of(command).count() <= most)
            && !reading.unless.iter().any(|option| has_option(command, option))
    })
}

/// `awk`, which only reads unless its program prints into something or runs something.
fn awk(command: &Simple) -> Effects {
    let Some(arguments) = command.plain_arguments() else { return Effects::any(command) };
    // What is compared is not printed into a file.
    let is_output = |part: &str| part.split("print").skip(1).any(|rest| rest.contains(['>', '|']));
    let is_risky = |word: &&str| {
        ["system", "getline", "close", "fflush", "@"].iter().any(|name| word.contains(name))
            || word.split([';', '{', '}']).any(is_output)
    };
    let is_odd = |word: &&str| word.starts_with('-') && !word.starts_with("-F") && !word.starts_with("-v");
    let could_write = arguments.iter().any(|word| is_risky(word) || is_odd(word));
    if could_write { Effects::any(command) } else { Effects::none() }
}

/// What `touch` makes.
fn touched(command: &Simple, directory: &Directory) -> Effects {
    // Options may prevent files from being created, or take arguments that are not files.
    let has_options = command.arguments().iter().any(|word| word.text.starts_with('-'));
    let made = |word: &Word| Some(Observation::Made { path: directory.place(word.plain()?)? });
    let made: Option<Vec<Observation>> = operands_of(command).map(made).collect();
    made.filter(|_| !has_options).map_or_else(|| Effects::could_write(command), Effects::changes)
}

/// `perl -pi -e …`, which changes the files that are named and could write others.
fn in_place(command: &Simple, directory: &Directory) -> Effects {
    let options: Vec<&Word> = command.arguments().iter().take_while(|word| word.text.starts_with('-')).collect();
    let is_in_place = options.iter().any(|word| !word.text.starts_with("--") && word.text.contains('i'));
    let by = command_label(command);
    let named = command.arguments().iter().skip(options.len() + 1).filter(|_| is_in_place);
    let changes = named.map(|word| changed(word, directory, &by)).collect();
    Effects::any(command).and(Effects::changes(changes))
}

/// What `apply_patch` does when run as a command.
fn patched(command: &Simple, directory: &Directory) -> Effects {
    let document = command.redirects.iter().find_map(|redirect| match redirect {
        Redirect::Document { text, is_plain: true } => Some(text.as_str()),
        _ => None,
    });
    let argument = command.plain_arguments().and_then(|arguments| arguments.first().copied());
    let Some(patch) = document.or(argument) else { return Effects::any(command) };
    let placed: Option<Vec<Observation>> =
        observe_patch(patch, None).into_iter().map(|change| change.placed(&|path| directory.place(path))).collect();
    placed.map_or_else(|| Effects::any(command), Effects::changes)
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

/// The arguments of a command that are not options; after `--` all are operands.
fn operands_of(command: &Simple) -> impl Iterator<Item = &Word> {
    let mut are_all = false;
    command.arguments().iter().filter(move |word| {
        let is_operand = are_all || !word.text.starts_with('-') || word.text == "-";
        are_all |= word.text == "--";
        is_operand
    })
}
