//! The search index in PostgreSQL. Texts are split into terms by our own code and stored in tables.

use std::collections::{BTreeMap, HashMap};

use contexture_core::search::{
    Found, Near, Posting, Ranking, SearchDocument, SearchError, SearchHit, SearchIndex, TermWeights, TextVector,
    check_scope,
};
use contexture_core::store::StoreError;
use contexture_text::search::{SPLITTING_VERSION, count_terms, find_text};
use futures_util::future::BoxFuture;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

use super::connection::{Database, Parameters, Retries, Trouble, Unfinished};
use super::hash;
use super::outcome::{OperationResult, read};
use super::vectors;

/// Stores documents and their terms in PostgreSQL, next to a [`PostgresStore`](super::PostgresStore). Cheap to clone.
///
/// Writers of one scope wait for each other; scopes are independent. Results are ranked by our own code, so they are
/// the same as those of every other index.
#[derive(Clone, Debug)]
pub struct PostgresIndex {
    database: Database,
}

/// Documents as columns.
#[derive(Default)]
struct DocumentColumns {
    documents: Vec<Vec<u8>>,
    lengths: Vec<i64>,
    names: Vec<Vec<u8>>,
    metadata: Vec<Vec<u8>>,
    texts: Vec<Vec<u8>>,
    added: Vec<i64>,
}

/// The most documents of one batch that keep their order.
const MAX_ORDERED: i64 = 1_000_000;

/// Postings as columns.
#[derive(Default)]
struct Postings {
    terms: Vec<Vec<u8>>,
    documents: Vec<Vec<u8>>,
    counts: Vec<i64>,
    lengths: Vec<i64>,
}

impl PostgresIndex {
    pub(super) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Runs an operation in one transaction, with retries. Every operation is safe to repeat.
    async fn run(&self, operation: Operation<'_>) -> Result<OperationResult, SearchError> {
        let mut retries = Retries::default();
        loop {
            let done = match self.database.client().await {
                Ok(client) => {
                    let unfinished = Unfinished::new(client);
                    let outcome = transaction(unfinished.client(), &operation).await;
                    unfinished.finish();
                    outcome.map_err(Trouble::Query)
                }
                Err(trouble) => Err(trouble),
            };
            let trouble = match done {
                Ok(outcome) => return Ok(outcome),
                Err(trouble) => trouble,
            };
            let failed = |trouble| search_error(self.database.failed(operation.name().to_owned(), trouble));
            retries.after(trouble).await.map_err(failed)?;
        }
    }
}

/// What is in the index, for copies and checks.
impl PostgresIndex {
    /// The names of all scopes, in order.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn scopes(&self) -> Result<Vec<String>, SearchError> {
        let sql = "SELECT name FROM contexture_search_scopes WHERE documents > 0 ORDER BY name";
        let rows = self.database.query(|| "list the scopes of the search index".to_owned(), sql, &[]).await;
        let rows = rows.map_err(search_error)?;
        rows.into_iter().map(|row| String::from_utf8(row.get(0)).map_err(|_| damaged("a scope is not text"))).collect()
    }

    /// The first documents of a scope whose ids come after another one, by id.
    ///
    /// # Errors
    /// The database cannot be read, or a document is damaged.
    pub async fn documents(
        &self,
        scope: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<SearchDocument>, SearchError> {
        let sql = "SELECT document, name, metadata, text FROM contexture_search_documents \
                   WHERE scope = $1 AND ($2 IS NULL OR name > $2) ORDER BY name LIMIT $3";
        let (scope, after) = (hash(scope), after.map(str::as_bytes));
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let parameters: Parameters<'_> = &[(&scope, Type::BYTEA), (&after, Type::BYTEA), (&most, Type::INT8)];
        let rows = self.database.query(|| "list the search index".to_owned(), sql, parameters).await;
        rows.map_err(search_error)?.into_iter().map(|row| Ok(hit((row, 0.0))?.document)).collect()
    }
}

