//! Servers over HTTP: every message is a POST of its own, and what the server says comes with the response to it.
//! Servers with a handshake may also say something by themselves, in the response to a GET.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::incoming::Incoming;
use super::lines::MAX_BYTES;
use crate::wire::EventParser;

/// How long connecting may take, and a message that has no response.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most bytes of all events of one response.
const MAX_STREAM_BYTES: usize = 64 << 20;

/// Where the stream of what a server says by itself is among the open requests, whose ids begin with 1.
const LISTENING: u64 = 0;

/// The code of a request that has no response of the protocol.
const NO_RESPONSE: i64 = -32000;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Where a server is.
#[derive(Clone, Default)]
pub struct McpAddress {
    /// Its URL.
    pub url: String,
    /// Headers for it. They may contain keys, so they are never shown.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for McpAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("McpAddress").field("headers", &self.headers.len()).finish_non_exhaustive()
    }
}

/// Posts the messages of a connection.
pub(super) struct Poster {
    http: reqwest::Client,
    url: Url,
    incoming: Incoming,
    /// The revision that a handshake agreed on.
    agreed: Arc<OnceLock<String>>,
    /// What the server wants to be told with every message after the handshake.
    session: OnceLock<HeaderValue>,
    /// The requests whose responses are read, by id.
    open: Mutex<HashMap<u64, AbortHandle>>,
}

