//! The search index in the file of the embedded store.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use contexture_core::search::{
    Found, Near, Posting, Ranking, SearchDocument, SearchError, SearchHit, SearchIndex, TermWeights, TextVector,
    check_scope,
};
use contexture_text::search::{SPLITTING_VERSION, count_terms, find_text};
use foldhash::fast::FixedState;
use futures_util::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::{file, runs, vectors};

/// Terms, documents and counts, by scope. Names are blobs, so that they are compared byte by byte and may contain NUL.
/// The tables are created with the first use.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS search_splitting (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        version INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS search_scopes (
        id INTEGER PRIMARY KEY,
        name BLOB NOT NULL UNIQUE,
        documents INTEGER NOT NULL,
        length INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS search_documents (
        id INTEGER PRIMARY KEY,
        scope INTEGER NOT NULL,
        length INTEGER NOT NULL,
        name BLOB NOT NULL,
        metadata BLOB NOT NULL,
        text BLOB NOT NULL,
        UNIQUE (scope, name)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS search_terms (
        id INTEGER PRIMARY KEY,
        scope INTEGER NOT NULL,
        term BLOB NOT NULL,
        UNIQUE (scope, term)
    ) STRICT;
";

/// More than there are.
const CACHED_STATEMENTS: usize = 32;
/// How much of the index is kept in memory. A search goes through pages all over the file.
const CACHE_KIB: i64 = 16 * 1024;

/// A search index in the file of a [`SqliteStore`](super::SqliteStore).
///
/// Changes have reached the disk when their call returns. Several handles, also in several processes, may use one file
/// at once. Nothing is opened or written before the first use. An index built with another version of the splitting is
/// rebuilt from its texts at the first use. Clones share one connection.
#[derive(Clone, Debug)]
pub struct SqliteIndex {
    path: Arc<PathBuf>,
    connection: SharedConnection,
    /// Comparing all vectors of a scope takes long, and searches by words must not wait for it.
    comparing: SharedConnection,
}

type SharedConnection = Arc<Mutex<Option<Connection>>>;

type IndexResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

impl SqliteIndex {
    /// The index in the file at `path`, which is created with the first use.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: Arc::new(path.into()), connection: Arc::default(), comparing: Arc::default() }
    }

    /// The names of all scopes, in order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn scopes(&self) -> Result<Vec<String>, SearchError> {
        self.with("list the scopes of the search index", |connection| {
            let sql = "SELECT name FROM search_scopes WHERE documents > 0 ORDER BY name";
            let mut statement = connection.prepare(sql)?;
            let names = statement.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
            names.map(|name| Ok(String::from_utf8(name?)?)).collect()
        })
        .await
    }

    /// The first documents of a scope whose ids come after another one, by id.
    ///
    /// # Errors
    /// The file cannot be read, or a document is damaged.
    pub async fn documents(
        &self,
        scope: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<SearchDocument>, SearchError> {
        let (scope, after) = (scope.to_owned(), after.map(|after| after.as_bytes().to_vec()));
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.with("list the search index", move |connection| {
            let Some(scope) = find_scope(connection, &scope)? else { return Ok(Vec::new()) };
            let sql =
                "SELECT id FROM search_documents WHERE scope = ?1 AND (?2 IS NULL OR name > ?2) ORDER BY name LIMIT ?3";
            let mut statement = connection.prepare_cached(sql)?;
            let ids = statement.query_map(params![scope.id, after, most], |row| row.get(0))?;
            let ids: Vec<i64> = ids.collect::<rusqlite::Result<_>>()?;
            ids.into_iter().map(|id| read(connection, id)).collect()
        })
        .await
    }

    /// Runs `work` on a thread that may block.
    async fn with<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Connection) -> IndexResult<T> + Send + 'static,
    ) -> Result<T, SearchError> {
        self.with_connection(&self.connection, doing, work).await
    }

    async fn with_connection<T: Send + 'static>(
        &self,
        connection: &SharedConnection,
        doing: &'static str,
        work: impl FnOnce(&mut Connection) -> IndexResult<T> + Send + 'static,
    ) -> Result<T, SearchError> {
        let (path, shared) = (self.path.clone(), connection.clone());
        let done = tokio::task::spawn_blocking(move || -> IndexResult<T> {
            let mut slot = shared.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.is_none() {
                let mut connection = file::open(&path)?;
                connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
                connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
                prepare(&mut connection)?;
                *slot = Some(connection);
            }
            work(slot.as_mut().expect("it was just opened"))
        });
        let done = done.await.unwrap_or_else(|panic| Err(panic.into()));
        done.map_err(|source| SearchError::Io { doing: format!("{doing} in store `{}`", self.path.display()), source })
    }
}

