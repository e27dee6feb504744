//! The memory of a gateway: whose it is, and how much of it is shown.

use std::sync::Arc;
use std::time::Duration;

use contexture::clock::Clock;
use contexture::host::SystemClock;
use contexture::personal::{MemoryOwner, PersonalMemory};
use contexture::recall::{Extent, PastQuery, SharedEmbedder};
use contexture::tokens::{Estimate, TokenCounter};

use super::late::LateSearches;
use super::readers::KnownReaders;
use crate::watch::{MemoryOperation, Watcher};

/// The most tokens that are added to a request.
pub const DEFAULT_BUDGET: u64 = 1_000;

/// The percentage of what a person's words are about that a passage must have words for, or nothing is added. Of 58 recorded
/// sessions it gives the most that was used next, above chance, for what it costs; docs/memory.md has the table.
pub const DEFAULT_THRESHOLD: u8 = 70;

/// How long a request waits for its memory, beside the time for folding. What is found later goes with the next request.
const WAIT: Duration = Duration::from_millis(50);

/// How long a request waits for the vector of what a person said. A hosted embedder takes about this long, and a person who
/// has just written something does not notice it.
const EMBEDDING: Duration = Duration::from_millis(250);

/// What is searched for before anybody asks.
const WARMING: &str = "Which test failed, and which file was changed because of the error?";

/// How often it is looked for conversations that rest.
const LEARNING_EVERY: Duration = Duration::from_secs(30);

/// The memory of a gateway.
#[derive(Clone)]
pub struct GatewayMemory {
    pub(super) memory: PersonalMemory,
    /// Whose memory is used for requests of a gateway with one key: a project and its person, what passes being kept for
    /// the first.
    own: Vec<MemoryOwner>,
    pub(super) budget: u64,
    pub(super) threshold: u8,
    /// How long a request waits for what is found.
    pub(super) wait: Duration,
    pub(super) late: Arc<LateSearches>,
    pub(super) readers: Arc<KnownReaders>,
    /// Who hears of what is done with it.
    watchers: Vec<Arc<dyn Watcher>>,
}

impl GatewayMemory {
    /// A memory for one person. With several keys, each has a memory of its own in the same store instead.
    pub fn new(memory: PersonalMemory, own: Vec<MemoryOwner>) -> Self {
        let (budget, threshold) = (DEFAULT_BUDGET, DEFAULT_THRESHOLD);
        // Making and comparing a vector may each take its time.
        let wait = if memory.embedder().is_some() { EMBEDDING * 2 } else { WAIT };
        let memory = match memory.embedder().cloned() {
            Some(embedder) => memory.with_embedder(embedder.with_patience(EMBEDDING, Arc::new(SystemClock::new()))),
            None => memory,
        };
        let (late, readers) = (Arc::default(), Arc::default());
        Self { memory, own, budget, threshold, wait, late, readers, watchers: Vec::new() }
    }

    /// Sets the most tokens that are added to a request.
    pub fn with_budget(self, budget: u64) -> Self {
        Self { budget, ..self }
    }

    /// Sets the percentage of what a person's words are about that a passage must have words for.
    pub fn with_threshold(self, threshold: u8) -> Self {
        Self { threshold, ..self }
    }

    /// Sets how long a request waits for what is found; what is found later goes with the next request, and without any
    /// waiting all of it.
    pub fn with_wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Sets who hears of what is done with it.
    pub(crate) fn watched_by(self, watchers: Vec<Arc<dyn Watcher>>) -> Self {
        Self { watchers, ..self }
    }

    /// Tells watchers what was done.
    pub(super) fn tell_of(&self, operation: &MemoryOperation<'_>) {
        self.watchers.iter().for_each(|watcher| watcher.remembered(operation));
    }

    /// What finds passages by their meaning.
    pub fn embedder(&self) -> Option<&SharedEmbedder> {
        self.memory.embedder()
    }

    /// Whose memory is used for a request of this key: the empty name is that of a gateway with one key.
    pub(super) fn owners(&self, key: &str) -> Vec<MemoryOwner> {
        if key.is_empty() { self.own.clone() } else { vec![MemoryOwner::Key(key.to_owned())] }
    }

    /// The project whose memory is used, if there is one.
    pub(crate) fn own_place(&self) -> Option<Arc<str>> {
        self.own.iter().find_map(|owner| match owner {
            MemoryOwner::Project(directory) => Some(directory.as_str().into()),
            MemoryOwner::Person | MemoryOwner::Key(_) => None,
        })
    }

    /// How much longer the gateway may work on a request because of it.
    pub(crate) fn waiting(&self) -> Duration {
        self.wait
    }

    /// Learns from conversations that rest, again and again, for as long as it is asked to.
    pub(crate) async fn keep_learning(
        &self,
        counter: Arc<dyn TokenCounter>,
        clock: Arc<dyn Clock>,
        goes_on: impl Fn() -> bool,
    ) {
        while self.memory.is_learning() && goes_on() {
            match self.memory.learn(&*counter).await {
                Ok(0) => {}
                Ok(new) => tracing::info!("{new} facts were learned"),
                // Nobody waits for it, and it is tried again.
                Err(error) => tracing::warn!("no facts were learned: {error}"),
            }
            clock.sleep_in_background(LEARNING_EVERY).await;
        }
    }

    /// Searches once, so that the first request need not wait until files are open and tables are made.
    pub(crate) async fn warm(&self) {
        let (extent, counter) = (Extent::Covering(self.threshold), &Estimate);
        let query = PastQuery { text: WARMING, now_ms: 0, budget: self.budget, counter, extent, visible: None };
        // If it fails, requests find out, and are sent without memory.
        let _ = self.memory.search(&self.own, query).await;
    }
}
