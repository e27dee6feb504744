//! The threads of a directory.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use contexture::id::IdSource;
use contexture::store::{Batch, Key, StorageAdapter, StoreError};
use contexture_text::spoken::title_of;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};

/// What is said if there is none.
pub(super) const NONE_YET: &str = "There is no thread of this directory yet.\n";

/// The threads of one directory, in a store.
#[derive(Clone)]
pub(super) struct Threads {
    store: Arc<dyn StorageAdapter>,
    directory: String,
}

/// What is kept of a thread beside its log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ThreadRecord {
    pub(super) id: String,
    /// How its first message begins.
    pub(super) title: String,
    pub(super) used_ms: u64,
}

impl Threads {
    pub(super) fn new(store: Arc<dyn StorageAdapter>, directory: &Path) -> Self {
        Self { store, directory: directory.to_string_lossy().into_owned() }
    }

    /// A new id, short enough to be typed.
    pub(super) fn fresh_id() -> String {
        let id = contexture::host::UuidIds.fresh();
        id.get(id.len().saturating_sub(8)..).unwrap_or(&id).to_owned()
    }

    fn key(&self) -> Key {
        Key::new("chat").then("threads").then(&self.directory)
    }

    /// All of them, those that were used last first.
    pub(super) async fn list(&self) -> Result<Vec<ThreadRecord>, Failure> {
        let keys = self.store.list(&self.key().into_prefix()).await.map_err(store_failed)?;
        let records = self.store.get_many(&keys).await.map_err(store_failed)?;
        let read = |record: contexture::store::Record| serde_json::from_slice(&record.value).ok();
        let mut threads: Vec<ThreadRecord> = records.into_iter().flatten().filter_map(read).collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.used_ms));
        Ok(threads)
    }

    /// The one that was used last.
    pub(super) async fn newest(&self) -> Result<String, Failure> {
        let newest = self.list().await?.into_iter().next();
        newest.map(|thread| thread.id).ok_or_else(|| {
            Failure::usage("there is no thread of this directory yet").hint("leave out `--continue` to begin one")
        })
    }

    /// The one whose id begins so.
    pub(super) async fn named(&self, begin: &str) -> Result<String, Failure> {
        let threads = self.list().await?;
        let found: Vec<_> = threads.into_iter().filter(|thread| thread.id.starts_with(begin)).collect();
        match found.as_slice() {
            [one] => Ok(one.id.clone()),
            [] => Err(Failure::usage(format!("this directory has no thread `{begin}`"))
                .hint("`contexture chat --threads` lists its threads")),
            several => {
                Err(Failure::usage(format!("{} threads begin with `{begin}`", several.len()))
                    .hint("write more of the id"))
            }
        }
    }

    /// Keeps that a thread is used now. The first message is its title.
    pub(super) async fn note(&self, id: &str, message: &str) -> Result<(), Failure> {
        let key = self.key().then(id).into_string();
        let known = self.store.get(&key).await.map_err(store_failed)?;
        let known = known.and_then(|record| serde_json::from_slice::<ThreadRecord>(&record.value).ok());
        let title = known.map_or_else(|| title_of(message).unwrap_or_default(), |thread| thread.title);
        let record = ThreadRecord { id: id.to_owned(), title, used_ms: now().as_millis() as u64 };
        self.store.set(&key, serde_json::to_vec(&record)?).await.map_err(store_failed)?;
        Ok(())
    }

    /// Forgets a thread; its log is kept by the engine.
    pub(super) async fn remove(&self, id: &str) -> Result<(), Failure> {
        let key = self.key().then(id).into_string();
        self.store.apply(Batch::new().delete(&key)).await.map(drop).map_err(store_failed)
    }

    /// All of them for people.
    pub(super) async fn table(&self, screen: Screen) -> Result<String, Failure> {
        let threads = self.list().await?;
        if threads.is_empty() {
            return Ok(NONE_YET.to_owned());
        }
        let mut table =
            TextTable::new([("thread", Align::Left), ("used", Align::Right), ("begins with", Align::Prose)]);
        for thread in &threads {
            let age = now().saturating_sub(Duration::from_millis(thread.used_ms));
            table.row([thread.id.clone(), ago(age), thread.title.clone()]);
        }
        let next = screen.next("`contexture chat --thread ID` goes on with one, `--continue` with the first.");
        Ok(format!("{}{next}", table.fit(screen)))
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn ago(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..60 => format!("{seconds} s ago"),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} d ago", seconds / 86_400),
    }
}

/// The failure of a store.
pub(super) fn store_failed(error: StoreError) -> Failure {
    Failure::work(format!("use the store: {error}")).hint("`--store PATH` names another one")
}
