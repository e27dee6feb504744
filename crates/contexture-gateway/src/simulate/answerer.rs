//! A provider that responds to every request with one word, for trying out a route without a real one.

use std::io;
use std::net::SocketAddr;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Response, header};
use contexture::wire::Format;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Largest request body that is read.
const MOST_BYTES: usize = 64 << 20;

/// The headers in which clients send a key or a login.
const KEY_HEADERS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];

/// A provider that responds with one word.
pub struct Answerer {
    address: SocketAddr,
    serving: JoinHandle<()>,
    answered: watch::Receiver<AnswererState>,
}

/// What was answered so far.
#[derive(Clone, Copy, Default)]
struct AnswererState {
    /// How many requests to a model.
    requests: usize,
    /// Whether one of them had a key or a login.
    has_key: bool,
}

impl Answerer {
    /// Starts on a free port.
    ///
    /// # Errors
    /// This function never fails.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (answers, answered) = watch::channel(AnswererState::default());
        let app = axum::Router::new().fallback(answer).with_state(answers);
        let serving = tokio::spawn(async move {
            // When the server ends, nobody is left to receive the error.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { address, serving, answered })
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many requests to a model it has answered. Those that only count tokens or list models are none.
    pub fn answered(&self) -> usize {
        self.answered.borrow().requests
    }

    /// Whether one of these requests had a key or a login, without which a real provider refuses them.
    pub fn has_seen_key(&self) -> bool {
        self.answered.borrow().has_key
    }

    /// Waits until a request to a model was answered.
    pub async fn first_answer(&self) {
        // An error means that it has ended, so none comes any more.
        if self.answered.clone().wait_for(|answered| answered.requests > 0).await.is_err() {
            std::future::pending().await
        }
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(answers): State<watch::Sender<AnswererState>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MOST_BYTES).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = parts.uri.path();
    let Some(format) = Format::of_path(path) else {
        return response(
            "application/json",
            json!({"object": "list", "data": [], "input_tokens": 1, "totalTokens": 1}).to_string(),
        );
    };
    answers.send_modify(|answers| {
        answers.requests += 1;
        answers.has_key |= has_key(&parts);
    });
    let model = body["model"].as_str().unwrap_or("model");
    let is_list = parts.uri.query().is_none_or(|query| !query.split('&').any(|field| field == "alt=sse"));
    match format {
        Format::Gemini if path.ends_with(":generateContent") => {}
        // Without `alt=sse` Google streams a list.
        Format::Gemini if is_list => return response("application/json", format!("[{}]", whole(format, model))),
        Format::Gemini => return response("text/event-stream", events(format, model)),
        _ if body["stream"] == true => return response("text/event-stream", events(format, model)),
        _ => {}
    }
    response("application/json", whole(format, model).to_string())
}

/// Whether a request has a key or a login, in any of the places where providers look for one.
fn has_key(parts: &Parts) -> bool {
    let has_value = |name: &str| {
        let value = parts.headers.get(name).map(|value| value.as_bytes().trim_ascii());
        value.is_some_and(|value| !value.is_empty() && !value.eq_ignore_ascii_case(b"bearer"))
    };
    let in_query = || parts.uri.query().is_some_and(|query| query.split('&').any(|field| field.starts_with("key=")));
    KEY_HEADERS.into_iter().any(has_value) || in_query()
}

fn response(kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

fn whole(format: Format, model: &str) -> Value {
    match format {
        Format::Messages => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn",
            "stop_sequence": null, "content": [{"type": "text", "text": "ok"}],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }),
        Format::Chat => json!({
            "id": "chat_1", "object": "chat.completion", "created": 0, "model": model,
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }),
        Format::Responses => responded(model, json!([spoken(true)])),
        Format::Gemini => json!({
            "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": "ok"}]}}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
            "modelVersion": model,
        }),
    }
}

fn responded(model: &str, output: Value) -> Value {
    let status = if output == json!([]) { "in_progress" } else { "completed" };
    json!({
        "id": "resp_1", "object": "response", "created_at": 0, "status": status, "model": model, "output": output,
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    })
}

fn spoken(is_complete: bool) -> Value {
    let (status, content) = match is_complete {
        true => ("completed", json!([{"type": "output_text", "text": "ok", "annotations": []}])),
        false => ("in_progress", json!([])),
    };
    json!({"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": content})
}

fn events(format: Format, model: &str) -> String {
    let events = match format {
        Format::Messages => messages_events(model),
        Format::Chat => return chat_events(model),
        Format::Responses => responses_events(model),
        Format::Gemini => return format!("data: {}\n\n", whole(format, model)),
    };
    let write = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(write).collect()
}

fn messages_events(model: &str) -> Vec<Value> {
    let mut message = whole(Format::Messages, model);
    (message["content"], message["stop_reason"]) = (json!([]), Value::Null);
    vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ]
}

fn chat_events(model: &str) -> String {
    let chunk = |choices: Value| json!({"id": "chat_1", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": choices});
    let mut last = chunk(json!([]));
    last["usage"] = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    let chunks = [
        chunk(json!([{"index": 0, "delta": {"role": "assistant", "content": "ok"}, "finish_reason": null}])),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": "stop"}])),
        last,
    ];
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).chain(["data: [DONE]\n\n".to_owned()]).collect()
}

fn responses_events(model: &str) -> Vec<Value> {
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let at = |kind: &str| json!({"type": kind, "item_id": "msg_1", "output_index": 0, "content_index": 0});
    let with = |kind: &str, name: &str, value: Value| {
        let mut event = at(kind);
        event[name] = value;
        event
    };
    let mut events = vec![
        json!({"type": "response.created", "response": responded(model, json!([]))}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": spoken(false)}),
        with("response.content_part.added", "part", part("")),
        with("response.output_text.delta", "delta", json!("ok")),
        with("response.output_text.done", "text", json!("ok")),
        with("response.content_part.done", "part", part("ok")),
        json!({"type": "response.output_item.done", "output_index": 0, "item": spoken(true)}),
        json!({"type": "response.completed", "response": responded(model, json!([spoken(true)]))}),
    ];
    // Some clients read nothing without it.
    for (at, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(at);
    }
    events
}
