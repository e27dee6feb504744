//! The past in a search index.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use contexture_core::search::{
    Found, Near, SearchDocument, SearchError, SearchHit, SearchIndex, TermWeights, TextVector,
};
use contexture_core::tokens::TokenCounter;
use contexture_core::{ItemLog, LayerId};
use foldhash::fast::FixedState;

use super::embed::{Embedder, SharedEmbedder};
use super::pack::{PassageCandidate, Recollection, pack};
use super::passage::{Passage, forgotten_mark, key};
use super::question::Question;
use super::rank::{RankedPassage, is_update, rank};

/// The id of the layer whose passages these are.
const LAYER: &str = "semantic-recall";
/// How many passages are found by the words of a question.
const MAX_FOUND: usize = 512;
/// With how many of those that people and agents said a question is compared.
const MAX_CANDIDATES: usize = 256;
/// How many of what tools returned are compared, which have a rare word of the question.
const MAX_OF_TOOLS: usize = 16;
/// A word is rare if at most this share of the passages has it, or so many of a few passages.
const RARE_SHARE: f64 = 0.002;
const RARE_PASSAGES: u64 = 8;
/// Of how many of the best the neighbours are read, and how far.
const WITH_NEIGHBOURS: usize = 64;
/// The same in the work of an agent, where most neighbours are outputs of tools.
const WITH_NEIGHBOURS_OF_WORK: usize = 16;
const REACH: i64 = 2;
/// Above this many passages, function words of the question are not searched for: most passages have them.
const MAX_FOR_MINOR: usize = 20_000;
/// Among how many of the best updates are looked for.
const MAX_COMPARED: usize = 240;
/// The share of what a question is about that the best passage must have words for, or nothing is shown.
const FITTING_SHARE: f64 = 0.35;
/// The share of the best score below which a passage does not fit.
const FITTING_SCORE: f64 = 0.35;
/// How many passages are added at once.
const BATCH: usize = 256;
/// How many passages are found by their vectors, and of how many of the best the neighbours are read.
const MAX_NEAR: usize = 128;
const NEAR_WITH_NEIGHBOURS: usize = 16;
/// The share of the best meaning below which a passage that shares no word is not looked at.
const FITTING_MEANING: f64 = 0.35;
/// How many passages that an outage or another model left without vectors get some, when others are added.
const FILLED: usize = 512;
/// How many texts get their vectors before these are written.
const EMBEDDED: usize = 64;

/// Passages of past conversations in a search index, for one scope: a thread, or a user with all threads.
#[derive(Clone)]
pub struct PastIndex {
    index: Arc<dyn SearchIndex>,
    scope: String,
    embedder: Option<SharedEmbedder>,
}

/// How much is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// What fits well, or nothing.
    #[default]
    Fitting,
    /// As much as there is room for.
    Full,
    /// What fits well, if some passage has words for this percentage of what the question is about; else nothing.
    Covering(u8),
}

/// A search.
#[derive(Clone, Copy)]
pub struct PastQuery<'a> {
    /// The text, as a user would write it.
    pub text: &'a str,
    /// When it is asked, in milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// The most tokens of the result.
    pub budget: u64,
    /// What counts them.
    pub counter: &'a dyn TokenCounter,
    /// How much is shown.
    pub extent: Extent,
    /// Positions of a conversation that are visible already, and left out.
    pub visible: Option<(&'a str, &'a [Range<usize>])>,
}

impl PastIndex {
    /// The passages of a scope as layers name it: `thread:main`, `resource:ann`.
    pub fn new(index: Arc<dyn SearchIndex>, scope_key: &str) -> Self {
        Self { index, scope: format!("{LAYER}/{scope_key}"), embedder: None }
    }