/// A scope that is changed.
pub(super) struct ChangedScope<'a> {
    pub(super) hash: Vec<u8>,
    name: &'a str,
}

impl<'a> ChangedScope<'a> {
    fn new(name: &'a str) -> Self {
        Self { hash: hash(name), name }
    }
}

/// An operation that runs in one transaction.
enum Operation<'a> {
    Add { scope: ChangedScope<'a>, documents: &'a [SearchDocument] },
    Remove { scope: ChangedScope<'a>, documents: Vec<Vec<u8>> },
    Clear { scope: ChangedScope<'a> },
    Find { scope: Vec<u8>, terms: &'a TermWeights, limit: usize },
    Get { scope: Vec<u8>, documents: Vec<Vec<u8>> },
    Count { scope: Vec<u8> },
    AddVectors { scope: ChangedScope<'a>, vectors: &'a [(String, TextVector)] },
    Lacking { scope: Vec<u8>, model: &'a str, limit: usize },
    Near { scope: Vec<u8>, vector: &'a TextVector, limit: usize },
}

impl Operation<'_> {
    fn name(&self) -> &'static str {
        match self {
            Operation::Add { .. } => "add to the search index",
            Operation::Remove { .. } => "remove from the search index",
            Operation::Clear { .. } => "clear the search index",
            Operation::Find { .. } => "search",
            Operation::Get { .. } => "read from the search index",
            Operation::Count { .. } => "count in the search index",
            Operation::AddVectors { .. } => "add vectors to the search index",
            Operation::Lacking { .. } | Operation::Near { .. } => "compare vectors of the search index",
        }
    }

    /// Readers need one snapshot; writers of a scope lock it and wait for each other.
    fn level(&self) -> &'static str {
        match self {
            Operation::Add { .. }
            | Operation::Remove { .. }
            | Operation::Clear { .. }
            | Operation::AddVectors { .. } => "READ COMMITTED",
            _ => "REPEATABLE READ",
        }
    }

    async fn perform(&self, client: &Client) -> Result<OperationResult, Error> {
        match self {
            Operation::Add { scope, documents } => {
                add(client, scope, documents).await.map(|()| OperationResult::default())
            }
            Operation::Remove { scope, documents } => {
                lock_scope(client, scope).await?;
                Ok(OperationResult {
                    count: remove(client, &scope.hash, documents).await?,
                    ..OperationResult::default()
                })
            }
            Operation::Clear { scope } => clear(client, scope).await.map(|()| OperationResult::default()),
            Operation::Find { scope, terms, limit } => find(client, scope, terms, *limit).await,
            Operation::Get { scope, documents } => {
                let found = read(client, scope, documents).await?.into_iter().map(|row| (row, 0.0)).collect();
                Ok(OperationResult { found, ..OperationResult::default() })
            }
            Operation::Count { scope } => {
                let sql = "SELECT documents FROM contexture_search_scopes WHERE scope = $1";
                let rows = client.query_typed(sql, &[(scope, Type::BYTEA)]).await?;
                Ok(OperationResult { count: rows.first().map_or(0, |row| row.get(0)), ..OperationResult::default() })
            }
            Operation::AddVectors { scope, vectors } => {
                lock_scope(client, scope).await?;
                vectors::add(client, &scope.hash, vectors).await.map(|()| OperationResult::default())
            }
            Operation::Lacking { scope, model, limit } => vectors::lacking(client, scope, model, *limit).await,
            Operation::Near { scope, vector, limit } => vectors::near(client, scope, vector, *limit).await,
        }
    }
}

fn search_error(error: StoreError) -> SearchError {
    match error {
        StoreError::Io { doing, source } => SearchError::Io { doing, source },
        other => SearchError::Io { doing: other.to_string(), source: other.into() },
    }
}

async fn transaction(client: &Client, operation: &Operation<'_>) -> Result<OperationResult, Error> {
    client.batch_execute(&format!("BEGIN ISOLATION LEVEL {}", operation.level())).await?;
    let done = match split_anew(client).await {
        Ok(()) => operation.perform(client).await,
        Err(error) => Err(error),
    };
    match done {
        Ok(outcome) => client.batch_execute("COMMIT").await.map(|()| outcome),
        Err(error) => {
            // The first error is the one that matters.
            let _ = client.batch_execute("ROLLBACK").await;
            Err(error)
        }
    }
}

/// Splits all texts again if they were split by another version.
async fn split_anew(client: &Client) -> Result<(), Error> {
    let found = client.query_typed("SELECT value FROM contexture_meta WHERE name = 'splitting'", &[]).await?;
    let current = SPLITTING_VERSION.to_string();
    if found.first().is_some_and(|row| row.get::<_, String>(0) == current) {
        return Ok(());
    }
    let sql = "UPDATE contexture_meta SET value = $1 WHERE name = 'splitting' AND value <> $1 RETURNING name";
    if client.query_typed(sql, &[(&current, Type::TEXT)]).await?.is_empty() {
        return Ok(());
    }
    client.batch_execute("DELETE FROM contexture_search_postings").await?;
    let rows = client.query_typed("SELECT scope, document FROM contexture_search_documents", &[]).await?;
    for row in rows {
        let (scope, document): (Vec<u8>, Vec<u8>) = (row.get(0), row.get(1));
        let sql = "SELECT text FROM contexture_search_documents WHERE scope = $1 AND document = $2";
        let texts = client.query_typed(sql, &[(&scope, Type::BYTEA), (&document, Type::BYTEA)]).await?;
        let Some(text) = texts.first().map(|row| row.get::<_, Vec<u8>>(0)) else { continue };
        let mut postings = Postings::default();
        let length = postings.push(&document, &String::from_utf8_lossy(&text));
        postings.insert(client, &scope).await?;
        let sql = "UPDATE contexture_search_documents SET length = $3 WHERE scope = $1 AND document = $2";
        let parameters: Parameters<'_> = &[(&scope, Type::BYTEA), (&document, Type::BYTEA), (&length, Type::INT8)];
        client.query_typed(sql, parameters).await?;
    }
    let totals = "UPDATE contexture_search_scopes SET length = COALESCE((SELECT CAST(sum(d.length) AS BIGINT) \
                  FROM contexture_search_documents AS d WHERE d.scope = contexture_search_scopes.scope), 0)";
    client.batch_execute(totals).await
}

impl Postings {
    /// Adds the terms of a document. Returns how many it has.
    fn push(&mut self, document: &[u8], text: &str) -> i64 {
        let (counts, length) = count_terms(text);
        for (term, count) in counts {
            self.terms.push(term.into_bytes());
            self.documents.push(document.to_vec());
            self.counts.push(i64::from(count));
            self.lengths.push(i64::from(length));
        }
        i64::from(length)
    }

    async fn insert(&self, client: &Client, scope: &[u8]) -> Result<(), Error> {
        let sql = "INSERT INTO contexture_search_postings (scope, term, document, count, length) \
                   SELECT $1, p.term, p.document, p.count, p.length FROM unnest($2, $3, $4, $5) \
                   AS p (term, document, count, length)";
        let parameters: Parameters<'_> = &[
            (&scope, Type::BYTEA),
            (&self.terms, Type::BYTEA_ARRAY),
            (&self.documents, Type::BYTEA_ARRAY),
            (&self.counts, Type::INT8_ARRAY),
            (&self.lengths, Type::INT8_ARRAY),
        ];
        client.query_typed(sql, parameters).await.map(|_| ())
    }
}

