//! What simple commands do to files: certainly, possibly, or certainly not.

use std::borrow::Cow;

use super::observation::Observation;
use super::patched::observe_patch;
use super::path::{Directory, is_device};
use super::shell::{Expands, Redirect, Script, Simple, Word, parse};

mod copies;
pub mod formatters;
mod git;
mod loose;
pub(crate) mod prints;
mod programs;
pub(crate) mod sed;
pub mod tables;
pub mod tasks;
pub(crate) mod text;
pub mod unknown;
mod wrapped;

use copies::{Way, copied, linked, removed};
use tables::{
    APART, APART_VARIABLES, MAKE_TARGETS, PRESUMED, READ_ONLY, RISKY_PREFIXES, RISKY_VARIABLES, WRITES, WRITES_WHOLE,
};

/// What a command does to files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// What it changed, if it succeeded.
    pub(crate) changes: Vec<Observation>,
    /// What it may have changed, whether it succeeded or not.
    pub(crate) doubts: Vec<Observation>,
    /// Whether it is only presumed to leave other files alone.
    pub(crate) is_presumed: bool,
    /// Whether no table has the program, so that this follows from its words alone.
    pub(crate) is_guess: bool,
}

/// Most characters of a command that an observation includes.
const MAX_TOLD_CHARS: usize = 40;

/// A command in short, for people.
pub(crate) fn told(command: &Simple) -> String {
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

/// Any two files may be one from now on.
pub(crate) fn any_link() -> Observation {
    Observation::Linked { from: String::new(), to: String::new() }
}

/// Words of programs, in several languages, with which a link is made.
const LINKING: [&str; 9] =
    ["ln", "link", "symlink", "linkSync", "symlinkSync", "symlink_to", "hardlink_to", "link_to", "hard_link"];

/// A link that a text may make that is not understood.
pub(crate) fn may_link(text: &str) -> Option<Observation> {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c));
    // `link.txt` is a file, and `os.link(…)` is not.
    let words: Vec<&str> = text.split(|c: char| is_end(c) && c != '.').collect();
    let last = |word: &&&str| word.rsplit('.').next().is_some_and(|name| LINKING.contains(&name));
    let is_copy = words.contains(&"cp") && words.iter().any(|word| makes_links(word));
    (is_copy || words.iter().any(|word| last(&word))).then(any_link)
}

/// Whether an option of `cp` makes links instead of copies.
fn makes_links(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(name) => name.starts_with('l') || name.starts_with('s'),
        None => option.starts_with('-') && option.contains(['l', 's']),
    }
}

/// A link that `cp` may make when another program runs it.
fn copies_as_links(command: &Simple) -> Option<Observation> {
    let is_copy = command.arguments().iter().any(|word| word.text == "cp" || word.text.ends_with("/cp"));
    (is_copy && command.words.iter().any(|word| makes_links(&word.text))).then(any_link)
}

impl Effects {
    pub(crate) fn none() -> Self {
        Self::default()
    }

    pub(crate) fn presumed() -> Self {
        Self { is_presumed: true, ..Self::default() }
    }

    pub(crate) fn all(command: &Simple) -> Self {
        let links = command.words.iter().filter_map(|word| may_link(&word.text)).chain(copies_as_links(command));
        Self { doubts: [everything(told(command))].into_iter().chain(links.take(1)).collect(), ..Self::default() }
    }

    fn changes(changes: Vec<Observation>) -> Self {
        Self { changes, ..Self::default() }
    }

    fn doubts(doubts: Vec<Observation>) -> Self {
        Self { doubts, ..Self::default() }
    }

    /// The same for a command that may have failed, or may not have run at all.
    pub(crate) fn unproven(mut self, by: &str) -> Self {
        let swept =
            |path: &str| Observation::Swept { under: Some(path.to_owned()), extensions: vec![], by: by.to_owned() };
        for change in self.changes.drain(..) {
            match change {
                Observation::Swept { .. } | Observation::Doubted { .. } => self.doubts.push(change),
                Observation::Formatted { under, extensions, formatter, is_local, by, .. } => {
                    let is_proven = false;
                    self.doubts.push(Observation::Formatted { under, extensions, formatter, is_local, is_proven, by });
                }
                // What is written is a file.
                Observation::Write { path, .. }
                | Observation::Append { path, .. }
                | Observation::Changed { path, .. }
                | Observation::Rewrite { path, .. } => {
                    self.doubts.push(Observation::Doubted { path, by: by.to_owned() });
                }
                change => self.doubts.extend(change.paths().into_iter().map(swept)),
            }
        }
        self
    }

