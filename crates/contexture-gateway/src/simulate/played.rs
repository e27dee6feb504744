//! Replays recorded sessions as if they had passed through the gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contexture::clock::Clock;
use contexture::transcript::Record;
use contexture::wire::{Answered, Format};
use futures_util::future::BoxFuture;

use super::cache::Cache;
use super::recorded::RecordedSession;
use crate::accept::incoming::{IncomingRequest, RequestScope};
use crate::account::record::RequestRecord;
use crate::decide::decider::Decider;
use crate::decide::prepared::PreparedRequest;
use crate::decide::progress::Progress;
use crate::options::Options;
use crate::watch::{WatchedBodies, WatchedRequest, Watcher};

/// Time between two requests if the recording has no times, in milliseconds.
const USUAL_PAUSE_MS: u64 = 20_000;

/// Time of the first request if the recording has none: some time in 2025.
const USUAL_START_MS: u64 = 1_750_000_000_000;

/// How long the provider caches an unused prefix, in milliseconds.
const LIFE_MS: u64 = 300_000;

/// Approximate bytes of output per token.
const BYTES_PER_TOKEN: u64 = 4;

/// Replays recordings through the gateway's decisions, against a simulated provider cache.
pub struct Played {
    budget: Option<u64>,
}

/// A clock that shows the time of the recording.
struct RecordedClock {
    now_ms: AtomicU64,
}

impl Clock for RecordedClock {
    fn now(&self) -> Duration {
        Duration::from_millis(self.now_ms.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        // Nothing sleeps in a replay.
        Box::pin(std::future::ready(()))
    }
}

impl Played {
    /// Sets a budget in tokens; the default is the model's window.
    pub fn new(budget: Option<u64>) -> Self {
        Self { budget }
    }

    /// Replays a recording as a separate conversation, of which a watcher hears. Returns the number of requests.
    pub fn play(&self, watcher: &dyn Watcher, conversation: &str, records: &[Record]) -> usize {
        let format = Format::Messages;
        let recorded = RecordedSession::new(format, records).as_recorded();
        let clock = Arc::new(RecordedClock { now_ms: AtomicU64::new(USUAL_START_MS) });
        let options = Options { budget: self.budget, clock: clock.clone(), ..Options::default() };
        let decider = Decider::new(Arc::new(options), None);
        let mut cache = Cache::with_life(LIFE_MS);
        let mut newest = recorded.time_ms_of_first().unwrap_or(USUAL_START_MS);
        for number in 0..recorded.len() {
            // A time that goes backwards is an error of the recording.
            newest = recorded.time_ms(number).unwrap_or(newest + USUAL_PAUSE_MS).max(newest);
            clock.now_ms.store(newest, Ordering::SeqCst);
            let body = recorded.request(number);
            let incoming = IncomingRequest {
                body: body.into(),
                format,
                scope: RequestScope::default(),
                is_count: false,
                is_compaction: false,
                asks: Default::default(),
            };
            let prepared = decider.decide(&incoming, &Progress::new(Instant::now()));
            let output = recorded.answer_bytes(number) / BYTES_PER_TOKEN;
            tell(watcher, conversation, &incoming, &prepared, &mut cache, newest, output);
        }
        recorded.len()
    }
}

/// Tells a watcher of a request and of what the simulated provider returns.
fn tell(
    watcher: &dyn Watcher,
    conversation: &str,
    incoming: &IncomingRequest,
    prepared: &PreparedRequest,
    cache: &mut Cache,
    now_ms: u64,
    output: u64,
) {
    let named = |record: RequestRecord| RequestRecord {
        conversation: Some(conversation.to_owned()),
        format: Some(incoming.format),
        ..record
    };
    let record = named(prepared.record("recorded", now_ms));
    let bodies = WatchedBodies { came: incoming.body.clone(), sent: prepared.body().cloned() };
    let request = WatchedRequest::recorded(incoming.format, &record, &bodies);
    watcher.sending(&request);
    let body = std::str::from_utf8(prepared.body().unwrap_or(&incoming.body)).unwrap_or_default();
    let took = cache.serve(incoming.format, body, now_ms);
    let mut usage = contexture::wire::Usage::default();
    usage.take(&serde_json::json!({"usage": took.usage(incoming.format, output)}));
    let has_conversation = prepared.conversation().is_some();
    let bill = has_conversation.then(|| prepared.bill(now_ms, &usage, &Answered::default(), now_ms));
    let record = named(prepared.whole_record("recorded", now_ms));
    let [dollars, dollars_through] = bill.map_or([None; 2], |bill| prepared.dollars(&bill));
    let mut record = RequestRecord { status: 200, usage: Some(usage), bill, dollars, dollars_through, ..record };
    record.note_fold_bill();
    watcher.finished(request.number, &record);
}
