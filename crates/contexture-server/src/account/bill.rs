//! What the provider billed, and an estimate of what sending every request unchanged would have cost.

use contexture::fold::Prices;
use contexture::wire::Usage;
use serde::{Deserialize, Serialize};

use crate::account::models::Model;

/// The bill of a conversation by the provider's own figures, compared with a model of pass-through. Amounts are in
/// tokens at the plain input price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Billed so far.
    billed: f64,
    /// What pass-through would have cost.
    passed_through: f64,
    /// Tokens sent.
    sent: u64,
    /// Tokens that pass-through would have sent.
    came: u64,
    /// Output tokens.
    output: u64,
    /// Requests that were billed.
    requests: u64,
    /// Whether any request was ever sent changed.
    is_changed: bool,
    /// Tokens that pass-through would have sent with the last request.
    last_came: u64,
    /// Tokens that were sent with the last request.
    #[serde(default)]
    last_sent: u64,
    /// When the last response arrived, in milliseconds since the Unix epoch.
    last_ms: u64,
    /// How many tokens the provider counts for one of our own estimate.
    ratio: f64,
    /// Tokens of the last request that the provider should have in its cache.
    last_held: u64,
    /// The share of the previous request that the provider found in its cache when the prefix had not changed.
    #[serde(default)]
    found: Option<f64>,
}

/// One request as it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SentRequest {
    /// Tokens sent, by our own count.
    pub sent_tokens: u64,
    /// Tokens received from the client, by our own count.
    pub came_tokens: u64,
    /// Whether it was sent changed.
    pub is_changed: bool,
    /// Whether its prefix differs from what was sent before.
    pub has_moved: bool,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub time_ms: u64,
}

/// The bill of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bill {
    /// Billed.
    pub billed: f64,
    /// What pass-through would have cost.
    pub passed_through: f64,
    /// Tokens sent.
    pub sent: u64,
    /// Tokens that pass-through would have sent.
    pub came: u64,
}

impl Account {
    /// How many tokens the provider counts for one of ours, rounded so that a budget is not exceeded.
    pub fn ratio(&self) -> f64 {
        // Rounded to steps, so that budgets do not change with every request.
        if self.ratio > 0.0 { (self.ratio * 20.0).ceil() / 20.0 } else { 1.0 }
    }

    /// The account of a new branch: nothing is billed yet, but the provider's cache is that of the original.
    pub fn branch(&self) -> Self {
        let Self { is_changed, last_came, last_sent, last_ms, last_held, ratio, found, .. } = *self;
        Self { is_changed, last_came, last_sent, last_ms, last_held, ratio, found, ..Self::default() }
    }

    /// Tokens of the last request as it was sent, by the provider's count; 0 if that is not known.
    pub fn last_sent(&self) -> u64 {
        self.last_sent
    }

    /// Whether the provider's cache entry for the last request has expired.
    pub fn is_cold(&self, prices: &Prices, now_ms: u64) -> bool {
        let life = prices.cache_life.map(|life| life.as_millis() as u64);
        self.last_ms > 0 && life.is_some_and(|life| now_ms.saturating_sub(self.last_ms) > life)
    }

    /// Whether the bill exceeds that of pass-through by more than the given share.
    pub fn is_dearer(&self, share: f64) -> bool {
        self.billed > self.passed_through * (1.0 + share)
    }

    /// Adds a request with the usage that the provider reported.
    pub fn note(&mut self, model: &Model, prices: &Prices, sent: SentRequest, usage: &Usage, now_ms: u64) -> Bill {
        let total = usage.total_input();
        let ratio = if sent.sent_tokens > 0 { (total as f64 / sent.sent_tokens as f64).clamp(0.25, 4.0) } else { 1.0 };
        self.is_changed |= sent.is_changed;
        let more = sent.came_tokens as f64 - sent.sent_tokens as f64;
        let came = (total as f64 + more * ratio).max(0.0) as u64;
        let written = model.write * usage.cache_write as f64 + model.write_hour * usage.cache_write_hour as f64;
        let billed = usage.input as f64 + model.read * usage.cache_read as f64 + written;
        if !sent.has_moved && self.last_ms > 0 && !self.is_cold(prices, sent.time_ms) {
            let held = self.last_held as f64;
            self.found = Some(if held > 0.0 { (usage.cache_read as f64 / held).min(1.0) } else { 0.0 });
        }
        let passed_through = match self.is_changed {
            false => billed,
            true => self.pass_through(model.least, prices, sent, usage, came),
        };
        let bill = Bill { billed, passed_through, sent: total, came };
        self.billed += bill.billed;
        self.passed_through += bill.passed_through;
        self.sent += total;
        self.came += came;
        self.output += usage.output;
        self.requests += 1;
        // Where cache writes have a price, the usage says what was cached; elsewhere everything is.
        self.last_held = if prices.write > 1.0 { total - usage.input } else { total };
        (self.last_came, self.last_sent, self.last_ms, self.ratio) = (came, total, now_ms, ratio);
        bill
    }

    /// What pass-through would have cost: the previous request is read from the cache and the rest is written to it,
    /// except for the part that the actual request did not ask to be cached either.
    fn pass_through(&self, least: u64, prices: &Prices, sent: SentRequest, usage: &Usage, came: u64) -> f64 {
        let is_cold = self.is_cold(prices, sent.time_ms);
        let is_cached = !is_cold && self.last_came >= least && prices.read < 1.0;
        // A provider that finds less than was sent would find the same share without the gateway.
        let found = self.found.unwrap_or(1.0) * self.last_came as f64;
        let cached = if is_cached { (found as u64).min(came) } else { 0 };
        let plain = if prices.write > 1.0 { usage.input.min(came - cached) } else { 0 };
        prices.read * cached as f64 + prices.write * (came - cached - plain) as f64 + plain as f64
    }
}