/// Creates the tables, and rebuilds an index that was built with another version of the splitting.
fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.execute_batch(runs::SCHEMA)?;
    transaction.execute_batch(vectors::SCHEMA)?;
    let found: Option<u32> =
        transaction.query_row("SELECT version FROM search_splitting", [], |row| row.get(0)).optional()?;
    if found != Some(SPLITTING_VERSION) {
        split_anew(&transaction)?;
        transaction.execute("REPLACE INTO search_splitting VALUES (1, ?1)", [SPLITTING_VERSION])?;
    }
    transaction.commit()
}

/// Splits all texts again.
fn split_anew(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "DELETE FROM search_runs; DELETE FROM search_terms; UPDATE search_scopes SET documents = 0, length = 0",
    )?;
    let documents: Vec<(i64, i64)> = transaction
        .prepare("SELECT id, scope FROM search_documents ORDER BY scope, id")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for of_scope in documents.chunk_by(|(_, one), (_, other)| one == other) {
        let mut batch = DocumentBatch::new(transaction, of_scope[0].1);
        for (document, _) in of_scope {
            let text: Vec<u8> =
                transaction
                    .query_row("SELECT text FROM search_documents WHERE id = ?1", [document], |row| row.get(0))?;
            let terms = count_terms(&String::from_utf8_lossy(&text));
            transaction
                .prepare_cached("UPDATE search_documents SET length = ?2 WHERE id = ?1")?
                .execute(params![document, terms.1])?;
            batch.add(*document, terms)?;
        }
        batch.end()?;
    }
    Ok(())
}

/// Documents whose terms are entered together: each term is looked up once, and rows are written in the order of their
/// keys.
struct DocumentBatch<'a> {
    transaction: &'a Transaction<'a>,
    scope: i64,
    documents: i64,
    length: i64,
    postings: HashMap<String, Vec<Posting<i64>>, FixedState>,
    waiting: usize,
}

/// So many postings are entered at once, whatever the size of a batch.
const MAX_WAITING: usize = 100_000;

impl<'a> DocumentBatch<'a> {
    fn new(transaction: &'a Transaction<'a>, scope: i64) -> Self {
        Self { transaction, scope, documents: 0, length: 0, postings: HashMap::default(), waiting: 0 }
    }

    /// Adds a document that is later than all before.
    fn add(&mut self, document: i64, terms: (BTreeMap<String, u32>, u32)) -> rusqlite::Result<()> {
        let (counts, length) = terms;
        (self.documents, self.length) = (self.documents + 1, self.length + i64::from(length));
        self.waiting += counts.len();
        for (term, count) in counts {
            self.postings.entry(term).or_default().push(Posting { document, count, length });
        }
        if self.waiting >= MAX_WAITING { self.enter() } else { Ok(()) }
    }

    fn end(mut self) -> rusqlite::Result<()> {
        self.enter()?;
        count_documents(self.transaction, self.scope, self.documents, self.length)
    }

    fn enter(&mut self) -> rusqlite::Result<()> {
        let mut find = self.transaction.prepare_cached(FIND_TERM)?;
        let mut create = self.transaction.prepare_cached("INSERT INTO search_terms (scope, term) VALUES (?1, ?2)")?;
        let mut entries: Vec<(i64, Vec<Posting<i64>>)> = Vec::with_capacity(self.postings.len());
        for (term, postings) in self.postings.drain() {
            let term = params![self.scope, term.as_bytes()];
            let id = match find.query_row(term, |row| row.get(0)).optional()? {
                Some(id) => id,
                None => create.insert(term)?,
            };
            entries.push((id, postings));
        }
        entries.sort_unstable_by_key(|(id, _)| *id);
        let mut runs = runs::Appender::new(self.transaction)?;
        for (id, postings) in entries {
            runs.append(id, &postings)?;
        }
        self.waiting = 0;
        Ok(())
    }
}

