//! Conversations, decisions and receipts in one SQLite file that only its owner can read.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contexture::fold::Pins;
use contexture::wire::Digest;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::content::Content;
use super::error::StoreError;
use super::read::{read_conversation, read_entries};
use super::store::{RunningGateway, ShownText, Store, is_hash};
use crate::account::record::RequestRecord;
use crate::conversation::decisions::DecisionEntry;
use crate::conversation::folder::FolderSnapshot;
use crate::conversation::state::ConversationState;
use crate::conversation::{Beginning, Conversation, ConversationKey};

/// How long a write waits for another process.
const BUSY: Duration = Duration::from_millis(100);

/// The schema version.
const VERSION: i64 = 1;

/// Writes between two checks of the store's size.
const WRITES_PER_LOOK: u64 = 500;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY, key BLOB NOT NULL, scope BLOB NOT NULL, parent TEXT, format TEXT NOT NULL, lead INTEGER NOT NULL,
    held_out INTEGER NOT NULL, known BLOB NOT NULL, points TEXT NOT NULL, account TEXT NOT NULL, stopped TEXT,
    version INTEGER NOT NULL, used_ms INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS conversations_by_key ON conversations (key, used_ms);
CREATE TABLE IF NOT EXISTS steps (
    conversation TEXT NOT NULL, n INTEGER NOT NULL, step TEXT NOT NULL, PRIMARY KEY (conversation, n)
);
CREATE TABLE IF NOT EXISTS decisions (
    conversation TEXT NOT NULL, n INTEGER NOT NULL, messages INTEGER NOT NULL, decision TEXT NOT NULL,
    PRIMARY KEY (conversation, n)
);
CREATE TABLE IF NOT EXISTS requests (
    n INTEGER PRIMARY KEY, conversation TEXT, session TEXT NOT NULL, time_ms INTEGER NOT NULL, record TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS requests_by_conversation ON requests (conversation);
CREATE TABLE IF NOT EXISTS texts (
    hash TEXT NOT NULL, conversation TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (hash, conversation)
);
CREATE TABLE IF NOT EXISTS behind (
    conversation TEXT NOT NULL, message INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (conversation, message)
);
CREATE TABLE IF NOT EXISTS rests (conversation TEXT PRIMARY KEY, messages INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS pins (conversation TEXT PRIMARY KEY, pins TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS gateways (id TEXT PRIMARY KEY, address TEXT NOT NULL, token TEXT NOT NULL, pid INTEGER NOT NULL);
";

/// Tables by which a store of the gateway is known, each with a column that others hardly have.
const KNOWN_BY: &[(&str, &str)] =
    &[("conversations", "held_out"), ("steps", "step"), ("decisions", "decision"), ("requests", "record")];

/// The store of a gateway in a file.
pub(super) struct SqliteStore {
    connection: Mutex<Connection>,
    /// A separate connection, so that reads do not wait for writes.
    reading: Mutex<Connection>,
    writes: Mutex<u64>,
    most_bytes: u64,
}

impl SqliteStore {
    /// Opens a store, and creates it if it does not exist.
    ///
    /// # Errors
    /// The file cannot be created or read.
    pub(super) fn open(path: &Path, most_bytes: u64) -> Result<Self, StoreError> {
        let fail = |source| StoreError::Open { path: path.to_owned(), source };
        if Content::of(path, KNOWN_BY) == Content::Other {
            return Err(StoreError::Foreign(path.to_owned()));
        }
        if let Some(directory) = path.parent() {
            make_directory(directory).map_err(fail)?;
        }
        make_file(path).map_err(fail)?;
        let connection = opened(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "secure_delete", "ON")?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version > VERSION {
            return Err(StoreError::Newer(version));
        }
        // All or nothing, so that a store that was only begun is not mistaken for somebody else's file.
        connection.execute_batch(&format!("BEGIN IMMEDIATE;{TABLES}PRAGMA user_version = {VERSION};COMMIT;"))?;
        let reading = Mutex::new(opened(path)?);
        Ok(Self { connection: Mutex::new(connection), reading, writes: Mutex::new(0), most_bytes })
    }

    /// Whether a file is a store of the gateway. The file is not changed.
    pub(super) fn is_at(path: &Path) -> bool {
        Content::of(path, KNOWN_BY) == Content::Own
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reading(&self) -> MutexGuard<'_, Connection> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes the least recently used conversations if the store is too large.
    fn look_at_size(&self) -> Result<(), StoreError> {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        *writes += 1;
        if !writes.is_multiple_of(WRITES_PER_LOOK) {
            return Ok(());
        }
        drop(writes);
        self.shrink(self.most_bytes)
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        let connection = self.lock();
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        Ok((number("page_count")? - number("freelist_count")?).max(0) as u64 * number("page_size")?.max(0) as u64)
    }
}

impl Store for SqliteStore {
    fn versions(&self, key: ConversationKey, most: usize) -> Result<Vec<(String, u64)>, StoreError> {
        let connection = self.reading();
        let sql = "SELECT id, version FROM conversations WHERE key = ?1 ORDER BY used_ms DESC LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64));
        let rows = statement.query_map(params![key.0, most as i64], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn version(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let connection = self.reading();
        let mut statement = connection.prepare_cached("SELECT version FROM conversations WHERE id = ?1")?;
        Ok(statement.query_row(params![id], |row| row.get::<_, i64>(0)).optional()?.map(|version| version as u64))
    }

    fn conversations(
        &self,
        key: ConversationKey,
        most: usize,
    ) -> Result<Vec<(Beginning, ConversationState)>, StoreError> {
        let connection = self.reading();
        let sql = "SELECT id, parent, format, lead, held_out, known, points, account, stopped, version, scope
                   FROM conversations WHERE key = ?1 ORDER BY used_ms DESC LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![key.0, most as i64], |row| Ok(read_conversation(row, key)))?;
        let mut conversations = Vec::new();
        for row in rows {
            // A conversation that cannot be read is treated as unknown.
            if let Ok(row) = row? {
                conversations.push(row.with_decisions(&connection)?);
            }
        }
        Ok(conversations)
    }

    fn save(
        &self,
        conversation: &Conversation,
        state: &ConversationState,
        texts: &[(String, String)],
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        let id = &**conversation.id();
        let sql = "SELECT version FROM conversations WHERE id = ?1";
        let stored = transaction.prepare_cached(sql)?.query_row(params![id], |row| row.get::<_, i64>(0)).optional()?;
        if stored.is_some_and(|version| version as u64 != state.stored().saved()) {
            return Err(StoreError::Conflict);
        }
        // A conversation that was deleted meanwhile is written again.
        let (steps, decisions) = stored.map_or((0, 0), |_| state.stored().saved_counts());
        write_conversation(&transaction, conversation, state, now_ms)?;
        write_decided(&transaction, id, state, steps, decisions)?;
        for (message, text) in state.decisions().attached() {
            transaction.prepare_cached("INSERT OR REPLACE INTO behind VALUES (?1, ?2, ?3)")?.execute(params![
                id,
                *message as i64,
                &**text
            ])?;
        }
        for (hash, text) in texts {
            transaction
                .prepare_cached("INSERT OR IGNORE INTO texts VALUES (?1, ?2, ?3)")?
                .execute(params![hash, id, text])?;
        }
        transaction.commit()?;
        drop(connection);
        self.look_at_size()
    }

    fn save_snapshot(&self, conversation: &Conversation, snapshot: &FolderSnapshot) -> Result<(), StoreError> {
        self.lock().prepare_cached("INSERT OR REPLACE INTO rests VALUES (?1, ?2, ?3)")?.execute(params![
            conversation.id(),
            snapshot.messages as i64,
            snapshot.rest.as_bytes()
        ])?;
        Ok(())
    }

    fn save_pins(&self, conversation: &str, pins: &Pins) -> Result<(), StoreError> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        let pins = serde_json::to_string(pins)?;
        transaction.execute("INSERT OR REPLACE INTO pins VALUES (?1, ?2)", params![conversation, pins])?;
        transaction.execute("DELETE FROM rests WHERE conversation = ?1", params![conversation])?;
        Ok(transaction.commit()?)
    }

    fn key_of(&self, conversation: &str) -> Result<Option<ConversationKey>, StoreError> {
        let sql = "SELECT key FROM conversations WHERE id = ?1";
        Ok(self.lock().query_row(sql, params![conversation], |row| row.get(0).map(Digest)).optional()?)
    }

    fn save_request(&self, record: &RequestRecord) -> Result<(), StoreError> {
        let connection = self.lock();
        connection
            .prepare_cached("INSERT INTO requests (conversation, session, time_ms, record) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![
                record.conversation,
                record.session,
                record.time_ms as i64,
                serde_json::to_string(record)?
            ])?;
        Ok(())
    }

    fn requests(&self, session: Option<&str>) -> Result<Vec<RequestRecord>, StoreError> {
        let connection = self.lock();
        let sql = "SELECT record FROM requests WHERE ?1 IS NULL OR session = ?1 ORDER BY n";
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![session], |row| row.get::<_, String>(0))?;
        let mut records = Vec::new();
        for row in rows {
            records.push(serde_json::from_str(&row?)?);
        }
        Ok(records)
    }

    fn text(&self, hash: &str) -> Result<Option<ShownText>, StoreError> {
        let connection = self.lock();
        if !is_hash(hash) {
            return Ok(None);
        }
        let sql = "SELECT text, conversation FROM texts WHERE hash LIKE ?1 || '%' LIMIT 1";
        let read = |row: &Row<'_>| Ok(ShownText { text: row.get(0)?, conversation: row.get(1)? });
        Ok(connection.query_row(sql, params![hash], read).optional()?)
    }

    fn decisions(&self, conversation: &str) -> Result<Vec<DecisionEntry>, StoreError> {
        Ok(read_entries(&self.lock(), conversation)?.0)
    }

    fn names(&self, start: &str) -> Result<Vec<String>, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT id FROM conversations WHERE substr(id, 1, length(?1)) = ?1 ORDER BY used_ms DESC",
        )?;
        let rows = statement.query_map(params![start], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn forget(&self, conversation: Option<&str>) -> Result<usize, StoreError> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        for table in ["steps", "decisions", "requests", "texts", "rests", "behind", "pins"] {
            transaction.execute(
                &format!("DELETE FROM {table} WHERE ?1 IS NULL OR conversation = ?1"),
                params![conversation],
            )?;
        }
        let gone =
            transaction.execute("DELETE FROM conversations WHERE ?1 IS NULL OR id = ?1", params![conversation])?;
        transaction.commit()?;
        // Also removes the deleted data from the database file and the write-ahead log.
        connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
        Ok(gone)
    }

    fn shrink(&self, most: u64) -> Result<(), StoreError> {
        while self.bytes()? > most {
            let oldest: Option<String> = self
                .lock()
                .query_row("SELECT id FROM conversations ORDER BY used_ms LIMIT 1", [], |row| row.get(0))
                .optional()?;
            let Some(oldest) = oldest else { return Ok(()) };
            self.forget(Some(&oldest))?;
        }
        Ok(())
    }

    fn note_gateway(&self, gateway: &RunningGateway) -> Result<(), StoreError> {
        let RunningGateway { id, address, token, pid, host: _ } = gateway;
        self.lock()
            .execute("INSERT OR REPLACE INTO gateways VALUES (?1, ?2, ?3, ?4)", params![id, address, token, pid])?;
        Ok(())
    }

    fn forget_gateway(&self, id: &str) -> Result<(), StoreError> {
        self.lock().execute("DELETE FROM gateways WHERE id = ?1", params![id])?;
        Ok(())
    }

    fn gateways(&self) -> Result<Vec<RunningGateway>, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached("SELECT id, address, token, pid FROM gateways ORDER BY id")?;
        let rows = statement.query_map([], |row| {
            let (id, address, token, pid) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(RunningGateway { id, address, token, pid, host: String::new() })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn opened(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// Writes the row of a conversation.
fn write_conversation(
    transaction: &Transaction<'_>,
    conversation: &Conversation,
    state: &ConversationState,
    now_ms: u64,
) -> Result<(), StoreError> {
    let Beginning { id, key, scope, parent, format, lead, is_held_out } = conversation.beginning();
    let sql = "INSERT INTO conversations VALUES (?1, ?2, ?13, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
               ON CONFLICT (id) DO UPDATE SET known = ?7, points = ?8, account = ?9, stopped = ?10, version = ?11,
               used_ms = ?12";
    transaction.prepare_cached(sql)?.execute(params![
        &**id,
        key.0,
        parent.as_deref(),
        serde_json::to_string(format)?,
        *lead as i64,
        is_held_out,
        state.seen().to_bytes(),
        serde_json::to_string(state.decisions().points())?,
        serde_json::to_string(state.billed().account())?,
        state.health().stopped().map(ToString::to_string),
        state.stored().version() as i64,
        now_ms as i64,
        scope.0,
    ])?;
    Ok(())
}

/// Writes plan changes and decisions, starting at the given indices.
fn write_decided(
    transaction: &Transaction<'_>,
    id: &str,
    state: &ConversationState,
    steps: usize,
    decisions: usize,
) -> Result<(), StoreError> {
    for (table, count) in [("steps", state.decisions().steps().len()), ("decisions", state.decisions().entries().len())]
    {
        // Deletes what was reverted.
        let sql = format!("DELETE FROM {table} WHERE conversation = ?1 AND n >= ?2");
        transaction.prepare_cached(&sql)?.execute(params![id, count as i64])?;
    }
    for (n, step) in state.decisions().steps().iter().enumerate().skip(steps) {
        let step = serde_json::to_string(step)?;
        let sql = "INSERT OR REPLACE INTO steps VALUES (?1, ?2, ?3)";
        transaction.prepare_cached(sql)?.execute(params![id, n as i64, step])?;
    }
    for (n, decided) in state.decisions().entries().iter().enumerate().skip(decisions) {
        let stored = decided.decision.to_stored().to_string();
        let sql = "INSERT OR REPLACE INTO decisions VALUES (?1, ?2, ?3, ?4)";
        transaction.prepare_cached(sql)?.execute(params![id, n as i64, decided.messages as i64, stored])?;
    }
    Ok(())
}

fn make_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Creates the file before the database does, so that nobody else can ever read it.
fn make_file(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    drop(file);
    Ok(())
}
