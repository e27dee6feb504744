//! The tables of the gateway's file, and the sums by which damage in a row is noticed.

use contexture_store::database::migrate;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::conversation::stored::InStore;
use crate::write::error::StoreError;
use crate::write::saving::Saving;
use crate::write::sums::{number, sum, verified};

/// The schema version. Since 2, rows have sums.
pub(in crate::write) const VERSION: i64 = 2;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY, key BLOB NOT NULL, scope BLOB NOT NULL, parent TEXT, format TEXT NOT NULL, lead INTEGER NOT NULL,
    held_out INTEGER NOT NULL, known BLOB NOT NULL, points TEXT NOT NULL, account TEXT NOT NULL, stopped TEXT,
    version INTEGER NOT NULL, used_ms INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS conversations_by_key ON conversations (key, used_ms);
CREATE INDEX IF NOT EXISTS conversations_by_use ON conversations (used_ms);
CREATE INDEX IF NOT EXISTS conversations_by_end ON conversations (key, substr(known, -16));
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
CREATE INDEX IF NOT EXISTS texts_by_conversation ON texts (conversation);
CREATE TABLE IF NOT EXISTS behind (
    conversation TEXT NOT NULL, message INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (conversation, message)
);
CREATE TABLE IF NOT EXISTS rests (conversation TEXT PRIMARY KEY, messages INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS pins (conversation TEXT PRIMARY KEY, pins TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS gateways (id TEXT PRIMARY KEY, address TEXT NOT NULL, token TEXT NOT NULL, pid INTEGER NOT NULL);
";

/// The tables whose rows have a sum, each with what it is made of.
const SUMMED: [(&str, &str); 6] = [
    ("conversations", "id, known, points, account, version"),
    ("steps", "conversation, n, step"),
    ("decisions", "conversation, n, decision"),
    ("behind", "conversation, message, text"),
    ("texts", "hash, conversation, text"),
    ("requests", "session, time_ms, record"),
];

/// Tables by which a store of the gateway is known, each with a column that others hardly have.
pub(in crate::write) const KNOWN_BY: &[(&str, &str)] =
    &[("conversations", "held_out"), ("steps", "step"), ("decisions", "decision"), ("requests", "record")];

/// Words of the schema by which a damaged file is known that was a store of the gateway.
pub(in crate::write) const KNOWN_BY_BYTES: &[u8] = b"held_out INTEGER NOT NULL, known BLOB NOT NULL";

/// Creates the tables, or those columns that an older version did not have. All or nothing, so that a store that was
/// only begun is not mistaken for somebody else's file.
pub(in crate::write) fn create(connection: &Connection) -> Result<(), StoreError> {
    migrate(connection, VERSION, |transaction, _| {
        transaction.execute_batch(TABLES)?;
        for (table, _) in SUMMED {
            let sql = "SELECT 1 FROM pragma_table_info(?1) WHERE name = 'sum'";
            if transaction.query_row(sql, [table], |_| Ok(())).optional()?.is_none() {
                transaction.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN sum BLOB"))?;
            }
        }
        Ok(())
    })
}

/// Looks at every row that has a sum. Returns how many rows there are and what is wrong with them; no more than `most`.
pub(in crate::write) fn damaged_rows(connection: &Connection, most: usize) -> Result<(u64, Vec<String>), StoreError> {
    let (mut count, mut found) = (0, Vec::new());
    for (table, columns) in SUMMED {
        // Files of the first version have no sums.
        let sql = "SELECT 1 FROM pragma_table_info(?1) WHERE name = 'sum'";
        if connection.query_row(sql, [table], |_| Ok(())).optional()?.is_none() {
            continue;
        }
        let sql = format!("SELECT sum, rowid, {columns} FROM {table}");
        let mut statement = connection.prepare(&sql)?;
        let width = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            count += 1;
            let rowid: i64 = row.get(1)?;
            let mut parts: Vec<Vec<u8>> = Vec::new();
            for at in 2..width {
                parts.push(match row.get_ref(at)? {
                    rusqlite::types::ValueRef::Integer(n) => number(n).to_vec(),
                    rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) => bytes.to_vec(),
                    _ => Vec::new(),
                });
            }
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let sum: Option<Vec<u8>> = row.get(0)?;
            if verified(sum, &parts, "").is_err() && found.len() < most {
                found.push(format!("row {rowid} of `{table}` is not what was written"));
            }
        }
    }
    Ok((count, found))
}

