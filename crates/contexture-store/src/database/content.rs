//! What is in a file, before anything is written into it.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

/// How long to wait for another process.
const BUSY: Duration = Duration::from_secs(20);

/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// What is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// Nothing: there is no file, or an empty one.
    Nothing,
    /// What this program wrote there.
    Own,
    /// Something else, which must not be changed.
    Other,
}

impl FileContent {
    /// Looks at a file that is to have some tables, each named with one of its columns. The file is not changed.
    pub fn of(path: &Path, tables: &[(&str, &str)]) -> Self {
        match std::fs::metadata(path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Self::Nothing;
            }
            // What cannot be looked at is not written to either; whoever tries learns why.
            Err(_) => return Self::Own,
            Ok(found) if found.is_file() && found.len() == 0 => return Self::Nothing,
            Ok(found) if !found.is_file() => return Self::Other,
            Ok(_) => {}
        }
        let until = Instant::now() + BUSY;
        loop {
            let error = match Self::of_database(path, tables) {
                Ok(content) => return content,
                Err(error) => error,
            };
            match error.sqlite_error_code() {
                // Another process opens or closes it at this moment.
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) if Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                // What cannot be opened is not written to either; whoever tries learns why. Reading needs some room beside
                // the file, which a full disk does not have.
                Some(
                    ErrorCode::CannotOpen
                    | ErrorCode::PermissionDenied
                    | ErrorCode::ReadOnly
                    | ErrorCode::DiskFull
                    | ErrorCode::SystemIoFailure,
                ) => return Self::Own,
                _ => return Self::Other,
            }
        }
    }

    fn of_database(path: &Path, tables: &[(&str, &str)]) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let count: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if count == 0 {
            let is_unused = number("user_version")? == 0 && number("application_id")? == 0;
            return Ok(if is_unused { Self::Nothing } else { Self::Other });
        }
        let sql = "SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2";
        for (table, column) in tables {
            if connection.query_row(sql, [table, column], |row| row.get::<_, i64>(0))? == 0 {
                return Ok(Self::Other);
            }
        }
        Ok(Self::Own)
    }
}
