//! What the thread of the embedded store writes: batches, which are committed together, and leases between them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contexture_core::clock::Clock;
use contexture_core::store::{Batch, Change, Expectation, Fence, Lease, LeaseRequest, StoreError, Version};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::file::open_unsynced;
use super::lease::{self, AcquiredLease};
use super::lease_lock::LeaseLock;
use super::{store_error, thread_ended};
use crate::database::{Commits, WeakWriter, Writer};
use crate::open_error::OpenError;

/// How many callers have a place in the queue; further ones wait for one.
const QUEUE_LEN: usize = 256;

type WriteAnswer = Result<Version, StoreError>;

/// A job of the thread, and its caller.
enum WriteJob {
    Write { batch: Batch, answer: oneshot::Sender<WriteAnswer> },
    Acquire { request: LeaseRequest, answer: oneshot::Sender<Result<AcquiredLease, StoreError>> },
    Renew { fence: Fence, duration: Duration, answer: oneshot::Sender<Result<(), StoreError>> },
    Release { fence: Fence },
}

/// Releases a lease when it is dropped: the lock at once, and the row when the thread processes it.
struct SqliteLease {
    fence: Fence,
    lock: Option<LeaseLock>,
    queue: WeakWriter<WriteJob>,
}

impl Drop for SqliteLease {
    fn drop(&mut self) {
        self.lock = None;
        // If the queue is full the row stays; without its lock it counts as that of a dead owner.
        self.queue.try_enter(WriteJob::Release { fence: self.fence.clone() });
    }
}

/// The thread that writes. Dropping it finishes what is in its queue.
#[derive(Debug)]
pub(super) struct StoreWriter {
    path: Arc<PathBuf>,
    writer: Writer<WriteJob>,
}

impl StoreWriter {
    pub(super) fn start(path: Arc<PathBuf>, connection: Connection, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let work = WriterThread { connection, unsynced: None, clock, path: path.clone() };
        let writer = Writer::start("contexture-store-writer", QUEUE_LEN, work);
        let writer = writer.map_err(|error| OpenError::io(&path, error))?;
        Ok(Self { path, writer })
    }

    pub(super) async fn apply(&self, batch: Batch) -> WriteAnswer {
        self.ask("write", |answer| WriteJob::Write { batch, answer }).await
    }

    pub(super) async fn acquire(&self, request: LeaseRequest) -> Result<Lease, StoreError> {
        let AcquiredLease { fence, lock } =
            self.ask("take a lease", |answer| WriteJob::Acquire { request, answer }).await?;
        Ok(Lease::new(fence.clone(), SqliteLease { fence, lock, queue: self.writer.downgrade() }))
    }

    pub(super) async fn renew(&self, fence: Fence, duration: Duration) -> Result<(), StoreError> {
        self.ask("renew a lease", |answer| WriteJob::Renew { fence, duration, answer }).await
    }

    async fn ask<T>(
        &self,
        doing: &str,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> WriteJob,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.writer.enter(job(answer)).await;
        answered.await.map_err(|_| thread_ended(doing, &self.path))?
    }
}

/// The state of the thread.
struct WriterThread {
    connection: Connection,
    /// The connection for leases, which need not survive a power cut, since their owners do not. Opened on first use.
    unsynced: Option<Connection>,
    clock: Arc<dyn Clock>,
    path: Arc<PathBuf>,
}

impl Commits for WriterThread {
    type Job = WriteJob;
    type Outcome = WriteAnswer;
    type Error = rusqlite::Error;

    const MOST_TOGETHER: usize = 64;

    fn is_alone(job: &WriteJob) -> bool {
        !matches!(job, WriteJob::Write { .. })
    }

    /// A batch is refused before its first change is made, so refusing one needs no undoing.
    fn transact(&mut self, jobs: &[WriteJob]) -> rusqlite::Result<Vec<WriteAnswer>> {
        let batches = jobs.iter().filter_map(|job| match job {
            WriteJob::Write { batch, .. } => Some(batch),
            _ => None,
        });
        apply(&mut self.connection, batches, self.clock.now())
    }

    fn tell(&mut self, job: WriteJob, outcome: rusqlite::Result<WriteAnswer>) {
        if let WriteJob::Write { batch, answer } = job {
            // The receiver is gone if the caller was dropped; the batch was applied all the same.
            let _ = answer.send(outcome.unwrap_or_else(|error| Err(write_error(&batch, &self.path, error))));
        }
    }

    fn do_alone(&mut self, job: WriteJob) {
        self.lease(job);
    }
}

impl WriterThread {
    /// If the caller was dropped, the lease is released, lock first.
    fn lease(&mut self, job: WriteJob) {
        let (now, path) = (self.clock.now(), self.path.clone());
        let connection = self.unsynced();
        match job {
            WriteJob::Acquire { request, answer } => {
                let given = connection.and_then(|connection| lease::acquire(connection, &path, &request, now));
                if let Err(Ok(AcquiredLease { fence, lock })) = answer.send(given) {
                    drop(lock);
                    self.lease(WriteJob::Release { fence });
                }
            }
            WriteJob::Renew { fence, duration, answer } => {
                let renewed = connection.and_then(|connection| lease::renew(connection, &path, &fence, duration, now));
                let _ = answer.send(renewed);
            }
            WriteJob::Release { fence } => {
                // A row that stays counts as that of a dead owner.
                let _ = connection.map(|connection| lease::release(connection, &fence));
            }
            WriteJob::Write { .. } => unreachable!("batches are committed with those behind them"),
        }
    }

    fn unsynced(&mut self) -> Result<&mut Connection, StoreError> {
        if self.unsynced.is_none() {
            let opened = open_unsynced(&self.path);
            self.unsynced = Some(opened.map_err(|error| store_error("take a lease", "", &self.path, error))?);
        }
        Ok(self.unsynced.as_mut().expect("it was just opened"))
    }
}

