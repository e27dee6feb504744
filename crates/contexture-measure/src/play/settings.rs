//! The settings for playing recordings.

use std::sync::Arc;

use contexture::bpe::Bpe;
use contexture::files::dialect::Dialects;
use contexture::fold::Policy;
use contexture::tokens::{Estimate, TokenCounter};
use contexture::transcript::Record;

use super::player::Player;
use super::ruler::Ruler;

/// The settings for playing recordings.
#[derive(Clone)]
pub struct PlaySettings {
    /// How the past is folded.
    pub policy: Policy,
    /// The unit of sizes.
    pub ruler: Ruler,
    counter: Arc<dyn TokenCounter>,
    dialects: Dialects,
}

impl PlaySettings {
    /// Counts exactly, in the vocabulary of newer models of OpenAI.
    pub fn exact(policy: Policy, dialects: Dialects) -> Self {
        let counter: Arc<dyn TokenCounter> = Arc::new(Bpe::o200k());
        Self { policy, ruler: Ruler::Tokens(Arc::clone(&counter)), counter, dialects }
    }

    /// Counts four bytes as a token.
    pub fn estimated(policy: Policy, dialects: Dialects) -> Self {
        Self { policy, ruler: Ruler::Bytes, counter: Arc::new(Estimate), dialects }
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
