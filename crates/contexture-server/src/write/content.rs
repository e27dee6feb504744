//! What is in a file, before anything is written into it.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// How long to wait for another process.
const BUSY: Duration = Duration::from_secs(5);

/// What is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing: there is no file, or an empty one.
    Nothing,
    /// What this program wrote there.
    Own,
    /// Something else, which must not be changed.
    Other,
}

impl Content {
    /// Looks at a file that is to have some tables, each named with one of its columns. The file is not changed.
    pub(crate) fn of(path: &Path, tables: &[(&str, &str)]) -> Self {
        match std::fs::metadata(path) {
            Err(_) => return Self::Nothing,
            Ok(found) if found.is_file() && found.len() == 0 => return Self::Nothing,
            Ok(found) if !found.is_file() => return Self::Other,
            Ok(_) => {}
        }
        Self::of_database(path, tables).unwrap_or(Self::Other)
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
