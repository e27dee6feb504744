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
    /// Lines were shown that may be the file's: of a commit, mixed with those of other files, or in another form.
    /// Nothing is learnt from them, but known lines that they repeat count as seen again.
    Old {
        /// The file as written.
        path: String,
        /// Runs of consecutive lines.
        blocks: Vec<Passage>,
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
    /// Every line of the file was looked at and some were replaced or removed.
    Rewrite {
        /// The file as written.
        path: String,
        /// What was done to each line, in order.
        changes: Vec<LineChange>,
        /// The command that did it, in short.
        by: String,
    },
    /// The file exists: it was created empty, unless it existed already.
    Made {
        /// The file as written.
        path: String,
    },
    /// From now on both names may refer to the same file or directory.
    Linked {
        /// The target of the link.
        from: String,
        /// The link.
        to: String,
    },
    /// A command ran that is presumed, but not known, not to change sources.
    Presumed {
        /// The command, in short.
        by: String,
    },
    /// The file changed in an unknown way.
    Changed {
        /// The file as written.
        path: String,
        /// The command that did it, in short.
        by: String,
    },
    /// This file may have changed, and is no directory.
    Doubted {
        /// The file as written.
        path: String,
        /// The call that may have done it, in short.
        by: String,
    },
    /// Any of the files may have changed.
    Swept {
        /// The directory or file, as written; `None` for every file.
        under: Option<String>,
        /// The extensions of the files; all if it is empty.
        extensions: Vec<String>,
        /// The command that did it, in short.
        by: String,
    },
    /// A formatter ran: what it had formatted before stays.
    Formatted {
        /// The directory or file, as written; `None` for every file.
        under: Option<String>,
        /// The extensions of the files; all if it is empty.
        extensions: Vec<String>,
        /// The formatter, by a name that is the same for all ways to start it.
        formatter: String,
        /// Whether what it changes is near to what it dislikes.
        is_local: bool,
        /// Whether it certainly ran and succeeded.
        is_proven: bool,
        /// The command that did it, in short.
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

/// A change to the lines of a file. Lines are numbered as they were before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineChange {
    /// A piece of text is replaced.
    Substitute {
        /// The first and the last line, if not all.
        lines: Option<(usize, usize)>,
        /// The piece.
        old: String,
        /// What replaces it.
        new: String,
        /// Whether every occurrence in a line is replaced, or only the first.
        all: bool,
    },
    /// Lines are removed.
    Delete {
        /// The first of them.
        first: usize,
        /// The last of them.
        last: usize,
    },
    /// Lines that hold a text may be changed or removed; all others stay.
    Perhaps {
        /// The text.
        text: String,
        /// Whether each line stays one line.
        keeps_count: bool,
    },
    /// Lines that hold a text are removed.
    DeleteMatching {
        /// The text.
        text: String,
    },
}

impl Observation {
    /// The files that it is about, as written.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Observation::Move { from, to } | Observation::Copy { from, to, .. } | Observation::Linked { from, to } => {
                vec![from, to]
            }
            Observation::Swept { .. } | Observation::Formatted { .. } | Observation::Presumed { .. } => Vec::new(),
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
            | Observation::Doubted { path, .. }
            | Observation::Mentioned { path, .. }
            | Observation::Delete { path } => vec![path],
        }
    }

    /// The same with its paths resolved from a directory; `None` if one of them cannot be resolved.
    pub(crate) fn placed(mut self, place: &dyn Fn(&str) -> Option<String>) -> Option<Observation> {
        match &mut self {
            Observation::Move { from, to } | Observation::Copy { from, to, .. } | Observation::Linked { from, to } => {
                (*from, *to) = (place(from)?, place(to)?);
            }
            Observation::Swept { under: Some(path), .. }
            | Observation::Formatted { under: Some(path), .. }
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
            | Observation::Doubted { path, .. }
            | Observation::Mentioned { path, .. }
            | Observation::Delete { path } => *path = place(path)?,
            Observation::Printed { paths, .. } => {
                for path in paths {
                    *path = place(path)?;
                }
            }
            Observation::Swept { under: None, .. }
            | Observation::Formatted { under: None, .. }
            | Observation::Presumed { .. } => {}
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
