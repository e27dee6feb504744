//! What was billed, what a fold would cost, and whether the provider's cache is cold.

use super::price::{Account, Prices};
use super::tuning::{FREE_SHARE, MUCH_SAVED_SHARE, PATIENCE, Tuning};
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// What was billed so far, and what is needed to say whether a fold pays.
#[derive(Debug, Default)]
pub(super) struct Billing {
    account: Account,
    /// Whether the provider's cache holds nothing of the request that comes next.
    is_cold: bool,
    /// Tokens that pass-through sent with the last request.
    passed_through: u64,
    last_fold: Option<FoldSize>,
    requests_since_fold: u32,
}

/// The size of a fold.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoldSize {
    /// Tokens of the window after it.
    pub(super) after: u64,
    /// How many of those were not sent before.
    pub(super) rewritten: u64,
    /// Tokens of everything that had been said and done at that time.
    pub(super) dialogue: u64,
}

impl Billing {
    /// Returns what was billed so far, and what pass-through would have been billed.
    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    /// Whether the provider's cache holds nothing of the next request.
    pub(super) fn is_cold(&self) -> bool {
        self.is_cold
    }

    /// Notes that the cache is cold. Before the first request this has no effect.
    pub(super) fn set_cold(&mut self) {
        self.is_cold = true;
    }

    /// Whether a cold cache is worth noting, because something was sent before.
    pub(super) fn is_newly_cold(&self) -> bool {
        self.is_cold && self.passed_through > 0
    }

    /// Requests since the last fold, including the current one.
    pub(super) fn requests_since_fold(&self) -> u32 {
        self.requests_since_fold
    }

    /// Begins a request, which adds to the cost of resending what a fold of an expected size would remove.
    pub(super) fn begin_request(&mut self, prices: &Prices, window_tokens: u64, size: FoldSize) {
        self.requests_since_fold += 1;
        self.account.avoidable += prices.read * window_tokens.saturating_sub(size.after) as f64;
    }

    /// Returns the expected size of the next fold, from that of the last one or, for the first one, that of everything
    /// but the dialogue, and from the tokens of the dialogue.
    pub(super) fn fold_size(&self, first: u64, dialogue: u64) -> FoldSize {
        let last = self.last_fold.unwrap_or(FoldSize { after: first, rewritten: first, dialogue: 0 });
        let new = dialogue.saturating_sub(last.dialogue);
        FoldSize { after: last.after + new, rewritten: last.rewritten + new, dialogue }
    }

    /// Whether resending has cost as much as the fold (times the patience), and the bill stays within the allowed
    /// excess.
    pub(super) fn has_paid_for(&self, price: f64, tuning: &Tuning) -> bool {
        self.account.avoidable >= price * PATIENCE && self.can_afford(price, tuning)
    }

    /// Whether the bill stays within the allowed excess after a fold of this price.
    pub(super) fn can_afford(&self, price: f64, tuning: &Tuning) -> bool {
        self.account.saved() - price >= -tuning.most_excess * self.account.passed_through
    }

    /// Whether a window with only the usual share of a budget free would be full again with the next request, if that
    /// brings as much as those since the last fold did, and the bill shows that folds save little.
    pub(super) fn fills_at_once(&self, window_tokens: u64, budget: u64) -> bool {
        let Some(last) = self.last_fold else { return false };
        let came = window_tokens.saturating_sub(last.after) as f64;
        let saves_little = self.account.saved() < MUCH_SAVED_SHARE * self.account.passed_through;
        saves_little && came >= FREE_SHARE * budget as f64 * f64::from(self.requests_since_fold)
    }

    /// Notes a fold.
    pub(super) fn note_fold(&mut self, size: FoldSize) {
        self.account.avoidable = 0.0;
        self.requests_since_fold = 0;
        self.last_fold = Some(size);
    }

    /// Ends a request: the window of `tokens` tokens, of which `cached` were sent before, is billed.
    pub(super) fn end_request(&mut self, prices: &Prices, cached: u64, tokens: u64, passed_through: u64) {
        let found = if self.is_cold { 0 } else { self.passed_through };
        self.account.note(prices.bill(cached, tokens), prices.bill(found, passed_through));
        self.is_cold = false;
        self.passed_through = passed_through;
    }

    /// Writes all of it.
    pub(super) fn rest(&self, packer: &mut Packer<'_>) {
        let Self { account, is_cold, passed_through, last_fold, requests_since_fold } = self;
        let Account { billed, passed_through: other, worst_excess, avoidable } = account;
        for real in [billed, other, worst_excess, avoidable] {
            packer.real(*real);
        }
        packer.flag(*is_cold);
        packer.number(*passed_through);
        packer.list(last_fold.as_slice(), |packer, FoldSize { after, rewritten, dialogue }| {
            packer.number(*after);
            packer.number(*rewritten);
            packer.number(*dialogue);
        });
        packer.number(*requests_since_fold);
    }

    /// Reads it again.
    pub(super) fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        Ok(Self {
            account: Account {
                billed: unpacker.real()?,
                passed_through: unpacker.real()?,
                worst_excess: unpacker.real()?,
                avoidable: unpacker.real()?,
            },
            is_cold: unpacker.flag()?,
            passed_through: unpacker.number()?,
            last_fold: unpacker
                .list(|unpacker| {
                    let (after, rewritten) = (unpacker.number()?, unpacker.number()?);
                    Ok(FoldSize { after, rewritten, dialogue: unpacker.number()? })
                })?
                .pop(),
            requests_since_fold: unpacker.number()?,
        })
    }
}
