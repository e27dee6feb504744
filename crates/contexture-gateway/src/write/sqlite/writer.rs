//! The one thread that writes to the file. What is begun at the same time is committed together.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use contexture_store::database::{self, Commits, Writer};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::tables;
use crate::conversation::stored::InStore;
use crate::write::error::StoreError;
use crate::write::saving::{RecordPlace, Saving, Writing};
use crate::write::sums::{number, sum};

/// Writes between two looks at the size of the store.
const WRITES_PER_LOOK: u64 = 500;

/// Most conversations that are deleted in a row while others wait.
const MOST_DELETED: usize = 8;

/// Bytes of the write-ahead log from which on its content is moved into the file: the four megabytes of SQLite itself.
const LOG_BYTES: u64 = 4 << 20;

/// Transactions between two looks at the log.
const COMMITS_PER_LOOK: u64 = 32;

/// Something to write.
pub(super) enum StoreJob {
    /// What is new about a conversation.
    Save(Box<Saving>, Writing),
    /// The snapshot of a conversation's folder: its id, its messages, its bytes.
    Snapshot(Arc<str>, usize, Vec<u8>),
    /// The record of a request.
    Record(RecordJob, Writing),
    /// Anything else, which is done by itself.
    Work(Box<dyn FnOnce(&mut Connection) + Send>),
}

/// The record of a request that is written.
pub(super) struct RecordJob {
    pub(super) place: Arc<RecordPlace>,
    pub(super) conversation: Option<String>,
    pub(super) session: String,
    pub(super) time_ms: u64,
    pub(super) text: String,
}

/// The thread that writes. It ends, after everything is written, when this is dropped.
pub(super) struct StoreWriter(Writer<StoreJob>);

impl StoreWriter {
    /// Starts the thread.
    pub(super) fn start(connection: Connection, moving: Connection, path: &Path, most: u64) -> std::io::Result<Self> {
        let (path, move_log) = (path.to_owned(), mover(moving)?);
        let state = WriterState { connection, path, most_bytes: most, is_full: true, writes: 0, commits: 0, move_log };
        // Requests go on while they wait for what they begin, so the queue is not what bounds them.
        Ok(Self(Writer::start("contexture-write", 0, state)?))
    }

    /// Begins to write something, after everything that was begun before.
    pub(super) fn begin(&self, job: StoreJob) {
        self.0.begin(job);
    }

    /// Does something with the connection after everything that was begun before, and waits for it.
    pub(super) fn with<T: Send + 'static>(
        &self,
        time: Duration,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (send, receive) = sync_channel(1);
        self.begin(StoreJob::Work(Box::new(move |connection| {
            // Nobody receives it once the time is up.
            let _ = send.send(work(connection));
        })));
        match receive.recv_timeout(time) {
            Ok(done) => done,
            Err(RecvTimeoutError::Timeout) => Err(StoreError::NotInTime),
            Err(RecvTimeoutError::Disconnected) => Err(StoreError::Closed),
        }
    }
}

struct WriterState {
    connection: Connection,
    path: PathBuf,
    most_bytes: u64,
    /// Whether every commit is synced.
    is_full: bool,
    writes: u64,
    commits: u64,
    move_log: SyncSender<()>,
}

/// What a transaction has written so far, which is in the store only once it is committed.
#[derive(Default)]
struct SoFar {
    saved: HashMap<Arc<str>, InStore>,
    /// The numbers of records, by the names of their places.
    placed: HashMap<String, i64>,
}

/// What a job became.
enum JobResult {
    Saved(Arc<crate::conversation::stored::StoredMark>, InStore),
    Placed(Arc<RecordPlace>, i64),
    Nothing,
}

impl Commits for WriterState {
    type Job = StoreJob;
    type Outcome = Result<JobResult, StoreError>;
    type Error = StoreError;

    const MOST_TOGETHER: usize = 256;

    fn is_alone(job: &StoreJob) -> bool {
        matches!(job, StoreJob::Work(_))
    }

    fn of_all(error: &StoreError) -> Option<fn() -> StoreError> {
        is_busy(error).then_some(|| StoreError::NotInTime)
    }

    fn do_alone(&mut self, job: StoreJob) {
        if let StoreJob::Work(work) = job {
            work(&mut self.connection);
        }
    }

    fn tell(&mut self, job: StoreJob, outcome: Result<Self::Outcome, StoreError>) {
        let outcome = outcome.flatten().map(|outcome| match outcome {
            JobResult::Saved(mark, after) => mark.set(after),
            JobResult::Placed(place, number) => {
                // It keeps its first one.
                let _ = place.number.set(number);
            }
            JobResult::Nothing => {}
        });
        match job {
            StoreJob::Save(saving, writing) => {
                note_refusal(&saving, outcome.as_ref().err());
                writing.tell(outcome);
            }
            StoreJob::Record(_, writing) => writing.tell(outcome),
            StoreJob::Snapshot(..) | StoreJob::Work(_) => {}
        }
    }

