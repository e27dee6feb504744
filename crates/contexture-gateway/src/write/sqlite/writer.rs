//! The one thread that writes to the file. What is begun at the same time is committed together.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use contexture_store::database::{self, Commits, Writer};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::pending::{PendingConversation, PendingRecord, PendingWrites, PutOutcome};
use super::syncing::Syncer;
use super::tables;
use crate::account::record::RequestRecord;
use crate::conversation::folder::FolderSnapshot;
use crate::conversation::stored::{InStore, StoredMark};
use crate::write::error::StoreError;
use crate::write::room::WriteRoom;
use crate::write::saving::{PendingWrite, RecordPlace, Saving, Writing, as_written};
use crate::write::sums::{number, sum};

/// Writes between two looks at the size of the store.
const WRITES_PER_LOOK: u64 = 500;

/// Most conversations that are deleted in a row while others wait.
const MOST_DELETED: usize = 8;

/// Bytes of the write-ahead log from which on its content is moved into the file: the four megabytes of SQLite itself.
const LOG_BYTES: u64 = 4 << 20;

/// Transactions between two looks at the log.
const COMMITS_PER_LOOK: u64 = 32;

/// Something to write. What waits is taken when its turn has come, so that it is the newest.
enum StoreJob {
    /// What waits of a conversation.
    Conversation(Arc<str>, OnceCell<Option<PendingConversation>>),
    /// The record that waits for a place.
    Record(String, OnceCell<Option<PendingRecord>>),
    /// Anything else, which is done by itself.
    Work(Box<dyn FnOnce(&mut Connection) + Send>),
}

/// The thread that writes, and what waits for it. It ends, after everything is written, when this is dropped.
pub(super) struct StoreWriter {
    thread: Writer<StoreJob>,
    pending: Arc<PendingWrites>,
    syncer: Syncer,
}

impl StoreWriter {
    /// Starts the thread.
    pub(super) fn start(
        connection: Connection,
        moving: Connection,
        path: &Path,
        most: u64,
        room: Arc<WriteRoom>,
    ) -> std::io::Result<Self> {
        let (pending, syncer, move_log) = (Arc::new(PendingWrites::new(room)), Syncer::start(path)?, mover(moving)?);
        let state = WriterState {
            connection,
            path: path.to_owned(),
            most_bytes: most,
            writes: 0,
            commits: 0,
            pending: pending.clone(),
            syncer: syncer.clone(),
            move_log,
        };
        // What waits is bounded by its room, so the queue is not.
        Ok(Self { thread: Writer::start("contexture-write", 0, state)?, pending, syncer })
    }

    /// The room of what waits.
    pub(super) fn room(&self) -> &WriteRoom {
        self.pending.room()
    }

    /// Begins to write the newest state of a conversation.
    pub(super) fn save(&self, saving: Saving) -> PendingWrite {
        let id = saving.beginning.id.clone();
        let (put, written) = self.pending.put_state(saving);
        self.begin(put, || StoreJob::Conversation(id, OnceCell::new()));
        written
    }

    /// Begins to write the newest snapshot of a conversation's folder.
    pub(super) fn save_snapshot(&self, id: &Arc<str>, snapshot: &Arc<FolderSnapshot>) {
        let put = self.pending.put_snapshot(id, snapshot);
        self.begin(put, || StoreJob::Conversation(id.clone(), OnceCell::new()));
    }

    /// Begins to write the record of a request.
    pub(super) fn save_record(&self, place: &Arc<RecordPlace>, record: Arc<RequestRecord>) -> PendingWrite {
        let (put, written) = self.pending.put_record(place, record);
        self.begin(put, || StoreJob::Record(place.id.clone(), OnceCell::new()));
        written
    }

    fn begin(&self, put: PutOutcome, job: impl FnOnce() -> StoreJob) {
        match put {
            PutOutcome::Waits => self.thread.begin(job()),
            PutOutcome::Replaces | PutOutcome::Full => {}
        }
    }

    /// Begins to do something with the connection after everything that was begun before.
    pub(super) fn work(&self, work: impl FnOnce(&mut Connection) + Send + 'static) {
        self.thread.begin(StoreJob::Work(Box::new(work)));
    }

    /// Waits until everything that was begun before is written, and safe from an end of the machine.
    pub(super) fn flush(&self, time: Duration) -> Result<(), StoreError> {
        let until = Instant::now() + time;
        self.with(time, |_| Ok(()))?;
        let (writing, written) = PendingWrite::pending();
        self.syncer.tell_when_synced(writing);
        written.wait(until)
    }

    /// Does something with the connection after everything that was begun before, and waits for it.
    pub(super) fn with<T: Send + 'static>(
        &self,
        time: Duration,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (send, receive) = sync_channel(1);
        self.work(move |connection| {
            // Nobody receives it once the time is up.
            let _ = send.send(work(connection));
        });
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
    writes: u64,
    commits: u64,
    pending: Arc<PendingWrites>,
    syncer: Syncer,
    move_log: SyncSender<()>,
}

