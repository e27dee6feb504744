//! Conversations, decisions and receipts in one SQLite file that only its owner can read.

mod damage;
mod open;
mod pending;
mod repair;
mod syncing;
mod tables;
mod writer;

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use contexture::fold::Pins;
use contexture::wire::Digest;
use contexture_store::database::FileContent;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::error::StoreError;
use super::read::{CONVERSATION, read_conversation, read_entries};
use super::room::WriteRoom;
use super::saving::{PendingWrite, RecordPlace, Saving};
use super::store::{CLOCKS_MS, RunningGateway, ShownText, Store, is_hash};
use super::sums::{number, verified};
use crate::account::record::RequestRecord;
use crate::conversation::decisions::DecisionEntry;
use crate::conversation::folder::FolderSnapshot;
use crate::conversation::state::ConversationState;
use crate::conversation::{Beginning, Conversation, ConversationKey};
use damage::NotedDamage;
use open::OpenedFile;
pub(super) use open::{DamagePolicy, make_file};
pub(super) use tables::{VERSION, damaged_rows};
use writer::StoreWriter;

/// How long something may take that only a command waits for.
const ASKING: Duration = Duration::from_secs(60);

/// How long it is tried to note that a gateway runs.
const NOTING: Duration = Duration::from_secs(5);

/// The name under which it is noted that a start has said that conversations expire.
const EXPIRY: &str = "expiry";

/// Most connections that read at the same time.
const MOST_READERS: usize = 8;

/// The store of a gateway in a file.
pub(super) struct GatewayFileStore {
    /// `None` if the file is only read.
    writer: Option<StoreWriter>,
    readers: ReadConnections,
    damage: Arc<NotedDamage>,
    /// Ends what looks through a large file.
    looking: Option<rusqlite::InterruptHandle>,
}

impl GatewayFileStore {
    /// Opens a store, and creates it if it does not exist.
    ///
    /// # Errors
    /// The file cannot be created or read.
    pub(super) fn open(path: &Path, most_bytes: u64, damaged: DamagePolicy) -> Result<Self, StoreError> {
        let OpenedFile { writing, moving, reading, note, is_looked_through } = open::open(path, damaged)?;
        let failed = |source| StoreError::Open { path: path.to_owned(), source };
        let writer = StoreWriter::start(writing, moving, path, most_bytes, WriteRoom::of_store()).map_err(failed)?;
        let damage = Arc::new(NotedDamage::new(path, note));
        let looking = match damaged == DamagePolicy::PutAside && !is_looked_through {
            true => Some(damage.clone().look(open::connection(path)?).map_err(failed)?),
            false => None,
        };
        let path = path.to_owned();
        let readers = ReadConnections::new(reading, move || open::connection(&path));
        Ok(Self { writer: Some(writer), readers, damage, looking })
    }

    /// Opens a store that is only read, also where nothing can be written beside it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        let is_alone = open::is_alone(path)?;
        let path = path.to_owned();
        let damage = Arc::new(NotedDamage::new(&path, None));
        let open = move || open::reading(&path, is_alone);
        Ok(Self { writer: None, readers: ReadConnections::new(open()?, open), damage, looking: None })
    }

    /// Whether a file is a store of the gateway. The file is not changed.
    pub(super) fn is_at(path: &Path) -> bool {
        FileContent::of(path, tables::KNOWN_BY) == FileContent::Own
    }

    /// Does something with a connection for reading.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let connection = self.readers.take()?;
        let done = work(&connection);
        self.readers.give_back(connection);
        if let Err(error) = &done {
            self.note_damage(error);
        }
        done
    }

    fn writer(&self) -> Result<&StoreWriter, StoreError> {
        self.writer.as_ref().ok_or(StoreError::OnlyRead)
    }

    /// Does something with the connection that writes, and waits for it.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = self.writer()?.with(ASKING, work);
        if let Err(error) = &done {
            self.note_damage(error);
        }
        done
    }

    /// The record in a row. Of one that is damaged that is told, and the others are read.
    fn record(&self, row: &Row<'_>) -> Result<Option<RequestRecord>, StoreError> {
        let (text, of, time_ms): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let parts: [&[u8]; 3] = [of.as_bytes(), &number(time_ms), text.as_bytes()];
        let read = verified(row.get(3)?, &parts, "the record of a request");
        let record = read.and_then(|()| Ok(serde_json::from_str(&text)?));
        Ok(record.inspect_err(|error| self.note_damage(error)).ok())
    }

    fn note_damage(&self, error: &StoreError) {
        self.damage.note(error);
    }
}

impl Drop for GatewayFileStore {
    fn drop(&mut self) {
        if let Some(looking) = &self.looking {
            looking.interrupt();
        }
    }
}

impl Store for GatewayFileStore {
    fn patience(&self) -> Option<Duration> {
        None
    }

