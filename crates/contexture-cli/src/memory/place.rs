//! Where memory is kept, and whose it is.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use contexture::recall::PastIndex;
use contexture::store::SqliteIndex;

use crate::failure::Failure;

/// The store, and the thread in it.
#[derive(Args)]
pub(super) struct Place {
    /// The store: a SQLite file
    #[arg(long, value_name = "DB")]
    pub(super) store: PathBuf,
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
    pub(super) fn past(&self) -> PastIndex {
        PastIndex::new(Arc::new(SqliteIndex::new(&self.store)), &self.scope_key())
    }

    /// Fails if there is no store.
    pub(super) fn must_exist(&self) -> Result<(), Failure> {
        if self.store.is_file() {
            return Ok(());
        }
        Err(Failure::work(format!("there is no store `{}`", self.store.display()))
            .hint("`contexture memory import` creates one"))
    }
}
