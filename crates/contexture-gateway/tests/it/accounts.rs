//! The account of the gateway against what providers bill that count in their own ways.

use contexture::wire::Format;
use contexture_gateway::testing::cache::{Cache, Counting};
use contexture_gateway::{Options, Receipt, RequestRecord};
use serde_json::{Value, json};

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
/// everything as it comes. Returns how often folds were said to be paid back.
async fn check(name: &str, agent: &Agent, budget: u64, counting: Counting) -> usize {
    let provider = Provider::start().await;
    provider.count_by(counting);
    let gateway = provider.gateway(Options { budget: Some(budget), ..small() }).await;
    let mut through = Cache::with_life(300_000).counting(counting);
    let (mut billed, mut passed, mut came) = (0.0, 0.0, 0);
    let mut exchanges = Vec::new();
    for at in agent.requests() {
        let body = agent.request(at, false);
        let took = through.serve(agent.format, &body, 0);
        (passed, came) = (passed + took.bill(agent.format), came + took.total());
        let (status, answer) = post(&gateway, agent.format, body.clone()).await;
        assert_eq!(status, 200, "{name}: {answer}");
        let got = provider.last();
        billed += got.took.bill(agent.format);
        exchanges.push(Exchange::new(agent.format, &body, &got.body, got.took.bill(agent.format)));
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
    Recount::new(agent.format, counting).check(name, &exchanges, &records)
}

/// A request as it came and as it was sent.
struct Exchange {
    /// How many messages came.
    came: usize,
    sent: Value,
    messages: Vec<Value>,
    billed: f64,
}

impl Exchange {
    fn new(format: Format, came: &str, sent: &str, billed: f64) -> Self {
        let [came, sent]: [Value; 2] = [came, sent].map(|body| serde_json::from_str(body).unwrap());
        let list = |body: &Value| body[field(format)].as_array().unwrap().clone();
        let messages = list(&sent).into_iter().map(without_marks).collect();
        Self { came: list(&came).len(), sent, messages, billed }
    }
}

fn field(format: Format) -> &'static str {
    match format {
        Format::Messages | Format::Chat => "messages",
        Format::Responses => "input",
        Format::Gemini => "contents",
    }
}

fn without_marks(mut message: Value) -> Value {
    for block in message["content"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        block.remove("cache_control");
    }
    message
}

/// Counts from what was sent whether folds are paid back: a provider of its own gets what would have been sent without
/// those that are not, that is, what was sent before the first of them and everything new after it.
struct Recount {
    format: Format,
    counting: Counting,
    unfolded: Option<(Vec<Value>, Cache)>,
    owed: f64,
    billed: f64,
}

impl Recount {
    fn new(format: Format, counting: Counting) -> Self {
        Self { format, counting, unfolded: None, owed: 0.0, billed: 0.0 }
    }

    fn check(mut self, name: &str, exchanges: &[Exchange], records: &[RequestRecord]) -> usize {
        for (n, pair) in exchanges.windows(2).enumerate() {
            let [before, now] = pair else { continue };
            let bill = records[n + 1].bill.unwrap();
            if bill.fold.is_some() && self.unfolded.is_none() {
                let mut cache = Cache::with_life(300_000).counting(self.counting);
                cache.serve(self.format, &self.body(&before.sent, &before.messages), 0);
                self.unfolded = Some((before.messages.clone(), cache));
                (self.owed, self.billed) = (0.0, 0.0);
            }
            self.add(before, now);
            if bill.has_paid_back {
                let Self { owed, billed, .. } = self;
                assert!(self.unfolded.is_some(), "{name}: request {} pays back what nobody owes", n + 1);
                assert!(owed <= OFF * billed, "{name}: request {} is said to pay back, {owed} is missing", n + 1);
                self.unfolded = None;
            }
        }
        records.iter().filter(|record| record.bill.unwrap().has_paid_back).count()
    }

    fn add(&mut self, before: &Exchange, now: &Exchange) {
        let is_longer = now.messages.starts_with(&before.messages);
        let new = if is_longer { before.messages.len() } else { now.messages.len() - (now.came - before.came) };
        let Some((mut messages, mut cache)) = self.unfolded.take() else { return };
        messages.extend_from_slice(&now.messages[new..]);
        let without = cache.serve(self.format, &self.body(&now.sent, &messages), 0).bill(self.format);
        self.owed += now.billed - without;
        self.billed += now.billed;
        self.unfolded = Some((messages, cache));
    }

    /// A request with other messages, with a cache mark at its end.
    fn body(&self, sent: &Value, messages: &[Value]) -> String {
        let mut body = sent.clone();
        body[field(self.format)] = json!(messages);
        if self.format == Format::Messages {
            body["cache_control"] = json!({"type": "ephemeral"});
        }
        body.to_string()
    }
}

/// Rounds of work of an agent.
const STEPS: usize = if crate::IS_LONG { 40 } else { 26 };

#[tokio::test(flavor = "multi_thread")]
async fn the_account_is_what_the_provider_bills_in_all_formats() {
    for format in Format::ALL {
        let mut paid_back = 0;
        let budgets: &[u64] = if crate::IS_LONG { &[16_000, 32_000] } else { &[16_000] };
        for &budget in budgets {
            paid_back += check(&format!("{format:?} at {budget}"), &long(format, STEPS), budget, sparse).await;
        }
        assert!(paid_back > 0, "{format:?}: no fold is said to be paid back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_of_encrypted_reasoning_is_right() {
    let mut agent = long(Format::Responses, STEPS);
    agent.reasoning = 150;
    check("reasoning", &agent, 24_000, like_codex).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_with_reminders_is_right() {
    let mut agent = long(Format::Messages, STEPS);
    agent.has_reminders = true;
    check("reminders", &agent, 24_000, sparse).await;
}
