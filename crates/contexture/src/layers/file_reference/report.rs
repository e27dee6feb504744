//! What became of each file in the last window, for people and programs.

use contexture_core::host::FileErrorCode;
use serde::Serialize;

use super::render::{Visibility, rank};
use super::state::{FileStatus, TrackedFile};
use super::tracker::LastPage;

/// How one file appeared in the last window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileReport {
    /// The reference as written.
    pub path: String,
    /// Its status.
    pub status: ReportStatus,
    /// The code of an error.
    pub code: Option<FileErrorCode>,
    /// How relevant it is to the conversation, from 0 to 100.
    pub priority: u8,
    /// The tokens of its block.
    pub tokens: u64,
    /// The number of lines of the file.
    pub lines: u32,
}

/// The status of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    /// Shown, whole or all requested lines.
    Shown,
    /// Shown as head and tail.
    Excerpt,
    /// Not shown for lack of room.
    NoRoom,
    /// Not used for long, so only listed by name.
    Aged,
    /// It existed and was deleted.
    Deleted,
    /// It can't be read.
    Error,
}

/// Makes the report of a rendering.
pub(super) fn of(page: &LastPage) -> Vec<FileReport> {
    let mut files: Vec<_> = page.files().enumerate().collect();
    files.sort_by_key(|(index, (file, _))| rank(file.priority, file, *index));
    files.into_iter().map(|(_, (file, visibility))| report(page, file, visibility)).collect()
}

fn report(page: &LastPage, file: &TrackedFile, visibility: Visibility) -> FileReport {
    let (status, tokens) = match (&file.status, visibility) {
        (FileStatus::Deleted, _) => (ReportStatus::Deleted, 0),
        (FileStatus::Unread | FileStatus::Refused { .. }, _) => (ReportStatus::Error, 0),
        (_, Visibility::Whole(tokens)) => (ReportStatus::Shown, tokens),
        (_, Visibility::Excerpt(tokens)) => (ReportStatus::Excerpt, tokens),
        (_, Visibility::Named | Visibility::Left) if page.is_aged(file) => (ReportStatus::Aged, 0),
        (_, Visibility::Named | Visibility::Left) => (ReportStatus::NoRoom, 0),
    };
    let (code, lines) = match &file.status {
        FileStatus::Refused { code, .. } => (Some(*code), 0),
        FileStatus::Deleted => (Some(FileErrorCode::NotFound), 0),
        FileStatus::Present { line_count, .. } => (None, *line_count),
        FileStatus::Unread => (None, 0),
    };
    FileReport { path: file.written().to_owned(), status, code, priority: file.priority, tokens, lines }
}
