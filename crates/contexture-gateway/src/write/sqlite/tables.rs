//! The tables of the gateway's file, and the sums by which damage in a row is noticed.

use std::sync::LazyLock;

use contexture_store::database::migrate;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, Transaction, TransactionBehavior, params, params_from_iter};

use crate::conversation::stored::InStore;
use crate::write::error::StoreError;
use crate::write::saving::Saving;
use crate::write::sums::{number, part, slices, sum};

/// The schema version. Since 2, rows have sums; since 3, a conversation's row says how many others belong to it.
pub(in crate::write) const VERSION: i64 = 3;

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
CREATE TABLE IF NOT EXISTS announced (what TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS gateways (id TEXT PRIMARY KEY, address TEXT NOT NULL, token TEXT NOT NULL, pid INTEGER NOT NULL);
";

/// Rows that have a sum: their table, the column of the sum, and what it is made of.
struct SummedRows {
    table: &'static str,
    sum: &'static str,
    columns: &'static str,
}

const SUMMED: [SummedRows; 7] = [
    // As the second version has it.
    SummedRows { table: "conversations", sum: "sum", columns: "id, known, points, account, version" },
    SummedRows {
        table: "conversations",
        sum: "whole",
        columns: "id, known, points, account, version, key, scope, parent, format, lead, held_out, stopped, used_ms, steps, \
                  decisions, behind",
    },
    SummedRows { table: "steps", sum: "sum", columns: "conversation, n, step" },
    SummedRows { table: "decisions", sum: "sum", columns: "conversation, n, decision" },
    SummedRows { table: "behind", sum: "sum", columns: "conversation, message, text" },
    SummedRows { table: "texts", sum: "sum", columns: "hash, conversation, text" },
    SummedRows { table: "requests", sum: "sum", columns: "session, time_ms, record" },
];

/// Lets programs of the second version go on with a file that is of this one by now: they do not write the newer columns,
/// so what these say of a row is no longer true of it.
const OLDER: &str = "
CREATE TRIGGER IF NOT EXISTS conversations_by_older AFTER UPDATE ON conversations
WHEN NEW.whole IS NOT NULL AND NEW.whole IS OLD.whole
BEGIN UPDATE conversations SET steps = NULL, decisions = NULL, behind = NULL, whole = NULL WHERE id = NEW.id; END;
";

/// The columns that came after the first version.
const ADDED: [(&str, &str); 10] = [
    ("conversations", "sum BLOB"),
    ("steps", "sum BLOB"),
    ("decisions", "sum BLOB"),
    ("behind", "sum BLOB"),
    ("texts", "sum BLOB"),
    ("requests", "sum BLOB"),
    ("conversations", "steps INTEGER"),
    ("conversations", "decisions INTEGER"),
    ("conversations", "behind INTEGER"),
    ("conversations", "whole BLOB"),
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
        for (table, column) in ADDED {
            let name = column.split(' ').next().unwrap_or_default();
            if !has_column(transaction, table, name)? {
                transaction.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column}"))?;
            }
        }
        Ok(transaction.execute_batch(OLDER)?)
    })
}

fn has_column(connection: &Connection, table: &str, column: &str) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2";
    Ok(connection.query_row(sql, [table, column], |_| Ok(())).optional()?.is_some())
}

/// A row that is not what was written.
pub(super) struct DamagedRow {
    pub(super) table: &'static str,
    pub(super) rowid: i64,
}

/// Looks at every row that has a sum. Returns how many rows there are and what is wrong with them; no more than `most`.
pub(in crate::write) fn damaged_rows(connection: &Connection, most: usize) -> Result<(u64, Vec<String>), StoreError> {
    let (count, damaged) = rows_not_as_written(connection, most)?;
    let found = damaged.into_iter().map(|row| format!("row {} of `{}` is not what was written", row.rowid, row.table));
    Ok((count, found.collect()))
}

/// The same, with the rows.
pub(super) fn rows_not_as_written(connection: &Connection, most: usize) -> Result<(u64, Vec<DamagedRow>), StoreError> {
    let (mut count, mut damaged) = (0, Vec::new());
    for SummedRows { table, sum, columns } in SUMMED {
        // Files of older versions do not have all sums.
        if !has_column(connection, table, sum)? {
            continue;
        }
        let mut statement = connection.prepare(&format!("SELECT {sum}, rowid, {columns} FROM {table}"))?;
        let width = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            // A conversation has two sums.
            count += u64::from(sum != "whole");
            let parts: Vec<Vec<u8>> =
                (2..width).map(|at| Ok(part(row.get_ref(at)?))).collect::<Result<_, StoreError>>()?;
            if !is_sum_of(row.get_ref(0)?, &parts) && damaged.len() < most {
                damaged.push(DamagedRow { table, rowid: row.get(1)? });
            }
        }
    }
    Ok((count, damaged))
}

