//! The user's own memory: one file that all commands share.

use std::collections::BTreeSet;
use std::env;
use std::fs::DirBuilder;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture::personal::{MemoryOwner, PersonalMemory};
use contexture::project::project_of;
use contexture::redact::secrets;
use contexture::store::{SqliteIndex, SqliteStore};

use crate::failure::Failure;
use crate::state_directory::state_directory;

/// The project of sessions that say nothing about where they were.
pub(crate) const NO_PROJECT: &str = "unknown";

/// The file of the user's memory.
///
/// # Errors
/// No directory for it is known.
pub(crate) fn memory_path() -> Result<PathBuf, Failure> {
    Ok(state_directory()?.join("memory.db"))
}

/// A memory in a file, with its index.
pub(crate) struct OpenedMemory {
    pub(crate) memory: PersonalMemory,
    pub(crate) store: Arc<SqliteStore>,
}

/// Opens the memory in a file, which is created if it does not exist. Only its owner can read it.
///
/// # Errors
/// It cannot be opened, or is something else.
pub(crate) fn open_memory(path: &Path) -> Result<OpenedMemory, Failure> {
    let failed = |problem: String| {
        Failure::work(format!("open the memory `{}`: {problem}", path.display())).hint("name another with --store")
    };
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        private_directory(directory).map_err(|error| failed(error.to_string()))?;
    }
    let store = Arc::new(SqliteStore::open(path).map_err(|error| failed(error.to_string()))?);
    let memory = PersonalMemory::new(store.clone(), Arc::new(SqliteIndex::new(path)));
    Ok(OpenedMemory { memory, store })
}

/// The project of a directory: its repository, or itself. A directory that is gone belongs to the repository that it was
/// in, if that is still there.
pub(crate) fn project_at(directory: &Path) -> String {
    if let Ok(project) = project_of(directory) {
        return project.as_str().to_owned();
    }
    let existing = directory.ancestors().skip(1).find(|ancestor| ancestor.is_dir());
    let repository = existing.and_then(|existing| {
        let project = project_of(existing).ok()?;
        Path::new(project.as_str()).join(".git").exists().then(|| project.as_str().to_owned())
    });
    repository.unwrap_or_else(|| directory.to_string_lossy().into_owned())
}

/// The project of the current directory.
///
/// # Errors
/// The current directory is not known.
pub(crate) fn current_project() -> Result<MemoryOwner, Failure> {
    Ok(MemoryOwner::Project(project_at(&env::current_dir()?)))
}

/// What is told of the secrets in a text that was to be remembered; nothing if it has none.
pub(crate) fn told_of_secrets(text: &str) -> String {
    let kinds: BTreeSet<&str> = secrets(text).iter().map(|secret| secret.kind).collect();
    if kinds.is_empty() {
        return String::new();
    }
    format!("; not kept, because it is secret: {}", kinds.into_iter().collect::<Vec<_>>().join(", "))
}

fn private_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}
