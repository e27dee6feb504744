//! Long conversations, played through a gateway.

use contexture::wire::{Digest, Format, digest};
use contexture_gateway::{Gateway, Options, RequestRecord};
use serde_json::Value;

use super::agent::Agent;
use super::provider::{Provider, patient, post};

/// A conversation in which something is folded.
pub fn long(format: Format, rounds: usize) -> Agent {
    let mut agent = Agent::new(format, "Please bring all modules to the newest version.");
    for round in 0..rounds {
        agent.work(round);
        if round % 8 == 7 {
            agent.say(&format!("Good. Now the next part, number {round}: keep the names as they are."));
        }
    }
    agent
}

pub fn small() -> Options {
    Options { budget: Some(16_000), ..patient() }
}

/// Plays a conversation; returns what was sent.
pub async fn play(gateway: &Gateway, provider: &Provider, agent: &Agent) -> Vec<String> {
    play_some(gateway, provider, agent, &agent.requests()).await
}

pub async fn play_some(gateway: &Gateway, provider: &Provider, agent: &Agent, requests: &[usize]) -> Vec<String> {
    let mut sent = Vec::new();
    for (n, at) in requests.iter().enumerate() {
        let (status, answer) = post(gateway, agent.format, agent.request(*at, n % 2 == 0)).await;
        assert_eq!(status, 200, "{answer}");
        sent.push(provider.last().body);
    }
    sent
}

/// The records of a gateway once all of them are there.
pub async fn records(gateway: &Gateway, count: usize) -> Vec<RequestRecord> {
    for _ in 0..500 {
        let records = gateway.records();
        if records.len() >= count {
            return records;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{count} records are not there: {}", gateway.records().len());
}

/// The messages of a request.
pub fn messages_of(body: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(body).unwrap();
    let lists = ["messages", "input", "contents"].map(|name| body[name].as_array().cloned());
    lists.into_iter().flatten().next().unwrap()
}

/// The digests of the messages of a request.
pub fn digests(format: Format, body: &str) -> Vec<Digest> {
    messages_of(body).iter().map(|message| digest(format, &message.to_string()).unwrap()).collect()
}
