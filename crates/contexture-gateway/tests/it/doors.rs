//! Other doors to the same models: Bedrock, Vertex and Azure.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, header};
use contexture::wire::Format;
use contexture_gateway::testing::rules;
use contexture_gateway::{Gateway, Options, Receipt, Upstreams};
use serde_json::{Value, json};

use super::agent::Agent;
use super::played::{long, records, small};

/// What a cloud got: the path with its query, the headers, the body.
type Got = Arc<Mutex<Vec<(String, HeaderMap, String)>>>;

/// A cloud, by the public references of its paths and of how it frames events.
async fn cloud() -> (String, Got) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let got = Got::default();
    let app = axum::Router::new().fallback(serve).with_state(got.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, got)
}

async fn serve(State(got): State<Got>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let text = String::from_utf8_lossy(&body).into_owned();
    let (path, length) = (parts.uri.path().to_owned(), text.len() as u64);
    got.lock().unwrap().push((parts.uri.to_string(), parts.headers, text.clone()));
    let is_chat = path.ends_with("/chat/completions");
    if !path.ends_with("/converse") {
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value.get("model").is_some(), is_chat, "the path names the model");
        let format = if is_chat { Format::Chat } else { Format::Messages };
        // The rules of the format hold at every door; what they ask for beside the messages is checked elsewhere.
        let named = if is_chat { text } else { with(&text, "model", &json!("claude-sonnet-4-5")) };
        rules::check(format, &named).unwrap();
    }
    let usage = json!({"input_tokens": length / 4, "cache_read_input_tokens": 0, "output_tokens": 9});
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "usage": usage}}),
        json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "ok"}}),
        json!({"type": "message_delta", "usage": {"output_tokens": 11}}),
        json!({"type": "message_stop"}),
    ];
    let (kind, body) = match () {
        () if path.ends_with("/invoke-with-response-stream") => {
            ("application/vnd.amazon.eventstream", events.iter().flat_map(framed).collect::<Vec<u8>>())
        }
        () if path.ends_with(":streamRawPredict") => {
            let lines =
                events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
            ("text/event-stream; charset=utf-8", lines.collect::<String>().into_bytes())
        }
        () if is_chat => {
            let usage = json!({"prompt_tokens": length / 4, "completion_tokens": 9, "total_tokens": length / 4 + 9});
            ("application/json", json!({"id": "c", "choices": [], "usage": usage}).to_string().into_bytes())
        }
        () => ("application/json", json!({"id": "m", "content": [], "usage": usage}).to_string().into_bytes()),
    };
    Response::builder().header(header::CONTENT_TYPE, kind).body(Body::from(body)).unwrap()
}

/// A message of Amazon's event stream with a chunk of a model's response.
fn framed(event: &Value) -> Vec<u8> {
    let payload = json!({"bytes": base64(event.to_string().as_bytes()), "p": "abcdefg"}).to_string();
    let mut headers = Vec::new();
    for (name, value) in [(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")] {
        headers.push(name.len() as u8);
        headers.extend(name.as_bytes());
        headers.push(7);
        headers.extend((value.len() as u16).to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let mut message = ((headers.len() + payload.len() + 16) as u32).to_be_bytes().to_vec();
    message.extend((headers.len() as u32).to_be_bytes());
    message.extend(checksum(&message).to_be_bytes());
    message.extend(headers);
    message.extend(payload.as_bytes());
    message.extend(checksum(&message).to_be_bytes());
    message
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sign = |bits: u32| SIGNS[(bits & 63) as usize] as char;
    let chunk = |chunk: &[u8]| {
        let at = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        let all = [18, 12, 6, 0].map(|by| sign(bits >> by));
        all.iter().enumerate().map(|(n, sign)| if n > chunk.len() { '=' } else { *sign }).collect::<String>()
    };
    bytes.chunks(3).map(chunk).collect()
}

fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
    };
    !bytes.iter().fold(u32::MAX, step)
}

fn with(body: &str, name: &str, value: &Value) -> String {
    format!("{},\"{name}\":{value}}}", body.strip_suffix('}').unwrap())
}

/// A request as clients of a cloud write it: with a version in the body, and without the model.
fn cloudy(agent: &Agent, at: usize, version: &str) -> String {
    let mut body: Value = serde_json::from_str(&agent.request(at, false)).unwrap();
    if agent.format == Format::Messages {
        let body = body.as_object_mut().unwrap();
        body.remove("model");
        body.remove("stream");
        body.insert("anthropic_version".to_owned(), version.into());
    }
    body.to_string()
}

async fn ask(gateway: &Gateway, path: &str, authorization: &str, body: String) -> Vec<u8> {
    let request =
        reqwest::Client::new().post(format!("{}{path}", gateway.url())).header("authorization", authorization);
    let answer = request.header("content-type", "application/json").body(body).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200, "{path}");
    answer.bytes().await.unwrap().to_vec()
}

