//! Every name is one of the registry's, which is in the repository as data.

use std::collections::BTreeMap;
use std::time::Duration;

use contexture::wire::{Format, Usage};
use serde_json::{Value, json};

use super::meters::Meters;
use super::spans::{of_memory, of_request};
use crate::account::record::{Cloud, RequestRecord};
use crate::watch::{MemoryAct, MemoryOperation};

/// The names of the registry, by section.
fn registry() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut sections = BTreeMap::<_, Vec<_>>::new();
    let mut section = "";
    for line in include_str!("genai_registry.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => section = name,
            None => sections.entry(section).or_default().push(line),
        }
    }
    sections
}

fn record() -> RequestRecord {
    RequestRecord {
        session: "s".to_owned(),
        conversation: Some("c".to_owned()),
        model: "claude-sonnet-4-5".to_owned(),
        format: Some(Format::Messages),
        status: 529,
        whole_ms: 40,
        usage: Some(Usage { input: 1, cache_read: 2, cache_write: 3, cache_write_hour: 4, output: 5 }),
        bill: Some(Default::default()),
        passed: Some("why".to_owned()),
        ..RequestRecord::default()
    }
}

/// The attributes of a span or a point, whose names are checked.
#[track_caller]
fn attributes(of: &Value) -> BTreeMap<String, Value> {
    let (registry, general) = (registry(), ["http.response.status_code", "error.type"]);
    let list = of["attributes"].as_array().unwrap().iter();
    let found: BTreeMap<String, Value> =
        list.map(|one| (one["key"].as_str().unwrap().to_owned(), one["value"].clone())).collect();
    for key in found.keys() {
        let is_known = registry["attributes"].contains(&key.as_str()) || general.contains(&key.as_str());
        assert!(is_known || key.starts_with("contexture."), "`{key}` is no name of the registry");
    }
    for (section, key) in [
        ("operations", "gen_ai.operation.name"),
        ("providers", "gen_ai.provider.name"),
        ("modalities", "gen_ai.token.modality"),
    ] {
        let value = found.get(key).map(|value| value["stringValue"].as_str().unwrap());
        assert!(value.is_none_or(|value| registry[section].contains(&value)), "{key}: {value:?}");
    }
    found
}

#[test]
fn the_names_of_spans_are_those_of_the_registry() {
    let span = of_request(&record(), 1);
    assert_eq!((&span["name"], &span["kind"]), (&json!("chat claude-sonnet-4-5"), &json!(3)));
    let found = attributes(&span);
    assert_eq!(found.keys().filter(|key| key.starts_with("gen_ai.")).count(), 9, "{found:?}");
    assert_eq!(found["gen_ai.usage.input_tokens"]["intValue"], "10", "the cache is part of the input");
    assert_eq!(found["gen_ai.usage.cache_write.input_tokens"]["intValue"], "7");
    let nameless = of_request(&RequestRecord { model: String::new(), ..record() }, 1);
    assert!(!attributes(&nameless).contains_key("gen_ai.request.model") && nameless["name"] == "chat");
}

#[test]
fn the_provider_is_the_cloud_after_its_own_door() {
    let provider = |format, cloud| {
        let span = of_request(&RequestRecord { format, cloud, ..record() }, 1);
        let found = attributes(&span);
        let text = |key: &str| found[key]["stringValue"].as_str().unwrap().to_owned();
        (text("gen_ai.provider.name"), text("gen_ai.operation.name"))
    };
    let expected = |provider: &str, operation: &str| (provider.to_owned(), operation.to_owned());
    assert_eq!(provider(Some(Format::Messages), None), expected("anthropic", "chat"));
    assert_eq!(provider(Some(Format::Messages), Some(Cloud::Bedrock)), expected("aws.bedrock", "chat"));
    assert_eq!(provider(Some(Format::Chat), Some(Cloud::Azure)), expected("azure.ai.openai", "chat"));
    assert_eq!(provider(Some(Format::Responses), None), expected("openai", "chat"));
    assert_eq!(provider(Some(Format::Gemini), None), expected("gcp.gemini", "generate_content"));
    assert_eq!(provider(Some(Format::Gemini), Some(Cloud::Vertex)), expected("gcp.vertex_ai", "generate_content"));
}

