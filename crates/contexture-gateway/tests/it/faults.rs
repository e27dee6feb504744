//! Whatever goes wrong, the agent goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use contexture::tokens::{Estimate, TokenCounter};
use contexture::wire::Format;
use contexture_gateway::Options;

use super::agent::Agent;
use super::played::{digests, long, play_some, records, small};
use super::provider::{Fault, Provider, patient, post};
use contexture_gateway::testing::rules;

/// A counter that breaks when it is told to.
#[derive(Default)]
struct Breaking(AtomicBool);

impl TokenCounter for Breaking {
    fn name(&self) -> &str {
        "breaking"
    }

    fn count(&self, text: &str) -> u64 {
        assert!(!self.0.load(Ordering::SeqCst), "the counter was told to break");
        Estimate.count(text)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_inside_leaves_what_was_decided_before() {
    let provider = Provider::start().await;
    let counter = Arc::new(Breaking::default());
    let gateway = provider.gateway(Options { counter: counter.clone(), ..small() }).await;
    let agent = long(Format::Messages, 16);
    let requests = agent.requests();
    let (first, second) = requests.split_at(requests.len() - 6);
    let sent = play_some(&gateway, &provider, &agent, first).await;
    counter.0.store(true, Ordering::SeqCst);
    let later = play_some(&gateway, &provider, &agent, second).await;
    let start =
        sent.last().unwrap().split("],\"metadata\"").next().unwrap().replace("\"stream\":true", "\"stream\":false");
    // Marks move, so the prefix is compared without them.
    let plain = |body: &str| {
        body.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
            .replace("{\"cache_control\":{\"type\":\"ephemeral\"},", "{")
            .replace("\"stream\":true", "\"stream\":false")
    };
    for body in &later {
        rules::check(agent.format, body).unwrap();
        assert!(plain(body).starts_with(&plain(&start)), "what was decided before is sent again");
    }
    let records = records(&gateway, requests.len()).await;
    assert!(
        records.last().unwrap().passed.as_deref().is_some_and(|why| why.contains("went wrong")),
        "{:?}",
        records.last().unwrap().passed
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn with_no_time_nothing_new_is_decided_and_nothing_is_lost() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { own_work: Duration::ZERO, ..small() }).await;
    let agent = long(Format::Chat, 8);
    for at in agent.requests() {
        let (status, _) = post(&gateway, agent.format, agent.request(at, false)).await;
        assert_eq!(status, 200);
        rules::check(agent.format, &provider.last().body).unwrap();
    }
}

/// A counter that takes long for as long as it is told to.
#[derive(Default)]
struct Slow(AtomicBool);

impl TokenCounter for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn count(&self, text: &str) -> u64 {
        if self.0.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        Estimate.count(text)
    }
}

/// A counter that takes longer than anybody waits, for as long as it is told to.
#[derive(Default)]
struct Stuck(AtomicBool);

impl TokenCounter for Stuck {
    fn name(&self) -> &str {
        "stuck"
    }

    fn count(&self, text: &str) -> u64 {
        if self.0.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(900));
        }
        Estimate.count(text)
    }
}

