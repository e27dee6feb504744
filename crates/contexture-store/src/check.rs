//! Looks for damage in a store, and changes nothing.

use super::judge::Checked;
use super::{OpenError, Place, PostgresStore, sqlite};

/// Why a store could not be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// There is none.
    #[error("there is no store at `{0}`\nhint: check the path; a database is named as `postgres://user@host/database`")]
    Missing(String),
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] contexture_core::store::StoreError),
}

/// Looks for damage in a store: in its database, in the records of threads and states, and in the search index.
///
/// Everything is read as of one moment, so agents may go on meanwhile. `told` is called with the number of records read
/// so far and the number of all.
///
/// # Errors
/// There is no store, or it cannot be opened. What is damaged is not an error, but a [`Finding`](super::Finding).
pub async fn check(place: &Place, told: &mut (dyn FnMut(u64, u64) + Send)) -> Result<Checked, CheckError> {
    match place {
        Place::File(path) if !path.exists() => Err(CheckError::Missing(place.to_string())),
        // It blocks; whoever checks a store waits for that alone.
        Place::File(path) => Ok(sqlite::look(path, told)?),
        Place::Postgres(url) => {
            let store = PostgresStore::open_existing(url).map_err(OpenError::from)?;
            store.check().await.map_err(OpenError::from)?;
            Ok(store.look(told).await?)
        }
    }
}
