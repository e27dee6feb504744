//! The window through the engine: scripted conversations with layers, and what the model was sent.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use contexture_core::decision::{Action, Decision, EpochReason};
use contexture_core::engine::EngineBuilder;
use contexture_core::error::BoxError;
use contexture_core::layer::{CacheState, RecallParams};
use contexture_core::model::Usage;
use contexture_core::testing::{CountingIds, ManualClock, Recorder, engine};
use contexture_core::tokens::{Estimate, count_item};
use contexture_core::tool::ToolContext;
use contexture_core::window::{Overflow, ProjectionPolicy};
use contexture_core::{
    Engine, Item, LayerSpec, LlmResponse, MemoryLayer, MemoryScope, MemoryStore, Model, ModelRequest, Placement, Role,
    Slot, StorageAdapter, Tool, layer, memory,
};

type Answer = dyn Fn(usize, &ModelRequest) -> Result<LlmResponse, BoxError> + Send + Sync;

/// A model that responds by a rule and records its requests. Requests for a named model are counted separately.
#[derive(Clone)]
struct RuledModel {
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    summaries: Arc<Mutex<Vec<ModelRequest>>>,
    answer: Arc<Answer>,
    summarize: Arc<Answer>,
}

impl RuledModel {
    fn new(answer: impl Fn(usize, &ModelRequest) -> LlmResponse + Send + Sync + 'static) -> Self {
        Self {
            requests: Arc::default(),
            summaries: Arc::default(),
            answer: Arc::new(move |number, request| Ok(answer(number, request))),
            summarize: Arc::new(|_, _| Err("there is no such model".into())),
        }
    }

    fn summarizing(
        mut self,
        summarize: impl Fn(usize, &ModelRequest) -> Result<LlmResponse, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.summarize = Arc::new(summarize);
        self
    }

    fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }

    fn summaries(&self) -> Vec<ModelRequest> {
        self.summaries.lock().unwrap().clone()
    }
}

impl Model for RuledModel {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        let (requests, answer) = match request.model {
            Some(_) => (&self.summaries, &self.summarize),
            None => (&self.requests, &self.answer),
        };
        let number = requests.lock().unwrap().len();
        requests.lock().unwrap().push(request.clone());
        answer(number, &request)
    }
}

/// A tool whose output has the requested length.
struct Read;

impl Tool for Read {
    fn name(&self) -> &str {
        "read"
    }

    fn description(&self) -> &str {
        "reads"
    }

    fn parameters(&self) -> serde_json::Value {
        serde_json::json!({ "type": "object" })
    }

    async fn call(&self, arguments: serde_json::Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let words = arguments["words"].as_u64().unwrap_or(0) as usize;
        Ok(format!("begin {} end", "word ".repeat(words)))
    }
}

/// Every third request asks for a tool, sometimes with a large output.
fn works(_: usize, request: &ModelRequest) -> LlmResponse {
    let users = request.items.iter().filter(|item| item.is_message_of(Role::User)).count();
    let answered = request.items.iter().rev().take_while(|item| !item.is_message_of(Role::User));
    if users % 3 == 0 || answered.filter(|item| item.as_output().is_some()).count() > 0 {
        return LlmResponse::text("done, and this is what I found: nothing of interest, as far as I can see");
    }
    let words = if users % 5 == 0 { 400 } else { 30 };
    let call = Item::call("", "read", format!("{{\"words\":{words}}}"));
    LlmResponse { items: vec![Item::assistant("let me look"), call], ..LlmResponse::default() }
}

fn users_in(params: &RecallParams<()>) -> usize {
    params.log.iter().filter(|item| item.is_message_of(Role::User)).count()
}

fn spec(id: &str, placement: Placement) -> LayerSpec {
    LayerSpec::new(id, Slot::WORKING_MEMORY, MemoryScope::Thread).with_placement(placement)
}

/// A layer that never changes.
fn steady() -> impl MemoryLayer {
    layer::<()>(spec("steady", Placement::Anchor)).recall(|_| async { Ok("The user is called Ada.".into()) }).build()
}

/// A live layer that changes every turn.
fn clock() -> impl MemoryLayer {
    let recall = |params: RecallParams<()>| async move { Ok(format!("It is turn {}.", users_in(&params)).into()) };
    layer::<()>(spec("clock", Placement::Live)).recall(recall).build()
}

