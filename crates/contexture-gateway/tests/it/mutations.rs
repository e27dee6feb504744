//! Requests that were changed at random: nothing fails, and what is not known reaches the provider as it came.

use contexture::wire::Format;
use contexture_gateway::Options;
use serde_json::{Value, json};

use super::agent::{Agent, file_text};
use super::played::records;
use super::provider::{Provider, patient, post};

/// How many requests are tried in each format.
const TRIED: usize = if crate::IS_LONG { 250 } else { 60 };

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// A conversation with a file that was read, which is longer than what is sent of the output of an unknown tool.
fn base(format: Format) -> Value {
    let mut agent = Agent::new(format, "Please look at the module.");
    agent.call("I look at it.", "Read", json!({"file_path": "/project/src/a.rs"}), &file_text(1, 1, 300));
    agent.call("And at another.", "Read", json!({"file_path": "/project/src/b.rs"}), &file_text(2, 1, 300));
    serde_json::from_str(&agent.request(agent.steps.len(), false)).unwrap()
}

fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(values) => values.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in inner {
        let place = format!("{at}/{name}");
        found.push(place.clone());
        pointers(value, place, found);
    }
}

fn odd(numbers: &mut Numbers) -> Value {
    let all = json!([
        null, 0, -1, 1.5e308, "", [], {}, true, "\u{0}", [[]], {"a": null}, "model", {"functionResponse": {}},
        {"functionCall": {"name": null}}, {"text": null}, {"thought": true}, {"unknown": {"a": 1}}, {"type": "unknown"},
        {"role": "user"}, {"executableCode": {"code": "x"}}, {"inline_data": {"mime_type": "image/png", "data": "AAAA"}}
    ]);
    all[numbers.below(all.as_array().map_or(0, Vec::len))].clone()
}

/// Changes one place of a request.
fn change(body: &mut Value, numbers: &mut Numbers) {
    let mut places = Vec::new();
    pointers(body, String::new(), &mut places);
    let place = places[numbers.below(places.len())].clone();
    let (above, name) = place.rsplit_once('/').unwrap();
    let (kind, other) = (numbers.below(5), odd(numbers));
    match body.pointer_mut(above) {
        Some(Value::Object(fields)) => match kind {
            0 | 1 => drop(fields.insert(name.to_owned(), other)),
            2 => drop(fields.remove(name)),
            3 => drop(fields.insert(format!("other_{name}"), other)),
            _ => {
                let value = fields.remove(name).unwrap_or_default();
                fields.insert(name.to_uppercase(), value);
            }
        },
        Some(Value::Array(values)) => {
            let at: usize = name.parse().unwrap();
            match kind {
                0 | 1 => values[at] = other,
                2 => drop(values.remove(at)),
                3 => values.insert(at, other),
                _ => values.insert(at, values[at].clone()),
            }
        }
        _ => {}
    }
}

/// Nothing is changed without a decision that the receipt tells of.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_unknown_reaches_the_provider_as_it_came() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        provider.be_kind();
        let gateway = provider.gateway(Options { budget: Some(100_000), ..patient() }).await;
        let mut numbers = Numbers(format as u64 + 29);
        let mut changed = 0;
        for number in 0..TRIED {
            let mut body = base(format);
            for _ in 0..[1, 1, 2, 5][numbers.below(4)] {
                change(&mut body, &mut numbers);
            }
            let text = body.to_string();
            let (status, answer) = post(&gateway, format, text.clone()).await;
            assert_eq!(status, 200, "{format:?} {number}: {answer}");
            let sent = provider.last().body;
            let record = records(&gateway, number + 1).await.swap_remove(number);
            let is_told = sent == text || !record.decided.is_empty();
            assert!(is_told, "{format:?} {number}:\n{}", first_difference(&text, &sent));
            changed += usize::from(sent != text);
        }
        assert!(changed < TRIED / 10, "{format:?}: {changed} of {TRIED}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_a_call_without_a_name_is_sent_whole() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        provider.be_kind();
        let gateway = provider.gateway(patient()).await;
        let body = base(format).to_string();
        let (named, call) = ("\"name\":\"Read\"", body.find("file_path").unwrap());
        // The name of a call is beside its arguments.
        let at = [body[..call].rfind(named), body[call..].find(named).map(|at| at + call)];
        let at = at.into_iter().flatten().min_by_key(|at| at.abs_diff(call)).unwrap();
        for other in ["\"other\":1", "\"name\":true", "\"name\":\"\""] {
            let text = format!("{}{other}{}", &body[..at], &body[at + named.len()..]);
            let (status, answer) = post(&gateway, format, text.clone()).await;
            assert_eq!(status, 200, "{format:?}: {answer}");
            assert!(provider.last().body == text, "{format:?}: {}", first_difference(&text, &provider.last().body));
        }
    }
}

fn first_difference(one: &str, two: &str) -> String {
    let at = one.bytes().zip(two.bytes()).position(|(one, two)| one != two).unwrap_or(0);
    let near = |text: &str| {
        let around = at.saturating_sub(300)..text.len().min(at + 300);
        String::from_utf8_lossy(&text.as_bytes()[around]).into_owned()
    };
    format!("{}\n--- was sent as\n{}", near(one), near(two))
}
