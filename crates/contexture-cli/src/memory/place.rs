//! Where memory is kept, and whose it is.

use std::sync::Arc;

use contexture::recall::PastIndex;
use contexture::search::SearchIndex;
use contexture::store::{Place as StorePlace, PostgresStore, SqliteIndex};

use crate::failure::Failure;
use crate::store::Looked;

/// The store, and the thread in it.
pub(super) struct MemoryPlace {
    /// The store: a SQLite file, or a database.
    pub(super) store: StorePlace,
    /// The conversation.
    pub(super) thread: String,
    /// The user whose memory it is; without one, that of the conversation alone.
    pub(super) resource: Option<String>,
}

impl MemoryPlace {
    /// The scope as layers name it.
    pub(super) fn scope_key(&self) -> String {
        match &self.resource {
            Some(resource) => format!("resource:{resource}"),
            None => format!("thread:{}", self.thread),
        }
    }

    /// Whose conversations are searched.
    pub(super) fn in_words(&self) -> String {
        match &self.resource {
            Some(resource) => format!("the user `{resource}`"),
            None => format!("the thread `{}`", self.thread),
        }
    }

    /// The passages of past conversations.
    ///
    /// # Errors
    /// The store is a database whose address cannot be used.
    pub(super) fn past(&self) -> Result<PastIndex, Failure> {
        self.past_in(None)
    }

    /// The same, in a copy of the file.
    pub(super) fn past_in(&self, looked: Option<&Looked>) -> Result<PastIndex, Failure> {
        let index: Arc<dyn SearchIndex> = match &self.store {
            StorePlace::File(path) => Arc::new(SqliteIndex::new(looked.map_or(path.as_path(), Looked::path))),
            StorePlace::Postgres(url) => {
                let store = PostgresStore::open(url).map_err(|error| Failure::of(&error))?;
                Arc::new(store.index())
            }
        };
        Ok(PastIndex::new(index, &self.scope_key()))
    }

    /// The file to look into: also one that this user cannot change.
    pub(super) fn look(&self) -> Result<Option<Looked>, Failure> {
        match &self.store {
            StorePlace::File(path) => Looked::open(path).map(Some),
            StorePlace::Postgres(_) => Ok(None),
        }
    }

    /// Fails if there is no store.
    pub(super) async fn must_exist(&self) -> Result<(), Failure> {
        match &self.store {
            StorePlace::File(path) if path.is_file() => Ok(()),
            StorePlace::File(path) => Err(Failure::work(format!("there is no store `{}`", path.display()))
                .hint("`contexture memory import` creates one")),
            StorePlace::Postgres(url) => {
                let store = PostgresStore::open_existing(url).map_err(|error| Failure::of(&error))?;
                store.check().await.map_err(|error| Failure::of(&error))
            }
        }
    }
}