#[test]
fn operations_on_the_memory_are_spans_without_its_texts() {
    for (act, name) in [
        (MemoryAct::Search, "search_memory"),
        (MemoryAct::Create, "create_memory"),
        (MemoryAct::Upsert, "upsert_memory"),
    ] {
        let operation = MemoryOperation {
            act,
            conversation: "c",
            time_ms: 7,
            took: Duration::from_millis(2),
            records: 3,
            failure: Some("timeout"),
        };
        let span = of_memory(&operation, 1);
        assert_eq!((&span["name"], &span["kind"], &span["status"]["code"]), (&json!(name), &json!(1), &json!(2)));
        assert_eq!(span["endTimeUnixNano"], "9000000");
        let found = attributes(&span);
        assert_eq!(found["gen_ai.memory.record.count"]["intValue"], "3");
        assert_eq!((found.len(), &found["error.type"]["stringValue"]), (4, &json!("timeout")));
    }
}

#[test]
fn metrics_are_those_of_the_registry_with_their_instruments_and_units() {
    let mut meters = Meters::default();
    assert_eq!(meters.report(), None, "nothing was measured");
    let whole = RequestRecord { status: 200, ..record() };
    for record in [&whole, &whole, &record(), &RequestRecord { is_count: true, ..whole.clone() }] {
        meters.add(record);
    }
    let metrics = meters.report().unwrap();
    assert_eq!(meters.report(), None, "nothing is new");
    let written: Vec<String> = metrics
        .iter()
        .map(|metric| {
            let kind = if metric.get("sum").is_some() { "counter" } else { "histogram" };
            format!("{} {kind} {}", metric["name"].as_str().unwrap(), metric["unit"].as_str().unwrap())
        })
        .collect();
    let registry = registry();
    assert!(written.iter().all(|line| registry["metrics"].contains(&line.as_str())), "{written:#?}");
    assert_eq!(written.len(), 7);
    let metric = |name: &str| metrics.iter().find(|metric| metric["name"].as_str().unwrap().ends_with(name)).unwrap();
    let sum = &metric("usage.input_tokens")["sum"];
    assert_eq!((&sum["isMonotonic"], &sum["aggregationTemporality"]), (&json!(true), &json!(2)));
    assert_eq!(sum["dataPoints"].as_array().unwrap().len(), 1, "errors do not tell sums apart");
    assert_eq!(sum["dataPoints"][0]["asInt"], "30", "and what failed and was billed counts");
    assert_eq!(attributes(&sum["dataPoints"][0])["gen_ai.token.modality"]["stringValue"], "unknown");
    let durations = metric("duration")["histogram"]["dataPoints"].as_array().unwrap();
    assert_eq!(durations.len(), 2, "errors are a series of their own");
    let ended = durations.iter().find(|point| !attributes(point).contains_key("error.type")).unwrap();
    assert_eq!((&ended["count"], &ended["sum"]), (&json!("2"), &json!(0.08)));
    let buckets: Vec<&str> =
        ended["bucketCounts"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert_eq!((buckets.len(), buckets[2]), (15, "2"), "0.04 s is in the bucket that it bounds");
}

#[test]
fn names_that_clients_choose_do_not_grow_without_end() {
    let mut meters = Meters::default();
    for number in 0..1_000 {
        meters.add(&RequestRecord { model: format!("model-{number}"), ..record() });
    }
    for metric in meters.report().unwrap() {
        let data = metric.get("sum").or(metric.get("histogram")).unwrap();
        assert_eq!(data["dataPoints"].as_array().unwrap().len(), 200);
    }
}

#[test]
fn the_registry_is_read_as_it_is_written() {
    let registry = registry();
    assert_eq!(
        registry.keys().copied().collect::<Vec<_>>(),
        ["attributes", "metrics", "modalities", "operations", "providers"]
    );
    assert!(registry.values().all(|names| names.is_sorted() && !names.is_empty()));
}
