//! The threads that read, each with its own connection.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use contexture_core::store::{Record, StoreError, Version};
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::{mpsc, oneshot};

use super::file::open_reader;
use super::{store_error, thread_ended};
use crate::open_error::OpenError;

/// How many reads run at once.
const READER_THREADS: usize = 2;

/// The length of the queue; further callers wait to enter it.
const QUEUE_LEN: usize = 256;

type ReadJob = Box<dyn FnOnce(&mut Connection) + Send>;

/// The threads, and the queue in front of them. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Readers {
    path: Arc<PathBuf>,
    /// `None` only while dropping: closing the queue is what ends the threads.
    queue: Option<mpsc::Sender<ReadJob>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(path: &Arc<PathBuf>) -> Result<Self, OpenError> {
        let (queue, jobs) = mpsc::channel(QUEUE_LEN);
        let jobs = Arc::new(Mutex::new(jobs));
        let mut readers = Readers { path: path.clone(), queue: Some(queue), threads: Vec::new() };
        for _ in 0..READER_THREADS {
            let (connection, jobs) = (open_reader(path)?, jobs.clone());
            let thread = std::thread::Builder::new()
                .name("contexture-store-reader".to_owned())
                .spawn(move || run(connection, &jobs))
                .map_err(|error| OpenError::io(path, error))?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let asked_key = key.to_owned();
        let found = self.read(move |connection| select(connection, &asked_key)).await;
        self.answer(found, key)
    }

    pub(super) async fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Record>>, StoreError> {
        let asked_keys = keys.to_vec();
        let found = self.read(move |connection| select_many(connection, &asked_keys)).await;
        self.answer(found, keys.first().map_or("", String::as_str))
    }

    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let asked_prefix = prefix.to_owned();
        let found = self.read(move |connection| select_keys(connection, &asked_prefix)).await;
        self.answer(found, prefix)?.into_iter().map(text_key).collect()
    }

    /// Runs `work` on one of the threads; `None` if they have ended.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Option<rusqlite::Result<T>> {
        let (answer, answered) = oneshot::channel();
        let job: ReadJob = Box::new(move |connection| {
            // The receiver is gone if the caller was dropped.
            let _ = answer.send(work(connection));
        });
        self.queue.as_ref()?.send(job).await.ok()?;
        answered.await.ok()
    }

    fn answer<T>(&self, found: Option<rusqlite::Result<T>>, key: &str) -> Result<T, StoreError> {
        let read = || format!("read `{}`", shortened(key));
        match found {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(store_error(&read(), key, &self.path, error)),
            None => Err(thread_ended(&read(), &self.path)),
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            // A panic was printed on standard error; there is nothing to do here.
            let _ = thread.join();
        }
    }
}

/// Processes the queue until it is closed.
fn run(mut connection: Connection, jobs: &Mutex<mpsc::Receiver<ReadJob>>) {
    loop {
        // The thread that holds the lock waits for the next job, and the others wait for the lock.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        match job {
            Some(job) => job(&mut connection),
            None => return,
        }
    }
}

fn select(connection: &Connection, key: &str) -> rusqlite::Result<Option<Record>> {
    let mut statement = connection.prepare_cached("SELECT version, value FROM records WHERE key = ?1")?;
    let record = |row: &rusqlite::Row<'_>| {
        let version: i64 = row.get(0)?;
        Ok(Record { value: row.get(1)?, version: Version(version.unsigned_abs()) })
    };
    statement.query_row(params![key.as_bytes()], record).optional()
}

/// Reads within one transaction, so from one moment.
fn select_many(connection: &mut Connection, keys: &[String]) -> rusqlite::Result<Vec<Option<Record>>> {
    let transaction = connection.transaction()?;
    let records = keys.iter().map(|key| select(&transaction, key)).collect::<rusqlite::Result<_>>()?;
    transaction.commit()?;
    Ok(records)
}

/// Scans one range of the index of keys.
fn select_keys(connection: &mut Connection, prefix: &str) -> rusqlite::Result<Vec<Vec<u8>>> {
    let Some(end) = range_end(prefix) else {
        let mut statement = connection.prepare_cached("SELECT key FROM records ORDER BY key")?;
        return statement.query_map([], |row| row.get(0))?.collect();
    };
    let mut statement =
        connection.prepare_cached("SELECT key FROM records WHERE key >= ?1 AND key < ?2 ORDER BY key")?;
    statement.query_map(params![prefix.as_bytes(), end], |row| row.get(0))?.collect()
}

/// The first bytes after everything that starts with `prefix`; `None` if it is empty.
fn range_end(prefix: &str) -> Option<Vec<u8>> {
    let mut end = prefix.as_bytes().to_vec();
    // No byte of UTF-8 is 0xFF, so this never overflows.
    *end.last_mut()? += 1;
    Some(end)
}

fn text_key(key: Vec<u8>) -> Result<String, StoreError> {
    String::from_utf8(key).map_err(|error| StoreError::Corrupt {
        key: String::from_utf8_lossy(error.as_bytes()).into_owned(),
        reason: "the key is not text".to_owned(),
    })
}

/// A key shortened for a message.
fn shortened(key: &str) -> &str {
    const SHOWN_BYTES: usize = 200;
    &key[..key.floor_char_boundary(SHOWN_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_right_behind_the_last_key_with_the_prefix() {
        assert_eq!(range_end(""), None);
        assert_eq!(range_end("a"), Some(b"b".to_vec()));
        assert_eq!(range_end("\u{10FFFF}"), Some(vec![0xF4, 0x8F, 0xBF, 0xC0]));
    }

    proptest::proptest! {
        #[test]
        fn a_key_is_in_the_range_exactly_if_it_has_the_prefix(prefix in "[ab\u{10FFFF}]{1,3}", key in "[abc\u{10FFFF}]{0,5}") {
            let end = range_end(&prefix).expect("the prefix is not empty");
            let in_range = prefix.as_bytes() <= key.as_bytes() && key.as_bytes() < end.as_slice();
            proptest::prop_assert_eq!(in_range, key.starts_with(&prefix));
        }
    }

    #[test]
    fn listing_walks_the_index_and_never_the_table() {
        let directory = tempfile::tempdir().unwrap();
        let connection = super::super::file::open(&directory.path().join("store.db")).unwrap();
        let plan: String = connection
            .query_row(
                "EXPLAIN QUERY PLAN SELECT key FROM records WHERE key >= x'61' AND key < x'62' ORDER BY key",
                [],
                |row| row.get("detail"),
            )
            .unwrap();
        assert!(plan.starts_with("SEARCH records USING COVERING INDEX"), "the plan is: {plan}");
    }
}
