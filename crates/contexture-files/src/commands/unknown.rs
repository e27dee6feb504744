//! Programs that no table has: what they name is in doubt, and all else is only presumed to stay.
//!
//! That holds for a program that is told what to work on. One that runs what it is given, whose words say that it
//! changes something, or that is itself a script of the project may change any file.

use super::table::{Runs, row};
use super::{Effects, asks_to_write, command_label, may_link};
use crate::change_words::{CHANGERS, CHANGING, CHANGING_TASKS, CHANGING_WORDS, PROJECT_CHANGING};
use crate::delegated::only_looks;
use crate::model::named_places;
use crate::observation::Observation;
use crate::path::Directory;
use crate::shell::{Redirect, Simple};

/// Endings of scripts.
const SCRIPTS: &[&str] = &["bat", "bash", "cmd", "js", "mjs", "php", "pl", "ps1", "py", "rb", "sh", "ts", "zsh"];

/// What takes the place of a shell, or hides one: a word with any of these may be a command line.
const SHELL_SIGNS: &[char] = &[';', '|', '&', '<', '>', '$', '`', '\n'];

/// Returns what a program does that no table has, by its words.
pub(super) fn effects(command: &Simple, words: &[&str], directory: &Directory) -> Effects {
    let built = built(words);
    let words = built.as_deref().unwrap_or(words);
    if is_review(words) {
        return Effects::presumed();
    }
    if may_change_anything(words) {
        return Effects::all(command);
    }
    let by = command_label(command);
    let swept = |name: &str| Observation::Swept {
        under: directory.place_somewhere(name).or_else(|| directory.place_for_tool(name)),
        extensions: Vec::new(),
        by: by.clone(),
    };
    let mut is_name = false;
    let names = words.iter().skip(1).filter_map(|word| {
        // After two dashes nothing is an option.
        let name = if is_name { Some(*word) } else { name_in(word) };
        is_name |= *word == "--";
        name
    });
    let mut doubts: Vec<Observation> = names.map(swept).collect();
    let documents = command.redirects.iter().filter_map(|redirect| match redirect {
        Redirect::Document { text, .. } => Some(text.as_str()),
        _ => None,
    });
    // A text may name files too.
    let texts = words.iter().skip(1).filter(|word| word.contains(char::is_whitespace));
    doubts.extend(texts.flat_map(|text| named_places(text)).map(|place| swept(place.path)));
    doubts.extend(documents.flat_map(named_places).map(|place| swept(place.path)));
    doubts.extend(words.iter().filter_map(|word| may_link(word)).take(1));
    Effects { doubts, is_guess: true, ..Effects::presumed() }
}

/// Whether a command lets another agent work that is told only to look: `codex exec review`, `claude -p 'Review …'`.
fn is_review(words: &[&str]) -> bool {
    let Some((program, rest)) = words.split_first().filter(|(program, _)| row(program).runs == Runs::Agent) else {
        return false;
    };
    let is_action = rest.iter().take_while(|word| !word.contains(char::is_whitespace)).any(|word| *word == "review");
    let mut tasks = rest.iter().filter(|word| word.contains(char::is_whitespace)).peekable();
    *program != "aider" && (is_action || tasks.peek().is_some()) && tasks.all(|task| only_looks(task))
}

/// The words of a program that is built and run at once, without those that only build it: `go run ./cmd/x list`.
fn built<'a>(words: &[&'a str]) -> Option<Vec<&'a str>> {
    let name = |path: &'a str| path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    match words {
        ["go", "run", rest @ ..] => {
            let at = rest.iter().position(|word| !word.starts_with('-'))?;
            let is_plain = rest[..at].iter().all(|option| matches!(*option, "-race" | "-v" | "-x"));
            let program = match name(rest[at].trim_end_matches(".go")) {
                "." | ".." | "..." => "program",
                name => name,
            };
            is_plain.then(|| [program].into_iter().chain(rest[at + 1..].iter().copied()).collect())
        }
        ["cargo", "run", rest @ ..] => {
            let end = rest.iter().position(|word| *word == "--").unwrap_or(rest.len());
            let named =
                rest[..end].windows(2).find(|pair| matches!(pair[0], "--bin" | "--example" | "-p" | "--package"));
            let program = named.map_or("program", |pair| pair[1]);
            Some([program].into_iter().chain(rest.iter().skip(end + 1).copied()).collect())
        }
        _ => None,
    }
}

/// The name of a file or a directory that a word may have.
fn name_in(word: &str) -> Option<&str> {
    let value = match word.strip_prefix('-') {
        // `-ofile`, `-o` and `--out=file`.
        Some(option) => match option.split_once('=') {
            Some((_, value)) => value,
            None => option.strip_prefix(['o', 'f']).unwrap_or_default(),
        },
        None => word.split_once('=').map_or(word, |(_, value)| value),
    };
    let is_number = value.chars().all(|c| c.is_ascii_digit() || ".:".contains(c)) && value.contains(char::is_numeric);
    let is_name = !value.is_empty() && !is_number && !value.contains(char::is_whitespace) && !value.contains("://");
    is_name.then_some(value)
}

/// Whether a program may change files that it does not name.
fn may_change_anything(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return true };
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    // A program of the project may be anything; one that was built elsewhere is a program like others.
    let is_of_project = program.contains('/') && !program.starts_with('/');
    is_of_project
        || is_script(name)
        || runs_anything(name)
        || says(name, &[CHANGERS])
        || (0..arguments.len())
            .any(|at| !is_value(arguments, at) && !names_shell(arguments, at) && tells_to_change(arguments[at]))
}

