//! Commands that only run another one: `timeout 60 go test`, `env A=b make`, `bash -c '…'`.

use super::table::Deed;
use crate::shell::{Simple, Word};

/// What a command runs.
pub(super) enum WrappedCommand {
    /// A command as it is written.
    Command(Simple),
    /// A command line.
    Line(String),
    /// A command that gets more arguments from elsewhere.
    Fed(Simple),
}

/// What a command runs, if it is one that runs another and its own options are understood.
pub(super) fn inner(wrapper: Deed, command: &Simple) -> Option<WrappedCommand> {
    let arguments = command.arguments();
    let is_option = |word: &Word| word.text.starts_with('-');
    let rest = |words: &[Word]| {
        let inner = Simple { words: words.to_vec(), redirects: Vec::new(), ..command.clone() };
        (!words.is_empty()).then_some(inner)
    };
    match wrapper {
        Deed::AfterDuration => match arguments {
            [duration, words @ ..] if !is_option(duration) => rest(words).map(WrappedCommand::Command),
            _ => None,
        },
        Deed::Rest | Deed::Command if !arguments.first().is_some_and(is_option) => {
            rest(arguments).map(WrappedCommand::Command)
        }
        Deed::Rest => None,
        Deed::Command => Some(WrappedCommand::Command(Simple {
            words: vec![Word { text: "true".into(), ..Word::default() }],
            ..Simple::default()
        }))
        .filter(|_| matches!(arguments.first().map(|word| word.text.as_str()), Some("-v" | "-V"))),
        Deed::Environment => environment(command),
        Deed::Fed => match fed(arguments) {
            Some([]) => rest(&[Word { text: "echo".into(), ..Word::default() }]).map(WrappedCommand::Fed),
            Some(words) => rest(words).map(WrappedCommand::Fed),
            None => None,
        },
        Deed::Line => match arguments {
            [flags, line]
                if is_option(flags)
                    && flags.text.ends_with('c')
                    && flags.text.chars().skip(1).all(|c| "lceu".contains(c)) =>
            {
                Some(WrappedCommand::Line(line.plain()?.to_owned()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// `env` with variables before a command, or with nothing.
fn environment(command: &Simple) -> Option<WrappedCommand> {
    let mut inner = Simple { redirects: Vec::new(), words: Vec::new(), ..command.clone() };
    for word in command.arguments() {
        match word.text.split_once('=') {
            Some((name, _)) if inner.words.is_empty() && !name.starts_with('-') => inner.assigns.push(name.to_owned()),
            _ if inner.words.is_empty() && word.text.starts_with('-') => return None,
            _ => inner.words.push(word.clone()),
        }
    }
    Some(WrappedCommand::Command(inner))
}

/// What `xargs` runs.
fn fed(mut arguments: &[Word]) -> Option<&[Word]> {
    loop {
        match arguments {
            [first, rest @ ..] if matches!(first.text.as_str(), "-0" | "-r" | "-t") => arguments = rest,
            [first, _, rest @ ..] if matches!(first.text.as_str(), "-n" | "-P" | "-I" | "-L" | "-a" | "-d" | "-s") => {
                arguments = rest
            }
            // With its value: `-n1`, `-I{}`.
            [first, rest @ ..] if has_value(&first.text) => arguments = rest,
            [first, ..] if first.text.starts_with('-') => return None,
            words => return Some(words),
        }
    }
}

/// Whether an option of `xargs` is written together with its value.
fn has_value(option: &str) -> bool {
    let number = option.strip_prefix("-n").or(option.strip_prefix("-P")).or(option.strip_prefix("-L"));
    let is_number = number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    is_number || option == "-I{}" || option == "-I%"
}
