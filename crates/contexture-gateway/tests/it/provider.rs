//! A provider that does what it is told, on a real port.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use contexture::wire::Format;
use contexture_gateway::{Gateway, Options, Upstreams};
use serde_json::{Value, json};

use contexture_gateway::testing::cache::{Cache, Took};
use contexture_gateway::testing::rules;

/// What the provider got.
#[derive(Clone, Debug)]
pub struct Got {
    pub path: String,
    pub headers: HeaderMap,
    /// The body as it is on the wire.
    pub raw: Vec<u8>,
    /// Its text.
    pub body: String,
    pub took: Took,
}

/// How the provider answers instead of serving.
#[derive(Clone, Debug)]
pub struct Fault {
    pub status: u16,
    pub headers: Vec<(&'static str, &'static str)>,
    pub body: &'static str,
    /// Only requests that were rewritten are refused: those with this text.
    pub only_with: Option<&'static str>,
}

#[derive(Default)]
struct Inner {
    got: Vec<Got>,
    cache: Cache,
    fault: Option<Fault>,
    /// Whether requests that break a rule of the provider's are refused.
    is_strict: bool,
    /// What it says when it is asked for its models.
    list: Option<&'static str>,
    /// The most tokens of a request, four bytes each.
    window: Option<u64>,
    /// What thoughts are bound to, if that is checked.
    bindings: Option<Bindings>,
    /// What every request must have that is accepted.
    required: Option<&'static str>,
    /// Why requests were refused.
    refused: Vec<String>,
}

/// What a provider binds thoughts to: everything that it was sent before it answered with them, thoughts included.
/// <https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/prefix-checks>
#[derive(Default)]
struct Bindings {
    /// What was sent before each thought, by its signature.
    before: HashMap<String, Vec<String>>,
    /// The messages of the newest request that was answered.
    answered: Vec<String>,
}

impl Bindings {
    /// The messages of a request, without marks.
    fn messages(body: &str) -> Vec<Value> {
        let mut body: Value = serde_json::from_str(body).unwrap();
        let mut messages = body["messages"].as_array_mut().map(std::mem::take).unwrap_or_default();
        for block in messages.iter_mut().flat_map(|message| message["content"].as_array_mut().into_iter().flatten()) {
            block.as_object_mut().map(|fields| fields.remove("cache_control"));
        }
        messages
    }

    /// Why a request is refused, if it is.
    fn check(&mut self, body: &str) -> Option<String> {
        let messages = Self::messages(body);
        let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
        for (at, message) in messages.iter().enumerate() {
            for block in message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "thinking")
            {
                let before = self.before.get(block["signature"].as_str().unwrap_or_default());
                if before.is_none_or(|before| *before != texts[..at]) {
                    return Some(format!(
                        "messages.{at}: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
                    ));
                }
            }
        }
        self.answered = texts;
        None
    }
}

/// A provider.
#[derive(Clone)]
pub struct Provider {
    pub url: String,
    inner: Arc<Mutex<Inner>>,
}

