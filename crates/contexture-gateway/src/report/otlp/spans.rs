//! Requests, and what is done with the memory for them, as spans.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use super::{OtlpError, Outbox, PATIENCE, Receiver, attribute, failure, named, nanoseconds, number, operation, text};
use crate::account::record::RequestRecord;
use crate::watch::{MemoryAct, MemoryOperation, Watcher};

/// Capacity of the queue.
const QUEUE: usize = 2_048;

/// Most spans of one batch.
const BATCH: usize = 512;

/// The kinds of spans, by OTLP's numbers.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;

/// Sends a span for every finished request, and for every operation on the memory.
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
        let outbox = Outbox::open(receiver)?;
        let (sender, spans) = mpsc::channel(QUEUE);
        let sending = tokio::spawn(send_all(outbox, spans));
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

    fn push(&self, span: impl FnOnce(u64) -> Value) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(sender) = &*self.sender() {
            // A full queue means that the receiver is slow; requests do not wait for it.
            let _ = sender.try_send(span(count));
        }
    }
}

impl Watcher for Exporter {
    fn finished(&self, _: u64, record: &RequestRecord) {
        self.push(|count| of_request(record, count));
    }

    fn remembered(&self, operation: &MemoryOperation<'_>) {
        self.push(|count| of_memory(operation, count));
    }
}

async fn send_all(outbox: Outbox, mut spans: mpsc::Receiver<Value>) {
    while let Some(first) = spans.recv().await {
        let mut batch = vec![first];
        let until = tokio::time::Instant::now() + outbox.receiver.delay;
        while batch.len() < BATCH {
            match tokio::time::timeout_at(until, spans.recv()).await {
                Ok(Some(span)) => batch.push(span),
                Ok(None) | Err(_) => break,
            }
        }
        outbox.send(["resourceSpans", "scopeSpans", "spans"], batch).await;
    }
}

/// What every span has.
struct SpanBase<'a> {
    /// What makes its ids those of this one.
    seed: String,
    name: &'a str,
    kind: u8,
    start_ms: u64,
    took_ms: u64,
    has_failed: bool,
}

impl SpanBase<'_> {
    fn with(self, attributes: Vec<Value>) -> Value {
        let id = blake3::hash(self.seed.as_bytes()).to_hex();
        // OTLP leaves the status unset if there was no error.
        let status = if self.has_failed { json!({"code": 2}) } else { json!({}) };
        json!({
            "traceId": &id[..32],
            "spanId": &id[32..48],
            "name": self.name,
            "kind": self.kind,
            "startTimeUnixNano": nanoseconds(self.start_ms),
            "endTimeUnixNano": nanoseconds(self.start_ms + self.took_ms),
            "attributes": attributes,
            "status": status,
        })
    }
}

/// The span of a request.
pub(super) fn of_request(record: &RequestRecord, count: u64) -> Value {
    let name = format!("{} {}", operation(record), record.model);
    let frame = SpanBase {
        seed: format!("{}/{}/{count}", record.session, record.time_ms),
        name: name.trim_end(),
        kind: CLIENT,
        start_ms: record.time_ms,
        took_ms: record.whole_ms,
        has_failed: record.status >= 400,
    };
    frame.with(attributes(record))
}

/// The span of an operation on the memory, which is part of this process.
pub(super) fn of_memory(operation: &MemoryOperation<'_>, count: u64) -> Value {
    let name = match operation.act {
        MemoryAct::Search => "search_memory",
        MemoryAct::Create => "create_memory",
        MemoryAct::Upsert => "upsert_memory",
    };
    let mut list = vec![
        attribute("gen_ai.operation.name", text(name)),
        attribute("gen_ai.memory.record.count", number(operation.records as u64)),
        attribute("gen_ai.conversation.id", text(operation.conversation)),
    ];
    list.extend(operation.failure.map(|kind| attribute("error.type", text(kind))));
    let frame = SpanBase {
        seed: format!("{}/{}/{}/{count}", operation.conversation, operation.time_ms, name),
        name,
        kind: INTERNAL,
        start_ms: operation.time_ms,
        took_ms: operation.took.as_millis() as u64,
        has_failed: operation.failure.is_some(),
    };
    frame.with(list)
}

fn attributes(record: &RequestRecord) -> Vec<Value> {
    let mut list = named(record);
    list.extend([
        attribute("http.response.status_code", number(record.status.into())),
        attribute("contexture.changed", json!({"boolValue": record.is_changed})),
        attribute("contexture.own_work_us", number(record.own_us)),
        attribute("contexture.first_byte_ms", number(record.first_byte_ms)),
    ]);
    list.extend(failure(record));
    if let Some(conversation) = &record.conversation {
        list.push(attribute("gen_ai.conversation.id", text(conversation)));
    }
    if let Some(usage) = &record.usage {
        let written = usage.cache_write + usage.cache_write_hour;
        list.push(attribute("gen_ai.usage.input_tokens", number(usage.total_input())));
        list.push(attribute("gen_ai.usage.output_tokens", number(usage.output)));
        list.push(attribute("gen_ai.usage.cache_read.input_tokens", number(usage.cache_read)));
        list.push(attribute("gen_ai.usage.cache_write.input_tokens", number(written)));
    }
    if let Some(bill) = &record.bill {
        // What the model sees is less than what was said: by a fold, or by the provider's own compaction.
        let is_compacted = bill.sent < bill.came || !record.provider_edits.is_empty();
        list.push(attribute("gen_ai.conversation.compacted", json!({"boolValue": is_compacted})));
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
