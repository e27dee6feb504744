//! Carries over what can be read of a damaged file: the records of requests first, and every conversation that is whole.

use std::collections::HashSet;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use contexture_store::database::{for_owner, is_busy, is_damage};
use contexture_text::numbers::counted;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Row, Transaction, params, params_from_iter};

use super::tables::{self, DamagedRow, rows_not_as_written};
use crate::write::error::StoreError;

/// What is carried over, in this order: what is spent counts against caps, so records come before conversations.
const TABLES: [&str; 8] = ["requests", "conversations", "steps", "decisions", "behind", "pins", "rests", "texts"];

/// Those of them of which a conversation needs every row.
const STATE: [&str; 3] = ["steps", "decisions", "behind"];

/// How many rows after one that cannot be read are tried one by one. A page has fewer.
const NEAR_ROWS: i64 = 128;

/// What a file of ours has in its first hundred bytes, whatever is in it: where, and what. A page has 4096 bytes, and texts
/// are UTF-8. It is read without its write-ahead log, which belongs to the file itself.
const HEAD: [(usize, &[u8]); 3] =
    [(0, b"SQLite format 3\0\x10\x00\x01\x01\x00\x40\x20\x20"), (44, b"\x00\x00\x00\x04"), (56, b"\x00\x00\x00\x01")];

/// What was carried over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CarriedOver {
    /// Records of requests.
    pub(super) requests: usize,
    /// Conversations.
    pub(super) conversations: usize,
    /// Conversations of which something is missing. Their requests are there.
    pub(super) damaged: usize,
}

impl fmt::Display for CarriedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (requests, conversations) =
            (counted(self.requests, "request"), counted(self.conversations, "conversation"));
        write!(f, "{requests} and {conversations} of it are whole and go on")?;
        match self.damaged {
            0 => Ok(()),
            damaged => {
                write!(f, "; {} of which something is lost will be decided anew", counted(damaged, "conversation"))
            }
        }
    }
}

/// Carries over what can be read of a damaged file into a new one, all or nothing.
///
/// # Errors
/// Nothing of it can be read, or the new one cannot be written.
pub(super) fn carry_over(damaged: &Path, into: &mut Connection) -> Result<CarriedOver, StoreError> {
    let reading = reading(damaged)?;
    let transaction = into.transaction()?;
    let mut missing = HashSet::new();
    for table in TABLES {
        if !copy_table(&reading, &transaction, table)? {
            missing.insert(table);
        }
    }
    let damaged = delete_damaged(&transaction, &missing)?;
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        transaction.query_row(&sql, [], |row| row.get::<_, i64>(0)).map(|count| count.unsigned_abs() as usize)
    };
    let carried = CarriedOver { requests: count("requests")?, conversations: count("conversations")?, damaged };
    transaction.commit()?;
    Ok(carried)
}

/// Opens a damaged file. One whose head is damaged is read from a copy with the head that it had.
fn reading(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = |path: &Path| -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    let error = match open(path) {
        Err(error) if is_damage(&error) => error,
        opened => return Ok(opened?),
    };
    let failed = |source| StoreError::Open { path: path.to_owned(), source };
    let mut bytes = fs::read(path).map_err(failed)?;
    for (at, expected) in HEAD {
        let Some(found) = bytes.get_mut(at..at + expected.len()) else { return Err(error.into()) };
        found.copy_from_slice(expected);
    }
    let mut name = path.as_os_str().to_owned();
    name.push("-mended");
    let mended = PathBuf::from(name);
    let file = for_owner(OpenOptions::new().create_new(true).write(true)).open(&mended);
    file.and_then(|mut file| file.write_all(&bytes)).map_err(failed)?;
    let opened = open(&mended);
    // Where a file that is open cannot be removed it is left beside the damaged one.
    let _ = fs::remove_file(&mended);
    Ok(opened?)
}

