//! The module `fs` on systems other than Unix, where files are not read.

use std::convert::Infallible;
use std::path::Path;

use contexture_core::host::{FileError, FileErrorCode, FileStamp, FileText, FsAdapter, ReadLimits};
use futures_util::future::BoxFuture;

/// Files of this machine, below one directory. Not available on this system: [`open`](Self::open) always fails.
///
/// Reading safely below a directory needs files that are opened relative to a directory handle, which is only
/// implemented for Unix.
#[derive(Clone, Debug)]
pub struct LocalFs(Infallible);

impl LocalFs {
    /// Opens a base directory.
    ///
    /// # Errors
    /// Always: this system is not supported.
    pub fn open(_base: impl AsRef<Path>) -> Result<Self, FileError> {
        Err(FileError::new(FileErrorCode::ReadFailed, ".", "files can only be read on Unix systems"))
    }
}

impl FsAdapter for LocalFs {
    fn stat<'a>(&'a self, _: &'a str, _: ReadLimits) -> BoxFuture<'a, Result<FileStamp, FileError>> {
        match self.0 {}
    }

    fn read<'a>(&'a self, _: &'a str, _: ReadLimits) -> BoxFuture<'a, Result<FileText, FileError>> {
        match self.0 {}
    }
}
