//! Learning from past conversations once they rest: which are waiting, and what a model finds in them.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use contexture_core::ThreadId;
use contexture_core::clock::Clock;
use contexture_core::error::BoxError;
use contexture_core::model::{LlmResponse, Model, ModelRequest, Usage};
use contexture_core::store::{Batch as StoreBatch, Key, StorageAdapter, StoreError};
use contexture_core::tokens::TokenCounter;
use futures_util::future::{BoxFuture, Either, select};
use serde::{Deserialize, Serialize};

use super::evidence::EvidenceBatch;
use super::extract::{Kind, learn_answer, question};
use super::spent::DailyTokens;
use super::stored::{Place, Remembered};
use crate::recall::PastIndex;

/// How long the model may take.
const LIMIT: Duration = Duration::from_secs(60);
/// What is kept back of the daily limit for an answer.
const ANSWER_TOKENS: u64 = 1_000;
/// How many bytes of a conversation are read at once, and how many at least: less says nothing that lasts.
const BATCH_BYTES: usize = 24_000;
const MIN_BYTES: usize = 40;
/// How many items of a conversation are looked at, at once.
const LOOKED_AT: u64 = 1_000;

type LearnerModel = Arc<dyn Fn(ModelRequest) -> BoxFuture<'static, Result<LlmResponse, BoxError>> + Send + Sync>;

/// Learning facts from conversations that rest: by which model, and for how much.
#[derive(Clone)]
pub struct Learning {
    model: LearnerModel,
    clock: Arc<dyn Clock>,
    daily_tokens: u64,
    rest: Duration,
}

impl fmt::Debug for Learning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Learning").field("daily_tokens", &self.daily_tokens).finish_non_exhaustive()
    }
}