/// Applies or rejects each batch, in one transaction.
fn apply<'a>(
    connection: &mut Connection,
    batches: impl Iterator<Item = &'a Batch>,
    now: Duration,
) -> rusqlite::Result<Vec<WriteAnswer>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let first: i64 = transaction.prepare_cached("SELECT last_version FROM counter")?.query_row([], |row| row.get(0))?;
    let mut version = first;
    let mut answers = Vec::new();
    for batch in batches {
        if let Some(fence) = &batch.fence
            && !lease::is_in_force(&transaction, fence, now)?
        {
            answers.push(Err(StoreError::LeaseLost { key: fence.key.clone() }));
            continue;
        }
        if let Some(broken) = first_broken(&transaction, &batch.expectations)? {
            answers.push(Err(StoreError::Conflict { key: broken.key.clone() }));
            continue;
        }
        version += 1;
        make_changes(&transaction, &batch.changes, version)?;
        answers.push(Ok(Version(version.unsigned_abs())));
    }
    if version > first {
        transaction.prepare_cached("UPDATE counter SET last_version = ?1")?.execute([version])?;
    }
    transaction.commit()?;
    Ok(answers)
}

/// The first expectation that does not hold.
fn first_broken<'a>(
    connection: &Connection,
    expectations: &'a [Expectation],
) -> rusqlite::Result<Option<&'a Expectation>> {
    let mut statement = connection.prepare_cached("SELECT version FROM records WHERE key = ?1")?;
    for expectation in expectations {
        let found: Option<i64> = statement.query_row([expectation.key.as_bytes()], |row| row.get(0)).optional()?;
        if found.map(|version| Version(version.unsigned_abs())) != expectation.version {
            return Ok(Some(expectation));
        }
    }
    Ok(None)
}

fn make_changes(connection: &Connection, changes: &[Change], version: i64) -> rusqlite::Result<()> {
    // Overwritten in place: the row keeps its position in the file, and the index of the keys does not change.
    let mut set = connection.prepare_cached(
        "INSERT INTO records (version, key, value) VALUES (?1, ?2, ?3)
         ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value",
    )?;
    let mut delete = connection.prepare_cached("DELETE FROM records WHERE key = ?1")?;
    for change in changes {
        match change {
            Change::Set { key, value } => set.execute(params![version, key.as_bytes(), value])?,
            Change::Delete { key } => delete.execute([key.as_bytes()])?,
        };
    }
    Ok(())
}

fn write_error(batch: &Batch, path: &Path, error: rusqlite::Error) -> StoreError {
    let key = match batch.changes.first() {
        Some(Change::Set { key, .. } | Change::Delete { key }) => key,
        None => "",
    };
    let doing = match batch.changes.len().saturating_sub(1) {
        0 => format!("write `{key}`"),
        others => format!("write `{key}` and {others} more"),
    };
    store_error(&doing, key, path, error)
}

#[cfg(test)]
mod tests {
    use rusqlite::OpenFlags;

    use super::super::file;
    use super::*;
    use crate::SystemClock;
    use crate::database::commit;

    fn outcome(answer: &WriteAnswer) -> &'static str {
        match answer {
            Ok(_) => "ok",
            Err(StoreError::Conflict { .. }) => "conflict",
            Err(StoreError::Io { .. }) => "io",
            Err(_) => "other",
        }
    }

    /// What becomes of batches that come at the same time, and the connection afterwards.
    fn committed(connection: Connection, batches: impl IntoIterator<Item = Batch>) -> (Vec<WriteAnswer>, Connection) {
        let (clock, path) = (Arc::new(SystemClock::new()), Arc::new(PathBuf::from("store.db")));
        let mut thread = WriterThread { connection, unsynced: None, clock, path };
        let (jobs, answers): (_, Vec<_>) = batches
            .into_iter()
            .map(|batch| {
                let (answer, answered) = oneshot::channel();
                (WriteJob::Write { batch, answer }, answered)
            })
            .unzip();
        commit(&mut thread, jobs);
        (answers.into_iter().map(|mut answered| answered.try_recv().unwrap()).collect(), thread.connection)
    }

    /// One write too large for the disk, in the middle of others that fit.
    #[test]
    fn a_full_disk_fails_only_what_does_not_fit() {
        let directory = tempfile::tempdir().unwrap();
        let connection = file::open(&directory.path().join("store.db")).unwrap();
        connection.pragma_update(None, "max_page_count", 30).unwrap();
        let batches = [
            Batch::new().set("a", b"1".to_vec()),
            Batch::new().set("b", b"1".to_vec()).set("large", vec![0; 1_000_000]),
            Batch::new().expect("a", None).set("a", b"2".to_vec()),
            Batch::new().expect("b", None).set("b", b"3".to_vec()),
        ];
        let (answers, connection) = committed(connection, batches);
        assert_eq!(answers.iter().map(outcome).collect::<Vec<_>>(), ["ok", "io", "conflict", "ok"]);
        let kept: String = connection
            .query_row("SELECT group_concat(key || '=' || value, ' ') FROM readable", [], |row| row.get(0))
            .unwrap();
        assert_eq!(kept, "a=1 b=3");
    }

    #[test]
    fn what_cannot_be_written_is_told_plainly() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let _open = file::open(&path).unwrap();
        let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let batch = Batch::new().set("a", b"1".to_vec()).delete("b");
        let error = committed(connection, [batch]).0.remove(0).unwrap_err();
        assert_eq!(error.to_string(), "write `a` and 1 more in store `store.db`");
        let cause = std::error::Error::source(&error).unwrap();
        assert_eq!(cause.to_string(), "attempt to write a readonly database");
    }
}
