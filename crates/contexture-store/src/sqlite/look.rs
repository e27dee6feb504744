//! Looks for damage in a file.

use std::collections::BTreeMap;
use std::path::Path;

use contexture_text::search::{SPLITTING_VERSION, count_terms};
use rusqlite::{Connection, OptionalExtension};

use super::search::find_term;
use super::{file, runs};
use crate::judge::{Checked, StoreJudge, StoredDocument};
use crate::open_error::OpenError;

/// How often progress is told, in records.
const TELL: u64 = 100;

/// Looks for damage in the file at `path` without changing it.
pub(crate) fn look(path: &Path, told: &mut dyn FnMut(u64, u64)) -> Result<Checked, OpenError> {
    let connection = file::open_to_look(path)?;
    let mut judge = StoreJudge::default();
    let subject = format!("the file `{}`", path.display());
    // From one moment.
    let looked = connection
        .execute_batch("BEGIN")
        .and_then(|()| pages(&connection, &subject, &mut judge))
        .and_then(|()| records(&connection, &mut judge, told))
        .and_then(|()| documents(&connection, &mut judge));
    if let Err(error) = looked {
        judge.found(subject, format!("it cannot be read to the end: {error}"));
    }
    Ok(judge.finish())
}

/// What SQLite itself finds wrong.
fn pages(connection: &Connection, subject: &str, judge: &mut StoreJudge) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    for line in statement.query_map([], |row| row.get::<_, String>(0))? {
        let line = line?;
        if line != "ok" {
            judge.found(subject, line);
        }
    }
    Ok(())
}

fn records(connection: &Connection, judge: &mut StoreJudge, told: &mut dyn FnMut(u64, u64)) -> rusqlite::Result<()> {
    let total: i64 = connection.query_row("SELECT count(*) FROM records", [], |row| row.get(0))?;
    let last: i64 = connection.query_row("SELECT last_version FROM counter", [], |row| row.get(0))?;
    let mut statement = connection.prepare("SELECT key, value, version FROM records ORDER BY key")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (key, version): (Vec<u8>, i64) = (row.get(0)?, row.get(2)?);
        judge.record(&key, row.get_ref(1)?.as_blob()?);
        if version > last {
            judge.found(String::from_utf8_lossy(&key), format!("its version {version} is beyond the counter, {last}"));
        }
        if judge.records().is_multiple_of(TELL) {
            told(judge.records(), total.unsigned_abs());
        }
    }
    Ok(())
}

fn documents(connection: &Connection, judge: &mut StoreJudge) -> rusqlite::Result<()> {
    if !connection.table_exists(None, "search_scopes")? {
        return Ok(());
    }
    let version = connection.query_row("SELECT version FROM search_splitting", [], |row| row.get(0)).optional()?;
    let splits_alike = version == Some(SPLITTING_VERSION);
    let mut entries = 0;
    let mut statement = connection.prepare(
        "SELECT d.id, d.scope, s.name, d.name, d.text, d.metadata, d.length
         FROM search_documents AS d LEFT JOIN search_scopes AS s ON s.id = d.scope",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (document, scope): (i64, i64) = (row.get(0)?, row.get(1)?);
        let name: Option<Vec<u8>> = row.get(2)?;
        let scope_name = name.map_or_else(|| format!("number {scope}"), |name| String::from_utf8_lossy(&name).into());
        let (id, text, metadata, length): (_, Vec<u8>, _, _) = (row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?);
        let mut postings = BTreeMap::new();
        for term in count_terms(&String::from_utf8_lossy(&text)).0.into_keys() {
            let Some(number) = find_term(connection, scope, &term)? else { continue };
            let count = runs::count_in(connection, number, document)?;
            postings.extend(count.map(|count| (term.into_bytes(), i64::from(count))));
        }
        entries += postings.len();
        judge.document(&StoredDocument { scope: scope_name, id, text, metadata, length, postings }, splits_alike);
    }
    let mut statement = connection.prepare("SELECT name, documents, length FROM search_scopes")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let name: Vec<u8> = row.get(0)?;
        judge.scope(&name, row.get(1)?, row.get(2)?, splits_alike);
    }
    let total = if splits_alike { runs::count_all(connection)? } else { entries };
    if total != entries {
        judge.found("the search index", format!("it has {total} entries, and its documents have {entries}"));
    }
    Ok(())
}
