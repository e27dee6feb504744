//! What `git` prints of files, and what it does to them.

use super::super::dialect::observe_patch;
use super::super::mentions::looks_like_file;
use super::super::observation::Observation;
use super::super::shell::Command;
use super::changes::{Scope, moved, removed};
use super::prints::is_path;
use super::{Printed, Prints, Version};

/// The action of a `git` command and what stands behind it; options before the action are skipped.
fn action(arguments: &[String]) -> Option<(&str, Vec<&str>)> {
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "-C" | "-c" | "--git-dir" | "--work-tree" => {
                words.next();
            }
            option if option.starts_with('-') => {}
            action => return Some((action, words.collect())),
        }
    }
    None
}

/// What a `git` command prints.
pub(super) fn prints(arguments: &[String], place: &dyn Fn(&str) -> String) -> Prints {
    let Some((action, rest)) = action(arguments) else { return Prints::Anything };
    let operands: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with('-')).collect();
    match (action, operands.as_slice()) {
        // A file at a revision is another file, and its name says so.
        ("show", [object, ..]) if object.contains(':') => Prints::File(Printed::whole((*object).to_owned())),
        ("show" | "log" | "stash", _) => Prints::Diff(Version::Other),
        ("diff", _) => Prints::Diff(diff_version(&rest)),
        ("blame" | "annotate", [path]) => Prints::Blame(place(path), Version::Current),
        ("blame" | "annotate", [.., path]) if is_range(&rest, &operands) => {
            Prints::Blame(place(path), Version::Current)
        }
        ("blame" | "annotate", [.., path]) => Prints::Blame(place(path), Version::Other),
        ("grep", _) => Prints::Matches(None),
        ("add" | "checkout" | "mv" | "rm" | "switch" | "restore", _) => Prints::Nothing,
        _ => Prints::Anything,
    }
}

/// Whether the operands of `blame` are only the value of `-L` and a path.
fn is_range(rest: &[&str], operands: &[&str]) -> bool {
    operands.len() == 2
        && rest.iter().position(|word| *word == "-L").is_some_and(|at| rest.get(at + 1) == operands.first())
}

/// What the new side of a `git diff` is: the working tree, unless two revisions, the index or another order are
/// asked for.
fn diff_version(rest: &[&str]) -> Version {
    let others = ["--cached", "--staged", "-R", "--no-index", "--merge-base"];
    let before_paths = rest.iter().take_while(|word| **word != "--");
    let revisions = before_paths.filter(|word| !word.starts_with('-') && !looks_like_file(word)).count();
    let is_range = rest.iter().any(|word| word.contains("..") && !word.contains("../"));
    let is_other = is_range || revisions > 1 || rest.iter().any(|word| others.contains(word));
    if is_other { Version::Other } else { Version::Current }
}

/// Remarks of `git` that say that it left the working tree alone.
const UNCHANGED: [&str; 3] = ["Already up to date", "Already on ", "No local changes to save"];

/// The files that a `git` command changes.
pub(super) fn changes(command: &Command, scope: &Scope<'_>, output: &str) -> Vec<Observation> {
    let Some((action, rest)) = action(command.arguments()) else { return Vec::new() };
    let operands: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let has = |options: &[&str]| rest.iter().any(|word| options.contains(word));
    match action {
        "apply" | "am" if has(&["--check", "--stat"]) => Vec::new(),
        "apply" => match command.input.as_deref() {
            Some(text) => observe_patch(text, None),
            None => vec![scope.swept(command)],
        },
        "mv" => moved(&operands, scope),
        "rm" if has(&["--cached"]) => Vec::new(),
        "rm" => removed(&operands, scope),
        "checkout" | "switch" if has(&["-b", "-B", "-c", "-C", "--orphan"]) => Vec::new(),
        "restore" if has(&["--staged", "-S"]) && !has(&["--worktree", "-W"]) => Vec::new(),
        "checkout" | "restore" => checked_out(command, &rest, scope, output),
        "stash" if matches!(operands.first(), Some(&("list" | "show" | "drop" | "clear" | "create"))) => Vec::new(),
        "reset" if !has(&["--hard", "--merge", "--keep"]) => Vec::new(),
        "switch" | "stash" | "reset" | "merge" | "rebase" | "pull" | "cherry-pick" | "revert" | "am" => {
            let is_same = UNCHANGED.iter().any(|remark| output.contains(remark));
            if is_same { Vec::new() } else { vec![scope.swept(command)] }
        }
        _ => Vec::new(),
    }
}

/// What `checkout` and `restore` change: the paths named, or everything for a branch.
fn checked_out(command: &Command, rest: &[&str], scope: &Scope<'_>, output: &str) -> Vec<Observation> {
    let behind = rest.iter().position(|word| *word == "--").map(|at| &rest[at + 1..]);
    let named = behind.unwrap_or(rest).iter().copied().filter(|word| !word.starts_with('-'));
    let paths: Vec<&str> =
        named.filter(|word| behind.is_some() || looks_like_file(word) || word.ends_with('/')).collect();
    if paths.is_empty() {
        let is_same = UNCHANGED.iter().any(|remark| output.contains(remark));
        return if is_same { Vec::new() } else { vec![scope.swept(command)] };
    }
    let one = |path: &str| match looks_like_file(path) && is_path(&path) {
        true => scope.changed(command, path),
        false => scope.swept_under(command, path, &[]),
    };
    paths.into_iter().map(one).collect()
}
