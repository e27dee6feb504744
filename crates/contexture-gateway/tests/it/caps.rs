//! Caps: how much may be spent.

use std::path::{Path, PathBuf};
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
use super::provider::{Fault, Provider, path_of, post};
use super::two_gateways::server;

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
        assert!(message.contains("--cap Ntokens/day") && message.contains("[gateway.cap]"), "{message}");
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
    let directory = tempfile::tempdir().unwrap();
    the_day_goes_on(&directory.path().join("gateway.db")).await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_day_is_that_of_all_machines() {
    let Some(server) = server::Server::start() else { return };
    the_day_goes_on(&PathBuf::from(server.url(&server.make_database()))).await;
}

async fn the_day_goes_on(store: &Path) {
    let provider = Provider::start().await;
    let clock = Arc::new(Told::default());
    clock.0.store(20_000 * 86_400 + 80_000, Ordering::SeqCst);
    let options =
        |tokens| Options { store: Some(store.to_owned()), cap: day_tokens(tokens), clock: clock.clone(), ..small() };
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
    assert!(refused.1.contains("--cap N$/conversation"), "{}", refused.1);
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

/// A request of a conversation of its own.
fn question(number: usize) -> String {
    let text = format!("Question {number}: {}", "what is this line about? ".repeat(400));
    let message = serde_json::json!({"role": "user", "content": text});
    serde_json::json!({"model": "claude-sonnet-4-5", "max_tokens": 5, "messages": [message]}).to_string()
}

/// Asks with all bodies at the same time. Returns how many were sent and how many were refused.
async fn ask_at_once(gateway: Gateway, bodies: Vec<String>) -> (usize, usize) {
    let gateway = Arc::new(gateway);
    let asking = bodies.into_iter().map(|body| {
        let gateway = gateway.clone();
        tokio::spawn(async move { post(&gateway, Format::Messages, body).await.0 })
    });
    let (mut sent, mut refused) = (0, 0);
    for asked in asking.collect::<Vec<_>>() {
        match asked.await.unwrap() {
            200 => sent += 1,
            403 => refused += 1,
            other => panic!("status {other}"),
        }
    }
    (sent, refused)
}

/// Fifty clients that ask at the same time do not spend fifty times what one may.
#[tokio::test(flavor = "multi_thread")]
async fn requests_at_the_same_time_do_not_pass_the_cap_of_a_day_together() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { cap: day_tokens(u64::MAX), ..small() }).await;
    assert_eq!(post(&gateway, Format::Messages, question(0)).await.0, 200);
    let one = gateway.end().await.cap.unwrap().day_spent.tokens;
    let gateway = provider.gateway(Options { cap: day_tokens(one * 5), ..small() }).await;
    let (sent, refused) = ask_at_once(gateway, (1..=50).map(question).collect()).await;
    assert_eq!((sent + refused, provider.got().len()), (50, sent + 1), "what is refused is not sent");
    // Our count of what is under way is not the provider's.
    assert!((4..=10).contains(&sent), "five have room, and {sent} were sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_at_the_same_time_do_not_pass_the_cap_of_their_conversation_together() {
    let (provider, agent) = (Provider::start().await, long(Format::Messages, 2));
    let tokens = |tokens| Cap { conversation: CapAmounts { dollars: None, tokens: Some(tokens) }, ..Cap::default() };
    let mut spent = Vec::new();
    for requests in 1..=2 {
        let gateway = provider.gateway(Options { cap: tokens(u64::MAX), ..small() }).await;
        ask(&gateway, &agent, requests).await;
        spent.push(gateway.end().await.cap.unwrap().conversation_spent.tokens);
    }
    let gateway = provider.gateway(Options { cap: tokens(spent[0] + 5 * (spent[1] - spent[0])), ..small() }).await;
    ask(&gateway, &agent, 1).await;
    let (sent, refused) = ask_at_once(gateway, vec![agent.request(agent.requests()[1], false); 50]).await;
    assert_eq!(sent + refused, 50);
    assert!((4..=10).contains(&sent), "five have room, and {sent} were sent");
}

/// A provider with a response that goes on until it is told to end, to requests that say `slowly`; others are billed
/// with a million tokens.
async fn slow_provider(go_on: Arc<tokio::sync::Notify>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = move |body: String| {
        let go_on = go_on.clone();
        async move {
            if !body.contains("slowly") {
                let usage = serde_json::json!({"input_tokens": 1_000_000, "output_tokens": 1});
                return axum::response::Response::new(axum::body::Body::from(
                    serde_json::json!({"content": [], "usage": usage}).to_string(),
                ));
            }
            let pieces = futures_util::stream::unfold(0, move |at| {
                let go_on = go_on.clone();
                async move {
                    if at == 1 {
                        go_on.notified().await;
                    }
                    let piece = ["event: message_start\ndata: {\"type\":\"message_start\"}\n\n", "the rest"];
                    Some((Ok::<_, std::io::Error>(*piece.get(at)?), at + 1))
                }
            });
            axum::response::Response::builder()
                .header("content-type", "text/event-stream")
                .body(axum::body::Body::from_stream(pieces))
                .unwrap()
        }
    };
    let app = axum::Router::new().fallback(serve);
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_is_never_cut_by_a_cap_that_is_reached_meanwhile() {
    let go_on = Arc::new(tokio::sync::Notify::new());
    let upstreams = contexture_gateway::Upstreams::one(&slow_provider(go_on.clone()).await);
    let gateway =
        Gateway::start("127.0.0.1:0", Options { cap: day_tokens(500_000), upstreams, ..small() }).await.unwrap();
    let client = reqwest::Client::new();
    let ask = |text: &str| {
        let body = serde_json::json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": text}]});
        client.post(format!("{}/v1/messages", gateway.url())).body(body.to_string()).send()
    };
    let mut slow = ask("slowly").await.unwrap();
    let first = slow.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: message_start"));
    assert_eq!(ask("now").await.unwrap().status().as_u16(), 200);
    records(&gateway, 1).await;
    assert_eq!(ask("more").await.unwrap().status().as_u16(), 403, "the cap is reached");
    go_on.notify_one();
    assert_eq!(slow.chunk().await.unwrap().unwrap(), "the rest");
    assert_eq!(slow.chunk().await.unwrap(), None, "it ended as the provider ended it");
}

/// Streams of chat completions say nothing of usage unless they are asked to.
#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_does_not_say_what_it_took_counts_by_our_own_count() {
    let provider = Provider::start().await;
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"}}]}\n\ndata: [DONE]\n\n";
    let fault = Fault { status: 200, headers: vec![("content-type", "text/event-stream")], body, only_with: None };
    provider.set_fault(Some(fault));
    let gateway = provider.gateway(Options { cap: day_tokens(100), ..small() }).await;
    let said = ask(&gateway, &long(Format::Chat, 2), 2).await;
    assert_eq!(said.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [200, 403]);
    let spent = gateway.end().await.cap.unwrap().day_spent;
    assert!(spent.tokens > 100 && spent.tokens < 100_000, "{spent:?}");
    // A refusal of the provider costs nothing.
    provider.set_fault(Some(Fault { status: 429, headers: Vec::new(), body: "{}", only_with: None }));
    let gateway = provider.gateway(Options { cap: day_tokens(100), ..small() }).await;
    let said = ask(&gateway, &long(Format::Chat, 2), 3).await;
    assert!(said.iter().all(|(status, _)| *status == 429), "{said:?}");
}
