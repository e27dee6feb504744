//! Where the gateway's store is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use contexture::store::Place;
use contexture_gateway::{Store, StoreError, is_store, open_store, open_store_to_read};
use contexture_inspect::ARCHIVE_NAME;

use crate::failure::Failure;
use crate::state_directory::state_directory;
use crate::store;

/// The store in the user's state directory.
pub(super) fn store_path() -> Result<PathBuf, Failure> {
    Ok(state_directory()?.join("gateway.db"))
}

/// The gateway's store in the user's state directory, if there is one.
pub(crate) fn existing_store() -> Result<Option<Arc<dyn Store>>, Failure> {
    StoreFlag::default().existing()
}

/// Why a file cannot be opened, with a hint that is safe to follow: only what is known to be the gateway's may be deleted.
pub(super) fn unopened(path: &Path, error: &StoreError) -> Failure {
    let failure = Failure::work(format!("{error}"));
    let shown = path.display();
    match error {
        StoreError::Newer(_) => failure.hint("use that version of the program, or name another file with --store"),
        _ if error.is_unwritable() => {
            failure.hint(format!("`{shown}` and the directory that it is in belong to somebody else, or are on a disk that is full or read-only"))
        }
        _ if is_store(path) => {
            failure.hint("`contexture store check` names what is damaged; a gateway that starts with it goes on with what is whole")
        }
        _ => failure.hint(format!(
            "name a store of the gateway with --store; `contexture inspect '{shown}'` shows what others hold"
        )),
    }
}

/// The flag that names the store of gateways.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct StoreFlag {
    /// The gateway's store: a file, or a database that several machines share (postgres://user@host/database)
    #[arg(long, value_name = "STORE", value_parser = store::place)]
    store: Option<Place>,
}

impl StoreFlag {
    /// The store that was named, or the one in the user's state directory.
    pub(super) fn path(&self) -> Result<PathBuf, Failure> {
        self.store.as_ref().map_or_else(store_path, |place| Ok(store::path_of(place)))
    }

    /// The store, if there is one. One that cannot be written is only read.
    pub(super) fn existing(&self) -> Result<Option<Arc<dyn Store>>, Failure> {
        let path = self.path()?;
        match Place::new(&path) {
            Place::File(path) => match path.try_exists() {
                Ok(false) => Ok(None),
                Ok(true) => Ok(Some(open_store_to_read(&path).map_err(|error| unopened(&path, &error))?)),
                Err(error) => Err(Failure::work(format!("open the store `{}`: {error}", path.display()))
                    .hint("the directory belongs to another user; name a store with --store")),
            },
            Place::Postgres(_) => Ok(Some(open_store(&path).map_err(|error| Failure::of(&error))?)),
        }
    }

    /// The store's file; a database has none.
    pub(super) fn file(&self) -> Result<Option<PathBuf>, Failure> {
        Ok(match Place::new(&self.path()?) {
            Place::File(path) => Some(path),
            Place::Postgres(_) => None,
        })
    }

    /// The file beside the store in which the inspector keeps windows; there is none beside a database.
    pub(super) fn archive(&self) -> Result<Option<PathBuf>, Failure> {
        Ok(self.file()?.map(|path| path.with_file_name(ARCHIVE_NAME)))
    }
}
