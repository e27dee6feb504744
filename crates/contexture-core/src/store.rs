//! Durable storage.
//!
//! A [`StorageAdapter`] stores records under text keys: items, layer states, decisions and unfinished turns.
//! [`ScopedStorage`] is the part of it that belongs to one layer.

mod key;
mod lease;
mod memory;
mod scoped;

use std::time::Duration;

use futures_util::future::BoxFuture;

pub use key::{Key, escape_segment, layer_prefix};
pub use lease::{Fence, Holder, Lease, LeaseRequest, LeaseTable};
pub use memory::MemoryStore;
pub(crate) use scoped::{BACKUP_PREFIX, STATE_KEY};
pub use scoped::{ScopedStorage, unescape_segment};

/// The version of a record: different for every write of the same key.
///
/// A store never uses the same version twice for one key, not even after the key was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Version(pub u64);

/// A stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The bytes as they were set.
    pub value: Vec<u8>,
    /// The version of this write.
    pub version: Version,
}

/// One change in a [`Batch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Put this value under the key.
    Set {
        /// The key.
        key: String,
        /// The value.
        value: Vec<u8>,
    },
    /// Remove the key; it need not exist.
    Delete {
        /// The key.
        key: String,
    },
}

/// A condition for applying a [`Batch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The key of the record.
    pub key: String,
    /// The version it must have, or `None` if it must not exist.
    pub version: Option<Version>,
}

/// Changes that are made together or not at all, and their conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The lease under which it is written. Checked before everything else, in the same transaction.
    pub fence: Option<Fence>,
    /// Checked next, in the same transaction.
    pub expectations: Vec<Expectation>,
    /// Applied in order.
    pub changes: Vec<Change>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the lease that must be held; otherwise nothing is changed.
    pub fn fenced(mut self, fence: Option<Fence>) -> Self {
        self.fence = fence;
        self
    }

    /// Adds the condition that this record has this version (`None`: does not exist).
    pub fn expect(mut self, key: impl Into<String>, version: Option<Version>) -> Self {
        self.expectations.push(Expectation { key: key.into(), version });
        self
    }

    /// Adds setting this key to this value.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.changes.push(Change::Set { key: key.into(), value: value.into() });
        self
    }

    /// Adds removing this key.
    pub fn delete(mut self, key: impl Into<String>) -> Self {
        self.changes.push(Change::Delete { key: key.into() });
        self
    }
}

/// Why an operation of a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An expectation of the batch did not hold. Nothing was changed.
    #[error("write `{key}`: another writer changed it first")]
    Conflict {
        /// The first record whose version was not the expected one.
        key: String,
    },
    /// Another owner holds the requested lease.
    #[error("take the lease on `{}`: {_0}", _0.key)]
    Held(Box<Holder>),
    /// The lease of a batch has expired, was released, or is held by another owner. Nothing was changed.
    #[error("write under the lease on `{key}`: it has expired, or another owner has taken it")]
    LeaseLost {
        /// What was held.
        key: String,
    },
    /// The key is too long.
    #[error("key `{begin}…` of {len} bytes: longer than {max}")]
    KeyTooLong {
        /// What it begins with.
        begin: String,
        /// How long it is.
        len: usize,
        /// How long it may be.
        max: usize,
    },
    /// The key is reserved for the engine.
    #[error("key `{key}`: it is reserved for the engine\nhint: use another key")]
    Reserved {
        /// The layer's key.
        key: String,
    },
    /// The disk, the network or the database failed; a retry may help.
    #[error("{doing}")]
    Io {
        /// What was tried, on what.
        doing: String,
        /// What stopped it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A stored record is not in the format of this program.
    #[error("read `{key}`: {reason}")]
    Corrupt {
        /// The key.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl StoreError {
    /// The error for a key longer than [`MAX_KEY_BYTES`].
    pub fn key_too_long(key: &str) -> Self {
        StoreError::KeyTooLong { begin: key.chars().take(80).collect(), len: key.len(), max: MAX_KEY_BYTES }
    }
}

/// The longest key that every store must accept, in bytes.
///
/// This is enough for several ids of 10 kB in one key, with every byte escaped to three.
pub const MAX_KEY_BYTES: usize = 128 * 1024;

/// A store of records under text keys.
///
/// The engine calls `get_many` and `list` when a thread is opened, and `apply` at the end of every step. A turn begins
/// with `acquire_lease`, names the lease in every `apply`, calls `renew_lease` while it runs, and drops the lease when
/// it ends. Layers use it through [`ScopedStorage`]. All methods may be called from several tasks at once.
///
/// Requirements for an implementation:
/// - When `set`, `delete`, `apply` or `compare_and_set` has returned `Ok`, the change survives a crash of the
///   process and, for a store on disk, of the machine.
/// - `apply` is atomic: after a crash at any moment either all of a batch is there or nothing.
/// - Readers see whole batches, never part of one.
/// - An error means that nothing was changed, or (only for [`StoreError::Io`]) that the outcome is unknown; the caller
///   reads again before it decides.
/// - A lease on a key has at most one holder. It ends when the holder drops it or dies, or when it expires by the
///   store's own clock. A batch whose [`fence`](Batch::fence) is not in force changes nothing.
/// - Keys are any text up to [`MAX_KEY_BYTES`], including NUL, and are compared byte by byte.
///
/// `contexture_core::testing::store_conformance` checks all of this.
pub trait StorageAdapter: Send + Sync {
    /// Returns the record under `key`.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>>;

    /// Returns the keys that start with `prefix`, in byte order.
    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;

    /// Makes all changes of the batch or none, and returns the version that the changed records have now.
    ///
    /// All records of one batch get the same version.
    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>>;

    /// Returns the records under `keys`, in their order, all from one moment.
    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>>;

    /// Acquires the lease on a key, or returns [`StoreError::Held`] with its current holder.
    ///
    /// It lasts for the requested duration by the store's clock, and ends at once when it is dropped or when its owner on
    /// the same machine dies. Leases and records have separate keys, and a lease need not survive a crash of the machine
    /// that its owner runs on.
    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>>;

    /// Extends a lease to `duration` from now.
    ///
    /// An expired lease can be renewed as long as nobody else has acquired it; after that, and once it was dropped,
    /// returns [`StoreError::LeaseLost`].
    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes from the disk what deleted and replaced records left there, as far as others who use the store allow it.
    ///
    /// Called after something was forgotten, so that it cannot be read from the files either; ordinary writes do without.
    /// Default: nothing.
    fn scrub(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Sets `key` to `value`.
    fn set<'a>(&'a self, key: &'a str, value: Vec<u8>) -> BoxFuture<'a, Result<Version, StoreError>> {
        self.apply(Batch::new().set(key, value))
    }

    /// Removes `key` if it exists.
    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let applied = self.apply(Batch::new().delete(key));
        Box::pin(async move { applied.await.map(|_| ()) })
    }

    /// Sets `key` to `value` if its record still has the version `expected` (`None`: does not exist).
    ///
    /// Otherwise nothing changes and [`StoreError::Conflict`] is returned.
    fn compare_and_set<'a>(
        &'a self,
        key: &'a str,
        expected: Option<Version>,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Version, StoreError>> {
        self.apply(Batch::new().expect(key, expected).set(key, value))
    }
}
