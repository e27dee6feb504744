//! One account: a recording and a live conversation have one number at every door.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::Response;
use contexture::transcript::Transcript;
use contexture::wire::Format;
use contexture_gateway::simulate::played::Played;
use contexture_gateway::simulate::recorded::RecordedSession;
use contexture_gateway::{Gateway, Options, Receipt, Upstreams};
use contexture_inspect::{InspectServer, inspector_of_gateway};
use serde_json::{Value, json};

use crate::program::run_in;
use crate::replay::recording;

/// The budgets with which something is folded: that of a recording has room for the agent's own prompt.
const BUDGET: u64 = 16_000;
const LIVE_BUDGET: u64 = 8_000;

/// The numbers of an account that people are shown.
const SHOWN: [&str; 9] =
    ["requests", "changed", "sent", "came", "cache_read", "output", "billed", "passed_through", "dollars"];

/// Checks that a receipt in JSON has the same numbers as another.
#[track_caller]
fn check(door: &str, receipt: &Value, expected: &Value) {
    for name in SHOWN {
        assert_eq!(receipt[name], expected[name], "{door}: {name}");
    }
    let folds = |receipt: &Value| receipt["folds"].as_array().map(Vec::len);
    assert_eq!(folds(receipt), folds(expected), "{door}");
}

fn json_of(receipt: &Receipt) -> Value {
    serde_json::from_str(&serde_json::to_string(receipt).unwrap()).unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let run = run_in(Path::new("."), arguments, "");
    assert_eq!((run.code, &*run.stderr), (0, ""), "{arguments:?}");
    run.stdout
}

