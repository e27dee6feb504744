//! What requests took, as metrics: counters and histograms that grow for as long as the program runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{OtlpError, Outbox, PATIENCE, Receiver, attribute, failure, named, nanoseconds, text};
use crate::account::record::RequestRecord;
use crate::watch::Watcher;

/// Most series of one metric: models have names that clients choose.
const MAX_SERIES: usize = 200;

/// OTLP's number for figures that count from the start of the program.
const CUMULATIVE: u8 = 2;

/// The bounds of buckets that the conventions ask for: in seconds, and in tokens.
const SECONDS: [f64; 14] = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// A metric: its name after `gen_ai.client.inference.`, its unit, and what it is.
struct Metric {
    name: &'static str,
    unit: &'static str,
    shape: InstrumentKind,
    /// Its value for a request.
    value: fn(&RequestRecord) -> f64,
}

#[derive(Clone, Copy, PartialEq)]
enum InstrumentKind {
    /// A sum, told apart by the kind of tokens.
    Counter,
    /// A histogram with these bounds, told apart by errors.
    Histogram([f64; 14]),
}

/// Every metric.
const METRICS: [Metric; 7] = [
    counter("usage.input_tokens", |record| tokens(record, |usage| usage.total_input())),
    counter("usage.output_tokens", |record| tokens(record, |usage| usage.output)),
    counter("usage.cache_read.input_tokens", |record| tokens(record, |usage| usage.cache_read)),
    counter("usage.cache_write.input_tokens", |record| {
        tokens(record, |usage| usage.cache_write + usage.cache_write_hour)
    }),
    histogram("operation.input_tokens", "{token}", TOKENS, |record| tokens(record, |usage| usage.total_input())),
    histogram("operation.output_tokens", "{token}", TOKENS, |record| tokens(record, |usage| usage.output)),
    histogram("duration", "s", SECONDS, |record| record.whole_ms as f64 / 1_000.0),
];

const fn counter(name: &'static str, value: fn(&RequestRecord) -> f64) -> Metric {
    Metric { name, unit: "{token}", shape: InstrumentKind::Counter, value }
}

const fn histogram(
    name: &'static str,
    unit: &'static str,
    bounds: [f64; 14],
    value: fn(&RequestRecord) -> f64,
) -> Metric {
    Metric { name, unit, shape: InstrumentKind::Histogram(bounds), value }
}

/// Tokens of a request; none if the provider reported none, as the conventions ask.
fn tokens(record: &RequestRecord, of: fn(&contexture::wire::Usage) -> u64) -> f64 {
    record.usage.as_ref().map_or(0, of) as f64
}

/// What was measured of the requests with the same attributes.
#[derive(Clone, Debug, Default)]
struct MeterSeries {
    attributes: Vec<Value>,
    count: u64,
    sum: f64,
    buckets: [u64; 15],
}

impl MeterSeries {
    fn add(&mut self, value: f64, bounds: Option<&[f64; 14]>) {
        self.count += 1;
        self.sum += value;
        if let Some(bounds) = bounds {
            // A bound belongs to the bucket below it.
            self.buckets[bounds.partition_point(|bound| *bound < value)] += 1;
        }
    }
}

/// All figures since the start of the program.
#[derive(Default)]
pub(super) struct Meters {
    /// By metric, and then by attributes.
    series: [BTreeMap<String, MeterSeries>; METRICS.len()],
    /// When the first request began.
    since_ms: Option<u64>,
    /// When the last request ended.
    until_ms: u64,
    has_news: bool,
}

