//! The files of the gateway and of its inspector, which are checked and copied as a whole.

use std::path::Path;

use contexture_gateway::{CheckedFile, StoreError, check_store_file, copy_store_file, is_store};

use super::archive::{check_archive_file, copy_archive_file, is_archive};

/// A file that is checked and copied as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnFile {
    /// The gateway's store.
    Gateway,
    /// What the inspector shows.
    Inspector,
}

impl OwnFile {
    /// Which of them a file is, if it is one. The file is not changed.
    pub fn at(path: &Path) -> Option<Self> {
        match path {
            path if is_store(path) => Some(Self::Gateway),
            path if is_archive(path) => Some(Self::Inspector),
            _ => None,
        }
    }

    /// Whose file it is, in a word.
    pub fn whose(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Inspector => "inspector",
        }
    }

    /// What to do with one that is damaged.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Gateway => {
                "a gateway that starts with it goes on with what is whole and keeps the rest aside; nothing was changed"
            }
            Self::Inspector => "it only has what the page shows, and can be deleted; nothing was changed",
        }
    }

    /// Looks for damage in it; programs may go on meanwhile.
    ///
    /// # Errors
    /// The file cannot be read at all.
    pub fn check(self, path: &Path) -> Result<CheckedFile, StoreError> {
        match self {
            Self::Gateway => check_store_file(path),
            Self::Inspector => check_archive_file(path),
        }
    }

    /// Copies it into a new file, as of one moment. Returns what the copy has.
    ///
    /// # Errors
    /// There is something at the target already, the file cannot be read, or the copy cannot be written.
    pub fn copy(self, from: &Path, to: &Path) -> Result<CheckedFile, StoreError> {
        match self {
            Self::Gateway => copy_store_file(from, to),
            Self::Inspector => copy_archive_file(from, to),
        }
    }
}
