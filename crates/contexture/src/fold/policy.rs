//! What a folder keeps to.

use serde::{Deserialize, Serialize};

use super::price::Prices;

/// Least need of a shown chunk behind [`MIDDLE_MESSAGES`], with [`MIDDLE_BUDGET`].
const LEAST_NEED: f64 = -2.1;

/// The messages behind which [`LEAST_NEED`] holds.
const MIDDLE_MESSAGES: f64 = 100.0;

/// The budget at which windows are full about as often as they are folded because it pays.
const MIDDLE_BUDGET: f64 = 64_000.0;

/// By how much the least need falls when a smaller budget halves: there the budget itself bounds the view.
const NEED_PER_HALVING: f64 = 0.6;

/// By how much the least need falls when a larger budget doubles: there the view can hold more in case it is needed.
const NEED_PER_DOUBLING: f64 = 1.05;

/// The excess that the bill may run up, against pass-through's.
///
/// It falls as a budget grows above [`MIDDLE_BUDGET`]: a smaller window is folded by force soon anyway, so a fold that
/// comes early risks little; a larger one may never be.
const MOST_EXCESS: f64 = 0.1;

/// How often the excess halves when a larger budget doubles.
const EXCESS_HALVINGS: f64 = 1.5;

/// How much rent must have been paid on what a fold would remove, against the fold's price. At 1 a session that ends
/// right behind the fold has paid for it twice; the more, the fewer sessions are dearer for it.
const PATIENCE: f64 = 1.5;

/// By how much patience grows when the budget doubles: where nothing forces a fold, it can wait to be sure.
const PATIENCE_PER_DOUBLING: f64 = 0.4;

/// Patience with the smallest budgets, where a fold is soon forced anyway.
const LEAST_PATIENCE: f64 = 1.1;

/// How a folder folds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The most tokens of a window.
    pub budget: u64,
    /// The provider's prices.
    pub prices: Prices,
    /// Most tokens of the view of files.
    pub view_tokens: u64,
    /// Least need of a chunk that the view shows, behind a hundred messages; see [`super::view::need`].
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
    /// Whether outputs are said in fewer words when they are first sent; see [`super::terse`].
    pub terse: bool,
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
        let doublings = (budget.max(1) as f64 / MIDDLE_BUDGET).log2();
        let (larger, smaller) = (doublings.max(0.0), (-doublings).max(0.0));
        Self {
            budget,
            prices: Prices::ANTHROPIC,
            view_tokens: (budget * 70 / 100).min(7_000 + budget * 47 / 100),
            least_need: LEAST_NEED - NEED_PER_DOUBLING * larger - NEED_PER_HALVING * smaller,
            tail_tokens: (budget / 32).min(1_000),
            opening_tokens: (budget / 24).min(1_600),
            users_tokens: (budget / 40).min(800),
            ledger_tokens: (budget / 64).min(500),
            outline_tokens: (budget / 128).min(400),
            touch_tokens: (budget / 12).min(4_000),
            output_tokens: (budget / 10).min(1_000),
            terse: true,
            message_tokens: 0,
            patience: (PATIENCE + PATIENCE_PER_DOUBLING * doublings).max(LEAST_PATIENCE),
            most_excess: MOST_EXCESS * (-EXCESS_HALVINGS * larger).exp2(),
        }
    }

    /// The same with what the provider adds around every message.
    pub fn with_message_tokens(mut self, tokens: u64) -> Self {
        self.message_tokens = tokens;
        self
    }

    /// The same with outputs as the tools gave them, for as long as they need not shrink.
    pub fn verbatim(mut self) -> Self {
        self.terse = false;
        self
    }

    /// The same with a provider's prices.
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// The least need of a chunk that the view shows behind a number of messages.
    ///
    /// It rises as a conversation grows. Early on, old chunks are needed nearly as often as new ones: what an agent
    /// reads first is what it works on. Later the same age, and the same words in common, mean much less.
    pub fn least_need_behind(&self, messages: usize) -> f64 {
        self.least_need + (messages.max(1) as f64 / MIDDLE_MESSAGES).ln()
    }
}
