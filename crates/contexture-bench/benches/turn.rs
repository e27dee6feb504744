//! The cost of a turn in time and memory, with few and many layers, after short and long histories.

use std::time::{Duration, Instant};

use contexture::engine::{Engine, Execution};
use contexture::prelude::*;
use contexture_bench::{resident_mb, synthetic};

/// The default window in tokens.
const BUDGET_TOKENS: u64 = 32_000;
/// How many turns are timed before the execution is recreated, so that the history keeps its length.
const TURNS: usize = 10;

/// A model that always returns the same text.
struct Stub;

impl Model for Stub {
    async fn call(&self, _: ModelRequest) -> Result<LlmResponse, BoxError> {
        Ok(LlmResponse::text("Understood, going on."))
    }
}

/// A layer that stores a number and shows a sentence.
fn trivial(index: usize) -> impl MemoryLayer<State = u64> {
    let spec = LayerSpec::new(format!("layer-{index:02}"), Slot(100 + index as i32), MemoryScope::Thread);
    layer::<u64>(spec.with_budget(BudgetConfig::range(0, 100)))
        .recall(move |_| async move { Ok(format!("Layer {index} has this one sentence to say.").into()) })
        .store(|params| async move { Ok(StoreResult::set(*params.state + 1)) })
        .build()
}

fn engine(layers: usize) -> Engine<()> {
    let memory = (0..layers).fold(memory(()), |memory, index| memory.with_layer(trivial(index)));
    let builder = contexture::in_memory(memory).model(Stub).policy(ProjectionPolicy::new(BUDGET_TOKENS));
    builder.build().expect("the layers go together")
}

async fn execution(engine: &Engine<()>, items: usize) -> Execution<()> {
    let mut execution = engine.execution("bench").start().await.expect("a new thread opens");
    execution.import(synthetic::items(items, 42)).await.expect("a store in memory does not fail");
    execution.turn("Warm up, please.").await.expect("the model does not fail");
    execution
}

/// The time of one turn: minimum and median.
struct TurnTime {
    least: Duration,
    median: Duration,
}

/// The time of one turn after a history of `items` items.
fn turn_time(runtime: &tokio::runtime::Runtime, layers: usize, items: usize, rounds: usize) -> TurnTime {
    let mut samples = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let engine = engine(layers);
        let mut execution = runtime.block_on(execution(&engine, items));
        let begin = Instant::now();
        runtime.block_on(async {
            for _ in 0..TURNS {
                execution.turn("What is next on the list?").await.expect("the model does not fail");
            }
        });
        samples.push(begin.elapsed() / TURNS as u32);
    }
    samples.sort_unstable();
    TurnTime { least: samples[0], median: samples[samples.len() / 2] }
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

/// The memory of 100 000 items of 400 bytes, with the store on disk.
fn report_memory(runtime: &tokio::runtime::Runtime) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let builder = contexture::open(directory.path().join("bench.db"), memory(())).expect("a new store opens");
    let engine = builder.model(Stub).build().expect("an empty memory is fine");
    // The vocabulary is loaded once and is not part of the items' memory.
    runtime.block_on(async {
        let mut execution = engine.execution("warm").start().await.expect("a new thread opens");
        execution.turn("Warm up, please.").await.expect("the model does not fail");
    });
    let before = resident_mb();
    let held = runtime.block_on(async {
        let mut execution = engine.execution("memory").start().await.expect("a new thread opens");
        let mut items = synthetic::items(100_000, 7).peekable();
        while items.peek().is_some() {
            execution.import(items.by_ref().take(100)).await.expect("the disk takes it");
        }
        execution
    });
    if let (Some(before), Some(after)) = (before, resident_mb()) {
        println!("memory for {} items of 400 bytes: {:.0} MB", held.log().len(), after - before);
    }
}

/// A model that keeps its prompts.
#[derive(Clone, Default)]
struct Keeper(std::sync::Arc<std::sync::Mutex<Vec<ModelRequest>>>);

impl Model for Keeper {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        self.0.lock().expect("nobody panics here").push(request);
        Ok(LlmResponse::text("Understood, going on with the next item on the list."))
    }
}

/// How much of a prompt is at the same position in the next one, once the history is over budget.
fn report_prefix(runtime: &tokio::runtime::Runtime) {
    const TURNS: usize = 400;
    let keeper = Keeper::default();
    let memory = (0..8).fold(memory(()), |memory, index| memory.with_layer(trivial(index)));
    let policy = ProjectionPolicy::new(16_000);
    let engine = contexture::in_memory(memory).model(keeper.clone()).policy(policy).build().expect("it goes together");
    runtime.block_on(async {
        let mut execution = engine.execution("prefix").start().await.expect("a new thread opens");
        execution.import(synthetic::items(1_000, 42)).await.expect("a store in memory does not fail");
        let mut rng = contexture_measure::random::Rng::new(3);
        for _ in 0..TURNS {
            let text = synthetic::prose(&mut rng, 400);
            execution.turn(text).await.expect("the model does not fail");
        }
    });
    let requests = keeper.0.lock().expect("nobody panics here");
    let (mut shares, mut evictions) = (Vec::new(), 0);
    for pair in requests.windows(2) {
        let share = kept_share(&pair[0].items, &pair[1].items);
        // The prefix changes where the history was cut; that is counted separately.
        if share < 0.5 { evictions += 1 } else { shares.push(share) }
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let percent = 100.0 * mean;
    println!("over budget, {TURNS} turns: {percent:.1} % of the prompt stays the same between {evictions} evictions");
}

fn kept_share(before: &[std::sync::Arc<Item>], after: &[std::sync::Arc<Item>]) -> f64 {
    let bytes = |item: &Item| serde_json::to_vec(item).map_or(0, |json| json.len());
    let kept: usize = before.iter().zip(after).take_while(|(a, b)| a == b).map(|(_, item)| bytes(item)).sum();
    kept as f64 / after.iter().map(|item| bytes(item)).sum::<usize>() as f64
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    report_memory(&runtime);
    report_prefix(&runtime);
    println!("a turn with 8 layers, windows of {BUDGET_TOKENS} tokens, store in memory");
    let mut by_items = Vec::new();
    for (items, rounds) in [(100, 81), (1_000, 81), (10_000, 41), (100_000, 9)] {
        let time = turn_time(&runtime, 8, items, rounds);
        println!(
            "  after {items:>7} items: least {:>6.1} µs, median {:>6.1} µs",
            micros(time.least),
            micros(time.median)
        );
        by_items.push(time);
    }
    let (long, short) = (&by_items[3], &by_items[1]);
    let ratio = |long, short| micros(long) / micros(short);
    println!(
        "  100 000 items against 1 000: least {:.2} times, median {:.2} times",
        ratio(long.least, short.least),
        ratio(long.median, short.median)
    );
    let (few, many) = (turn_time(&runtime, 8, 100, 81), turn_time(&runtime, 32, 100, 81));
    println!(
        "a turn with 32 layers against 8: least {:.2} times, median {:.2} times",
        ratio(many.least, few.least),
        ratio(many.median, few.median)
    );
}
