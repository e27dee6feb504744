//! Sessions that agents keep in a SQLite file of theirs, which is opened for reading only.

use std::path::Path;

use anyhow::Context;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

fn open(path: &Path) -> anyhow::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).with_context(|| format!("open `{}`", path.display()))?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

/// A row about a session.
pub(super) struct SessionRow {
    /// Its name.
    pub(super) session: String,
    /// Where the agent worked.
    pub(super) directory: Option<String>,
    /// When it changed last, as the database says it.
    pub(super) changed: String,
    /// The same in milliseconds since the Unix epoch.
    pub(super) changed_ms: u64,
    /// The size of its texts.
    pub(super) bytes: u64,
}

/// The sessions that a query finds: name, directory, time of the last change, size.
fn sessions(path: &Path, sql: &str) -> anyhow::Result<Vec<SessionRow>> {
    let connection = open(path)?;
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        let (changed, changed_ms) = match row.get(2)? {
            Value::Integer(time) => (time.to_string(), time.unsigned_abs()),
            Value::Text(text) => {
                let time = contexture::recall::parse_time(&text).unwrap_or_default();
                (text, time)
            }
            _ => (String::new(), 0),
        };
        let bytes = row.get::<_, Option<i64>>(3)?.unwrap_or_default().unsigned_abs();
        Ok(SessionRow { session: row.get(0)?, directory: row.get(1)?, changed, changed_ms, bytes })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The sessions of people in a database of OpenCode; those of sub-agents have a parent.
pub(super) fn opencode_sessions(path: &Path) -> anyhow::Result<Vec<SessionRow>> {
    let sql = "SELECT id, directory, time_updated,
            (SELECT sum(length(data)) FROM part WHERE part.session_id = session.id)
        FROM session WHERE parent_id IS NULL ORDER BY id";
    sessions(path, sql)
}

/// The messages of a session, one per line, as `opencode export` writes them.
pub(super) fn opencode_lines(path: &Path, session: &str) -> anyhow::Result<String> {
    let connection = open(path)?;
    let mut parts = connection.prepare("SELECT data FROM part WHERE message_id = ?1 ORDER BY id")?;
    let mut messages = connection.prepare("SELECT id, data FROM message WHERE session_id = ?1 ORDER BY id")?;
    let messages = messages.query_map([session], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let mut lines = String::new();
    for message in messages {
        let (id, data) = message?;
        let parts = parts.query_map([id], |row| row.get::<_, String>(0))?;
        let parts: Vec<serde_json::Value> = parts
            .collect::<rusqlite::Result<Vec<String>>>()?
            .iter()
            .filter_map(|part| serde_json::from_str(part).ok())
            .collect();
        let Ok(info) = serde_json::from_str::<serde_json::Value>(&data) else { continue };
        lines.push_str(&format!("{}\n", json!({ "info": info, "parts": parts })));
    }
    Ok(lines)
}

/// The sessions of people in a database of goose.
pub(super) fn goose_sessions(path: &Path) -> anyhow::Result<Vec<SessionRow>> {
    let sql = |kinds: &str| {
        format!(
            "SELECT id, working_dir, updated_at,
                (SELECT sum(length(content_json)) FROM messages WHERE messages.session_id = sessions.id)
            FROM sessions {kinds} ORDER BY id"
        )
    };
    // Older versions have no kinds of sessions.
    sessions(path, &sql("WHERE session_type NOT IN ('sub_agent', 'hidden')")).or_else(|_| sessions(path, &sql("")))
}

/// The messages of a session, one per line, as goose writes them into files.
pub(super) fn goose_lines(path: &Path, session: &str) -> anyhow::Result<String> {
    let connection = open(path)?;
    let sql = "SELECT role, content_json, created_timestamp FROM messages WHERE session_id = ?1
        ORDER BY created_timestamp, id";
    let mut statement = connection.prepare(sql)?;
    let rows = statement
        .query_map([session], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?)))?;
    let mut lines = String::new();
    for row in rows {
        let (role, content, created) = row?;
        let Ok(content) = serde_json::from_str::<serde_json::Value>(&content) else { continue };
        lines.push_str(&format!("{}\n", json!({ "role": role, "created": created, "content": content })));
    }
    Ok(lines)
}
