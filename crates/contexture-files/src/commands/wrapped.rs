//! Commands that only run another one: `timeout 60 go test`, `env A=b make`, `bash -c '…'`, `npx tsc`.

use crate::shell::{Simple, Word};

/// What a command runs.
pub(super) enum Inner {
    /// A command as it is written.
    Command(Simple),
    /// A command line.
    Line(String),
    /// A command that gets more arguments from elsewhere.
    Fed(Simple),
}

/// What a command runs, if it is one that runs another and its own options are understood.
pub(super) fn inner(command: &Simple) -> Option<Inner> {
    let arguments = command.arguments();
    let is_option = |word: &Word| word.text.starts_with('-');
    let rest = |words: &[Word]| {
        let inner = Simple { words: words.to_vec(), redirects: Vec::new(), ..command.clone() };
        (!words.is_empty()).then_some(inner)
    };
    match command.program()? {
        "timeout" | "gtimeout" => match arguments {
            [duration, words @ ..] if !is_option(duration) => rest(words).map(Inner::Command),
            _ => None,
        },
        "time" | "nice" | "nohup" | "command" | "builtin" if !arguments.first().is_some_and(is_option) => {
            rest(arguments).map(Inner::Command)
        }
        "command" => Some(Inner::Command(Simple {
            words: vec![Word { text: "true".into(), ..Word::default() }],
            ..Simple::default()
        }))
        .filter(|_| matches!(arguments.first().map(|word| word.text.as_str()), Some("-v" | "-V"))),
        "env" => environment(command),
        "xargs" => match fed(arguments) {
            Some([]) => rest(&[Word { text: "echo".into(), ..Word::default() }]).map(Inner::Fed),
            Some(words) => rest(words).map(Inner::Fed),
            None => None,
        },
        "bash" | "sh" | "zsh" | "dash" => match arguments {
            [flags, line]
                if is_option(flags)
                    && flags.text.ends_with('c')
                    && flags.text.chars().skip(1).all(|c| "lceu".contains(c)) =>
            {
                Some(Inner::Line(line.plain()?.to_owned()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// `env` with variables before a command, or with nothing.
fn environment(command: &Simple) -> Option<Inner> {
    let mut inner = Simple { redirects: Vec::new(), words: Vec::new(), ..command.clone() };
    for word in command.arguments() {
        match word.text.split_once('=') {
            Some((name, _)) if inner.words.is_empty() && !name.starts_with('-') => inner.assigns.push(name.to_owned()),
            _ if inner.words.is_empty() && word.text.starts_with('-') => return None,
            _ => inner.words.push(word.clone()),
        }
    }
    Some(Inner::Command(inner))
}

/// What `xargs` runs.
fn fed(mut arguments: &[Word]) -> Option<&[Word]> {
    loop {
        match arguments {
            [first, rest @ ..] if matches!(first.text.as_str(), "-0" | "-r" | "-t") => arguments = rest,
            [first, _, rest @ ..] if matches!(first.text.as_str(), "-n" | "-P" | "-I" | "-L") => arguments = rest,
            [first, ..] if first.text.starts_with('-') => return None,
            words => return Some(words),
        }
    }
}

/// Words that only start another program, by tool.
const STARTERS: &[&[&str]] = &[
    &["npx", "-y"],
    &["npx", "--yes"],
    &["npx"],
    &["bunx"],
    &["pnpm", "exec"],
    &["pnpm", "dlx"],
    &["yarn", "exec"],
    &["yarn", "dlx"],
    &["uv", "run"],
    &["uvx"],
    &["poetry", "run"],
    &["python", "-m"],
    &["python3", "-m"],
    &["bundle", "exec"],
    &["mise", "exec", "--"],
    &["mise", "x", "--"],
    &["pipenv", "run"],
    &["pdm", "run"],
    &["rye", "run"],
    &["dotenv", "--"],
    &["direnv", "exec", "."],
];

/// A command without the words that only start it.
pub(super) fn without_starter<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    let words = without_filter(words);
    let starter = STARTERS.iter().find(|starter| words.starts_with(starter));
    &words[starter.map_or(0, |starter| starter.len())..]
}

/// `pnpm --filter NAME exec …` without the words that say for which package.
fn without_filter<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    match words {
        ["pnpm" | "yarn", "--filter" | "-F" | "-C" | "--dir" | "workspace", name, "exec", rest @ ..]
            if !name.starts_with('-') =>
        {
            rest
        }
        words => words,
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
