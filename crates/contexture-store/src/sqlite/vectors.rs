//! Vectors beside the documents of the search index.

use contexture_core::search::{Nearest, TextVector};
use rusqlite::{Connection, Transaction, params};

/// One vector for each document that has one. Those of other models stay until they are replaced.
pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS search_vectors (
        document INTEGER PRIMARY KEY,
        scope INTEGER NOT NULL,
        model BLOB NOT NULL,
        numbers BLOB NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS search_vectors_of ON search_vectors (scope, model);
";

/// Adds a vector, unless the document has no text: what was forgotten meanwhile gets none.
pub(super) fn add(
    transaction: &Transaction<'_>,
    scope: i64,
    document: i64,
    vector: &TextVector,
) -> rusqlite::Result<()> {
    let sql = "REPLACE INTO search_vectors (document, scope, model, numbers) SELECT ?1, ?2, ?3, ?4 \
               WHERE EXISTS (SELECT 1 FROM search_documents WHERE id = ?1 AND length(text) > 0)";
    let vector = params![document, scope, vector.model().as_bytes(), vector.as_bytes()];
    transaction.prepare_cached(sql)?.execute(vector).map(drop)
}

pub(super) fn remove(transaction: &Transaction<'_>, document: i64) -> rusqlite::Result<()> {
    transaction.prepare_cached("DELETE FROM search_vectors WHERE document = ?1")?.execute([document]).map(drop)
}

/// Documents with text and without a vector of a model, the newest first.
pub(super) fn lacking(connection: &Connection, scope: i64, model: &str, limit: usize) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT id FROM search_documents AS d WHERE scope = ?1 AND length(text) > 0 AND NOT EXISTS \
               (SELECT 1 FROM search_vectors AS v WHERE v.document = d.id AND v.model = ?2) ORDER BY id DESC LIMIT ?3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map(params![scope, model.as_bytes(), limit], |row| row.get(0))?.collect()
}

/// Compares all vectors of a scope.
pub(super) fn near<'a>(
    connection: &Connection,
    scope: i64,
    vector: &'a TextVector,
    limit: usize,
) -> rusqlite::Result<Nearest<'a, i64>> {
    let sql = "SELECT document, numbers FROM search_vectors WHERE scope = ?1 AND model = ?2";
    let mut nearest = Nearest::new(vector, limit);
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![scope, vector.model().as_bytes()])?;
    while let Some(row) = rows.next()? {
        nearest.add(row.get(0)?, row.get_ref(1)?.as_blob()?);
    }
    Ok(nearest)
}