    fn transact(&mut self, jobs: &[StoreJob]) -> Result<Vec<Self::Outcome>, StoreError> {
        let is_full = jobs.iter().any(|job| matches!(job, StoreJob::Save(saving, _) if saving.is_synced));
        if is_full != self.is_full {
            // What is not synced outlasts this program, and is synced with the next commit that is.
            self.connection.pragma_update(None, "synchronous", if is_full { "FULL" } else { "NORMAL" })?;
            self.is_full = is_full;
        }
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut outcomes = Vec::with_capacity(jobs.len());
        let mut so_far = SoFar::default();
        for job in jobs {
            outcomes.push(match apply(&transaction, job, &mut so_far) {
                Ok(outcome) => Ok(outcome),
                // These are found before anything is written.
                Err(error @ (StoreError::Conflict | StoreError::Gone)) => Err(error),
                Err(error) => return Err(error),
            });
        }
        transaction.commit()?;
        self.writes += jobs.len() as u64;
        self.commits += 1;
        Ok(outcomes)
    }

    /// Keeps the file and its log small.
    fn tidy(&mut self) {
        if self.commits >= COMMITS_PER_LOOK {
            self.commits = 0;
            let mut log = self.path.clone().into_os_string();
            log.push("-wal");
            if std::fs::metadata(log).is_ok_and(|log| log.len() > LOG_BYTES) {
                // An error means that it is being moved already.
                let _ = self.move_log.try_send(());
            }
        }
        if self.writes >= WRITES_PER_LOOK {
            // If there is more to delete, it goes on after the next write.
            match shrink(&mut self.connection, self.most_bytes, MOST_DELETED) {
                Ok(true) | Err(_) => self.writes = 0,
                Ok(false) => {}
            }
        }
    }
}

/// Starts the thread that moves the content of the write-ahead log into the file. It syncs both, and no write waits for
/// that.
fn mover(connection: Connection) -> std::io::Result<SyncSender<()>> {
    let (send, receive) = sync_channel::<()>(1);
    let thread = std::thread::Builder::new().name("contexture-move".to_owned());
    thread.spawn(move || {
        while receive.recv().is_ok() {
            // What cannot be moved now is moved next time.
            let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    })?;
    Ok(send)
}

fn apply(transaction: &Transaction<'_>, job: &StoreJob, so_far: &mut SoFar) -> Result<JobResult, StoreError> {
    match job {
        StoreJob::Save(saving, _) => {
            let id = &saving.beginning.id;
            let expected = so_far.saved.get(id).copied().unwrap_or_else(|| saving.mark.now());
            let after = tables::save(transaction, saving, expected)?;
            so_far.saved.insert(id.clone(), after);
            Ok(JobResult::Saved(saving.mark.clone(), after))
        }
        StoreJob::Snapshot(id, messages, bytes) => {
            let sql = "INSERT OR REPLACE INTO rests VALUES (?1, ?2, ?3)";
            transaction.prepare_cached(sql)?.execute(params![&**id, *messages as i64, bytes])?;
            Ok(JobResult::Nothing)
        }
        StoreJob::Record(record, _) => {
            let RecordJob { place, conversation, session, time_ms, text } = record;
            let time_ms = *time_ms as i64;
            let sum = sum(&[session.as_bytes(), &number(time_ms), text.as_bytes()]);
            let sql = "INSERT OR REPLACE INTO requests (n, conversation, session, time_ms, record, sum)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let place_number = place.number.get().or_else(|| so_far.placed.get(&place.id)).copied();
            transaction.prepare_cached(sql)?.execute(params![
                place_number,
                conversation,
                session,
                time_ms,
                text,
                sum
            ])?;
            let number = transaction.last_insert_rowid();
            so_far.placed.insert(place.id.clone(), number);
            Ok(JobResult::Placed(place.clone(), number))
        }
        StoreJob::Work(_) => Ok(JobResult::Nothing),
    }
}

/// Notes why a conversation was not written, for those who write it next.
fn note_refusal(saving: &Saving, error: Option<&StoreError>) {
    match error {
        // All of it is written next time.
        Some(StoreError::Gone) => saving.mark.set(InStore::default()),
        Some(StoreError::Conflict) => saving.mark.note_overtaken(),
        _ => {}
    }
}

/// Deletes the least recently used conversations until the store has at most so many bytes, but not more than `most` of
/// them. Returns whether it is small enough.
pub(super) fn shrink(connection: &mut Connection, bytes: u64, most: usize) -> Result<bool, StoreError> {
    let mut deleted = 0;
    while database::used_bytes(connection)? > bytes {
        if deleted == most {
            return Ok(false);
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sql = "SELECT id FROM conversations ORDER BY used_ms LIMIT 1";
        let oldest = transaction.prepare_cached(sql)?.query_row([], |row| row.get::<_, String>(0));
        let Ok(oldest) = oldest else { return Ok(true) };
        tables::delete(&transaction, Some(&oldest))?;
        transaction.commit()?;
        give_back(connection)?;
        deleted += 1;
    }
    Ok(true)
}

/// Gives the pages that are not used any more back to the file system, as far as the file was made for it. Others are
/// used again. It takes as long as there are pages.
pub(super) fn give_back(connection: &Connection) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("PRAGMA incremental_vacuum")?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// Whether another program writes to the file.
pub(super) fn is_busy(error: &StoreError) -> bool {
    matches!(error, StoreError::Database(error) if database::is_busy(error))
}

/// Does something again while another program is in the way, for a limited time.
pub(super) fn patiently<T>(time: Duration, mut work: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let until = Instant::now() + time;
    loop {
        match work() {
            Err(error) if is_busy(&error) && Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            done => return done,
        }
    }
}
