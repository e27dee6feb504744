//! Learns facts with a model, in batches and in the background.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use contexture_core::layer::ExecutionContext;
use contexture_core::log::ItemLog;
use contexture_core::model::{LlmResponse, MemoryCallModelRequest, Usage};
use contexture_core::store::StorageAdapter;
use contexture_core::{ExecutionId, LayerId, ThreadId};
use contexture_files::dialect::Dialects;
use futures_util::future::{Either, select};
use tokio::task::JoinHandle;

use super::evidence::EvidenceBatch;
use super::extract::{Kind, learn_answer, question, read_reflection, reflection};
use super::fact::{Fact, FactId};
use super::set::Facts;
use super::spent::DailyTokens;

/// The ids of layers that keep facts, if the program gives them no other ones.
const FACT_LAYERS: [&str; 4] = ["entity", "observations", "entity-project", "observations-project"];
/// How long the model may take.
const LIMIT: Duration = Duration::from_secs(60);
/// How long the end of an execution waits for it.
const END_LIMIT: Duration = Duration::from_secs(12);
/// What is kept back of the daily limit for an answer.
const ANSWER_TOKENS: u64 = 1_000;
/// After so long a pause the provider's cache is cold, so that fewer tokens are enough.
const COLD_AFTER: Duration = Duration::from_secs(5 * 60);
/// Less than this is not read even if the cache is cold.
const MIN_COLD_TOKENS: u64 = 200;
/// How long a failed model is left alone.
const PAUSE: Duration = Duration::from_secs(10 * 60);
/// Notes are condensed when they have this many tokens.
const REFLECT_TOKENS: u64 = 2_000;
/// The newest notes are not condensed.
const KEEP_NEWEST: usize = 10;
/// Of how many threads the last moment of work is known.
const MAX_THREADS: usize = 1_000;

/// Learning with a model: which one, how often, and for how much.
///
/// ```
/// use contexture_memory::facts::Extraction;
/// use contexture_memory::layers::Entity;
/// let layer = Entity::new().with_extraction(Extraction::by("small-model").with_daily_tokens(50_000));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Extraction {
    model: String,
    daily_tokens: u64,
    batch_tokens: u64,
    end_tokens: u64,
}

impl Extraction {
    /// Learns with a model of that name; an empty name is the client's default.
    pub fn by(model: impl Into<String>) -> Self {
        Self { model: model.into(), daily_tokens: 200_000, batch_tokens: 6_000, end_tokens: 1_000 }
    }

    /// Sets how many tokens a day may be used, input and output of all layers together that learn in one store. Default:
    /// 200 000.
    pub fn with_daily_tokens(mut self, tokens: u64) -> Self {
        self.daily_tokens = tokens;
        self
    }

    /// Sets after how many new tokens of a conversation the model is called. Default: 6 000.
    pub fn with_batch_tokens(mut self, tokens: u64) -> Self {
        self.batch_tokens = tokens.max(1);
        self
    }

    /// Sets how many new tokens are enough at the end of an execution. Default: 1 000.
    pub fn with_end_tokens(mut self, tokens: u64) -> Self {
        self.end_tokens = tokens.max(1);
        self
    }
}

/// Runs the extraction of one layer. At most one call runs for an execution.
pub(super) struct Learner {
    options: Extraction,
    kind: Kind,
    own: LayerId,
    dialects: Arc<Dialects>,
    /// The engine's store, in which the tokens of a day are counted.
    store: EngineStore,
    running: Mutex<HashMap<ExecutionId, JoinHandle<LearnerAnswer>>>,
    /// When a thread was last at work, and until when a failed model is left alone.
    threads: Mutex<HashMap<ThreadId, Activity>>,
}

#[derive(Clone, Copy, Default)]
struct Activity {
    last: Duration,
    paused_until: Duration,
}

enum LearnerWork {
    Extract(EvidenceBatch),
    Reflect(Vec<FactId>),
}

struct LearnerAnswer {
    work: LearnerWork,
    answer: Result<LlmResponse, NoAnswer>,
    /// What the provider reported, or our own count.
    usage: Usage,
}

enum NoAnswer {
    /// The limit of the day was reached, so the model was not asked.
    DailyLimit,
    Failed(String),
}