    /// Finds passages by their meaning too: what people and agents said gets a vector when it is added.
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        self.sharing_embedder(SharedEmbedder::new(embedder))
    }

    /// The same with an embedder that others use too.
    pub fn sharing_embedder(mut self, embedder: SharedEmbedder) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Adds the items of a log from a position on, and returns how many there were. What was forgotten stays forgotten.
    ///
    /// # Errors
    /// The index failed. Adding the same items again changes nothing, so it can be repeated.
    pub async fn add_log(&self, thread: &str, log: &ItemLog, from: usize, now_ms: u64) -> Result<usize, SearchError> {
        let mut added = 0;
        let mut start = from;
        while start < log.len() {
            let end = (start + BATCH).min(log.len());
            let passages = (start..end).filter_map(|position| Passage::of_log(thread, log, position, now_ms));
            added += self.add(passages.collect()).await?;
            start = end;
        }
        Ok(added)
    }

    /// Adds passages, and returns how many there were. What was forgotten stays forgotten.
    ///
    /// # Errors
    /// The index failed.
    pub async fn add(&self, passages: Vec<Passage>) -> Result<usize, SearchError> {
        let count = passages.len();
        let marks = passages.iter().map(|passage| forgotten_mark(&passage.text));
        let ids: Vec<String> = passages.iter().map(Passage::key).chain(marks).collect();
        let known = self.index.get(&self.scope, &ids).await?;
        let forgotten: HashSet<&str> = known
            .iter()
            .filter(|document| Passage::of_document(document).is_none())
            .map(|document| document.id.as_str())
            .collect();
        let is_kept = |(at, _): &(usize, Passage)| {
            !forgotten.contains(ids[*at].as_str()) && !forgotten.contains(ids[count + *at].as_str())
        };
        let passages: Vec<Passage> =
            passages.into_iter().enumerate().filter(is_kept).map(|(_, passage)| passage).collect();
        let count = passages.len();
        if count > 0 {
            self.index.add(&self.scope, passages.iter().map(Passage::document).collect()).await?;
        }
        if let Some(embedder) = self.embedder.as_ref().filter(|_| count > 0) {
            let done =
                self.add_vectors(embedder, passages.into_iter().map(|passage| (passage.key(), Some(passage)))).await?;
            if done == count && embedder.take_missed() {
                self.fill_vectors(FILLED).await?;
            }
        }
        Ok(count)
    }

    /// Adds vectors to passages that have none of the embedder's model, at most so many: those that were added last come
    /// first. Returns how many were looked at; 0 if all have one, if there is no embedder, or if it fails.
    ///
    /// What tools returned gets none: there is much of it, and it is found by its words and beside what was said of it.
    ///
    /// # Errors
    /// The index failed. An embedder that fails is no error: words still find what it left out.
    pub async fn fill_vectors(&self, limit: usize) -> Result<usize, SearchError> {
        let Some(embedder) = &self.embedder else { return Ok(0) };
        let lacking = self.index.without_vector(&self.scope, embedder.model(), limit).await?;
        let passages = lacking.into_iter().map(|document| (document.id.clone(), Passage::of_document(&document)));
        self.add_vectors(embedder, passages).await
    }

    /// Adds vectors to documents, and returns how many are done: not all if the embedder fails.
    async fn add_vectors(
        &self,
        embedder: &SharedEmbedder,
        documents: impl Iterator<Item = (String, Option<Passage>)>,
    ) -> Result<usize, SearchError> {
        let (mut said, mut others) = (Vec::new(), Vec::new());
        for (id, passage) in documents {
            match passage.filter(|passage| !passage.is_of_tool()) {
                Some(passage) => said.push((id, passage.text)),
                None => others.push((id, TextVector::none(embedder.model()))),
            }
        }
        let mut done = others.len();
        if done > 0 {
            self.index.add_vectors(&self.scope, others).await?;
        }
        for batch in said.chunks(EMBEDDED) {
            let texts = batch.iter().map(|(_, text)| text.clone()).collect();
            let Some(vectors) = embedder.vectors(texts).await else { break };
            let vectors = batch.iter().map(|(id, _)| id.clone()).zip(vectors).collect();
            self.index.add_vectors(&self.scope, vectors).await?;
            done += batch.len();
        }
        Ok(done)
    }

    /// Forgets everything of the scope.
    ///
    /// # Errors
    /// The index failed.
    pub async fn clear(&self) -> Result<(), SearchError> {
        self.index.clear(&self.scope).await
    }

    /// Forgets items of a conversation: they are not found again, and not added again.
    ///
    /// # Errors
    /// The index failed.
    pub async fn forget(&self, thread: &str, positions: &[u64]) -> Result<(), SearchError> {
        // A document without text takes the place of the passage.
        let documents = positions.iter().map(|position| SearchDocument::new(key(thread, *position), "")).collect();
        self.index.add(&self.scope, documents).await
    }

    /// The number of passages, with those that were forgotten.
    ///
    /// # Errors
    /// The index failed.
    pub async fn count(&self) -> Result<usize, SearchError> {
        self.index.count(&self.scope).await
    }

    /// Whether an item of a conversation was added, or forgotten.
    ///
    /// # Errors
    /// The index failed.
    pub async fn has(&self, thread: &str, position: u64) -> Result<bool, SearchError> {
        Ok(!self.index.get(&self.scope, &[key(thread, position)]).await?.is_empty())
    }

    /// The passages of a conversation at positions, in order; those that were never added or were forgotten are left out.
    ///
    /// # Errors
    /// The index failed.
    pub async fn passages(&self, thread: &str, positions: Range<u64>) -> Result<Vec<Passage>, SearchError> {
        let ids: Vec<String> = positions.map(|position| key(thread, position)).collect();
        let documents = self.index.get(&self.scope, &ids).await?;
        Ok(documents.iter().filter_map(Passage::of_document).collect())
    }

    /// Returns what fits a question best.
    ///
    /// # Errors
    /// The index failed.
    pub async fn search(&self, query: PastQuery<'_>) -> Result<Recollection, SearchError> {
        self.search_where(query, &|_| true).await
    }

    /// The same, of the passages that are wanted.
    ///
    /// # Errors
    /// The index failed.
    pub async fn search_where(
        &self,
        query: PastQuery<'_>,
        is_wanted: &(dyn Fn(&Passage) -> bool + Sync),
    ) -> Result<Recollection, SearchError> {
        let mut question = Question::new(query.text, query.now_ms);
        if query.extent == Extent::Full && self.index.count(&self.scope).await? <= MAX_FOR_MINOR {
            question = question.with_minor();
        }
        let near = self.near(query.text).await;
        if question.is_empty() && query.extent != Extent::Full && near.hits.is_empty() {
            return Ok(Recollection::default());
        }
        let ranked = self.ranked(&question, &near).await?;
        // A conversation that was resumed or copied has the same words again.
        let mut told: HashSet<(&str, &str), FixedState> = HashSet::default();
        let is_shown: Vec<bool> = ranked
            .iter()
            .map(|RankedPassage { passage, .. }| {
                !query.is_visible(passage) && is_wanted(passage) && told.insert((&*passage.speaker, &*passage.text))
            })
            .collect();
        let ranked = ranked.into_iter().zip(is_shown).filter(|(_, is_shown)| *is_shown);
        let ranked: Vec<RankedPassage> = ranked.map(|(ranked, _)| ranked).collect();
        let count = match query.extent {
            Extent::Full => ranked.len(),
            Extent::Fitting => fitting(&ranked, FITTING_SHARE),
            Extent::Covering(percentage) => fitting(&ranked, f64::from(percentage) / 100.0),
        };
        let covers = covered(&ranked);
        Ok(Recollection { covers, ..shown(&question, ranked, count, &query) })
    }

    /// The passages whose meaning is nearest; none if that is not known in time.
    async fn near(&self, text: &str) -> Near {
        let Some(embedder) = &self.embedder else { return Near::default() };
        let Some(vector) = embedder.question(text).await else { return Near::default() };
        let near = embedder.in_time(self.index.near(&self.scope, &vector, MAX_NEAR)).await;
        // Words find passages all the same.
        near.and_then(Result::ok).unwrap_or_default()
    }

    /// All passages that may fit, best first.
    async fn ranked(&self, question: &Question, near: &Near) -> Result<Vec<RankedPassage>, SearchError> {
        let mut found = self.index.find(&self.scope, &question.terms, MAX_FOUND).await?;
        let hits = std::mem::take(&mut found.hits);
        let scored = |hit: &SearchHit| Some((Passage::of_document(&hit.document)?, hit.score));
        let mut passages: Vec<(Passage, f64)> =
            hits.iter().filter_map(scored).filter(|(passage, _)| !passage.is_of_tool()).take(MAX_CANDIDATES).collect();
        // Outputs of tools are most of what passed, and have most words in common: only a rare one tells something.
        let rare = rare_terms(question, &found);
        if !rare.is_empty() {
            let with_rare = self.index.find(&self.scope, &rare, MAX_OF_TOOLS).await?.hits;
            passages.extend(with_rare.iter().filter_map(scored).filter(|(passage, _)| passage.is_of_tool()));
        }
        let similar: HashMap<String, f64> =
            near.hits.iter().map(|hit| (hit.document.id.clone(), share_of_meaning(hit.score, near))).collect();
        let best = similar.values().copied().fold(0.0, f64::max);
        let mut known: HashSet<String> = passages.iter().map(|(passage, _)| passage.key()).collect();
        let by_words = passages.len();
        for hit in
            near.hits.iter().filter(|hit| similar[&hit.document.id] >= (best * FITTING_MEANING).max(f64::EPSILON))
        {
            if known.insert(hit.document.id.clone()) {
                passages.extend(Passage::of_document(&hit.document).map(|passage| (passage, 0.0)));
            }
        }
        let is_work = passages.first().is_some_and(|(passage, _)| passage.is_of_work());
        let with_neighbours = if is_work { WITH_NEIGHBOURS_OF_WORK } else { WITH_NEIGHBOURS };
        let mut around: Vec<String> = Vec::new();
        let by_meaning = passages[by_words..].iter().take(NEAR_WITH_NEIGHBOURS);
        for (passage, _) in passages[..by_words].iter().take(with_neighbours).chain(by_meaning) {
            let positions = (-REACH..=REACH).filter_map(|offset| passage.position.checked_add_signed(offset));
            around.extend(positions.map(|position| key(&passage.thread, position)).filter(|id| !known.contains(id)));
        }
        around.sort_unstable();
        around.dedup();
        let around = self.index.get(&self.scope, &around).await?;
        let around = around.iter().filter_map(Passage::of_document).filter(|passage| !passage.is_of_tool());
        passages.extend(around.map(|passage| (passage, 0.0)));
        Ok(rank(question, &found, passages, &similar))
    }
}

