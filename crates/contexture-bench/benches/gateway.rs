//! The latency that the gateway adds to a request, compared with a plain proxy in the same run: `cargo bench -p
//! contexture-bench --bench gateway`.

use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use contexture_bench::{resident_mb, show};
use contexture_gateway::{Gateway, Options, Upstreams};
use contexture_inspect::inspector_of_gateway;
use serde_json::{Value, json};

/// Requests of each kind.
const REQUESTS: usize = 200;

/// Streams that are open at the same time.
const STREAMS: usize = 1_000;

/// The number of known conversations, and how many of them continue.
const KNOWN: usize = 10_000;
const ACTIVE: usize = 100;

/// Messages and text bytes of the conversations, before they grow.
const SIZES: [(usize, usize); 4] = [(100, 50_000), (300, 200_000), (2_000, 250_000), (2_000, 3_000_000)];

fn main() {
    contexture_gateway::prepare_tls();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let upstream = serve(axum::Router::new().fallback(answer)).await;
        let plain =
            serve(axum::Router::new().fallback(proxy).with_state((reqwest::Client::new(), upstream.clone()))).await;
        println!("{:<36} {:>12} {:>12} {:>12} {:>12}", "", "median", "p99", "added median", "added p99");
        for (messages, bytes) in SIZES {
            for is_inspected in [false, true] {
                latency(&plain, &upstream, messages, bytes, is_inspected).await;
            }
        }
        streams(&upstream).await;
        conversations(&upstream).await;
    });
}