/// When something is read: each moment has its own least number of tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LearningMoment {
    /// After a response.
    Running,
    /// Before the first model call of a turn.
    TurnBegins,
    /// At the end of an execution.
    Ending,
}

impl Learner {
    pub(super) fn new(
        options: Extraction,
        kind: Kind,
        own: LayerId,
        dialects: Arc<Dialects>,
        store: EngineStore,
    ) -> Self {
        Self { options, kind, own, dialects, store, running: Mutex::default(), threads: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<ExecutionId, JoinHandle<LearnerAnswer>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn threads(&self) -> MutexGuard<'_, HashMap<ThreadId, Activity>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the model in the background if enough is new.
    pub(super) fn begin_if_due(&self, ctx: &ExecutionContext, log: &ItemLog, facts: &Facts, moment: LearningMoment) {
        let now = ctx.clock.now();
        let activity = {
            let mut threads = self.threads();
            if threads.len() > MAX_THREADS {
                threads.clear();
            }
            let activity = threads.entry(ctx.thread_id.clone()).or_default();
            let before = *activity;
            activity.last = now;
            before
        };
        if now < activity.paused_until || self.running().contains_key(&ctx.execution_id) {
            return;
        }
        let is_cold = activity.last > Duration::ZERO && now.saturating_sub(activity.last) >= COLD_AFTER;
        let least = match moment {
            LearningMoment::TurnBegins if is_cold => MIN_COLD_TOKENS,
            LearningMoment::Ending => self.options.end_tokens,
            LearningMoment::Running | LearningMoment::TurnBegins => self.options.batch_tokens,
        };
        let from = facts.read_until(&ctx.thread_id);
        if log.range_tokens(from..log.len()) >= least.min(self.options.batch_tokens) {
            let batch = EvidenceBatch::next(log, &self.dialects, &ctx.thread_id, from, self.options.batch_tokens);
            let request = question(self.kind, &self.options.model, &batch, facts);
            self.begin(ctx, LearnerWork::Extract(batch), request);
        } else if self.kind == Kind::Observations {
            self.begin_reflection(ctx, facts);
        }
    }

    /// Condenses the older notes if there are too many.
    fn begin_reflection(&self, ctx: &ExecutionContext, facts: &Facts) {
        let notes: Vec<&Fact> = facts.current().filter(|fact| !fact.confirmed).collect();
        let older = &notes[..notes.len().saturating_sub(KEEP_NEWEST)];
        if older.len() < 2 || notes.iter().map(|fact| ctx.tokenize(&fact.text)).sum::<u64>() < REFLECT_TOKENS {
            return;
        }
        let ids = older.iter().map(|fact| fact.id.clone()).collect();
        let request = reflection(&self.options.model, older);
        self.begin(ctx, LearnerWork::Reflect(ids), request);
    }

    fn begin(&self, ctx: &ExecutionContext, work: LearnerWork, request: MemoryCallModelRequest) {
        let (Some(model), Some(store)) = (ctx.call_model.clone(), self.store.get().cloned()) else { return };
        if let LearnerWork::Extract(batch) = &work
            && batch.items.is_empty()
        {
            return;
        }
        let asked: String = request.instructions.iter().cloned().chain(request.items.iter().map(text_of)).collect();
        let input_tokens = ctx.tokenize(&asked);
        let (clock, counter, limit) = (ctx.clock.clone(), ctx.shared_counter(), self.options.daily_tokens);
        let task = tokio::spawn(async move {
            let daily = DailyTokens { store: &*store, limit };
            let (now_ms, taken) = (ms(clock.now()), input_tokens + ANSWER_TOKENS);
            let failed = |error: &dyn std::fmt::Display| NoAnswer::Failed(error.to_string());
            let answer = match daily.take(taken, now_ms).await {
                Ok(true) => match select(std::pin::pin!(model.call(request)), clock.limit(LIMIT)).await {
                    Either::Left((answer, _)) => answer.map_err(|error| failed(&error)),
                    Either::Right(_) => Err(failed(&"it took too long")),
                },
                Ok(false) => Err(NoAnswer::DailyLimit),
                Err(error) => Err(failed(&error)),
            };
            let mut usage = answer.as_ref().map(|response| response.usage).unwrap_or_default();
            if let Ok(response) = &answer
                && usage.input_tokens + usage.output_tokens == 0
            {
                (usage.input_tokens, usage.output_tokens) = (input_tokens, counter.count(&response.output_text()));
            }
            if !matches!(answer, Err(NoAnswer::DailyLimit)) {
                let cost = answer.as_ref().ok().and_then(|response| response.cost);
                // If it cannot be counted, what was taken stays counted, which is at least as much.
                let _ = daily.settle(taken, &usage, cost, now_ms).await;
            }
            LearnerAnswer { work, answer, usage }
        });
        self.running().insert(ctx.execution_id.clone(), task);
    }

    /// What was learned since the last time, added to the facts; `None` if nothing is new. `wait`: until it is done.
    pub(super) async fn collect(&self, ctx: &ExecutionContext, facts: &Facts, wait: bool) -> Option<Facts> {
        let task = {
            let mut running = self.running();
            let is_ready = running.get(&ctx.execution_id).is_some_and(|task| wait || task.is_finished());
            if is_ready { running.remove(&ctx.execution_id) } else { None }
        }?;
        let handle = task.abort_handle();
        match select(task, ctx.clock.limit(END_LIMIT)).await {
            Either::Left((Ok(outcome), _)) => self.apply(ctx, facts, outcome),
            // The task panicked in the model's client: nothing was learned.
            Either::Left((Err(_), _)) => None,
            Either::Right(_) => {
                handle.abort();
                None
            }
        }
    }

    fn apply(&self, ctx: &ExecutionContext, facts: &Facts, outcome: LearnerAnswer) -> Option<Facts> {
        let now = ctx.clock.now();
        let LearnerAnswer { work, answer, usage } = outcome;
        let response = match answer {
            Ok(response) => response,
            Err(reason) => {
                self.threads().entry(ctx.thread_id.clone()).or_default().paused_until = now + PAUSE;
                match reason {
                    NoAnswer::DailyLimit => ctx.trace.add_event("daily limit reached", &[]),
                    NoAnswer::Failed(error) => {
                        ctx.trace.add_event("extraction failed", &[("error", error.as_str().into())]);
                    }
                }
                return None;
            }
        };
        let mut facts = facts.clone();
        facts.spent_mut().add(&usage, response.cost, ms(now));
        match work {
            LearnerWork::Extract(batch) => self.learn(ctx, &mut facts, &batch, &response.output_text()),
            LearnerWork::Reflect(notes) => {
                let reflected = read_reflection(ctx.counter(), &response.output_text(), &facts, &notes);
                let applied = reflected.map(|reflected| facts.reflect(&reflected.ids, reflected.drafts, ms(now)));
                if !matches!(applied, Some(Ok(_))) {
                    // It would be refused again, so the model is not asked again at once.
                    self.threads().entry(ctx.thread_id.clone()).or_default().paused_until = now + PAUSE;
                    ctx.trace.add_event("reflection refused", &[]);
                }
            }
        }
        Some(facts)
    }

    fn learn(&self, ctx: &ExecutionContext, facts: &mut Facts, batch: &EvidenceBatch, answer: &str) {
        let others = FACT_LAYERS.iter().filter(|id| **id != self.own.as_str());
        let others: Vec<Facts> = others.filter_map(|id| ctx.read_layer_state(id)).collect();
        let others: Vec<&Facts> = others.iter().collect();
        let learned = learn_answer(facts, batch, answer, &others, ms(ctx.clock.now()));
        let (added, refused) = (learned.added as f64, learned.refused as f64);
        ctx.trace.add_event("extracted", &[("added", added.into()), ("refused", refused.into())]);
    }
}

impl std::fmt::Debug for Learner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Learner").field("options", &self.options).finish_non_exhaustive()
    }
}

fn text_of(item: &contexture_core::Item) -> String {
    item.as_message().map(|message| message.text()).unwrap_or_default()
}

/// Milliseconds of a moment.
pub(super) fn ms(moment: Duration) -> u64 {
    u64::try_from(moment.as_millis()).unwrap_or(u64::MAX)
}

/// The store of an engine, once an execution has begun.
pub(super) type EngineStore = Arc<OnceLock<Arc<dyn StorageAdapter>>>;

/// A learner behind a pointer, so that copies of a layer share it.
pub(super) type SharedLearner = Arc<Learner>;