const FIND_TERM: &str = "SELECT id FROM search_terms WHERE scope = ?1 AND term = ?2";

fn count_documents(transaction: &Transaction<'_>, scope: i64, documents: i64, length: i64) -> rusqlite::Result<()> {
    let mut count = transaction
        .prepare_cached("UPDATE search_scopes SET documents = documents + ?2, length = length + ?3 WHERE id = ?1")?;
    count.execute(params![scope, documents, length])?;
    Ok(())
}

fn add(connection: &mut Connection, scope: &str, documents: &[SearchDocument]) -> IndexResult<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction
        .prepare_cached("INSERT OR IGNORE INTO search_scopes (name, documents, length) VALUES (?1, 0, 0)")?
        .execute([scope.as_bytes()])?;
    let scope = find_scope(&transaction, scope)?.ok_or("the scope that was just made is not there")?.id;
    let mut batch = DocumentBatch::new(&transaction, scope);
    let mut insert = transaction.prepare_cached(
        "INSERT INTO search_documents (scope, length, name, metadata, text) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let last: HashMap<&str, usize> = documents.iter().enumerate().map(|(at, document)| (&*document.id, at)).collect();
    let kept = documents.iter().enumerate().filter(|(at, document)| last.get(&*document.id) == Some(at));
    for (_, SearchDocument { id, text, metadata }) in kept {
        remove_one(&transaction, scope, id)?;
        let terms = count_terms(text);
        let metadata = metadata.to_string();
        let document = insert.insert(params![scope, terms.1, id.as_bytes(), metadata.as_bytes(), text.as_bytes()])?;
        batch.add(document, terms)?;
    }
    drop(insert);
    batch.end()?;
    transaction.commit()?;
    Ok(())
}

fn remove(connection: &mut Connection, scope: &str, ids: &[String]) -> IndexResult<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(scope) = find_scope(&transaction, scope)? else { return Ok(0) };
    let mut removed = 0;
    for id in ids {
        removed += usize::from(remove_one(&transaction, scope.id, id)?);
    }
    transaction.commit()?;
    Ok(removed)
}

/// Returns `false` if it did not exist.
fn remove_one(transaction: &Transaction<'_>, scope: i64, id: &str) -> rusqlite::Result<bool> {
    let found: Option<(i64, i64, Vec<u8>)> = transaction
        .prepare_cached("SELECT id, length, text FROM search_documents WHERE scope = ?1 AND name = ?2")?
        .query_row(params![scope, id.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((document, length, text)) = found else { return Ok(false) };
    // A stored text was split by this version, so splitting it again finds all its terms.
    for term in count_terms(&String::from_utf8_lossy(&text)).0.keys() {
        let Some(term) = find_term(transaction, scope, term)? else { continue };
        // Terms that no document has any more are removed too: they may have been secrets.
        if !runs::remove(transaction, term, document)? {
            transaction.prepare_cached("DELETE FROM search_terms WHERE id = ?1")?.execute([term])?;
        }
    }
    transaction.prepare_cached("DELETE FROM search_documents WHERE id = ?1")?.execute([document])?;
    vectors::remove(transaction, document)?;
    count_documents(transaction, scope, -1, -length)?;
    Ok(true)
}

fn clear(connection: &mut Connection, scope: &str) -> IndexResult<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(ScopeRow { id, .. }) = find_scope(&transaction, scope)? {
        for statement in [
            "DELETE FROM search_runs WHERE term IN (SELECT id FROM search_terms WHERE scope = ?1)",
            "DELETE FROM search_terms WHERE scope = ?1",
            "DELETE FROM search_documents WHERE scope = ?1",
            "DELETE FROM search_vectors WHERE scope = ?1",
            "DELETE FROM search_scopes WHERE id = ?1",
        ] {
            transaction.execute(statement, [id])?;
        }
    }
    transaction.commit()?;
    Ok(())
}

struct ScopeRow {
    id: i64,
    documents: u64,
    length: u64,
}

fn find_scope(connection: &Connection, name: &str) -> rusqlite::Result<Option<ScopeRow>> {
    let scope = |row: &rusqlite::Row<'_>| {
        let (documents, length): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(ScopeRow { id: row.get(0)?, documents: documents.unsigned_abs(), length: length.unsigned_abs() })
    };
    let mut statement = connection.prepare_cached("SELECT id, documents, length FROM search_scopes WHERE name = ?1")?;
    statement.query_row([name.as_bytes()], scope).optional()
}

