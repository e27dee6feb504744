//! Looks for damage in a database.

use std::collections::BTreeMap;

use contexture_core::store::StoreError;
use contexture_text::search::SPLITTING_VERSION;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use super::connection::Unfinished;
use super::{PREFIX_BYTES, PostgresStore, hash};
use crate::judge::{Checked, StoreJudge, StoredDocument};

/// Rows that are read at once.
const ROWS: i64 = 200;

impl PostgresStore {
    /// Looks for damage without changing anything.
    pub(crate) async fn look(&self, told: &mut (dyn FnMut(u64, u64) + Send)) -> Result<Checked, StoreError> {
        let database = &self.shared.database;
        let client = database.client().await;
        let client = client.map_err(|trouble| database.failed("check the store".to_owned(), trouble))?;
        let unfinished = Unfinished::new(client);
        let mut judge = StoreJudge::default();
        if let Err(error) = look(unfinished.client(), &mut judge, told).await {
            let said = error.as_db_error().map_or_else(|| error.to_string(), |said| said.message().to_owned());
            judge.found(format!("{database:?}"), format!("it cannot be read to the end: {said}"));
            // Dropped, the connection is closed, and with it the transaction.
            return Ok(judge.finish());
        }
        unfinished.finish();
        Ok(judge.finish())
    }
}

/// Reads everything as of one moment.
async fn look(client: &Client, judge: &mut StoreJudge, told: &mut (dyn FnMut(u64, u64) + Send)) -> Result<(), Error> {
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    records(client, judge, told).await?;
    let found = client.query_typed("SELECT value FROM contexture_meta WHERE name = 'splitting'", &[]).await?;
    let splits_alike = found.first().is_some_and(|row| row.get::<_, String>(0) == SPLITTING_VERSION.to_string());
    let sql = "SELECT scope, name, documents, length FROM contexture_search_scopes ORDER BY scope";
    let mut entries = 0;
    for row in client.query_typed(sql, &[]).await? {
        let (scope, name): (Vec<u8>, Vec<u8>) = (row.get(0), row.get(1));
        let shown = String::from_utf8_lossy(&name).into_owned();
        if *blake3::hash(&name).as_bytes() != scope[..] {
            judge.found(format!("scope `{shown}` of the search index"), "it is filed under another name");
        }
        entries += documents(client, judge, &scope, &shown, splits_alike).await?;
        judge.scope(&name, row.get(2), row.get(3), splits_alike);
    }
    let rows = client.query_typed("SELECT count(*) FROM contexture_search_postings", &[]).await?;
    let total: i64 = rows.first().map_or(0, |row| row.get(0));
    if splits_alike && total != entries {
        judge.found("the search index", format!("it has {total} entries, and its documents have {entries}"));
    }
    client.batch_execute("COMMIT").await
}

async fn records(
    client: &Client,
    judge: &mut StoreJudge,
    told: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<(), Error> {
    let rows = client.query_typed("SELECT count(*) FROM contexture_records", &[]).await?;
    let total: i64 = rows.first().map_or(0, |row| row.get(0));
    let sql = "SELECT hash, key, prefix, value FROM contexture_records WHERE hash > $1 ORDER BY hash LIMIT $2";
    let mut after: Vec<u8> = Vec::new();
    loop {
        let rows = client.query_typed(sql, &[(&after, Type::BYTEA), (&ROWS, Type::INT8)]).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.get(0);
        for row in &rows {
            let (filed, key): (&[u8], &[u8]) = (row.get(0), row.get(1));
            judge.record(key, row.get(3));
            let shown = String::from_utf8_lossy(key);
            if *blake3::hash(key).as_bytes() != *filed {
                judge.found(&*shown, "it is filed under another key, so it cannot be found");
            }
            if row.get::<_, &[u8]>(2) != &key[..key.len().min(PREFIX_BYTES)] {
                judge.found(&*shown, "it is listed under another key");
            }
        }
        told(judge.records(), total.unsigned_abs());
    }
}

/// Returns how many entries the documents of a scope have.
async fn documents(
    client: &Client,
    judge: &mut StoreJudge,
    scope: &[u8],
    name: &str,
    splits_alike: bool,
) -> Result<i64, Error> {
    let sql = "SELECT document, name, text, metadata, length FROM contexture_search_documents \
               WHERE scope = $1 AND document > $2 ORDER BY document LIMIT $3";
    let of_document = "SELECT term, count FROM contexture_search_postings WHERE scope = $1 AND document = $2";
    let (mut after, mut entries): (Vec<u8>, i64) = (Vec::new(), 0);
    loop {
        let rows =
            client.query_typed(sql, &[(&scope, Type::BYTEA), (&after, Type::BYTEA), (&ROWS, Type::INT8)]).await?;
        let Some(last) = rows.last() else { return Ok(entries) };
        after = last.get(0);
        for row in rows {
            let (document, id): (Vec<u8>, Vec<u8>) = (row.get(0), row.get(1));
            let terms = client.query_typed(of_document, &[(&scope, Type::BYTEA), (&document, Type::BYTEA)]).await?;
            let postings: BTreeMap<Vec<u8>, i64> = terms.iter().map(|row| (row.get(0), row.get(1))).collect();
            entries += postings.len() as i64;
            if hash(&String::from_utf8_lossy(&id)) != document {
                let subject = format!("document `{}` of `{name}` in the search index", String::from_utf8_lossy(&id));
                judge.found(subject, "it is filed under another id");
            }
            let (text, metadata, length) = (row.get(2), row.get(3), row.get(4));
            let stored = StoredDocument { scope: name.to_owned(), id, text, metadata, length, postings };
            judge.document(&stored, splits_alike);
        }
    }
}
