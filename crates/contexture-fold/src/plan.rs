//! Decisions about a conversation. Nothing here changes what is shown: decisions are applied elsewhere.

mod bring_back;
mod account;
mod echoes;
mod fold;
mod frame;
mod losses;
mod outputs;
mod parts;
mod said;
mod selection;

use fold::Occasion;
use frame::FoldFrame;

use super::decision::{Fold, FoldDecision};
use super::policy::FoldWhen;
use super::settings::FoldSettings;
use super::state::State;
use super::tuning::{LEAST_GROWTH_PART, MOST_MISSING_SHARE, MOST_PAYBACK_SHARE, TRY_EVERY_REQUESTS, WORTHWHILE_SHARE};

pub(super) use outputs::shorten;

/// Makes one decision about the current request. It may refresh what is derived from the state, but nothing else.
pub(super) type Decide = fn(&FoldSettings, &mut State) -> Option<FoldDecision>;

const FULL: Occasion = Occasion { when: FoldWhen::Forced, reason: "the window is full" };
const BROUGHT_BACK: Occasion =
    Occasion { when: FoldWhen::Forced, reason: "what a touched or named file brought back does not fit" };
const FREE: Occasion = Occasion { when: FoldWhen::Free, reason: "the cache is cold, so rewriting is free" };
const PAID: Occasion = Occasion { when: FoldWhen::Pays, reason: "what it saves has paid for it" };

/// The decisions before every request, in this order. Each is applied before the next one is made.
pub(super) const BEFORE_REQUEST: [Decide; 4] = [note_cold, fold, bring_back::bring_back, fold_if_too_large];

/// Notes that the provider's cache is cold.
fn note_cold(_: &FoldSettings, state: &mut State) -> Option<FoldDecision> {
    let at = state.conversation.len();
    state.billing.is_newly_cold().then_some(FoldDecision::Cold { at })
}

/// Folds the past if that is forced, free, or pays.
fn fold(settings: &FoldSettings, state: &mut State) -> Option<FoldDecision> {
    let FoldSettings { policy, tuning, .. } = settings;
    let total = state.shown.tokens();
    if total > policy.budget {
        return Some(FoldDecision::Fold(forced_fold(settings, state, FULL)));
    }
    if state.billing.is_cold() && policy.when >= FoldWhen::Free {
        let fold = unforced_fold(settings, state, FREE)?;
        return (is_worthwhile(settings, &fold) && fold.left_out.is_empty()).then_some(FoldDecision::Fold(fold));
    }
    let size = state.fold_size(settings);
    let price = (policy.prices.write - policy.prices.read) * size.rewritten as f64;
    let has_grown = total > size.after + size.after / LEAST_GROWTH_PART;
    let is_time = state.billing.requests_since_fold().is_multiple_of(TRY_EVERY_REQUESTS);
    let pays = policy.when == FoldWhen::Pays && has_grown && state.billing.has_paid_for(price, tuning);
    if !(pays && is_time && !state.billing.is_cold()) {
        return None;
    }
    let fold = unforced_fold(settings, state, PAID)?;
    // Only the budget may cause a fold to leave out what the agent wrote.
    let is_harmless =
        fold.left_out.is_empty() && is_worthwhile(settings, &fold) && state.billing.can_afford(fold.cost, tuning);
    (is_harmless && pays_back(state, &fold)).then_some(FoldDecision::Fold(fold))
}

/// Whether a fold that nothing forces earns its price soon enough.
///
/// Before it is planned, the size of a fold is only an estimate. What a view or a dialogue does not remove is not
/// saved, so a fold can cost as much as it was expected to and save next to nothing.
fn pays_back(state: &State, fold: &Fold) -> bool {
    let requests = |price: f64| price / fold.saves_per_request;
    // A conversation goes on for about as long as it went on so far: one that ends before the bill is below
    // pass-through again has paid for nothing.
    let missing = (fold.cost - state.billing.account().saved()).max(0.0);
    fold.saves_per_request > 0.0
        && requests(fold.cost) <= f64::from(state.billing.requests_since_fold()) * MOST_PAYBACK_SHARE
        && requests(missing) <= f64::from(state.conversation.responses()) * MOST_MISSING_SHARE
}

/// Folds if what was brought back made the window too large.
fn fold_if_too_large(settings: &FoldSettings, state: &mut State) -> Option<FoldDecision> {
    let is_too_large = state.shown.tokens() > settings.policy.budget;
    is_too_large.then(|| FoldDecision::Fold(forced_fold(settings, state, BROUGHT_BACK)))
}

fn forced_fold(settings: &FoldSettings, state: &mut State, occasion: Occasion) -> Fold {
    state.knowledge.cut_all();
    fold::plan(settings, state, FoldFrame::forced(settings, state), occasion)
}

/// A fold that cuts nothing of what was said; `None` if there is no room for that.
fn unforced_fold(settings: &FoldSettings, state: &mut State, occasion: Occasion) -> Option<Fold> {
    let frame = FoldFrame::unforced(settings, state)?;
    state.knowledge.cut_all();
    Some(fold::plan(settings, state, frame, occasion))
}

/// Whether a free fold shrinks the window enough: each fold also leaves something out.
fn is_worthwhile(settings: &FoldSettings, fold: &Fold) -> bool {
    let least = (settings.policy.budget as f64 * WORTHWHILE_SHARE) as u64;
    fold.before_tokens.saturating_sub(fold.after_tokens) >= least.max(1)
}