impl Meters {
    pub(super) fn add(&mut self, record: &RequestRecord) {
        if record.is_count {
            return;
        }
        self.since_ms = Some(self.since_ms.map_or(record.time_ms, |since| since.min(record.time_ms)));
        self.until_ms = self.until_ms.max(record.time_ms + record.whole_ms);
        self.has_news = true;
        for (metric, all) in METRICS.iter().zip(&mut self.series) {
            let mut attributes = named(record);
            match metric.shape {
                // No provider says of all its tokens what they are of.
                InstrumentKind::Counter => attributes.push(attribute("gen_ai.token.modality", text("unknown"))),
                InstrumentKind::Histogram(_) => attributes.extend(failure(record)),
            }
            let key = Value::from(attributes.clone()).to_string();
            if all.len() >= MAX_SERIES && !all.contains_key(&key) {
                continue;
            }
            let series = all.entry(key).or_insert_with(|| MeterSeries { attributes, ..MeterSeries::default() });
            let bounds = if let InstrumentKind::Histogram(bounds) = &metric.shape { Some(bounds) } else { None };
            series.add((metric.value)(record), bounds);
        }
    }

    /// All metrics as OTLP writes them, if there is anything new.
    pub(super) fn report(&mut self) -> Option<Vec<Value>> {
        let since = nanoseconds(self.since_ms.filter(|_| std::mem::take(&mut self.has_news))?);
        let until = nanoseconds(self.until_ms);
        Some(METRICS.iter().zip(&self.series).map(|(metric, all)| metric.written(all, &since, &until)).collect())
    }
}

impl Metric {
    fn written(&self, all: &BTreeMap<String, MeterSeries>, since: &str, until: &str) -> Value {
        let point = |series: &MeterSeries| {
            let mut point = json!({"attributes": series.attributes, "startTimeUnixNano": since, "timeUnixNano": until});
            match &self.shape {
                InstrumentKind::Counter => point["asInt"] = json!((series.sum as u64).to_string()),
                InstrumentKind::Histogram(bounds) => {
                    point["count"] = json!(series.count.to_string());
                    point["sum"] = json!(series.sum);
                    point["bucketCounts"] = series.buckets.iter().map(u64::to_string).collect();
                    point["explicitBounds"] = json!(bounds);
                }
            }
            point
        };
        let mut data =
            json!({"aggregationTemporality": CUMULATIVE, "dataPoints": all.values().map(point).collect::<Vec<_>>()});
        let kind = match self.shape {
            InstrumentKind::Counter => {
                data["isMonotonic"] = json!(true);
                "sum"
            }
            InstrumentKind::Histogram(_) => "histogram",
        };
        json!({"name": format!("gen_ai.client.inference.{}", self.name), "unit": self.unit, kind: data})
    }
}

/// Reports metrics of all finished requests from time to time.
pub struct MetricsExporter {
    meters: Arc<Mutex<Meters>>,
    stop: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl MetricsExporter {
    /// Starts reporting to a receiver. Must be called inside a runtime.
    ///
    /// # Errors
    /// A header is invalid, or the HTTP client cannot be created.
    pub fn start(receiver: Receiver) -> Result<Self, OtlpError> {
        let outbox = Outbox::open(receiver)?;
        let meters = Arc::<Mutex<Meters>>::default();
        let (stop, stopped) = oneshot::channel();
        let reporting = tokio::spawn(report_all(outbox, meters.clone(), stopped));
        Ok(Self { meters, stop: Mutex::new(Some((stop, reporting))) })
    }

    /// Reports what is new, and stops.
    pub async fn finish(&self) {
        let stop = locked(&self.stop).take();
        if let Some((stop, reporting)) = stop {
            drop(stop);
            // What is not reported by then is dropped.
            let _ = tokio::time::timeout(PATIENCE, reporting).await;
        }
    }
}

impl Watcher for MetricsExporter {
    fn finished(&self, _: u64, record: &RequestRecord) {
        locked(&self.meters).add(record);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn report_all(outbox: Outbox, meters: Arc<Mutex<Meters>>, mut stopped: oneshot::Receiver<()>) {
    loop {
        let is_over = tokio::time::timeout(outbox.receiver.delay, &mut stopped).await.is_ok();
        let report = locked(&meters).report();
        if let Some(report) = report {
            outbox.send(["resourceMetrics", "scopeMetrics", "metrics"], report).await;
        }
        if is_over {
            return;
        }
    }
}
