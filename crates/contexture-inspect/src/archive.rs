//! The windows of requests on disk: each text is stored once, and each window is a list of blocks.
//!
//! A request is stored as the number of blocks shared with the previous one and the blocks that follow, so a
//! conversation takes about as much space as its texts. Every few requests a list is stored whole, so that reading any
//! window takes only a few rows.

mod blocks;
mod exporting;
mod file;
mod lists;
mod newest;
mod writing;
mod noting;
mod overview;
mod signals;
mod story;
mod reasons;
mod reading;
mod tools;
mod tables;

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contexture::files::dialect::Dialects;
use contexture::tokens::{Estimate, TokenCounter};
use contexture::wire::Format;
use contexture_gateway::account::record::RequestRecord;
use contexture_gateway::models::Models;
use contexture_gateway::write::StoreError;
use contexture_store::database::{FileContent, Syncing, for_owner, prepare_to_write, used_bytes};
use rusqlite::{Connection, OptionalExtension, params};

use super::timeline::Timeline;
pub use blocks::PREVIEW_CHARS;
pub use file::{check_archive_file, copy_archive_file, is_archive, open_or_begin};
pub use lists::Lists;
use newest::NewestWindow;
pub use noting::BlockWriter;
pub use reading::WindowQuery;

/// Conversations whose newest window is kept in memory.
const MAX_HELD: usize = 64;

/// The conversation for requests that belong to none.
pub const ASIDE: &str = "aside";

/// Largest archive; beyond it the least recently used conversations are deleted.
const MAX_BYTES: u64 = 1 << 30;

/// Requests between two checks of the archive's size.
const WRITES_PER_LOOK: u64 = 500;

/// The windows of requests and their outcomes.
pub struct Archive {
    connection: Mutex<Connection>,
    /// The newest windows of active conversations.
    held: Mutex<HashMap<String, NewestWindow>>,
    /// The files of conversations that were viewed.
    timelines: Mutex<HashMap<String, Arc<Mutex<Timeline>>>>,
    writes: Mutex<u64>,
    counter: Arc<dyn TokenCounter>,
    dialects: Dialects,
    models: Models,
}

/// A request that is about to be sent.
pub struct ArchivedRequest<'a> {
    /// Its conversation.
    pub conversation: &'a str,
    /// The conversation that this one branched off from.
    pub parent: Option<&'a str>,
    /// Its format.
    pub format: Format,
    /// The body as received.
    pub came: &'a str,
    /// The body that is sent, if it differs.
    pub sent: Option<&'a str>,
    /// Its record so far.
    pub record: RequestRecord,
}

/// How far a recording is read, as it is stored.
const READING: i64 = 1;
const UNREAD: i64 = 2;

/// A recording that is not read yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnnouncedRecording<'a> {
    /// The id of its conversation.
    pub id: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What the user said first, as far as its start says it.
    pub title: &'a str,
    /// The agent that made it.
    pub agent: &'a str,
    /// The directory in which the agent worked.
    pub project: &'a str,
    /// When it begins, if it says so.
    pub time_ms: Option<u64>,
    /// When its file was last changed.
    pub modified_ms: u64,
}

/// A request in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Its conversation.
    pub conversation: String,
    /// Its number.
    pub n: u64,
}

/// How long to wait for others who change the same file.
const LOCK_TIME: Duration = Duration::from_secs(5);

impl Archive {
    /// Creates an archive that is deleted when it is closed. It is kept on disk as far as it does not fit into memory.
    ///
    /// # Errors
    /// The database cannot be created.
    pub fn temporary() -> Result<Self, StoreError> {
        let connection = Connection::open("")?;
        // Nobody reads it again after a crash.
        connection.pragma_update(None, "journal_mode", "MEMORY")?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        Self::of(connection)
    }