    fn candidates(&self, key: ConversationKey, ends: &[Digest], most: usize) -> Result<Vec<(String, u64)>, StoreError> {
        let ends: Vec<String> = ends.iter().map(ToString::to_string).collect();
        let ends = serde_json::to_string(&ends)?;
        self.read(|connection| {
            let sql = "SELECT id, version FROM conversations
                       WHERE key = ?1 AND substr(known, -16) IN (SELECT unhex(value) FROM json_each(?2))
                       UNION SELECT id, version FROM
                       (SELECT id, version FROM conversations WHERE key = ?1 ORDER BY used_ms DESC LIMIT ?3)";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64));
            let rows = statement.query_map(params![key.0, ends, most as i64], read)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn version(&self, id: &str) -> Result<Option<u64>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT version FROM conversations WHERE id = ?1")?;
            Ok(statement.query_row(params![id], |row| row.get::<_, i64>(0)).optional()?.map(|version| version as u64))
        })
    }

    fn conversation(&self, id: &str) -> Result<Option<(Beginning, ConversationState)>, StoreError> {
        let read = self.read(|connection| {
            // All of it as of one moment.
            let transaction = connection.unchecked_transaction()?;
            let mut statement =
                transaction.prepare_cached(&format!("SELECT {CONVERSATION} FROM conversations WHERE id = ?1"))?;
            let row = statement.query_row(params![id], |row| Ok(read_conversation(row))).optional()?;
            row.map(|row| row?.with_decisions(&transaction)).transpose()
        });
        match read {
            // A conversation that cannot be read is treated as unknown.
            Err(StoreError::Damaged(_) | StoreError::Unreadable(_)) => Ok(None),
            read => read,
        }
    }

    fn save(&self, saving: Saving) -> PendingWrite {
        self.writer().map_or_else(PendingWrite::failed, |writer| writer.save(saving))
    }

    fn save_snapshot(&self, conversation: &Conversation, snapshot: &Arc<FolderSnapshot>) {
        if let Some(writer) = &self.writer {
            writer.save_snapshot(conversation.id(), snapshot);
        }
    }

