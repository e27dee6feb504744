//! Vectors of texts, so that passages are found that say the same in other words.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contexture_core::error::BoxError;
use contexture_core::search::TextVector;
use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout};

use crate::redact::redact;

/// How long a search waits for the vector of its question, unless it is told.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the vectors of some passages may take.
const FILLING: Duration = Duration::from_secs(60);
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
    patience: Duration,
    known: Arc<Mutex<Known>>,
}

/// What is known of an embedder.
#[derive(Default)]
struct Known {
    /// It failed, and is not asked before this.
    paused_until: Option<Instant>,
    /// What went wrong first since it worked, until somebody asks.
    trouble: Option<String>,
    /// The last question: several indexes are searched for it.
    last: Option<(String, TextVector)>,
}

impl fmt::Debug for SharedEmbedder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SharedEmbedder").field("model", &self.model()).finish_non_exhaustive()
    }
}

impl SharedEmbedder {
    /// Shares an embedder.
    pub fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, patience: PATIENCE, known: Arc::default() }
    }

    /// Sets how long a search waits for the vector of its question.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The name of the model.
    pub fn model(&self) -> &str {
        self.embedder.model()
    }

    /// What went wrong since somebody asked last; told once, until it has worked again.
    pub fn trouble(&self) -> Option<String> {
        self.known().trouble.take()
    }

    /// How long a search waits for the vector of its question.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// The vector of a question; `None` if there is none in time. Secrets in it are not sent.
    pub(super) async fn question(&self, text: &str) -> Option<TextVector> {
        let text = redact(&text[..text.floor_char_boundary(MAX_QUESTION_BYTES)]).trim().to_owned();
        if text.is_empty() {
            return None;
        }
        if let Some((_, vector)) = self.known().last.as_ref().filter(|(last, _)| *last == text) {
            return Some(vector.clone());
        }
        let vector = self.vectors(vec![text.clone()], self.patience).await?.pop()?;
        self.known().last = Some((text, vector.clone()));
        Some(vector)
    }

    /// The vectors of texts of passages; `None` if the embedder fails.
    pub(super) async fn passages(&self, texts: Vec<String>) -> Option<Vec<TextVector>> {
        self.vectors(texts, FILLING).await
    }

    async fn vectors(&self, texts: Vec<String>, patience: Duration) -> Option<Vec<TextVector>> {
        if self.known().paused_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let count = texts.len();
        let problem = match timeout(patience, self.embedder.embed(texts)).await {
            Ok(Ok(vectors)) if vectors.len() == count => {
                let mut known = self.known();
                (known.paused_until, known.trouble) = (None, None);
                let model = self.model();
                let vector =
                    |numbers: &Vec<f32>| TextVector::new(model, numbers).unwrap_or_else(|| TextVector::none(model));
                return Some(vectors.iter().map(vector).collect());
            }
            Ok(Ok(vectors)) => format!("{} vectors came for {count} texts", vectors.len()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it took longer than {} ms", patience.as_millis()),
        };
        let mut known = self.known();
        if known.paused_until.is_none() {
            known.trouble = Some(problem);
        }
        known.paused_until = Some(Instant::now() + PAUSE);
        None
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Every change is a single assignment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