    fn and(mut self, other: Effects) -> Self {
        self.changes.extend(other.changes);
        self.doubts.extend(other.doubts);
        self.is_presumed |= other.is_presumed;
        self.is_guess |= other.is_guess;
        self
    }
}

/// Returns what a command does to files.
pub(crate) fn effects(command: &Simple, directory: &Directory) -> Effects {
    if command.assigns.iter().any(|name| is_risky(name) && !is_of_git_elsewhere(name, command)) {
        return Effects::all(command);
    }
    let own = match command.words.is_empty() {
        true => Effects::none(),
        false => of_program(command, directory),
    };
    let redirected = redirected(command, directory);
    if !own.changes.is_empty() && !redirected.changes.is_empty() {
        let by = told(command);
        return own.unproven(&by).and(redirected.unproven(&by));
    }
    own.and(redirected)
}

/// Whether a variable only tells `git` something, and the command is another one that is at best presumed to leave
/// files alone.
fn is_of_git_elsewhere(name: &str, command: &Simple) -> bool {
    let is_harmless =
        ["GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_TERMINAL_PROMPT"].iter().any(|begin| name.starts_with(begin));
    let others = ["go", "cargo", "npm", "pnpm", "yarn", "bun", "pytest", "make", "mvn", "gradle", "dotnet", "mix"];
    is_harmless || (name.starts_with("GIT_") && command.program().is_some_and(|program| others.contains(&program)))
}

