//! Vectors of texts, so that passages are found that say the same in other words.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use contexture_core::clock::Clock;
use contexture_core::error::BoxError;
use contexture_core::search::TextVector;
use futures_util::future::{BoxFuture, Either, select};

use crate::redact::redact;

/// How long an embedder that failed is not asked again.
const PAUSE: Duration = Duration::from_secs(30);
/// The most bytes of a question that are sent.
const MAX_QUESTION_BYTES: usize = 2_000;

/// Turns texts into vectors: texts that mean the same have similar ones.
pub trait Embedder: Send + Sync {
    /// The name of the model. Vectors of different names are never compared, so it must change with the model.
    fn model(&self) -> &str;

    /// Returns the vectors of texts, in their order and all of the same length.
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, BoxError>>;
}

/// An embedder that many searches use, and that none of them depends on: one that fails or takes too long is left alone for
/// a while, and words alone find passages then. Cheap to clone.
#[derive(Clone)]
pub struct SharedEmbedder {
    embedder: Arc<dyn Embedder>,
    /// How long a search waits for the vector of its question, if somebody measures it.
    patience: Option<(Duration, Arc<dyn Clock>)>,
    known: Arc<Mutex<EmbedderState>>,
}

/// What is known of an embedder.
#[derive(Default)]
struct EmbedderState {
    /// It failed, and is not asked before this.
    paused_until: Option<Instant>,
    /// What went wrong last, and whether somebody was told.
    trouble: Option<String>,
    is_told: bool,
    /// Whether there may be passages that it was not asked about, or not with success.
    has_missed: bool,
    /// The last question: several indexes are searched for it.
    last: Option<(String, TextVector)>,
}

impl fmt::Debug for SharedEmbedder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SharedEmbedder").field("model", &self.model()).finish_non_exhaustive()
    }
}

impl SharedEmbedder {
    /// Shares an embedder. Searches wait for it as long as it takes.
    pub fn new(embedder: Arc<dyn Embedder>) -> Self {
        // Nobody knows what was missed before.
        let known = EmbedderState { has_missed: true, ..EmbedderState::default() };
        Self { embedder, patience: None, known: Arc::new(Mutex::new(known)) }
    }

    /// Sets how long a search waits for the vector of its question, and for comparing it.
    pub fn with_patience(self, patience: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { patience: Some((patience, clock)), ..self }
    }

    /// The name of the model.
    pub fn model(&self) -> &str {
        self.embedder.model()
    }

    /// What went wrong last, if something did.
    pub fn trouble(&self) -> Option<String> {
        self.known().trouble.clone()
    }

    /// The same, told once until it has worked again.
    pub fn new_trouble(&self) -> Option<String> {
        let mut known = self.known();
        let trouble = known.trouble.clone().filter(|_| !known.is_told)?;
        known.is_told = true;
        Some(trouble)
    }

    /// What comes of something that a search waits for; `None` if it takes too long.
    pub(crate) async fn in_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let Some((patience, clock)) = &self.patience else { return Some(work.await) };
        match select(pin!(work), clock.limit(*patience)).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }

    /// Whether there may be passages without vectors; who asks makes up for it.
    pub(super) fn take_missed(&self) -> bool {
        std::mem::take(&mut self.known().has_missed)
    }

    /// The vector of a question; `None` if there is none in time. Secrets in it are not sent.
    pub(crate) async fn question(&self, text: &str) -> Option<TextVector> {
        let text = redact(&text[..text.floor_char_boundary(MAX_QUESTION_BYTES)]).trim().to_owned();
        if text.is_empty() {
            return None;
        }
        if let Some((_, vector)) = self.known().last.as_ref().filter(|(last, _)| *last == text) {
            return Some(vector.clone());
        }
        let vector = self.in_time(self.vectors(vec![text.clone()])).await;
        let Some(vector) = vector else {
            return self.failed("it took too long".to_owned());
        };
        let vector = vector?.pop()?;
        self.known().last = Some((text, vector.clone()));
        Some(vector)
    }

    /// The vectors of texts; `None` if the embedder fails.
    pub(crate) async fn vectors(&self, texts: Vec<String>) -> Option<Vec<TextVector>> {
        if self.known().paused_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let count = texts.len();
        match self.embedder.embed(texts).await {
            Ok(vectors) if vectors.len() == count => {
                self.known().paused_until = None;
                let model = self.model();
                let kept = |numbers: &Vec<f32>| TextVector::new(model, numbers);
                Some(vectors.iter().map(|numbers| kept(numbers).unwrap_or_else(|| TextVector::none(model))).collect())
            }
            Ok(vectors) => self.failed(format!("{} vectors came for {count} texts", vectors.len())),
            Err(error) => self.failed(error.to_string()),
        }
    }

    /// Leaves the embedder alone for a while. What went wrong is told again only if it worked meanwhile.
    fn failed<T>(&self, problem: String) -> Option<T> {
        let mut known = self.known();
        known.is_told &= known.paused_until.is_some();
        known.trouble = Some(problem);
        known.has_missed = true;
        known.paused_until = Some(Instant::now() + PAUSE);
        None
    }

    fn known(&self) -> MutexGuard<'_, EmbedderState> {
        // Every change is a single assignment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
