//! Where memory is kept, and whose it is.

use std::sync::Arc;

use clap::Args;
use contexture::recall::PastIndex;
use contexture::search::SearchIndex;
use contexture::store::{Place as StorePlace, PostgresStore, SqliteIndex};

use crate::failure::Failure;
use crate::store;

/// The store, and the thread in it.
#[derive(Args)]
pub(super) struct Place {
    /// The store: a SQLite file, or a database (postgres://user@host/database)
    #[arg(long, value_name = "DB", value_parser = store::place)]
    pub(super) store: StorePlace,
    /// The conversation
    #[arg(long, value_name = "ID")]
    pub(super) thread: String,
    /// The user whose memory it is; without one, that of the conversation alone
    #[arg(long, value_name = "ID")]
    pub(super) resource: Option<String>,
}

impl Place {
    /// The scope as layers name it.
    pub(super) fn scope_key(&self) -> String {
        match &self.resource {
            Some(resource) => format!("resource:{resource}"),
            None => format!("thread:{}", self.thread),
        }
    }

    /// The passages of past conversations.
    ///
    /// # Errors
    /// The store is a database whose address cannot be used.
    pub(super) fn past(&self) -> Result<PastIndex, Failure> {
        let index: Arc<dyn SearchIndex> = match &self.store {
            StorePlace::File(path) => Arc::new(SqliteIndex::new(path)),
            StorePlace::Postgres(url) => {
                let store = PostgresStore::open(url).map_err(|error| Failure::of(&error))?;
                Arc::new(store.index())
            }
        };
        Ok(PastIndex::new(index, &self.scope_key()))
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