/// Writes what is new about a conversation, of which `expected` is in the store. Returns what is in the store
/// afterwards.
pub(super) fn save(transaction: &Transaction<'_>, saving: &Saving, expected: InStore) -> Result<InStore, StoreError> {
    let id = &*saving.beginning.id;
    let sql = "SELECT version FROM conversations WHERE id = ?1";
    let stored = transaction.prepare_cached(sql)?.query_row(params![id], |row| row.get::<_, i64>(0)).optional()?;
    match stored {
        Some(version) if version as u64 != expected.version => return Err(StoreError::Conflict),
        None if saving.first != (0, 0) => return Err(StoreError::Gone),
        _ => {}
    }
    write_texts(transaction, saving)?;
    if stored.is_some() && saving.after.version < expected.version {
        return Ok(expected);
    }
    write_conversation(transaction, saving)?;
    write_decided(transaction, saving)?;
    for (message, text) in saving.attached.iter().filter(|_| saving.has_attached()) {
        let sum = sum(&[id.as_bytes(), &number(*message as i64), text.as_bytes()]);
        let sql = "INSERT OR REPLACE INTO behind (conversation, message, text, sum) VALUES (?1, ?2, ?3, ?4)";
        transaction.prepare_cached(sql)?.execute(params![id, *message as i64, &**text, sum])?;
    }
    Ok(saving.after)
}

fn write_texts(transaction: &Transaction<'_>, saving: &Saving) -> Result<(), StoreError> {
    let id = &*saving.beginning.id;
    for (hash, text) in &saving.texts {
        let sum = sum(&[hash.as_bytes(), id.as_bytes(), text.as_bytes()]);
        let sql = "INSERT OR IGNORE INTO texts (hash, conversation, text, sum) VALUES (?1, ?2, ?3, ?4)";
        transaction.prepare_cached(sql)?.execute(params![hash, id, text, sum])?;
    }
    Ok(())
}

/// Writes the row of a conversation.
fn write_conversation(transaction: &Transaction<'_>, saving: &Saving) -> Result<(), StoreError> {
    let beginning = &saving.beginning;
    let (points, account) = (serde_json::to_string(&saving.points)?, serde_json::to_string(&saving.account)?);
    let version = saving.after.version as i64;
    let id = beginning.id.as_bytes();
    let sum = sum(&[id, &saving.known, points.as_bytes(), account.as_bytes(), &number(version)]);
    let sql = "INSERT INTO conversations
               (id, key, scope, parent, format, lead, held_out, known, points, account, stopped, version, used_ms, sum)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
               ON CONFLICT (id) DO UPDATE SET known = ?8, points = ?9, account = ?10, stopped = ?11, version = ?12,
               used_ms = ?13, sum = ?14";
    transaction.prepare_cached(sql)?.execute(params![
        &*beginning.id,
        beginning.key.0,
        beginning.scope.0,
        beginning.parent.as_deref(),
        serde_json::to_string(&beginning.format)?,
        beginning.lead as i64,
        beginning.is_held_out,
        saving.known,
        points,
        account,
        saving.stopped,
        version,
        saving.used_ms as i64,
        sum,
    ])?;
    Ok(())
}

/// Writes plan changes and decisions.
fn write_decided(transaction: &Transaction<'_>, saving: &Saving) -> Result<(), StoreError> {
    let id = &*saving.beginning.id;
    for (table, count) in [("steps", saving.after.steps), ("decisions", saving.after.decisions)] {
        // Deletes what was reverted.
        let sql = format!("DELETE FROM {table} WHERE conversation = ?1 AND n >= ?2");
        transaction.prepare_cached(&sql)?.execute(params![id, count as i64])?;
    }
    for (n, step) in (saving.first.0 as i64..).zip(&saving.steps) {
        let sum = sum(&[id.as_bytes(), &number(n), step.as_bytes()]);
        let sql = "INSERT OR REPLACE INTO steps (conversation, n, step, sum) VALUES (?1, ?2, ?3, ?4)";
        transaction.prepare_cached(sql)?.execute(params![id, n, step, sum])?;
    }
    for (n, (messages, decision)) in (saving.first.1 as i64..).zip(&saving.decisions) {
        let sum = sum(&[id.as_bytes(), &number(n), decision.as_bytes()]);
        let sql =
            "INSERT OR REPLACE INTO decisions (conversation, n, messages, decision, sum) VALUES (?1, ?2, ?3, ?4, ?5)";
        transaction.prepare_cached(sql)?.execute(params![id, n, *messages as i64, decision, sum])?;
    }
    Ok(())
}

/// Deletes one conversation, or all, with everything that belongs to them. Returns how many there were.
pub(super) fn delete(transaction: &Transaction<'_>, conversation: Option<&str>) -> Result<usize, StoreError> {
    for table in ["steps", "decisions", "requests", "texts", "rests", "behind", "pins"] {
        match conversation {
            Some(id) => {
                let sql = format!("DELETE FROM {table} WHERE conversation = ?1");
                transaction.prepare_cached(&sql)?.execute(params![id])?
            }
            None => transaction.execute(&format!("DELETE FROM {table}"), [])?,
        };
    }
    Ok(match conversation {
        Some(id) => transaction.execute("DELETE FROM conversations WHERE id = ?1", params![id])?,
        None => transaction.execute("DELETE FROM conversations", [])?,
    })
}
