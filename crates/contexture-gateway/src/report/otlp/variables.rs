//! Which telemetry the environment asks for, by the usual variables of OpenTelemetry.

use std::sync::Arc;
use std::time::Duration;

use contexture_core::percent::decoded_lossy;

use super::{Exporter, MetricsExporter, OtlpError, Receiver};
use crate::watch::Watcher;

/// How long spans wait for others.
const DELAY: Duration = Duration::from_secs(2);

/// The time between two reports of metrics, unless `OTEL_METRIC_EXPORT_INTERVAL` says otherwise.
const INTERVAL: Duration = Duration::from_secs(60);

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TelemetrySignal {
    Traces,
    Metrics,
}

impl TelemetrySignal {
    /// Its name in variables, and the end of its address.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Traces => ("TRACES", "/v1/traces"),
            Self::Metrics => ("METRICS", "/v1/metrics"),
        }
    }
}

/// Sends spans and metrics, if the environment says where to.
pub struct Telemetry {
    spans: Option<Arc<Exporter>>,
    metrics: Option<Arc<MetricsExporter>>,
}

impl Telemetry {
    /// Begins as the variables say. Must be called inside a runtime.
    ///
    /// # Errors
    /// A variable is not understood, or the HTTP client cannot be created.
    pub fn start(variable: impl Fn(&str) -> Option<String>) -> Result<Self, OtlpError> {
        let spans = receiver(TelemetrySignal::Traces, &variable)?.map(Exporter::start).transpose()?;
        let metrics = receiver(TelemetrySignal::Metrics, &variable)?.map(MetricsExporter::start).transpose()?;
        Ok(Self { spans: spans.map(Arc::new), metrics: metrics.map(Arc::new) })
    }

    /// Who is told of requests.
    pub fn watchers(&self) -> impl Iterator<Item = Arc<dyn Watcher>> {
        let spans = self.spans.clone().map(|exporter| exporter as Arc<dyn Watcher>);
        spans.into_iter().chain(self.metrics.clone().map(|exporter| exporter as Arc<dyn Watcher>))
    }

    /// Sends what is left.
    pub async fn finish(&self) {
        if let Some(spans) = &self.spans {
            spans.finish().await;
        }
        if let Some(metrics) = &self.metrics {
            metrics.finish().await;
        }
    }
}

/// Where something goes by the variables of OpenTelemetry.
fn receiver(signal: TelemetrySignal, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Receiver>, OtlpError> {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty());
    let (name, path) = signal.names();
    let is_off = given("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || given(&format!("OTEL_{name}_EXPORTER")).is_some_and(|value| value == "none");
    let base = given("OTEL_EXPORTER_OTLP_ENDPOINT").map(|url| format!("{}{path}", url.trim_end_matches('/')));
    let own = given(&format!("OTEL_EXPORTER_OTLP_{name}_ENDPOINT"));
    let Some(url) = own.or(base).filter(|_| !is_off) else { return Ok(None) };
    let named = given(&format!("OTEL_EXPORTER_OTLP_{name}_HEADERS")).or_else(|| given("OTEL_EXPORTER_OTLP_HEADERS"));
    let mut headers = Vec::new();
    for pair in named.iter().flat_map(|named| named.split(',')).map(str::trim).filter(|pair| !pair.is_empty()) {
        // The value may be a key, so it is not shown.
        let (name, value) = pair.split_once('=').ok_or(OtlpError::Headers)?;
        headers.push((name.trim().to_owned(), decoded_lossy(value.trim())));
    }
    let service = given("OTEL_SERVICE_NAME").unwrap_or_else(|| "contexture".to_owned());
    let delay = match (signal, given("OTEL_METRIC_EXPORT_INTERVAL")) {
        (TelemetrySignal::Traces, _) => DELAY,
        (TelemetrySignal::Metrics, None) => INTERVAL,
        (TelemetrySignal::Metrics, Some(said)) => {
            let milliseconds = said.trim().parse().ok().filter(|milliseconds| *milliseconds > 0);
            Duration::from_millis(milliseconds.ok_or(OtlpError::Interval)?)
        }
    };
    Ok(Some(Receiver { url, headers, service, delay }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(signal: TelemetrySignal, variables: &[(&str, &str)]) -> Result<Option<Receiver>, OtlpError> {
        let variables = variables.to_vec();
        receiver(signal, move |name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn url(signal: TelemetrySignal, variables: &[(&str, &str)]) -> Option<String> {
        found(signal, variables).unwrap().map(|receiver| receiver.url)
    }

    #[test]
    fn the_usual_variables_say_where_spans_and_metrics_go() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/");
        for (signal, path, name) in
            [(TelemetrySignal::Traces, "/v1/traces", "TRACES"), (TelemetrySignal::Metrics, "/v1/metrics", "METRICS")]
        {
            assert_eq!(url(signal, &[]), None);
            let receiver = found(signal, &[endpoint]).unwrap().unwrap();
            assert_eq!(receiver.url, format!("http://localhost:4318{path}"));
            assert_eq!(receiver.service, "contexture");
            let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%3d,x=1");
            let receiver = found(signal, &[endpoint, headers, ("OTEL_SERVICE_NAME", "mine")]).unwrap().unwrap();
            let pairs = [("api-key", "a b="), ("x", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(receiver.headers, pairs);
            let own = format!("OTEL_EXPORTER_OTLP_{name}_ENDPOINT");
            assert_eq!(url(signal, &[endpoint, (&own, "http://other/there")]).unwrap(), "http://other/there");
            let off = format!("OTEL_{name}_EXPORTER");
            assert_eq!(url(signal, &[endpoint, (&off, "none")]), None);
            assert_eq!(url(signal, &[endpoint, ("OTEL_SDK_DISABLED", "true")]), None);
            assert!(found(signal, &[endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "no header")]).is_err());
        }
    }

    #[test]
    fn metrics_are_reported_as_often_as_the_variable_says() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        let every = |value: &str| found(TelemetrySignal::Metrics, &[endpoint, ("OTEL_METRIC_EXPORT_INTERVAL", value)]);
        assert_eq!(every("").unwrap().unwrap().delay, INTERVAL);
        assert_eq!(every("1500").unwrap().unwrap().delay, Duration::from_millis(1_500));
        for wrong in ["0", "-1", "soon", "99999999999999999999999"] {
            assert!(every(wrong).is_err(), "{wrong}");
        }
    }
}