/// Plays a conversation through a door. Returns the receipt, and what came and was sent.
async fn play(path: &str, authorization: &str, agent: &Agent) -> (Receipt, Vec<(String, String)>) {
    let (url, got) = cloud().await;
    let options = Options { upstreams: Upstreams::one(&url), ..small() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.unwrap();
    let mut bodies = Vec::new();
    for at in agent.requests() {
        let came = cloudy(agent, at, "bedrock-2023-05-31");
        ask(&gateway, path, authorization, came.clone()).await;
        let (sent_path, headers, sent) = got.lock().unwrap().last().cloned().unwrap();
        assert_eq!(sent_path, path);
        assert_eq!(headers["authorization"], authorization);
        bodies.push((came, sent));
    }
    records(&gateway, bodies.len()).await;
    (gateway.end().await, bodies)
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_other_doors_the_known_format_is_folded_and_billed() {
    let vertex = "/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929";
    for (path, format, model) in [
        (
            "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke".to_owned(),
            Format::Messages,
            "claude-sonnet-4-5",
        ),
        (
            "/model/anthropic.claude-opus-4-6-v1/invoke-with-response-stream".to_owned(),
            Format::Messages,
            "claude-opus-4-6",
        ),
        (format!("{vertex}:rawPredict"), Format::Messages, "claude-sonnet-4-5"),
        (format!("{vertex}:streamRawPredict"), Format::Messages, "claude-sonnet-4-5"),
        ("/openai/deployments/gpt-5/chat/completions?api-version=2024-10-21".to_owned(), Format::Chat, "gpt-5"),
    ] {
        let agent = long(format, 14);
        let (receipt, bodies) = play(&path, "Bearer bedrock-api-key-4711", &agent).await;
        assert!(!receipt.folds.is_empty(), "{path}: {:?}", receipt.passed);
        assert_eq!(receipt.with_usage, bodies.len(), "{path}: all responses say what they took");
        assert_eq!(receipt.models.keys().collect::<Vec<_>>(), [model], "{path}");
        assert!(receipt.dollars.is_some_and(|(paid, _)| paid > 0.0), "{path}");
        for (came, sent) in &bodies {
            let (came, sent): (Value, Value) =
                (serde_json::from_str(came).unwrap(), serde_json::from_str(sent).unwrap());
            for name in ["anthropic_version", "tools", "system", "max_tokens"] {
                assert_eq!(came.get(name), sent.get(name), "{path} {name}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_a_signature_covers_passes_and_the_receipt_says_why() {
    let signature = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260601/us-east-1/bedrock/aws4_request, \
                     SignedHeaders=host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
    let agent = long(Format::Messages, 12);
    let path = "/model/anthropic.claude-sonnet-4-5-20250929-v1:0/invoke-with-response-stream";
    let (receipt, bodies) = play(path, signature, &agent).await;
    assert!(bodies.iter().all(|(came, sent)| came == sent) && receipt.changed == 0);
    let why: Vec<&String> = receipt.passed.keys().collect();
    assert!(why.len() == 1 && why[0].contains("signature (SigV4) covers its body"), "{why:?}");
    assert_eq!(receipt.with_usage, bodies.len(), "what it took is known all the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_of_another_format_passes_untouched_byte_for_byte() {
    let (url, got) = cloud().await;
    let options = Options { upstreams: Upstreams::one(&url), ..small() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.unwrap();
    let body = r#"{ "messages":[{"role":"user","content":[{"text":"hi"}]}], "inferenceConfig":{"maxTokens":5.0}}"#;
    ask(&gateway, "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/converse", "Bearer x", body.to_owned()).await;
    assert_eq!(got.lock().unwrap()[0].2, body);
    // The events of a stream reach the client as they were framed.
    let agent = long(Format::Messages, 1);
    let path = "/model/anthropic.claude-sonnet-4-5-20250929-v1:0/invoke-with-response-stream";
    let came = ask(&gateway, path, "Bearer x", cloudy(&agent, 1, "bedrock-2023-05-31")).await;
    let first = u32::from_be_bytes(came[..4].try_into().unwrap()) as usize;
    assert_eq!(checksum(&came[..first - 4]).to_be_bytes(), came[first - 4..first], "the checksum still holds");
    records(&gateway, 2).await;
    let receipt = gateway.end().await;
    assert!(receipt.passed.keys().any(|why| why.contains("Converse")), "{:?}", receipt.passed);
}
