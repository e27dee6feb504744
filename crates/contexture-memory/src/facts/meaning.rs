//! Facts found by their meaning: a vector for each, in the search index beside those of passages.
//!
//! A document of the scope `facts/…` has the id of a fact and a hash of its text, never the text: the vector is all that is
//! searched there. It goes with the fact when that is forgotten.

use std::collections::{HashMap, HashSet};

use contexture_core::search::{SearchDocument, SearchError, SearchIndex};

use super::fact::{Fact, FactId};
use super::set::{Facts, MAX_FACTS};
use super::stored::Place;
use crate::recall::{SharedEmbedder, share_of_meaning};
use crate::stable::stable_hash;

/// How the scopes begin that have the vectors of facts.
const SCOPES: &str = "facts/";
/// How many facts get their vectors before these are written.
const EMBEDDED: usize = 64;

/// Finds the facts of an index by what they mean.
pub(crate) struct Meanings<'a> {
    pub(crate) index: &'a dyn SearchIndex,
    pub(crate) embedder: &'a SharedEmbedder,
}

impl Meanings<'_> {
    /// How near each of the current facts of a place is to a text, from 0 to 1, as far as it is known in time. Those that
    /// have no vector yet get one.
    pub(crate) async fn of(&self, place: &Place, facts: &Facts, text: &str) -> HashMap<FactId, f64> {
        let Some(vector) = self.embedder.question(text).await else { return HashMap::new() };
        let scope = scope_of(place);
        let near = async {
            self.add_missing(&scope, facts).await?;
            self.index.near(&scope, &vector, MAX_FACTS).await
        };
        // Words find facts all the same.
        let near = self.embedder.in_time(near).await.and_then(Result::ok).unwrap_or_default();
        let share = |score| share_of_meaning(score, &near);
        near.hits.iter().map(|hit| (FactId::from(hit.document.id.as_str()), share(hit.score))).collect()
    }

    /// Adds the vectors of facts that are new or have another text now.
    async fn add_missing(&self, scope: &str, facts: &Facts) -> Result<(), SearchError> {
        let ids: Vec<String> = facts.current().map(|fact| fact.id.as_str().to_owned()).collect();
        let documents = self.index.get(scope, &ids).await?;
        let known: HashSet<(&str, &str)> =
            documents.iter().map(|document| (document.id.as_str(), document.text.as_str())).collect();
        let is_new = |fact: &&Fact| !known.contains(&(fact.id.as_str(), mark(fact).as_str()));
        let new: Vec<&Fact> = facts.current().filter(is_new).collect();
        for batch in new.chunks(EMBEDDED) {
            let texts = batch.iter().map(|fact| fact.text.clone()).collect();
            let Some(vectors) = self.embedder.vectors(texts).await else { break };
            let documents = batch.iter().map(|fact| SearchDocument::new(fact.id.as_str(), mark(fact))).collect();
            self.index.add(scope, documents).await?;
            let vectors = batch.iter().map(|fact| fact.id.as_str().to_owned()).zip(vectors).collect();
            self.index.add_vectors(scope, vectors).await?;
        }
        // Vectors of another model are not compared, and these have none of this one.
        let lacking = self.index.without_vector(scope, self.embedder.model(), EMBEDDED).await?;
        let lacking = lacking.into_iter().filter_map(|document| facts.get(&FactId::from(document.id.as_str())));
        let lacking: Vec<&Fact> = lacking.collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let texts = lacking.iter().map(|fact| fact.text.clone()).collect();
        if let Some(vectors) = self.embedder.vectors(texts).await {
            let vectors = lacking.iter().map(|fact| fact.id.as_str().to_owned()).zip(vectors).collect();
            self.index.add_vectors(scope, vectors).await?;
        }
        Ok(())
    }
}

/// Removes the vectors of facts from the scope of a place.
pub(super) async fn forget_meanings(index: &dyn SearchIndex, place: &Place, gone: &[Fact]) -> Result<(), SearchError> {
    forget_meanings_in(index, &scope_of(place), gone).await
}

/// The same in a scope of the index, if that has vectors of facts.
pub(super) async fn forget_meanings_in(index: &dyn SearchIndex, scope: &str, gone: &[Fact]) -> Result<(), SearchError> {
    if !scope.starts_with(SCOPES) {
        return Ok(());
    }
    let ids: Vec<String> = gone.iter().map(|fact| fact.id.as_str().to_owned()).collect();
    index.remove(scope, &ids).await.map(drop)
}

fn scope_of(place: &Place) -> String {
    format!("{SCOPES}{}", place.scope_key())
}

/// What tells a text from another one without having it.
fn mark(fact: &Fact) -> String {
    format!("{:013x}", stable_hash(&[fact.text.trim()]))
}