/// The budget is a bound: what cannot be decided in time is folded without views.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn far_above_the_budget_the_newest_and_what_people_said_is_sent_if_deciding_takes_too_long() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let counter = Arc::new(Stuck::default());
        let options = Options { counter: counter.clone(), own_work: Duration::from_millis(60), ..small() };
        let gateway = provider.gateway(options).await;
        let mut agent = Agent::new(format, "Please find out why the build is slow.");
        let output: String = (0..6_000).map(|n| format!("a line of the log with the number {n}\n")).collect();
        counter.0.store(true, Ordering::SeqCst);
        let mut sent = Vec::new();
        for round in 0..3 {
            agent.call("I look.", "Bash", serde_json::json!({"command": "cat log"}), &output);
            agent.call("I look again.", "Bash", serde_json::json!({"command": "cat log"}), &output);
            agent.say(&format!("And what of part {round}?"));
            let (status, answer) = post(&gateway, format, agent.request(agent.steps.len(), false)).await;
            assert_eq!(status, 200, "{format:?}: {answer}");
            sent.push(provider.last().body);
        }
        counter.0.store(false, Ordering::SeqCst);
        let most = 16_000 * 4 * 3 / 2;
        for (round, body) in sent.iter().enumerate() {
            assert!(body.len() < most, "{format:?}, round {round}: {} bytes", body.len());
            assert!(body.contains("why the build is slow") && body.contains(&format!("And what of part {round}?")));
        }
        let record = records(&gateway, 1).await.remove(0);
        assert!(record.passed.as_deref().is_some_and(|why| why.contains("far above its budget")), "{record:?}");
        assert_eq!(provider.refused(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn requests_that_are_decided_out_of_order_do_not_end_folding() {
    let provider = Provider::start().await;
    let counter = Arc::new(Slow::default());
    let options = Options { counter: counter.clone(), own_work: Duration::from_millis(30), ..small() };
    let gateway = provider.gateway(options).await;
    let agent = long(Format::Messages, 10);
    let requests = agent.requests();
    let (first, second) = requests.split_at(requests.len() - 4);
    counter.0.store(true, Ordering::SeqCst);
    // The client goes on with what was decided before, so deciding falls behind by several requests.
    play_some(&gateway, &provider, &agent, first).await;
    counter.0.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(500)).await;
    for at in second {
        assert_eq!(post(&gateway, agent.format, agent.request(*at, false)).await.0, 200);
        rules::check(agent.format, &provider.last().body).unwrap();
    }
    let records = records(&gateway, requests.len()).await;
    let ended = records.iter().filter_map(|record| record.passed.as_deref()).find(|why| why.contains("nothing more"));
    assert_eq!(ended, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewritten_request_that_is_refused_is_sent_once_without_the_fold_and_a_second_refusal_ends_folding() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Messages, 16);
    provider.set_fault(Some(Fault { status: 400, headers: Vec::new(), body: "no", only_with: Some(FOLDED) }));
    let mut refused = 0;
    for at in agent.requests() {
        let before = provider.got().len();
        let body = agent.request(at, false);
        let (status, _) = post(&gateway, agent.format, body.clone()).await;
        assert_eq!(status, 200);
        let got = provider.got();
        if got.len() == before + 2 {
            refused += 1;
            assert!(!got.last().unwrap().body.contains(FOLDED), "it was sent without the fold");
        }
    }
    assert_eq!(refused, 2, "nothing is folded in this conversation after that");
    let records = records(&gateway, agent.requests().len()).await;
    assert!(records.iter().any(|record| record.passed.as_deref().is_some_and(|why| why.contains("refused"))));
}

/// A block that nobody knows must stay, says the provider. What it had accepted is what it gets then, from its cache.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_refusal_what_was_accepted_before_is_sent_and_folding_goes_on_beside_that_kind_of_block() {
    for format in [Format::Messages, Format::Responses] {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let agent = long(format, 24);
        let (mut retried, mut before) = (Vec::new(), String::new());
        for at in agent.requests() {
            let mut body: serde_json::Value = serde_json::from_str(&agent.request(at, false)).unwrap();
            let list = if format == Format::Messages { "messages" } else { "input" };
            let messages = body[list].as_array_mut().unwrap();
            if messages.len() > 30 {
                let block = serde_json::json!({"type": "of_tomorrow", "id": "t1"});
                match format {
                    Format::Messages => messages[30]["content"].as_array_mut().unwrap().push(block),
                    _ => messages.insert(30, block),
                }
                provider.require("of_tomorrow");
            }
            let count = provider.got().len();
            let (status, answer) = post(&gateway, format, body.to_string()).await;
            assert_eq!(status, 200, "{answer}");
            let sent = provider.last().body;
            if provider.got().len() == count + 2 {
                let came = body.to_string();
                assert!(sent.len() < came.len(), "{format:?}: what was accepted before is not the whole");
                assert!(digests(format, &sent).starts_with(&digests(format, &before)), "{format:?}");
                retried.push(at);
            }
            before = sent;
        }
        assert_eq!((retried.len(), provider.refused().len()), (1, 1), "{format:?}: {:?}", provider.refused());
        let records = records(&gateway, agent.requests().len()).await;
        let why = |record: &contexture_gateway::RequestRecord| record.passed.clone().unwrap_or_default();
        let refused = records.iter().position(|record| why(record).contains("refused the newest fold")).unwrap();
        let folds = records[refused + 1..].iter().flat_map(|record| &record.decided).filter(|note| note.is_fold());
        assert!(folds.count() > 0, "{format:?}: folding goes on");
        assert!(before.len() < 16_000 * 6, "{format:?}: {} bytes", before.len());
    }
}

