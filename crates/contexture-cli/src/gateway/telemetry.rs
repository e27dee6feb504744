//! Spans for OpenTelemetry, as far as the environment asks for them.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use contexture_core::percent::decoded_lossy;
use contexture_gateway::Watcher;
use contexture_gateway::otlp::{Exporter, Receiver};

use crate::failure::Failure;

/// How long spans wait for others.
const DELAY: Duration = Duration::from_secs(2);

/// Sends spans, if the environment says where to.
pub(super) struct Telemetry(Option<Arc<Exporter>>);

impl Telemetry {
    /// Begins as the usual variables of OpenTelemetry say.
    pub(super) fn start() -> Result<Self, Failure> {
        let Some(receiver) = receiver(|name| env::var(name).ok())? else { return Ok(Self(None)) };
        let exporter = Exporter::start(receiver).map_err(|error| {
            let failure = Failure::work(error.to_string());
            failure.hint("the variables OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS say where spans go")
        })?;
        Ok(Self(Some(Arc::new(exporter))))
    }

    /// Who is told of requests.
    pub(super) fn watcher(&self) -> Option<Arc<dyn Watcher>> {
        self.0.clone().map(|exporter| exporter as Arc<dyn Watcher>)
    }

    /// Sends what is left.
    pub(super) async fn finish(&self) {
        if let Some(exporter) = &self.0 {
            exporter.finish().await;
        }
    }
}

/// Where spans go by the variables of OpenTelemetry.
fn receiver(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Receiver>, Failure> {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty());
    let is_off = given("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || given("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
    let base = given("OTEL_EXPORTER_OTLP_ENDPOINT").map(|url| format!("{}/v1/traces", url.trim_end_matches('/')));
    let Some(url) = given("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or(base).filter(|_| !is_off) else { return Ok(None) };
    let named = given("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| given("OTEL_EXPORTER_OTLP_HEADERS"));
    let mut headers = Vec::new();
    for pair in named.iter().flat_map(|named| named.split(',')).map(str::trim).filter(|pair| !pair.is_empty()) {
        // The value may be a key, so it is not shown.
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            let failure = Failure::usage("OTEL_EXPORTER_OTLP_HEADERS is not a list of headers");
            failure.hint("write it as `name=value,other=value`")
        })?;
        headers.push((name.trim().to_owned(), decoded_lossy(value.trim())));
    }
    let service = given("OTEL_SERVICE_NAME").unwrap_or_else(|| "contexture".to_owned());
    Ok(Some(Receiver { url, headers, service, delay: DELAY }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<Option<Receiver>, Failure> {
        let variables = variables.to_vec();
        receiver(move |name| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_usual_variables_say_where_spans_go() {
        assert!(found(&[]).unwrap().is_none());
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/");
        let receiver = found(&[endpoint]).unwrap().unwrap();
        assert_eq!(receiver.url, "http://localhost:4318/v1/traces");
        assert_eq!(receiver.service, "contexture");
        let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%3d,x=1");
        let receiver = found(&[endpoint, headers, ("OTEL_SERVICE_NAME", "mine")]).unwrap().unwrap();
        let pairs = [("api-key", "a b="), ("x", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(receiver.headers, pairs);
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://other/spans");
        assert_eq!(found(&[endpoint, traces]).unwrap().unwrap().url, "http://other/spans");
        assert!(found(&[endpoint, ("OTEL_SDK_DISABLED", "true")]).unwrap().is_none());
        assert!(found(&[endpoint, ("OTEL_EXPORTER_OTLP_HEADERS", "no header")]).is_err());
    }
}
