//! Files as an editor has them, which may not be saved.

use std::path::Path;

use contexture_core::BoxFuture;

/// An editor whose texts count in place of those on the disk.
///
/// [`Workspace`](super::Workspace) calls it for files beneath its directory that it may read itself, and for files that
/// are not there yet. Neither method is called for anything else.
pub trait OpenFiles: Send + Sync + 'static {
    /// The text of a file, by its absolute path; `None` if the editor does not give it, and the disk's counts.
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>>;

    /// Writes a file through the editor; `None` if it writes no files, and the file is written on the disk. An error is
    /// what the editor says, and nothing else is tried then.
    fn write<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Option<Result<(), String>>>;
}
