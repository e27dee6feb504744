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
    check_within(OFF, name, agent, budget, counting).await
}

async fn check_within(most: f64, name: &str, agent: &Agent, budget: u64, counting: Counting) -> usize {
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
    assert!(off(told, passed) < most, "{name}: pass-through is {passed}, the receipt says {told}");
    assert!(off(receipt.came as f64, came as f64) < most, "{name}: {came} came, the receipt says {}", receipt.came);
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

/// About as vocabularies split a text: words as they are, numbers in groups of three digits, all other signs by themselves.
fn by_words(block: &Value) -> u64 {
    let text = block.to_string();
    let is_alike = |one: &char, two: &char| {
        let both = |is: fn(&char) -> bool| is(one) && is(two);
        both(char::is_ascii_alphabetic) || both(char::is_ascii_digit) || both(|sign| *sign == ' ')
    };
    let signs: Vec<char> = text.chars().collect();
    let tokens =
        |run: &[char]| if run[0].is_ascii_digit() { run.len().div_ceil(3) } else { usize::from(run[0] != ' ') };
    signs.chunk_by(is_alike).map(tokens).sum::<usize>() as u64
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_of_outputs_that_are_shortened_is_right() {
    let mut agent = Agent::new(Format::Messages, "Please find out what the log says.");
    // Later it would not fit without folds, and nothing would count as saved.
    for round in 0..STEPS / 3 {
        agent.work(round);
        // Many more tokens for its length than code has.
        let line = |n: usize| {
            format!(
                "{:08x} 2026-11-{:02}T{:02}:{:02}:07.{:06}Z q-{n}=0x{:x}\n",
                n * 0x9e37_79b9,
                n % 28 + 1,
                n % 24,
                n % 60,
                n * 7_919 % 1_000_000,
                n * n
            )
        };
        let log: String = (0..120).map(|n| line(round * 131 + n)).collect();
        agent.call("I look at the log.", "Bash", json!({"command": format!("tail log_{round}")}), &log);
    }
    // What was never sent can only be estimated. By its length alone, it would be a tenth too little.
    check_within(0.06, "dense outputs", &agent, 20_000, by_words).await;
}

/// Code with many signs: five bytes for two tokens.
fn dense(block: &Value) -> u64 {
    block.to_string().len() as u64 * 2 / 5
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_would_be_done_nothing_is_said_to_be_saved() {
    for counting in [dense as Counting, sparse] {
        let provider = Provider::start().await;
        provider.count_by(counting);
        let gateway = provider.gateway(Options { observe: true, budget: Some(100_000), ..small() }).await;
        let mut agent = Agent::new(Format::Responses, "Please look around.");
        for n in 0..4 {
            agent.call("I look.", "Bash", json!({"command": format!("ls {n}")}), &format!("part_{n}.rs"));
        }
        let requests = agent.requests();
        for at in &requests {
            post(&gateway, agent.format, agent.request(*at, false)).await;
        }
        // Of a request whose history is with the provider, nothing would be left out either.
        let kept = json!({"model": "gpt-5", "previous_response_id": "r1", "input": [{"role": "user", "content": "a ".repeat(9_000)}]});
        post(&gateway, agent.format, kept.to_string()).await;
        let receipt = Receipt::of(&records(&gateway, requests.len() + 1).await);
        assert_eq!(receipt.would_send, Some(receipt.sent), "{:?}", receipt.decided);
        assert!(receipt.told(true).ends_with("would have sent 0 % less"), "{}", receipt.told(true));
    }
}