/// Copies the rows of a table that can be read. Returns whether these are all.
fn copy_table(from: &Connection, into: &Transaction<'_>, table: &str) -> Result<bool, StoreError> {
    let columns = |connection: &Connection| -> Result<Vec<String>, StoreError> {
        let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let names = statement.query_map([table], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    };
    let Ok(found) = columns(from) else { return Ok(false) };
    let names: Vec<String> = columns(into)?.into_iter().filter(|name| found.contains(name)).collect();
    if names.is_empty() {
        return Ok(false);
    }
    let places: Vec<String> = (1..=names.len()).map(|n| format!("?{n}")).collect();
    let insert = format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({})", names.join(", "), places.join(", "));
    let mut insert = into.prepare(&insert)?;
    let mut is_whole = true;
    let mut first = i64::MIN;
    loop {
        let unreadable = read_rows(from, table, &names, first, &mut |values| {
            // One that does not fit the table is none that was written.
            is_whole &= !matches!(insert.execute(params_from_iter(values)), Ok(0) | Err(_));
        })?;
        let Some(unreadable) = unreadable else { return Ok(is_whole) };
        is_whole = false;
        let Some(next) = readable_after(from, table, unreadable) else { return Ok(false) };
        first = next.max(first.saturating_add(1));
    }
}

/// Reads rows from a number on. Returns the number after the last one if then comes one that cannot be read.
fn read_rows(
    connection: &Connection,
    table: &str,
    columns: &[String],
    first: i64,
    each: &mut dyn FnMut(Vec<Value>),
) -> Result<Option<i64>, StoreError> {
    let mut next = first;
    let sql = format!("SELECT rowid, {} FROM {table} WHERE rowid >= ?1 ORDER BY rowid", columns.join(", "));
    let mut read = || -> rusqlite::Result<()> {
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([first])?;
        while let Some(row) = rows.next()? {
            let rowid: i64 = row.get(0)?;
            next = rowid.saturating_add(1);
            each(values(row, columns.len())?);
        }
        Ok(())
    };
    match read() {
        Ok(()) => Ok(None),
        Err(error) if is_busy(&error) => Err(error.into()),
        Err(_) => Ok(Some(next)),
    }
}

fn values(row: &Row<'_>, count: usize) -> rusqlite::Result<Vec<Value>> {
    (1..=count).map(|at| row.get(at)).collect()
}

/// The first number from which on a table can be read again: rows are looked at one by one first, and then at distances
/// that double. `None` if there is none.
fn readable_after(connection: &Connection, table: &str, first: i64) -> Option<i64> {
    let sql = format!("SELECT rowid FROM {table} WHERE rowid >= ?1 ORDER BY rowid LIMIT 1");
    let mut statement = connection.prepare(&sql).ok()?;
    let mut is_readable = |from: i64| match statement.query_row([from], |row| row.get::<_, i64>(0)) {
        Ok(_) | Err(rusqlite::Error::QueryReturnedNoRows) => true,
        Err(_) => false,
    };
    let first = first.max(0);
    if let Some(near) = (0..NEAR_ROWS).map(|by| first.saturating_add(by)).find(|from| is_readable(*from)) {
        return Some(near);
    }
    let far = |power: u32| first.saturating_add(1 << power);
    let power = (7..62).find(|power| is_readable(far(*power)))?;
    let (mut unreadable, mut readable) = (far(power - 1), far(power));
    while readable - unreadable > 1 {
        let middle = unreadable + (readable - unreadable) / 2;
        if is_readable(middle) { readable = middle } else { unreadable = middle }
    }
    Some(readable)
}

/// Deletes what is not as it was written: a record or a text by itself, and of a conversation everything. `missing` are the
/// tables of which not all could be read. Returns how many conversations were damaged.
fn delete_damaged(transaction: &Transaction<'_>, missing: &HashSet<&str>) -> Result<usize, StoreError> {
    let mut gone: HashSet<String> = HashSet::new();
    for DamagedRow { table, rowid } in rows_not_as_written(transaction, usize::MAX)?.1 {
        if ["requests", "texts"].contains(&table) {
            transaction.execute(&format!("DELETE FROM {table} WHERE rowid = ?1"), [rowid])?;
            continue;
        }
        let id = if table == "conversations" { "id" } else { "conversation" };
        let sql = format!("SELECT {id} FROM {table} WHERE rowid = ?1");
        // What is no text names no conversation; the one that it was of lacks it.
        gone.extend(transaction.query_row(&sql, [rowid], |row| row.get::<_, String>(0)));
        transaction.execute(&format!("DELETE FROM {table} WHERE rowid = ?1"), [rowid])?;
    }
    // What rows of older versions do not say of themselves: how many parts there are. These are numbered.
    let numbered = |table: &str| format!("SELECT ifnull(max(n), -1) + 1 FROM {table} WHERE conversation = id");
    let count = |table: &str| format!("SELECT count(*) FROM {table} WHERE conversation = id");
    let sql = format!(
        "SELECT id FROM conversations WHERE ({}) <> ifnull(steps, ({})) OR ({}) <> ifnull(decisions, ({}))
         OR ({}) <> ifnull(behind, ({})) OR (steps IS NULL AND ?1)",
        count("steps"),
        numbered("steps"),
        count("decisions"),
        numbered("decisions"),
        count("behind"),
        count("behind"),
    );
    let is_missing = STATE.iter().any(|table| missing.contains(table));
    let mut statement = transaction.prepare(&sql)?;
    gone.extend(statement.query_map(params![is_missing], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?);
    drop(statement);
    for id in &gone {
        tables::delete_state(transaction, id)?;
    }
    // Parts of those whose own row is lost.
    let mut damaged = gone.len();
    for table in tables::PARTS {
        let sql = format!(
            "DELETE FROM {table} WHERE conversation NOT IN (SELECT id FROM conversations) RETURNING conversation"
        );
        let mut statement = transaction.prepare(&sql)?;
        let lost = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<HashSet<_>, _>>()?;
        let is_counted = STATE.contains(&table);
        damaged += lost.into_iter().filter(|id| is_counted && gone.insert(id.clone())).count();
    }
    Ok(damaged)
}
