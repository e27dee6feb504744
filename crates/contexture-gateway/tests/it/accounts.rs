//! The account of the gateway against what providers bill that count in their own ways.

use contexture::wire::Format;
use contexture_gateway::testing::cache::{Cache, Counting};
use contexture_gateway::{Options, Receipt};
use serde_json::Value;

use super::agent::Agent;
use super::played::{long, records, small};
use super::provider::{Provider, post};

/// How far the account may be off.
const OFF: f64 = 0.02;

/// Encrypted reasoning has many bytes and few tokens; everything else is text of code, with three bytes for a token.
fn like_codex(block: &Value) -> u64 {
    let encrypted = block["encrypted_content"].as_str().map_or(0, str::len);
    ((block.to_string().len() - encrypted) / 3 + encrypted / 30) as u64
}

/// Code with long words: five bytes for a token.
fn sparse(block: &Value) -> u64 {
    block.to_string().len() as u64 / 5
}

/// Plays a long conversation and compares the account with the figures of the provider, and with those of one that gets
/// everything as it comes.
async fn check(name: &str, agent: &Agent, budget: u64, counting: Counting) {
    let provider = Provider::start().await;
    provider.count_by(counting);
    let gateway = provider.gateway(Options { budget: Some(budget), ..small() }).await;
    let mut through = Cache::with_life(300_000).counting(counting);
    let (mut billed, mut passed, mut came) = (0.0, 0.0, 0);
    for at in agent.requests() {
        let body = agent.request(at, false);
        let took = through.serve(agent.format, &body, 0);
        (passed, came) = (passed + took.bill(agent.format), came + took.total());
        let (status, answer) = post(&gateway, agent.format, body).await;
        assert_eq!(status, 200, "{name}: {answer}");
        billed += provider.last().took.bill(agent.format);
    }
    let records = records(&gateway, agent.requests().len()).await;
    let receipt = Receipt::of(&records);
    assert!(receipt.folds.len() >= 3, "{name}: {} folds", receipt.folds.len());
    let off = |found: f64, expected: f64| (found - expected).abs() / expected;
    assert!(off(receipt.billed, billed) < 1e-6, "{name}: billed {billed}, the receipt says {}", receipt.billed);
    let told = receipt.passed_through;
    println!(
        "{name}: billed {billed:.0}, pass-through {passed:.0}, the receipt says {told:.0}; {came} and {}",
        receipt.came
    );
    assert!(off(told, passed) < OFF, "{name}: pass-through is {passed}, the receipt says {told}");
    assert!(off(receipt.came as f64, came as f64) < OFF, "{name}: {came} came, the receipt says {}", receipt.came);
    paid_back(name, &records);
}

/// Folds are said to be paid back once what they spared since then, by the provider's own figures, is as much as they
/// cost, and not before.
fn paid_back(name: &str, records: &[contexture_gateway::RequestRecord]) {
    let (mut balance, mut billed, mut is_owed) = (0.0, 0.0, false);
    for (n, record) in records.iter().enumerate() {
        let bill = record.bill.unwrap();
        (balance, billed) = (balance + bill.passed_through - bill.billed, billed + bill.billed);
        is_owed |= bill.fold.is_some_and(|fold| fold.cost > 0.0);
        if bill.has_paid_back {
            assert!(is_owed, "{name}: request {n} pays back what nobody owes");
            assert!(
                balance >= -OFF * billed,
                "{name}: request {n} is said to have paid back, and {balance} is missing"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_is_what_the_provider_bills_in_all_formats() {
    for format in Format::ALL {
        for budget in [16_000, 32_000] {
            check(&format!("{format:?} at {budget}"), &long(format, 40), budget, sparse).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_of_encrypted_reasoning_is_right() {
    let mut agent = long(Format::Responses, 40);
    agent.reasoning = 150;
    check("reasoning", &agent, 24_000, like_codex).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_with_reminders_is_right() {
    let mut agent = long(Format::Messages, 40);
    agent.has_reminders = true;
    check("reminders", &agent, 24_000, sparse).await;
}
