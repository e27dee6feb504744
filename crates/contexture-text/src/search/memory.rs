//! The in-memory index.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::{BoxFuture, ready};

use contexture_core::search::{
    Found, Near, Nearest, Posting, Ranking, SearchDocument, SearchError, SearchHit, SearchIndex, TermWeights,
    TextVector, check_scope,
};

use super::find_text;
use super::terms::count_terms;

/// Keeps documents and their terms in memory.
#[derive(Debug, Default)]
pub struct MemoryIndex {
    scopes: Mutex<HashMap<String, ScopeIndex>>,
}

#[derive(Debug, Default)]
struct ScopeIndex {
    documents: BTreeMap<u64, IndexedDocument>,
    by_id: HashMap<String, u64>,
    by_term: HashMap<String, BTreeMap<u64, u32>>,
    total_length: u64,
    next: u64,
}

#[derive(Debug)]
struct IndexedDocument {
    document: SearchDocument,
    length: u32,
    vector: Option<TextVector>,
}

impl MemoryIndex {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    fn scopes(&self) -> MutexGuard<'_, HashMap<String, ScopeIndex>> {
        // Nothing that can panic happens while a scope is half changed.
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_all(&self, scope: &str, documents: Vec<SearchDocument>) -> Result<(), SearchError> {
        check_scope(scope)?;
        documents.iter().try_for_each(SearchDocument::check)?;
        let mut scopes = self.scopes();
        let scope = scopes.entry(scope.to_owned()).or_default();
        documents.into_iter().for_each(|document| scope.add(document));
        Ok(())
    }
}

impl ScopeIndex {
    fn add(&mut self, document: SearchDocument) {
        self.remove(&document.id);
        let (counts, length) = count_terms(&document.text);
        let number = self.next;
        self.next += 1;
        for (term, count) in counts {
            self.by_term.entry(term).or_default().insert(number, count);
        }
        self.total_length += u64::from(length);
        self.by_id.insert(document.id.clone(), number);
        self.documents.insert(number, IndexedDocument { document, length, vector: None });
    }

    /// Returns `false` if it did not exist.
    fn remove(&mut self, id: &str) -> bool {
        let Some(number) = self.by_id.remove(id) else { return false };
        let Some(IndexedDocument { document, length, .. }) = self.documents.remove(&number) else { return false };
        for term in count_terms(&document.text).0.into_keys() {
            if let Some(having) = self.by_term.get_mut(&term) {
                having.remove(&number);
                if having.is_empty() {
                    self.by_term.remove(&term);
                }
            }
        }
        self.total_length -= u64::from(length);
        true
    }

    fn find(&self, terms: &TermWeights, limit: usize) -> Found {
        let documents = self.documents.len() as u64;
        let mut ranking = Ranking::new(documents, self.total_length);
        let mut frequencies = BTreeMap::new();
        for (term, weight) in terms {
            let having = self.by_term.get(term).into_iter().flatten();
            let postings: Vec<Posting<u64>> = having
                .filter_map(|(number, count)| {
                    let length = self.documents.get(number)?.length;
                    Some(Posting { document: *number, count: *count, length })
                })
                .collect();
            ranking.add_term(*weight, &postings);
            if !postings.is_empty() {
                frequencies.insert(term.clone(), postings.len() as u64);
            }
        }
        let found = ranking.best(limit).into_iter();
        let mut hits: Vec<(&SearchDocument, f64)> =
            found.filter_map(|(number, score)| Some((&self.documents.get(&number)?.document, score))).collect();
        hits.sort_by(|(one, one_score), (other, other_score)| {
            other_score.total_cmp(one_score).then_with(|| one.id.cmp(&other.id))
        });
        hits.truncate(limit);
        let hits = hits.into_iter().map(|(document, score)| SearchHit { document: document.clone(), score }).collect();
        Found { hits, documents, frequencies }
    }