    /// Opens an archive that only its owner can read, and creates it if it does not exist.
    ///
    /// # Errors
    /// The file cannot be created or read, or its version is newer.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if FileContent::of(path, tables::KNOWN_BY) == FileContent::Other {
            return Err(StoreError::Foreign(path.to_owned()));
        }
        let opened = for_owner(OpenOptions::new().create(true).append(true)).open(path);
        opened.map_err(|source| StoreError::Open { path: path.to_owned(), source })?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(LOCK_TIME)?;
        prepare_to_write(&connection, Syncing::Normal)?;
        Self::of(connection)
    }

    fn of(connection: Connection) -> Result<Self, StoreError> {
        tables::make(&connection)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self {
            connection: Mutex::new(connection),
            held: Mutex::default(),
            timelines: Mutex::default(),
            writes: Mutex::new(0),
            counter: Arc::new(Estimate),
            dialects: Dialects::builtin(),
            models: Models::builtin(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, NewestWindow>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a recording that is not read yet, so that it is listed before its content is known.
    ///
    /// # Errors
    /// It could not be written.
    pub fn announce(&self, recording: &AnnouncedRecording<'_>) -> Result<(), StoreError> {
        let sql =
            "INSERT INTO conversations (id, name, title, agent, project, first_ms, last_ms, modified_ms, is_reading)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8) ON CONFLICT (id) DO UPDATE SET is_reading = ?8";
        self.lock().execute(
            sql,
            params![
                recording.id,
                recording.name,
                recording.title,
                recording.agent,
                recording.project,
                recording.time_ms.unwrap_or(0) as i64,
                recording.modified_ms as i64,
                UNREAD
            ],
        )?;
        Ok(())
    }

    /// Marks a recording as being read. Returns whether it was unread before.
    ///
    /// # Errors
    /// It could not be written.
    pub fn is_being_read(&self, conversation: &str) -> Result<bool, StoreError> {
        let sql = "UPDATE conversations SET is_reading = ?2 WHERE id = ?1 AND is_reading = ?3";
        Ok(self.lock().execute(sql, params![conversation, READING, UNREAD])? > 0)
    }

    /// The recordings that were not read yet, newest first.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn unread_ids(&self) -> Result<Vec<String>, StoreError> {
        let connection = self.lock();
        let sql = format!("SELECT id FROM conversations WHERE is_reading = ?1 ORDER BY {}", reading::NEWEST_FIRST);
        let mut statement = connection.prepare_cached(&sql)?;
        let ids = statement.query_map(params![UNREAD], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// Removes a recording from the list, since it turned out to be none.
    ///
    /// # Errors
    /// It could not be written.
    pub fn unlist(&self, conversation: &str) -> Result<(), StoreError> {
        self.delete(Some(conversation)).map(drop)
    }

    /// How many recordings there are that were not read yet, and how many conversations in all.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn unread(&self) -> Result<(u64, u64), StoreError> {
        let sql = "SELECT coalesce(sum(is_reading > 0), 0), count(*) FROM conversations";
        let number = |row: &rusqlite::Row<'_>, at: usize| row.get::<_, i64>(at).map(|number| number as u64);
        Ok(self.lock().query_row(sql, [], |row| Ok((number(row, 0)?, number(row, 1)?)))?)
    }

    /// Marks a conversation as completely read.
    ///
    /// # Errors
    /// It could not be written.
    pub fn is_read(&self, conversation: &str) -> Result<(), StoreError> {
        self.lock().execute("UPDATE conversations SET is_reading = 0 WHERE id = ?1", params![conversation])?;
        Ok(())
    }

    /// Sets why nothing more is folded in a conversation; `None` if folding is on.
    ///
    /// # Errors
    /// It could not be written.
    pub fn note_stopped(&self, conversation: &str, why: Option<&str>) -> Result<(), StoreError> {
        self.lock().execute("UPDATE conversations SET stopped = ?2 WHERE id = ?1", params![conversation, why])?;
        Ok(())
    }

    /// Sets whether a block is pinned.
    ///
    /// # Errors
    /// It could not be written.
    pub fn note_pin(&self, conversation: &str, block: u32, is_pinned: bool) -> Result<(), StoreError> {
        let sql = match is_pinned {
            true => "INSERT OR IGNORE INTO pins VALUES (?1, ?2)",
            false => "DELETE FROM pins WHERE conversation = ?1 AND block = ?2",
        };
        self.lock().execute(sql, params![conversation, block])?;
        Ok(())
    }

    /// Deletes one conversation, or all, with the texts that no other one uses.
    ///
    /// # Errors
    /// It could not be written.
    pub fn forget(&self, conversation: Option<&str>) -> Result<usize, StoreError> {
        let gone = self.delete(conversation)?;
        // Also removes the deleted data from the database file and the write-ahead log.
        self.lock().execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
        Ok(gone)
    }

    /// Deletes the rows of one conversation, or of all. Their pages are written over, and used again.
    fn delete(&self, conversation: Option<&str>) -> Result<usize, StoreError> {
        match conversation {
            Some(conversation) => {
                self.held().remove(conversation);
                self.timelines.lock().unwrap_or_else(PoisonError::into_inner).remove(conversation);
            }
            None => {
                self.held().clear();
                self.timelines.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
        }
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        let own = "SELECT block FROM places WHERE ?1 IS NULL OR conversation = ?1";
        transaction.execute_batch("CREATE TEMP TABLE IF NOT EXISTS freed (block INTEGER); DELETE FROM freed;")?;
        transaction.execute(&format!("INSERT INTO freed {own}"), params![conversation])?;
        for table in ["requests", "places", "pins", "answers"] {
            let sql = format!("DELETE FROM {table} WHERE ?1 IS NULL OR conversation = ?1");
            transaction.execute(&sql, params![conversation])?;
        }
        let gone =
            transaction.execute("DELETE FROM conversations WHERE ?1 IS NULL OR id = ?1", params![conversation])?;
        let unused = "DELETE FROM blocks WHERE id IN (SELECT block FROM freed)
                      AND NOT EXISTS (SELECT 1 FROM places WHERE places.block = blocks.id)";
        transaction.execute(unused, [])?;
        transaction.execute_batch("DELETE FROM freed")?;
        transaction.commit()?;
        Ok(gone)
    }

    /// Whether it takes half of the room that it may take.
    pub(super) fn is_half_full(&self) -> bool {
        used_bytes(&self.lock()).is_ok_and(|bytes| bytes > MAX_BYTES / 2)
    }

    /// Deletes the least recently used conversations if the archive is too large.
    fn look_at_size(&self) -> Result<(), StoreError> {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        *writes += 1;
        if !writes.is_multiple_of(WRITES_PER_LOOK) {
            return Ok(());
        }
        drop(writes);
        while used_bytes(&self.lock())? > MAX_BYTES {
            // What was only listed so far takes no room.
            let sql = "SELECT id FROM conversations WHERE requests > 0 ORDER BY last_ms LIMIT 1";
            let oldest: Option<String> = self.lock().query_row(sql, [], |row| row.get(0)).optional()?;
            let Some(oldest) = oldest else { return Ok(()) };
            self.delete(Some(&oldest))?;
        }
        Ok(())
    }
}