fn is_risky(name: &str) -> bool {
    RISKY_VARIABLES.contains(&name) || RISKY_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns which files a word may name: one file, those of a pattern, or any.
pub(crate) fn reach(word: &Word, directory: &Directory, by: &str) -> Observation {
    let swept = |under: Option<String>, extensions| Observation::Swept { under, extensions, by: by.to_owned() };
    match word.expands {
        Expands::Never => match directory.place(&word.text) {
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
    let by = told(command);
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

/// Commands of the shell that take names of variables or numbers, and run commands in their subscripts.
const EVALUATES: [&str; 14] = [
    "test",
    "[",
    "printf",
    "read",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "let",
    "mapfile",
    "readarray",
    "wait",
];

/// Returns what a program does, apart from redirections.
fn of_program(command: &Simple, directory: &Directory) -> Effects {
    if command.words.first().is_none_or(|word| word.plain().is_none()) {
        return Effects::all(command);
    }
    if EVALUATES.iter().any(|name| command.program() == Some(name))
        && command.arguments().iter().any(Word::has_subscript_command)
    {
        return Effects::all(command);
    }
    let own = of_words(command, directory);
    // What is not understood because of a variable or a pattern may not depend on it.
    if own.doubts.iter().any(reaches_everything) {
        return loose::whatever_they_are(command, directory).unwrap_or(own);
    }
    own
}

/// Whether an observation puts every file in doubt.
pub(crate) fn reaches_everything(observation: &Observation) -> bool {
    matches!(observation, Observation::Swept { under: None, extensions, .. } if extensions.is_empty())
}

/// Returns what a program does according to its words.
fn of_words(command: &Simple, directory: &Directory) -> Effects {
    let Some(program) = command.program() else { return of_table(command, "", directory) };
    match program {
        "cd" | "pushd" | "popd" | "dirs" | "wait" | "shift" | "return" => Effects::none(),
        "set" => settings(command),
        program if sets_variables(program, command) => declared(command),
        "sed" => sed::effects(command, directory),
        "awk" | "gawk" | "mawk" => awk(command),
        "git" => git::effects(command, directory),
        "make" => make(command),
        "curl" => curl(command, directory),
        "touch" => touched(command, directory),
        "rm" | "unlink" => removed(command, command.arguments(), directory),
        "cp" => copied(command, command.arguments(), directory, Way::Copy),
        "mv" => copied(command, command.arguments(), directory, Way::Move),
        "ln" | "link" => linked(command, directory),
        "tee" => teed(command, directory),
        "truncate" => {
            Effects::doubts(operands_of(command).map(|word| reach(word, directory, &told(command))).collect())
        }
        "apply_patch" => patched(command, directory),
        "find" => found(command, directory),
        _ => match wrapped::inner(command) {
            Some(wrapped::Inner::Command(inner)) => effects(&inner, directory).unproven(&told(command)),
            Some(wrapped::Inner::Line(line)) => of_line(&line, command, directory),
            Some(wrapped::Inner::Fed(inner)) if is_harmless_with_anything(&inner) => Effects::none(),
            Some(wrapped::Inner::Fed(inner)) if is_looking(&inner, directory) => Effects::presumed(),
            Some(wrapped::Inner::Fed(_)) => Effects::all(command),
            None => programs::effects(command, directory).unwrap_or_else(|| of_table(command, program, directory)),
        },
    }
}

/// Whether a command changes nothing with the arguments that it is given, so that more of them, which are names of
/// files, are presumed to change nothing either.
fn is_looking(command: &Simple, directory: &Directory) -> bool {
    let is_searching = READ_ONLY.iter().any(|entry| Some(entry.name) == command.program());
    is_searching && command.redirects.is_empty() && of_words(command, directory) == Effects::none()
}

/// `find`, whose `-exec` may run something that only reads.
fn found(command: &Simple, directory: &Directory) -> Effects {
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

/// Returns what a command line does that another command runs. It is unknown how far it got.
fn of_line(line: &str, command: &Simple, directory: &Directory) -> Effects {
    let Some(script) = parse(line) else { return Effects::all(command) };
    anyhow(&script, directory)
}

/// Returns what the commands of a script do, whichever of them run, in any order.
pub(crate) fn anyhow(script: &Script, directory: &Directory) -> Effects {
    let lost = Directory::Lost;
    let directory = if script.commands().any(moves) { &lost } else { directory };
    script
        .commands()
        .fold(Effects::none(), |sum, command| sum.and(effects(command, directory).unproven(&told(command))))
}

/// Whether a command may change the directory of the shell that runs it.
pub(crate) fn moves(command: &Simple) -> bool {
    let command = bare(command);
    match command.program() {
        Some("cd" | "pushd" | "popd" | "chdir" | "eval" | "source" | "." | "alias" | "mapfile" | "readarray") => true,
        // What it is told to run later may be any of these.
        Some("trap") => command.arguments().iter().any(|word| match word.plain() {
            Some(option) if option.starts_with('-') => false,
            Some(line) => parse(line).is_none_or(|script| script.commands().any(moves)),
            None => true,
        }),
        Some(_) => false,
        // A variable may hold any of these.
        None => is_hidden(&command),
    }
}

/// Whether a command's program is not written out.
fn is_hidden(command: &Simple) -> bool {
    command.words.first().is_some_and(|word| word.plain().is_none())
}

/// A command of the shell without `command` and `builtin` before it.
pub(crate) fn bare(command: &Simple) -> Cow<'_, Simple> {
    let mut words = command.words.as_slice();
    while let Some("command" | "builtin") = words.first().and_then(Word::plain) {
        let rest = &words[1..];
        let options = rest.iter().take_while(|word| matches!(word.plain(), Some("-p" | "--"))).count();
        match rest.get(options) {
            // It only says what it would run.
            Some(next) if matches!(next.plain(), Some(text) if text.starts_with('-')) => break,
            Some(_) => words = &rest[options..],
            None => break,
        }
    }
    match words.len() == command.words.len() {
        true => Cow::Borrowed(command),
        false => Cow::Owned(Simple { words: words.to_vec(), ..command.clone() }),
    }
}

/// Returns what the tables say about a command.
fn of_table(command: &Simple, program: &str, directory: &Directory) -> Effects {
    let listed = READ_ONLY.iter().find(|entry| entry.name == program);
    if let Some(entry) = listed {
        let operands = operands_of(command).count();
        let is_plain = entry.unless.is_empty() && entry.most_operands.is_none() || command.plain_arguments().is_some();
        let is_within = entry.most_operands.is_none_or(|most| operands <= most);
        if is_plain && is_within && !entry.unless.iter().any(|option| has_option(command, option)) {
            return Effects::none();
        }
    }
    let Some(words) = command.words.iter().map(Word::plain).collect::<Option<Vec<_>>>() else {
        // A word that is not plain may be an option. What a formatter may change is known even so.
        return Effects::all(command);
    };
    let words = wrapped::of_package(wrapped::without_starter(&words));
    let words = words.as_slice();
    if is_apart(words) && !command.assigns.iter().any(|name| APART_VARIABLES.contains(&name.as_str())) {
        return Effects::none();
    }
    if is_presumed_by_name(words) && !sets_to_write(command) {
        return Effects::presumed();
    }
    // A program of the project may do anything; one of a package is known by its name.
    if program.is_empty() && words.first().is_none_or(|name| name.contains('/')) {
        return unknown::effects(command, words, directory);
    }
    match words {
        [_, "--version" | "-V" | "--help"] => return Effects::presumed(),
        ["bun" | "deno" | "node" | "npm" | "pnpm" | "ruby" | "yarn", "-v"] => return Effects::presumed(),
        // For other programs `version` is a file.
        [program, "version"] if PRESUMED.iter().any(|entry| entry.words[0] == *program) => return Effects::presumed(),
        _ => {}
    }
    if is_presumed(words) && !sets_to_write(command) {
        return Effects::presumed();
    }
    if let Some(extensions) = tables::installed(words) {
        let extensions = extensions.iter().map(|extension| (*extension).to_owned()).collect();
        let doubts = vec![Observation::Swept { under: None, extensions, by: told(command) }];
        return Effects { doubts, ..Effects::presumed() };
    }
    match formatters::reach(words) {
        Some((formatter, reach)) => {
            let formatted = |under: Option<String>, extensions: &[&str]| Observation::Formatted {
                under,
                extensions: extensions.iter().map(|extension| (*extension).to_owned()).collect(),
                formatter: formatter.family(),
                is_local: formatter.is_local,
                is_proven: true,
                by: told(command),
            };
            let changes = match reach {
                formatters::Reach::Kinds(extensions) => vec![formatted(None, extensions)],
                formatters::Reach::Named(names) => {
                    names.iter().map(|(name, extensions)| formatted(directory.place(name), extensions)).collect()
                }
            };
            Effects { changes, ..Effects::presumed() }
        }
        // With other options it may do anything.
        None if listed.is_some() || formatters::writes(words) => Effects::all(command),
        None => unknown::effects(command, words, directory),
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

/// Whether a command is in the table of those that run nothing of the project and write no source.
fn is_apart(words: &[&str]) -> bool {
    let has = |needs: &[&str]| needs.is_empty() || words.iter().any(|word| needs.contains(word));
    let writes = |unless: &[&str]| words.iter().any(|word| unless.iter().any(|option| word.starts_with(option)));
    APART.iter().any(|entry| words.starts_with(entry.words) && has(entry.needs) && !writes(entry.unless))
}

/// Whether a command is in the table of those that are presumed not to change sources.
fn is_presumed(words: &[&str]) -> bool {
    let has = |needs: &[&str]| needs.is_empty() || words.iter().any(|word| needs.contains(word));
    let is_git = words.first() == Some(&"git");
    PRESUMED.iter().any(|entry| words.starts_with(entry.words) && has(entry.needs))
        && (is_git || !words.iter().any(|word| word.starts_with('-') && asks_to_write(word)))
}

/// Whether an option, or the name of a variable, asks for files to be changed.
fn asks_to_write(option: &str) -> bool {
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

/// Whether a program changes no file, whatever arguments it is given.
fn is_harmless_with_anything(command: &Simple) -> bool {
    let is_it = |entry: &tables::ReadOnly| {
        Some(entry.name) == command.program() && entry.unless.is_empty() && entry.most_operands.is_none()
    };
    READ_ONLY.iter().any(is_it) && command.redirects.is_empty()
}

/// Commands of the shell that change what later ones mean, or whether they run.
const SHELL_CHANGERS: [&str; 14] = [
    "eval", "source", ".", "alias", "unalias", "exec", "trap", "shopt", "enable", "hash", "bind", "builtin", "ulimit",
    "umask",
];

/// Whether a command may change what the commands after it do.
pub(crate) fn changes_shell(command: &Simple) -> bool {
    let command = &*bare(command);
    let is_unknown = match command.program() {
        Some("set") => settings(command) != Effects::none(),
        Some(program) if sets_variables(program, command) => declared(command) != Effects::none(),
        Some(program) => SHELL_CHANGERS.contains(&program),
        // A variable may hold any of these, or `exit`.
        None => is_hidden(command) && !command.words.iter().take(1).any(|word| word.text.contains('/')),
    };
    is_unknown || command.assigns.iter().any(|name| is_risky(name))
}

/// `set` with options that only determine when a script stops.
fn settings(command: &Simple) -> Effects {
    if set_options(command).is_some() { Effects::none() } else { Effects::all(command) }
}

/// The options that `set` turns on (`-`) and off (`+`), by name; `None` if it does anything else.
pub(crate) fn set_options(command: &Simple) -> Option<Vec<(char, &str)>> {
    let words = command.plain_arguments()?;
    let mut words = words.into_iter();
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        let sign = word.chars().next().filter(|sign| matches!(sign, '-' | '+'))?;
        // A sign alone ends the options.
        if word.len() == 1 {
            return None;
        }
        for letter in word[1..].chars() {
            let name = match letter {
                'e' => "errexit",
                'u' => "nounset",
                'x' => "xtrace",
                'o' => words.next().filter(|name| matches!(*name, "pipefail" | "errexit" | "nounset" | "xtrace"))?,
                _ => return None,
            };
            options.push((sign, name));
        }
    }
    Some(options)
}

/// Whether a shell builtin sets variables that its arguments name.
fn sets_variables(program: &str, command: &Simple) -> bool {
    match program {
        "export" | "local" | "declare" | "readonly" | "typeset" | "read" | "unset" => true,
        "printf" => command.arguments().first().is_some_and(|word| word.text.starts_with("-v")),
        _ => false,
    }
}

fn declared(command: &Simple) -> Effects {
    let name = |word: &Word| word.text.split('=').next().unwrap_or_default().to_owned();
    if command.arguments().iter().any(|word| is_risky(&name(word))) { Effects::all(command) } else { Effects::none() }
}

/// `awk` writes only where its program says to.
fn awk(command: &Simple) -> Effects {
    let Some(arguments) = command.plain_arguments() else { return Effects::all(command) };
    let is_risky = |word: &&str| {
        let bare = word.replace("||", " ").replace(">=", " ");
        // Only what is printed goes into a file; elsewhere the sign compares.
        let is_output = |statement: &str| statement.contains("print") && statement.contains(['>', '|']);
        ["system", "getline", "close", "fflush", "@"].iter().any(|name| word.contains(name))
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

fn make(command: &Simple) -> Effects {
    let Some(arguments) = command.plain_arguments() else { return Effects::all(command) };
    let is_known = |word: &&str| {
        MAKE_TARGETS.contains(word)
            || matches!(*word, "-s" | "-k" | "-j")
            || word.strip_prefix("-j").is_some_and(|count| count.chars().all(|c| c.is_ascii_digit()))
    };
    if arguments.iter().all(is_known) { Effects::presumed() } else { Effects::all(command) }
}

/// Options of `curl` with which it writes to a file that follows.
const CURL_FILES: &[(char, &str)] = &[('o', "output"), ('D', "dump-header"), ('c', "cookie-jar")];

/// What `curl` writes. All else is presumed to stay, whatever it was sent.
fn curl(command: &Simple, directory: &Directory) -> Effects {
    let Some(arguments) = command.plain_arguments() else { return Effects::all(command) };
    let by = told(command);
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
    tables::CURL_WRITES.iter().any(|part| name.starts_with(part) || (name.len() > 1 && part.starts_with(name)))
}

fn touched(command: &Simple, directory: &Directory) -> Effects {
    // Options may prevent files from being created, or take arguments that are not files.
    let has_options = command.arguments().iter().any(|word| word.text.starts_with('-'));
    let made = |word: &Word| Some(Observation::Made { path: directory.place(word.plain()?)? });
    let made: Option<Vec<Observation>> = operands_of(command).map(made).collect();
    match made.filter(|_| !has_options) {
        Some(made) => Effects::changes(made),
        None => {
            let by = told(command);
            Effects::doubts(operands_of(command).map(|word| reach(word, directory, &by)).collect())
        }
    }
}

/// What `tee` writes, if its input is known.
fn teed(command: &Simple, directory: &Directory) -> Effects {
    let by = told(command);
    let one = |word: &Word| match word.plain().and_then(|path| directory.place(path)) {
        Some(path) => Observation::Changed { path, by: by.clone() },
        None => reach(word, directory, &by),
    };
    Effects::changes(operands_of(command).filter(|word| !is_device(&word.text)).map(one).collect())
}

/// What `apply_patch` does when run as a command.
fn patched(command: &Simple, directory: &Directory) -> Effects {
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