/// Creates the row of a scope and locks it, so that its writers wait for each other.
async fn lock_scope(client: &Client, scope: &ChangedScope<'_>) -> Result<(), Error> {
    let make = "INSERT INTO contexture_search_scopes (scope, documents, length, name) VALUES ($1, 0, 0, $2) \
                ON CONFLICT (scope) DO NOTHING";
    let name = scope.name.as_bytes();
    client.query_typed(make, &[(&scope.hash, Type::BYTEA), (&name, Type::BYTEA)]).await?;
    let lock = "SELECT scope FROM contexture_search_scopes WHERE scope = $1 FOR UPDATE";
    client.query_typed(lock, &[(&scope.hash, Type::BYTEA)]).await.map(|_| ())
}

/// Removes documents and their terms. Returns how many there were.
async fn remove(client: &Client, scope: &[u8], documents: &[Vec<u8>]) -> Result<i64, Error> {
    let parameters: Parameters<'_> = &[(&scope, Type::BYTEA), (&documents, Type::BYTEA_ARRAY)];
    for table in ["postings", "vectors"] {
        let sql = format!("DELETE FROM contexture_search_{table} WHERE scope = $1 AND document = ANY($2)");
        client.query_typed(&sql, parameters).await?;
    }
    let sql = "DELETE FROM contexture_search_documents WHERE scope = $1 AND document = ANY($2) RETURNING length";
    let lengths = client.query_typed(sql, parameters).await?;
    let (removed, length) = (lengths.len() as i64, lengths.iter().map(|row| row.get::<_, i64>(0)).sum::<i64>());
    count(client, scope, -removed, -length).await?;
    Ok(removed)
}