pub(super) fn find_term(connection: &Connection, scope: i64, term: &str) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached(FIND_TERM)?.query_row(params![scope, term.as_bytes()], |row| row.get(0)).optional()
}

/// Reads within one transaction, so from one moment.
fn find(connection: &mut Connection, scope: &str, terms: &TermWeights, limit: usize) -> IndexResult<Found> {
    let transaction = connection.transaction()?;
    let Some(scope) = find_scope(&transaction, scope)? else { return Ok(Found::default()) };
    let mut ranking = Ranking::new(scope.documents, scope.length);
    let mut frequencies = BTreeMap::new();
    for (term, weight) in terms {
        let Some(id) = find_term(&transaction, scope.id, term)? else { continue };
        let postings = runs::read(&transaction, id)?;
        ranking.add_term(*weight, &postings);
        frequencies.insert(term.clone(), postings.len() as u64);
    }
    let mut best = ranking.best(limit);
    if best.len() > limit {
        let last = best[limit - 1].1;
        let above = best.partition_point(|(_, score)| *score > last);
        let equal = best.split_off(above).into_iter().map(|(document, _)| document).collect();
        let first = first_by_name(&transaction, scope.id, &equal, limit - above)?;
        best.extend(first.into_iter().map(|document| (document, last)));
    }
    let hits =
        best.into_iter().map(|(document, score)| Ok(SearchHit { document: read(&transaction, document)?, score }));
    let mut hits = hits.collect::<IndexResult<Vec<_>>>()?;
    hits.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| one.document.id.as_bytes().cmp(other.document.id.as_bytes()))
    });
    Ok(Found { hits, documents: scope.documents, frequencies })
}

/// Of some documents of a scope, those whose names come first.
fn first_by_name(connection: &Connection, scope: i64, documents: &HashSet<i64>, count: usize) -> IndexResult<Vec<i64>> {
    /// Of more documents, the names are not read one by one: they are met soon in the index of names.
    const MANY: usize = 1_000;
    if documents.len() > MANY {
        let sql = "SELECT id FROM search_documents WHERE scope = ?1 ORDER BY name";
        let mut statement = connection.prepare_cached(sql)?;
        let by_name = statement.query_map([scope], |row| row.get(0))?;
        let met = by_name.filter(|id| id.as_ref().map_or(true, |id| documents.contains(id)));
        return Ok(met.take(count).collect::<rusqlite::Result<_>>()?);
    }
    let mut statement = connection.prepare_cached("SELECT name FROM search_documents WHERE id = ?1")?;
    let mut named: Vec<(Vec<u8>, i64)> = Vec::new();
    for document in documents {
        named.push((statement.query_row([document], |row| row.get(0))?, *document));
    }
    named.sort_unstable();
    Ok(named.into_iter().take(count).map(|(_, document)| document).collect())
}

