//! Changes of files, kept before they are made, so that they can be taken back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use contexture::fs::Expected;
use contexture::host::{FileErrorCode, FsAdapter, ReadLimits};
use contexture::store::{Batch, Key, StorageAdapter, StoreError};
use contexture::tools::Workspace;
use serde::{Deserialize, Serialize};

use super::happening::FileEdit;
use super::threads::store_failed;
use crate::failure::Failure;

/// The largest file that is read to be compared.
const LIMITS: ReadLimits = ReadLimits { max_bytes: 64 << 20, follow_symlinks: false };

/// The changes of a thread; cheap to clone.
#[derive(Clone)]
pub(super) struct UndoLog {
    store: Arc<dyn StorageAdapter>,
    prefix: String,
    next: Arc<AtomicU64>,
    turn: Arc<AtomicU64>,
}

/// A change as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredChange {
    turn: u64,
    path: String,
    before: Option<String>,
    after: String,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Undone {
    /// It has the text that it had before.
    Restored,
    /// It was made in the turn, and is gone again.
    Removed,
    /// It had that text anyway.
    Unchanged,
    /// It is left alone, and why.
    Refused(String),
}

impl UndoLog {
    /// The changes of a thread.
    pub(super) async fn of(store: Arc<dyn StorageAdapter>, thread: &str) -> Result<Self, Failure> {
        let prefix = Key::new("chat").then("undo").then(thread).into_prefix();
        let keys = store.list(&prefix).await.map_err(store_failed)?;
        let last = keys.last().and_then(|key| key.strip_prefix(&prefix)?.parse::<u64>().ok());
        let next = Arc::new(AtomicU64::new(last.map_or(0, |last| last + 1)));
        Ok(Self { store, prefix, next, turn: Arc::default() })
    }

    /// A turn begins: the changes that follow are taken back together.
    pub(super) fn begin(&self, turn: u64) {
        self.turn.store(turn, Ordering::SeqCst);
    }

    /// Keeps a change that is about to be made.
    pub(super) async fn keep(&self, edit: &FileEdit) -> Result<(), StoreError> {
        let FileEdit { path, before, after } = edit.clone();
        let kept = StoredChange { turn: self.turn.load(Ordering::SeqCst), path, before, after };
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let value = serde_json::to_vec(&kept).expect("texts can be written as JSON");
        self.store.set(&format!("{}{number:020}", self.prefix), value).await.map(drop)
    }

    /// Takes back the changes of the last turn that made any, file by file. A file that has none of the texts that the
    /// turn gave it was changed by somebody else, and is left alone.
    pub(super) async fn last_turn(&self, workspace: &Workspace) -> Result<Vec<(String, Undone)>, Failure> {
        let keys = self.store.list(&self.prefix).await.map_err(store_failed)?;
        let records = self.store.get_many(&keys).await.map_err(store_failed)?;
        let read = |record: contexture::store::Record| serde_json::from_slice::<StoredChange>(&record.value).ok();
        let all = keys.into_iter().zip(records).filter_map(|(key, record)| Some((key, read(record?)?)));
        let all: Vec<(String, StoredChange)> = all.collect();
        let Some(last) = all.iter().map(|(_, kept)| kept.turn).max() else { return Ok(Vec::new()) };
        let mut files: BTreeMap<String, Vec<(String, StoredChange)>> = BTreeMap::new();
        for (key, kept) in all.into_iter().filter(|(_, kept)| kept.turn == last) {
            files.entry(kept.path.clone()).or_default().push((key, kept));
        }
        let mut undone = Vec::new();
        for (path, changes) in files {
            let outcome = restore(workspace, &path, &changes).await;
            if !matches!(outcome, Undone::Refused(_)) {
                let batch = changes.iter().fold(Batch::new(), |batch, (key, _)| batch.delete(key));
                self.store.apply(batch).await.map_err(store_failed)?;
            }
            undone.push((path, outcome));
        }
        Ok(undone)
    }
}

/// Gives a file the text that it had before some changes, which are in order.
async fn restore(workspace: &Workspace, path: &str, changes: &[(String, StoredChange)]) -> Undone {
    let before = changes.first().and_then(|(_, kept)| kept.before.clone());
    let current = match workspace.files().read(path, LIMITS).await {
        Ok(file) => Some(file),
        Err(error) if error.code == FileErrorCode::NotFound => None,
        Err(error) => return Undone::Refused(error.to_string()),
    };
    let text = current.as_ref().map(|file| file.text.as_str());
    if text == before.as_deref() {
        return Undone::Unchanged;
    }
    let (Some(file), true) = (&current, changes.iter().any(|(_, kept)| text == Some(&kept.after))) else {
        return Undone::Refused("it changed since".to_owned());
    };
    let restored = match &before {
        Some(before) => {
            let written = workspace.files().write(path, before, Expected::Unchanged(file.stamp)).await;
            written.map(|_| Undone::Restored).map_err(|error| error.to_string())
        }
        None => {
            let removed = std::fs::remove_file(workspace.directory().join(path));
            removed.map(|()| Undone::Removed).map_err(|error| error.to_string())
        }
    };
    restored.unwrap_or_else(Undone::Refused)
}
