//! What `git` does to the files of a work tree.

use super::copies::{Way, copied, removed};
use super::table::row;
use super::{Effects, changed, command_label};
use crate::mentions::looks_like_file;
use crate::observation::Observation;
use crate::path::Directory;
use crate::shell::{Simple, Word};

/// Options with which an action that reads writes a file or runs another program.
const UNLESS: [&str; 7] =
    ["--output", "--ext-diff", "--textconv", "-O", "--open-files-in-pager", "--upload-pack", "--exec"];

/// The action of a `git` command and its arguments, and whether it runs in the directory of the command.
fn action(command: &Simple) -> Option<(&str, &[Word], bool)> {
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
    let plain = ["color.", "advice.", "core.quotepath=", "log."];
    plain.iter().any(|start| setting.starts_with(start)) || setting == "core.pager=cat"
}

pub(super) fn effects(command: &Simple, directory: &Directory) -> Effects {
    let Some((action, rest, is_here)) = action(command) else { return Effects::any(command) };
    let directory = if is_here { directory } else { &Directory::Lost };
    if reads(action, rest) {
        return Effects::none();
    }
    let is_spec =
        |word: &Word| word.plain().is_none_or(|text| text.contains(['*', '?', '[', '\\']) || text.starts_with(':'));
    if rest.iter().any(is_spec) {
        return Effects::any(command);
    }
    match action {
        "rm" => removed(command, rest, directory),
        "mv" => copied(command, rest, directory, Way::Move),
        "checkout" | "restore" => restored(command, action, rest, directory),
        _ => Effects::any(command),
    }
}

/// Whether an action changes no file of the work tree, with its arguments.
fn reads(action: &str, rest: &[Word]) -> bool {
    let with = rest.first().map(|word| format!("{action} {}", word.text));
    let is_listed = row("git").reading.iter().any(|known| *known == action || Some(*known) == with.as_deref());
    // Options may be abbreviated as long as they are unambiguous.
    let name = |word: &Word| word.text.split('=').next().unwrap_or_default().to_owned();
    let is_short = |option: &str, text: &str| text.len() > 3 && text.starts_with("--") && option.starts_with(text);
    let writes =
        |word: &Word| UNLESS.iter().any(|option| word.text.starts_with(option) || is_short(option, &name(word)));
    // What a word becomes may be an option, or several words.
    let is_hidden = |word: &Word| word.plain().is_none() && word.text.starts_with(['-', '$', '`', '{', '*', '?', '[']);
    let mut options = rest.iter().take_while(|word| word.plain() != Some("--"));
    is_listed && !options.any(|word| writes(word) || is_hidden(word))
}

/// What `checkout -- FILES` and `restore FILES` change.
fn restored(command: &Simple, action: &str, rest: &[Word], directory: &Directory) -> Effects {
    let start = match rest.iter().position(|word| word.text == "--") {
        Some(at) => at + 1,
        None if action == "restore" && rest.iter().all(|word| !word.text.starts_with('-')) => 0,
        None => return Effects::any(command),
    };
    let by = command_label(command);
    let one = |word: &Word| match looks_like_file(&word.text) {
        true => changed(word, directory, &by),
        // It may be a directory.
        false => Observation::could_write(by.clone()),
    };
    let changes: Vec<Observation> = rest[start..].iter().map(one).collect();
    if changes.is_empty() { Effects::any(command) } else { Effects::changes(changes) }
}
