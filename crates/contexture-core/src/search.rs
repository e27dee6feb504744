//! Full-text search, a capability of the host like files and shell.
//!
//! How documents are ranked ([`Ranking`], BM25) is defined here. How a text is split into terms is a matter of languages
//! and in `contexture_text::search`, which has an index in memory too. With both, every [`SearchIndex`] finds the same
//! documents in the same order; `contexture_text::testing::search_conformance` checks it.

mod ranking;
mod vector;

use std::collections::BTreeMap;

use futures_util::future::{BoxFuture, ready};
use serde_json::Value;

pub use ranking::{Posting, Ranking};
pub use vector::{Nearest, TextVector};

/// The longest id and the longest scope, in bytes.
pub const MAX_SEARCH_NAME_BYTES: usize = 16 * 1024;
/// The longest text of a document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 4 * 1024 * 1024;
/// The largest metadata of a document, in bytes of JSON.
pub const MAX_METADATA_BYTES: usize = 16 * 1024;

/// A document.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchDocument {
    /// Its id within its scope.
    pub id: String,
    /// The text that is searched.
    pub text: String,
    /// Data that is returned with it.
    pub metadata: Value,
}

impl SearchDocument {
    /// A document without metadata.
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), text: text.into(), metadata: Value::Null }
    }

    /// Adds metadata.
    pub fn with_metadata(mut self, metadata: Value) -> Self {
        self.metadata = metadata;
        self
    }

    /// Checks the sizes that every index must accept.
    ///
    /// # Errors
    /// [`SearchError::TooLarge`] names the part that is too large.
    pub fn check(&self) -> Result<(), SearchError> {
        within("id", self.id.len(), MAX_SEARCH_NAME_BYTES)?;
        within("text", self.text.len(), MAX_DOCUMENT_BYTES)?;
        within("metadata", self.metadata.to_string().len(), MAX_METADATA_BYTES)
    }
}

/// Checks the length of a scope that every index must accept.
///
/// # Errors
/// [`SearchError::TooLarge`] if it is longer.
pub fn check_scope(scope: &str) -> Result<(), SearchError> {
    within("scope", scope.len(), MAX_SEARCH_NAME_BYTES)
}

fn within(what: &'static str, len: usize, max: usize) -> Result<(), SearchError> {
    if len > max { Err(SearchError::TooLarge { what, len, max }) } else { Ok(()) }
}

/// A document that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The document, as it was added.
    pub document: SearchDocument,
    /// How well it matches; comparable only with other hits of the same query.
    pub score: f64,
}

/// The terms that a search is for, each with its weight. `contexture_text::search::query_terms` makes terms of a text.
pub type TermWeights = BTreeMap<String, f64>;

/// The result of [`SearchIndex::find`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The documents that match best, best first.
    pub hits: Vec<SearchHit>,
    /// The number of documents of the scope.
    pub documents: u64,
    /// How many documents of the scope have each term; those that none has are not there.
    pub frequencies: BTreeMap<String, u64>,
}

/// The result of [`SearchIndex::near`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Near {
    /// The documents whose vectors are nearest, nearest first; the score is the cosine.
    pub hits: Vec<SearchHit>,
    /// The mean of the cosines of all vectors that were compared: models differ in how near unrelated texts are.
    pub mean: f64,
    /// How many vectors were compared.
    pub compared: u64,
}

