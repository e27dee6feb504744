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

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

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

/// Opens a store to look into it: one that cannot be written, as on a disk that is read-only, is only read.
///
/// # Errors
/// The file cannot be read, or the database cannot be used.
pub fn open_store_to_read(place: &Path) -> Result<Arc<dyn Store>, StoreError> {
    match (open_store(place), Place::new(place)) {
        (Err(error), Place::File(path)) if error.is_unwritable() => {
            let read = GatewayFileStore::open_to_read(&path);
            read.map(|store| Arc::new(store) as Arc<dyn Store>).map_err(|_| error)
        }
        (opened, _) => opened,
    }
}

/// Deletes the file of a store, with everything beside it that belongs to it, also where there is no room to delete what is
/// in it. Gateways that use it go on without it.
///
/// # Errors
/// A file cannot be deleted.
pub fn delete_store_file(path: &Path) -> io::Result<()> {
    for file in files_of(path)? {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The file of a store and what belongs to it: its log, and files that were put aside because they were damaged.
fn files_of(path: &Path) -> io::Result<Vec<PathBuf>> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Ok(Vec::new()) };
    let name = name.to_string_lossy().into_owned();
    let ours = ["-wal", "-shm", "-damaged"].map(|end| format!("{name}{end}"));
    let aside = format!("{name}.damaged");
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let mut files = vec![path.to_owned()];
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let found = entry.file_name().to_string_lossy().into_owned();
        if ours.contains(&found) || found.starts_with(&aside) {
            files.push(entry.path());
        }
    }
    Ok(files)
}

/// Opens a store for a gateway, which forgets the least recently used conversations when it has more than so many bytes.
/// A file that is damaged is renamed, and a new one is begun with what is whole in it; [`Store::damage`] says so.
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
