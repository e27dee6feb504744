//! How large a window may be, and what is removed when it is full.

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::SpecError;
use crate::tokens::{MAX_TOKENS, whole_tokens};

/// How large a window may be, and what gives way when it is full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectionPolicy {
    /// The tokens of a request and its response together.
    #[serde(deserialize_with = "token_budget")]
    pub token_budget: u64,
    /// The part of these that is reserved for the response.
    #[serde(deserialize_with = "response_reserve")]
    pub response_reserve: u64,
    /// What is done when history does not fit.
    pub overflow: Overflow,
    /// The model that writes summaries; without one they are written by a fixed procedure.
    pub overflow_model: Option<String>,
    /// For [`Overflow::SlidingWindow`]: the least number of newest items that are shown, as far as there are so many and
    /// their tokens fit. Up to a third more are shown between two evictions, so that the prefix does not change with
    /// every request.
    pub window_size: Option<usize>,
}

/// What gives way when history does not fit.
///
/// In every mode a tool call and its output stay or go together, the newest user message is never dropped (only
/// shortened), evictions happen in large batches so that the prefix does not change between them, and the result
/// fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The oldest large items are shown as head, marker and tail; then the oldest items are dropped.
    #[default]
    Truncate,
    /// The evicted part is replaced by a summary, written by `overflow_model`.
    Summarize,
    /// The newest `window_size` items are shown.
    SlidingWindow,
}

impl ProjectionPolicy {
    /// The default of `window_size`.
    pub const DEFAULT_WINDOW_SIZE: usize = 100;

    /// A policy of this size that truncates, with a tenth (at most 8 192 tokens) reserved for the response.
    pub fn new(token_budget: u64) -> Self {
        Self {
            token_budget,
            response_reserve: (token_budget / 10).min(8192),
            overflow: Overflow::Truncate,
            overflow_model: None,
            window_size: None,
        }
    }

    /// Sets the overflow mode.
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Checks the policy.
    ///
    /// # Errors
    /// Names the first invalid field.
    pub fn validate(&self) -> Result<(), SpecError> {
        let refuse = |field, problem: String| Err(SpecError::other("projection policy", field, problem));
        if self.token_budget > MAX_TOKENS {
            return refuse("token_budget", format!("is above {MAX_TOKENS} ({})", self.token_budget));
        }
        if self.token_budget == 0 {
            return refuse("token_budget", "is zero".into());
        }
        if self.response_reserve >= self.token_budget {
            let (reserve, budget) = (self.response_reserve, self.token_budget);
            return refuse("response_reserve", format!("leaves nothing of `token_budget` ({reserve} of {budget})"));
        }
        if self.window_size == Some(0) {
            return refuse("window_size", "is zero".into());
        }
        Ok(())
    }
}

impl Default for ProjectionPolicy {
    /// 128 000 tokens, truncating.
    fn default() -> Self {
        Self::new(128_000)
    }
}

fn token_budget<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole_tokens("token_budget", f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

fn response_reserve<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    whole_tokens("response_reserve", f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}
