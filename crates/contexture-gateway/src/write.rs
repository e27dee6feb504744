//! Writes conversations, decisions and records, and reads them again: into a file of this machine, or a database that many share.

mod error;
mod file;
mod room;
mod saving;
mod store;
mod sums;
pub(crate) mod keeper;
mod read;
mod sqlite;
#[cfg(feature = "postgres")]
mod waiting;
#[cfg(feature = "postgres")]
mod records;
#[cfg(feature = "postgres")]
mod shared;

use std::path::Path;
use std::sync::Arc;

use contexture::store::Place;

pub use error::StoreError;
pub use file::{CheckedFile, RowCheck, check_database, check_store_file, copy_database, copy_store_file};
pub(crate) use saving::KeptVersion;
pub use saving::{PendingWrite, RecordPlace, Saving};
use sqlite::{DamagePolicy, GatewayFileStore};
pub use store::{RunningGateway, ShownText, Store};

/// Largest store, unless another limit is set.
const MOST_BYTES: u64 = 1 << 30;

/// Opens a store, and creates it if it does not exist: a file, or a database as `postgres://user@host/database`.
///
/// # Errors
/// The file cannot be created or read, or the database cannot be used.
pub fn open_store(place: &Path) -> Result<Arc<dyn Store>, StoreError> {
    open_at(place, MOST_BYTES, DamagePolicy::Fail)
}

/// Opens a store for a gateway, which forgets the least recently used conversations when it has more than so many bytes.
/// A file that is damaged is renamed, and a new one is begun; [`Store::damage`] says so.
///
/// # Errors
/// The file cannot be created or read, or the database cannot be used.
pub(crate) fn open_limited_store(place: &Path, most_bytes: u64) -> Result<Arc<dyn Store>, StoreError> {
    open_at(place, most_bytes, DamagePolicy::PutAside)
}

fn open_at(place: &Path, most_bytes: u64, damaged: DamagePolicy) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match Place::new(place) {
        Place::File(path) => Arc::new(GatewayFileStore::open(&path, most_bytes, damaged)?),
        #[cfg(feature = "postgres")]
        Place::Postgres(url) => Arc::new(shared::SharedStore::open(&url, most_bytes)?),
        #[cfg(not(feature = "postgres"))]
        Place::Postgres(_) => return Err(StoreError::WithoutPostgres),
    })
}

/// Whether a file is a store of the gateway. The file is not changed.
pub fn is_store(path: &Path) -> bool {
    GatewayFileStore::is_at(path)
}

#[cfg(all(test, unix, feature = "postgres"))]
mod tests;
