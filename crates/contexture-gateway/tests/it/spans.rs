//! Spans and metrics of requests, sent to a receiver that is a real server.

use std::sync::Arc;
use std::time::Duration;

use contexture::wire::Format;
use contexture_gateway::Options;
use contexture_gateway::otlp::{Exporter, MetricsExporter, OtlpError, Receiver};
use serde_json::Value;

use super::played::{long, play, records, small};
use super::provider::Provider;
use super::receiver::{receiver, receiver_at};

fn attribute<'a>(span: &'a Value, name: &str) -> Option<&'a Value> {
    let list = span["attributes"].as_array().unwrap();
    list.iter().find(|attribute| attribute["key"] == name).map(|attribute| &attribute["value"])
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_a_span_with_the_names_of_the_conventions() {
    let (receiver, received) = receiver().await;
    let exporter = Arc::new(Exporter::start(receiver).unwrap());
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { watchers: vec![exporter.clone()], ..small() }).await;
    let agent = long(Format::Messages, 14);
    play(&gateway, &provider, &agent).await;
    let records = records(&gateway, agent.requests().len()).await;
    gateway.stop().await;
    exporter.finish().await;
    let bodies = received.lock().unwrap().clone();
    assert!(bodies.len() < records.len(), "spans are sent in batches: {}", bodies.len());
    let mut spans = Vec::new();
    for (key, body) in &bodies {
        assert_eq!(key, "of the receiver");
        let resource = &body["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "test");
        spans.extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().iter().cloned());
    }
    assert_eq!(spans.len(), records.len());
    let mut ids = std::collections::HashSet::new();
    for (span, record) in spans.iter().zip(&records) {
        let (trace, id) = (span["traceId"].as_str().unwrap(), span["spanId"].as_str().unwrap());
        assert!(trace.len() == 32 && id.len() == 16 && ids.insert(id.to_owned()), "{trace} {id}");
        assert_eq!((span["name"].as_str(), span["kind"].as_u64()), (Some("chat claude-sonnet-4-5"), Some(3)));
        let usage = record.usage.unwrap();
        let number =
            |name: &str| attribute(span, name).and_then(|value| value["intValue"].as_str()?.parse::<u64>().ok());
        assert_eq!(number("gen_ai.usage.input_tokens"), Some(usage.total_input()));
        assert_eq!(number("gen_ai.usage.cache_read.input_tokens"), Some(usage.cache_read));
        assert_eq!(number("gen_ai.usage.output_tokens"), Some(usage.output));
        assert_eq!(attribute(span, "gen_ai.provider.name").unwrap()["stringValue"], "anthropic");
        let fold = record.decided.iter().find(|note| note.is_fold());
        assert_eq!(number("contexture.fold.after_tokens"), fold.map(|fold| fold.after_tokens));
    }
    assert!(spans.iter().any(|span| attribute(span, "contexture.fold.reason").is_some()), "something was folded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_delays_nothing() {
    let headers = Vec::new();
    let url = "http://127.0.0.1:1/v1/traces".to_owned();
    let gone = Receiver { url, headers, service: "test".to_owned(), delay: Duration::ZERO };
    let exporter = Arc::new(Exporter::start(gone.clone()).unwrap());
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { watchers: vec![exporter.clone()], ..small() }).await;
    let agent = long(Format::Chat, 3);
    play(&gateway, &provider, &agent).await;
    exporter.finish().await;
    let broken = Receiver { headers: vec![("x".to_owned(), "two\nlines".to_owned())], ..gone };
    assert!(matches!(Exporter::start(broken), Err(OtlpError::Header)));
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_the_sums_of_what_the_receipt_says() {
    let (receiver, received) = receiver_at("/v1/metrics").await;
    let exporter = Arc::new(MetricsExporter::start(receiver).unwrap());
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { watchers: vec![exporter.clone()], ..small() }).await;
    let agent = long(Format::Messages, 6);
    play(&gateway, &provider, &agent).await;
    let records = records(&gateway, agent.requests().len()).await;
    gateway.stop().await;
    exporter.finish().await;
    exporter.finish().await;
    let (key, body) = received.lock().unwrap().last().unwrap().clone();
    assert_eq!(key, "of the receiver");
    let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let point = |name: &str| {
        let metric = metrics.iter().find(|metric| metric["name"] == format!("gen_ai.client.inference.{name}")).unwrap();
        metric.get("sum").or(metric.get("histogram")).unwrap()["dataPoints"][0].clone()
    };
    let total = |of: fn(&contexture::wire::Usage) -> u64| {
        records.iter().map(|record| of(&record.usage.unwrap())).sum::<u64>().to_string()
    };
    assert_eq!(point("usage.input_tokens")["asInt"], total(|usage| usage.total_input()));
    assert_eq!(point("usage.output_tokens")["asInt"], total(|usage| usage.output));
    assert_eq!(point("usage.cache_read.input_tokens")["asInt"], total(|usage| usage.cache_read));
    assert_eq!(point("duration")["count"], records.len().to_string());
    let sum = point("operation.input_tokens")["sum"].as_f64().unwrap();
    assert_eq!(sum.to_string(), total(|usage| usage.total_input()));
}
