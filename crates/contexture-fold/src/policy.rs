//! What a user decides about folding.

use serde::{Deserialize, Serialize};

use super::pins::Pins;
use super::price::Prices;
use super::tuning::MOST_EXCESS;

/// How a folder folds, as far as a user decides it. How a view is chosen is not part of the policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Policy {
    /// The most tokens of a window.
    pub budget: u64,
    /// The provider's prices.
    pub prices: Prices,
    /// What is never folded.
    #[serde(default, skip_serializing_if = "Pins::is_empty")]
    pub pins: Pins,
    /// Whether outputs are sent as the tools gave them unless the budget forces a cut; see [`super::compact`].
    pub verbatim: bool,
    /// When the past is folded.
    pub when: FoldWhen,
    /// Whether folds leave half of the budget free, so that the next one comes later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lean: bool,
}

/// When the past is folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoldWhen {
    /// Only when the window is full.
    Forced,
    /// Also when it is free, because the provider's cache is cold.
    Free,
    /// Also when what it saves has paid for it.
    #[default]
    Pays,
}

impl FoldWhen {
    /// Whether it is the default.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Policy {
    /// The policy for a budget, with Anthropic's prices.
    pub fn new(budget: u64) -> Self {
        let when = FoldWhen::default();
        Self { budget, prices: Prices::ANTHROPIC, pins: Pins::new(), verbatim: false, when, lean: false }
    }

    /// The same with another budget.
    pub fn with_budget(mut self, budget: u64) -> Self {
        self.budget = budget;
        self
    }

    /// The same with outputs as the tools gave them.
    pub fn verbatim(mut self) -> Self {
        self.verbatim = true;
        self
    }

    /// The same with a provider's prices.
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// The same with pins, which apply to everything that is taken in from then on.
    pub fn with_pins(mut self, pins: Pins) -> Self {
        self.pins = pins;
        self
    }

    /// The same with folds that leave half of the budget free, so that the next one comes later: a window that is full
    /// again before the last fold has paid for itself costs more than it saves.
    pub fn lean(mut self) -> Self {
        self.lean = true;
        self
    }

    /// The same for a conversation whose bill is known: while it is above that of pass-through, folds are lean, and once
    /// it is above it by more than a tenth, only a full window makes one.
    pub fn after_bill(self, billed: f64, passed_through: f64) -> Self {
        let is_dearer = |share: f64| billed > passed_through * (1.0 + share);
        let policy = if is_dearer(MOST_EXCESS) { self.when(FoldWhen::Forced) } else { self };
        if is_dearer(0.0) { policy.lean() } else { policy }
    }

    /// The same with another choice of when to fold.
    pub fn when(mut self, when: FoldWhen) -> Self {
        self.when = when;
        self
    }
}
