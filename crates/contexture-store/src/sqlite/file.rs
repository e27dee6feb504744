//! The file of the embedded store: its format, how it is recognised, and how it is opened.

use std::path::Path;
use std::time::Duration;

use contexture_core::percent::{encoded, is_unreserved};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::database::{self, Syncing, for_owner, is_damage, migrate, wait_for_lock};
use crate::open_error::OpenError;

/// Marks a SQLite file as ours: `CTXT` in ASCII.
const APPLICATION_ID: i32 = 0x4354_5854;

/// The newest format that this program reads, and the one that it writes.
const FORMAT_VERSION: i32 = 2;

/// Keys are blobs, so that they are compared byte by byte and may contain NUL. The version is before key and value, so
/// that it can be read without them. `readable` is for people with a `sqlite3` shell.
const SCHEMA: &str = "
    CREATE TABLE records (
        id INTEGER PRIMARY KEY,
        version INTEGER NOT NULL,
        key BLOB NOT NULL UNIQUE,
        value BLOB NOT NULL
    ) STRICT;
    CREATE TABLE counter (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        last_version INTEGER NOT NULL
    ) STRICT;
    INSERT INTO counter (only_row, last_version) VALUES (1, 0);
    CREATE VIEW readable AS
        SELECT CAST(key AS TEXT) AS key, version, length(value) AS bytes, CAST(value AS TEXT) AS value
        FROM records;
";

/// What format 2 adds to format 1. A program without leases must not write to the file, so it must refuse to open it.
const SCHEMA_2: &str = "
    CREATE TABLE leases (
        key BLOB PRIMARY KEY,
        token INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL,
        is_locked INTEGER NOT NULL,
        owner BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// How long emptying the write-ahead log waits for those who read.
const SCRUB_WAIT: Duration = Duration::from_millis(500);

/// The size to which the write-ahead log is truncated after a large batch.
const WAL_BYTES_KEPT: u32 = 16 * 1024 * 1024;

/// The number of prepared statements that a connection caches; we have fewer.
const PREPARED_STATEMENTS: usize = 16;

impl OpenError {
    pub(super) fn io(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        OpenError::Io { path: path.display().to_string(), source: source.into() }
    }

    fn not_a_store(path: &Path) -> Self {
        OpenError::NotAStore { path: path.display().to_string() }
    }

    fn sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let path_text = path.display().to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => OpenError::NotAStore { path: path_text },
            _ if is_damage(&error) => OpenError::Damaged { path: path_text, source: error.into() },
            _ => OpenError::Io { path: path_text, source: error.into() },
        }
    }

    /// For a file with our mark: a statement that does not even compile there means that a table is missing.
    fn tables(path: &Path, error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            None | Some(ErrorCode::Unknown) => {
                OpenError::Damaged { path: path.display().to_string(), source: error.into() }
            }
            _ => OpenError::sqlite(path, error),
        }
    }
}

/// Opens or creates the file at `path` and returns the connection for writing.
pub(super) fn open(path: &Path) -> Result<Connection, OpenError> {
    check_place(path)?;
    check_foreign(path)?;
    create_private(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let failed = |error| OpenError::sqlite(path, error);
    let mut connection = connect(path, flags).map_err(failed)?;
    // Until the file has been checked, closing it must not copy a write-ahead log that a killed process left into it.
    // If there is no such log, closing removes the empty one that opening creates.
    keep_log_on_close(&connection, has_log(path)).map_err(failed)?;
    if FileIdentity::read(&connection).map_err(failed)?.is_blank() {
        create(&mut connection).map_err(failed)?;
    }
    let mark = FileIdentity::read(&connection).map_err(failed)?;
    mark.check(path)?;
    check_tables(&connection).map_err(|error| OpenError::tables(path, error))?;
    if mark.format_version < FORMAT_VERSION {
        migrate(&connection, FORMAT_VERSION.into(), |transaction, _| transaction.execute_batch(SCHEMA_2))
            .map_err(failed)?;
    }
    keep_log_on_close(&connection, false).map_err(failed)?;
    prepare_to_write(&connection).map_err(failed)?;
    Ok(connection)
}

/// Opens one more connection, for reading only, to a file that [`open`] has opened.
pub(super) fn open_reader(path: &Path) -> Result<Connection, OpenError> {
    // Opened for writing all the same: a read-only connection cannot repair the index of the write-ahead log.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connect = || {
        let connection = connect(path, flags)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    };
    connect().map_err(|error| OpenError::sqlite(path, error))
}