/// What only a rewritten request has.
const FOLDED: &str = "[Contexture's note: `[";

/// What a provider says to every request, or only to those that were rewritten.
fn refusing(only_with: Option<&'static str>) -> Fault {
    let body =
        r#"{"type":"error","error":{"message":"role 'system' is not supported on this model"},"request_id":"1"}"#;
    Fault { status: 400, headers: Vec::new(), body, only_with }
}

/// A conversation, what is sent of it if nothing is refused, and the first request of it that is folded because that
/// pays.
async fn undisturbed() -> (Agent, Vec<String>, usize) {
    let agent = long(Format::Messages, 36);
    let provider = Provider::start().await;
    let sent = play_some(&provider.gateway(patient()).await, &provider, &agent, &agent.requests()).await;
    let folded = sent.iter().position(|body| body.contains(FOLDED)).expect("something is folded");
    (agent, sent, folded)
}

/// Agents send what a model does not take, are refused, and go on without it. That is no reason to fold less.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_what_came_changes_no_decision() {
    let (agent, sent, folded) = undisturbed().await;
    let requests = agent.requests();
    // The first request; the one that is folded; and a later one. The last two are refused in both forms.
    for refused in [0, folded, folded + 3] {
        let provider = Provider::start().await;
        let gateway = provider.gateway(patient()).await;
        let (first, second) = requests.split_at(refused);
        play_some(&gateway, &provider, &agent, first).await;
        provider.set_fault(Some(refusing(None)));
        assert_eq!(post(&gateway, agent.format, agent.request(second[0], refused % 2 == 0)).await.0, 400);
        provider.set_fault(None);
        for (n, at) in (refused..).zip(second) {
            let (status, answer) = post(&gateway, agent.format, agent.request(*at, n % 2 == 0)).await;
            assert_eq!(status, 200, "{answer}");
            assert!(provider.last().body == sent[n], "request {n} after a refusal of {refused}");
        }
    }
}

