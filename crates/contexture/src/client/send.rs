//! Sends a request and reads its response, with retries.

use std::sync::Arc;
use std::time::Duration;

use contexture_core::item::Item;
use contexture_core::model::{Delta, Deltas, LlmResponse};
use reqwest::header::HeaderMap;
use reqwest::{Response, Url};
use serde_json::Value;
use tokio::time::timeout;

use super::decode::{ReportedUsage, error_message, parse};
use super::error::{ClientError, malformed};
use super::key::ApiKey;
use super::reader::{StreamReader, whole_items};
use super::retry::{ClientRetry, RetryDecision, RetryHook, RetryPolicy, asked_wait, is_transient};
use crate::wire::Format;

/// The largest response that is read.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Most bytes of a provider's error message that are shown.
const MAX_MESSAGE_BYTES: usize = 600;

/// Sends requests to one address.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    shared: Arc<SharedSender>,
}

#[derive(Clone, Debug)]
struct SharedSender {
    http: reqwest::Client,
    url: Url,
    key: Option<ApiKey>,
    retry: RetryPolicy,
    idle_timeout: Duration,
    on_retry: RetryHook,
}

/// A failed attempt, and how long the provider asks to wait.
struct FailedAttempt {
    error: ClientError,
    may_repeat: bool,
    asked: Option<Duration>,
}

impl From<ClientError> for FailedAttempt {
    fn from(error: ClientError) -> Self {
        FailedAttempt { may_repeat: error.is_transient(), error, asked: None }
    }
}

