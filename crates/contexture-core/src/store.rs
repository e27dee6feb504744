//! Where state lives.
//!
//! A [`StorageAdapter`] keeps records under text keys. Everything durable goes through it: items, layer
//! states, decisions and unfinished turns. [`ScopedStorage`] is one layer's own corner of it.

mod key;
mod lease;
mod memory;
mod scoped;

use std::time::Duration;

use futures_util::future::BoxFuture;

pub use key::{Key, escape_segment, layer_prefix};
pub use lease::{Fence, Holder, Lease, LeaseRequest, LeaseTable};
pub use memory::MemoryStore;
pub use scoped::ScopedStorage;
pub(crate) use scoped::{BACKUP_PREFIX, STATE_KEY, unescape_segment};

/// Tells one writing of a record from every other writing under the same key.
///
/// A store never gives the same version twice for one key, not even after the key was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Version(pub u64);

/// What stands under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The bytes as they were set.
    pub value: Vec<u8>,
    /// Which writing of the key this is.
    pub version: Version,
}

/// One change in a [`Batch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Put this value under the key.
    Set {
        /// Where.
        key: String,
        /// What.
        value: Vec<u8>,
    },
    /// Remove the key; removing what is not there is fine.
    Delete {
        /// Where.
        key: String,
    },
}

/// What must hold for a [`Batch`] to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The record in question.
    pub key: String,
    /// The version it must have, or `None` if it must not exist.
    pub version: Option<Version>,
}

/// Changes that happen together or not at all, and what must hold before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The lease under which it is written. Checked before everything else, in the same transaction.
    pub fence: Option<Fence>,
    /// Checked next, in the same transaction.
    pub expectations: Vec<Expectation>,
    /// Made in order.
    pub changes: Vec<Change>,
}

impl Batch {
    /// A batch that expects nothing and changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets: this lease must be held, or nothing is changed.
    pub fn fenced(mut self, fence: Option<Fence>) -> Self {
        self.fence = fence;
        self
    }

    /// Adds: this record must have this version (`None`: must not exist).
    pub fn expect(mut self, key: impl Into<String>, version: Option<Version>) -> Self {
        self.expectations.push(Expectation { key: key.into(), version });
        self
    }

    /// Adds: put this value under this key.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.changes.push(Change::Set { key: key.into(), value: value.into() });
        self
    }

    /// Adds: remove this key.
    pub fn delete(mut self, key: impl Into<String>) -> Self {
        self.changes.push(Change::Delete { key: key.into() });
        self
    }
}

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An expectation of the batch did not hold. Nothing was changed.
    #[error("write `{key}`: someone else changed it first")]
    Conflict {
        /// The first record that was not as expected.
        key: String,
    },
    /// Somebody else holds the lease that was asked for.
    #[error("take the lease on `{}`: {_0}", _0.key)]
    Held(Box<Holder>),
    /// The lease that a batch names has run out, was let go, or is another's by now. Nothing was changed.
    #[error("write under the lease on `{key}`: it has run out, or someone else has taken it")]
    LeaseLost {
        /// What was held.
        key: String,
    },
    /// The key can't be stored.
    #[error("key `{begin}…` of {len} bytes: longer than {max}")]
    KeyTooLong {
        /// What it begins with.
        begin: String,
        /// How long it is.
        len: usize,
        /// How long it may be.
        max: usize,
    },
    /// The key belongs to the engine.
    #[error("key `{key}`: it is the engine's own\nhint: keep it under another key")]
    Reserved {
        /// The layer's key.
        key: String,
    },
    /// The disk, the network or the database failed; trying again may help.
    #[error("{doing}")]
    Io {
        /// What was tried, on what.
        doing: String,
        /// What stopped it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What is stored is not what this program writes.
    #[error("read `{key}`: {reason}")]
    Corrupt {
        /// Where.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl StoreError {
    /// A key that is longer than any store must take.
    pub fn key_too_long(key: &str) -> Self {
        StoreError::KeyTooLong { begin: key.chars().take(80).collect(), len: key.len(), max: MAX_KEY_BYTES }
    }
}

/// The longest key that every store must take, in bytes.
///
/// Ids of 10 kB, every byte of them escaped to three, several to a key, fit.
pub const MAX_KEY_BYTES: usize = 128 * 1024;

/// A place where records are kept under text keys.
///
/// The engine calls `get_many` and `list` when a thread is opened, and `apply` at the end of every step. A turn begins
/// with `acquire_lease`, is fenced by the lease in every `apply`, calls `renew_lease` while it lasts, and drops the
/// lease when it ends. Layers reach it through [`ScopedStorage`]. All methods may be called from several tasks at once.
///
/// Duties of an implementation:
/// - When `set`, `delete`, `apply` or `compare_and_set` has answered `Ok`, the change survives a crash of the
///   process and, for a store on disk, of the machine.
/// - `apply` is atomic: after a crash at any moment all of a batch is there or nothing.
/// - Readers see whole batches, never half of one.
/// - An error means that nothing was changed, or (for [`StoreError::Io`] only) that it is unknown; the caller
///   reads again before it decides.
/// - Of those who ask for a lease on one key, one gets it, until he drops it or dies, or until it has run out by the
///   store's own clock. A batch whose [`fence`](Batch::fence) is not in force changes nothing.
/// - Keys are any text up to [`MAX_KEY_BYTES`], also with NUL, and are compared byte by byte.
///
/// `contexture_core::testing::store_conformance` checks all of this.
pub trait StorageAdapter: Send + Sync {
    /// The record under `key`.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>>;

    /// The keys that start with `prefix`, in byte order.
    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;

    /// Makes all changes of the batch or none, and says which version the changed records have now.
    ///
    /// All records of one batch get the same version.
    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>>;

    /// The records under `keys`, in their order, all as of one moment.
    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>>;

    /// Gives the lease on a key to the caller, unless somebody else holds it: then [`StoreError::Held`] says who.
    ///
    /// It lasts for the asked duration by the store's clock, and ends at once when it is dropped or when, on the same
    /// machine, its owner dies. A lease is no record: keys of leases and of records never meet, and it need not
    /// survive a crash of the machine that its owner runs on.
    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>>;

    /// Has a lease last for `duration` from now on.
    ///
    /// One that has run out can be renewed as long as nobody else has taken it; after that, and once it was dropped,
    /// the answer is [`StoreError::LeaseLost`].
    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Puts `value` under `key`, whatever stands there.
    fn set<'a>(&'a self, key: &'a str, value: Vec<u8>) -> BoxFuture<'a, Result<Version, StoreError>> {
        self.apply(Batch::new().set(key, value))
    }

    /// Removes `key`, if it is there.
    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let applied = self.apply(Batch::new().delete(key));
        Box::pin(async move { applied.await.map(|_| ()) })
    }

    /// Puts `value` under `key` if the record there still has the version `expected` (`None`: does not exist).
    ///
    /// Otherwise nothing changes and the answer is [`StoreError::Conflict`].
    fn compare_and_set<'a>(
        &'a self,
        key: &'a str,
        expected: Option<Version>,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Version, StoreError>> {
        self.apply(Batch::new().expect(key, expected).set(key, value))
    }
}