    fn add_vectors(&mut self, vectors: Vec<(String, TextVector)>) {
        for (id, vector) in vectors {
            let stored = self.by_id.get(&id).and_then(|number| self.documents.get_mut(number));
            if let Some(stored) = stored.filter(|stored| !stored.document.text.is_empty()) {
                stored.vector = Some(vector);
            }
        }
    }

    fn without_vector(&self, model: &str, limit: usize) -> Vec<SearchDocument> {
        let has = |stored: &IndexedDocument| stored.vector.as_ref().is_some_and(|vector| vector.model() == model);
        let lacking = self.documents.values().rev().filter(|stored| !stored.document.text.is_empty() && !has(stored));
        lacking.take(limit).map(|stored| stored.document.clone()).collect()
    }

    fn near(&self, vector: &TextVector, limit: usize) -> Near {
        let mut nearest = Nearest::new(vector, limit);
        for IndexedDocument { document, vector: own, .. } in self.documents.values() {
            let own = own.as_ref().filter(|own| own.model() == vector.model());
            own.into_iter().for_each(|own| nearest.add(document, own.as_bytes()));
        }
        let (found, mean, compared) = nearest.end();
        let hit = |(document, score): (&SearchDocument, f64)| SearchHit { document: document.clone(), score };
        Near { hits: found.into_iter().map(hit).collect(), mean, compared }
    }

    fn get(&self, ids: &[String]) -> Vec<SearchDocument> {
        let numbers = ids.iter().filter_map(|id| self.by_id.get(id));
        numbers.filter_map(|number| Some(self.documents.get(number)?.document.clone())).collect()
    }
}

impl SearchIndex for MemoryIndex {
    fn add<'a>(&'a self, scope: &'a str, documents: Vec<SearchDocument>) -> BoxFuture<'a, Result<(), SearchError>> {
        Box::pin(ready(self.add_all(scope, documents)))
    }

    fn remove<'a>(&'a self, scope: &'a str, ids: &'a [String]) -> BoxFuture<'a, Result<usize, SearchError>> {
        let mut scopes = self.scopes();
        let removed = scopes.get_mut(scope).map_or(0, |scope| ids.iter().filter(|id| scope.remove(id)).count());
        Box::pin(ready(Ok(removed)))
    }

    fn clear<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<(), SearchError>> {
        self.scopes().remove(scope);
        Box::pin(ready(Ok(())))
    }

    fn find<'a>(
        &'a self,
        scope: &'a str,
        terms: &'a TermWeights,
        limit: usize,
    ) -> BoxFuture<'a, Result<Found, SearchError>> {
        let found = self.scopes().get(scope).map(|scope| scope.find(terms, limit));
        Box::pin(ready(Ok(found.unwrap_or_default())))
    }

    fn get<'a>(&'a self, scope: &'a str, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<SearchDocument>, SearchError>> {
        let documents = self.scopes().get(scope).map(|scope| scope.get(ids));
        Box::pin(ready(Ok(documents.unwrap_or_default())))
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
        Box::pin(ready(Ok(self.scopes().get(scope).map_or(0, |scope| scope.documents.len()))))
    }

    fn add_vectors<'a>(
        &'a self,
        scope: &'a str,
        vectors: Vec<(String, TextVector)>,
    ) -> BoxFuture<'a, Result<(), SearchError>> {
        if let Some(scope) = self.scopes().get_mut(scope) {
            scope.add_vectors(vectors);
        }
        Box::pin(ready(Ok(())))
    }

    fn without_vector<'a>(
        &'a self,
        scope: &'a str,
        model: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchDocument>, SearchError>> {
        let lacking = self.scopes().get(scope).map(|scope| scope.without_vector(model, limit));
        Box::pin(ready(Ok(lacking.unwrap_or_default())))
    }

    fn near<'a>(
        &'a self,
        scope: &'a str,
        vector: &'a TextVector,
        limit: usize,
    ) -> BoxFuture<'a, Result<Near, SearchError>> {
        let near = self.scopes().get(scope).map(|scope| scope.near(vector, limit));
        Box::pin(ready(Ok(near.unwrap_or_default())))
    }
}
