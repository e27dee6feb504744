//! The tables, and how they are created.

use contexture_text::search::SPLITTING_VERSION;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::error::PostgresError;
use super::pause::pause;

/// The newest format that this program supports, and the one that it creates.
const FORMAT: i64 = 1;

/// How many times to check again while another process creates the tables.
const MAX_LOOKS: u32 = 8;

/// Keys, names and values are bytes, so that they are compared byte by byte and may contain NUL. A key is identified by
/// its digest, since an index entry cannot hold a long one, and listed by its first bytes. `writer` identifies the
/// batch that wrote the record.
const TABLES: &str = "
    CREATE TABLE contexture_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE SEQUENCE contexture_versions;
    CREATE TABLE contexture_records (
        hash BYTEA PRIMARY KEY,
        version BIGINT NOT NULL,
        writer BYTEA NOT NULL,
        prefix BYTEA NOT NULL,
        key BYTEA NOT NULL,
        value BYTEA NOT NULL
    );
    CREATE INDEX contexture_records_by_prefix ON contexture_records (prefix);
    CREATE TABLE contexture_leases (
        hash BYTEA PRIMARY KEY,
        key BYTEA NOT NULL,
        token BIGINT NOT NULL,
        expires_ms BIGINT NOT NULL,
        owner BYTEA NOT NULL
    );
    CREATE TABLE contexture_search_scopes (
        scope BYTEA PRIMARY KEY,
        documents BIGINT NOT NULL,
        length BIGINT NOT NULL,
        name BYTEA NOT NULL
    );
    CREATE TABLE contexture_search_documents (
        scope BYTEA NOT NULL,
        document BYTEA NOT NULL,
        length BIGINT NOT NULL,
        name BYTEA NOT NULL,
        metadata BYTEA NOT NULL,
        text BYTEA NOT NULL,
        PRIMARY KEY (scope, document)
    );
    CREATE TABLE contexture_search_postings (
        scope BYTEA NOT NULL,
        term BYTEA NOT NULL,
        document BYTEA NOT NULL,
        count BIGINT NOT NULL,
        length BIGINT NOT NULL,
        PRIMARY KEY (scope, term, document)
    );
    CREATE INDEX contexture_search_postings_by_document ON contexture_search_postings (scope, document);
";

/// One vector for each document that has one, and the order in which documents were added. Stores of before have neither.
const VECTORS: &str = "
    CREATE TABLE IF NOT EXISTS contexture_search_vectors (
        scope BYTEA NOT NULL,
        document BYTEA NOT NULL,
        model BYTEA NOT NULL,
        numbers BYTEA NOT NULL,
        PRIMARY KEY (scope, document)
    );
    ALTER TABLE contexture_search_documents ADD COLUMN IF NOT EXISTS added BIGINT NOT NULL DEFAULT 0;
";

/// The state of the tables.
enum TablesState {
    Format(i64),
    Nothing,
    SomethingElse,
}

/// Creates the tables if they do not exist and that is wanted, and refuses those of a newer version.
pub(super) async fn prepare(client: &Client, database: &str, creates: bool) -> Result<(), PostgresError> {
    let failed = |error: tokio_postgres::Error| {
        let database = database.to_owned();
        // Without the right to use a schema, the server says that there is none.
        let rights = [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::INVALID_SCHEMA_NAME];
        match error.as_db_error().filter(|said| rights.contains(said.code())) {
            Some(said) => PostgresError::NoRights { database, source: said.message().to_owned().into() },
            None => PostgresError::Connect { database, source: error.into() },
        }
    };
    for look in 0..MAX_LOOKS {
        match look_at(client).await.map_err(failed)? {
            TablesState::Format(found) if found > FORMAT => {
                return Err(PostgresError::NewerFormat { database: database.to_owned(), found, known: FORMAT });
            }
            TablesState::Format(_) => {
                add_vectors(client).await;
                return Ok(());
            }
            TablesState::SomethingElse => return Err(PostgresError::NotAStore { database: database.to_owned() }),
            TablesState::Nothing if !creates => return Err(PostgresError::NoStore { database: database.to_owned() }),
            TablesState::Nothing => match make(client).await {
                Ok(()) => return Ok(()),
                // Another process is creating them; they exist when its transaction ends.
                Err(error) if is_race(&error) => pause(look).await,
                Err(error) => return Err(failed(error)),
            },
        }
    }
    Err(PostgresError::NotAStore { database: database.to_owned() })
}

async fn look_at(client: &Client) -> Result<TablesState, tokio_postgres::Error> {
    let sql = "SELECT value FROM contexture_meta WHERE name = 'format'";
    match client.query_typed(sql, &[]).await {
        Ok(rows) => {
            let value: Option<String> = rows.first().and_then(|row| row.try_get(0).ok());
            Ok(value.and_then(|value| value.parse().ok()).map_or(TablesState::SomethingElse, TablesState::Format))
        }
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(TablesState::Nothing),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => Ok(TablesState::SomethingElse),
        Err(error) => Err(error),
    }
}

async fn make(client: &Client) -> Result<(), tokio_postgres::Error> {
    let rows = format!(
        "INSERT INTO contexture_meta (name, value) VALUES ('format', '{FORMAT}'), ('splitting', '{SPLITTING_VERSION}');"
    );
    let made = client.batch_execute(&format!("BEGIN; {TABLES} {} {rows} COMMIT;", VECTORS)).await;
    if made.is_err() {
        // The transaction is over either way; an error here says no more than the first one.
        let _ = client.batch_execute("ROLLBACK").await;
    }
    made
}

/// Adds what stores of before lack for vectors, unless they have it.
async fn add_vectors(client: &Client) {
    let sql = "SELECT 1 WHERE to_regclass('contexture_search_vectors') IS NOT NULL";
    if client.query_typed(sql, &[]).await.is_ok_and(|rows| rows.is_empty()) {
        // Another process may be doing the same, or this one may not: then whoever uses vectors is told.
        let _ = client.batch_execute(VECTORS).await;
    }
}

fn is_race(error: &tokio_postgres::Error) -> bool {
    let races = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    error.code().is_some_and(|state| races.contains(state))
}
