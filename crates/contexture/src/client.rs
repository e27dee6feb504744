//! Clients of models: Anthropic messages, OpenAI responses, Gemini, and chat completions as OpenAI, Ollama, llama.cpp,
//! vLLM and OpenRouter offer them.
//!
//! A [`Client`] is a [`Model`] for an engine.
//!
//! ```no_run
//! use contexture::client::{ApiKey, Client};
//!
//! # fn main() -> Result<(), contexture::client::ClientError> {
//! let key = ApiKey::from_env("ANTHROPIC_API_KEY").expect("set ANTHROPIC_API_KEY");
//! let claude = Client::anthropic("claude-sonnet-4-5").key(key).build()?;
//! let local = Client::chat("http://127.0.0.1:11434/v1", "qwen3").build()?;
//! # Ok(()) }
//! ```
//!
//! - What a provider sends beside texts and calls (thoughts, signatures, items of its own tools) is kept as it came and
//!   sent back untouched.
//! - Usage and cache figures are reported with each response; the engine's breakpoints become cache marks where the
//!   format has them.
//! - When somebody watches, responses are streamed; dropping the call closes the connection.
//! - Requests that failed for a while are sent again as [`RetryPolicy`] says. A stream that breaks after a part of it was
//!   shown is not: the turn ends with an error and can be resumed.

mod key;
mod error;
mod retry;
mod decode;
mod messages;
mod chat;
mod responses;
mod gemini;
mod reader;
mod send;
mod embeddings;

use std::time::Duration;

use contexture_core::error::BoxError;
use contexture_core::model::{Deltas, LlmResponse, Model, ModelRequest};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::{Map, Value};

pub use embeddings::Embeddings;
pub use error::ClientError;
pub use key::ApiKey;
pub use reader::response_items;
pub use retry::{ClientRetry, RetryPolicy};

use crate::wire::Format;
use crate::wire::encode::{self, BodyOptions};
use send::Sender;

/// A client of one model; cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    format: Format,
    model: String,
    developer_role: Option<&'static str>,
    fields: Map<String, Value>,
    sender: Sender,
}

/// What a [`Client`] is made of.
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    format: Format,
    base_url: String,
    model: String,
    key: Option<ApiKey>,
    headers: Vec<(String, String)>,
    fields: Map<String, Value>,
    developer_role: Option<&'static str>,
    retry: RetryPolicy,
    connect_timeout: Duration,
    idle_timeout: Duration,
}

impl Client {
    /// A model of Anthropic.
    pub fn anthropic(model: impl Into<String>) -> ClientBuilder {
        Client::builder(Format::Messages, "https://api.anthropic.com", model)
    }

    /// A model of OpenAI, by its responses interface.
    pub fn openai(model: impl Into<String>) -> ClientBuilder {
        Client::builder(Format::Responses, "https://api.openai.com/v1", model)
    }

    /// A model of Google, by its Gemini API.
    pub fn gemini(model: impl Into<String>) -> ClientBuilder {
        Client::builder(Format::Gemini, "https://generativelanguage.googleapis.com", model)
    }

    /// A model of a server that offers chat completions beneath an address, which usually ends in `/v1`.
    pub fn chat(base_url: impl Into<String>, model: impl Into<String>) -> ClientBuilder {
        Client::builder(Format::Chat, base_url, model)
    }

    /// A model of a server that speaks a format beneath an address.
    pub fn builder(format: Format, base_url: impl Into<String>, model: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            format,
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            headers: Vec::new(),
            fields: Map::new(),
            developer_role: None,
            retry: RetryPolicy::default(),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(300),
        }
    }

    /// The same, and a function is called before a request is sent again. It must not block.
    pub fn on_retry(mut self, hook: impl Fn(ClientRetry) + Send + Sync + 'static) -> Self {
        self.sender.telling(retry::RetryHook(Some(std::sync::Arc::new(hook))));
        self
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The body of a request as it is sent.
    fn body(&self, request: &ModelRequest, stream: bool) -> Result<String, ClientError> {
        let model = request.model.as_deref().unwrap_or(&self.model);
        let options = BodyOptions { model, stream, developer_role: self.developer_role };
        self.written(&encode::body(self.format, request, options))
    }

    /// Where a request goes. One of Gemini's names its model there, and whether it is streamed.
    fn url(&self, model: Option<&str>, stream: bool) -> reqwest::Url {
        let mut url = self.sender.url().clone();
        if self.format == Format::Gemini {
            let model = model.unwrap_or(&self.model);
            let method = if stream { "streamGenerateContent" } else { "generateContent" };
            let path = format!("{}/{}:{method}", url.path(), model.strip_prefix("models/").unwrap_or(model));
            url.set_path(&path);
            if stream {
                url.query_pairs_mut().append_pair("alt", "sse");
            }
        }
        url
    }

    /// A body as JSON, with the fields that are put into every request.
    fn written(&self, body: &impl Serialize) -> Result<String, ClientError> {
        let written = match self.fields.is_empty() {
            true => serde_json::to_string(body),
            false => serde_json::to_value(body).map(|mut body| {
                if let Some(body) = body.as_object_mut() {
                    body.extend(self.fields.clone());
                }
                body.to_string()
            }),
        };
        written.map_err(|error| error::malformed(error.to_string()))
    }
}