/// Shells that a program may be told the name of.
const SHELLS: &[&str] = &["bash", "dash", "elvish", "fish", "ksh", "nu", "pwsh", "sh", "tcsh", "xonsh", "zsh"];

/// Whether an option only says for which shell something is: nothing follows that the shell could run.
fn names_shell(arguments: &[&str], at: usize) -> bool {
    arguments[at] == "--shell"
        && arguments.get(at + 1).is_some_and(|shell| SHELLS.contains(shell))
        && arguments.get(at + 2).is_none_or(|next| next.starts_with("--") && *next != "--")
}

/// Whether a word is only the value of the option before it, although a program has this name: `--shell bash` at the
/// end, `--user git`. What such a program would be told to do is judged by itself.
fn is_value(arguments: &[&str], at: usize) -> bool {
    let is_after_option = at > 0 && arguments[at - 1].starts_with("--") && !arguments[at - 1].contains('=');
    let runs = row(arguments[at]).runs;
    let is_last = arguments.get(at + 1).is_none_or(|next| next.starts_with("--"));
    let is_told = is_after_option && tells_to_change(arguments[at - 1]) && !names_shell(arguments, at - 1);
    is_after_option && !is_told && (runs == Runs::Work || is_last && runs != Runs::Nothing)
}

fn is_script(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| SCRIPTS.contains(&ending))
}

/// Whether a program does something to files when another one runs it.
fn runs_anything(name: &str) -> bool {
    row(name).runs != Runs::Nothing
}

/// Parts of options that are followed by something to be run.
const RUNNING_OPTIONS: &[&str] = &["cmd", "command", "eval", "exec", "execute", "run", "script", "shell"];

/// Whether a word is one that asks for a change, or something that is run.
fn tells_to_change(word: &str) -> bool {
    if word.starts_with('-') {
        let parts = word.split(['-', '=']).any(|part| RUNNING_OPTIONS.contains(&part));
        // `-c`, `-e`, also after other letters.
        let is_code = !word.starts_with("--") && word.len() <= 4 && word.ends_with(['c', 'e']);
        return asks_to_write(word) || parts || is_code || matches!(word, "-i" | "-x");
    }
    if word.contains(char::is_whitespace) {
        let first = word.split_whitespace().next().unwrap_or_default();
        return word.contains(SHELL_SIGNS) || runs_anything(first);
    }
    runs_anything(word) || is_script(word) || (!word.contains(['/', '.', '@']) && says(word, CHANGES))
}

/// Words that ask for a change.
const CHANGES: &[&[&str]] = &[CHANGING, CHANGING_TASKS, PROJECT_CHANGING, CHANGING_WORDS];

/// Whether a name has one of some words.
fn says(name: &str, lists: &[&[&str]]) -> bool {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
    parts.into_iter().any(|part| lists.iter().any(|list| list.contains(&part.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&str> {
        line.split(' ').collect()
    }

    #[test]
    fn programs_that_are_told_what_to_work_on_leave_the_rest() {
        for line in [
            "ngrok http 3000",
            "tmux kill-session -t $209",
            "/tmp/tool probe --json",
            "vale docs",
            "/tmp/x print --shell bash",
            "x --shell zsh --error 1",
        ] {
            assert!(!may_change_anything(&words(line)), "{line}");
        }
        for line in [
            "codegen",
            "./gen",
            "bin/rails server",
            "tool.sh",
            "flock x bash fix.sh",
            "setsid python3 go.py",
            "tool apply list",
            "tool --fix",
            "tool -c x",
            "protoc-gen-go x",
            "claude -p hello",
            "script -qc 'x",
            "lint x.py",
            "nodemon --exec x",
            "tool --shell bash go.sh",
            "tool --shell bash -- x",
            "tool --shell x",
            "tool --exec bash",
        ] {
            assert!(may_change_anything(&words(line)), "{line}");
        }
        assert!(may_change_anything(&["watch2", "echo x > a.txt"]));
        assert!(may_change_anything(&["every", "make it"]));
    }

    #[test]
    fn programs_that_are_built_and_run_are_judged_by_their_own_words() {
        assert_eq!(built(&words("go run ./cmd/x list a.txt")), Some(vec!["x", "list", "a.txt"]));
        assert_eq!(built(&words("cargo run -p tool -- show")), Some(vec!["tool", "show"]));
        assert_eq!(built(&words("go run -exec sh ./x")), None);
        assert!(!may_change_anything(&built(&words("go run ./cmd/git-sync probe --json")).unwrap()));
        assert!(may_change_anything(&built(&words("go run ./tools/gen.go")).unwrap()));
        assert!(may_change_anything(&built(&words("go run . migrate")).unwrap()));
    }

    #[test]
    fn names_are_found_in_words() {
        assert_eq!(name_in("a.txt"), Some("a.txt"));
        assert_eq!(name_in("--out=a.txt"), Some("a.txt"));
        assert_eq!(name_in("-oa.txt"), Some("a.txt"));
        assert_eq!(name_in("if=a.txt"), Some("a.txt"));
        for word in ["-v", "3000", "127.0.0.1:80", "http://x/y", "two words", ""] {
            assert_eq!(name_in(word), None, "{word}");
        }
    }
}
