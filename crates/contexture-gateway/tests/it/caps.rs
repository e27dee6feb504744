//! Caps: how much may be spent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contexture::clock::Clock;
use contexture::wire::Format;
use contexture_gateway::account::cap::{Cap, CapAmounts};
use contexture_gateway::{Gateway, Options};
use serde_json::Value;

use super::agent::Agent;
use super::played::{long, records, small};
use super::provider::{Provider, path_of, post};

/// A clock that shows what it is told, in seconds.
#[derive(Default)]
struct Told(AtomicU64);

impl Clock for Told {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, _: Duration) -> contexture::BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

fn day_tokens(tokens: u64) -> Cap {
    Cap { day: CapAmounts { dollars: None, tokens: Some(tokens) }, ..Cap::default() }
}

/// Asks with so many requests of a conversation. Returns what was said.
async fn ask(gateway: &Gateway, agent: &Agent, requests: usize) -> Vec<(u16, String)> {
    let mut said = Vec::new();
    for at in agent.requests().into_iter().take(requests) {
        said.push(post(gateway, agent.format, agent.request(at, false)).await);
    }
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_cap_requests_are_refused_in_the_form_of_the_provider() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(Options { cap: day_tokens(1), ..small() }).await;
        let agent = long(format, 2);
        let said = ask(&gateway, &agent, 3).await;
        // The first is answered whole: it was sent when nothing was spent.
        assert_eq!(said.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [200, 403, 403], "{format:?}");
        assert_eq!(provider.got().len(), 1, "what is refused costs nothing");
        let error: Value = serde_json::from_str(&said[1].1).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("--cap-day-tokens") && message.contains("[gateway.cap]"), "{message}");
        match format {
            Format::Messages => {
                assert_eq!((&error["type"], &error["error"]["type"]), (&"error".into(), &"permission_error".into()));
            }
            Format::Gemini => {
                assert_eq!(
                    (&error["error"]["code"], &error["error"]["status"]),
                    (&403.into(), &"PERMISSION_DENIED".into())
                );
            }
            _ => assert!(error["error"]["type"].is_string() && error["error"].get("code").is_some(), "{error}"),
        }
        let receipt = gateway.end().await;
        let used = receipt.cap.unwrap();
        assert_eq!((used.refused, receipt.failed.get(&403)), (2, Some(&2)));
        assert!(used.day_spent.tokens > 1 && !used.is_day_incomplete, "{used:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_costs_nothing_passes_at_the_cap_and_a_large_request_reads_the_sentence() {
    let provider = Provider::start().await;
    provider.set_list(r#"{"data": []}"#);
    let gateway = provider.gateway(Options { cap: day_tokens(0), ..small() }).await;
    let client = reqwest::Client::new();
    let models = client.get(format!("{}/v1/models", gateway.url())).send().await.unwrap();
    assert_eq!(models.status().as_u16(), 200);
    let body = long(Format::Messages, 1).request(1, false);
    let count = client.post(format!("{}/v1/messages/count_tokens", gateway.url())).body(body);
    assert_eq!(count.send().await.unwrap().status().as_u16(), 200);
    let large = "x".repeat(8 << 20);
    for path in ["/v1/messages", "/v1/embeddings", "/model/anthropic.claude/invoke"] {
        let answer = client.post(format!("{}{path}", gateway.url())).body(large.clone()).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 403, "{path}");
        assert_eq!(answer.headers()["x-should-retry"], "false");
        assert!(answer.text().await.unwrap().contains("the cap of 0 tokens for a day is reached"), "{path}");
    }
    assert_eq!(provider.got().len(), 2, "the list and the count");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_day_goes_on_after_a_restart_and_in_other_gateways_and_ends_at_midnight() {
    let provider = Provider::start().await;
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(Told::default());
    clock.0.store(20_000 * 86_400 + 80_000, Ordering::SeqCst);
    let options = |tokens| Options {
        store: Some(directory.path().join("gateway.db")),
        cap: day_tokens(tokens),
        clock: clock.clone(),
        ..small()
    };
    let agent = long(Format::Chat, 2);
    let gateway = provider.gateway(options(1_000_000)).await;
    assert_eq!(ask(&gateway, &agent, 2).await[1].0, 200);
    let spent = gateway.end().await.cap.unwrap().day_spent.tokens;
    assert!(spent > 0);
    let other = provider.gateway(options(spent)).await;
    assert_eq!(ask(&other, &agent, 1).await[0].0, 403, "the sum of the day is that of all runs");
    let used = other.receipt().cap.unwrap();
    assert_eq!((used.day_spent.tokens, used.refused), (spent, 1));
    clock.0.store(20_001 * 86_400, Ordering::SeqCst);
    assert_eq!(ask(&other, &agent, 1).await[0].0, 200, "it is another day");
    other.stop().await;
    let raised = provider.gateway(options(spent * 10)).await;
    assert_eq!(ask(&raised, &agent, 1).await[0].0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_has_a_cap_of_its_own_which_its_branches_share() {
    let provider = Provider::start().await;
    let directory = tempfile::tempdir().unwrap();
    let options = |dollars| Options {
        store: Some(directory.path().join("gateway.db")),
        cap: Cap { conversation: CapAmounts { dollars, tokens: None }, ..Cap::default() },
        ..small()
    };
    let (one, other) = (long(Format::Messages, 3), Agent::new(Format::Messages, "Something else entirely."));
    let gateway = provider.gateway(options(Some(1e9))).await;
    ask(&gateway, &one, 6).await;
    let used = gateway.end().await.cap.unwrap();
    let spent = used.conversation_spent.dollars;
    assert!(spent > 0.0 && !used.conversation_spent.is_guessed, "{used:?}");
    let gateway = provider.gateway(options(Some(spent))).await;
    let refused = post(&gateway, one.format, one.request(one.requests()[6], false)).await;
    assert_eq!(refused.0, 403, "{}", refused.1);
    assert!(refused.1.contains("--cap-conversation-dollars"), "{}", refused.1);
    // A client that goes back and on from there has spent it all the same.
    let mut branch = one.clone();
    branch.steps.truncate(one.requests()[5]);
    branch.say("No, otherwise.");
    assert_eq!(post(&gateway, one.format, branch.request(branch.steps.len(), false)).await.0, 403);
    assert_eq!(ask(&gateway, &other, 1).await[0].0, 200, "another conversation has spent nothing");
    let noted = records(&gateway, 3).await;
    assert!(noted[0].conversation.is_some() && noted[0].status == 403 && noted[0].decided.is_empty(), "{noted:?}");
    gateway.stop().await;
    // Once it is raised, it goes on as if nothing had been.
    let raised = provider.gateway(options(Some(spent * 100.0))).await;
    assert_eq!(post(&raised, one.format, one.request(one.requests()[6], false)).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_that_are_guessed_or_missing_are_said() {
    let provider = Provider::start().await;
    let dollars = |cap| Cap { day: CapAmounts { dollars: Some(cap), tokens: None }, ..Cap::default() };
    let gateway = provider.gateway(Options { cap: dollars(1e-9), ..small() }).await;
    let client = reqwest::Client::new();
    let ask = |model: &str| {
        let body =
            serde_json::json!({"model": model, "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]});
        client.post(format!("{}{}", gateway.url(), path_of(Format::Messages))).body(body.to_string()).send()
    };
    assert_eq!(ask("nobody-knows-me").await.unwrap().status().as_u16(), 200);
    records(&gateway, 1).await;
    let used = gateway.receipt().cap.unwrap();
    assert_eq!((used.day_spent.unpriced, used.day_spent.dollars), (1, 0.0));
    assert_eq!(ask("claude-sonnet-99-9").await.unwrap().status().as_u16(), 200);
    records(&gateway, 2).await;
    let refused = ask("claude-sonnet-99-9").await.unwrap();
    assert_eq!(refused.status().as_u16(), 403);
    assert!(refused.text().await.unwrap().contains("by guessed prices"));
}