/// An auto layer that changes every turn.
fn lively() -> impl MemoryLayer {
    let recall = |params: RecallParams<()>| async move { Ok(format!("{} questions so far", users_in(&params)).into()) };
    layer::<()>(spec("lively", Placement::Auto)).recall(recall).build()
}

/// A layer that changes now and then.
fn notes() -> impl MemoryLayer {
    let recall = |params: RecallParams<()>| async move {
        Ok(format!("Notes, version {}: {}", users_in(&params) / 20, "keep this in mind ".repeat(10)).into())
    };
    layer::<()>(spec("notes", Placement::Auto)).recall(recall).build()
}

/// An engine with four layers over a small window.
fn small<Ls>(
    builder: EngineBuilder<Ls>,
    model: &RuledModel,
    recorder: &Recorder,
    overflow: Overflow,
) -> EngineBuilder<Ls> {
    let policy = ProjectionPolicy { overflow_model: None, ..ProjectionPolicy::new(6000).with_overflow(overflow) };
    builder.policy(policy).instructions("You are careful.").tool(Read).model(model.clone()).observer(recorder.clone())
}

/// A request as bytes: what the provider's cache compares.
fn bytes(request: &ModelRequest) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(&*request.tools).unwrap();
    bytes.extend_from_slice(request.instructions.as_bytes());
    bytes.extend(serde_json::to_vec(&request.items).unwrap());
    bytes
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[tokio::test]
async fn over_budget_nine_tenths_of_the_prompt_are_the_same_from_one_request_to_the_next() {
    for overflow in [Overflow::Truncate, Overflow::Summarize, Overflow::SlidingWindow] {
        let (model, recorder) = (RuledModel::new(works), Recorder::new());
        let memory = memory((steady(), clock(), lively(), notes()));
        let engine = small(engine(memory), &model, &recorder, overflow).build().unwrap();
        let mut execution = engine.execution("thread").start().await.unwrap();
        for turn in 0..150 {
            execution.turn(format!("question {turn}: what do you make of this, all in all?")).await.unwrap();
        }
        let (requests, usages) = (model.requests(), recorder.usages());
        assert_eq!(requests.len(), usages.len());
        let prompts: Vec<Vec<u8>> = requests.iter().map(bytes).collect();
        let over = (1..prompts.len()).find(|n| prompts[*n].len() * 5 < prompts[n - 1].len() * 4).unwrap();
        let mut same = Vec::new();
        for n in over..prompts.len() {
            if usages[n].epoch == usages[n - 1].epoch {
                let kept = common_prefix(&prompts[n - 1], &prompts[n]);
                same.push(kept as f64 / prompts[n].len() as f64);
            }
        }
        let average = same.iter().sum::<f64>() / same.len() as f64;
        let folds = requests.len() - over - same.len();
        assert!(average >= 0.9, "{overflow:?}: {average:.3} over {} requests", same.len());
        assert!(folds > 0 && folds * 12 < same.len(), "{overflow:?}: {folds} folds in {}", same.len());
    }
}

/// Runs turns, optionally with a restart after each.
async fn play(overflow: Overflow, restarts: bool) -> (Vec<ModelRequest>, Vec<Decision>) {
    let (model, recorder) = (RuledModel::new(works), Recorder::new());
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    let clock_of_all = Arc::new(ManualClock::new());
    let start = async |first: u64| {
        let memory = memory((steady(), clock(), lively(), notes()));
        let builder = Engine::builder(memory, clock_of_all.clone(), Arc::new(CountingIds::starting_at(first)));
        let engine = small(builder, &model, &recorder, overflow).store(store.clone()).build().unwrap();
        engine.execution("thread").start().await.unwrap()
    };
    let mut execution = start(0).await;
    for turn in 0..60 {
        execution.turn(format!("question {turn}: what do you make of this, all in all?")).await.unwrap();
        if restarts {
            drop(execution);
            execution = start(turn + 1).await;
        }
    }
    (model.requests(), recorder.decisions())
}

