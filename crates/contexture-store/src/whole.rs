//! A store as a whole, whichever kind it is: its records and its search index.

use std::path::Path;
use std::sync::Arc;

use contexture_core::search::{SearchDocument, SearchError, SearchIndex};
use contexture_core::store::StorageAdapter;

use super::{OpenError, Place, PostgresError, PostgresIndex, PostgresStore, SqliteIndex, SqliteStore};

/// An open store with its index.
pub(super) struct WholeStore {
    pub(super) records: Arc<dyn StorageAdapter>,
    index: EitherIndex,
}

enum EitherIndex {
    Sqlite(SqliteIndex),
    Postgres(PostgresIndex),
}

/// Why a store that must exist cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExistingError {
    #[error("there is no store at `{0}`\nhint: check the path; a database is named as `postgres://user@host/database`")]
    Missing(String),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Postgres(#[from] PostgresError),
}

impl WholeStore {
    /// Opens a store that exists.
    pub(super) async fn existing(place: &Place) -> Result<Self, ExistingError> {
        match place {
            Place::File(path) if !path.exists() => Err(ExistingError::Missing(place.to_string())),
            Place::File(path) => Self::file(path).map_err(ExistingError::Open),
            Place::Postgres(url) => Ok(Self::database(PostgresStore::open_existing(url)?).await?),
        }
    }

    /// Opens a store, and creates it if it does not exist.
    pub(super) async fn open(place: &Place) -> Result<Self, OpenError> {
        match place {
            Place::File(path) => Self::file(path),
            Place::Postgres(url) => Ok(Self::database(PostgresStore::open(url)?).await?),
        }
    }

    fn file(path: &Path) -> Result<Self, OpenError> {
        let records = Arc::new(SqliteStore::open(path)?);
        Ok(Self { records, index: EitherIndex::Sqlite(SqliteIndex::new(path)) })
    }

    async fn database(store: PostgresStore) -> Result<Self, PostgresError> {
        store.check().await?;
        let index = EitherIndex::Postgres(store.index());
        Ok(Self { records: Arc::new(store), index })
    }

    pub(super) fn index(&self) -> &dyn SearchIndex {
        match &self.index {
            EitherIndex::Sqlite(index) => index,
            EitherIndex::Postgres(index) => index,
        }
    }

    pub(super) async fn scopes(&self) -> Result<Vec<String>, SearchError> {
        match &self.index {
            EitherIndex::Sqlite(index) => index.scopes().await,
            EitherIndex::Postgres(index) => index.scopes().await,
        }
    }

    pub(super) async fn documents(
        &self,
        scope: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<SearchDocument>, SearchError> {
        match &self.index {
            EitherIndex::Sqlite(index) => index.documents(scope, after, most).await,
            EitherIndex::Postgres(index) => index.documents(scope, after, most).await,
        }
    }
}
