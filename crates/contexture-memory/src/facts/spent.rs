//! What learning facts with a model cost.

use contexture_core::model::Usage;
use serde::{Deserialize, Serialize};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Tokens and money that extraction has used, in all and on the last day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spent {
    /// How often the model was called.
    pub calls: u64,
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Money, as far as the model's client reported it.
    pub cost: f64,
    /// The day of the last call, since 1970.
    day: u64,
    /// The tokens of that day.
    day_tokens: u64,
}

impl Spent {
    /// The tokens that were used on the day of a moment.
    pub fn on_day_of(&self, at_ms: u64) -> u64 {
        if at_ms / DAY_MS == self.day { self.day_tokens } else { 0 }
    }

    /// Adds a call.
    pub(super) fn add(&mut self, usage: &Usage, cost: Option<f64>, at_ms: u64) {
        let tokens = usage.input_tokens + usage.output_tokens;
        self.day_tokens = self.on_day_of(at_ms) + tokens;
        self.day = at_ms / DAY_MS;
        self.calls += 1;
        self.input_tokens += usage.input_tokens;
        self.output_tokens += usage.output_tokens;
        self.cost += cost.unwrap_or(0.0);
    }

    /// What two writers know to have been spent: at least this much.
    pub(super) fn merged(&self, theirs: &Self) -> Self {
        let day = self.day.max(theirs.day);
        let of_day = |spent: &Self| if spent.day == day { spent.day_tokens } else { 0 };
        Self {
            calls: self.calls.max(theirs.calls),
            input_tokens: self.input_tokens.max(theirs.input_tokens),
            output_tokens: self.output_tokens.max(theirs.output_tokens),
            cost: self.cost.max(theirs.cost),
            day,
            day_tokens: of_day(self).max(of_day(theirs)),
        }
    }
}