/// The terms of what a question is about that few passages have.
fn rare_terms(question: &Question, found: &Found) -> TermWeights {
    let most = RARE_PASSAGES.max((found.documents as f64 * RARE_SHARE) as u64);
    let is_rare = |term: &&String| found.frequencies.get(*term).is_some_and(|having| *having <= most);
    question.content.iter().filter(is_rare).map(|term| (term.clone(), 1.0)).collect()
}

/// How far a passage is on the way from what an average one means to what the question means: 0 to 1.
///
/// Cosines alone say little: with some models unrelated texts have 0.1, with others 0.7. The average is that of the other
/// passages of the scope.
pub(crate) fn share_of_meaning(cosine: f64, near: &Near) -> f64 {
    let count = near.compared as f64;
    let others = if near.compared > 1 { (near.mean * count - cosine) / (count - 1.0) } else { 0.0 };
    let others = others.max(0.0);
    if others < 1.0 { ((cosine - others) / (1.0 - others)).clamp(0.0, 1.0) } else { 0.0 }
}

impl PastQuery<'_> {
    fn is_visible(&self, passage: &Passage) -> bool {
        self.visible.is_some_and(|(thread, ranges)| {
            let position = usize::try_from(passage.position).unwrap_or(usize::MAX);
            passage.thread == thread && ranges.iter().any(|range| range.contains(&position))
        })
    }
}

