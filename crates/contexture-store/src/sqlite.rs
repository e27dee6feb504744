//! The embedded store on disk.

mod file;
mod lease_lock;
mod lease;
mod readers;
mod runs;
mod vectors;
mod search;
mod writer;
#[cfg(feature = "postgres")]
mod look;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contexture_core::clock::Clock;
use contexture_core::store::{
    Batch, Change, Fence, Lease, LeaseRequest, MAX_KEY_BYTES, Record, StorageAdapter, StoreError, Version,
};
use futures_util::future::BoxFuture;

#[cfg(feature = "postgres")]
pub(super) use look::look;
use readers::Readers;
pub use search::SqliteIndex;
use writer::StoreWriter;

use crate::SystemClock;
use crate::database::is_damage;
use crate::open_error::OpenError;

/// A store in one SQLite file: the default for an agent that has a disk.
///
/// A write has reached the disk when its call returns. Concurrent writes share one sync, and each still gets its own
/// result. Reads never wait for writes. Several handles, also in several processes, may use one file at once;
/// expectations of a batch protect against overwriting changes of others.
///
/// Clones are handles on the same open file. Dropping the last one finishes pending writes, closes the file and ends its
/// threads; this can take as long as a write does.
///
/// ```
/// use contexture_core::store::StorageAdapter;
/// use contexture_store::SqliteStore;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("agent.db");
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = SqliteStore::open(&path)?;
/// store.set("greeting", b"hello".to_vec()).await?;
/// drop(store);
///
/// let store = SqliteStore::open(&path)?;
/// let record = store.get("greeting").await?.expect("it was acknowledged, so it is there");
/// assert_eq!(record.value, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore {
    open: Arc<OpenStore>,
}

/// What all handles share. The readers come first, because they must close before the writer: the last connection to
/// close copies the write-ahead log into the file.
#[derive(Debug)]
struct OpenStore {
    path: Arc<PathBuf>,
    readers: Readers,
    writer: StoreWriter,
}

impl SqliteStore {
    /// Opens the store in the file at `path`, or creates one.
    ///
    /// This blocks the thread for a few milliseconds, independent of the size of the store.
    ///
    /// # Errors
    /// The directory does not exist, the file is something else, damaged or of a newer format, or the disk
    /// failed. After an error the file is unchanged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with_clock(path, Arc::new(SystemClock::new()))
    }

    /// Like [`open`](Self::open), with the clock by which leases expire. All users of the file must use the same clock.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_clock(path: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let path: Arc<PathBuf> = Arc::new(path.as_ref().to_owned());
        let writer_connection = file::open(&path)?;
        let readers = Readers::start(&path)?;
        let writer = StoreWriter::start(path.clone(), writer_connection, clock)?;
        Ok(Self { open: Arc::new(OpenStore { path, readers, writer }) })
    }
}

impl StorageAdapter for SqliteStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(self.open.readers.get(key))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(self.open.readers.list(prefix))
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        Box::pin(async move {
            check_keys(&batch)?;
            self.open.writer.apply(batch).await
        })
    }

    fn scrub(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        let path = self.open.path.clone();
        Box::pin(async move {
            let failed = |error| store_error("empty the write-ahead log", "", &path, error);
            let file = path.clone();
            match tokio::task::spawn_blocking(move || file::scrub(&file)).await {
                Ok(done) => done.map_err(failed),
                Err(_) => Err(thread_ended("empty the write-ahead log", &path)),
            }
        })
    }

    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(self.open.readers.get_many(keys))
    }

    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(self.open.writer.acquire(request))
    }

    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.open.writer.renew(fence.clone(), duration))
    }
}

/// Checks the lengths of the keys of a batch.
fn check_keys(batch: &Batch) -> Result<(), StoreError> {
    let mut keys = batch.changes.iter().map(|change| match change {
        Change::Set { key, .. } | Change::Delete { key } => key,
    });
    match keys.find(|key| key.len() > MAX_KEY_BYTES) {
        Some(key) => Err(StoreError::key_too_long(key)),
        None => Ok(()),
    }
}

/// Converts an error of the database in an operation on `key`.
fn store_error(doing: &str, key: &str, path: &Path, error: rusqlite::Error) -> StoreError {
    if is_damage(&error) {
        return StoreError::Corrupt { key: key.to_owned(), reason: format!("the store's file is damaged: {error}") };
    }
    StoreError::Io { doing: format!("{doing} in store `{}`", path.display()), source: error.into() }
}

/// The source of errors after the worker thread has ended.
#[derive(Debug, thiserror::Error)]
#[error("the store's thread has ended")]
struct ThreadEnded;

/// The error after the worker thread has ended.
fn thread_ended(doing: &str, path: &Path) -> StoreError {
    StoreError::Io { doing: format!("{doing} in store `{}`", path.display()), source: ThreadEnded.into() }
}
