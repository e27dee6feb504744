//! Time that the gateway adds to a request until the first byte of its response, over a plain proxy in the same run:
//! `cargo bench -p contexture-bench --bench overhead`; `-- 400` measures bodies of 400 kB only.
//!
//! Bodies of three sizes at 1, 10 and 100 streams. Each stream has conversations that grow by half, one after the other,
//! and sends each request through the proxy and through the gateway. A response stays open for most of the time until the
//! stream's next request, and all streams together send a fixed number of requests per second, far below what the machine
//! can do: so that time is measured, and not how much can be done at once. What the provider takes until its first byte
//! is subtracted. Requests with a fold are reported apart: they wait for a commit that is synced.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use contexture_bench::{resident_mb, show};
use contexture_gateway::{Gateway, Options, Upstreams};
use contexture_measure::random::Rng;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// Requests of one size.
#[derive(Clone, Copy)]
struct Load {
    /// Bytes of a body at the beginning.
    bytes: usize,
    /// Messages at the beginning.
    messages: usize,
    /// Requests of all streams together.
    requests: usize,
    /// How many of them are sent in a second, each through the proxy and through the gateway.
    per_second: f64,
}

const LOADS: [Load; 3] = [
    Load { bytes: 10_000, messages: 20, requests: 1_000, per_second: 50.0 },
    Load { bytes: 400_000, messages: 300, requests: 400, per_second: 15.0 },
    Load { bytes: 4_000_000, messages: 1_000, requests: 80, per_second: 2.0 },
];

/// Streams at once.
const STREAMS: [usize; 3] = [1, 10, 100];

/// The least requests of a stream, beside the one that creates its conversation.
const LEAST_REQUESTS: usize = 2;

/// How long the provider takes until the first byte: less than any model does.
const THINKING: Duration = Duration::from_millis(10);

/// In which field of the response the provider says how long that was.
const THOUGHT: &str = "x-thought-us";

/// The share of the time of a stream for which a response is open.
const OPEN: f64 = 0.8;

/// Large bodies, and how many of them at once.
const LARGE_BYTES: usize = 60_000_000;
const LARGE: usize = 4;

fn main() {
    contexture_gateway::prepare_tls();
    let asked: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        println!(
            "{:<28} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>7}",
            "", "requests", "proxy p50", "p50", "added", "proxy p99", "p99", "added", "x p50"
        );
        for load in LOADS.into_iter().filter(|load| asked.is_empty() || asked.contains(&(load.bytes / 1_000))) {
            for streams in STREAMS {
                measure(load, streams).await;
            }
        }
        if asked.is_empty() {
            large(&serve(axum::Router::new().fallback(answer).with_state(Duration::ZERO)).await).await;
        }
    });
}

async fn serve(app: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("a port that is bound has an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

/// A provider that responds after a moment with what it took, and ends its response later.
async fn answer(State(open): State<Duration>, request: Request) -> Response<Body> {
    let length = to_bytes(request.into_body(), usize::MAX).await.unwrap_or_default().len();
    let came = Instant::now();
    let (read, input) = (length / 4 * 9 / 10, length / 40);
    let usage = json!({"input_tokens": input, "cache_read_input_tokens": read, "output_tokens": 1});
    let first = json!({ "usage": usage }).to_string();
    let last = stream::once(async move {
        tokio::time::sleep(open).await;
        "\n".to_owned()
    });
    tokio::time::sleep(THINKING).await;
    let body = stream::once(async { first }).chain(last).map(Ok::<_, std::convert::Infallible>);
    let response = Response::builder().header(THOUGHT, came.elapsed().as_micros().to_string());
    response.body(Body::from_stream(body)).expect("a number is a field")
}

/// A proxy that only forwards.
async fn proxy(State((client, url)): State<(reqwest::Client, String)>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let answer = client.post(format!("{url}{}", parts.uri)).body(body).send().await.expect("the upstream answers");
    let mut response = Response::builder();
    if let Some(thought) = answer.headers().get(THOUGHT) {
        response = response.header(THOUGHT, thought);
    }
    response.body(Body::from_stream(answer.bytes_stream())).expect("a field that came can be sent")
}

/// The message of a conversation at a position.
fn message(stream: usize, at: usize, bytes: usize) -> Value {
    let text = || format!("line {at} of the output of tool {stream}\n").repeat((bytes * 2 / 38).max(1));
    match at % 2 {
        0 if at == 0 => json!({"role": "user", "content": format!("please begin with {stream}")}),
        0 => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("c{}", at - 1), "content": text()}]})
        }
        _ => {
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": format!("c{at}"), "name": "Bash", "input": {"command": format!("cat log.{at}")}}]})
        }
    }
}

