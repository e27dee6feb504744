//! Commands of the shell itself: what they change of it.

use std::borrow::Cow;

use super::effects::Effects;
use super::table::{Deed, Program, Sets, Trait, row};
use crate::shell::{Simple, Word, parse};

/// Variables that determine which programs run, or what they do to files.
const RISKY_VARIABLES: [&str; 14] = [
    "PATH",
    "IFS",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "CDPATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "PAGER",
    "EDITOR",
    "SHELL",
    "PS4",
    "PROMPT_COMMAND",
];

/// How names of such variables begin.
const RISKY_PREFIXES: [&str; 6] = ["LD_", "DYLD_", "GIT_", "BASH_", "RIPGREP_", "GREP_"];

/// Whether a variable determines which programs run, or what they do to files.
fn is_risky(name: &str) -> bool {
    RISKY_VARIABLES.contains(&name) || RISKY_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The variables set before a command that determine which programs run, or what they do to files.
pub(super) fn risky(command: &Simple) -> impl Iterator<Item = &str> {
    // How `read` splits a line concerns nothing else.
    let is_own = |name: &str| name == "IFS" && command.program() == Some("read");
    let is_cat = |at: usize| command.assigned.get(at).is_some_and(|word| word.text.ends_with("PAGER=cat"));
    let names = command.assigns.iter().enumerate().map(|(at, name)| (at, name.as_str()));
    names.filter(move |(at, name)| is_risky(name) && !is_own(name) && !is_cat(*at)).map(|(_, name)| name)
}

/// Scripts with which tools set up a shell: they set variables and define functions.
const SETUPS: [&str; 5] = [".bashrc", ".profile", ".zshrc", "activate", "nvm.sh"];

/// Whether a command only sets up the shell for a tool: `. "$NVM_DIR/nvm.sh"`, `source .venv/bin/activate`.
pub(super) fn sets_up(command: &Simple) -> bool {
    let is_source = matches!(command.program(), Some("." | "source"));
    let [script] = command.arguments() else { return false };
    let name = script.text.rsplit('/').next().unwrap_or_default();
    is_source && command.redirects.is_empty() && (SETUPS.contains(&name) || script.text.ends_with(".cargo/env"))
}

/// Whether a command may change the directory of the shell that runs it.
pub(crate) fn moves(command: &Simple) -> bool {
    if sets_up(command) {
        return false;
    }
    let command = bare(command);
    match command.program() {
        // What it is told to run later may be any of these.
        Some("trap") => command.arguments().iter().any(|word| match word.plain() {
            Some(option) if option.starts_with('-') => false,
            Some(line) => parse(line).is_none_or(|script| script.commands().any(moves)),
            None => true,
        }),
        Some(program) => row(program).has(Trait::Moves),
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

/// Whether a command may change what the commands after it do.
pub(crate) fn changes_shell(command: &Simple) -> bool {
    let command = &*bare(command);
    let is_unknown = match command.program() {
        Some(program) => match row(program) {
            row if row.does == Some(Deed::Settings) => settings(command) != Effects::none(),
            row if sets_variables(row, command) => declared(command) != Effects::none(),
            row => row.has(Trait::AltersShell),
        },
        // A variable may hold any of these, or `exit`.
        None => is_hidden(command) && !command.words.iter().take(1).any(|word| word.text.contains('/')),
    };
    is_unknown || risky(command).next().is_some()
}

/// `set` with options that only determine when a script stops.
pub(super) fn settings(command: &Simple) -> Effects {
    if set_options(command).is_some() { Effects::none() } else { Effects::any(command) }
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

/// Whether a command of the shell sets variables that its arguments name.
pub(super) fn sets_variables(program: &Program, command: &Simple) -> bool {
    match program.sets {
        Sets::Never => false,
        Sets::Always => true,
        Sets::AfterOption => command.arguments().first().is_some_and(|word| word.text.starts_with("-v")),
    }
}

/// What a command does that sets variables.
pub(super) fn declared(command: &Simple) -> Effects {
    let name = |word: &Word| word.text.split('=').next().unwrap_or_default().to_owned();
    if command.arguments().iter().any(|word| is_risky(&name(word))) { Effects::any(command) } else { Effects::none() }
}
