//! What Contexture adds to a model call: everything but the model, against a provider over a real socket that responds
//! at once. `cargo bench -p contexture-bench --bench client`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use bytes::Bytes;
use contexture::client::Client;
use contexture::engine::Engine;
use contexture::layers::steering::Pattern;
use contexture::layers::*;
use contexture::prelude::*;
use contexture::tools::Workspace;
use contexture::wire::Format;
use contexture_bench::{show, synthetic};

/// How many model calls are timed.
const CALLS: usize = 201;
/// How many of them come before.
const WARM_UP: usize = 10;
/// The work between two calls without Contexture.
const PAUSE: Duration = Duration::from_micros(300);
/// The number of items in the history.
const ITEMS: usize = 2_000;

/// The body of the last request that the provider received.
type Last = Arc<Mutex<Bytes>>;

fn main() {
    contexture_gateway::prepare_tls();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    println!("{ITEMS} items of history, 12 layers, {CALLS} calls");
    println!("{:<40} {:>8} {:>10} {:>10} {:>10} {:>10}", "", "body", "median", "p99", "client", "bare HTTP");
    for budget in [64_000, 400_000] {
        for is_on_disk in [false, true] {
            runtime.block_on(report(None, budget, is_on_disk));
            for format in [Format::Chat, Format::Messages, Format::Responses] {
                runtime.block_on(report(Some(format), budget, is_on_disk));
            }
        }
    }
}

/// A client, and how long its calls took.
#[derive(Clone)]
struct Timed {
    client: Client,
    times: Arc<Mutex<Vec<Duration>>>,
}

impl Model for Timed {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        let begin = Instant::now();
        let response = self.client.call(request).await;
        self.times.lock().unwrap_or_else(PoisonError::into_inner).push(begin.elapsed());
        response
    }
}

/// A model in this process.
struct Stub;

impl Model for Stub {
    async fn call(&self, _: ModelRequest) -> Result<LlmResponse, BoxError> {
        Ok(LlmResponse::text("Understood."))
    }
}

/// A whole response of a format.
fn whole(format: Format) -> &'static str {
    match format {
        Format::Messages => {
            r#"{"content":[{"type":"text","text":"Understood."}],"usage":{"input_tokens":9,"output_tokens":1}}"#
        }
        Format::Chat => {
            r#"{"choices":[{"message":{"role":"assistant","content":"Understood."}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#
        }
        Format::Gemini => {
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Understood."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1}}"#
        }
        Format::Responses => {
            r#"{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Understood."}]}],"usage":{"input_tokens":9,"output_tokens":1}}"#
        }
    }
}

async fn respond(State((format, last)): State<(Format, Last)>, request: Request) -> Response<Body> {
    let body = to_bytes(request.into_body(), usize::MAX).await.unwrap_or_default();
    *last.lock().unwrap_or_else(PoisonError::into_inner) = body;
    Response::new(Body::from(whole(format)))
}

async fn provider(format: Format) -> (String, Last) {
    let last = Last::default();
    let app = axum::Router::new().fallback(respond).with_state((format, last.clone()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("a port that is bound has an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, last)
}

/// A layer that stores a number and shows a sentence.
fn trivial(index: usize) -> impl MemoryLayer<State = u64> {
    let spec = LayerSpec::new(format!("layer-{index}"), Slot(300 + index as i32), MemoryScope::Thread);
    layer::<u64>(spec.with_budget(BudgetConfig::range(0, 100)))
        .recall(move |_| async move { Ok(format!("Layer {index} has this one sentence to say.").into()) })
        .store(|params| async move { Ok(StoreResult::set(*params.state + 1)) })
        .build()
}

/// An agent with ten built-in layers and two that only count, its tools, and a client.
fn engine(project: &Path, client: Option<Timed>, budget: u64, is_on_disk: bool) -> Engine<()> {
    let memory = memory(())
        .with_layer(Reminder::new().every_turns("tests", 5, "Run the tests."))
        .with_layer(Steering::new().pattern(Pattern::deny("push", "Ask first.").command("git push *")))
        .with_layer(WorkingMemory::new())
        .with_layer(Instructions::new())
        .with_layer(TaskState::new())
        .with_layer(ToolMemory::new())
        .with_layer(Plan::new())
        .with_layer(Procedural::new())
        .with_layer(FileReference::new(FileReferenceOptions::default()).expect("the defaults are valid"))
        .with_layer(FileHistory::default())
        .with_layer(trivial(0))
        .with_layer(trivial(1));
    let builder = match is_on_disk {
        true => contexture::open(project.join(".contexture.db"), memory).expect("a new store opens"),
        false => contexture::in_memory(memory),
    };
    let workspace = Workspace::open(project).expect("the project is there");
    let builder = workspace.add_tools(builder).instructions("You are a coding agent.");
    let builder = match client {
        Some(client) => builder.model(client),
        None => builder.model(Stub),
    };
    builder.policy(ProjectionPolicy::new(budget)).build().expect("the layers go together")
}

/// Times the calls of a client, or of a model in this process.
async fn report(format: Option<Format>, budget: u64, is_on_disk: bool) {
    let (url, last) = provider(format.unwrap_or(Format::Chat)).await;
    let project = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(project.path().join("AGENTS.md"), "- Run the tests before you commit.\n").expect("a file");
    let times = Arc::new(Mutex::new(Vec::new()));
    let client = format.map(|format| Client::builder(format, &url, "model").build().expect("a valid address"));
    let client = client.map(|client| Timed { client, times: times.clone() });
    let engine = engine(project.path(), client, budget, is_on_disk);
    let mut execution = engine.execution("bench").start().await.expect("a new thread opens");
    execution.import(synthetic::items(ITEMS, 42)).await.expect("the store takes it");
    let mut calls = Vec::with_capacity(CALLS);
    for call in 0..WARM_UP + CALLS {
        let begin = Instant::now();
        execution.turn("What is next on the list?").await.expect("the provider responds");
        if call >= WARM_UP {
            calls.push(begin.elapsed());
        }
    }
    let body = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let kind = format.map_or_else(|| "No client".to_owned(), |format| format!("{format:?}"));
    let name = format!("{kind}, {budget} tokens, {}", if is_on_disk { "on disk" } else { "in memory" });
    let (mut size, mut within, mut without) = (String::new(), String::new(), String::new());
    if format.is_some() {
        let mut times = times.lock().unwrap_or_else(PoisonError::into_inner).split_off(WARM_UP);
        within = show(at(&mut times, 0.5));
        size = format!("{} kB", body.len() / 1_000);
        without = show(bare(&url, &body).await);
    }
    let (median, p99) = (at(&mut calls, 0.5), at(&mut calls, 0.99));
    println!("{name:<40} {size:>8} {:>10} {:>10} {within:>10} {without:>10}", show(median), show(p99));
}

/// How long the last request takes without Contexture.
async fn bare(url: &str, body: &Bytes) -> Duration {
    let client = reqwest::Client::new();
    let mut times = Vec::with_capacity(CALLS);
    for call in 0..WARM_UP + CALLS {
        // As long as an engine works between two calls: threads that wait longer take longer to wake.
        let pause = Instant::now();
        while pause.elapsed() < PAUSE {
            std::hint::spin_loop();
        }
        let begin = Instant::now();
        let response = client.post(url).body(body.clone()).send().await.expect("the provider responds");
        response.bytes().await.expect("the response is whole");
        if call >= WARM_UP {
            times.push(begin.elapsed());
        }
    }
    at(&mut times, 0.5)
}

fn at(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    times[(times.len() as f64 * share) as usize]
}
