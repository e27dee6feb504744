//! Folding while the provider's cache is cold, when that costs nothing.

use super::{Fold, FoldDecision, Folder};

/// Share of the budget by which a free fold must make the window smaller: each fold also leaves something out.
const WORTHWHILE_SHARE: f64 = 0.125;

impl Folder {
    /// Says that the provider's cache holds nothing of the next request: it has expired, or was missed.
    ///
    /// The next [`request`](Self::request) is then billed in full, and so would pass-through be. A fold costs
    /// nothing extra and is made if it makes the window smaller by a worthwhile share of its budget.
    pub fn cache_is_cold(&mut self) {
        self.is_cold = true;
    }

    /// Takes note of what was said of the cache. Before the first request there is nothing to note.
    pub(super) fn note_cold(&mut self) {
        if self.is_cold && self.full.1 > 0 {
            self.decisions.push(FoldDecision::Cold { at: self.messages.len() });
            self.begin_cold();
        }
    }

    pub(super) fn begin_cold(&mut self) {
        self.is_cold = true;
        self.window.forget_sent();
    }

    /// What pass-through would find in the cache now.
    pub(super) fn passed_through_cached(&self) -> u64 {
        if self.is_cold { 0 } else { self.full.1 }
    }

    /// Folds if that is worthwhile, now that it is free.
    pub(super) fn fold_while_cold(&mut self) {
        let fold = self.build_fold("the cache is cold, so rewriting is free");
        if self.is_worthwhile(&fold) && fold.left_out.is_empty() {
            self.apply_fold(&fold);
            self.decisions.push(FoldDecision::Fold(fold));
        }
    }

    fn is_worthwhile(&self, fold: &Fold) -> bool {
        let least = (self.policy.budget as f64 * WORTHWHILE_SHARE) as u64;
        fold.before_tokens.saturating_sub(fold.after_tokens) >= least.max(1)
    }
}