/// The provider may have refused it because it was rewritten, and as it came for another reason.
#[tokio::test(flavor = "multi_thread")]
async fn after_different_refusals_only_what_is_necessary_is_folded() {
    let (agent, sent, folded) = undisturbed().await;
    let requests = agent.requests();
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    let (first, second) = requests.split_at(folded);
    play_some(&gateway, &provider, &agent, first).await;
    provider.set_fault(Some(refusing(Some(FOLDED))));
    // So small that nobody believes it.
    provider.set_window(999);
    assert_eq!(post(&gateway, agent.format, agent.request(second[0], false)).await.0, 400);
    assert_eq!(provider.got().len(), folded + 3, "it was sent in all forms");
    provider.set_fault(None);
    provider.set_window(u64::MAX);
    let said = records(&gateway, folded + 1).await[folded].passed.clone();
    assert!(said.is_some_and(|why| why.ends_with("did not accept it as it came")));
    for body in play_some(&gateway, &provider, &agent, second).await {
        assert!(!body.contains(FOLDED));
    }
    assert!(sent.last().is_some_and(|body| body.contains(FOLDED)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_understood_passes_and_says_why() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let bodies = [
        (Format::Messages, "{", "not written as expected"),
        (Format::Messages, r#"{"model":"m"}"#, "no list `messages`"),
        (Format::Chat, r#"{"messages":[],"messages":[]}"#, "there twice"),
        (Format::Responses, r#"{"input":"just a text"}"#, "no list `input`"),
        (Format::Responses, r#"{"input":[{"role":"of_the_future","content":"x"}]}"#, "of_the_future"),
        (Format::Chat, r#"{"messages":[{"role":"alien","content":"x"}]}"#, "alien"),
    ];
    for (n, (format, body, why)) in bodies.into_iter().enumerate() {
        provider.set_fault(Some(Fault { status: 400, headers: Vec::new(), body: "what?", only_with: None }));
        let (status, answer) = post(&gateway, format, body.to_owned()).await;
        assert_eq!((status, answer.as_str(), provider.last().body.as_str()), (400, "what?", body));
        let records = records(&gateway, n + 1).await;
        let passed = records[n].passed.clone().unwrap_or_default();
        assert!(passed.contains(why), "{passed:?} does not say {why:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_refuses_all_rewritten_requests_gets_each_request_once() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let agent = long(format, 16);
        let requests = agent.requests();
        let (first, second) = requests.split_at(requests.len() - 8);
        play_some(&gateway, &provider, &agent, first).await;
        // From now on, what was folded before is refused too.
        let only_with = Some(FOLDED);
        provider.set_fault(Some(Fault { status: 400, headers: Vec::new(), body: "no", only_with }));
        let mut counts = Vec::new();
        for at in second {
            let before = provider.got().len();
            assert_eq!(post(&gateway, format, agent.request(*at, false)).await.0, 200);
            counts.push(provider.got().len() - before);
        }
        // The second one is folded anew, so what was accepted before is tried as well.
        assert_eq!(counts, [2, 3, 1, 1, 1, 1, 1, 1], "{format:?}");
        let records = records(&gateway, requests.len()).await;
        let last = records.last().unwrap().passed.clone().unwrap();
        assert!(last.starts_with("passed through from here on"), "{last}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_because_deciding_takes_long_is_sent_again_by_another_gateway() {
    for format in Format::ALL {
        let directory = tempfile::tempdir().unwrap();
        let provider = Provider::start().await;
        let options = || Options { store: Some(directory.path().join("gateway.db")), ..small() };
        let agent = long(format, 8);
        let counter = Arc::new(Slow::default());
        let own_work = Duration::from_millis(30);
        let slow = provider.gateway(Options { counter: counter.clone(), own_work, ..options() }).await;
        counter.0.store(true, Ordering::SeqCst);
        let other = provider.gateway(options()).await;
        let (mut late, mut compared) = (0, 0);
        for (n, at) in agent.requests().into_iter().enumerate() {
            let body = agent.request(at, false);
            post(&slow, format, body.clone()).await;
            let sent = provider.last().body;
            // Whether what was sent is in the store is known once there is a record; without that the other one cannot have it.
            let record = records(&slow, n + 1).await.pop().unwrap();
            // The first gateway may still be deciding.
            post(&other, format, body).await;
            late += usize::from(record.passed.is_some());
            // Both write to one file, and a busy machine may make one of them give up.
            if !record.is_unsaved {
                compared += 1;
                assert_eq!(provider.last().body, sent, "{format:?}, request {n}: {:?}", record.passed);
            }
        }
        assert!(late > 0 && compared > agent.requests().len() / 2, "{format:?}: {late} late, {compared} compared");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_could_not_be_written_are_written_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { store: Some(path.clone()), ..small() }).await;
    let agent = long(Format::Chat, 3);
    let requests = agent.requests();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    play_some(&gateway, &provider, &agent, &requests[..4]).await;
    let locked = records(&gateway, 4).await;
    assert!(locked.iter().all(|record| record.is_unsaved));
    other.execute_batch("ROLLBACK").unwrap();
    play_some(&gateway, &provider, &agent, &requests[4..]).await;
    gateway.stop().await;
    let kept = contexture_gateway::open_store(&path).unwrap().requests(None).unwrap();
    assert_eq!(kept.len(), requests.len());
    let times: Vec<u64> = kept.iter().map(|record| record.time_ms).collect();
    assert!(times.is_sorted(), "in order: {times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_damaged_is_told_and_one_that_is_locked_does_not_stop_requests() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    std::fs::write(&path, "this is no database, but long enough to be taken for one".repeat(100)).unwrap();
    assert!(contexture_gateway::open_store(&path).is_err());
    std::fs::remove_file(&path).unwrap();
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { store: Some(path.clone()), ..small() }).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let agent = long(Format::Chat, 3);
    for at in agent.requests() {
        let (status, _) = post(&gateway, agent.format, agent.request(at, false)).await;
        assert_eq!(status, 200);
    }
}