    fn save_pins(&self, conversation: &str, pins: &Pins) -> Result<(), StoreError> {
        let (conversation, pins) = (conversation.to_owned(), serde_json::to_string(pins)?);
        self.write(move |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute("INSERT OR REPLACE INTO pins VALUES (?1, ?2)", params![conversation, pins])?;
            transaction.execute("DELETE FROM rests WHERE conversation = ?1", params![conversation])?;
            Ok(transaction.commit()?)
        })
    }

    fn save_request(&self, place: &Arc<RecordPlace>, record: Arc<RequestRecord>) -> PendingWrite {
        self.writer().map_or_else(PendingWrite::failed, |writer| writer.save_record(place, record))
    }

    fn has_room(&self) -> bool {
        self.writer.as_ref().is_none_or(|writer| writer.room().is_free())
    }

    fn waiting_bytes(&self) -> usize {
        self.writer.as_ref().map_or(0, |writer| writer.room().taken())
    }

    fn flush(&self, time: Duration) {
        // What is not written by then is written later, or is lost with this program.
        let _ = self.writer().and_then(|writer| writer.flush(time));
    }

    fn damage(&self) -> Option<String> {
        self.damage.said()
    }

    fn requests(&self, session: Option<&str>) -> Result<Vec<RequestRecord>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT record, session, time_ms, sum FROM requests
                       WHERE ?1 IS NULL OR session = ?1 ORDER BY time_ms, n";
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![session])?;
            let mut records = Vec::new();
            while let Some(row) = rows.next()? {
                records.extend(self.record(row)?);
            }
            Ok(records)
        })
    }

    fn requests_since(&self, time_ms: u64) -> Result<Vec<RequestRecord>, StoreError> {
        self.read(|connection| {
            // Rows are numbered as requests come, so the newest are the last ones, apart from clocks that differ.
            let sql = "SELECT record, session, time_ms, sum FROM requests ORDER BY n DESC";
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            let mut records = Vec::new();
            while let Some(row) = rows.next()? {
                let came: i64 = row.get(2)?;
                if (came as u64).saturating_add(CLOCKS_MS) < time_ms {
                    break;
                }
                if came as u64 >= time_ms {
                    records.extend(self.record(row)?);
                }
            }
            Ok(records)
        })
    }

    fn key_of(&self, conversation: &str) -> Result<Option<ConversationKey>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT key FROM conversations WHERE id = ?1";
            Ok(connection.query_row(sql, params![conversation], |row| row.get(0).map(Digest)).optional()?)
        })
    }

    fn text(&self, hash: &str) -> Result<Option<ShownText>, StoreError> {
        if !is_hash(hash) {
            return Ok(None);
        }
        self.read(|connection| {
            let sql = "SELECT text, conversation FROM texts WHERE hash LIKE ?1 || '%' LIMIT 1";
            let read = |row: &Row<'_>| Ok(ShownText { text: row.get(0)?, conversation: row.get(1)? });
            Ok(connection.query_row(sql, params![hash], read).optional()?)
        })
    }

    fn decisions(&self, conversation: &str) -> Result<Vec<DecisionEntry>, StoreError> {
        self.read(|connection| Ok(read_entries(connection, conversation)?.0))
    }

    fn names(&self, start: &str) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            // Of those that were damaged, or not used for long, only the records of their requests are left.
            let mut statement = connection.prepare_cached(
                "SELECT id FROM (SELECT id, used_ms FROM conversations UNION ALL
                 SELECT conversation, max(time_ms) FROM requests WHERE conversation IS NOT NULL
                 AND conversation NOT IN (SELECT id FROM conversations) GROUP BY conversation)
                 WHERE substr(id, 1, length(?1)) = ?1 ORDER BY used_ms DESC",
            )?;
            let rows = statement.query_map(params![start], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn forget(&self, conversation: Option<&str>) -> Result<usize, StoreError> {
        let conversation = conversation.map(str::to_owned);
        self.write(move |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let gone = tables::delete(&transaction, conversation.as_deref())?;
            transaction.commit()?;
            match conversation {
                // There is nothing left to move, and files of older versions can give pages back from now on.
                None => connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM;")?,
                Some(_) => writer::give_back(connection)?,
            }
            // What is deleted is overwritten; this removes it from the write-ahead log too.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            Ok(gone)
        })
    }

    fn shrink(&self, most: u64) -> Result<(), StoreError> {
        self.write(move |connection| writer::shrink(connection, most, usize::MAX).map(|_| ()))
    }

    fn expire(&self, before_ms: u64) -> Result<usize, StoreError> {
        let (count, is_announced) = self.read(|connection| {
            let sql = "SELECT count(*), EXISTS (SELECT 1 FROM announced WHERE what = ?2) FROM conversations WHERE used_ms < ?1";
            let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)? as usize, row.get(1)?));
            Ok(connection.query_row(sql, params![before_ms as i64, EXPIRY], read)?)
        })?;
        if count > 0 {
            self.writer()?.work(move |connection| {
                // What is not deleted now is deleted with another start.
                let _ = if is_announced {
                    tables::expire(connection, before_ms)
                } else {
                    tables::announce(connection, EXPIRY)
                };
            });
        }
        Ok(if is_announced { 0 } else { count })
    }

    fn note_gateway(&self, gateway: &RunningGateway) -> Result<(), StoreError> {
        let RunningGateway { id, address, token, pid, host: _ } = gateway.clone();
        // Nobody waits for it: another program may be writing for long.
        self.writer()?.work(move |connection| {
            let sql = "INSERT OR REPLACE INTO gateways VALUES (?1, ?2, ?3, ?4)";
            // If this fails, only `status` does not find this gateway.
            let _ = writer::patiently(NOTING, || Ok(connection.execute(sql, params![id, address, token, pid])?));
        });
        Ok(())
    }

    fn forget_gateway(&self, id: &str) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.write(move |connection| {
            connection.execute("DELETE FROM gateways WHERE id = ?1", params![id])?;
            Ok(())
        })
    }

    fn gateways(&self) -> Result<Vec<RunningGateway>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT id, address, token, pid FROM gateways ORDER BY id";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| {
                let (id, address, token, pid) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                Ok(RunningGateway { id, address, token, pid, host: String::new() })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

/// Connections for reading, so that requests do not wait for each other, nor for writes.
struct ReadConnections {
    open: Box<dyn Fn() -> Result<Connection, StoreError> + Send + Sync>,
    pool: Mutex<Pool>,
    returned: Condvar,
}

struct Pool {
    idle: Vec<Connection>,
    count: usize,
}

impl ReadConnections {
    fn new(first: Connection, open: impl Fn() -> Result<Connection, StoreError> + Send + Sync + 'static) -> Self {
        let pool = Mutex::new(Pool { idle: vec![first], count: 1 });
        Self { open: Box::new(open), pool, returned: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<Connection, StoreError> {
        let mut pool = self.lock();
        let until = Instant::now() + ASKING;
        loop {
            if let Some(connection) = pool.idle.pop() {
                return Ok(connection);
            }
            if pool.count < MOST_READERS {
                pool.count += 1;
                drop(pool);
                return (self.open)().inspect_err(|_| self.lock().count -= 1);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StoreError::NotInTime);
            }
            pool = self.returned.wait_timeout(pool, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn give_back(&self, connection: Connection) {
        self.lock().idle.push(connection);
        self.returned.notify_one();
    }
}

#[cfg(test)]
mod tests;