impl Sender {
    pub(super) fn new(
        url: Url,
        headers: HeaderMap,
        key: Option<ApiKey>,
        retry: RetryPolicy,
        connect_timeout: Duration,
        idle_timeout: Duration,
    ) -> Result<Self, ClientError> {
        // An error means that the program installed another cryptography provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(connect_timeout)
            // A redirect would send the key elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            // Providers close idle connections after about 15 s; a request on one that is being closed is lost.
            .pool_idle_timeout(Duration::from_secs(10))
            .user_agent(concat!("contexture/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ClientError::Option { option: "tls", problem: error.without_url().to_string() })?;
        let on_retry = RetryHook::default();
        Ok(Self { shared: Arc::new(SharedSender { http, url, key, retry, idle_timeout, on_retry }) })
    }

    /// Calls a function before each retry.
    pub(super) fn telling(&mut self, hook: RetryHook) {
        self.shared = Arc::new(SharedSender { on_retry: hook, ..(*self.shared).clone() });
    }

    /// The address that it was made for.
    pub(super) fn url(&self) -> &Url {
        &self.shared.url
    }

    /// Sends a body to an address and reads the response, streamed if there is a listener for deltas.
    pub(super) async fn send(
        &self,
        format: Format,
        url: Url,
        body: String,
        deltas: &Deltas,
    ) -> Result<LlmResponse, ClientError> {
        let (shared, body) = (&*self.shared, bytes::Bytes::from(body));
        self.repeated(|| shared.attempt(format, url.clone(), body.clone(), deltas)).await
    }

    /// Sends a body and reads the response as JSON.
    pub(super) async fn post(&self, body: String) -> Result<Value, ClientError> {
        let (shared, body) = (&*self.shared, bytes::Bytes::from(body));
        self.repeated(|| shared.fetch(body.clone())).await
    }

    /// Tries until it succeeds, or must not be tried again.
    async fn repeated<T, F: Future<Output = Result<T, FailedAttempt>>>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<T, ClientError> {
        let mut retries = 0;
        loop {
            let failure = match attempt().await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            if !failure.may_repeat {
                return Err(failure.error);
            }
            match self.shared.retry.judge(retries, failure.asked, spread()) {
                RetryDecision::Again(wait) => {
                    self.shared.on_retry.call(ClientRetry {
                        attempt: retries + 1,
                        wait,
                        reason: failure.error.to_string(),
                    });
                    tokio::time::sleep(wait).await;
                }
                RetryDecision::TooLong(wait) => return Err(failure.error.asking_to_wait(wait)),
                RetryDecision::GiveUp => return Err(failure.error),
            }
            retries += 1;
        }
    }
}

impl ClientError {
    /// Adds that the provider asks for a longer wait than is allowed.
    fn asking_to_wait(self, retry_after: Duration) -> Self {
        match self {
            ClientError::Refused { address, status, message } => {
                ClientError::Busy { address, status, message, retry_after }
            }
            other => other,
        }
    }
}

impl SharedSender {
    /// The response to a body, if its status is no error.
    async fn accepted(&self, url: Url, body: bytes::Bytes) -> Result<Response, FailedAttempt> {
        let sent = timeout(self.idle_timeout, self.http.post(url).body(body).send()).await;
        let response = sent.map_err(|_| self.timed_out())?.map_err(|error| self.broken(error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refused(response).await) }
    }

    async fn fetch(&self, body: bytes::Bytes) -> Result<Value, FailedAttempt> {
        let response = self.accepted(self.url.clone(), body).await?;
        let body = self.read_body(response, MAX_RESPONSE_BYTES).await?;
        Ok(parse(&String::from_utf8_lossy(&body))?)
    }

    async fn attempt(
        &self,
        format: Format,
        url: Url,
        body: bytes::Bytes,
        deltas: &Deltas,
    ) -> Result<LlmResponse, FailedAttempt> {
        let response = self.accepted(url, body).await?;
        let is_stream = response
            .headers()
            .get("content-type")
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"));
        match is_stream {
            true => self.read_stream(format, response, deltas).await,
            false => Ok(self.read_whole(format, response, deltas).await?),
        }
    }

    /// Reads a streamed response. Once a part of it was shown, the request is not retried.
    async fn read_stream(
        &self,
        format: Format,
        response: Response,
        deltas: &Deltas,
    ) -> Result<LlmResponse, FailedAttempt> {
        let shown = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let noted = noting(deltas, shown.clone());
        let read = self.read_events(format, response, &noted).await;
        read.map_err(|error| {
            let mut failure = FailedAttempt::from(match error {
                ClientError::Failed { message } => ClientError::Failed { message: self.shown(&message) },
                other => other,
            });
            failure.may_repeat &= !shown.load(std::sync::atomic::Ordering::Relaxed);
            failure
        })
    }

    async fn read_events(
        &self,
        format: Format,
        mut response: Response,
        deltas: &Deltas,
    ) -> Result<LlmResponse, ClientError> {
        let mut reader = StreamReader::new(format);
        loop {
            match timeout(self.idle_timeout, response.chunk()).await.map_err(|_| self.timed_out())? {
                Ok(Some(bytes)) => reader.push(&bytes, deltas)?,
                Ok(None) => break,
                // A complete response is enough; some servers drop the connection afterwards.
                Err(_) => break,
            }
        }
        reader.finish(deltas)
    }

    /// Reads a response that is not streamed, and shows it at once if there is a listener.
    async fn read_whole(
        &self,
        format: Format,
        response: Response,
        deltas: &Deltas,
    ) -> Result<LlmResponse, ClientError> {
        let body = self.read_body(response, MAX_RESPONSE_BYTES).await?;
        let response = parse(&String::from_utf8_lossy(&body))?;
        if response.get("error").is_some_and(|error| !error.is_null()) {
            let message = error_message(&response).unwrap_or_else(|| response["error"].to_string());
            return Err(ClientError::Failed { message: self.shown(&message) });
        }
        let items = whole_items(format, &response)?;
        if deltas.are_watched() {
            show(&items, deltas);
        }
        let mut bill = ReportedUsage::default();
        bill.take(&response);
        Ok(bill.response(items))
    }

    async fn read_body(&self, mut response: Response, limit: usize) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(bytes) = timeout(self.idle_timeout, response.chunk())
            .await
            .map_err(|_| self.timed_out())?
            .map_err(|_| ClientError::Cut)?
        {
            if body.len() + bytes.len() > limit {
                return Err(malformed("it is too large"));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// The error for a response with an error status.
    async fn refused(&self, response: Response) -> FailedAttempt {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let asked = asked_wait(header("retry-after-ms").as_deref(), header("retry-after").as_deref());
        let body = self.read_body(response, MAX_RESPONSE_BYTES).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        let message = serde_json::from_str::<Value>(&body).ok().and_then(|report| error_message(&report));
        let message = self.shown(&message.unwrap_or_else(|| body.trim().to_owned()));
        let error = ClientError::Refused { address: self.address(), status, message };
        FailedAttempt { error, may_repeat: is_transient(status), asked }
    }

    /// A message of the provider, shortened and without the key.
    fn shown(&self, text: &str) -> String {
        let text = self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text));
        match text.len() > MAX_MESSAGE_BYTES {
            true => format!("{}…", &text[..text.floor_char_boundary(MAX_MESSAGE_BYTES)]),
            false => text,
        }
    }

    /// The address without parts that may be secret.
    fn address(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        // This cannot fail: the address has a host.
        let _ = (url.set_username(""), url.set_password(None));
        url.to_string()
    }

    fn timed_out(&self) -> ClientError {
        ClientError::TimedOut { address: self.address(), waited: self.idle_timeout }
    }

    fn broken(&self, error: reqwest::Error) -> ClientError {
        let error = error.without_url();
        // The outermost error only says that sending failed.
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        ClientError::Connect { address: self.address(), source: cause.to_string().into() }
    }
}

/// Shows items that came at once.
fn show(items: &[Item], deltas: &Deltas) {
    let mut index = 0;
    for item in items {
        match item {
            Item::Message(message) => deltas.send(Delta::text(message.text())),
            Item::Reasoning(reasoning) if !reasoning.text.is_empty() => {
                deltas.send(Delta::Reasoning { text: reasoning.text.clone() });
            }
            Item::FunctionCall(call) => {
                let (name, arguments) = (Some(call.name.to_string()), call.arguments.clone());
                deltas.send(Delta::Call { index, name, arguments });
                index += 1;
            }
            _ => {}
        }
    }
}

/// The same deltas; sets `shown` when one is sent.
fn noting(deltas: &Deltas, shown: Arc<std::sync::atomic::AtomicBool>) -> Deltas {
    if !deltas.are_watched() {
        return Deltas::default();
    }
    let deltas = deltas.clone();
    Deltas::to(move |delta| {
        shown.store(true, std::sync::atomic::Ordering::Relaxed);
        deltas.send(delta);
    })
}

/// A random number from 0 to 1.
fn spread() -> f64 {
    // The last bits of this UUID are random.
    (uuid::Uuid::now_v7().as_u128() % 1_024) as f64 / 1_023.0
}
