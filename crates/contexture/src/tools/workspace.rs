//! The working directory of tools, and what the agent has read of its files.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_core::error::BoxError;
use contexture_core::host::{FileError, FileErrorCode, FileStamp, FileText, FsAdapter, ReadLimits, relative_path};

use super::approve::{Approval, Approve, NoCommands, ToolAction};
use super::open_files::OpenFiles;
use crate::fs::{Expected, LocalFs};
use crate::host::ProgramEnvironment;

/// The largest file that tools read.
const MAX_FILE_BYTES: u64 = 8 << 20;

const LIMITS: ReadLimits = ReadLimits { max_bytes: MAX_FILE_BYTES, follow_symlinks: false };

/// Most changes that are kept.
const MAX_CHANGES: usize = 1_000;

/// The working directory of tools; cheap to clone. Clones share what the agent has read.
#[derive(Clone)]
pub struct Workspace {
    shared: Arc<SharedWorkspace>,
    approve: Arc<dyn Approve>,
    /// Whose texts count in place of those on the disk.
    open_files: Option<Arc<dyn OpenFiles>>,
    /// What commands get.
    environment: Arc<ProgramEnvironment>,
    /// Patterns of paths that are not searched or listed.
    hidden: Arc<[String]>,
}

struct SharedWorkspace {
    files: LocalFs,
    directory: PathBuf,
    /// The digest of each file's text as the agent last read or wrote it.
    known: Mutex<HashMap<String, blake3::Hash>>,
    changes: Mutex<Vec<FileChange>>,
}

/// A change that a tool made to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file, relative to the directory.
    pub path: String,
    /// Its text before; `None` if it did not exist.
    pub before: Option<String>,
    /// Its text after.
    pub after: String,
}