/// The most that one of the best passages covers of what the question is about.
fn covered(ranked: &[RankedPassage]) -> f64 {
    ranked.iter().take(8).map(|ranked| ranked.covers).fold(0.0, f64::max)
}

/// How many of the best fit well.
fn fitting(ranked: &[RankedPassage], share: f64) -> usize {
    if covered(ranked) < share {
        return 0;
    }
    let best = ranked.first().map_or(0.0, |best| best.score);
    ranked.iter().take_while(|ranked| ranked.score >= best * FITTING_SCORE).count()
}

fn shown(question: &Question, ranked: Vec<RankedPassage>, count: usize, query: &PastQuery<'_>) -> Recollection {
    let compared = &ranked[..ranked.len().min(MAX_COMPARED)];
    // The newest of the statements that take the place of an older one.
    let update_of = |older: usize| {
        let older = compared.get(older)?;
        let newer = compared.iter().enumerate().filter(|(_, newer)| is_update(older, newer));
        newer.max_by_key(|(_, newer)| (newer.passage.at_ms, newer.passage.position)).map(|(at, _)| at)
    };
    let candidates = ranked
        .iter()
        .map(|ranked| PassageCandidate::new(ranked.passage.clone(), ranked.score, &question.terms))
        .collect();
    pack(candidates, count, update_of, query.counter, &LayerId::from(LAYER), query.budget)
}