/// Why an operation of an index failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The engine was built without an index.
    #[error("this engine was built without a search index\nhint: give it one with `EngineBuilder::search`")]
    NoIndex,
    /// Something is longer than an index must accept. Nothing was changed.
    #[error("{what} of {len} bytes: longer than {max}")]
    TooLarge {
        /// What: `id`, `scope`, `text` or `metadata`.
        what: &'static str,
        /// How long it is.
        len: usize,
        /// How long it may be.
        max: usize,
    },
    /// The disk, the network or the database failed. Nothing was changed, unless only the response was lost.
    #[error("{doing}")]
    Io {
        /// What was tried.
        doing: String,
        /// What stopped it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A full-text index.
///
/// A scope is any text; the documents of one scope do not affect searches in another. A layer uses the `scope_key` that
/// its `init` gets, so that no other layer, user or thread can find its documents.
///
/// Requirements for an implementation:
/// - Documents are found by the terms of their text, as `contexture_text::search::terms` splits it, ranked by
///   [`Ranking`] over the documents of their scope only, best first, equal ones by id in byte order.
/// - `add`, `remove` and `clear` change everything or nothing, and their changes are visible once they have returned;
///   in an index on disk they survive a crash.
/// - A query is plain text: no character has a special meaning, and no query is an error.
/// - A stored index records the `contexture_text::search::SPLITTING_VERSION` it was built with, and is rebuilt if the
///   version differs.
pub trait SearchIndex: Send + Sync {
    /// Adds documents to a scope; a document with a known id replaces the previous one. Of two with the same id, the
    /// later one is kept.
    fn add<'a>(&'a self, scope: &'a str, documents: Vec<SearchDocument>) -> BoxFuture<'a, Result<(), SearchError>>;

    /// Removes documents; returns how many existed.
    fn remove<'a>(&'a self, scope: &'a str, ids: &'a [String]) -> BoxFuture<'a, Result<usize, SearchError>>;

    /// Removes all documents of a scope.
    fn clear<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<(), SearchError>>;

    /// Returns the documents that match terms best, at most `limit`: what a term adds to the score of a document is
    /// multiplied by its weight.
    fn find<'a>(
        &'a self,
        scope: &'a str,
        terms: &'a TermWeights,
        limit: usize,
    ) -> BoxFuture<'a, Result<Found, SearchError>>;

    /// Returns the documents with these ids, in this order; those that do not exist are left out.
    fn get<'a>(&'a self, scope: &'a str, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<SearchDocument>, SearchError>>;

    /// Returns the documents that match a text best, at most `limit`: [`find`](Self::find) with the terms of the text,
    /// which all have the weight 1. `contexture_text::search::find_text` does that.
    fn search<'a>(
        &'a self,
        scope: &'a str,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>>;

    /// Returns the number of documents of a scope.
    fn count<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<usize, SearchError>>;

    /// Keeps vectors for documents, by their ids; those that do not exist or have no text are ignored. A document has one vector: one of
    /// another model replaces it, and it goes when the document is replaced or removed.
    ///
    /// The default keeps none, and then the two methods below find none.
    fn add_vectors<'a>(
        &'a self,
        scope: &'a str,
        vectors: Vec<(String, TextVector)>,
    ) -> BoxFuture<'a, Result<(), SearchError>> {
        let _ = (scope, vectors);
        Box::pin(ready(Ok(())))
    }

    /// Returns documents that have text and no vector of a model, at most `limit`; those that were added last come first.
    fn without_vector<'a>(
        &'a self,
        scope: &'a str,
        model: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchDocument>, SearchError>> {
        let _ = (scope, model, limit);
        Box::pin(ready(Ok(Vec::new())))
    }

    /// Returns the documents whose vectors of the same model are nearest to one, at most `limit`; equal ones in any order.
    fn near<'a>(
        &'a self,
        scope: &'a str,
        vector: &'a TextVector,
        limit: usize,
    ) -> BoxFuture<'a, Result<Near, SearchError>> {
        let _ = (scope, vector, limit);
        Box::pin(ready(Ok(Near::default())))
    }
}

/// A [`SearchIndex`] for agents without one: every call is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSearch;

fn refused<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, SearchError>> {
    Box::pin(ready(Err(SearchError::NoIndex)))
}

impl SearchIndex for NoSearch {
    fn add<'a>(&'a self, _: &'a str, _: Vec<SearchDocument>) -> BoxFuture<'a, Result<(), SearchError>> {
        refused()
    }

    fn remove<'a>(&'a self, _: &'a str, _: &'a [String]) -> BoxFuture<'a, Result<usize, SearchError>> {
        refused()
    }

    fn clear<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), SearchError>> {
        refused()
    }

    fn find<'a>(&'a self, _: &'a str, _: &'a TermWeights, _: usize) -> BoxFuture<'a, Result<Found, SearchError>> {
        refused()
    }

    fn get<'a>(&'a self, _: &'a str, _: &'a [String]) -> BoxFuture<'a, Result<Vec<SearchDocument>, SearchError>> {
        refused()
    }

    fn search<'a>(&'a self, _: &'a str, _: &'a str, _: usize) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
        refused()
    }

    fn count<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<usize, SearchError>> {
        refused()
    }
}