/// What a transaction has written so far, which is in the store only once it is committed.
#[derive(Default)]
struct SoFar {
    saved: HashMap<Arc<str>, InStore>,
}

/// What a job became.
enum JobResult {
    Saved(Arc<StoredMark>, InStore),
    /// A record with its number, and whether it says that something is not in the store.
    Placed(Arc<RecordPlace>, i64, bool),
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
            JobResult::Placed(place, number, is_marked) => {
                // It keeps its first one.
                let _ = place.number.set(number);
                place.mark(is_marked);
            }
            JobResult::Nothing => {}
        });
        match job {
            StoreJob::Conversation(_, taken) => {
                let Some(pending) = taken.into_inner().flatten() else { return };
                let is_synced = pending.saving.as_ref().is_some_and(|saving| saving.is_synced);
                if let Some(saving) = &pending.saving {
                    note_refusal(saving, outcome.as_ref().err());
                }
                match outcome {
                    Ok(()) if is_synced => {
                        pending.writings.into_iter().for_each(|writing| self.syncer.tell_when_synced(writing));
                    }
                    outcome => tell_all(pending.writings, &outcome),
                }
            }
            StoreJob::Record(_, taken) => {
                let Some(pending) = taken.into_inner().flatten() else { return };
                tell_all(pending.writings, &outcome);
            }
            StoreJob::Work(_) => {}
        }
    }

    /// A commit outlasts an end of this program at once, and is synced afterwards: so no write waits for a slow disk.
    fn transact(&mut self, jobs: &[StoreJob]) -> Result<Vec<Self::Outcome>, StoreError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut outcomes = Vec::with_capacity(jobs.len());
        let mut so_far = SoFar::default();
        for job in jobs {
            outcomes.push(match apply(&transaction, job, &self.pending, &mut so_far) {
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

fn apply(
    transaction: &Transaction<'_>,
    job: &StoreJob,
    pending: &PendingWrites,
    so_far: &mut SoFar,
) -> Result<JobResult, StoreError> {
    match job {
        StoreJob::Conversation(id, taken) => {
            let Some(pending) = taken.get_or_init(|| pending.take_conversation(id)) else {
                return Ok(JobResult::Nothing);
            };
            let saved = pending.saving.as_ref().map(|saving| save(transaction, saving, so_far)).transpose()?;
            if let Some(snapshot) = &pending.snapshot {
                let sql = "INSERT OR REPLACE INTO rests VALUES (?1, ?2, ?3)";
                let row = params![&**id, snapshot.messages as i64, snapshot.rest.as_bytes()];
                transaction.prepare_cached(sql)?.execute(row)?;
            }
            Ok(saved.unwrap_or(JobResult::Nothing))
        }
        StoreJob::Record(place, taken) => match taken.get_or_init(|| pending.take_record(place)) {
            Some(pending) => place_record(transaction, pending, so_far),
            None => Ok(JobResult::Nothing),
        },
        StoreJob::Work(_) => Ok(JobResult::Nothing),
    }
}

fn save(transaction: &Transaction<'_>, saving: &Saving, so_far: &mut SoFar) -> Result<JobResult, StoreError> {
    let id = &saving.beginning.id;
    let expected = so_far.saved.get(id).copied().unwrap_or_else(|| saving.mark.now());
    let after = tables::save(transaction, saving, expected)?;
    so_far.saved.insert(id.clone(), after);
    Ok(JobResult::Saved(saving.mark.clone(), after))
}

fn place_record(
    transaction: &Transaction<'_>,
    pending: &PendingRecord,
    so_far: &SoFar,
) -> Result<JobResult, StoreError> {
    let PendingRecord { place, record, .. } = pending;
    let in_this = record.conversation.as_deref().and_then(|id| so_far.saved.get(id));
    let is_kept = place.is_kept() || in_this.is_some_and(|in_store| place.is_kept_with(in_store));
    let (text, time_ms) = (as_written(record, is_kept)?, record.time_ms as i64);
    let sum = sum(&[record.session.as_bytes(), &number(time_ms), text.as_bytes()]);
    let sql = "INSERT OR REPLACE INTO requests (n, conversation, session, time_ms, record, sum)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let row = params![place.number.get(), record.conversation, record.session, time_ms, text, sum];
    transaction.prepare_cached(sql)?.execute(row)?;
    Ok(JobResult::Placed(place.clone(), transaction.last_insert_rowid(), !is_kept))
}

fn tell_all(writings: Vec<Writing>, outcome: &Result<(), StoreError>) {
    for writing in writings {
        writing.tell(outcome.as_ref().copied().map_err(|error| error.again()));
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
