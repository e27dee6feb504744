//! Full-text search: the contract of an index, how texts are split, and an index in memory.

pub use contexture_core::search::{
    Found, MAX_DOCUMENT_BYTES, MAX_METADATA_BYTES, MAX_SEARCH_NAME_BYTES, Near, Nearest, NoSearch, Posting, Ranking,
    SearchDocument, SearchError, SearchHit, SearchIndex, TermWeights, TextVector, check_scope,
};
pub use contexture_text::search::{
    MAX_QUERY_TERMS, MemoryIndex, SPLITTING_VERSION, count_terms, find_text, for_each_term, query_terms, terms,
};
