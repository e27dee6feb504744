//! Files and commands of the machine that the agent works on, as hooks may reach them.

mod path;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

pub use path::{MAX_PATH_BYTES, relative_path};

/// Why a file was not read, in the words that a reference's state and messages use.
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
    /// The system does not let us.
    PermissionDenied,
    /// Nothing is there.
    NotFound,
    /// Anything else that went wrong while reading.
    ReadFailed,
}

impl FileErrorCode {
    /// The code as it is written in messages: `PATH_TRAVERSAL`.
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
            FileErrorCode::NotFound => "NOT_FOUND",
            FileErrorCode::ReadFailed => "READ_FAILED",
        }
    }
}

/// A file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: `{path}`: {message}", code.as_str())]
pub struct FileError {
    /// Which gate closed.
    pub code: FileErrorCode,
    /// The path as it was asked for, never an absolute path of the host.
    pub path: String,
    /// What stopped it, in plain words.
    pub message: String,
}

impl FileError {
    /// A file that could not be read, and why.
    pub fn new(code: FileErrorCode, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, path: path.into(), message: message.into() }
    }
}

/// What tells one state of a file from another without reading it.
///
/// Compare with [`matches`](Self::matches): `settled` speaks of the moment, not of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileStamp {
    /// The device it lies on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content changed, in nanoseconds since the Unix epoch.
    pub modified_ns: i64,
    /// When its inode changed, in nanoseconds since the Unix epoch.
    pub changed_ns: i64,
    /// Whether any later change is certain to show in the other fields.
    ///
    /// Clocks of file systems tick in milliseconds or seconds: a file that was changed in the tick in which its
    /// stamp was taken can change again without a trace. Only the adapter knows the clock and the tick.
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
    /// The state it was in when it was read.
    pub stamp: FileStamp,
    /// The name of the file itself, where a link was followed and led to one of another name.
    pub linked_name: Option<String>,
}

/// How far an [`FsAdapter`] may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// The largest size that is read.
    pub max_bytes: u64,
    /// Whether symbolic links are followed, as long as their target stays beneath the base.
    pub follow_symlinks: bool,
}

/// Files beneath one base directory: real, in memory, or remote.
///
/// Paths are relative, with `/` between components; [`relative_path`] is the first gate of every
/// implementation. An implementation never yields a byte of a file that does not lie beneath its base,
/// whatever happens to the tree while it reads. It never waits for a pipe or a device, and its messages carry the
/// path as it was asked for.
pub trait FsAdapter: Send + Sync {
    /// Looks at a file without reading it. What is not a regular file within the limits is an error.
    fn stat<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileStamp, FileError>>;

    /// Reads a text file whole.
    ///
    /// The stamp is the state of the opened file before its text was read, so that a change while reading shows
    /// as a difference later.
    fn read<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileText, FileError>>;

    /// Absolute names that lead to the base directory just now, by which absolute paths beneath it are recognised;
    /// none by default, and then no absolute path is.
    fn base_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Looks at many files; by default one after the other.
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

/// An [`FsAdapter`] for agents without files: everything is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl NoFiles {
    fn refuse<T>(path: &str) -> BoxFuture<'_, Result<T, FileError>> {
        Box::pin(async move {
            let message = "this engine was built without file access".to_owned();
            Err(FileError { code: FileErrorCode::PermissionDenied, path: path.to_owned(), message })
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
}

/// What a command did.
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
    /// The command as it was asked for.
    pub command: String,
    /// What stopped it, in plain words.
    pub message: String,
}

/// Commands on the machine that the agent works on.
pub trait ShellAdapter: Send + Sync {
    /// Runs a command line to its end. Dropping the future ends the command.
    fn run<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<ShellOutput, ShellError>>;
}

/// A [`ShellAdapter`] for agents without a shell: everything is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoShell;

impl ShellAdapter for NoShell {
    fn run<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<ShellOutput, ShellError>> {
        let message = "this engine was built without a shell".to_owned();
        Box::pin(async move { Err(ShellError { command: command.to_owned(), message }) })
    }
}
