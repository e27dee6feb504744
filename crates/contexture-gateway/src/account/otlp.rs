//! Requests as spans for OpenTelemetry: OTLP as JSON over HTTP, with the names of the GenAI conventions.
//!
//! A separate task sends spans in batches. Requests never wait for it: spans that do not fit in the queue, or cannot be
//! sent, are dropped. A span contains figures and names, but no headers, addresses or texts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contexture::wire::Format;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use crate::account::record::RequestRecord;
use crate::send::prepare_tls;
use crate::watch::Watcher;

/// Capacity of the queue.
const QUEUE: usize = 2_048;

/// Most spans of one batch.
const BATCH: usize = 512;

/// Timeout for the receiver, and for sending the rest at the end of a run.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where spans are sent.
#[derive(Clone)]
pub struct Receiver {
    /// The full URL, which usually ends in `/v1/traces`.
    pub url: String,
    /// Its headers by name. They may contain keys, so they are never shown.
    pub headers: Vec<(String, String)>,
    /// The service name in spans.
    pub service: String,
    /// How long a batch waits for more spans.
    pub delay: Duration,
}

/// Why spans cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// A header has invalid characters.
    #[error("a header for the receiver of spans has characters that are not allowed")]
    Header,
    /// The HTTP client cannot be created.
    #[error("set up requests to the receiver of spans")]
    Client(#[from] reqwest::Error),
}

/// Sends a span for every finished request.
pub struct Exporter {
    sender: std::sync::Mutex<Option<mpsc::Sender<Value>>>,
    sending: Mutex<Option<JoinHandle<()>>>,
    /// Makes span ids unique.
    count: AtomicU64,
}

impl Exporter {
    /// Starts sending to a receiver. Must be called inside a runtime.
    ///
    /// # Errors
    /// A header is invalid, or the HTTP client cannot be created.
    pub fn start(receiver: Receiver) -> Result<Self, OtlpError> {
        prepare_tls();
        let mut headers = HeaderMap::new();
        for (name, value) in &receiver.headers {
            let header = name.parse::<HeaderName>().ok().zip(value.parse::<HeaderValue>().ok());
            let (name, value) = header.ok_or(OtlpError::Header)?;
            headers.insert(name, value);
        }
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .default_headers(headers)
            .build()?;
        let (sender, spans) = mpsc::channel(QUEUE);
        let sending = tokio::spawn(send_all(client, receiver, spans));
        Ok(Self {
            sender: std::sync::Mutex::new(Some(sender)),
            sending: Mutex::new(Some(sending)),
            count: AtomicU64::new(0),
        })
    }

    /// Sends the remaining spans and stops.
    pub async fn finish(&self) {
        drop(self.sender().take());
        if let Some(sending) = self.sending.lock().await.take() {
            // Spans that are not sent by then are dropped.
            let _ = tokio::time::timeout(PATIENCE, sending).await;
        }
    }

    fn sender(&self) -> std::sync::MutexGuard<'_, Option<mpsc::Sender<Value>>> {
        self.sender.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Watcher for Exporter {
    fn finished(&self, _: u64, record: &RequestRecord) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(sender) = &*self.sender() {
            // A full queue means that the receiver is slow; requests do not wait for it.
            let _ = sender.try_send(span(record, count));
        }
    }
}

async fn send_all(client: reqwest::Client, receiver: Receiver, mut spans: mpsc::Receiver<Value>) {
    while let Some(first) = spans.recv().await {
        let mut batch = vec![first];
        let until = tokio::time::Instant::now() + receiver.delay;
        while batch.len() < BATCH {
            match tokio::time::timeout_at(until, spans.recv()).await {
                Ok(Some(span)) => batch.push(span),
                Ok(None) | Err(_) => break,
            }
        }
        let body = envelope(&receiver.service, batch).to_string();
        let request = client.post(&receiver.url).header(CONTENT_TYPE, "application/json").body(body);
        // Spans are dropped silently: nobody could act on the error, and it may contain the address.
        let _ = request.send().await;
    }
}