fn add_vectors(connection: &mut Connection, scope: &str, vectors: &[(String, TextVector)]) -> IndexResult<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(scope) = find_scope(&transaction, scope)? else { return Ok(()) };
    for (id, vector) in vectors {
        if let Some(document) = find_document(&transaction, scope.id, id)? {
            vectors::add(&transaction, scope.id, document, vector)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Reads within one transaction, so from one moment.
fn near(connection: &mut Connection, scope: &str, vector: &TextVector, limit: usize) -> IndexResult<Near> {
    let transaction = connection.transaction()?;
    let Some(scope) = find_scope(&transaction, scope)? else { return Ok(Near::default()) };
    let (found, mean, compared) = vectors::near(&transaction, scope.id, vector, limit)?.end();
    let hit = |(document, score)| Ok(SearchHit { document: read(&transaction, document)?, score });
    Ok(Near { hits: found.into_iter().map(hit).collect::<IndexResult<_>>()?, mean, compared })
}

fn find_document(connection: &Connection, scope: i64, id: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM search_documents WHERE scope = ?1 AND name = ?2")?;
    statement.query_row(params![scope, id.as_bytes()], |row| row.get(0)).optional()
}

fn get(connection: &mut Connection, scope: &str, ids: &[String]) -> IndexResult<Vec<SearchDocument>> {
    let transaction = connection.transaction()?;
    let Some(scope) = find_scope(&transaction, scope)? else { return Ok(Vec::new()) };
    let mut documents = Vec::new();
    for id in ids {
        let found = find_document(&transaction, scope.id, id)?;
        documents.extend(found.map(|document| read(&transaction, document)).transpose()?);
    }
    Ok(documents)
}

fn read(connection: &Connection, document: i64) -> IndexResult<SearchDocument> {
    let mut statement = connection.prepare_cached("SELECT name, text, metadata FROM search_documents WHERE id = ?1")?;
    let (id, text, metadata): (Vec<u8>, Vec<u8>, Vec<u8>) =
        statement.query_row([document], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(SearchDocument {
        id: String::from_utf8(id)?,
        text: String::from_utf8(text)?,
        metadata: serde_json::from_slice(&metadata)?,
    })
}

impl SearchIndex for SqliteIndex {
    fn add<'a>(&'a self, scope: &'a str, documents: Vec<SearchDocument>) -> BoxFuture<'a, Result<(), SearchError>> {
        Box::pin(async move {
            check_scope(scope)?;
            documents.iter().try_for_each(SearchDocument::check)?;
            let scope = scope.to_owned();
            self.with("add to the search index", move |connection| add(connection, &scope, &documents)).await
        })
    }

    fn remove<'a>(&'a self, scope: &'a str, ids: &'a [String]) -> BoxFuture<'a, Result<usize, SearchError>> {
        let (scope, ids) = (scope.to_owned(), ids.to_vec());
        Box::pin(self.with("remove from the search index", move |connection| remove(connection, &scope, &ids)))
    }

    fn clear<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<(), SearchError>> {
        let scope = scope.to_owned();
        Box::pin(self.with("clear the search index", move |connection| clear(connection, &scope)))
    }

    fn find<'a>(
        &'a self,
        scope: &'a str,
        terms: &'a TermWeights,
        limit: usize,
    ) -> BoxFuture<'a, Result<Found, SearchError>> {
        let (scope, terms) = (scope.to_owned(), terms.clone());
        Box::pin(self.with("search", move |connection| find(connection, &scope, &terms, limit)))
    }

    fn get<'a>(&'a self, scope: &'a str, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<SearchDocument>, SearchError>> {
        let (scope, ids) = (scope.to_owned(), ids.to_vec());
        Box::pin(self.with("read from the search index", move |connection| get(connection, &scope, &ids)))
    }

    fn search<'a>(
        &'a self,
        scope: &'a str,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
        find_text(self, scope, query, limit)
    }

    fn count<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<usize, SearchError>> {
        let scope = scope.to_owned();
        Box::pin(self.with("count in the search index", move |connection| {
            let scope = find_scope(connection, &scope)?;
            Ok(scope.map_or(0, |scope| usize::try_from(scope.documents).unwrap_or(usize::MAX)))
        }))
    }

    fn add_vectors<'a>(
        &'a self,
        scope: &'a str,
        added: Vec<(String, TextVector)>,
    ) -> BoxFuture<'a, Result<(), SearchError>> {
        let scope = scope.to_owned();
        Box::pin(
            self.with("add vectors to the search index", move |connection| add_vectors(connection, &scope, &added)),
        )
    }

    fn without_vector<'a>(
        &'a self,
        scope: &'a str,
        model: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchDocument>, SearchError>> {
        let (scope, model) = (scope.to_owned(), model.to_owned());
        Box::pin(self.with("look for vectors in the search index", move |connection| {
            let transaction = connection.transaction()?;
            let Some(scope) = find_scope(&transaction, &scope)? else { return Ok(Vec::new()) };
            let lacking = vectors::lacking(&transaction, scope.id, &model, limit)?;
            lacking.into_iter().map(|document| read(&transaction, document)).collect()
        }))
    }

    fn near<'a>(
        &'a self,
        scope: &'a str,
        vector: &'a TextVector,
        limit: usize,
    ) -> BoxFuture<'a, Result<Near, SearchError>> {
        let (scope, vector) = (scope.to_owned(), vector.clone());
        Box::pin(self.with_connection(&self.comparing, "compare vectors", move |connection| {
            near(connection, &scope, &vector, limit)
        }))
    }
}
