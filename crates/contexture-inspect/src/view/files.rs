//! What the model believes about files, and what happened to them.

use std::collections::BTreeMap;

use serde::Serialize;

/// A file that a conversation uses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileLine {
    /// Its path as the agent wrote it.
    pub path: String,
    /// How reliable its known lines are.
    pub grade: FileGrade,
    /// Why the grade is not higher.
    pub reason: String,
    /// The number of known lines.
    pub lines: u64,
    /// The same by grade.
    pub graded: BTreeMap<FileGrade, u64>,
    /// Whether these are all of its lines.
    pub is_whole: bool,
    /// How often it was read.
    pub reads: u64,
    /// How often the agent changed it.
    pub changes: u64,
    /// The request in which it was last read or changed.
    pub last: u64,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileEventKind {
    /// Lines of it were read.
    Read,
    /// A search showed lines of it.
    Searched,
    /// The agent changed it.
    Changed,
    /// The agent wrote it whole.
    Written,
    /// It was deleted.
    Deleted,
    /// It was renamed.
    Moved,
    /// A call could write it.
    CouldWrite,
    /// It was named.
    Named,
}

/// Lines of a file that the output of a read shows, as far as they are still known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadLines {
    /// The request that brought them.
    pub n: u64,
    /// How many.
    pub count: u64,
    /// How well they are known.
    pub grade: FileGrade,
    /// Why the grade is not higher.
    pub reason: Option<String>,
}

/// How reliable the known lines of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileGrade {
    /// The disk has the same.
    Verified,
    /// They are as the agent saw or wrote them.
    Seen,
    /// They are from before a change that could not be followed.
    Changed,
    /// The file was changed since.
    Overtaken,
    /// The file was read again since.
    ReadAgain,
    /// The file was deleted.
    Deleted,
    /// No line is known.
    Unknown,
}

/// An event in the history of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileEvent {
    /// The request that first showed it.
    pub n: u64,
    /// What happened.
    pub what: FileEventKind,
    /// The lines, or the cause.
    pub detail: String,
    /// The block that shows it.
    pub block: u32,
}