#[tokio::test]
async fn a_restart_after_every_turn_changes_no_byte_of_any_request_and_no_decision() {
    for overflow in [Overflow::Truncate, Overflow::Summarize, Overflow::SlidingWindow] {
        let (requests, decisions) = play(overflow, false).await;
        let (again, decided_again) = play(overflow, true).await;
        assert_eq!(requests.len(), again.len());
        for (n, (request, again)) in requests.iter().zip(&again).enumerate() {
            assert_eq!(request.items, again.items, "{overflow:?}, request {n}");
        }
        assert_eq!(decisions, decided_again);
        let epochs = decisions.iter().filter(|decision| matches!(decision.action, Action::Epoch { .. })).count();
        assert!(epochs > 1, "{overflow:?}: something was folded");
        if overflow == Overflow::Truncate {
            assert!(decisions.iter().any(|decision| matches!(decision.action, Action::Shorten { .. })));
        }
    }
}

fn epoch_reasons(recorder: &Recorder) -> Vec<EpochReason> {
    let reason = |decision: &Decision| match decision.action {
        Action::Epoch { reason } => Some(reason),
        _ => None,
    };
    recorder.decisions().iter().filter_map(reason).collect()
}

#[tokio::test]
async fn a_cache_that_the_clock_says_has_expired_begins_an_epoch() {
    let (model, recorder, clock) =
        (RuledModel::new(|_, _| LlmResponse::text("ok")), Recorder::new(), ManualClock::new());
    let builder = small(engine(memory((steady(),))), &model, &recorder, Overflow::Truncate);
    let engine = builder.clock(Arc::new(clock.clone())).cache_ttl(Duration::from_secs(60)).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    for seconds in [0, 60, 61, 10] {
        clock.advance(Duration::from_secs(seconds));
        execution.turn("hello").await.unwrap();
    }
    assert_eq!(epoch_reasons(&recorder), [EpochReason::ColdStart, EpochReason::CacheExpired]);
}

#[tokio::test]
async fn layers_know_when_the_cache_is_cold() {
    let (told, clock) = (Arc::new(Mutex::new(Vec::new())), ManualClock::new());
    let telling = told.clone();
    let layer = layer::<()>(LayerSpec::new("watch", Slot(1), MemoryScope::Thread)).project_history(move |params| {
        telling.lock().unwrap().push(params.cache);
        async move { Ok(params.history.into()) }
    });
    let (model, recorder) = (RuledModel::new(|_, _| LlmResponse::text("ok")), Recorder::new());
    let builder = small(engine(memory((layer.build(),))), &model, &recorder, Overflow::Truncate);
    let engine = builder.clock(Arc::new(clock.clone())).cache_ttl(Duration::from_secs(60)).build().unwrap();
    let mut execution = engine.execution("thread").start().await.unwrap();
    for seconds in [0, 60, 61, 10] {
        clock.advance(Duration::from_secs(seconds));
        execution.turn("hello").await.unwrap();
    }
    use CacheState::{Cold, Warm};
    assert_eq!(*told.lock().unwrap(), [Cold, Warm, Cold, Warm]);
}

#[tokio::test]
async fn a_miss_begins_an_epoch_only_if_the_provider_ever_reported_a_hit() {
    let check = async |reads: &'static [u64], expected: &[EpochReason]| {
        let answer = move |number: usize, _: &ModelRequest| {
            let usage = Usage { cache_read_tokens: reads.get(number).copied(), ..Usage::default() };
            LlmResponse { usage, ..LlmResponse::text("ok") }
        };
        let (model, recorder) = (RuledModel::new(answer), Recorder::new());
        let policy = ProjectionPolicy::new(100_000);
        let builder = small(engine(memory((steady(),))), &model, &recorder, Overflow::Truncate).policy(policy);
        let mut execution = builder.build().unwrap().execution("thread").start().await.unwrap();
        for _ in 0..reads.len() + 1 {
            execution.turn("x".repeat(8000)).await.unwrap();
        }
        assert_eq!(epoch_reasons(&recorder), expected);
    };
    use EpochReason::{ColdStart, ProviderMiss};
    check(&[0, 0, 0, 0], &[ColdStart]).await;
    check(&[0, 2000, 4000, 6000], &[ColdStart]).await;
    check(&[0, 2000, 0, 2000], &[ColdStart, ProviderMiss, ProviderMiss]).await;
}

