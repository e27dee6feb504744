//! What a folder keeps to.

use serde::{Deserialize, Serialize};

use super::price::Prices;

/// The budget for which [`LEAST_NEED`] holds.
const MIDDLE_BUDGET: f64 = 32_000.0;

/// Least need of a shown chunk with the middle budget.
const LEAST_NEED: f64 = -1.8;

/// By how much the least need rises when a smaller budget halves, and falls when a larger one doubles: the less the
/// budget binds, the more a view can hold in case it is needed.
const NEED_PER_HALVING: f64 = 0.6;
const NEED_PER_DOUBLING: f64 = 1.0;

/// The least need with any budget: what is needed less is not worth its rent.
const LOWEST_NEED: f64 = -3.4;

/// The excess that the bill may run up, against pass-through's.
const MOST_EXCESS: f64 = 0.15;

/// The budget from which on the excess falls in proportion: a smaller window is folded by force soon anyway, so a
/// fold that comes early risks little; a larger one may never be.
const EXCESS_FALLS_FROM: f64 = 64_000.0;

/// By how much patience grows when the budget doubles: where nothing forces a fold, it can wait to be sure.
const PATIENCE_PER_DOUBLING: f64 = 0.4;

/// How a folder folds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The most tokens of a window.
    pub budget: u64,
    /// The provider's prices.
    pub prices: Prices,
    /// Most tokens of the view of files.
    pub view_tokens: u64,
    /// Least need of a chunk that the view shows; see [`super::view::need`].
    pub least_need: f64,
    /// Most tokens of the recent messages that a fold leaves as they are; the newest step always stays.
    pub tail_tokens: u64,
    /// Most tokens of the messages with which the conversation opened.
    pub opening_tokens: u64,
    /// Most tokens of what the user said since.
    pub users_tokens: u64,
    /// Most tokens of the ledger of what was done.
    pub ledger_tokens: u64,
    /// Most tokens of the outlines of files that are known but not shown.
    pub outline_tokens: u64,
    /// Most tokens of known lines that touching a file brings back.
    pub touch_tokens: u64,
    /// Most tokens of one output that is no file's text, when it is first sent.
    pub output_tokens: u64,
    /// Tokens that the provider adds around every message.
    pub message_tokens: u64,
    /// How much rent must have been paid on what a fold would remove, against the fold's price.
    pub patience: f64,
    /// How far the bill may go above pass-through's because of folds that nothing forces, against pass-through's.
    pub most_excess: f64,
}

impl Policy {
    /// The policy for a budget, with Anthropic's prices.
    ///
    /// A larger budget buys a larger view only up to a point: behind it, rent on what is never needed outweighs
    /// the few pieces that a still larger view would hold.
    pub fn new(budget: u64) -> Self {
        let doublings = (budget as f64 / MIDDLE_BUDGET).log2();
        Self {
            budget,
            prices: Prices::ANTHROPIC,
            view_tokens: budget * 65 / 100,
            least_need: least_need(doublings),
            tail_tokens: (budget / 32).min(1_000),
            opening_tokens: (budget / 24).min(1_600),
            users_tokens: (budget / 40).min(800),
            ledger_tokens: (budget / 64).min(500),
            outline_tokens: (budget / 128).min(400),
            touch_tokens: (budget / 12).min(4_000),
            output_tokens: (budget / 10).min(2_000),
            message_tokens: 0,
            patience: 1.0 + PATIENCE_PER_DOUBLING * doublings.max(0.0),
            most_excess: MOST_EXCESS * (EXCESS_FALLS_FROM / budget.max(1) as f64).min(1.0),
        }
    }

    /// The same with what the provider adds around every message.
    pub fn with_message_tokens(mut self, tokens: u64) -> Self {
        self.message_tokens = tokens;
        self
    }

    /// The same with a provider's prices.
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }
}

/// The least need of a shown chunk, with a budget so many times twice the middle one.
fn least_need(doublings: f64) -> f64 {
    let per_doubling = if doublings < 0.0 { NEED_PER_HALVING } else { NEED_PER_DOUBLING };
    (LEAST_NEED - per_doubling * doublings).max(LOWEST_NEED)
}