async fn count(client: &Client, scope: &[u8], documents: i64, length: i64) -> Result<(), Error> {
    let sql = "UPDATE contexture_search_scopes SET documents = documents + $2, length = length + $3 WHERE scope = $1";
    let parameters: Parameters<'_> = &[(&scope, Type::BYTEA), (&documents, Type::INT8), (&length, Type::INT8)];
    client.query_typed(sql, parameters).await.map(|_| ())
}

async fn add(client: &Client, scope: &ChangedScope<'_>, documents: &[SearchDocument]) -> Result<(), Error> {
    lock_scope(client, scope).await?;
    let scope = &scope.hash[..];
    // Of two documents with the same id, the later one is kept.
    let last: HashMap<&str, usize> = documents.iter().enumerate().map(|(at, it)| (it.id.as_str(), at)).collect();
    let is_last = |(at, document): &(usize, &SearchDocument)| last.get(document.id.as_str()) == Some(at);
    let rows = client.query_typed("SELECT nextval('contexture_versions')", &[]).await?;
    let before = rows.first().map_or(0, |row| row.get::<_, i64>(0)).saturating_mul(MAX_ORDERED);
    let (mut columns, mut postings) = (DocumentColumns::default(), Postings::default());
    for (_, SearchDocument { id, text, metadata }) in documents.iter().enumerate().filter(is_last) {
        columns.added.push(before.saturating_add(columns.added.len() as i64));
        let document = hash(id);
        columns.lengths.push(postings.push(&document, text));
        columns.names.push(id.as_bytes().to_vec());
        columns.metadata.push(metadata.to_string().into_bytes());
        columns.texts.push(text.as_bytes().to_vec());
        columns.documents.push(document);
    }
    remove(client, scope, &columns.documents).await?;
    let sql = "INSERT INTO contexture_search_documents (scope, document, length, name, metadata, text, added) \
               SELECT $1, d.document, d.length, d.name, d.metadata, d.text, d.added FROM unnest($2, $3, $4, $5, $6, $7) \
               AS d (document, length, name, metadata, text, added)";
    let parameters: Parameters<'_> = &[
        (&scope, Type::BYTEA),
        (&columns.documents, Type::BYTEA_ARRAY),
        (&columns.lengths, Type::INT8_ARRAY),
        (&columns.names, Type::BYTEA_ARRAY),
        (&columns.metadata, Type::BYTEA_ARRAY),
        (&columns.texts, Type::BYTEA_ARRAY),
        (&columns.added, Type::INT8_ARRAY),
    ];
    client.query_typed(sql, parameters).await?;
    postings.insert(client, scope).await?;
    count(client, scope, columns.documents.len() as i64, columns.lengths.iter().sum()).await
}