#[tokio::test]
async fn other_instructions_or_another_tool_schema_after_a_restart_begin_an_epoch() {
    struct Other(&'static str);
    impl Tool for Other {
        fn name(&self) -> &str {
            "other"
        }
        fn description(&self) -> &str {
            self.0
        }
        fn parameters(&self) -> serde_json::Value {
            serde_json::json!({})
        }
        async fn call(&self, _: serde_json::Value, _: ToolContext<'_>) -> Result<String, BoxError> {
            Ok(String::new())
        }
    }
    let (model, recorder) = (RuledModel::new(|_, _| LlmResponse::text("ok")), Recorder::new());
    let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
    let starts = [("one", "a tool"), ("one", "a tool"), ("two", "a tool"), ("two", "the same tool, described better")];
    for (number, (instructions, description)) in starts.into_iter().enumerate() {
        let ids = Arc::new(CountingIds::starting_at(number as u64));
        let builder = Engine::builder(memory((steady(),)), Arc::new(ManualClock::new()), ids);
        let builder = small(builder, &model, &recorder, Overflow::Truncate).store(store.clone());
        let engine = builder.instructions(instructions).tool(Other(description)).build().unwrap();
        engine.execution("thread").start().await.unwrap().turn("hello").await.unwrap();
    }
    use EpochReason::{ColdStart, SystemChanged};
    assert_eq!(epoch_reasons(&recorder), [ColdStart, SystemChanged, SystemChanged]);
}

/// A conversation in summarise mode with an overflow model; returns the decisions and the requests.
async fn summarized(
    summarize: impl Fn(usize, &ModelRequest) -> Result<LlmResponse, BoxError> + Send + Sync + 'static,
) -> (RuledModel, Recorder) {
    let (model, recorder) = (RuledModel::new(works).summarizing(summarize), Recorder::new());
    let policy = ProjectionPolicy {
        overflow_model: Some("small".into()),
        ..ProjectionPolicy::new(6000).with_overflow(Overflow::Summarize)
    };
    let builder = small(engine(memory((steady(),))), &model, &recorder, Overflow::Summarize).policy(policy);
    let mut execution = builder.build().unwrap().execution("thread").start().await.unwrap();
    for turn in 0..120 {
        execution.turn(format!("question {turn}: what do you make of this, all in all?")).await.unwrap();
    }
    (model, recorder)
}

fn summaries(recorder: &Recorder) -> Vec<(String, bool)> {
    let summary = |decision: Decision| match decision.action {
        Action::Summarize { text, by_model, .. } => Some((text, by_model)),
        _ => None,
    };
    recorder.decisions().into_iter().filter_map(summary).collect()
}

#[tokio::test]
async fn the_overflow_model_writes_summaries_and_gets_the_last_one() {
    let (model, recorder) = summarized(|number, _| Ok(LlmResponse::text(format!("summary {number}")))).await;
    let asked = model.summaries();
    assert!(asked.len() > 1);
    assert_eq!(asked[0].model.as_deref(), Some("small"));
    let first = |request: &ModelRequest| request.items[0].as_message().unwrap().text();
    assert!(first(&asked[0]).starts_with("user: question 0"));
    assert_eq!(first(&asked[1]), "summary 0");
    assert_eq!(summaries(&recorder)[..2], [("summary 0".to_owned(), true), ("summary 1".to_owned(), true)]);
    let last = model.requests().pop().unwrap();
    let shown = last.items.iter().filter_map(|item| item.as_message()).map(|message| message.text());
    let number = asked.len() - 1;
    assert_eq!(
        shown.filter(|text| text.contains("summary")).collect::<Vec<_>>(),
        [format!("What happened before, in short:\nsummary {number}")]
    );
    assert!(recorder.faults().is_empty(), "{:?}", recorder.faults());
}

#[tokio::test]
async fn the_ledger_is_used_when_the_overflow_model_fails_or_returns_too_much_or_nothing() {
    let check = async |answer: fn() -> Result<LlmResponse, BoxError>, fault: &str| {
        let (_, recorder) = summarized(move |_, _| answer()).await;
        let summaries = summaries(&recorder);
        assert!(!summaries.is_empty());
        for (text, by_model) in summaries {
            assert!(!by_model && text.starts_with("- user: question 0"), "{text}");
        }
        let faults = recorder.faults();
        assert!(faults[0].message.contains(fault) && faults[0].place == "overflow", "{:?}", faults[0]);
    };
    check(|| Err("overloaded".into()), "overloaded").await;
    check(|| Ok(LlmResponse::text("far too much to say ".repeat(2000))), "the ledger is used instead").await;
    check(|| Ok(LlmResponse::text(" \n")), "the ledger is used instead").await;
}

#[tokio::test]
async fn the_ledger_is_used_when_the_overflow_model_takes_too_long() {
    /// Answers the agent, and nobody else.
    struct Slow;
    impl Model for Slow {
        async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
            match request.model {
                Some(_) => std::future::pending().await,
                None => Ok(LlmResponse::text("fine ".repeat(100))),
            }
        }
    }
    let recorder = Recorder::new();
    let policy = ProjectionPolicy {
        overflow_model: Some("small".into()),
        ..ProjectionPolicy::new(2000).with_overflow(Overflow::Summarize)
    };
    let (clock, ids) = (Arc::new(ManualClock::hurried()), Arc::new(CountingIds::new()));
    let builder = Engine::builder(memory(()), clock, ids).model(Slow).observer(recorder.clone()).policy(policy);
    let mut execution = builder.build().unwrap().execution("thread").start().await.unwrap();
    for turn in 0..20 {
        execution.turn(format!("question {turn}")).await.unwrap();
    }
    assert!(summaries(&recorder).iter().all(|(_, by_model)| !by_model) && !summaries(&recorder).is_empty());
    let message = "the overflow model failed, and the ledger is used instead: took longer than 60 s";
    assert_eq!(recorder.faults()[0].message, message);
}