impl Learning {
    /// Learns with a model. A conversation rests after 5 minutes, and a day has 200 000 tokens.
    pub fn by<M: Model + 'static>(model: M, clock: Arc<dyn Clock>) -> Self {
        let model = Arc::new(model);
        let call: LearnerModel = Arc::new(move |request| {
            let model = model.clone();
            Box::pin(async move { model.call(request).await })
        });
        Self { model: call, clock, daily_tokens: 200_000, rest: Duration::from_secs(5 * 60) }
    }

    /// Sets how many tokens a day may be used, input and output of all projects together.
    pub fn with_daily_tokens(self, daily_tokens: u64) -> Self {
        Self { daily_tokens, ..self }
    }

    /// Sets after which pause a conversation rests.
    pub fn with_rest(self, rest: Duration) -> Self {
        Self { rest, ..self }
    }

    /// Reads what is new in a conversation, and adds the facts in it. Returns how many are new; what does not fit into the
    /// limit of the day is read another day.
    pub(crate) async fn learn(
        &self,
        remembered: &Remembered,
        past: &PastIndex,
        waiting: &RestingConversation,
        counter: &dyn TokenCounter,
    ) -> Result<ReadingResult, BoxError> {
        let (place, thread) = (&waiting.place(), ThreadId::from(waiting.thread.as_str()));
        let mut new = 0;
        loop {
            let facts = remembered.load(place).await?.unwrap_or_default();
            let from = facts.read_until(&thread);
            let passages = past.passages(thread.as_str(), from as u64..from as u64 + LOOKED_AT).await?;
            let batch = EvidenceBatch::of_passages(&thread, from, &passages, BATCH_BYTES);
            if batch.items.iter().map(|item| item.text.len()).sum::<usize>() < MIN_BYTES {
                return Ok(ReadingResult::Read(new));
            }
            let asked = question(Kind::Entities, "", &batch, &facts);
            let mut request = ModelRequest::new(
                asked.instructions.unwrap_or_default(),
                asked.items.into_iter().map(Arc::new).collect(),
            );
            request.max_output_tokens = Some(ANSWER_TOKENS * 4);
            let input: u64 = request.items.iter().map(|item| contexture_core::tokens::count_item(counter, item)).sum();
            let input = input + counter.count(&request.instructions);
            let now_ms = self.now_ms();
            let (daily, taken) = (self.daily(remembered), input + ANSWER_TOKENS);
            if !daily.take(taken, now_ms).await? {
                return Ok(ReadingResult::OutOfTokens(new));
            }
            let response = match select(pin!((self.model)(request)), self.clock.limit(LIMIT)).await {
                Either::Left((response, _)) => response,
                Either::Right(_) => Err("the model took too long".into()),
            };
            let response = match response {
                Ok(response) => response,
                Err(error) => {
                    daily.settle(taken, &Usage::default(), None, now_ms).await?;
                    return Err(error);
                }
            };
            let mut usage = response.usage;
            if usage.input_tokens + usage.output_tokens == 0 {
                (usage.input_tokens, usage.output_tokens) = (input, counter.count(&response.output_text()));
            }
            daily.settle(taken, &usage, response.cost, now_ms).await?;
            let learned = remembered.change(place, |facts| {
                facts.spent_mut().add(&usage, response.cost, now_ms);
                Ok(learn_answer(facts, &batch, &response.output_text(), &[], now_ms))
            });
            new += learned.await?.added;
        }
    }

    fn daily<'a>(&self, remembered: &'a Remembered) -> DailyTokens<'a> {
        DailyTokens { store: &**remembered.store(), limit: self.daily_tokens }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().as_millis()).unwrap_or(u64::MAX)
    }

    /// The conversations that wait and have rested, which are then this process's for a while.
    pub(crate) async fn rested(&self, store: &dyn StorageAdapter) -> Result<Vec<RestingConversation>, BoxError> {
        let (now_ms, mut rested) = (self.now_ms(), Vec::new());
        for key in store.list(&Key::new("learning").then("waiting").into_prefix()).await? {
            let Some(record) = store.get(&key).await? else { continue };
            let Ok(waiting) = serde_json::from_slice::<RestingConversation>(&record.value) else { continue };
            if waiting.since_ms + u64::try_from(self.rest.as_millis()).unwrap_or(u64::MAX) > now_ms {
                continue;
            }
            // Whoever writes it first has it; if he fails, it has rested again some time later.
            let waiting = RestingConversation { since_ms: now_ms, ..waiting };
            let batch =
                StoreBatch::new().expect(key.clone(), Some(record.version)).set(key, serde_json::to_vec(&waiting)?);
            match store.apply(batch).await {
                Ok(_) => rested.push(waiting),
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(rested)
    }
}

/// What became of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadingResult {
    /// All of it was read, with so many new facts.
    Read(usize),
    /// The rest has to wait for another day.
    OutOfTokens(usize),
}

/// A conversation of which something is to be learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RestingConversation {
    layer: String,
    scope: String,
    owner: String,
    thread: String,
    /// When something was said in it last.
    since_ms: u64,
}

impl RestingConversation {
    pub(crate) fn new(place: &Place, thread: &str, since_ms: u64) -> Self {
        let Place { layer, scope, owner } = place.clone();
        Self { layer, scope, owner, thread: thread.to_owned(), since_ms }
    }

    pub(crate) fn place(&self) -> Place {
        Place::new(self.layer.as_str(), self.scope.as_str(), self.owner.as_str())
    }

    fn key(&self) -> String {
        Key::new("learning").then("waiting").then(&self.scope).then(&self.owner).then(&self.thread).into_string()
    }

    /// Notes that something was said.
    pub(crate) async fn write(&self, store: &dyn StorageAdapter) -> Result<(), BoxError> {
        store.set(&self.key(), serde_json::to_vec(self)?).await?;
        Ok(())
    }

    /// Notes that all was read, unless something was said meanwhile.
    pub(crate) async fn end(&self, store: &dyn StorageAdapter) -> Result<(), BoxError> {
        let key = self.key();
        let Some(record) = store.get(&key).await? else { return Ok(()) };
        if serde_json::from_slice::<RestingConversation>(&record.value).is_ok_and(|now| now == *self) {
            match store.apply(StoreBatch::new().expect(key.clone(), Some(record.version)).delete(key)).await {
                Ok(_) | Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
