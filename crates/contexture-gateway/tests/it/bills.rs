//! What is billed, against a provider that simulates its cache exactly.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use contexture::tokens::{Estimate, TokenCounter};
use contexture::wire::Format;
use contexture_gateway::testing::cache::Cache;
use contexture_gateway::{Options, Receipt};
use futures_util::future::join_all;

use super::agent::Agent;
use super::played::{digests, long, records, small};
use super::provider::{Provider, post};

/// A counter that waits for as long as it is told to.
#[derive(Default)]
pub struct Held(pub AtomicBool);

impl TokenCounter for Held {
    fn name(&self) -> &str {
        "held"
    }

    fn count(&self, text: &str) -> u64 {
        while self.0.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Estimate.count(text)
    }
}

/// How far the bill may be above pass-through's at any moment.
const EXCESS: f64 = 0.10;

async fn check(format: Format, agent: &Agent) {
    let provider = Provider::start().await;
    // Wide enough that nothing is forced.
    let gateway = provider.gateway(Options { budget: Some(60_000), ..small() }).await;
    let mut through = Cache::with_life(300_000);
    let (mut billed, mut passed) = (0.0, 0.0);
    for (n, at) in agent.requests().into_iter().enumerate() {
        let body = agent.request(at, n % 2 == 1);
        passed += through.serve(format, &body, 0).bill(format);
        post(&gateway, format, body).await;
        billed += provider.last().took.bill(format);
        assert!(billed <= passed * (1.0 + EXCESS) + 1.0, "{format:?}, request {n}: {billed} against {passed}");
    }
    let records = records(&gateway, agent.requests().len()).await;
    let receipt = Receipt::of(&records);
    assert!(!receipt.folds.is_empty());
    assert!(billed < passed, "{format:?}: {billed} against {passed}");
    assert!((receipt.billed - billed).abs() < 1.0, "{format:?}: the receipt says {}, it was {billed}", receipt.billed);
    let off = (receipt.passed_through - passed).abs() / passed;
    assert!(off < 0.02, "{format:?}: pass-through is {passed}, the receipt says {}", receipt.passed_through);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_conversation_is_cheaper_and_never_much_dearer() {
    for format in Format::ALL {
        check(format, &long(format, 32)).await;
    }
}

/// Tokens of the blocks with which two bodies both begin, as the provider counts them.
fn shared_tokens(before: &str, now: &str) -> u64 {
    let blocks = |body: &str| -> Vec<String> {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
        let mut blocks = list(&body["tools"]);
        blocks.extend(list(&body["system"]));
        for message in list(&body["messages"]) {
            blocks.extend(list(&message["content"]).into_iter().map(|mut block| {
                block["role"] = message["role"].clone();
                block
            }));
        }
        blocks.iter_mut().for_each(|block| {
            block.as_object_mut().map(|fields| fields.remove("cache_control"));
        });
        blocks.iter().map(ToString::to_string).collect()
    };
    let (before, now) = (blocks(before), blocks(now));
    before.iter().zip(&now).take_while(|(one, two)| one == two).map(|(one, _)| one.len() as u64 / 4).sum()
}

/// The request of a client that leaves the mark at the end to the provider.
/// <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>
fn automatic(body: &str) -> String {
    let mut body: serde_json::Value = serde_json::from_str(body).unwrap();
    let messages = body["messages"].as_array_mut().into_iter().flatten();
    for block in messages.flat_map(|message| message["content"].as_array_mut().into_iter().flatten()) {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    body["cache_control"] = serde_json::json!({"type": "ephemeral"});
    body.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_fold_leaves_standing_is_read_from_the_cache() {
    check_standing(str::to_owned).await;
    check_standing(automatic).await;
}

async fn check_standing(written: fn(&str) -> String) {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let mut agent = long(Format::Messages, 32);
    agent.has_reminders = true;
    let (mut before, mut read, mut stood, mut folds) = (String::new(), 0, 0, 0);
    for at in agent.requests() {
        let (status, answer) = post(&gateway, agent.format, written(&agent.request(at, false))).await;
        assert_eq!(status, 200, "{answer}");
        let got = provider.last();
        let has_moved =
            !before.is_empty() && !digests(agent.format, &got.body).starts_with(&digests(agent.format, &before));
        if has_moved {
            folds += 1;
            (read, stood) = (read + got.took.read, stood + shared_tokens(&before, &got.body));
        }
        before = got.body;
    }
    assert!(folds >= 4, "{folds} folds");
    assert!(read as f64 >= 0.9 * stood as f64, "{read} of {stood} tokens that stood were read in {folds} folds");
}

#[tokio::test(flavor = "multi_thread")]
async fn summaries_and_bodies_that_are_not_read_are_billed() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let mut agent = long(Format::Messages, 2);
    for at in agent.requests() {
        post(&gateway, agent.format, agent.request(at, false)).await;
    }
    agent.say("Your task is to create a detailed summary of the conversation so far, paying attention.");
    post(&gateway, agent.format, agent.request(agent.steps.len(), false)).await;
    let summary = provider.last().took.bill(agent.format);
    let request = reqwest::Client::new().post(format!("{}/v1/messages", gateway.url()));
    let unread = request.header("content-encoding", "gzip").body(agent.request(1, false));
    assert_eq!(unread.send().await.unwrap().status().as_u16(), 200);
    let unread = provider.last().took.total();
    let count = reqwest::Client::new().post(format!("{}/v1/messages/count_tokens", gateway.url()));
    count.body(agent.request(1, false)).send().await.unwrap();
    let requests = agent.requests().len();
    let records = records(&gateway, requests + 2).await;
    let receipt = Receipt::of(&records);
    assert_eq!((receipt.with_usage, receipt.without_usage), (requests + 1, 0), "a count takes nothing");
    assert_eq!(records[requests - 1].bill.unwrap().billed, summary);
    // Without a look into the body nothing is known of the model, but pass-through would have cost the same.
    let bill = records[requests].bill.unwrap();
    assert_eq!((bill.sent, bill.came, bill.billed), (unread, unread, bill.passed_through));
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: --features long-tests")]
async fn folds_that_were_decided_late_are_on_the_receipt_of_the_request_that_they_change() {
    join_all([Format::Messages, Format::Responses].map(|format| async move {
        let provider = Provider::start().await;
        let counter = Arc::new(Held::default());
        let own_work = Duration::from_millis(300);
        let gateway = provider.gateway(Options { counter: counter.clone(), own_work, ..small() }).await;
        let agent = long(format, 12);
        let mut through = Cache::with_life(300_000);
        let (mut passed, mut before, mut moved) = (0.0, Vec::new(), Vec::new());
        for (n, at) in agent.requests().into_iter().enumerate() {
            let body = agent.request(at, false);
            passed += through.serve(format, &body, 0).bill(format);
            // Two of three requests are decided too late.
            counter.0.store(n % 3 != 2, Ordering::SeqCst);
            post(&gateway, format, body).await;
            counter.0.store(false, Ordering::SeqCst);
            let now = digests(format, &provider.last().body);
            if !now.starts_with(&before) {
                moved.push(n);
            }
            before = now;
            // What came too late is decided before the next request.
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        let records = records(&gateway, agent.requests().len()).await;
        let has_fold = |n: &usize| records[*n].decided.iter().any(|note| note.is_fold());
        let folded: Vec<usize> = (0..records.len()).filter(has_fold).collect();
        assert!(!moved.is_empty(), "{format:?}");
        assert_eq!(folded, moved, "{format:?}");
        let receipt = Receipt::of(&records);
        let off = (receipt.passed_through - passed).abs() / passed;
        assert!(off < 0.02, "{format:?}: pass-through is {passed}, the receipt says {}", receipt.passed_through);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_conversation_costs_what_it_would_have_cost() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let mut agent = Agent::new(format, "Look at one file.");
        agent.work(0);
        let mut through = Cache::with_life(300_000);
        for at in agent.requests() {
            let body = agent.request(at, false);
            let took = through.serve(format, &body, 0);
            post(&gateway, format, body).await;
            let got = provider.last().took;
            // Automatic caches hold whole pieces of 128 tokens.
            assert!(got.bill(format) <= took.bill(format) + 128.0, "{format:?}");
        }
        let receipt = Receipt::of(&records(&gateway, agent.requests().len()).await);
        assert!(receipt.billed <= receipt.passed_through + 128.0 * receipt.requests as f64);
        assert_eq!(receipt.with_usage, agent.requests().len());
    }
}
