//! What a tool call tells about files.

use super::numbering::Passage;
use super::patch::Hunk;

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
    /// Lines were shown that may be the file's: of a commit, among those of other files, or in another form. Nothing
    /// is learnt from them; known lines that they repeat count as seen again.
    Old {
        /// The file as written.
        path: String,
        /// Runs of consecutive lines.
        blocks: Vec<Passage>,
    },
    /// Lines were printed among which those of some files may be, nobody can say which or in which form.
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
        /// What stands there now.
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
    /// Every line of the file was looked at and some were replaced or removed.
    Rewrite {
        /// The file as written.
        path: String,
        /// What was done to each line, in order.
        changes: Vec<LineChange>,
        /// The command that did it, in short.
        by: String,
    },
    /// The file exists: an empty one was made, unless there was one already.
    Made {
        /// The file as written.
        path: String,
    },
    /// From now on both names may lead to one file or directory.
    Linked {
        /// What the link leads to.
        from: String,
        /// The link.
        to: String,
    },
    /// A command ran that is only presumed not to change sources.
    Presumed {
        /// The command, in short.
        by: String,
    },
    /// The file changed and nobody can say how.
    Changed {
        /// The file as written.
        path: String,
        /// The command that did it, in short.
        by: String,
    },
    /// Any of the files may have changed.
    Swept {
        /// The directory or file, as written; every file if there is none.
        under: Option<String>,
        /// The extensions of the files; all if it is empty.
        extensions: Vec<String>,
        /// The command that did it, in short.
        by: String,
    },
    /// The file has the text of another one now.
    Copy {
        /// The other file.
        from: String,
        /// The file as written.
        to: String,
        /// Whether it may name a directory that the copy is put into.
        into: bool,
    },
    /// The file is gone.
    Delete {
        /// The file as written.
        path: String,
    },
    /// An output named the file, and maybe a line of it. It shows nothing of it.
    Mentioned {
        /// The file as written.
        path: String,
        /// The line.
        line: Option<usize>,
    },
    /// The file has another name, or is in the directory of that name.
    Move {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
    },
}

/// What is done to each line of a file. Lines are numbered as they were before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineChange {
    /// A piece of text is replaced.
    Substitute {
        /// The first and the last line, if not all.
        lines: Option<(usize, usize)>,
        /// The piece.
        old: String,
        /// What stands there now.
        new: String,
        /// Whether every such piece of a line is replaced, or the first one only.
        all: bool,
    },
    /// Lines are removed.
    Delete {
        /// The first of them.
        first: usize,
        /// The last of them.
        last: usize,
    },
    /// Lines that hold a text are removed.
    DeleteMatching {
        /// The text.
        text: String,
    },
}

impl Observation {
    /// The files it is about, as written.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Observation::Move { from, to } | Observation::Copy { from, to, .. } | Observation::Linked { from, to } => {
                vec![from, to]
            }
            Observation::Swept { .. } | Observation::Presumed { .. } => Vec::new(),
            Observation::Printed { paths, .. } => paths.iter().map(String::as_str).collect(),
            Observation::Read { path, .. }
            | Observation::Found { path, .. }
            | Observation::Old { path, .. }
            | Observation::Rewrite { path, .. }
            | Observation::Made { path }
            | Observation::Write { path, .. }
            | Observation::Append { path, .. }
            | Observation::Edit { path, .. }
            | Observation::Insert { path, .. }
            | Observation::Patch { path, .. }
            | Observation::Changed { path, .. }
            | Observation::Mentioned { path, .. }
            | Observation::Delete { path } => vec![path],
        }
    }

    /// The same with its paths seen from a directory; `None` if one of them cannot be.
    pub(crate) fn placed(mut self, place: &dyn Fn(&str) -> Option<String>) -> Option<Observation> {
        match &mut self {
            Observation::Move { from, to } | Observation::Copy { from, to, .. } | Observation::Linked { from, to } => {
                (*from, *to) = (place(from)?, place(to)?);
            }
            Observation::Swept { under: Some(path), .. }
            | Observation::Read { path, .. }
            | Observation::Found { path, .. }
            | Observation::Old { path, .. }
            | Observation::Rewrite { path, .. }
            | Observation::Made { path }
            | Observation::Write { path, .. }
            | Observation::Append { path, .. }
            | Observation::Edit { path, .. }
            | Observation::Insert { path, .. }
            | Observation::Patch { path, .. }
            | Observation::Changed { path, .. }
            | Observation::Mentioned { path, .. }
            | Observation::Delete { path } => *path = place(path)?,
            Observation::Printed { paths, .. } => {
                for path in paths {
                    *path = place(path)?;
                }
            }
            Observation::Swept { under: None, .. } | Observation::Presumed { .. } => {}
        }
        Some(self)
    }

    /// Whether it changes a file.
    pub fn is_change(&self) -> bool {
        !matches!(
            self,
            Observation::Read { .. }
                | Observation::Found { .. }
                | Observation::Old { .. }
                | Observation::Printed { .. }
                | Observation::Presumed { .. }
                | Observation::Linked { .. }
                | Observation::Mentioned { .. }
        )
    }
}

/// What kind of call it was, as truncation priorities and the ledger need it.
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
    /// Anything else.
    Other,
}

/// A finished call, looked into.
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
