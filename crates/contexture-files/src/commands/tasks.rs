//! Commands that are presumed to leave sources alone because of what they are called: tasks of a project, questions to
//! a program, requests to another machine.

use super::asks_to_write;
use super::table::{Runs, Trait, row};
use crate::change_words::{CHANGING, CHANGING_TASKS};

/// Words before the name of a task.
const LEADS: &[&str] = &["run", "run-script", "task", "workspaces", "foreach", "r"];

/// Options of these programs that take a value, before the name of a task.
const LEAD_VALUES: &[&str] =
    &["--filter", "-F", "-C", "--dir", "--prefix", "--workspace", "-w", "--cwd", "workspace", "--scope", "-p", "-e"];

/// Words of the name of a task that only looks, or makes what is not source.
pub const LOOKING_TASKS: &[&str] = &[
    "bench",
    "build",
    "check",
    "checks",
    "ci",
    "compile",
    "coverage",
    "dev",
    "e2e",
    "eslint",
    "lint",
    "preview",
    "serve",
    "spec",
    "start",
    "test",
    "tests",
    "tsc",
    "type",
    "typecheck",
    "types",
    "unit",
    "validate",
    "verify",
    "vet",
];

/// Whether a command runs a task of the project that is presumed not to change sources.
pub(super) fn is_looking_task(words: &[&str]) -> bool {
    let [program, rest @ ..] = words else { return false };
    if row(program.trim_start_matches("./")).runs != Runs::Tasks || rest.iter().any(|word| is_request_to_write(word)) {
        return false;
    }
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match *word {
            option if LEAD_VALUES.contains(&option) => drop(rest.next()),
            option if option.starts_with('-') => {}
            lead if LEADS.contains(&lead) => {}
            task => return is_looking(task),
        }
    }
    false
}

/// The words of a program that runs tasks, without the options that say for which package.
pub(super) fn without_leads<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let Some((program, mut rest)) = words.split_first().filter(|(program, _)| row(program).runs == Runs::Tasks) else {
        return words.to_vec();
    };
    while let [option, _, more @ ..] = rest
        && LEAD_VALUES.contains(option)
        && option.starts_with('-')
    {
        rest = more;
    }
    [*program].into_iter().chain(rest.iter().copied()).collect()
}

/// Whether an argument asks for files to be changed.
fn is_request_to_write(word: &str) -> bool {
    word.starts_with('-') && asks_to_write(word)
}

/// Whether the name of a task, such as `lint:go`, says that it only looks.
fn is_looking(task: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_:./@".contains(c);
    let parts = || task.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
    task.chars().all(is_name)
        && parts().any(|part| LOOKING_TASKS.contains(&part.as_str()))
        && !parts().any(|part| CHANGING_TASKS.contains(&part.as_str()))
}

/// Words that ask a program for something that it knows.
pub const QUESTIONS: &[&str] = &[
    "describe", "doctor", "help", "info", "inspect", "list", "logs", "ls", "outdated", "ps", "search", "show",
    "status", "version", "view", "whoami", "why",
];

/// Whether a command only asks a program for something.
pub(super) fn is_question(words: &[&str]) -> bool {
    let [program, rest @ ..] = words else { return false };
    // A program of the project may do anything.
    if program.contains('/')
        || row(program).runs == Runs::Anything
        || rest.iter().any(|word| is_request_to_write(word) || names_output(word))
    {
        return false;
    }
    let mut named = rest.iter().filter(|word| !word.starts_with('-'));
    match (named.next(), named.next()) {
        (Some(verb), _) if QUESTIONS.contains(verb) => true,
        // `kubectl config view`, `docker image ls`.
        (Some(noun), Some(verb)) => {
            let is_noun = noun.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            QUESTIONS.contains(verb) && is_noun && !CHANGING.contains(noun) && !CHANGING_TASKS.contains(noun)
        }
        _ => false,
    }
}

/// Whether an option names a file that is written.
fn names_output(word: &str) -> bool {
    word.starts_with("-o") || word.starts_with("--out") || word.starts_with("--log") || word.starts_with("--save")
}

/// Whether a command only asks a program how it is used.
pub(super) fn is_help(words: &[&str]) -> bool {
    let [program, .., last] = words else { return false };
    let is_script = program.contains('/') && program.rsplit('/').next().is_some_and(|name| name.contains('.'));
    matches!(*last, "--help" | "--version") && !row(program).has(Trait::HandsOnOptions) && !is_script
}

/// Names of the machine that a command runs on.
const THIS_MACHINE: &[&str] = &["localhost", "127.0.0.1", "::1"];

/// Whether a command runs on another machine, or talks to one: `ssh`, `kubectl exec` and the like.
pub(super) fn is_elsewhere(words: &[&str]) -> bool {
    let is_here = |word: &str| {
        word.starts_with("-o") && word.contains("Command")
            || word.starts_with("ProxyCommand")
            || word.starts_with("LocalCommand")
            || word.starts_with("-E")
            || THIS_MACHINE.contains(&word.rsplit('@').next().unwrap_or(word))
    };
    matches!(words, ["ssh", rest @ ..] if !rest.iter().any(|word| is_here(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&str> {
        line.split(' ').collect()
    }

    #[test]
    fn tasks_are_judged_by_their_words() {
        let looks = [
            "pnpm --filter @app/crypto test",
            "mise run lint:go",
            "npm --prefix web run build",
            "yarn workspace web test",
            "just check",
            "turbo run test --filter=web",
            "bun run typecheck",
            "npm run test:unit -- --watch=false",
            "gradle test",
        ];
        for line in looks {
            assert!(is_looking_task(&words(line)), "{line}");
        }
        let changes = [
            "npm run lint:fix",
            "npm run lint -- --fix",
            "pnpm format:check-and-write",
            "yarn build:generate",
            "npm test -- -u",
            "npm install",
            "just deploy",
            "npm run latest",
            "mise run testing",
        ];
        for line in changes {
            assert!(!is_looking_task(&words(line)), "{line}");
        }
    }

    #[test]
    fn questions_are_asked_of_programs_that_run_nothing_else() {
        for line in ["bd show av-1 --json", "kubectl config view", "docker image ls", "brew list", "gh auth status"] {
            assert!(is_question(&words(line)), "{line}");
        }
        for line in ["bash list", "python3 show", "patch version", "tool show -o out.txt", "tool fix list.txt"] {
            assert!(!is_question(&words(line)), "{line}");
        }
        assert!(is_help(&words("go run ./cmd/x sync --help")));
        assert!(!is_help(&words("bash x.sh --help")));
        assert!(is_elsewhere(&words("ssh -o BatchMode=yes host ls")));
        assert!(!is_elsewhere(&words("ssh -o ProxyCommand=sh host ls")));
        assert!(!is_elsewhere(&words("ssh me@localhost ls")));
    }
}
