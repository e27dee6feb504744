//! What a command does to files, put together from its parts.

use super::{command_label, everything};
use crate::observation::Observation;
use crate::shell::Simple;

/// What a command does to files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// What it changed, if it succeeded.
    pub(crate) changes: Vec<Observation>,
    /// What it may have changed, whether it succeeded or not.
    pub(crate) doubts: Vec<Observation>,
    /// Whether it is only presumed to leave other files alone.
    pub(crate) is_presumed: bool,
    /// Whether no table has the program, so that this follows from its words alone.
    pub(crate) is_guess: bool,
}

impl Effects {
    pub(crate) fn none() -> Self {
        Self::default()
    }

    pub(crate) fn presumed() -> Self {
        Self { is_presumed: true, ..Self::default() }
    }

    pub(crate) fn all(command: &Simple) -> Self {
        let links = command.words.iter().filter_map(|word| may_link(&word.text)).chain(copies_as_links(command));
        Self {
            doubts: [everything(command_label(command))].into_iter().chain(links.take(1)).collect(),
            ..Self::default()
        }
    }

    pub(super) fn changes(changes: Vec<Observation>) -> Self {
        Self { changes, ..Self::default() }
    }

    pub(super) fn doubts(doubts: Vec<Observation>) -> Self {
        Self { doubts, ..Self::default() }
    }

    /// The same for a command that may have failed, or may not have run at all.
    pub(crate) fn unproven(mut self, by: &str) -> Self {
        let swept =
            |path: &str| Observation::Swept { under: Some(path.to_owned()), extensions: vec![], by: by.to_owned() };
        for change in self.changes.drain(..) {
            match change {
                Observation::Swept { .. } | Observation::Doubted { .. } => self.doubts.push(change),
                Observation::Formatted { under, extensions, formatter, is_local, by, .. } => {
                    let is_proven = false;
                    self.doubts.push(Observation::Formatted { under, extensions, formatter, is_local, is_proven, by });
                }
                // What is written is a file.
                Observation::Write { path, .. }
                | Observation::Append { path, .. }
                | Observation::Changed { path, .. }
                | Observation::Rewrite { path, .. } => {
                    self.doubts.push(Observation::Doubted { path, by: by.to_owned() });
                }
                change => self.doubts.extend(change.paths().into_iter().map(swept)),
            }
        }
        self
    }

    pub(super) fn and(mut self, other: Effects) -> Self {
        self.changes.extend(other.changes);
        self.doubts.extend(other.doubts);
        self.is_presumed |= other.is_presumed;
        self.is_guess |= other.is_guess;
        self
    }
}

/// Any two files may be one from now on.
pub(crate) fn any_link() -> Observation {
    Observation::Linked { from: String::new(), to: String::new() }
}

/// Words of programs, in several languages, with which a link is made.
const LINKING: [&str; 9] =
    ["ln", "link", "symlink", "linkSync", "symlinkSync", "symlink_to", "hardlink_to", "link_to", "hard_link"];

/// A link that a text may make that is not understood.
pub(crate) fn may_link(text: &str) -> Option<Observation> {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c));
    // `link.txt` is a file, and `os.link(…)` is not.
    let words: Vec<&str> = text.split(|c: char| is_end(c) && c != '.').collect();
    let last = |word: &&&str| word.rsplit('.').next().is_some_and(|name| LINKING.contains(&name));
    let is_copy = words.contains(&"cp") && words.iter().any(|word| makes_links(word));
    (is_copy || words.iter().any(|word| last(&word))).then(any_link)
}

/// Whether an option of `cp` makes links instead of copies.
pub(super) fn makes_links(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(name) => name.starts_with('l') || name.starts_with('s'),
        None => option.starts_with('-') && option.contains(['l', 's']),
    }
}

/// A link that `cp` may make when another program runs it.
fn copies_as_links(command: &Simple) -> Option<Observation> {
    let is_copy = command.arguments().iter().any(|word| word.text == "cp" || word.text.ends_with("/cp"));
    (is_copy && command.words.iter().any(|word| makes_links(&word.text))).then(any_link)
}
