//! What a command does to files, put together from its parts.

use super::command_label;
use crate::observation::Observation;
use crate::shell::Simple;

/// What a command does to files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// What it changed, if it succeeded.
    pub(crate) changes: Vec<Observation>,
    /// What it could write, whether it succeeded or not.
    pub(crate) could_write: Vec<Observation>,
}

impl Effects {
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// It could write any file.
    pub(crate) fn any(command: &Simple) -> Self {
        let links = command.words.iter().any(|word| could_link(&word.text)).then_some(Observation::Linked);
        Self::could_write([Observation::could_write_any(command_label(command))].into_iter().chain(links).collect())
    }

    pub(super) fn changes(changes: Vec<Observation>) -> Self {
        Self { changes, ..Self::default() }
    }

    pub(super) fn could_write(could_write: Vec<Observation>) -> Self {
        Self { could_write, ..Self::default() }
    }

    /// The same for a command that may have failed, or may not have run at all.
    pub(crate) fn unproven(mut self, by: &str) -> Self {
        self.could_write.extend(self.changes.drain(..).flat_map(|change| change.unproven(by)));
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
