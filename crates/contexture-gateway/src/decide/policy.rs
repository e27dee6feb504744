//! The limits within which a folder decides about a request: its budget, its prices, and what is pinned.

use contexture::fold::{FoldWhen, Policy};
use contexture::wire::{Format, Request};

use super::prepared::RequestedModel;
use crate::account::bill::Account;
use crate::conversation::Conversation;
use crate::models::{Asks, Caching};
use crate::options::{DEFAULT_BUDGET, LEAST_BUDGET, Options, WHOLE_WINDOW};

/// The most output tokens for which room is left.
const MOST_OUTPUT: u64 = 32_000;

/// The output tokens for which room is left if the request sets no limit.
const USUAL_OUTPUT: u64 = 8_000;

/// The part of a model's window that is used, because token counts are estimates.
const USED_SHARE: f64 = 0.95;

/// Bytes of a request for one token, about.
const BYTES_PER_TOKEN: f64 = 4.0;

/// Text has hardly ever fewer bytes for a token.
const LEAST_BYTES_PER_TOKEN: f64 = 3.0;

/// How many times its budget a request has at most that is sent without a new decision.
pub(crate) const MOST_TIMES_BUDGET: f64 = 1.5;

/// The policy for a request, of which `head` tokens cannot be folded.
pub(crate) fn policy(
    options: &Options,
    request: &Request<'_>,
    conversation: &Conversation,
    requested: &RequestedModel,
    head: u64,
) -> Policy {
    let state = conversation.state();
    let account = state.billed().account();
    let policy = policy_within(options.budget, limit(request, requested), requested, account, head);
    let policy = if state.health().was_refused() { policy.when(FoldWhen::Forced) } else { policy };
    policy.with_pins(options.pins.clone().and(state.decisions().pins()))
}

/// The policy for a budget that was asked for, if any, and for the most tokens that the model takes.
pub(crate) fn policy_within(
    asked: Option<u64>,
    limit: u64,
    requested: &RequestedModel,
    account: &Account,
    head: u64,
) -> Policy {
    let total = (most_within(asked, limit, requested) as f64 / account.ratio()) as u64;
    let budget = total.saturating_sub(head).max(LEAST_BUDGET);
    let (billed, passed_through) = account.bills();
    Policy::new(budget).with_prices(requested.prices).after_bill(billed, passed_through)
}

/// The most tokens that a request may have for its model: above that, the provider refuses it.
pub(crate) fn limit(request: &Request<'_>, requested: &RequestedModel) -> u64 {
    limit_with(request.most_output(), requested)
}

/// The same for a request that asks for so many tokens of output.
pub(crate) fn limit_with(most_output: Option<u64>, requested: &RequestedModel) -> u64 {
    let output = most_output.unwrap_or(USUAL_OUTPUT).min(MOST_OUTPUT);
    (requested.known.model.context.saturating_sub(output) as f64 * USED_SHARE) as u64
}

/// Whether a request would probably be above that limit if nothing new were decided about it. It is looked at before
/// anything is decided, so it is an estimate from its size and from what was sent before.
pub(crate) fn is_above(request: &Request<'_>, conversation: &Conversation, requested: &RequestedModel) -> bool {
    estimate(request, conversation) > limit(request, requested)
}

/// How many times its budget a request would have if nothing new were decided about it.
pub(crate) fn times_budget(
    options: &Options,
    request: &Request<'_>,
    conversation: &Conversation,
    requested: &RequestedModel,
) -> f64 {
    estimate(request, conversation) as f64 / most_tokens(options, request, requested).max(1) as f64
}

/// The same for a request of which only the size is known.
pub(crate) fn times_budget_whole(options: &Options, request: &Request<'_>, requested: &RequestedModel) -> f64 {
    request.body().len() as f64 / BYTES_PER_TOKEN / most_tokens(options, request, requested).max(1) as f64
}

/// The tokens that the request would have if nothing new were decided about it, from its size and from what was sent
/// before.
fn estimate(request: &Request<'_>, conversation: &Conversation) -> u64 {
    let state = conversation.state();
    let (account, decisions) = (state.billed().account(), state.decisions());
    let sent = decisions.points().last().copied().unwrap_or(0);
    let tokens = |bytes: usize| (bytes as f64 / BYTES_PER_TOKEN * account.ratio()) as u64;
    match account.last_sent() {
        0 => tokens(request.body().len()),
        last => {
            let newer = request.messages().iter().skip(sent).map(|message| message.get().len()).sum();
            last + tokens(newer)
        }
    }
}

/// The most tokens of a request: those that were asked for, if the model takes as many.
pub(crate) fn most_tokens(options: &Options, request: &Request<'_>, requested: &RequestedModel) -> u64 {
    most_within(options.budget, limit(request, requested), requested)
}

/// The same for a budget that was asked for, if any, and for the most tokens that the model takes.
pub(crate) fn most_within(asked: Option<u64>, limit: u64, requested: &RequestedModel) -> u64 {
    // A window that is only guessed does not speak against what the user says.
    let most = if requested.known.window.is_guess() { u64::MAX } else { limit };
    match asked.unwrap_or(DEFAULT_BUDGET) {
        WHOLE_WINDOW => limit,
        budget => budget.min(most),
    }
}

/// The bytes of the messages after the first ones within the budget, about.
pub(crate) fn bytes_within(options: &Options, request: &Request<'_>, requested: &RequestedModel, lead: usize) -> usize {
    let tokens = most_tokens(options, request, requested).saturating_sub(head_tokens(request, lead)).max(LEAST_BUDGET);
    (tokens as f64 * LEAST_BYTES_PER_TOKEN) as usize
}

/// Whether a request probably fits its model's window as it came.
pub(crate) fn fits_whole(request: &Request<'_>, conversation: &Conversation, requested: &RequestedModel) -> bool {
    let ratio = conversation.state().billed().account().ratio();
    request.body().len() as f64 / BYTES_PER_TOKEN * ratio <= limit(request, requested) as f64
}

/// Whether a request may be above that limit as it came, by its size alone.
pub(crate) fn may_be_above(request: &Request<'_>, requested: &RequestedModel) -> bool {
    let most = request.body().len() as f64 / LEAST_BYTES_PER_TOKEN;
    most > limit(request, requested) as f64
}

/// The model that a request names, with its prices.
pub(crate) fn requested_model(options: &Options, asks: &Asks, request: Option<&Request<'_>>) -> RequestedModel {
    let name = request.and_then(|request| request.model()).unwrap_or_default().into_owned();
    let known = options.models.find(&name).asked(asks);
    RequestedModel::new(known, name, request.map_or(Caching::None, caching), options.leaves)
}

/// What the client asks the provider to cache.
fn caching(request: &Request<'_>) -> Caching {
    match (request.format(), request.marks()) {
        (Format::Messages, marks) if marks.count == 0 => Caching::None,
        (Format::Messages, marks) if marks.asks_for_hour => Caching::Hour,
        _ => Caching::Minutes,
    }
}

/// Tokens of everything before the messages that can be folded, without what the provider has summed up: the model does
/// not see it.
pub(crate) fn head_tokens(request: &Request<'_>, lead: usize) -> u64 {
    let seen = request.messages().iter().take(lead).skip(request.summed_up());
    let lead: usize = seen.map(|message| message.get().len()).sum();
    (request.other_bytes() + lead) as u64 / 4
}
