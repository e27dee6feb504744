//! What `git` does to the files of a work tree.

use super::copies::{Way, copied, removed};
use super::options::GIT_UNLESS;
use super::table::{ActionEffect, acts};
use super::{Effects, command_label, effects_in_any_order, everything, is_presumed, reach};
use crate::mentions::looks_like_file;
use crate::observation::Observation;
use crate::path::Directory;
use crate::shell::{Simple, Word, parse};

/// Options with which `git reset` leaves the work tree alone.
const KEEPS_TREE: [&str; 8] = ["--soft", "--mixed", "-q", "--quiet", "-N", "-p", "--patch", "--"];

/// Options of `git apply` with which it changes nothing if it is told to check.
const ONLY_CHECKS: [&str; 12] = [
    "--check",
    "--stat",
    "--numstat",
    "--summary",
    "--index",
    "--cached",
    "--recount",
    "-R",
    "--reverse",
    "-v",
    "--verbose",
    "-p1",
];

/// The action of a `git` command and its arguments, and whether it runs in the directory of the command.
pub(crate) fn action(command: &Simple) -> Option<(&str, &[Word], bool)> {
    let mut words = command.arguments();
    let mut is_here = true;
    loop {
        match words {
            [first, rest @ ..] if matches!(first.plain()?, "--no-pager" | "-P") => words = rest,
            [first, _, rest @ ..] if first.plain()? == "-C" => {
                is_here = false;
                words = rest;
            }
            [first, setting, rest @ ..] if first.plain()? == "-c" && is_harmless(setting.plain()?) => words = rest,
            [first, ..] if first.plain()?.starts_with('-') => return None,
            [first, rest @ ..] => return Some((first.plain()?, rest, is_here)),
            [] => return None,
        }
    }
}

/// Whether a setting given for one command only changes what it prints; other settings may name programs to run.
fn is_harmless(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    let plain = ["color.", "advice.", "user.name=", "user.email=", "core.quotepath=", "log.", "commit.gpgsign=false"];
    plain.iter().any(|start| setting.starts_with(start)) || setting == "core.pager=cat"
}

/// Returns which files a word may name that git itself may expand as a pattern.
fn reach_spec(word: &Word, directory: &Directory, by: &str) -> Observation {
    match word.plain() {
        Some(text) if !text.contains(['*', '?', '[', '\\']) && !text.starts_with(':') => reach(word, directory, by),
        _ => everything(by.to_owned()),
    }
}

pub(super) fn effects(command: &Simple, directory: &Directory) -> Effects {
    let all = || Effects::all(command);
    if matches!(command.plain_arguments().as_deref(), Some(["--version" | "--help" | "--exec-path"])) {
        return Effects::none();
    }
    let Some((action, rest, is_here)) = action(command) else { return all() };
    let lost = Directory::Lost;
    let directory = if is_here { directory } else { &lost };
    if acts(&["git", action], ActionEffect::Reads) {
        // Options may be abbreviated as long as they are unambiguous.
        let is_short = |option: &str, text: &str| text.len() > 3 && text.starts_with("--") && option.starts_with(text);
        let name = |word: &Word| word.text.split('=').next().unwrap_or_default().to_owned();
        let writes = |word: &Word| {
            GIT_UNLESS.iter().any(|option| word.text.starts_with(option) || is_short(option, &name(word)))
        };
        // What a word becomes may be an option, or several words.
        let is_hidden =
            |word: &Word| word.plain().is_none() && word.text.starts_with(['-', '$', '`', '{', '*', '?', '[']);
        let mut options = rest.iter().take_while(|word| word.plain() != Some("--"));
        return if options.any(|word| writes(word) || is_hidden(word)) { all() } else { Effects::none() };
    }
    // Settings may be stored in any file.
    if action == "config" && rest.iter().any(|word| word.text.starts_with("-f") || word.text.starts_with("--f")) {
        return all();
    }
    let Some(words) = rest.iter().map(Word::plain).collect::<Option<Vec<_>>>() else {
        // For these actions, a word that is not plain is a message, a name, or a file to be added.
        let is_kept = action == "stash" && matches!(rest[0].plain(), Some("drop" | "list" | "show"));
        let is_safe = is_kept || matches!(action, "commit" | "add" | "push" | "fetch" | "tag" | "branch" | "config");
        return if is_safe { Effects::presumed() } else { all() };
    };
    match (action, words.as_slice()) {
        ("checkout", ["-b", name] | ["-q", "-b", name] | ["-b", name, "-q" | "HEAD"])
        | ("switch", ["-c" | "--create", name] | ["-q", "-c", name] | ["-c", name, "-q"])
            if !name.starts_with('-') =>
        {
            Effects::none()
        }
        ("clone", words) => cloned(command, words, directory),
        ("filter-branch", words) => told_anew(command, words, directory),
        ("stash", ["push" | "save", ..]) => stashed(command, &words, rest, directory),
        ("checkout" | "restore", words) => restored(command, action, words, rest, directory),
        ("rm", words) if words.contains(&"--cached") => Effects::presumed(),
        ("rm", words) if words.iter().all(|word| !word.contains(['*', '?', '[', '\\']) && !word.starts_with(':')) => {
            removed(command, rest, directory)
        }
        ("mv", _) => copied(command, rest, directory, Way::Move),
        ("apply", words)
            if (words.contains(&"--check") || words.contains(&"--stat"))
                && words.iter().all(|word| !word.starts_with('-') || ONLY_CHECKS.contains(word)) =>
        {
            Effects::none()
        }
        ("reset", words) if words.iter().all(|word| !word.starts_with('-') || KEEPS_TREE.contains(word)) => {
            Effects::presumed()
        }
        (action, words) if is_apart(action, words) => Effects::none(),
        (action, words) => {
            let line: Vec<&str> = ["git", action].into_iter().chain(words.iter().copied()).collect();
            if is_presumed(&line) { Effects::presumed() } else { all() }
        }
    }
}

