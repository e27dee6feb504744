//! Telemetry for OpenTelemetry: OTLP as JSON over HTTP, with the names of the GenAI conventions.
//!
//! Separate tasks send it. Requests never wait for them: what does not fit in a queue, or cannot be sent, is dropped. It
//! contains figures and names, but no headers, addresses or texts.

mod meters;
mod spans;
mod variables;

use std::time::Duration;

use contexture::wire::Format;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

pub use self::meters::MetricsExporter;
pub use self::spans::Exporter;
pub use self::variables::Telemetry;
use crate::account::record::{Cloud, RequestRecord};
use crate::provider::prepare_tls;

/// Timeout for the receiver, and for sending the rest at the end of a run.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where telemetry is sent.
#[derive(Clone)]
pub struct Receiver {
    /// The full URL, which usually ends in `/v1/traces` or `/v1/metrics`.
    pub url: String,
    /// Its headers by name. They may contain keys, so they are never shown.
    pub headers: Vec<(String, String)>,
    /// The service name.
    pub service: String,
    /// How long a batch of spans waits for more; how much time is between two reports of metrics.
    pub delay: Duration,
}

/// Why telemetry cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// A header has invalid characters.
    #[error("a header for the receiver of telemetry has characters that are not allowed")]
    Header,
    /// The variable with headers is no list.
    #[error("OTEL_EXPORTER_OTLP_HEADERS is not a list of headers")]
    Headers,
    /// The time between two reports of metrics is no number.
    #[error("OTEL_METRIC_EXPORT_INTERVAL is no time")]
    Interval,
    /// The HTTP client cannot be created.
    #[error("set up requests to the receiver of telemetry")]
    Client(#[from] reqwest::Error),
}

impl OtlpError {
    /// What can be done about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Headers => "write it as `name=value,other=value`",
            Self::Interval => "write it in milliseconds, as `60000`",
            Self::Header | Self::Client(_) => {
                "the variables OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS say where telemetry goes"
            }
        }
    }
}

/// Sends documents to a receiver.
struct Outbox {
    client: reqwest::Client,
    receiver: Receiver,
}

impl Outbox {
    fn open(receiver: Receiver) -> Result<Self, OtlpError> {
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
        Ok(Self { client, receiver })
    }

    /// Sends what was measured: `parts` are the names of the lists around it, from the outermost.
    async fn send(&self, [outer, middle, inner]: [&str; 3], measured: Vec<Value>) {
        let scope = json!({"name": "contexture", "version": env!("CARGO_PKG_VERSION")});
        let resource = json!({"attributes": [attribute("service.name", text(&self.receiver.service))]});
        let body = json!({outer: [{"resource": resource, middle: [{"scope": scope, inner: measured}]}]});
        let request = self.client.post(&self.receiver.url).header(CONTENT_TYPE, "application/json");
        // It is dropped silently: nobody could act on the error, and it may contain the address.
        let _ = request.body(body.to_string()).send().await;
    }
}

/// What the conventions call the operation of a request.
fn operation(record: &RequestRecord) -> &'static str {
    match record.format {
        Some(Format::Gemini) => "generate_content",
        _ => "chat",
    }
}

/// The operation, the provider and the model of a request.
fn named(record: &RequestRecord) -> Vec<Value> {
    let provider = match (record.cloud, record.format) {
        (Some(Cloud::Bedrock), _) => "aws.bedrock",
        (Some(Cloud::Vertex), _) => "gcp.vertex_ai",
        (Some(Cloud::Azure), _) => "azure.ai.openai",
        (None, Some(Format::Messages)) => "anthropic",
        (None, Some(Format::Gemini)) => "gcp.gemini",
        (None, Some(Format::Chat | Format::Responses) | None) => "openai",
    };
    let mut list = vec![
        attribute("gen_ai.operation.name", text(operation(record))),
        attribute("gen_ai.provider.name", text(provider)),
    ];
    if !record.model.is_empty() {
        list.push(attribute("gen_ai.request.model", text(&record.model)));
    }
    list
}

/// How a request failed, if it did.
fn failure(record: &RequestRecord) -> Option<Value> {
    (record.status >= 400).then(|| attribute("error.type", text(&record.status.to_string())))
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

/// A moment in milliseconds since the Unix epoch, as OTLP writes it.
fn nanoseconds(time_ms: u64) -> String {
    (u128::from(time_ms) * 1_000_000).to_string()
}

#[cfg(test)]
mod tests;
