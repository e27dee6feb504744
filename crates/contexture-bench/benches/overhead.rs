//! Time to the first byte of a response through the gateway, compared with a plain proxy in the same run:
//! `cargo bench -p contexture-bench --bench overhead`.
//!
//! Bodies of three sizes at 1, 10 and 100 streams. Each stream has conversations that grow by half, one after the other,
//! and sends each request through the proxy and through the gateway. Requests with a fold are reported apart: they wait
//! for a commit that is synced.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use contexture_bench::{resident_mb, show};
use contexture_gateway::{Gateway, Options, Upstreams};
use serde_json::{Value, json};

/// Bytes of a body at the beginning, messages, and requests in all.
const SIZES: [(usize, usize, usize); 3] = [(10_000, 20, 2_000), (400_000, 300, 800), (4_000_000, 1_000, 200)];

/// Streams at once.
const STREAMS: [usize; 3] = [1, 10, 100];

/// Large bodies, and how many of them at once.
const LARGE_BYTES: usize = 60_000_000;
const LARGE: usize = 4;

fn main() {
    contexture_gateway::prepare_tls();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let upstream = serve(axum::Router::new().fallback(answer)).await;
        let plain =
            serve(axum::Router::new().fallback(proxy).with_state((reqwest::Client::new(), upstream.clone()))).await;
        println!(
            "{:<28} {:>9} {:>10} {:>10} {:>10} {:>10} {:>7} {:>7}",
            "", "requests", "proxy p50", "p50", "proxy p99", "p99", "x p50", "x p99"
        );
        for (bytes, messages, requests) in SIZES {
            for streams in STREAMS {
                measure(&plain, &upstream, (bytes, messages), streams, requests.max(streams * 2)).await;
            }
        }
        large(&upstream).await;
    });
}

async fn serve(app: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("a port that is bound has an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

/// A provider that responds at once with what it took.
async fn answer(request: Request) -> Response<Body> {
    let length = to_bytes(request.into_body(), usize::MAX).await.unwrap_or_default().len();
    let (read, input) = (length / 4 * 9 / 10, length / 40);
    let usage = json!({"input_tokens": input, "cache_read_input_tokens": read, "output_tokens": 1});
    Response::new(Body::from(json!({ "usage": usage }).to_string()))
}

/// A proxy that only forwards.
async fn proxy(State((client, url)): State<(reqwest::Client, String)>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let answer = client.post(format!("{url}{}", parts.uri)).body(body).send().await.expect("the upstream answers");
    Response::new(Body::from_stream(answer.bytes_stream()))
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

async fn measure(plain: &str, upstream: &str, size: (usize, usize), streams: usize, requests: usize) {
    let directory = tempfile::tempdir().expect("a directory for the store");
    let store = Some(directory.path().join("gateway.db"));
    let options = Options { upstreams: Upstreams::one(upstream), store, ..Options::default() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.expect("a gateway on a free port");
    let each = requests / streams;
    let mut running = Vec::new();
    for stream in 0..streams {
        let (plain, url) = (plain.to_owned(), gateway.url());
        running.push(tokio::spawn(async move { one_stream(&plain, &url, stream, size, each).await }));
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
            if n.is_multiple_of(requests_of(size.1)) {
                continue;
            }
            if folded.get(n).copied().unwrap_or(false) { folds.push(pair) } else { usual.push(pair) }
        }
    }
    let name = format!("{} kB, {streams} at once", size.0 / 1_000);
    report(&name, &usual);
    report(&format!("{name}, folding"), &folds);
}

async fn one_stream(
    plain: &str,
    url: &str,
    stream: usize,
    (bytes, messages): (usize, usize),
    requests: usize,
) -> Vec<Pair> {
    let client = reqwest::Client::new();
    let mut all: Vec<Value> = Vec::new();
    let mut times = Vec::new();
    for n in 0..=requests {
        if n.is_multiple_of(requests_of(messages)) {
            all = (0..=messages).map(|at| message(stream, at, bytes / messages)).collect();
            all[0] = json!({"role": "user", "content": format!("please begin with {stream}, part {n}")});
        }
        let body = bytes::Bytes::from(body(&model(stream), &all));
        // Which one is first changes, so that none finds what the other has warmed.
        let (one, two) = match n % 2 {
            0 => {
                let one = first_byte(&client, plain, body.clone()).await;
                (one, first_byte(&client, url, body).await)
            }
            _ => {
                let two = first_byte(&client, url, body.clone()).await;
                (first_byte(&client, plain, body).await, two)
            }
        };
        times.push((one, two));
        let at = all.len();
        all.extend((at..at + 2).map(|at| message(stream, at, bytes / messages)));
    }
    times
}

/// How many requests a conversation has: each adds two messages, until it has grown by half.
fn requests_of(messages: usize) -> usize {
    messages / 4
}

async fn first_byte(client: &reqwest::Client, url: &str, body: bytes::Bytes) -> Duration {
    let began = Instant::now();
    let mut answer = client.post(format!("{url}/v1/messages")).body(body).send().await.expect("an answer");
    answer.chunk().await.expect("a first byte");
    let time = began.elapsed();
    while answer.chunk().await.expect("the answer is whole").is_some() {}
    time
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
    let ratio = |share| at(share, through).as_secs_f64() / at(share, plain).as_secs_f64();
    println!(
        "{name:<28} {:>9} {:>10} {:>10} {:>10} {:>10} {:>7.2} {:>7.2}",
        pairs.len(),
        show(at(0.5, plain)),
        show(at(0.5, through)),
        show(at(0.99, plain)),
        show(at(0.99, through)),
        ratio(0.5),
        ratio(0.99)
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
