//! What became of each file in the last window, for people and programs.

use contexture_core::host::FileErrorCode;
use serde::Serialize;

use super::render::{Visibility, rank};
use super::state::{FileStatus, TrackedFile};
use super::tracker::LastPage;

/// What became of one file in the last window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileReport {
    /// The reference as it was written.
    pub path: String,
    /// What became of it.
    pub status: ReportStatus,
    /// For an error: which gate closed.
    pub code: Option<FileErrorCode>,
    /// How relevant it is to the conversation, from 0 to 100.
    pub priority: u8,
    /// What its block takes in the window.
    pub tokens: u64,
    /// How many lines the file has.
    pub lines: u32,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportStatus {
    /// It is shown, whole or all lines that were asked for.
    Shown,
    /// Its head and tail are shown.
    Excerpt,
    /// There was no room for it.
    NoRoom,
    /// It was out of use for long and is only named.
    Aged,
    /// It was there and is gone.
    Deleted,
    /// It can't be read.
    Error,
}

/// The report on a rendering.
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
