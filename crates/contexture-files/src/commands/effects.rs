//! What a command does to files, put together from its parts.

use super::command_label;
use crate::observation::Observation;
use crate::shell::Simple;

/// What a command does to files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// What it changed, if it succeeded.
    pub(crate) changes: Vec<Observation>,
    /// What it did whether it succeeded or not.
    pub(crate) could_write: Vec<Observation>,
}

impl Effects {
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// It could write any file.
    pub(crate) fn any(command: &Simple) -> Self {
        let links = command.words.iter().any(|word| could_link(&word.text));
        if links { Self::links(command) } else { Self::could_write(command) }
    }

    /// It could write any file, and make no link.
    pub(super) fn could_write(command: &Simple) -> Self {
        Self { could_write: vec![Observation::could_write(command_label(command))], ..Self::default() }
    }

    /// It could write any file, and make links.
    pub(super) fn links(command: &Simple) -> Self {
        let mut effects = Self::could_write(command);
        effects.could_write.push(Observation::Linked);
        effects
    }

    pub(super) fn changes(changes: Vec<Observation>) -> Self {
        Self { changes, ..Self::default() }
    }

    /// The same for a command that may have failed, or may not have run at all.
    pub(crate) fn unproven(mut self, by: &str) -> Self {
        if !self.changes.is_empty() {
            self.changes.clear();
            self.could_write.push(Observation::could_write(by.to_owned()));
        }
        self
    }

    pub(super) fn and(mut self, other: Effects) -> Self {
        self.changes.extend(other.changes);
        self.could_write.extend(other.could_write);
        self
    }
}

/// Whether a text that is not understood may make a link.
pub(crate) fn could_link(text: &str) -> bool {
    let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)));
    words.any(|word| word == "ln" || word.contains("link"))
}