impl Provider {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let inner = Inner { cache: Cache::with_life(300_000), is_strict: true, ..Inner::default() };
        let inner = Arc::new(Mutex::new(inner));
        let app = axum::Router::new().fallback(serve).with_state(inner.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, inner }
    }

    pub fn got(&self) -> Vec<Got> {
        self.inner.lock().unwrap().got.clone()
    }

    pub fn last(&self) -> Got {
        self.inner.lock().unwrap().got.last().cloned().unwrap()
    }

    /// What it said to requests that break its rules.
    pub fn refused(&self) -> Vec<String> {
        self.inner.lock().unwrap().refused.clone()
    }

    /// Refuses requests without a text from now on.
    pub fn require(&self, text: &'static str) {
        self.inner.lock().unwrap().required = Some(text);
    }

    /// Sets its list of models.
    pub fn set_list(&self, list: &'static str) {
        self.inner.lock().unwrap().list = Some(list);
    }

    /// Refuses larger requests from now on, in the words of the providers.
    pub fn set_window(&self, tokens: u64) {
        self.inner.lock().unwrap().window = Some(tokens);
    }

    /// Counts tokens otherwise from now on.
    pub fn count_by(&self, counting: contexture_gateway::testing::cache::Counting) {
        self.inner.lock().unwrap().cache = Cache::with_life(300_000).counting(counting);
    }

    /// Refuses thoughts that came after something else than what is before them, from now on.
    pub fn bind_thoughts(&self) {
        self.inner.lock().unwrap().bindings = Some(Bindings::default());
    }

    /// Says that its newest answer had a thought with this signature.
    pub fn has_thought(&self, signature: String) {
        if let Some(bindings) = &mut self.inner.lock().unwrap().bindings {
            bindings.before.insert(signature, bindings.answered.clone());
        }
    }

    /// Accepts whatever comes from now on.
    pub fn be_kind(&self) {
        self.inner.lock().unwrap().is_strict = false;
    }

    pub fn set_fault(&self, fault: Option<Fault>) {
        self.inner.lock().unwrap().fault = fault;
    }

    /// A gateway in front of it.
    pub async fn gateway(&self, options: Options) -> Gateway {
        let options = Options { upstreams: Upstreams::one(&self.url), ..options };
        Gateway::start("127.0.0.1:0", options).await.unwrap()
    }
}

/// Options that leave a debug build the time it needs.
pub fn patient() -> Options {
    let budget = Some(contexture_gateway::WHOLE_WINDOW);
    Options { own_work: std::time::Duration::from_secs(20), budget, ..Options::default() }
}

pub fn path_of(format: Format) -> &'static str {
    match format {
        Format::Messages => "/v1/messages",
        Format::Chat => "/v1/chat/completions",
        Format::Responses => "/v1/responses",
        Format::Gemini => "/v1beta/models/gemini-3.1-pro-preview:generateContent",
    }
}

/// The path of a request. Gemini's says there whether it is streamed; the agent of the tests says it in a label.
fn path_for(format: Format, body: &str) -> &'static str {
    match format {
        Format::Gemini if body.contains(r#""labels":{"stream":"true"}"#) => {
            "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse"
        }
        _ => path_of(format),
    }
}

/// Sends a request as a client would.
pub async fn post(gateway: &Gateway, format: Format, body: String) -> (u16, String) {
    // Reading the certificates of the machine takes longer than the request.
    let client = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
    let answer = client
        .post(format!("{}{}", gateway.url(), path_for(format, &body)))
        .header("x-api-key", "sk-secret-4711")
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// What is in a compressed body.
pub fn unpacked(body: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(body).ok()?;
    std::io::Read::read_to_end(&mut decoder, &mut text).ok()?;
    Some(text)
}

async fn serve(State(inner): State<Arc<Mutex<Inner>>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let raw = body.to_vec();
    let is_packed = parts.headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding == "zstd");
    let body = unpacked(&raw).filter(|_| is_packed).unwrap_or(raw.clone());
    let body = String::from_utf8_lossy(&body).into_owned();
    let path = parts.uri.to_string();
    let parts_path = parts.uri.path().to_owned();
    let format = Format::of_path(parts.uri.path());
    let mut inner = inner.lock().unwrap();
    let fault = inner.fault.clone().filter(|fault| fault.only_with.is_none_or(|text| body.contains(text)));
    let broken = format.filter(|_| fault.is_none() && inner.is_strict);
    let is_assist = parts_path.starts_with("/v1internal:");
    let asked = if is_assist { assisted(&body) } else { body.clone() };
    let large = |format| too_large(format, &asked, inner.window?);
    let broken =
        broken.and_then(|format| Some((format, large(format).or_else(|| rules::check(format, &asked).err())?)));
    let missing = inner.required.filter(|required| fault.is_none() && !asked.contains(required));
    let broken = broken.or(format.zip(missing.map(|missing| format!("messages: there is no {missing}"))));
    let bindings = inner.bindings.as_mut().filter(|_| broken.is_none() && fault.is_none());
    let unbound = bindings.and_then(|bindings| Some((Format::Messages, bindings.check(&asked)?)));
    let broken = broken.or(unbound);
    let took = match (format, &fault, &broken) {
        (Some(format), None, None) => inner.cache.serve(format, &asked, 0),
        _ => Took::default(),
    };
    let is_stream = serde_json::from_str::<Value>(&body).is_ok_and(|body| body["stream"] == true)
        || parts_path.ends_with(":streamGenerateContent");
    inner.got.push(Got { path, headers: parts.headers, raw, body, took });
    if let Some((format, message)) = broken {
        inner.refused.push(message.clone());
        let body = Body::from(rules::refusal(format, &message));
        return Response::builder().status(StatusCode::BAD_REQUEST).body(body).unwrap();
    }
    if let Some(fault) = fault {
        let mut response = Response::builder().status(fault.status);
        for (name, value) in &fault.headers {
            response = response.header(*name, *value);
        }
        return response.body(Body::from(fault.body)).unwrap();
    }
    if let Some(list) = inner.list.filter(|_| parts_path.ends_with("/models")) {
        return Response::new(Body::from(list));
    }
    let Some(format) = format else {
        return Response::builder().status(StatusCode::OK).header("x-kind", "other").body(Body::from("other")).unwrap();
    };
    if is_assist {
        let event = json!({"response": {"candidates": [], "usageMetadata": took.usage(format, 12)}, "traceId": "t"});
        let body = Body::from(format!("data: {event}\n\n"));
        return Response::builder().header(header::CONTENT_TYPE, "text/event-stream").body(body).unwrap();
    }
    answer(format, &took, is_stream)
}

