//! How texts are split into terms for a search, and an index in memory.
//!
//! Every index splits alike, so that each finds the same documents in the same order.

mod irregular;
mod stem;
mod terms;
mod memory;

use contexture_core::BoxFuture;
use contexture_core::search::{SearchError, SearchHit, SearchIndex, TermWeights};

pub use memory::MemoryIndex;
pub use terms::{MAX_QUERY_TERMS, SPLITTING_VERSION, count_terms, for_each_term, query_terms, terms};

/// What [`SearchIndex::search`] does: finds the terms of a text, which all have the weight 1.
pub fn find_text<'a, I: SearchIndex + ?Sized>(
    index: &'a I,
    scope: &'a str,
    query: &'a str,
    limit: usize,
) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
    Box::pin(async move {
        let terms: TermWeights = query_terms(query).into_iter().map(|term| (term, 1.0)).collect();
        Ok(index.find(scope, &terms, limit).await?.hits)
    })
}