#[tokio::test]
async fn a_long_thread_that_is_opened_with_a_small_window_does_not_overwhelm_the_overflow_model() {
    let model = RuledModel::new(works).summarizing(|_, _| Ok(LlmResponse::text("all of it, in short")));
    let (recorder, store) = (Recorder::new(), Arc::new(MemoryStore::new()) as Arc<dyn StorageAdapter>);
    for (first, token_budget, turns) in [(0, 1_000_000, 200), (1, 4000, 1)] {
        let policy = ProjectionPolicy {
            overflow_model: Some("small".into()),
            ..ProjectionPolicy::new(token_budget).with_overflow(Overflow::Summarize)
        };
        let ids = Arc::new(CountingIds::starting_at(first));
        let builder = Engine::builder(memory((steady(),)), Arc::new(ManualClock::new()), ids).store(store.clone());
        let engine = small(builder, &model, &recorder, Overflow::Summarize).policy(policy).build().unwrap();
        let mut execution = engine.execution("thread").start().await.unwrap();
        for turn in 0..turns {
            execution.turn(format!("question {turn}: what do you make of this, all in all?")).await.unwrap();
        }
    }
    let [asked] = &model.summaries()[..] else { panic!("one summary was needed") };
    let tokens: u64 = asked.items.iter().map(|item| count_item(&Estimate, item)).sum();
    assert!((1000..3600).contains(&tokens), "{tokens}");
    let texts = model.requests().pop().unwrap().items;
    assert_eq!(texts[1].as_message().unwrap().text(), "What happened before, in short:\nall of it, in short");
}

/// What is kept for the response only makes the room smaller: a policy with a large reserve sends what a smaller one
/// without sends, and cuts history no more often.
#[tokio::test]
async fn a_large_reserve_is_nothing_but_a_smaller_room() {
    let converse = async |overflow: Overflow, room: u64, reserve: u64| {
        let (model, recorder) = (RuledModel::new(works), Recorder::new());
        let policy = ProjectionPolicy { response_reserve: reserve, ..ProjectionPolicy::new(room + reserve) };
        let memory = memory((steady(), clock(), lively(), notes()));
        let builder = engine(memory).model(model.clone()).observer(recorder.clone()).tool(Read);
        let engine = builder.policy(policy.with_overflow(overflow)).build().unwrap();
        let mut execution = engine.execution("thread").start().await.unwrap();
        for turn in 0..60 {
            execution.turn(format!("question {turn}: what do you make of this, all in all?")).await.unwrap();
        }
        let requests: Vec<Vec<u8>> = model.requests().iter().map(bytes).collect();
        let cuts =
            recorder.decisions().iter().filter(|decision| matches!(decision.action, Action::Evict { .. })).count();
        (requests, cuts)
    };
    for overflow in [Overflow::Truncate, Overflow::Summarize, Overflow::SlidingWindow] {
        let (requests, cuts) = converse(overflow, 2_000, 0).await;
        assert!(cuts > 0 && cuts * 6 < requests.len(), "{overflow:?}: {cuts} in {}", requests.len());
        for reserve in [500, 1_000, 2_000, 20_000] {
            assert!(converse(overflow, 2_000, reserve).await == (requests.clone(), cuts), "{overflow:?}, {reserve}");
        }
    }
}
