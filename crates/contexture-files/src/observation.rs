//! What a tool call tells about files.

use super::numbering::Passage;
use super::patch::Hunk;

/// Who did something to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The agent whose conversation this is.
    Agent,
    /// The user.
    User,
    /// Someone else: another program, another person.
    Other,
}

/// One thing that a finished tool call tells about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// Lines of the file were shown.
    Read {
        /// The file as written.
        path: String,
        /// The lines.
        block: Passage,
        /// Whether they are the whole file.
        whole: bool,
    },
    /// Lines were printed that may include lines of some files; it is unknown which, or in which form.
    Printed {
        /// The files as written.
        paths: Vec<String>,
        /// The lines.
        block: Passage,
    },
    /// Single lines of the file were shown by a search.
    Found {
        /// The file as written.
        path: String,
        /// Runs of consecutive lines.
        blocks: Vec<Passage>,
    },
    /// The file has this text now.
    Write {
        /// The file as written.
        path: String,
        /// The text.
        text: String,
    },
    /// This text was added to the file's end.
    Append {
        /// The file as written.
        path: String,
        /// The text.
        text: String,
    },
    /// A piece of text was replaced.
    Edit {
        /// The file as written.
        path: String,
        /// The piece.
        old: String,
        /// What replaced it.
        new: String,
        /// Whether every such piece was replaced.
        all: bool,
        /// Whether the line feed after a piece that was removed may be gone too.
        takes_feed: bool,
    },
    /// Lines were put in after a line; 0 is the start.
    Insert {
        /// The file as written.
        path: String,
        /// The line before them.
        after: usize,
        /// The lines.
        text: String,
    },
    /// Runs of lines were replaced.
    Patch {
        /// The file as written.
        path: String,
        /// The replacements.
        hunks: Vec<Hunk>,
    },
    /// The file exists: it was created empty, unless it existed already.
    Made {
        /// The file as written.
        path: String,
    },
    /// From now on two names may refer to the same file or directory.
    Linked,
    /// The file certainly changed, in a way that cannot be followed.
    Changed {
        /// The file as written.
        path: String,
        /// The call or the person that did it, in short.
        by: String,
        /// Who that is.
        who: Who,
    },
    /// A call ran that could write files.
    CouldWrite {
        /// The only file or directory that it could write; `None` for any.
        path: Option<String>,
        /// The call, in short.
        by: String,
    },
    /// The file now has the text of another one.
    Copy {
        /// The other file.
        from: String,
        /// The file as written.
        to: String,
        /// Whether `to` may be a directory that the copy is put into.
        into: bool,
    },
    /// The file is gone.
    Delete {
        /// The file as written.
        path: String,
    },
    /// A tool says that the file is not there.
    Absent {
        /// The file as written.
        path: String,
    },
    /// A tool says how many lines the file has.
    Length {
        /// The file as written.
        path: String,
        /// The number of its lines.
        lines: usize,
    },
    /// An output named the file, and maybe a line of it, but showed none of its text.
    Mentioned {
        /// The file as written.
        path: String,
        /// The line.
        line: Option<usize>,
    },
    /// The file was renamed, or moved into the directory of that name.
    Move {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
    },
}

impl Observation {
    /// The files that it is about, as written.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Observation::Move { from, to } | Observation::Copy { from, to, .. } => vec![from, to],
            Observation::Linked | Observation::CouldWrite { .. } => Vec::new(),
            Observation::Printed { paths, .. } => paths.iter().map(String::as_str).collect(),
            Observation::Read { path, .. }
            | Observation::Found { path, .. }
            | Observation::Made { path }
            | Observation::Write { path, .. }
            | Observation::Append { path, .. }
            | Observation::Edit { path, .. }
            | Observation::Insert { path, .. }
            | Observation::Patch { path, .. }
            | Observation::Changed { path, .. }
            | Observation::Mentioned { path, .. }
            | Observation::Absent { path }
            | Observation::Length { path, .. }
            | Observation::Delete { path } => vec![path],
        }
    }

    /// The same with its paths resolved from a directory; `None` if one of them cannot be resolved.
    pub(crate) fn placed(mut self, place: &dyn Fn(&str) -> Option<String>) -> Option<Observation> {
        match &mut self {
            Observation::Move { from, to } | Observation::Copy { from, to, .. } => {
                (*from, *to) = (place(from)?, place(to)?);
            }
            Observation::CouldWrite { path: Some(path), .. }
            | Observation::Read { path, .. }
            | Observation::Found { path, .. }
            | Observation::Made { path }
            | Observation::Write { path, .. }
            | Observation::Append { path, .. }
            | Observation::Edit { path, .. }
            | Observation::Insert { path, .. }
            | Observation::Patch { path, .. }
            | Observation::Changed { path, .. }
            | Observation::Mentioned { path, .. }
            | Observation::Absent { path }
            | Observation::Length { path, .. }
            | Observation::Delete { path } => *path = place(path)?,
            Observation::Printed { paths, .. } => {
                for path in paths {
                    *path = place(path)?;
                }
            }
            Observation::Linked | Observation::CouldWrite { path: None, .. } => {}
        }
        Some(self)
    }

    /// Whether it changes a file, or says that something could.
    pub fn is_change(&self) -> bool {
        !matches!(
            self,
            Observation::Read { .. }
                | Observation::Found { .. }
                | Observation::Printed { .. }
                | Observation::Absent { .. }
                | Observation::Length { .. }
                | Observation::Mentioned { .. }
        )
    }

    /// Any file could have been written.
    pub(crate) fn could_write(by: String) -> Self {
        Self::CouldWrite { path: None, by }
    }

    /// The same for a change that may not have been made.
    pub(crate) fn unproven(self, by: &str) -> Self {
        match self {
            Self::CouldWrite { .. } | Self::Linked => self,
            _ => Self::could_write(by.to_owned()),
        }
    }
}

/// The kind of a call, for truncation priorities and the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Shows a file.
    Read,
    /// Makes or replaces a file.
    Write,
    /// Changes a part of a file.
    Edit,
    /// Searches or lists.
    Search,
    /// Runs a command.
    Run,
    /// Returns what a person or another agent said.
    Answer,
    /// Anything else.
    Other,
}

/// A finished call and what it tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What kind of call it was.
    pub kind: Kind,
    /// The files that it is about, as written.
    pub paths: Vec<String>,
    /// The command line, if it ran one.
    pub command: Option<String>,
    /// What it tells about files; empty if it failed.
    pub observations: Vec<Observation>,
    /// Whether the tool said that it failed.
    pub failed: bool,
    /// Whether its output may show files, without telling which lines are whose.
    pub is_mixed: bool,
}

impl Seen {
    /// The lines of files that it showed.
    pub fn blocks(&self) -> Vec<&Passage> {
        let blocks = self.observations.iter().filter_map(|observation| match observation {
            Observation::Read { block, .. } => Some(block),
            _ => None,
        });
        blocks.collect()
    }
}
