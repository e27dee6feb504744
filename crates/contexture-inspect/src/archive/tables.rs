//! The schema of an archive.

use contexture_gateway::write::StoreError;
use contexture_store::database::{migrate, version};
use rusqlite::Connection;

/// The schema version.
pub(super) const VERSION: i64 = 3;

/// Tables by which an archive is known, each with a column that others hardly have.
pub(super) const KNOWN_BY: &[(&str, &str)] =
    &[("conversations", "passed_through"), ("blocks", "preview"), ("places", "left_n")];

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', title TEXT NOT NULL DEFAULT '', parent TEXT, format TEXT,
    model TEXT NOT NULL DEFAULT '', first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0, turns INTEGER NOT NULL DEFAULT 0, largest INTEGER NOT NULL DEFAULT 0, came INTEGER NOT NULL DEFAULT 0,
    sent INTEGER NOT NULL DEFAULT 0, billed REAL NOT NULL DEFAULT 0, passed_through REAL NOT NULL DEFAULT 0,
    paid REAL NOT NULL DEFAULT 0, would_pay REAL NOT NULL DEFAULT 0, unpriced INTEGER NOT NULL DEFAULT 0,
    folds INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, is_reading INTEGER NOT NULL DEFAULT 0,
    stopped TEXT, unsendable INTEGER NOT NULL DEFAULT 0, simulated INTEGER NOT NULL DEFAULT 0,
    agent TEXT NOT NULL DEFAULT '', project TEXT NOT NULL DEFAULT '', modified_ms INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS conversations_by_time ON conversations (last_ms);
CREATE TABLE IF NOT EXISTS blocks (
    id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, source TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL,
    name TEXT NOT NULL, call TEXT NOT NULL, is_error INTEGER NOT NULL, tokens INTEGER NOT NULL, bytes INTEGER NOT NULL,
    preview TEXT NOT NULL, text TEXT NOT NULL, made TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS blocks_by_call ON blocks (call) WHERE call <> '';
CREATE TABLE IF NOT EXISTS places (
    number INTEGER PRIMARY KEY, conversation TEXT NOT NULL, block INTEGER NOT NULL, n INTEGER NOT NULL,
    is_sent INTEGER NOT NULL, left_n INTEGER, UNIQUE (conversation, block)
);
CREATE INDEX IF NOT EXISTS places_by_block ON places (block);
CREATE TABLE IF NOT EXISTS requests (
    conversation TEXT NOT NULL, n INTEGER NOT NULL, time_ms INTEGER NOT NULL, base INTEGER NOT NULL,
    came_keep INTEGER NOT NULL, came BLOB NOT NULL, sent_keep INTEGER NOT NULL, sent BLOB NOT NULL, line TEXT NOT NULL,
    tokens INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (conversation, n)
);
CREATE TABLE IF NOT EXISTS answers (
    conversation TEXT NOT NULL, n INTEGER NOT NULL, blocks BLOB NOT NULL, PRIMARY KEY (conversation, n)
);
CREATE TABLE IF NOT EXISTS pins (conversation TEXT NOT NULL, block INTEGER NOT NULL, PRIMARY KEY (conversation, block));
";

/// What the tables of version 1 lack.
const SINCE_FIRST: &str = "
ALTER TABLE conversations ADD COLUMN unsendable INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN simulated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE conversations ADD COLUMN project TEXT NOT NULL DEFAULT '';
ALTER TABLE conversations ADD COLUMN modified_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE blocks ADD COLUMN made TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
UPDATE requests SET tokens = coalesce(json_extract(line, '$.sent_tokens'), 0);
";

/// Until version 2, requests had their tokens by sources of blocks.
const SINCE_SECOND: &str = "
UPDATE requests SET line = json_set(line, '$.parts', json_object(
    'instructions', coalesce(json_extract(line, '$.sources.system'), 0) + coalesce(json_extract(line, '$.sources.tools'), 0),
    'people', coalesce(json_extract(line, '$.sources.said'), 0),
    'agent', coalesce(json_extract(line, '$.sources.model'), 0),
    'files', coalesce(json_extract(line, '$.sources.file'), 0) + coalesce(json_extract(line, '$.sources.made'), 0),
    'calls', coalesce(json_extract(line, '$.sources.output'), 0)));
";

/// Creates the tables, or refuses those of a newer version.
pub fn make(connection: &Connection) -> Result<(), StoreError> {
    match version(connection)? {
        VERSION => return Ok(()),
        newer if newer > VERSION => return Err(StoreError::Newer(newer)),
        _ => {}
    }
    // Others may open the same file at this moment: one of them changes it, and the rest find it changed.
    migrate(connection, VERSION, |transaction, found| {
        if found == 1 {
            transaction.execute_batch(SINCE_FIRST)?;
        }
        if matches!(found, 1 | 2) {
            transaction.execute_batch(SINCE_SECOND)?;
        }
        Ok(transaction.execute_batch(TABLES)?)
    })
}
