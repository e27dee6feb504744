//! Reads the arguments of programs as the table of programs says.

use super::base_name;
use crate::files::commands::table::{ArgumentUse, Prefix, Program, row};
use crate::files::shell::Word;

/// What is known of a program.
pub(super) fn known(name: &str) -> &'static Program {
    row(if name.starts_with("python3.") { "python3" } else { name })
}

/// Whether a program is a shell.
pub(super) fn is_shell(name: &str) -> bool {
    matches!(known(name).takes, ArgumentUse::Shell)
}

/// Whether nothing runs.
pub(super) fn only_looks(prefix: &Prefix, arguments: &[Word]) -> bool {
    arguments.first().is_some_and(|word| prefix.looks.contains(&word.text.as_str()))
}

/// The command lines among the values of options.
pub(super) fn lines(prefix: &Prefix, arguments: &[Word]) -> impl Iterator<Item = Word> {
    arguments.iter().enumerate().filter_map(|(at, word)| {
        let option = prefix.lines.iter().find(|option| word.text.starts_with(**option))?;
        let attached = word.text[option.len()..].trim_start_matches('=');
        match attached {
            "" => arguments.get(at + 1).cloned(),
            line => Some(Word { text: line.to_owned(), ..word.clone() }),
        }
    })
}

/// Where the command may begin: whether an unknown option takes a value is not known.
pub(super) fn starts(prefix: &Prefix, arguments: &[Word]) -> Vec<usize> {
    let mut starts = Vec::new();
    find(prefix, arguments, 0, &mut starts);
    starts
}

fn find(prefix: &Prefix, arguments: &[Word], at: usize, starts: &mut Vec<usize>) {
    let Some(word) = arguments.get(at) else { return };
    let text = word.text.as_str();
    if text == "--" {
        return find_after(prefix, arguments, at + 1, starts);
    }
    if text.starts_with('-') && text.len() > 1 {
        let takes_value = prefix.values.contains(&text) || prefix.lines.contains(&text);
        let is_known = takes_value || text.contains('=') || prefix.values.iter().any(|value| text.starts_with(value));
        if !takes_value {
            find(prefix, arguments, at + 1, starts);
        }
        if (takes_value || !is_known) && starts.len() < 16 {
            find(prefix, arguments, at + 2, starts);
        }
        return;
    }
    find_after(prefix, arguments, at, starts);
}

/// The command after all options.
fn find_after(prefix: &Prefix, arguments: &[Word], at: usize, starts: &mut Vec<usize>) {
    let mut at = at + prefix.before;
    let is_assignment = |word: &Word| word.text.split_once('=').is_some_and(|(name, _)| !name.is_empty());
    while prefix.has_assignments && arguments.get(at).is_some_and(is_assignment) {
        at += 1;
    }
    if at < arguments.len() && !starts.contains(&at) {
        starts.push(at);
    }
}

/// The name of a program without its directory; `None` if only the shell knows it.
pub(super) fn name_of(word: &Word) -> Option<String> {
    let text = match word.plain().or((word.text == "[").then_some("[")) {
        Some(text) => text,
        None => {
            // A directory whose name only the shell knows; a name after it is written out.
            let known = ["~/", "$HOME/", "${HOME}/", "$PWD/", "${PWD}/"];
            let rest = known.into_iter().find_map(|start| word.text.strip_prefix(start))?;
            if rest.contains(['$', '`', '*', '?', '[', '{', '~']) {
                return None;
            }
            rest
        }
    };
    let name = base_name(text);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    Some(if name == "hub" { "git" } else { name }.to_owned())
}

/// Whether an option of a program of the shell names a command, or a file of commands.
pub(super) fn is_callback(word: &Word) -> bool {
    ["-C", "-F", "-x", "-p", "-f"].iter().any(|option| word.text.starts_with(option))
}

/// Whether an option before the subcommand of a program takes the next word; `None` if that is not known.
pub(super) fn is_option_with_value(program: &str, option: &str) -> Option<bool> {
    if option.contains('=') || option == "--" || option.starts_with('+') {
        return Some(false);
    }
    let options = row(program).options;
    match (options.values.contains(&option), options.switches.contains(&option)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

/// What a variable is for.
pub(super) enum Variable {
    /// Some program runs its value.
    Line,
    /// It names a file that some program runs, or what it changes is not known.
    Elsewhere,
    /// It has options of an interpreter.
    Options,
    /// It configures git.
    Git,
    /// It is a value.
    Plain,
}

pub(super) fn variable(name: &str) -> Variable {
    match name {
        "EDITOR"
        | "VISUAL"
        | "PAGER"
        | "MANPAGER"
        | "GIT_EDITOR"
        | "GIT_SEQUENCE_EDITOR"
        | "GIT_PAGER"
        | "GIT_SSH_COMMAND"
        | "GIT_SSH"
        | "GIT_EXTERNAL_DIFF"
        | "GIT_ASKPASS"
        | "SSH_ASKPASS"
        | "GIT_PROXY_COMMAND"
        | "PROMPT_COMMAND"
        | "LESSOPEN"
        | "LESSCLOSE"
        | "RUSTC_WRAPPER"
        | "PS4" => Variable::Line,
        "BASH_ENV" | "ENV" | "ZDOTDIR" | "MAKEFILES" | "LD_PRELOAD" | "SHELLOPTS" | "BASHOPTS" | "PERL5OPT" => {
            Variable::Elsewhere
        }
        "NODE_OPTIONS" | "RUBYOPT" => Variable::Options,
        name if name.starts_with("BASH_FUNC") || name.starts_with("BASH_ALIASES") => Variable::Elsewhere,
        name if name.starts_with("GIT_CONFIG") || name == "GIT_EXEC_PATH" => Variable::Git,
        _ => Variable::Plain,
    }
}

/// The texts that are replaced by what is read: `{}` after `-I`.
pub(super) fn replaced(arguments: &[Word]) -> Vec<String> {
    let values = arguments.iter().enumerate().filter_map(|(at, word)| {
        let rest = word.text.strip_prefix("-I").or_else(|| word.text.strip_prefix("-J"))?;
        if rest.is_empty() { arguments.get(at + 1).map(|word| word.text.clone()) } else { Some(rest.to_owned()) }
    });
    values.filter(|text| !text.is_empty()).chain(["{}".to_owned()]).collect()
}