impl Poster {
    /// # Errors
    /// What is wrong with the address.
    pub(super) fn new(
        address: &McpAddress,
        incoming: Incoming,
        agreed: Arc<OnceLock<String>>,
    ) -> Result<Arc<Self>, String> {
        let url = Url::parse(&address.url).map_err(|error| error.to_string())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("it must begin with `https://` or `http://`".to_owned());
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &address.headers {
            let header = name.parse::<HeaderName>().ok().zip(value.parse::<HeaderValue>().ok());
            let (name, mut value) = header.ok_or("a header has characters that are not allowed")?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        // An error means that the program installed another cryptography provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(PATIENCE)
            // A redirect would send the key elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("contexture/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| error.without_url().to_string())?;
        Ok(Arc::new(Self { http, url, incoming, agreed, session: OnceLock::new(), open: Mutex::default() }))
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, AbortHandle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts messages until the connection is dropped: requests at the same time, all others one after the other.
    pub(super) async fn post_all(self: Arc<Self>, mut messages: mpsc::Receiver<Value>) {
        while let Some(message) = messages.recv().await {
            let cancelled = message["params"]["requestId"].as_u64().filter(|_| is_cancelling(&message));
            if let Some(id) = cancelled {
                // Closing the connection cancels the request; older revisions are told besides.
                self.open().remove(&id).into_iter().for_each(|handle| handle.abort());
            }
            if cancelled.is_some() && self.agreed.get().is_none() {
                continue;
            }
            match message["id"].as_u64().filter(|_| message["method"].is_string()) {
                Some(id) => {
                    let this = self.clone();
                    let posting = tokio::spawn(async move { this.ask(id, &message).await });
                    self.open().insert(id, posting.abort_handle());
                    self.open().retain(|_, handle| !handle.is_finished());
                }
                None => {
                    // What becomes of it is not known over pipes either.
                    drop(tokio::time::timeout(PATIENCE, self.post(&message)).await);
                    if message["method"] == "notifications/initialized" {
                        self.listen();
                    }
                }
            }
        }
        self.open().drain().for_each(|(_, handle)| handle.abort());
    }

    /// Listens to what a server with a handshake says by itself, if it offers that: some ask the user there.
    fn listen(self: &Arc<Self>) {
        let this = self.clone();
        let listening = tokio::spawn(async move {
            let request = this.http.get(this.url.clone()).header(ACCEPT, "text/event-stream");
            let Ok(request) = this.said(request, &Value::Null) else { return };
            if let Ok(response) = request.send().await
                && is_events(&response)
            {
                // What breaks off is not resumed.
                let _ = this.take_events(response).await;
            }
        });
        self.open().insert(LISTENING, listening.abort_handle());
    }

    /// Posts a request. If there is no response to it, whoever waits is told why.
    async fn ask(&self, id: u64, message: &Value) {
        let problem = match self.post(message).await {
            Ok(()) if !self.incoming.is_open(id) => return,
            Ok(()) => "it sent no response".to_owned(),
            Err(problem) => problem,
        };
        let error = json!({ "code": NO_RESPONSE, "message": problem });
        self.incoming.take(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    /// Posts a message and takes in what the response says.
    async fn post(&self, message: &Value) -> Result<(), String> {
        let request = self.http.post(self.url.clone()).header(ACCEPT, "application/json, text/event-stream");
        let request = self.said(request, message)?.header(CONTENT_TYPE, "application/json").body(message.to_string());
        let response = request.send().await.map_err(|error| problem_of(&error))?;
        if message["method"] == "initialize"
            && let Some(session) = response.headers().get(SESSION)
        {
            // It is set once: there is one handshake.
            let _ = self.session.set(session.clone());
        }
        if is_events(&response) {
            return self.take_events(response).await;
        }
        let status = response.status();
        let body = whole(response).await?;
        // Refusals are messages too, of which some do not say what they refuse.
        let said = serde_json::from_slice::<Value>(&body).unwrap_or_default();
        let is_ours = said["id"] == message["id"] && message["id"].is_u64();
        match (status.is_success() || is_ours, said) {
            (true, Value::Array(list)) => list.into_iter().for_each(|message| self.incoming.take(message)),
            (true, said) => self.incoming.take(said),
            (false, said) => return Err(refusal(status, said["error"]["message"].as_str())),
        }
        Ok(())
    }

    /// Adds the headers by which those on the way and the server know what a message is.
    fn said(&self, request: RequestBuilder, message: &Value) -> Result<RequestBuilder, String> {
        let stateless = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let Some(version) = stateless else {
            let request = match self.agreed.get() {
                Some(version) => request.header(VERSION, version),
                None => request,
            };
            return Ok(match self.session.get() {
                Some(session) => request.header(SESSION, session),
                None => request,
            });
        };
        let text = |value: &str| value.parse::<HeaderValue>().map_err(|_| "its name cannot be in a header".to_owned());
        let mut request = request.header(VERSION, version);
        if let Some(method) = message["method"].as_str() {
            request = request.header(METHOD, text(method)?);
        }
        match message["params"]["name"].as_str() {
            Some(name) => Ok(request.header(NAME, text(name)?)),
            None => Ok(request),
        }
    }

    /// Takes in the events of a response as they come.
    async fn take_events(&self, mut response: Response) -> Result<(), String> {
        let (mut parser, mut bytes) = (EventParser::default(), 0);
        let mut take = |data: Result<&str, crate::wire::BadEvent>| match data {
            Ok(data) if data.len() > MAX_BYTES => Err(too_long(MAX_BYTES)),
            // Some servers begin with an event that is empty.
            Ok(data) => {
                serde_json::from_str(data).into_iter().for_each(|message| self.incoming.take(message));
                Ok(())
            }
            Err(bad) => Err(bad.to_string()),
        };
        while let Some(chunk) = response.chunk().await.map_err(|error| problem_of(&error))? {
            bytes += chunk.len();
            if bytes > MAX_STREAM_BYTES {
                return Err(too_long(MAX_STREAM_BYTES));
            }
            parser.push(&chunk, &mut take)?;
        }
        parser.finish(&mut take)
    }
}

/// Whether a response is a stream of messages.
fn is_events(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    response.status().is_success() && kind.trim_start().starts_with("text/event-stream")
}

fn is_cancelling(message: &Value) -> bool {
    message["method"] == "notifications/cancelled"
}

/// A body, if it is not too long.
async fn whole(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| problem_of(&error))? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(too_long(MAX_BYTES));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn too_long(limit: usize) -> String {
    format!("it sent more than {} MB in one message", limit >> 20)
}

/// Why a message did not reach the server, without its address, which may have a key in it.
fn problem_of(error: &reqwest::Error) -> String {
    match () {
        () if error.is_connect() => "it cannot be reached".to_owned(),
        () if error.is_timeout() => "it did not respond in time".to_owned(),
        () => "the connection broke off".to_owned(),
    }
}

fn refusal(status: StatusCode, said: Option<&str>) -> String {
    let said = said.map(|text| format!(": {}", text.chars().take(200).collect::<String>())).unwrap_or_default();
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            format!("it asks for another key, or for one (status {}){said}", status.as_u16())
        }
        status if status.is_redirection() => {
            format!("it is elsewhere (status {}), which is not followed", status.as_u16())
        }
        status => format!("status {}{said}", status.as_u16()),
    }
}
