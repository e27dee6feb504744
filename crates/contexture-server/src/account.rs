//! What was billed, and what pass-through would have been.

use contexture::fold::Prices;
use contexture::wire::Usage;
use serde::{Deserialize, Serialize};

use crate::models::Model;

/// What was billed so far by the provider's own figures, against a model of pass-through, in tokens at the plain input
/// price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Billed so far.
    pub billed: f64,
    /// What pass-through would have been billed.
    pub passed_through: f64,
    /// Tokens sent.
    pub sent: u64,
    /// Tokens that pass-through would have sent.
    pub came: u64,
    /// Tokens of answers.
    pub output: u64,
    /// Requests that were billed.
    pub requests: u64,
    /// Whether anything was ever sent otherwise than it came.
    pub is_changed: bool,
    /// Tokens that pass-through sent with the last request.
    last_came: u64,
    /// When the last answer came, in milliseconds since the Unix epoch.
    pub last_ms: u64,
    /// How many tokens the provider counts for one of ours.
    ratio: f64,
    /// Tokens of the last request that the provider was to hold.
    last_held: u64,
    /// The share of what was sent before that the provider found in its cache when nothing had moved.
    #[serde(default)]
    found: Option<f64>,
}

/// One request as it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// Tokens that were sent, by our own count.
    pub sent_tokens: u64,
    /// Tokens that came, by our own count.
    pub came_tokens: u64,
    /// Whether it was sent otherwise than it came.
    pub is_changed: bool,
    /// Whether its start is not what was sent before.
    pub has_moved: bool,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub time_ms: u64,
}

/// What one request was billed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bill {
    /// Billed.
    pub billed: f64,
    /// What pass-through would have been billed.
    pub passed_through: f64,
    /// Tokens that were sent.
    pub sent: u64,
    /// Tokens that pass-through would have sent.
    pub came: u64,
}

impl Account {
    /// How many tokens the provider counts for one of ours, never so few that a budget is overrun.
    pub fn ratio(&self) -> f64 {
        // In steps, so that budgets do not tremble.
        if self.ratio > 0.0 { (self.ratio * 20.0).ceil() / 20.0 } else { 1.0 }
    }

    /// The account of a branch: nothing is billed yet, and the provider holds what it held.
    pub fn branch(&self) -> Self {
        let Self { is_changed, last_came, last_ms, last_held, ratio, found, .. } = *self;
        Self { is_changed, last_came, last_ms, last_held, ratio, found, ..Self::default() }
    }

    /// Whether the provider has forgotten the last request by now.
    pub fn is_cold(&self, prices: &Prices, now_ms: u64) -> bool {
        let life = prices.cache_life.map(|life| life.as_millis() as u64);
        self.last_ms > 0 && life.is_some_and(|life| now_ms.saturating_sub(self.last_ms) > life)
    }

    /// Whether the bill is above pass-through's by more than a share.
    pub fn is_dearer(&self, share: f64) -> bool {
        self.billed > self.passed_through * (1.0 + share)
    }

    /// Notes a request with what the provider says that it took.
    pub fn note(&mut self, model: &Model, prices: &Prices, sent: Sent, usage: &Usage, now_ms: u64) -> Bill {
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
        // Where holding has a price, the provider says what it holds; elsewhere it holds everything.
        self.last_held = if prices.write > 1.0 { total - usage.input } else { total };
        (self.last_came, self.last_ms, self.ratio) = (came, now_ms, ratio);
        bill
    }

    /// What pass-through would have been billed: what it sent before is read, the rest is written, but for what even
    /// the request that was made did not ask to be cached.
    fn pass_through(&self, least: u64, prices: &Prices, sent: Sent, usage: &Usage, came: u64) -> f64 {
        let is_cold = self.is_cold(prices, sent.time_ms);
        let is_cached = !is_cold && self.last_came >= least && prices.read < 1.0;
        // A provider that finds less than it was sent would find as much less of it without the gateway.
        let found = self.found.unwrap_or(1.0) * self.last_came as f64;
        let cached = if is_cached { (found as u64).min(came) } else { 0 };
        let plain = if prices.write > 1.0 { usage.input.min(came - cached) } else { 0 };
        prices.read * cached as f64 + prices.write * (came - cached - plain) as f64 + plain as f64
    }
}