/// Whether a sum is that of some parts. Rows of older versions have none.
fn is_sum_of(found: ValueRef<'_>, parts: &[Vec<u8>]) -> bool {
    match found {
        ValueRef::Null => true,
        ValueRef::Blob(found) => found == sum(&slices(parts)),
        _ => false,
    }
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
    let format = serde_json::to_string(&beginning.format)?;
    let counts = [saving.after.steps, saving.after.decisions, saving.attached.len()];
    let columns: [(&str, &dyn ToSql); 16] = [
        ("id", &&*beginning.id),
        ("known", &saving.known),
        ("points", &points),
        ("account", &account),
        ("version", &(saving.after.version as i64)),
        ("key", &beginning.key.0),
        ("scope", &beginning.scope.0),
        ("parent", &beginning.parent.as_deref()),
        ("format", &format),
        ("lead", &(beginning.lead as i64)),
        ("held_out", &beginning.is_held_out),
        ("stopped", &saving.stopped),
        ("used_ms", &(saving.used_ms as i64)),
        ("steps", &(counts[0] as i64)),
        ("decisions", &(counts[1] as i64)),
        ("behind", &(counts[2] as i64)),
    ];
    let parts: Vec<Vec<u8>> = columns.iter().map(|(_, value)| part_to_write(*value)).collect::<Result<_, _>>()?;
    let whole = sum(&slices(&parts));
    let values = columns.iter().map(|(_, value)| *value).chain([&whole as &dyn ToSql]);
    transaction.prepare_cached(&WRITE_CONVERSATION)?.execute(params_from_iter(values))?;
    Ok(())
}

/// Replaces the row of a conversation: the columns of the sum `whole` in its order, and the sum.
static WRITE_CONVERSATION: LazyLock<String> = LazyLock::new(|| {
    let rows = SUMMED.iter().find(|rows| rows.sum == "whole").expect("conversations have it");
    let names: Vec<&str> = rows.columns.split(", ").chain([rows.sum]).collect();
    let places: Vec<String> = (1..=names.len()).map(|n| format!("?{n}")).collect();
    let changed: Vec<String> = names.iter().map(|name| format!("{name} = excluded.{name}")).collect();
    format!(
        "INSERT INTO conversations ({}) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}, sum = NULL",
        names.join(", "),
        places.join(", "),
        changed.join(", ")
    )
});

fn part_to_write(value: &dyn ToSql) -> Result<Vec<u8>, StoreError> {
    Ok(match value.to_sql()? {
        ToSqlOutput::Borrowed(value) => part(value),
        ToSqlOutput::Owned(value) => part(ValueRef::from(&value)),
        _ => Vec::new(),
    })
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

/// The tables of what belongs to a conversation, apart from its own row and from the records of its requests.
pub(super) const PARTS: [&str; 6] = ["steps", "decisions", "texts", "rests", "behind", "pins"];

/// Deletes what is needed to send the same bytes for a conversation again. The records of its requests stay.
pub(super) fn delete_state(transaction: &Transaction<'_>, id: &str) -> Result<(), StoreError> {
    for table in PARTS {
        let sql = format!("DELETE FROM {table} WHERE conversation = ?1");
        transaction.prepare_cached(&sql)?.execute(params![id])?;
    }
    transaction.prepare_cached("DELETE FROM conversations WHERE id = ?1")?.execute(params![id])?;
    Ok(())
}

/// Notes that something was said to the user before it is done.
pub(super) fn announce(connection: &Connection, what: &str) -> Result<(), StoreError> {
    connection.execute("INSERT OR IGNORE INTO announced VALUES (?1)", params![what])?;
    Ok(())
}

/// Most conversations that expire with one start, so that nobody waits for long.
const MOST_EXPIRED: i64 = 1_000;

/// Deletes what is needed to send the same bytes of conversations again that were used last before some time.
pub(super) fn expire(connection: &mut Connection, before_ms: u64) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sql = "SELECT id FROM conversations WHERE used_ms < ?1 ORDER BY used_ms LIMIT ?2";
    let mut statement = transaction.prepare(sql)?;
    let old = statement.query_map(params![before_ms as i64, MOST_EXPIRED], |row| row.get::<_, String>(0))?;
    let old = old.collect::<Result<Vec<_>, _>>()?;
    drop(statement);
    for id in old {
        delete_state(&transaction, &id)?;
    }
    Ok(transaction.commit()?)
}

/// Deletes one conversation, or all, with everything that belongs to them. Returns how many there were: also those of which
/// only records of requests were left.
pub(super) fn delete(transaction: &Transaction<'_>, conversation: Option<&str>) -> Result<usize, StoreError> {
    let sql = "SELECT count(*) FROM (SELECT id FROM conversations WHERE ?1 IS NULL OR id = ?1
               UNION SELECT conversation FROM requests WHERE conversation IS NOT NULL AND (?1 IS NULL OR conversation = ?1))";
    let count = transaction.query_row(sql, params![conversation], |row| row.get::<_, i64>(0))?;
    match conversation {
        Some(id) => {
            delete_state(transaction, id)?;
            transaction.prepare_cached("DELETE FROM requests WHERE conversation = ?1")?.execute(params![id])?;
        }
        None => {
            for table in PARTS.into_iter().chain(["requests", "conversations"]) {
                transaction.execute(&format!("DELETE FROM {table}"), [])?;
            }
        }
    }
    Ok(count.unsigned_abs() as usize)
}
