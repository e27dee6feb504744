//! Commands that only run another one: `timeout 60 go test`, `env A=b make`, `bash -c '…'`, `npx tsc`.

use super::table::{self, ActionEffect, Wrapper};
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
pub(super) fn inner(wrapper: Wrapper, command: &Simple) -> Option<WrappedCommand> {
    let arguments = command.arguments();
    let is_option = |word: &Word| word.text.starts_with('-');
    let rest = |words: &[Word]| {
        let inner = Simple { words: words.to_vec(), redirects: Vec::new(), ..command.clone() };
        (!words.is_empty()).then_some(inner)
    };
    match wrapper {
        Wrapper::AfterDuration => match arguments {
            [duration, words @ ..] if !is_option(duration) => rest(words).map(WrappedCommand::Command),
            _ => None,
        },
        Wrapper::Rest | Wrapper::Command if !arguments.first().is_some_and(is_option) => {
            rest(arguments).map(WrappedCommand::Command)
        }
        Wrapper::Rest => None,
        Wrapper::Command => Some(WrappedCommand::Command(Simple {
            words: vec![Word { text: "true".into(), ..Word::default() }],
            ..Simple::default()
        }))
        .filter(|_| matches!(arguments.first().map(|word| word.text.as_str()), Some("-v" | "-V"))),
        Wrapper::Environment => environment(command),
        Wrapper::Fed => match fed(arguments) {
            Some([]) => rest(&[Word { text: "echo".into(), ..Word::default() }]).map(WrappedCommand::Fed),
            Some(words) => rest(words).map(WrappedCommand::Fed),
            None => None,
        },
        Wrapper::Line => match arguments {
            [flags, line]
                if is_option(flags)
                    && flags.text.ends_with('c')
                    && flags.text.chars().skip(1).all(|c| "lceu".contains(c)) =>
            {
                Some(WrappedCommand::Line(line.plain()?.to_owned()))
            }
            _ => None,
        },
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

/// Options with a value of what runs a command in a container.
const CONTAINER_VALUES: &[&str] =
    &["-u", "--user", "-w", "--workdir", "-e", "--env", "-c", "--container", "-n", "--namespace", "--index"];

/// What is run in a container that is there already: `docker exec web ls`, `kubectl exec web -- ls`.
pub(super) fn contained<'a, 'b>(words: &'a [&'b str]) -> Option<&'a [&'b str]> {
    let mut rest = match words {
        ["docker" | "podman" | "nerdctl" | "kubectl" | "oc" | "docker-compose", "exec", rest @ ..]
        | ["docker" | "podman" | "nerdctl", "compose", "exec", rest @ ..] => rest,
        _ => return None,
    };
    let mut is_named = false;
    loop {
        rest = match rest {
            ["--", inner @ ..] if is_named => return Some(inner),
            [option, _, more @ ..] if CONTAINER_VALUES.contains(option) => more,
            [option, more @ ..] if option.starts_with('-') => more,
            [_, more @ ..] if !is_named => {
                is_named = true;
                more
            }
            inner => return Some(inner),
        }
    }
}

/// A command without the words that only start it.
pub(super) fn without_starter<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    let words = without_filter(words);
    let starter = table::action(words, |action| action.does == ActionEffect::Starts);
    &words[starter.map_or(0, |starter| 1 + starter.len())..]
}

/// `pnpm --filter NAME exec …` without the words that say for which package.
fn without_filter<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    let ["pnpm" | "yarn", rest @ ..] = words else { return words };
    match rest {
        ["-r" | "--recursive", "exec", rest @ ..] => rest,
        ["--filter" | "-F" | "-C" | "--dir" | "workspace", name, "exec", rest @ ..]
        | ["-r" | "--recursive", "--filter" | "-F", name, "exec", rest @ ..]
            if !name.starts_with('-') =>
        {
            rest
        }
        _ => words,
    }
}

/// The directory in which packages put programs.
const PROGRAMS: &str = "node_modules/.bin/";

/// The words of a command whose program is one of a package, by its own name.
pub(super) fn of_package<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut named = words.to_vec();
    if let Some(program) = named.first_mut()
        && let Some((_, name)) = program.rsplit_once(PROGRAMS)
    {
        *program = name;
    }
    named
}