/// Asks a server on this machine; returns the body of its answer.
fn ask(address: &str, token: &str, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("authorization: Bearer {token}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    write!(stream, "{request} HTTP/1.1\r\nhost: {address}\r\n{head}{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{request}: {answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The receipt of the only conversation that a page has, once it has all requests, and the dollars in its list.
fn on_page(server: &str, requests: u64) -> (Value, Value) {
    let (address, token) = server.strip_prefix("http://").unwrap().split_once("/inspect/#token=").unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    let get = |path: &str| {
        let answer = ask(address, token, &format!("GET {path}"), "");
        let start = answer.find('{').unwrap();
        serde_json::from_str::<Value>(&answer[start..=answer.rfind('}').unwrap()]).unwrap()
    };
    loop {
        let list = get("/api/v1/conversations");
        if let Some(id) = list["items"][0]["id"].as_str() {
            // A recording is read when somebody opens it.
            get(&format!("/api/v1/conversations/{id}"));
        }
        let bill = get("/api/v1/bill");
        let receipt = &bill["items"][0]["receipt"];
        // The last one is there before its response has ended.
        if receipt["with_usage"] == requests {
            let list = get("/api/v1/conversations");
            return (receipt.clone(), list["items"][0]["dollars"].clone());
        }
        assert!(Instant::now() < end, "the page does not have {requests} requests: {bill}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A page that shows a recording, and is closed with the test.
struct Page(std::process::Child);

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_recording_has_one_account_at_every_door() {
    let directory = tempfile::tempdir().unwrap();
    let (file, budget) = (directory.path().join("session.jsonl"), BUDGET.to_string());
    std::fs::write(&file, recording(60)).unwrap();
    let name = file.to_str().unwrap();
    let replayed: Value = serde_json::from_str(&printed(&["replay", name, "--budget", &budget, "--json"])).unwrap();
    let expected = &replayed["sum"];
    assert!(expected["folds"].as_array().unwrap().len() > 1, "{expected}");
    check("one recording", &replayed["recordings"][0]["receipt"], expected);

    let mut records = Vec::new();
    let transcript = Transcript::read(recording(60).as_bytes()).unwrap().0;
    Played::new(Some(BUDGET)).play("session.jsonl", &transcript.records, &mut |played| records.push(played.record));
    check("the library", &json_of(&Receipt::of(&records)), expected);

    let page = crate::program::program(Path::new("."))
        .args(["inspect", name, "--budget", &budget])
        .stdout(std::process::Stdio::piped())
        .spawn();
    let mut page = Page(page.unwrap());
    let mut told = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(page.0.stdout.take().unwrap()), &mut told).unwrap();
    let url = told.trim().strip_prefix("the inspector is at ").unwrap();
    let (receipt, listed) = on_page(url, expected["requests"].as_u64().unwrap());
    check("the page", &receipt, expected);
    check_dollars(&listed, &expected["dollars"]);
}

/// A sum of the same amounts in another way.
#[track_caller]
fn check_dollars(found: &Value, expected: &Value) {
    for at in 0..2 {
        let (found, expected) = (found[at].as_f64().unwrap(), expected[at].as_f64().unwrap());
        assert!((found - expected).abs() < 1e-9 * expected, "{found} and {expected}");
    }
}

/// A provider that counts four bytes for a token, and has nothing in its cache.
async fn provider() -> String {
    async fn answer(request: Request) -> Response<Body> {
        let body = to_bytes(request.into_body(), usize::MAX).await.unwrap();
        let usage = json!({"input_tokens": body.len() / 4, "output_tokens": 7});
        let answer = json!({"id": "m", "content": [{"type": "text", "text": "ok"}], "usage": usage});
        Response::builder().header("content-type", "application/json").body(Body::from(answer.to_string())).unwrap()
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
    url
}

#[test]
fn a_live_conversation_has_one_account_at_every_door() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("gateway.db");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (gateway, page): (Gateway, InspectServer) = runtime.block_on(async {
        let page = inspector_of_gateway(Some(&store)).await.unwrap();
        let options = Options {
            upstreams: Upstreams::one(&provider().await),
            budget: Some(LIVE_BUDGET),
            store: Some(store.clone()),
            watchers: vec![page.inspector().clone()],
            // A debug build takes its time.
            own_work: Duration::from_secs(20),
            ..Options::default()
        };
        (Gateway::start("127.0.0.1:0", options).await.unwrap(), page)
    });
    let transcript = Transcript::read(recording(60).as_bytes()).unwrap().0;
    let session = RecordedSession::new(Format::Messages, &transcript.records);
    let key = gateway.url().rsplit('/').next().unwrap().to_owned();
    for number in 0..session.len() {
        let request = format!("POST /{key}/v1/messages");
        ask(&gateway.address().to_string(), "sk-made-up", &request, &session.request(number));
    }
    let (receipt, listed) = on_page(&page.inspector().url(), session.len() as u64);
    let end = Instant::now() + Duration::from_secs(60);
    while gateway.records().len() < session.len() {
        assert!(Instant::now() < end, "{} of {} records", gateway.records().len(), session.len());
        std::thread::sleep(Duration::from_millis(10));
    }
    let expected = json_of(&gateway.receipt());
    assert!(expected["folds"].as_array().unwrap().len() > 1, "{expected}");
    check("the page", &receipt, &expected);
    check_dollars(&listed, &expected["dollars"]);
    check("the records", &json_of(&Receipt::of(&gateway.records())), &expected);

    let store = store.to_str().unwrap();
    let status: Value = serde_json::from_str(&printed(&["status", "--json", "--store", store])).unwrap();
    check("status", &status[0]["receipt"], &expected);
    let line = printed(&["status", "--store", store]);
    let one = gateway.receipt().saved();
    assert!(line.contains(&one), "{line} has no {one}");
    assert!(gateway.receipt().told(false).starts_with(&one), "{}", gateway.receipt().told(false));

    let ended = json_of(&runtime.block_on(gateway.end()));
    check("the end", &ended, &expected);
    let receipts: Value = serde_json::from_str(&printed(&["receipts", "--json", "--store", store])).unwrap();
    check("receipts", &receipts["receipts"][0]["receipt"], &expected);
    let table = printed(&["receipts", "--store", store]);
    let share = one.rsplit_once('(').unwrap().1.split(" %").next().unwrap().to_owned();
    assert!(table.lines().nth(1).unwrap().contains(&format!("{share} %")), "{table} has no {share} %");
    assert!(table.contains(&format!("contexture: {one}")), "{table} has no {one}");
}
