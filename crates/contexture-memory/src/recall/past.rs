//! The past in a search index.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use contexture_core::search::{SearchDocument, SearchError, SearchIndex};
use contexture_core::tokens::TokenCounter;
use contexture_core::{ItemLog, LayerId};

use super::embed::{self, Embedder};
use super::pack::{Candidate, Recollection, pack};
use super::passage::{Passage, forgotten_mark, key};
use super::question::Question;
use super::rank::{Ranked, is_update, rank};

/// The id of the layer whose passages these are.
const LAYER: &str = "semantic-recall";
/// How many passages a question is compared with.
const MAX_CANDIDATES: usize = 256;
/// Of how many of the best the neighbours are read, and how far.
const WITH_NEIGHBOURS: usize = 64;
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

/// Passages of past conversations in a search index, for one scope: a thread, or a user with all threads.
#[derive(Clone)]
pub struct PastIndex {
    index: Arc<dyn SearchIndex>,
    scope: String,
    embedder: Option<Arc<dyn Embedder>>,
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

    /// Adds vectors to what is added from now on, and ranks by them too. Passages that share no word with a question, not
    /// even a related one, and are next to none that does, are not found by their vectors either.
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
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
        let vectors = self.vectors(passages.iter().map(|passage| passage.text.clone()).collect()).await;
        let documents: Vec<SearchDocument> = passages
            .iter()
            .enumerate()
            .map(|(at, passage)| {
                let mut document = passage.document();
                if let Some(vector) = vectors.get(at).and_then(|vector| embed::written(vector)) {
                    document.metadata["vector"] = vector.into();
                }
                document
            })
            .collect();
        let count = documents.len();
        if count > 0 {
            self.index.add(&self.scope, documents).await?;
        }
        Ok(count)
    }

    /// The vectors of texts; none if there is no embedder, or if it fails: words still find passages then.
    async fn vectors(&self, texts: Vec<String>) -> Vec<Vec<f32>> {
        let count = texts.len();
        match &self.embedder {
            Some(embedder) if count > 0 => {
                embedder.embed(texts).await.ok().filter(|vectors| vectors.len() == count).unwrap_or_default()
            }
            _ => Vec::new(),
        }
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
        } else if question.is_empty() {
            return Ok(Recollection::default());
        }
        let ranked = self.ranked(&question, query.text).await?;
        // A conversation that was resumed or copied has the same words again.
        let mut told = HashSet::new();
        let mut is_new = |passage: &Passage| told.insert((passage.speaker.clone(), passage.text.clone()));
        let ranked: Vec<Ranked> = ranked
            .into_iter()
            .filter(|ranked| {
                let passage = &ranked.passage;
                !query.is_visible(passage) && is_wanted(passage) && is_new(passage)
            })
            .collect();
        let count = match query.extent {
            Extent::Full => ranked.len(),
            Extent::Fitting => fitting(&ranked, FITTING_SHARE),
            Extent::Covering(percentage) => fitting(&ranked, f64::from(percentage) / 100.0),
        };
        let covers = covered(&ranked);
        Ok(Recollection { covers, ..shown(&question, ranked, count, &query) })
    }

    /// All passages that may fit, best first.
    async fn ranked(&self, question: &Question, text: &str) -> Result<Vec<Ranked>, SearchError> {
        let mut found = self.index.find(&self.scope, &question.terms, MAX_CANDIDATES).await?;
        let hits = std::mem::take(&mut found.hits);
        let mut passages: Vec<(Passage, f64)> =
            hits.iter().filter_map(|hit| Some((Passage::of_document(&hit.document)?, hit.score))).collect();
        let known: HashSet<String> = passages.iter().map(|(passage, _)| passage.key()).collect();
        let mut around: Vec<String> = Vec::new();
        for (passage, _) in passages.iter().take(WITH_NEIGHBOURS) {
            let positions = (-REACH..=REACH).filter_map(|offset| passage.position.checked_add_signed(offset));
            around.extend(positions.map(|position| key(&passage.thread, position)).filter(|id| !known.contains(id)));
        }
        around.sort_unstable();
        around.dedup();
        let around = self.index.get(&self.scope, &around).await?;
        passages.extend(around.iter().filter_map(|document| Some((Passage::of_document(document)?, 0.0))));
        let mut similar = HashMap::new();
        if let Some(vector) = self.vectors(vec![text.to_owned()]).await.first() {
            let documents = hits.iter().map(|hit| &hit.document).chain(&around);
            let vectors =
                documents.filter_map(|document| Some((document.id.clone(), embed::read(&document.metadata)?)));
            similar.extend(vectors.map(|(id, of_passage)| (id, embed::cosine(vector, &of_passage))));
        }
        Ok(rank(question, &found, passages, &similar))
    }
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
fn covered(ranked: &[Ranked]) -> f64 {
    ranked.iter().take(8).map(|ranked| ranked.covers).fold(0.0, f64::max)
}

/// How many of the best fit well.
fn fitting(ranked: &[Ranked], share: f64) -> usize {
    if covered(ranked) < share {
        return 0;
    }
    let best = ranked.first().map_or(0.0, |best| best.score);
    ranked.iter().take_while(|ranked| ranked.score >= best * FITTING_SCORE).count()
}

fn shown(question: &Question, ranked: Vec<Ranked>, count: usize, query: &PastQuery<'_>) -> Recollection {
    let compared = &ranked[..ranked.len().min(MAX_COMPARED)];
    // The newest of the statements that take the place of an older one.
    let update_of = |older: usize| {
        let older = compared.get(older)?;
        let newer = compared.iter().enumerate().filter(|(_, newer)| is_update(older, newer));
        newer.max_by_key(|(_, newer)| (newer.passage.at_ms, newer.passage.position)).map(|(at, _)| at)
    };
    let candidates =
        ranked.iter().map(|ranked| Candidate::new(ranked.passage.clone(), ranked.score, &question.terms)).collect();
    pack(candidates, count, update_of, query.counter, &LayerId::from(LAYER), query.budget)
}