/// The body of a request. The model's name tells the stream, by which its records are found again.
fn body(model: &str, messages: &[Value]) -> String {
    let system = json!([{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]);
    json!({"model": model, "max_tokens": 1000, "system": system, "messages": messages}).to_string()
}

fn model(stream: usize) -> String {
    format!("claude-sonnet-4-5-stream{stream}")
}

/// The times of one request: through the proxy, and through the gateway.
type Pair = (Duration, Duration);

async fn measure(load: Load, streams: usize) {
    let each = (load.requests / streams).max(LEAST_REQUESTS);
    // Between two requests of a stream; each is sent twice.
    let pace = Duration::from_secs_f64(streams as f64 / load.per_second / 2.0);
    let upstream = serve(axum::Router::new().fallback(answer).with_state(pace.mul_f64(OPEN))).await;
    let plain = axum::Router::new().fallback(proxy).with_state((reqwest::Client::new(), upstream.clone()));
    let plain = serve(plain).await;
    let directory = tempfile::tempdir().expect("a directory for the store");
    let store = Some(directory.path().join("gateway.db"));
    let options = Options { upstreams: Upstreams::one(&upstream), store, ..Options::default() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.expect("a gateway on a free port");
    let mut running = Vec::new();
    for number in 0..streams {
        let urls = (plain.clone(), gateway.url());
        let (client, rng) = (reqwest::Client::new(), Rng::new(number as u64 + 1));
        let stream = Stream { number, load, pace, client, rng };
        let start = pace.mul_f64(2.0 * number as f64 / streams as f64);
        running.push(tokio::spawn(async move { stream.run(&urls, start, each).await }));
    }
    let mut times = Vec::new();
    for stream in running {
        times.push(stream.await.expect("no panic"));
    }
    let mut folded: HashMap<String, Vec<bool>> = HashMap::new();
    for record in gateway.stop().await {
        let has_fold = record.decided.iter().any(|note| note.is_fold());
        folded.entry(record.model).or_default().push(has_fold);
    }
    let (mut usual, mut folds): (Vec<Pair>, Vec<Pair>) = (Vec::new(), Vec::new());
    for (stream, times) in times.into_iter().enumerate() {
        let folded = folded.remove(&model(stream)).unwrap_or_default();
        for (n, pair) in times.into_iter().enumerate() {
            // The first request creates the conversation.
            if n.is_multiple_of(requests_of(load.messages)) {
                continue;
            }
            if folded.get(n).copied().unwrap_or(false) { folds.push(pair) } else { usual.push(pair) }
        }
    }
    let name = format!("{} kB, {streams} at once", load.bytes / 1_000);
    report(&name, &usual);
    report(&format!("{name}, folding"), &folds);
}

/// What sends requests, one after the other.
struct Stream {
    number: usize,
    load: Load,
    /// The time between two requests.
    pace: Duration,
    client: reqwest::Client,
    rng: Rng,
}

impl Stream {
    /// The messages of a conversation that begins with a request.
    fn conversation(&self, request: usize) -> Vec<Value> {
        let Load { bytes, messages, .. } = self.load;
        let mut all: Vec<Value> = (0..=messages).map(|at| message(self.number, at, bytes / messages)).collect();
        all[0] = json!({"role": "user", "content": format!("please begin with {}, part {request}", self.number)});
        all
    }

    /// Sends its requests, beginning after a time. The first one creates its conversation.
    async fn run(mut self, urls: &(String, String), start: Duration, requests: usize) -> Vec<Pair> {
        tokio::time::sleep(start).await;
        let mut all = Vec::new();
        let mut times = Vec::new();
        for n in 0..=requests {
            if n.is_multiple_of(requests_of(self.load.messages)) {
                all = self.conversation(n);
            }
            times.push(self.send(urls, n, &all).await);
            let at = all.len();
            all.extend((at..at + 2).map(|at| message(self.number, at, self.load.bytes / self.load.messages)));
        }
        times
    }

    /// Sends a request through both. Which one is first changes, so that none finds what the other has warmed.
    async fn send(&mut self, (plain, url): &(String, String), n: usize, all: &[Value]) -> Pair {
        let body = bytes::Bytes::from(body(&model(self.number), all));
        if n.is_multiple_of(2) {
            let one = self.paced(plain, body.clone()).await;
            (one, self.paced(url, body).await)
        } else {
            let two = self.paced(url, body.clone()).await;
            (self.paced(plain, body).await, two)
        }
    }

    /// Waits until it is time, and sends a request.
    async fn paced(&mut self, url: &str, body: bytes::Bytes) -> Duration {
        // At moments of its own, so that streams meet as by chance.
        let most = self.pace.mul_f64(2.0 * (1.0 - OPEN));
        let wait = Duration::from_micros(self.rng.below(most.as_micros().max(1) as usize) as u64);
        tokio::time::sleep(wait).await;
        first_byte(&self.client, url, body).await
    }
}

/// How many requests a conversation has: each adds two messages, until it has grown by half.
fn requests_of(messages: usize) -> usize {
    messages / 4
}

/// The time until the first byte of a response, without that of the provider. Waits for the end of the response.
async fn first_byte(client: &reqwest::Client, url: &str, body: bytes::Bytes) -> Duration {
    let began = Instant::now();
    let mut answer = client.post(format!("{url}/v1/messages")).body(body).send().await.expect("an answer");
    answer.chunk().await.expect("a first byte");
    let time = began.elapsed();
    let thought = answer.headers().get(THOUGHT).and_then(|thought| thought.to_str().ok()?.parse().ok());
    while answer.chunk().await.expect("the answer is whole").is_some() {}
    time.saturating_sub(Duration::from_micros(thought.expect("the provider says how long it took")))
}

fn report(name: &str, pairs: &[Pair]) {
    if pairs.is_empty() {
        return;
    }
    let at = |share: f64, of: fn(&Pair) -> Duration| {
        let mut times: Vec<Duration> = pairs.iter().map(of).collect();
        times.sort_unstable();
        times[((times.len() as f64 * share) as usize).min(times.len() - 1)]
    };
    let (plain, through) = (|pair: &Pair| pair.0, |pair: &Pair| pair.1);
    let ratio = at(0.5, through).as_secs_f64() / at(0.5, plain).as_secs_f64();
    let added = |share| show(at(share, through).saturating_sub(at(share, plain)));
    println!(
        "{name:<28} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {ratio:>7.2}",
        pairs.len(),
        show(at(0.5, plain)),
        show(at(0.5, through)),
        added(0.5),
        show(at(0.99, plain)),
        show(at(0.99, through)),
        added(0.99),
    );
}

/// Large bodies at once: what they take, and what is given back.
async fn large(upstream: &str) {
    let options = Options { upstreams: Upstreams::one(upstream), ..Options::default() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.expect("a gateway on a free port");
    let all: Vec<Value> = (0..=2_000).map(|at| message(0, at, LARGE_BYTES / 2_000)).collect();
    let body = bytes::Bytes::from(body("claude-sonnet-4-5", &all));
    drop(all);
    let before = resident_mb().unwrap_or_default();
    let client = reqwest::Client::new();
    let sending: Vec<_> = (0..LARGE)
        .map(|_| {
            let (client, url, body) = (client.clone(), gateway.url(), body.clone());
            tokio::spawn(async move { first_byte(&client, &url, body).await })
        })
        .collect();
    let mut most: f64 = 0.0;
    while !sending.iter().all(tokio::task::JoinHandle::is_finished) {
        most = most.max(resident_mb().unwrap_or_default());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = resident_mb().unwrap_or_default();
    println!(
        "{LARGE} bodies of {} MB at once: {most:.0} MB at most, with what the upstream reads of them; {before:.0} MB before, {after:.0} MB after",
        body.len() / 1_000_000
    );
}