/// Opens a file that exists, for reading only, and leaves it and its write-ahead log as they are.
#[cfg(feature = "postgres")]
pub(super) fn open_to_look(path: &Path) -> Result<Connection, OpenError> {
    check_place(path)?;
    check_foreign(path)?;
    let failed = |error| OpenError::sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(path, flags).map_err(failed)?;
    keep_log_on_close(&connection, has_log(path)).map_err(failed)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    FileIdentity::read(&connection).map_err(failed)?.check(path)?;
    Ok(connection)
}

/// Opens one more connection, to a file that [`open`] has opened, whose commits do not sync the disk.
pub(super) fn open_unsynced(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "mmap_size", 0)?;
    Ok(connection)
}

/// Copies the write-ahead log into the file and empties it: until then it has what was replaced.
///
/// If somebody reads just now, the log is kept, and is emptied the next time.
pub(super) fn scrub(path: &Path) -> rusqlite::Result<()> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(SCRUB_WAIT)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// A clear error where SQLite would say "unable to open database file".
fn check_place(path: &Path) -> Result<(), OpenError> {
    let directory = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Err(OpenError::not_a_store(path)),
    };
    if !directory.is_dir() {
        let (path, directory) = (path.display().to_string(), directory.display().to_string());
        return Err(OpenError::NoDirectory { path, directory });
    }
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(OpenError::not_a_store(path)),
        // SQLite treats a file of one byte as empty, and would overwrite it.
        Ok(metadata) if metadata.len() == 1 => Err(OpenError::not_a_store(path)),
        _ => Ok(()),
    }
}

/// Creates a missing file that only its owner can read and write. SQLite gives the files next to it the same
/// permissions.
///
/// An existing file is not touched: opening and closing it would release the locks that this process may hold.
fn create_private(path: &Path) -> Result<(), OpenError> {
    match for_owner(std::fs::OpenOptions::new().write(true).create_new(true)).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(OpenError::io(path, error)),
    }
}

/// Rejects another program's database, or one of a newer format, without changing anything.
///
/// `immutable` makes SQLite read the file alone, take no lock and leave no file beside it. The file is not
/// opened by other means, since closing it would take away the locks that this process may hold on it. What
/// cannot be read this way is not judged here: another process may just be making it.
fn check_foreign(path: &Path) -> Result<(), OpenError> {
    if !path.exists() {
        return Ok(());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match Connection::open_with_flags(immutable_uri(path), flags).and_then(|connection| FileIdentity::read(&connection))
    {
        Ok(mark) if !mark.is_blank() => mark.check(path),
        _ => Ok(()),
    }
}

/// The path as a URI for read-only access.
fn immutable_uri(path: &Path) -> String {
    let path = encoded(path.as_os_str().as_encoded_bytes(), |byte| byte == b'/' || is_unreserved(byte));
    format!("file:{path}?immutable=1")
}

/// Whether there is a write-ahead log, of a killed or of a running process.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|metadata| metadata.len() > 0)
}

fn keep_log_on_close(connection: &Connection, keep: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)?;
    Ok(())
}

/// The identification of a file.
struct FileIdentity {
    application_id: i32,
    format_version: i32,
    pages: i64,
}