async fn serve(app: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("a port that is bound has an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

/// A provider that responds at once. To a request for a stream, it responds with one that stays open for a while.
async fn answer(request: Request) -> Response<Body> {
    let body = to_bytes(request.into_body(), usize::MAX).await.unwrap_or_default();
    if body.len() > 2_000 || !body.windows(13).any(|part| part == b"\"stream\":true") {
        return Response::new(Body::from(r#"{"usage":{"input_tokens":10,"output_tokens":1}}"#));
    }
    let chunks = futures_util::stream::unfold(0, |n| async move {
        if n == 10 {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        Some((Ok::<_, std::io::Error>(bytes::Bytes::from_static(b"data: {\"type\":\"ping\"}\n\n")), n + 1))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    response.headers_mut().insert("content-type", axum::http::HeaderValue::from_static("text/event-stream"));
    response
}

/// A proxy that only forwards.
async fn proxy(State((client, url)): State<(reqwest::Client, String)>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let answer = client.post(format!("{url}{}", parts.uri)).body(body).send().await.expect("the upstream answers");
    Response::new(Body::from_stream(answer.bytes_stream()))
}

/// A growing conversation that starts with this many messages and bytes.
fn conversation(messages: usize, bytes: usize) -> Vec<Value> {
    let each = bytes / messages;
    let text = |at: usize| format!("line {at} of the output of a tool\n").repeat((each * 2 / 34).max(1));
    (0..messages + REQUESTS * 2 + 4)
        .map(|at| match at % 2 {
            0 if at == 0 => json!({"role": "user", "content": "please begin"}),
            0 => json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("c{}", at - 1), "content": text(at)}]}),
            _ => json!({"role": "assistant", "content": [{"type": "tool_use", "id": format!("c{at}"), "name": "Bash", "input": {"command": format!("cat log.{at}")}}]}),
        })
        .collect()
}

fn body(messages: &[Value]) -> String {
    let mark = json!({"type": "ephemeral"});
    json!({"model": "claude-sonnet-4-5", "max_tokens": 1000, "system": [{"type": "text", "text": "s", "cache_control": mark}], "messages": messages}).to_string()
}

async fn latency(plain: &str, upstream: &str, messages: usize, bytes: usize, is_inspected: bool) {
    let directory = tempfile::tempdir().expect("a directory for the store");
    let store = Some(directory.path().join("gateway.db"));
    let mut options = Options { upstreams: Upstreams::one(upstream), store, ..Options::default() };
    let inspector = match is_inspected {
        true => Some(inspector_of_gateway(options.store.as_deref()).await.expect("an inspector on a free port")),
        false => None,
    };
    options.watchers.extend(inspector.iter().map(|server| server.inspector().clone() as _));
    let gateway = Gateway::start("127.0.0.1:0", options).await.expect("a gateway on a free port");
    let all = conversation(messages, bytes);
    let client = reqwest::Client::new();
    let (mut through, mut added, mut size) = (Vec::new(), Vec::new(), 0);
    for n in 0..REQUESTS + 1 {
        let body = body(&all[..messages + 1 + n * 2]);
        size = body.len();
        let one = ask(&client, plain, &body).await;
        let two = ask(&client, &gateway.url(), &body).await;
        // The first request creates the conversation.
        if n > 0 {
            through.push(two);
            added.push(two.saturating_sub(one));
        }
    }
    let at = |times: &mut Vec<Duration>, share: f64| {
        times.sort_unstable();
        show(times[(times.len() as f64 * share) as usize])
    };
    let name = format!("{messages} messages, {} kB{}", size / 1000, if is_inspected { ", inspected" } else { "" });
    println!(
        "{name:<36} {:>12} {:>12} {:>12} {:>12}",
        at(&mut through, 0.5),
        at(&mut through, 0.99),
        at(&mut added, 0.5),
        at(&mut added, 0.99)
    );
    let mut own: Vec<Duration> =
        gateway.stop().await.iter().skip(1).map(|record| Duration::from_micros(record.own_us)).collect();
    println!("{:<36} {:>12} {:>12}", "  of that its own work", at(&mut own, 0.5), at(&mut own, 0.99));
}

async fn ask(client: &reqwest::Client, url: &str, body: &str) -> Duration {
    let began = Instant::now();
    let answer = client.post(format!("{url}/v1/messages")).body(body.to_owned()).send().await.expect("an answer");
    answer.bytes().await.expect("the answer is whole");
    began.elapsed()
}

/// Many streams that are open at the same time.
async fn streams(upstream: &str) {
    let options = Options { upstreams: Upstreams::one(upstream), ..Options::default() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.expect("a gateway on a free port");
    let before = resident_mb().unwrap_or_default();
    let client = reqwest::Client::new();
    let mut open = Vec::new();
    for n in 0..STREAMS {
        let body = json!({"model": "claude", "stream": true, "messages": [{"role": "user", "content": format!("stream {n}")}]});
        let request = client.post(format!("{}/v1/messages", gateway.url())).body(body.to_string()).send();
        open.push(tokio::spawn(request));
    }
    let mut answers = Vec::new();
    for request in open {
        answers.push(request.await.expect("no panic").expect("an answer"));
    }
    let with = resident_mb().unwrap_or_default();
    println!(
        "{STREAMS} streams open at once: {with:.0} MB resident with client and upstream in this process, {before:.0} MB before"
    );
    for answer in answers {
        assert_eq!(answer.bytes().await.expect("the stream is whole").len(), 230, "every chunk arrived");
    }
}

/// Many known conversations, some of which continue, one after the other.
async fn conversations(upstream: &str) {
    let directory = tempfile::tempdir().expect("a directory for the store");
    let store = Some(directory.path().join("gateway.db"));
    let options = Options { upstreams: Upstreams::one(upstream), store, ..Options::default() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.expect("a gateway on a free port");
    let client = reqwest::Client::new();
    let short = conversation(8, 8_000);
    for n in 0..KNOWN {
        ask(&client, &gateway.url(), &named(n, &short[..9])).await;
    }
    let known = resident_mb().unwrap_or_default();
    let long = conversation(2_000, 250_000);
    for round in 0..3 {
        for n in 0..ACTIVE {
            ask(&client, &gateway.url(), &named(KNOWN + n, &long[..2_001 + 2 * round])).await;
        }
    }
    let active = resident_mb().unwrap_or_default();
    println!("{KNOWN} conversations known: {known:.0} MB resident; {ACTIVE} of 2 000 messages go on: {active:.0} MB");
    let records = gateway.stop().await;
    let mut own: Vec<u64> = records[KNOWN + ACTIVE..].iter().map(|record| record.own_us).collect();
    own.sort_unstable();
    let at = |share: f64| show(Duration::from_micros(own[(own.len() as f64 * share) as usize]));
    println!("  own work when one is come back to: {} at the median, {} at the 99th percentile", at(0.5), at(0.99));
}

/// A request of a conversation that begins with its name.
fn named(n: usize, messages: &[Value]) -> String {
    let mut messages = messages.to_vec();
    messages[0] = json!({"role": "user", "content": format!("please begin with task {n}")});
    body(&messages)
}
