//! Prices of requests, and what a change of the prefix costs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A provider's prices for input tokens, relative to its plain input price.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Reading a token from the cache.
    pub read: f64,
    /// Sending a token that is not in the cache.
    pub write: f64,
    /// How long the cache holds what was last used; `None` if nothing can expire.
    #[serde(default)]
    pub cache_life: Option<Duration>,
}

/// The least time for which providers hold a prefix that is not used.
const FIVE_MINUTES: Option<Duration> = Some(Duration::from_secs(5 * 60));

impl Prices {
    /// Anthropic: cached input at a tenth, writing to the five-minute cache at a quarter more.
    pub const ANTHROPIC: Prices = Prices { read: 0.1, write: 1.25, cache_life: FIVE_MINUTES };
    /// OpenAI: caching is automatic and writing costs nothing extra. Cached input is billed at a tenth on today's
    /// models. Older ones bill a quarter or a half; make your own prices for them. An unused prefix is dropped after
    /// five to ten minutes.
    pub const OPENAI: Prices = Prices { read: 0.1, write: 1.0, cache_life: FIVE_MINUTES };
    /// No cache: every token is billed every time.
    pub const NONE: Prices = Prices { read: 1.0, write: 1.0, cache_life: None };

    /// Returns the cost of a request whose first `cached` tokens were also sent with the request before.
    pub fn bill(&self, cached: u64, total: u64) -> f64 {
        self.read * cached as f64 + self.write * total.saturating_sub(cached) as f64
    }
}

impl Default for Prices {
    fn default() -> Self {
        Self::ANTHROPIC
    }
}

/// What was billed so far and what pass-through would have been billed, in tokens at the plain input price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Billed so far.
    pub billed: f64,
    /// What pass-through would have been billed.
    pub passed_through: f64,
    /// The most that `billed` was ever above `passed_through`.
    pub worst_excess: f64,
    /// What it has cost since the last fold to resend what a fold would remove.
    #[serde(alias = "rent")]
    pub avoidable: f64,
}

impl Account {
    /// Notes a request.
    pub fn note(&mut self, billed: f64, passed_through: f64) {
        self.billed += billed;
        self.passed_through += passed_through;
        self.worst_excess = self.worst_excess.max(self.billed - self.passed_through);
    }

    /// What was saved so far; negative if folding cost more.
    pub fn saved(&self) -> f64 {
        self.passed_through - self.billed
    }
}
