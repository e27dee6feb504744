//! Access of hooks to files and commands.

mod path;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

pub use path::{MAX_PATH_BYTES, relative_path};

/// Why a file was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FileErrorCode {
    /// The path leads out of the base directory.
    PathTraversal,
    /// The path is absolute.
    AbsolutePath,
    /// A component is a symbolic link and links are not followed.
    SymlinkRejected,
    /// The extension or name is not on the list.
    DisallowedExtension,
    /// The file is larger than allowed.
    FileTooLarge,
    /// It is a directory, a pipe, a socket or a device.
    NotAFile,
    /// It does not hold valid UTF-8 text.
    NotText,
    /// The system does not allow it.
    PermissionDenied,
    /// The engine was given no files.
    NoFiles,
    /// The file does not exist.
    NotFound,
    /// It is not in the state in which it was read.
    Changed,
    /// Anything else that went wrong while reading.
    ReadFailed,
}

impl FileErrorCode {
    /// The code in messages: `PATH_TRAVERSAL`.
    pub fn as_str(self) -> &'static str {
        match self {
            FileErrorCode::PathTraversal => "PATH_TRAVERSAL",
            FileErrorCode::AbsolutePath => "ABSOLUTE_PATH",
            FileErrorCode::SymlinkRejected => "SYMLINK_REJECTED",
            FileErrorCode::DisallowedExtension => "DISALLOWED_EXTENSION",
            FileErrorCode::FileTooLarge => "FILE_TOO_LARGE",
            FileErrorCode::NotAFile => "NOT_A_FILE",
            FileErrorCode::NotText => "NOT_TEXT",
            FileErrorCode::PermissionDenied => "PERMISSION_DENIED",
            FileErrorCode::NoFiles => "NO_FILES",
            FileErrorCode::NotFound => "NOT_FOUND",
            FileErrorCode::Changed => "CHANGED",
            FileErrorCode::ReadFailed => "READ_FAILED",
        }
    }
}

/// A file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: `{path}`: {message}", code.as_str())]
pub struct FileError {
    /// The kind of error.
    pub code: FileErrorCode,
    /// The path as requested, never an absolute path of the host.
    pub path: String,
    /// A message for people.
    pub message: String,
}

impl FileError {
    /// Creates an error for a path.
    pub fn new(code: FileErrorCode, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, path: path.into(), message: message.into() }
    }
}

/// Metadata of a file that changes when the file changes.
///
/// Compare with [`matches`](Self::matches), which ignores `settled`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileStamp {
    /// The device.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content changed, in nanoseconds since the Unix epoch.
    pub modified_ns: i64,
    /// When its inode changed, in nanoseconds since the Unix epoch.
    pub changed_ns: i64,
    /// Whether any later change is certain to change the other fields.
    ///
    /// The clocks of file systems have a resolution of milliseconds or seconds: a file that was modified in the tick in
    /// which its stamp was taken can change again with the same stamp. Only the adapter knows the clock and its
    /// resolution.
    pub settled: bool,
}

impl FileStamp {
    /// Whether both were taken of the same file in the same state, as far as stamps can tell.
    ///
    /// The file is certain to be unchanged only if the earlier of the two is `settled`.
    pub fn matches(&self, other: &FileStamp) -> bool {
        let settled = self.settled;
        *self == FileStamp { settled, ..*other }
    }
}

/// The text of a file, with its stamp taken from the same handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// The whole text.
    pub text: String,
    /// The stamp of the file when it was read.
    pub stamp: FileStamp,
    /// The name of the file itself, if a link was followed to a file of another name.
    pub linked_name: Option<String>,
}

/// Something in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// Its name, without the directory.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What a [`DirEntry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link. Where it leads is seen when it is opened.
    Link,
    /// A pipe, a socket, a device.
    Other,
}

/// What is where a base directory was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Base {
    /// The directory.
    Here {
        /// Its absolute names.
        names: Vec<String>,
        /// The device that it is on.
        device: Option<u64>,
    },
    /// Nothing: it was deleted or moved.
    Gone,
    /// Another directory.
    Replaced,
    /// Something that may not be looked at.
    Forbidden,
    /// Something that cannot be looked at.
    Failed,
    /// There are no files at all.
    NoFiles,
}