impl Workspace {
    /// Opens a directory.
    ///
    /// # Errors
    /// The directory does not exist, or can't be read.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, FileError> {
        let files = LocalFs::open(&directory)?;
        let directory = std::path::absolute(&directory).unwrap_or_else(|_| directory.as_ref().to_owned());
        let shared = SharedWorkspace { files, directory, known: Mutex::default(), changes: Mutex::default() };
        let environment = Arc::new(ProgramEnvironment::of_process());
        let (approve, hidden) = (Arc::new(NoCommands), Arc::default());
        Ok(Self { shared: Arc::new(shared), approve, open_files: None, environment, hidden })
    }

    /// Sets who decides what tools may do.
    pub fn with_approval(mut self, approve: impl Approve) -> Self {
        self.approve = Arc::new(approve);
        self
    }

    /// Sets an editor whose texts count in place of those on the disk. Files are searched and listed on the disk all the
    /// same.
    pub fn with_open_files(mut self, open_files: Arc<dyn OpenFiles>) -> Self {
        self.open_files = Some(open_files);
        self
    }

    /// Sets the environment variables that commands get: by default those of the process that are on the list of
    /// [`ProgramEnvironment`].
    pub fn with_environment(mut self, environment: ProgramEnvironment) -> Self {
        self.environment = Arc::new(environment);
        self
    }

    /// Commands do not get these environment variables either: what a command prints is sent to the model and stored.
    pub fn without_variables(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.environment = Arc::new(ProgramEnvironment::clone(&self.environment).without(names));
        self
    }

    /// Leaves files out of searches and lists whose path matches one of these patterns; `*` and `**` as in rules of
    /// [`Steering`](crate::layers::Steering), whose [`denied_paths`](crate::layers::Steering::denied_paths) they may be.
    pub fn hiding(mut self, patterns: impl IntoIterator<Item = String>) -> Self {
        self.hidden = patterns.into_iter().collect();
        self
    }

    /// The patterns of paths that are not searched or listed.
    pub(super) fn hidden(&self) -> &Arc<[String]> {
        &self.hidden
    }

    /// The environment variables that commands get.
    pub(super) fn environment(&self) -> &ProgramEnvironment {
        &self.environment
    }

    /// The files below the directory.
    pub fn files(&self) -> &LocalFs {
        &self.shared.files
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.shared.directory
    }

    /// Returns the changes made by tools, oldest first, and clears them.
    pub fn take_changes(&self) -> Vec<FileChange> {
        std::mem::take(&mut *lock(&self.shared.changes))
    }

    /// The path of a file relative to the directory: models also write absolute paths.
    pub(super) fn relative(&self, path: &str) -> Result<String, FileError> {
        if path.starts_with('/') {
            for base in self.shared.files.base_names() {
                if let Some(rest) = path.strip_prefix(base.trim_end_matches('/'))
                    && (rest.is_empty() || rest.starts_with('/'))
                {
                    return relative_path(rest.trim_start_matches('/').trim_end_matches('/'))
                        .map(|path| path.to_string());
                }
            }
        }
        relative_path(path).map(|path| path.to_string())
    }

    /// Reads a file for the agent and remembers that it has seen this text.
    pub(super) async fn read(&self, path: &str) -> Result<FileText, FileError> {
        let file = self.look(path).await?;
        lock(&self.shared.known).insert(path.to_owned(), blake3::hash(file.text.as_bytes()));
        Ok(file)
    }

    /// Reads a file without recording that the agent has seen it.
    pub(super) async fn look(&self, path: &str) -> Result<FileText, FileError> {
        let saved = self.shared.files.read(path, LIMITS).await;
        // What may not be read on the disk may not be read through an editor either.
        let may_be_open = saved.as_ref().map_or_else(|error| error.code == FileErrorCode::NotFound, |_| true);
        let Some(open_files) = self.open_files.as_ref().filter(|_| may_be_open) else { return saved };
        let text = open_files.read(&self.shared.directory.join(path)).await;
        match text.filter(|text| text.len() as u64 <= MAX_FILE_BYTES) {
            Some(text) => {
                let missing = FileText { text: String::new(), stamp: FileStamp::default(), linked_name: None };
                Ok(FileText { text, ..saved.unwrap_or(missing) })
            }
            None => saved,
        }
    }

    /// Whether this is the text that the agent last read or wrote.
    pub(super) fn is_known(&self, path: &str, text: &str) -> bool {
        lock(&self.shared.known).get(path) == Some(&blake3::hash(text.as_bytes()))
    }

    /// Whether the agent has read or written the file.
    pub(super) fn was_read(&self, path: &str) -> bool {
        lock(&self.shared.known).contains_key(path)
    }

    /// Writes a file, if that is allowed and its text is still `before`.
    pub(super) async fn write(&self, path: &str, before: Option<FileText>, after: String) -> Result<(), BoxError> {
        let text_before = before.as_ref().map(|file| file.text.as_str());
        let action = ToolAction::Write { path, before: text_before, after: &after };
        self.ask(action).await?;
        if !self.write_open(path, text_before, &after).await? {
            let expected = before.as_ref().map_or(Expected::Missing, |file| Expected::Unchanged(file.stamp));
            self.shared.files.write(path, &after, expected).await.map_err(hinted)?;
        }
        lock(&self.shared.known).insert(path.to_owned(), blake3::hash(after.as_bytes()));
        let mut changes = lock(&self.shared.changes);
        if changes.len() < MAX_CHANGES {
            changes.push(FileChange { path: path.to_owned(), before: before.map(|file| file.text), after });
        }
        Ok(())
    }

    /// Writes a file through an editor, if there is one that writes files and its text is still `before`.
    async fn write_open(&self, path: &str, before: Option<&str>, after: &str) -> Result<bool, BoxError> {
        let Some(open_files) = &self.open_files else { return Ok(false) };
        let now = match self.look(path).await {
            Ok(file) => Some(file.text),
            Err(error) if error.code == FileErrorCode::NotFound => None,
            Err(error) => return Err(hinted(error)),
        };
        if now.as_deref() != before {
            return Err(hinted(FileError::new(FileErrorCode::Changed, path, "it was changed meanwhile")));
        }
        match open_files.write(&self.shared.directory.join(path), after).await {
            Some(Ok(())) => Ok(true),
            Some(Err(problem)) => Err(format!("the editor did not write `{path}`: {problem}").into()),
            None => Ok(false),
        }
    }

    /// Asks whether an action is allowed.
    pub(super) async fn ask(&self, action: ToolAction<'_>) -> Result<(), BoxError> {
        match self.approve.approve(action).await {
            Approval::Allowed => Ok(()),
            Approval::Denied(reason) => Err(format!("not done: {reason}").into()),
        }
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("directory", &self.shared.directory).finish_non_exhaustive()
    }
}

/// An error about a file, with what the model can do about it.
pub(super) fn hinted(error: FileError) -> BoxError {
    let hint = match error.code {
        FileErrorCode::Changed => "read it again, then decide what to write",
        FileErrorCode::NotFound => "list_files shows what there is",
        FileErrorCode::AbsolutePath | FileErrorCode::PathTraversal => "use a path relative to the working directory",
        FileErrorCode::NotText => "only text files can be read",
        FileErrorCode::FileTooLarge => "search_files finds lines in it",
        _ => return error.into(),
    };
    format!("{error}; {hint}").into()
}

/// Locks a mutex, ignoring poisoning: no holder leaves the value half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