impl FileIdentity {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let number = |name| connection.pragma_query_value(None, name, |row| row.get(0));
        Ok(FileIdentity {
            application_id: number("application_id")?,
            format_version: number("user_version")?,
            pages: connection.pragma_query_value(None, "page_count", |row| row.get(0))?,
        })
    }

    /// Whether the file is empty.
    fn is_blank(&self) -> bool {
        self.pages == 0
    }

    fn check(&self, path: &Path) -> Result<(), OpenError> {
        if self.application_id != APPLICATION_ID || self.format_version < 1 {
            return Err(OpenError::not_a_store(path));
        }
        if self.format_version > FORMAT_VERSION {
            let (found, known) = (self.format_version, FORMAT_VERSION);
            return Err(OpenError::NewerFormat { path: path.display().to_string(), found, known });
        }
        Ok(())
    }
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_handler(Some(wait_for_lock))?;
    connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
    Ok(connection)
}

/// Creates the tables, unless another process has done so.
///
/// This happens before the file gets its write-ahead log, in one transaction, so that the file itself can be identified
/// even if the process is killed right after.
fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    // Beginning the transaction gave the file its first page, so `is_blank` does not help here.
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        transaction.execute_batch(SCHEMA)?;
        transaction.execute_batch(SCHEMA_2)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
    }
    transaction.commit()
}

/// Detects missing tables and unreadable pages before anything is written.
fn check_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT last_version FROM counter", [], |row| row.get::<_, i64>(0))?;
    connection.query_row("SELECT count(*) FROM (SELECT key, version FROM records LIMIT 1)", [], |_| Ok(()))
}

/// One sync for each commit, without options that could lose acknowledged writes.
fn prepare_to_write(connection: &Connection) -> rusqlite::Result<()> {
    database::prepare_to_write(connection, Syncing::Full)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    connection.pragma_update(None, "mmap_size", 0)
}

#[cfg(test)]
mod tests {
    use contexture_core::store::{Batch, StorageAdapter, Version};

    use super::*;

    /// A killed process loses nothing that the system holds for it, so only a look at the settings shows whether
    /// a power cut would.
    #[test]
    fn every_commit_is_synced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        for _ in 0..2 {
            let connection = open(&path).unwrap();
            let text = |name| connection.pragma_query_value(None, name, |row| row.get::<_, String>(0)).unwrap();
            let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
            assert_eq!(text("journal_mode"), "wal");
            const FULL: i64 = 2;
            assert_eq!(number("synchronous"), FULL);
            assert_eq!(number("secure_delete"), 1);
        }
    }

    #[test]
    fn a_reader_cannot_write() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let _open = open(&path).unwrap();
        let reader = open_reader(&path).unwrap();
        let error = reader.execute("DELETE FROM records", []).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly));
    }

    /// A store as the second version of the format had it, and without its leases as the first one had it.
    #[tokio::test]
    async fn a_store_of_each_version_is_opened() {
        for first in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("store.db");
            let connection = Connection::open(&path).unwrap();
            connection.execute_batch(include_str!("store_2.sql")).unwrap();
            if first {
                connection.execute_batch("DROP TABLE leases; PRAGMA user_version = 1;").unwrap();
            }
            drop(connection);
            let store = crate::SqliteStore::open(&path).unwrap();
            assert_eq!(store.list("").await.unwrap(), ["a", "b/\u{fc}", "c"]);
            let record = store.get("a").await.unwrap().unwrap();
            assert_eq!((record.value, record.version), (b"2".to_vec(), Version(2)));
            let written = store.apply(Batch::new().expect("a", Some(record.version)).set("a", Vec::new())).await;
            assert_eq!(written.unwrap(), Version(4));
            drop(store);
            let connection = open(&path).unwrap();
            let leases = connection.query_row("SELECT count(*) FROM leases", [], |row| row.get::<_, i64>(0));
            assert_eq!((FileIdentity::read(&connection).unwrap().format_version, leases.unwrap()), (2, 0));
        }
    }
}