/// Wraps spans in an OTLP document.
fn envelope(service: &str, spans: Vec<Value>) -> Value {
    let scope = json!({"name": "contexture", "version": env!("CARGO_PKG_VERSION")});
    json!({"resourceSpans": [{
        "resource": {"attributes": [attribute("service.name", text(service))]},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]})
}

/// The span of a request.
fn span(record: &RequestRecord, count: u64) -> Value {
    let id = blake3::hash(format!("{}/{}/{count}", record.session, record.time_ms).as_bytes()).to_hex();
    let (start, end) = (record.time_ms, record.time_ms + record.whole_ms);
    // OTLP leaves the status unset if there was no error.
    let status = if record.status >= 400 { json!({"code": 2}) } else { json!({}) };
    json!({
        "traceId": &id[..32],
        "spanId": &id[32..48],
        "name": format!("chat {}", record.model).trim_end(),
        "kind": 3,
        "startTimeUnixNano": format!("{}", u128::from(start) * 1_000_000),
        "endTimeUnixNano": format!("{}", u128::from(end) * 1_000_000),
        "attributes": attributes(record),
        "status": status,
    })
}

fn attributes(record: &RequestRecord) -> Vec<Value> {
    let provider = match record.format {
        Some(Format::Messages) => "anthropic",
        Some(Format::Gemini) => "gcp.gemini",
        Some(Format::Chat | Format::Responses) | None => "openai",
    };
    let mut list = vec![
        attribute("gen_ai.operation.name", text("chat")),
        attribute("gen_ai.provider.name", text(provider)),
        attribute("gen_ai.request.model", text(&record.model)),
        attribute("http.response.status_code", number(record.status.into())),
        attribute("contexture.changed", json!({"boolValue": record.is_changed})),
        attribute("contexture.own_work_us", number(record.own_us)),
        attribute("contexture.first_byte_ms", number(record.first_byte_ms)),
    ];
    if record.status >= 400 {
        list.push(attribute("error.type", text(&record.status.to_string())));
    }
    if let Some(conversation) = &record.conversation {
        list.push(attribute("gen_ai.conversation.id", text(conversation)));
    }
    if let Some(usage) = &record.usage {
        let written = usage.cache_write + usage.cache_write_hour;
        list.push(attribute("gen_ai.usage.input_tokens", number(usage.total_input())));
        list.push(attribute("gen_ai.usage.output_tokens", number(usage.output)));
        list.push(attribute("gen_ai.usage.cache_read.input_tokens", number(usage.cache_read)));
        list.push(attribute("gen_ai.usage.cache_creation.input_tokens", number(written)));
    }
    if let Some(bill) = &record.bill {
        list.push(attribute("contexture.came_tokens", number(bill.came)));
        list.push(attribute("contexture.billed_tokens", json!({"doubleValue": bill.billed})));
        list.push(attribute("contexture.passed_through_tokens", json!({"doubleValue": bill.passed_through})));
    }
    if let Some(why) = &record.passed {
        list.push(attribute("contexture.passed_because", text(why)));
    }
    for fold in record.decided.iter().filter(|note| note.is_fold()) {
        list.push(attribute("contexture.fold.before_tokens", number(fold.before_tokens)));
        list.push(attribute("contexture.fold.after_tokens", number(fold.after_tokens)));
        list.push(attribute("contexture.fold.reason", text(&fold.reason)));
    }
    list
}

fn attribute(key: &str, value: Value) -> Value {
    json!({"key": key, "value": value})
}

fn text(text: &str) -> Value {
    json!({"stringValue": text})
}

/// OTLP's JSON writes integers as strings, since they have 64 bits.
fn number(number: u64) -> Value {
    json!({"intValue": number.to_string()})
}

#[cfg(test)]
mod tests {
    use super::*;
    use contexture::wire::Usage;

    /// The names of the registry.
    const REGISTRY: &str = include_str!("genai_names.txt");

    #[test]
    fn names_of_the_conventions_are_those_of_the_registry() {
        let known: Vec<&str> = REGISTRY.lines().filter(|line| !line.starts_with('#')).collect();
        let record = RequestRecord {
            session: "s".to_owned(),
            conversation: Some("c".to_owned()),
            model: "claude-sonnet-4-5".to_owned(),
            status: 529,
            usage: Some(Usage { input: 1, cache_read: 2, cache_write: 3, cache_write_hour: 4, output: 5 }),
            bill: Some(Default::default()),
            passed: Some("why".to_owned()),
            ..RequestRecord::default()
        };
        let span = span(&record, 1);
        assert_eq!((&span["name"], &span["kind"]), (&json!("chat claude-sonnet-4-5"), &json!(3)));
        let keys: Vec<&str> =
            span["attributes"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
        let named: Vec<&&str> = keys.iter().filter(|key| key.starts_with("gen_ai.")).collect();
        assert_eq!(named.len(), 8, "{keys:?}");
        assert!(named.iter().all(|key| known.contains(key)), "{named:?}");
        // What no convention has a name for has ours, and general names are those of other conventions.
        let others = keys.iter().filter(|key| !key.starts_with("gen_ai.") && !key.starts_with("contexture."));
        assert!(others.clone().all(|key| ["http.response.status_code", "error.type"].contains(key)), "{keys:?}");
        assert!(others.count() == 2 && known.is_sorted());
    }
}
