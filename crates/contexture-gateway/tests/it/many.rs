//! Many conversations that begin alike, and many gateways beside each other.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use contexture::wire::Format;
use contexture_gateway::{Gateway, Options};
use serde_json::json;
use tokio::sync::Semaphore;

use super::agent::Agent;
use super::played::{long, records, small};
use super::provider::{Provider, path_of, post};

/// Requests that are under way at the same time.
const AT_ONCE: usize = 32;

/// An agent that begins like all others and then goes its own way.
fn sibling(number: usize, rounds: usize) -> Agent {
    let mut agent = Agent::new(Format::Chat, "Please solve the task.");
    for round in 0..rounds {
        let output = format!("way {number}, round {round}: {}", "something was found there\n".repeat(200));
        agent.call(
            &format!("I try way {number}."),
            "Bash",
            json!({"command": format!("try {number} {round}")}),
            &output,
        );
    }
    agent
}

/// Sends one request of each agent, many at once.
async fn round(gateway: &Arc<Gateway>, agents: &[Agent], step: usize, has_sessions: bool) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let client = reqwest::Client::new();
    let mut sending = Vec::new();
    for (number, agent) in agents.iter().enumerate() {
        let at = agent.requests()[step];
        let mut request =
            client.post(format!("{}{}", gateway.url(), path_of(agent.format))).body(agent.request(at, false));
        if has_sessions {
            request = request.header("x-session-id", format!("session-{number}"));
        }
        let turns = turns.clone();
        sending.push(tokio::spawn(async move {
            let _turn = turns.acquire_owned().await.unwrap();
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 200);
            answer.bytes().await.unwrap();
        }));
    }
    for sent in sending {
        sent.await.unwrap();
    }
}

async fn keep_their_decisions(count: usize, has_sessions: bool, store: Option<&Path>) {
    const ROUNDS: usize = 4;
    let provider = Provider::start().await;
    provider.be_kind();
    let options = || Options { budget: Some(5_000), store: store.map(Path::to_owned), ..small() };
    let mut gateway = Arc::new(provider.gateway(options()).await);
    let agents: Vec<Agent> = (0..count).map(|number| sibling(number, ROUNDS)).collect();
    let steps = agents[0].requests().len();
    let mut noted = Vec::new();
    for step in 0..steps {
        round(&gateway, &agents, step, has_sessions).await;
        if store.is_some() && step == steps / 2 {
            // In the middle of all of them, the gateway is another one.
            noted.extend(records(&gateway, count * (step + 1)).await);
            Arc::into_inner(gateway).unwrap().stop().await;
            gateway = Arc::new(provider.gateway(options()).await);
        }
    }
    noted.extend(records(&gateway, count * steps - noted.len()).await);
    let conversations: HashSet<&str> = noted.iter().filter_map(|record| record.conversation.as_deref()).collect();
    let (least, most) = (count, count + 1);
    assert!((least..=most).contains(&conversations.len()), "{count} became {}", conversations.len());
    // Of each, no more is sent than of one that is alone.
    let alone = Provider::start().await;
    alone.be_kind();
    let single = alone.gateway(Options { store: None, ..options() }).await;
    for at in agents[0].requests() {
        post(&single, Format::Chat, agents[0].request(at, false)).await;
    }
    let sent = |provider: &Provider| provider.got().iter().map(|got| got.body.len()).sum::<usize>();
    let came: usize = agents[0].requests().iter().map(|at| agents[0].request(*at, false).len()).sum();
    assert!(sent(&alone) < came, "something was decided");
    let (all, expected) = (sent(&provider), sent(&alone) * count);
    assert!(
        all as f64 <= expected as f64 * 1.02,
        "{all} bytes were sent in place of {expected}, and {} came",
        came * count
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn very_many_conversations_that_begin_alike_keep_their_decisions() {
    keep_their_decisions(if crate::IS_LONG { 1_000 } else { 200 }, false, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_begin_alike_keep_their_decisions_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    keep_their_decisions(100, true, Some(&directory.path().join("gateway.db"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_that_begin_alike_keep_their_decisions_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    keep_their_decisions(100, false, Some(&directory.path().join("gateway.db"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_start_beside_one_that_is_busy() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("gateway.db");
    let provider = Provider::start().await;
    let options = || Options { store: Some(store.clone()), ..small() };
    let busy = Arc::new(provider.gateway(options()).await);
    let working = tokio::spawn({
        let busy = busy.clone();
        async move {
            let agent = long(Format::Chat, 6);
            loop {
                for at in agent.requests() {
                    post(&busy, agent.format, agent.request(at, false)).await;
                }
            }
        }
    });
    for n in 0..100 {
        let started = Gateway::start("127.0.0.1:0", options()).await;
        let started = started.unwrap_or_else(|error| panic!("the {n}th does not start: {error}"));
        assert_eq!(started.notes(), [] as [String; 0], "the {n}th");
        if n % 10 == 0 {
            started.stop().await;
        }
    }
    working.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_starts_while_another_program_writes_for_long() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("gateway.db");
    let provider = Provider::start().await;
    let options = || Options { store: Some(store.clone()), ..small() };
    provider.gateway(options()).await.stop().await;
    let other = rusqlite::Connection::open(&store).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let gateway = provider.gateway(options()).await;
    let agent = long(Format::Chat, 2);
    for at in agent.requests() {
        assert_eq!(post(&gateway, agent.format, agent.request(at, false)).await.0, 200);
    }
    records(&gateway, agent.requests().len()).await;
    let receipt = gateway.receipt();
    assert_eq!((receipt.late, receipt.unsaved), (agent.requests().len(), 0), "nothing is lost yet");
    other.execute_batch("ROLLBACK").unwrap();
    let receipt = gateway.end().await;
    assert_eq!((receipt.requests, receipt.late, receipt.unsaved), (agent.requests().len(), 0, 0));
    let kept = contexture_gateway::open_store(&store).unwrap().requests(None).unwrap();
    assert_eq!(kept.len(), agent.requests().len());
}