async fn clear(client: &Client, scope: &ChangedScope<'_>) -> Result<(), Error> {
    lock_scope(client, scope).await?;
    for table in ["postings", "vectors", "documents", "scopes"] {
        let sql = format!("DELETE FROM contexture_search_{table} WHERE scope = $1");
        client.query_typed(&sql, &[(&scope.hash, Type::BYTEA)]).await?;
    }
    Ok(())
}

async fn find(client: &Client, scope: &[u8], wanted: &TermWeights, limit: usize) -> Result<OperationResult, Error> {
    let sql = "SELECT documents, length FROM contexture_search_scopes WHERE scope = $1";
    let rows = client.query_typed(sql, &[(&scope, Type::BYTEA)]).await?;
    let Some(totals) = rows.first() else { return Ok(OperationResult::default()) };
    let (documents, length): (i64, i64) = (totals.get(0), totals.get(1));
    let terms: Vec<Vec<u8>> = wanted.keys().map(|term| term.as_bytes().to_vec()).collect();
    let sql =
        "SELECT term, document, count, length FROM contexture_search_postings WHERE scope = $1 AND term = ANY($2)";
    let rows = client.query_typed(sql, &[(&scope, Type::BYTEA), (&terms, Type::BYTEA_ARRAY)]).await?;
    let mut by_term: HashMap<Vec<u8>, Vec<Posting<[u8; 32]>>> = HashMap::new();
    for row in rows {
        let (term, document): (Vec<u8>, Vec<u8>) = (row.get(0), row.get(1));
        let Ok(document) = <[u8; 32]>::try_from(document) else { continue };
        let number = |at: usize| u32::try_from(row.get::<_, i64>(at)).unwrap_or(u32::MAX);
        by_term.entry(term).or_default().push(Posting { document, count: number(2), length: number(3) });
    }
    let mut ranking = Ranking::new(documents.unsigned_abs(), length.unsigned_abs());
    let mut frequencies = BTreeMap::new();
    for (term, weight) in wanted {
        // In the order of the terms, so that floating-point sums are the same everywhere.
        let Some(postings) = by_term.get(term.as_bytes()) else { continue };
        ranking.add_term(*weight, postings);
        frequencies.insert(term.clone(), postings.len() as u64);
    }
    let scores: HashMap<Vec<u8>, f64> =
        ranking.best(limit).into_iter().map(|(document, score)| (document.to_vec(), score)).collect();
    let best: Vec<Vec<u8>> = scores.keys().cloned().collect();
    let rows = read(client, scope, &best).await?;
    let mut found: Vec<(Row, f64)> = rows
        .into_iter()
        .filter_map(|row| scores.get(&row.get::<_, Vec<u8>>(0)).copied().map(|score| (row, score)))
        .collect();
    found.sort_by(|(one, one_score), (other, other_score)| {
        let name = |row: &Row| row.get::<_, Vec<u8>>(1);
        other_score.total_cmp(one_score).then_with(|| name(one).cmp(&name(other)))
    });
    found.truncate(limit);
    Ok(OperationResult { count: documents, found, frequencies, ..OperationResult::default() })
}

fn damaged(problem: &str) -> SearchError {
    SearchError::Io { doing: "read a document of the search index".to_owned(), source: problem.into() }
}

fn hit((row, score): (Row, f64)) -> Result<SearchHit, SearchError> {
    let text = |at: usize| String::from_utf8(row.get(at)).map_err(|_| damaged("it is not text"));
    let metadata =
        serde_json::from_slice(&row.get::<_, Vec<u8>>(2)).map_err(|_| damaged("its metadata is not JSON"))?;
    Ok(SearchHit { document: SearchDocument { id: text(1)?, text: text(3)?, metadata }, score })
}

