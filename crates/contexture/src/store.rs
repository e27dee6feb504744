//! Durable storage: the contract of the core, the embedded store, and the one for many machines.

pub use contexture_core::store::{
    Batch, Change, Expectation, Fence, Holder, Key, Lease, LeaseRequest, LeaseTable, MAX_KEY_BYTES, MemoryStore,
    Record, ScopedStorage, StorageAdapter, StoreError, Version, escape_segment, layer_prefix, unescape_segment,
};
#[cfg(all(feature = "sqlite", feature = "postgres"))]
pub use contexture_store::{CheckError, Checked, Copied, CopyError, CopyProgress, Finding, check, copy};
pub use contexture_store::{OpenError, PairedStore, Place, SystemClock};
#[cfg(feature = "postgres")]
pub use contexture_store::{PostgresError, PostgresIndex, PostgresStore};
#[cfg(feature = "sqlite")]
pub use contexture_store::{SqliteIndex, SqliteStore};