/// Filters of `filter-branch` that change what commits say, and no file of any.
const OF_MESSAGES: [&str; 2] = ["--msg-filter", "--tag-name-filter"];

/// What `filter-branch` changes: nothing if it only rewrites messages, and what does that changes nothing itself.
fn told_anew(command: &Simple, words: &[&str], directory: &Directory) -> Effects {
    let mut words = words.iter();
    let mut is_of_messages = false;
    while let Some(word) = words.next() {
        match *word {
            "-f" | "--force" | "--" => {}
            option if OF_MESSAGES.contains(&option) => {
                let filter = words.next().and_then(|line| parse(line));
                if filter.is_none_or(|script| effects_in_any_order(&script, directory) != Effects::none()) {
                    return Effects::all(command);
                }
                is_of_messages = true;
            }
            // Revisions; whatever else it is told may change files.
            option if option.starts_with('-') && option != "--all" => return Effects::all(command),
            _ => {}
        }
    }
    if is_of_messages { Effects::presumed() } else { Effects::all(command) }
}

/// What `clone` makes: a directory that was empty or was not there.
fn cloned(command: &Simple, words: &[&str], directory: &Directory) -> Effects {
    let writes = |word: &&str| GIT_UNLESS.iter().any(|option| word.starts_with(option)) || word.starts_with("-c");
    if words.iter().any(writes) {
        return Effects::all(command);
    }
    let by = command_label(command);
    let last =
        |word: &str| word.trim_end_matches('/').trim_end_matches(".git").rsplit(['/', ':']).next().map(str::to_owned);
    let named = words.iter().filter(|word| !word.starts_with('-'));
    let places = named.flat_map(|word| [Some((*word).to_owned()).filter(|word| !word.contains("://")), last(word)]);
    let swept = |name: String| Observation::Swept {
        under: directory.place_somewhere(&name),
        extensions: Vec::new(),
        by: by.clone(),
    };
    let doubts = places.flatten().filter(|name| !name.is_empty()).map(swept).collect();
    Effects { doubts, ..Effects::presumed() }
}

/// Whether an action changes nothing but the repository, and is given no option that writes a file or runs a program.
fn is_apart(action: &str, words: &[&str]) -> bool {
    let line: Vec<&str> = ["git", action].into_iter().chain(words.iter().copied()).collect();
    let writes = |word: &&str| GIT_UNLESS.iter().any(|option| word.starts_with(option)) || word.starts_with("--e");
    acts(&line, ActionEffect::ChangesRepository) && !words.iter().any(writes)
}

/// What `stash push -- FILES` changes.
fn stashed(command: &Simple, words: &[&str], rest: &[Word], directory: &Directory) -> Effects {
    let Some(start) = words.iter().position(|word| *word == "--").map(|at| at + 1) else {
        return Effects::all(command);
    };
    let by = command_label(command);
    let doubts: Vec<Observation> = rest[start..].iter().map(|word| reach_spec(word, directory, &by)).collect();
    if doubts.is_empty() { Effects::all(command) } else { Effects { doubts, ..Effects::default() } }
}

/// What `checkout FILES` and `checkout COMMIT FILES` change. A branch that is named like a file is not thought of, so all
/// else is presumed to stay.
fn checked_out(command: &Simple, words: &[&str], rest: &[Word], directory: &Directory) -> Effects {
    let is_file =
        |word: &&str| looks_like_file(word) && !word.starts_with('-') && !word.ends_with(|c: char| c.is_ascii_digit());
    let files = words.iter().rev().take_while(|word| is_file(word)).count();
    let is_commit = |word: &&str| !word.starts_with('-');
    let start = words.len() - files;
    if files == 0 || start > 1 || !words[..start].iter().all(is_commit) {
        return Effects::all(command);
    }
    let by = command_label(command);
    let doubts = rest[start..].iter().map(|word| reach_spec(word, directory, &by)).collect();
    Effects { doubts, ..Effects::presumed() }
}

/// What `checkout -- FILES` and `restore FILES` change.
fn restored(command: &Simple, action: &str, words: &[&str], rest: &[Word], directory: &Directory) -> Effects {
    let is_staged = words.iter().any(|word| matches!(*word, "--staged" | "-S"));
    // Options may be abbreviated and grouped, so all of them must be known.
    let is_plain = |word: &&str| !word.starts_with('-') || matches!(*word, "--staged" | "-S" | "-q" | "--quiet" | "--");
    if action == "restore" && is_staged && words.iter().all(is_plain) {
        return Effects::presumed();
    }
    let start = match words.iter().position(|word| *word == "--") {
        Some(at) => at + 1,
        None if action == "restore" && words.iter().all(|word| !word.starts_with('-')) => 0,
        // Of these, only files can be chosen.
        None if matches!(words, ["--ours" | "--theirs", _, ..]) => 1,
        None => return checked_out(command, words, rest, directory),
    };
    let by = command_label(command);
    let doubts: Vec<Observation> = rest[start..].iter().map(|word| reach_spec(word, directory, &by)).collect();
    if doubts.is_empty() { Effects::all(command) } else { Effects { doubts, ..Effects::default() } }
}