/// What Code Assist has of Gemini's format in a request of its own.
fn assisted(body: &str) -> String {
    serde_json::from_str::<Value>(body).map(|body| body["request"].to_string()).unwrap_or_default()
}

/// What providers say to a request that is larger than the window.
fn too_large(format: Format, body: &str, window: u64) -> Option<String> {
    let tokens = body.len() as u64 / 4;
    (tokens > window).then(|| match format {
        Format::Messages => format!("prompt is too long: {tokens} tokens > {window} maximum"),
        Format::Gemini => format!("The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."),
        _ => format!("This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."),
    })
}

fn answer(format: Format, took: &Took, is_stream: bool) -> Response<Body> {
    let usage = took.usage(format, 12);
    if !is_stream {
        let name = if format == Format::Gemini { "usageMetadata" } else { "usage" };
        let body = json!({"id": "m1", "content": [{"type": "text", "text": "ok"}], name: usage});
        return Response::builder()
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
    }
    let events = match format {
        Format::Messages => vec![
            ("message_start", json!({"type": "message_start", "message": {"usage": usage}})),
            ("content_block_delta", json!({"type": "content_block_delta", "delta": {"text": "ok"}})),
            ("message_delta", json!({"type": "message_delta", "usage": {"output_tokens": 12}})),
            ("message_stop", json!({"type": "message_stop"})),
        ],
        Format::Chat => {
            vec![("", json!({"choices": [{"delta": {"content": "ok"}}]})), ("", json!({"choices": [], "usage": usage}))]
        }
        Format::Gemini => vec![
            (
                "",
                json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "o"}]}}], "usageMetadata": {"promptTokenCount": 1}}),
            ),
            (
                "",
                json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "k"}]}, "finishReason": "STOP"}], "usageMetadata": usage}),
            ),
        ],
        Format::Responses => vec![
            ("response.created", json!({"type": "response.created"})),
            ("response.completed", json!({"type": "response.completed", "response": {"usage": usage}})),
        ],
    };
    let text: String = events
        .iter()
        .map(|(name, data)| match *name {
            "" => format!("data: {data}\n\n"),
            name => format!("event: {name}\ndata: {data}\n\n"),
        })
        .collect();
    Response::builder().header(header::CONTENT_TYPE, "text/event-stream").body(Body::from(text)).unwrap()
}
