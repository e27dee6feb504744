//! The settings for playing recordings.

use std::sync::Arc;

use crate::settings::Config;
use crate::settings::keys::{self, Counter, Provider};
use contexture::bpe::Bpe;
use contexture::files::dialect::Dialects;
use contexture::fold::{Policy, Prices};
use contexture::tokens::{Estimate, TokenCounter};
use contexture::transcript::Record;

use super::player::Player;
use super::ruler::Ruler;

/// The settings for playing recordings; the same for `replay` and `compare`.
#[derive(Clone)]
pub struct Settings {
    /// How the past is folded.
    pub policy: Policy,
    /// The unit of sizes.
    pub ruler: Ruler,
    counter: Arc<dyn TokenCounter>,
    dialects: Dialects,
}

impl Settings {
    /// The settings of a configuration, with a budget and a counter.
    pub fn new(config: &Config, budget: u64, counter: Counter) -> Self {
        let prices = match config.get(&keys::PROVIDER) {
            Provider::Anthropic => Prices::ANTHROPIC,
            Provider::Openai => Prices::OPENAI,
            Provider::None => Prices::NONE,
        };
        let policy = Policy::new(budget).with_prices(prices).with_pins(config.pins()).when(config.get(&keys::FOLD));
        let policy = if config.get(&keys::VERBATIM) { policy.verbatim() } else { policy };
        let (counter, ruler): (Arc<dyn TokenCounter>, Ruler) = match counter {
            Counter::O200k => {
                let counter: Arc<dyn TokenCounter> = Arc::new(Bpe::o200k());
                (Arc::clone(&counter), Ruler::Tokens(counter))
            }
            Counter::Estimate => (Arc::new(Estimate), Ruler::Bytes),
        };
        Self { policy, ruler, counter, dialects: config.dialects() }
    }

    /// Sets the budget.
    pub fn with_budget(mut self, budget: u64) -> Self {
        self.policy = self.policy.with_budget(budget);
        self
    }

    /// Starts to play the messages of a recording.
    pub fn play<I: Iterator<Item = Record>>(
        &self,
        records: impl IntoIterator<Item = Record, IntoIter = I>,
    ) -> Player<I> {
        Player::new(self.policy.clone(), Arc::clone(&self.counter), records)
            .with_dialects(self.dialects.clone())
            .with_cache_life(self.policy.prices.cache_life)
    }
}