/// A number of documents.
fn number(count: i64) -> usize {
    usize::try_from(count).unwrap_or_default()
}

impl SearchIndex for PostgresIndex {
    fn add<'a>(&'a self, scope: &'a str, documents: Vec<SearchDocument>) -> BoxFuture<'a, Result<(), SearchError>> {
        Box::pin(async move {
            check_scope(scope)?;
            documents.iter().try_for_each(SearchDocument::check)?;
            self.run(Operation::Add { scope: ChangedScope::new(scope), documents: &documents }).await.map(|_| ())
        })
    }

    fn remove<'a>(&'a self, scope: &'a str, ids: &'a [String]) -> BoxFuture<'a, Result<usize, SearchError>> {
        let documents = ids.iter().map(|id| hash(id)).collect();
        Box::pin(async move {
            let outcome = self.run(Operation::Remove { scope: ChangedScope::new(scope), documents }).await?;
            Ok(number(outcome.count))
        })
    }

    fn clear<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<(), SearchError>> {
        Box::pin(async move { self.run(Operation::Clear { scope: ChangedScope::new(scope) }).await.map(|_| ()) })
    }

    fn find<'a>(
        &'a self,
        scope: &'a str,
        terms: &'a TermWeights,
        limit: usize,
    ) -> BoxFuture<'a, Result<Found, SearchError>> {
        Box::pin(async move {
            let outcome = self.run(Operation::Find { scope: hash(scope), terms, limit }).await?;
            let OperationResult { count, found, frequencies, .. } = outcome;
            let hits = found.into_iter().map(hit).collect::<Result<_, _>>()?;
            Ok(Found { hits, documents: count.unsigned_abs(), frequencies })
        })
    }

    fn get<'a>(&'a self, scope: &'a str, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<SearchDocument>, SearchError>> {
        Box::pin(async move {
            let documents = ids.iter().map(|id| hash(id)).collect();
            let outcome = self.run(Operation::Get { scope: hash(scope), documents }).await?;
            let mut by_id = HashMap::new();
            for found in outcome.found {
                let SearchHit { document, .. } = hit(found)?;
                by_id.insert(document.id.clone(), document);
            }
            Ok(ids.iter().filter_map(|id| by_id.get(id).cloned()).collect())
        })
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
        Box::pin(async move { Ok(number(self.run(Operation::Count { scope: hash(scope) }).await?.count)) })
    }

    fn add_vectors<'a>(
        &'a self,
        scope: &'a str,
        vectors: Vec<(String, TextVector)>,
    ) -> BoxFuture<'a, Result<(), SearchError>> {
        Box::pin(async move {
            self.run(Operation::AddVectors { scope: ChangedScope::new(scope), vectors: &vectors }).await.map(|_| ())
        })
    }

    fn without_vector<'a>(
        &'a self,
        scope: &'a str,
        model: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchDocument>, SearchError>> {
        Box::pin(async move {
            let outcome = self.run(Operation::Lacking { scope: hash(scope), model, limit }).await?;
            outcome.found.into_iter().map(|found| Ok(hit(found)?.document)).collect()
        })
    }

    fn near<'a>(
        &'a self,
        scope: &'a str,
        vector: &'a TextVector,
        limit: usize,
    ) -> BoxFuture<'a, Result<Near, SearchError>> {
        Box::pin(async move {
            let outcome = self.run(Operation::Near { scope: hash(scope), vector, limit }).await?;
            let (mean, compared) = (outcome.mean, outcome.count.unsigned_abs());
            let hits = outcome.found.into_iter().map(hit).collect::<Result<_, _>>()?;
            Ok(Near { hits, mean, compared })
        })
    }
}