impl ClientBuilder {
    /// The key of an account; servers on this machine need none.
    pub fn key(mut self, key: ApiKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Another address than the provider's own, such as that of a gateway.
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = base_url.into();
        self
    }

    /// A header that is sent with every request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// A field that is put into every request, such as `temperature`; it replaces the client's own.
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }

    /// Sends what the program says in the role `developer`, in chat completions of OpenAI's own models. Without this it
    /// is sent as a part of what the user says, in a tag: many other servers refuse a system message that is not the
    /// first.
    pub fn with_developer_role(mut self) -> Self {
        self.developer_role = Some("developer");
        self
    }

    /// When requests that failed are sent again.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// How long connecting may take: 10 seconds unless it is set.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the provider may send nothing: 300 seconds unless it is set. Models think for minutes before the first
    /// byte of a response that is not streamed.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// The client.
    ///
    /// # Errors
    /// The address, the key or a header cannot be used.
    pub fn build(self) -> Result<Client, ClientError> {
        let url = endpoint(self.format, &self.base_url)?;
        let mut headers = HeaderMap::new();
        for (name, value) in own_headers(self.format, self.key.as_ref()).into_iter().chain(self.headers) {
            let problem =
                |problem: &str| ClientError::Option { option: "header", problem: format!("`{name}` {problem}") };
            let header = HeaderName::try_from(name.as_str()).map_err(|_| problem("is no name of a header"))?;
            let mut value = HeaderValue::try_from(value).map_err(|_| problem("has characters that can't be sent"))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let sender = Sender::new(url, headers, self.key, self.retry, self.connect_timeout, self.idle_timeout)?;
        let Self { format, model, developer_role, fields, .. } = self;
        Ok(Client { format, model, developer_role, fields, sender })
    }
}

fn own_headers(format: Format, key: Option<&ApiKey>) -> Vec<(String, String)> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    if format == Format::Messages {
        headers.push(("anthropic-version".to_owned(), "2023-06-01".to_owned()));
    }
    if let Some(key) = key {
        headers.push(match format {
            Format::Messages => ("x-api-key".to_owned(), key.expose().to_owned()),
            Format::Gemini => ("x-goog-api-key".to_owned(), key.expose().to_owned()),
            Format::Chat | Format::Responses => ("authorization".to_owned(), format!("Bearer {}", key.expose())),
        });
    }
    headers
}

/// Where requests of a format go beneath an address.
fn endpoint(format: Format, base_url: &str) -> Result<reqwest::Url, ClientError> {
    let mut url = parsed(base_url)?;
    let base = url.path().trim_end_matches('/').to_owned();
    let path = match format {
        Format::Messages if base.ends_with("/v1") => format!("{base}/messages"),
        Format::Messages => format!("{base}/v1/messages"),
        Format::Chat => format!("{base}/chat/completions"),
        Format::Responses => format!("{base}/responses"),
        // A request adds its model. Below a publisher there is a version already.
        Format::Gemini if has_version(&base) => format!("{base}/models"),
        Format::Gemini => format!("{base}/v1beta/models"),
    };
    url.set_path(&path);
    Ok(url)
}

/// Whether a path of Google's names a version of the interface.
fn has_version(base: &str) -> bool {
    base.split('/').any(|part| ["v1", "v1alpha", "v1beta", "v1beta1"].contains(&part))
}

/// An address beneath another one.
fn beneath(base_url: &str, name: &str) -> Result<reqwest::Url, ClientError> {
    let mut url = parsed(base_url)?;
    let path = format!("{}/{name}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn parsed(base_url: &str) -> Result<reqwest::Url, ClientError> {
    let problem = |problem: String| ClientError::Option { option: "base_url", problem };
    let url = reqwest::Url::parse(base_url.trim())
        .map_err(|error| problem(format!("it is no address ({error}); one looks like `http://127.0.0.1:11434/v1`")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(problem("it must begin with `http://` or `https://`".to_owned()));
    }
    Ok(url)
}

impl Model for Client {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        self.stream(request, Deltas::default()).await
    }

    async fn stream(&self, request: ModelRequest, deltas: Deltas) -> Result<LlmResponse, BoxError> {
        let body = self.body(&request, deltas.are_watched())?;
        let url = self.url(request.model.as_deref(), deltas.are_watched());
        drop(request);
        Ok(self.sender.send(self.format, url, body, &deltas).await?)
    }
}
