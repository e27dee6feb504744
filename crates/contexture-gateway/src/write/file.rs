//! Checks and copies the gateway's file as a whole.

use std::path::Path;
use std::time::Duration;

use contexture_store::database::version;
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

use super::error::StoreError;
use super::sqlite::{VERSION, damaged_rows};

/// How long to wait for another process.
const BUSY: Duration = Duration::from_secs(20);

/// Most findings that are listed.
const MOST_FINDINGS: usize = 1_000;

/// What was found in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckedFile {
    /// Rows that were compared with their sums.
    pub rows: u64,
    /// Conversations.
    pub conversations: u64,
    /// Requests.
    pub requests: u64,
    /// What is wrong: the first 1 000.
    pub findings: Vec<String>,
}

/// Looks for damage in a file of the gateway: in the database, and in every row that has a sum. The file is not changed,
/// and gateways may go on meanwhile.
///
/// # Errors
/// The file cannot be read at all.
pub fn check_store_file(path: &Path) -> Result<CheckedFile, StoreError> {
    check_database(path, VERSION, damaged_rows)
}

/// What looks at rows: it returns how many there are, and what is wrong with some of them.
pub type RowCheck = fn(&Connection, usize) -> Result<(u64, Vec<String>), StoreError>;

/// Looks for damage in a database with conversations and requests that this program wrote: in the file, and in what
/// `rows` looks at. The file is not changed.
///
/// # Errors
/// The file cannot be read at all, or is of a version after `newest`.
pub fn check_database(path: &Path, newest: i64, rows: RowCheck) -> Result<CheckedFile, StoreError> {
    let connection = reading(path)?;
    let found = version(&connection)?;
    if found > newest {
        return Err(StoreError::Newer(found));
    }
    // All of it as of one moment.
    let transaction = connection.unchecked_transaction()?;
    let mut checked = CheckedFile::default();
    let mut statement = transaction.prepare(&format!("PRAGMA integrity_check({MOST_FINDINGS})"))?;
    let mut found_rows = statement.query([])?;
    while let Some(row) = found_rows.next()? {
        let found: String = row.get(0)?;
        if found != "ok" {
            checked.findings.push(found);
        }
    }
    match rows(&transaction, MOST_FINDINGS) {
        Ok((count, findings)) => {
            checked.rows = count;
            checked.findings.extend(findings);
        }
        Err(error) => checked.findings.push(error.to_string()),
    }
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        transaction.query_row(&sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    };
    match (count("conversations"), count("requests")) {
        (Ok(conversations), Ok(requests)) => (checked.conversations, checked.requests) = (conversations, requests),
        (Err(error), _) | (_, Err(error)) => checked.findings.push(error.to_string()),
    }
    checked.findings.truncate(MOST_FINDINGS);
    Ok(checked)
}

/// Copies a file of the gateway into a new one, as of one moment; gateways may go on meanwhile. Returns what the copy
/// has.
///
/// # Errors
/// There is something at the target already, the file cannot be read, or the copy cannot be written.
pub fn copy_store_file(from: &Path, to: &Path) -> Result<CheckedFile, StoreError> {
    copy_database(from, to, VERSION, damaged_rows)
}

/// Copies a database that this program wrote into a new file, as of one moment. Returns what the copy has.
///
/// # Errors
/// There is something at the target already, the file cannot be read, or the copy cannot be written.
pub fn copy_database(from: &Path, to: &Path, newest: i64, rows: RowCheck) -> Result<CheckedFile, StoreError> {
    let source = |kind: std::io::ErrorKind| StoreError::Open { path: to.to_owned(), source: kind.into() };
    if std::fs::metadata(to).is_ok_and(|file| file.len() > 0) {
        return Err(source(std::io::ErrorKind::AlreadyExists));
    }
    let path = to.to_str().ok_or_else(|| source(std::io::ErrorKind::InvalidFilename))?;
    super::sqlite::make_file(to).map_err(|error| StoreError::Open { path: to.to_owned(), source: error })?;
    reading(from)?.execute("VACUUM INTO ?1", [path])?;
    check_database(to, newest, rows)
}

fn reading(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}
