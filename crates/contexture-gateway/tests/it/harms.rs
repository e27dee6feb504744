//! Signals of harm: planted, they rise beside the held-out group's, also over two runs of a gateway.

use contexture::wire::Format;
use contexture_gateway::report::compare::{compare, conversation_sums};
use contexture_gateway::{Gateway, Options, RequestRecord, open_store};
use serde_json::json;

use super::agent::{Agent, file_text, numbered};
use super::played::{long, small};
use super::provider::{Provider, path_of};

/// The line that the agent needs of a file that it read at the beginning.
const NEEDED: &str = "THE ONLY LINE THAT MATTERS: 4711";

/// An agent that looks whether it still sees what it needs, and reads it again if it does not. It never sees it in a
/// window that was rewritten, as if the fold had dropped the file.
struct Needy<'a> {
    gateway: &'a Gateway,
    provider: &'a Provider,
    session: String,
}

impl Needy<'_> {
    async fn send(&self, agent: &Agent) {
        let client = reqwest::Client::new();
        let answer = client
            .post(format!("{}{}", self.gateway.url(), path_of(agent.format)))
            .header("x-claude-code-session-id", &self.session)
            .body(agent.request(agent.steps.len(), false))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        answer.bytes().await.unwrap();
    }

    async fn work(&self, name: usize) {
        let mut agent = Agent::new(Format::Messages, &format!("Task {name}: please bring all modules up to date."));
        let needed = numbered(&format!("{NEEDED}\n{}", file_text(90, 0, 30)));
        let read =
            |agent: &mut Agent| agent.call("I look.", "Read", json!({"file_path": "/project/needed.rs"}), &needed);
        self.send(&agent).await;
        read(&mut agent);
        self.send(&agent).await;
        for round in 0..9 {
            agent.work(round);
            self.send(&agent).await;
            let sent = self.provider.last().body;
            let is_rewritten = sent.len() < agent.request(agent.steps.len(), false).len() * 9 / 10;
            if !sent.contains(NEEDED) || is_rewritten {
                read(&mut agent);
                self.send(&agent).await;
            }
        }
    }
}

/// Works through many conversations, of which half are held out. Returns the records.
async fn many() -> Vec<RequestRecord> {
    let provider = Provider::start().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    let options = || Options { store: Some(path.clone()), holdout: 0.5, ..small() };
    for part in 0..2 {
        let gateway = provider.gateway(options()).await;
        for name in part * 9..part * 9 + 9 {
            let session = format!("session {name}");
            Needy { gateway: &gateway, provider: &provider, session }.work(name).await;
        }
        gateway.end().await;
    }
    open_store(&path).unwrap().requests(None).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_harm_makes_the_signals_rise() {
    let records = many().await;
    let sums = conversation_sums(&records);
    let groups = |is_held_out: bool| sums.iter().filter(|sums| sums.is_held_out == is_held_out).collect::<Vec<_>>();
    let (folded, held_out) = (groups(false), groups(true));
    assert!(folded.len() >= 5 && held_out.len() >= 5, "{} and {}", folded.len(), held_out.len());
    assert!(held_out.iter().all(|sums| sums.signals.repeated_reads == 0), "nothing is missing where nothing is folded");
    assert!(folded.iter().all(|sums| sums.signals.reads_after_fold > 0), "{folded:?}");
    let told: Vec<_> = records.iter().filter(|record| record.is_held_out.is_none()).collect();
    assert!(told.is_empty(), "every record says in which group it is");
    let comparison = compare(&sums);
    let reads = comparison.measures.iter().find(|measure| measure.name == "repeated reads a turn").unwrap();
    assert!(reads.folded.low > reads.held_out.high, "{reads:?}");
    let tokens = comparison.measures.iter().find(|measure| measure.name == "tokens a request").unwrap();
    assert!(tokens.difference.unwrap().high < 0.0, "{tokens:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_held_out_group_signals_are_only_shown() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    for name in 0..7 {
        let session = format!("session {name}");
        Needy { gateway: &gateway, provider: &provider, session }.work(name).await;
    }
    let receipt = gateway.end().await;
    assert!(receipt.signals.reads_after_fold > 0 && receipt.held_out == 0, "{:?}", receipt.signals);
    assert!(receipt.notes.is_empty(), "{:?}", receipt.notes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_of_any_format_is_followed() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(Options { holdout: 1.0, ..small() }).await;
        let mut agent = long(format, 2);
        agent.say("No, please keep the names of all functions as they are.");
        agent.call("I look.", "Read", json!({"file_path": "/project/src/module_5.rs"}), "1→text");
        agent.call("I look.", "Read", json!({"file_path": "/project/src/module_5.rs"}), "1→text");
        let edit = json!({"file_path": "/project/src/module_5.rs", "old_string": "a", "new_string": "b"});
        agent.call(
            "I change it.",
            "Edit",
            edit,
            "<tool_use_error>String to replace not found in file.</tool_use_error>",
        );
        let body = agent.request(agent.steps.len(), false);
        assert_eq!(super::provider::post(&gateway, format, body).await.0, 200);
        let receipt = gateway.end().await;
        let signals = receipt.held_out_signals;
        assert_eq!(
            (signals.turns, signals.noes, signals.repeated_reads, signals.failed_edits),
            (2, 1, 1, 1),
            "{format:?}"
        );
        assert_eq!(receipt.held_out, 1);
    }
}