/// Limits for an [`FsAdapter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// The largest size that is read.
    pub max_bytes: u64,
    /// Whether symbolic links are followed if their target is below the base.
    pub follow_symlinks: bool,
}

/// Files below one base directory: real, in memory, or remote.
///
/// Paths are relative, with `/` between components; every implementation checks them with [`relative_path`] first.
/// An implementation never returns a byte of a file outside its base, even if the tree changes while it reads. It never
/// blocks on a pipe or a device, and its messages have the path as requested.
pub trait FsAdapter: Send + Sync {
    /// Returns the stamp of a file without reading it. Anything but a regular file within the limits is an error.
    fn stat<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileStamp, FileError>>;

    /// Reads a text file whole.
    ///
    /// The stamp is taken from the opened file before its text is read, so that a change while reading is
    /// noticed later.
    fn read<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileText, FileError>>;

    /// Returns the absolute names of the base directory, by which absolute paths below it are recognised.
    /// Default: none; then no absolute path is recognised.
    fn base_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is where the base directory was when it was opened. A file that is not found there may still exist if that is
    /// another directory now. Default: the directory itself, on no known device.
    fn base(&self) -> BoxFuture<'_, Base> {
        Box::pin(async move { Base::Here { names: self.base_names(), device: None } })
    }

    /// What is in a directory, by name; `.` is the base. Names that are not text are left out, and of more than
    /// `max_entries` the rest.
    ///
    /// By default refused: an adapter that can only open files by name has nothing to list.
    fn list<'a>(
        &'a self,
        path: &'a str,
        _max_entries: usize,
        _limits: ReadLimits,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, FileError>> {
        let message = "these files cannot be listed";
        Box::pin(async move { Err(FileError::new(FileErrorCode::PermissionDenied, path, message)) })
    }

    /// Returns the stamps of many files. Default: one after the other.
    fn stat_many<'a>(
        &'a self,
        paths: &'a [&'a str],
        limits: ReadLimits,
    ) -> BoxFuture<'a, Vec<Result<FileStamp, FileError>>> {
        Box::pin(async move {
            let mut stamps = Vec::with_capacity(paths.len());
            for path in paths {
                stamps.push(self.stat(path, limits).await);
            }
            stamps
        })
    }
}

/// An [`FsAdapter`] for agents without files: every access is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl NoFiles {
    fn refuse<T>(path: &str) -> BoxFuture<'_, Result<T, FileError>> {
        Box::pin(async move {
            let message = "the engine was built without files: the program calls `.fs(…)` on its builder";
            Err(FileError::new(FileErrorCode::NoFiles, path, message))
        })
    }
}

impl FsAdapter for NoFiles {
    fn stat<'a>(&'a self, path: &'a str, _: ReadLimits) -> BoxFuture<'a, Result<FileStamp, FileError>> {
        NoFiles::refuse(path)
    }

    fn read<'a>(&'a self, path: &'a str, _: ReadLimits) -> BoxFuture<'a, Result<FileText, FileError>> {
        NoFiles::refuse(path)
    }

    fn base(&self) -> BoxFuture<'_, Base> {
        Box::pin(async { Base::NoFiles })
    }
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellOutput {
    /// The exit code; `None` if a signal ended it.
    pub exit_code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
}

/// Why a command did not run.
#[derive(Debug, thiserror::Error)]
#[error("run `{command}`: {message}")]
pub struct ShellError {
    /// The command.
    pub command: String,
    /// A message for people.
    pub message: String,
}

/// Runs commands.
pub trait ShellAdapter: Send + Sync {
    /// Runs a command line until it ends. Dropping the future kills the command.
    fn run<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<ShellOutput, ShellError>>;
}

/// A [`ShellAdapter`] for agents without a shell: every command is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoShell;

impl ShellAdapter for NoShell {
    fn run<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<ShellOutput, ShellError>> {
        let message = "the engine was built without a shell: the program calls `.shell(…)` on its builder".to_owned();
        Box::pin(async move { Err(ShellError { command: command.to_owned(), message }) })
    }
}
