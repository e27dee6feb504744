//! How much room a window has, and how much of it is history's in any case.

use super::input::WindowInput;
use crate::error::Error;
use crate::log::ItemLog;

/// The least room in which a window can be made at all.
pub const MIN_WINDOW_TOKENS: u64 = 96;
/// The newest user message is kept at least this large, if it is.
const MIN_USER_TOKENS: u64 = 24;

/// What is left for bands when system, tools and response have theirs.
pub(super) fn available(input: &WindowInput<'_>) -> Result<u64, Error> {
    let mut available = input.policy.token_budget;
    let taken = [
        ("token_budget", 0),
        ("response_reserve", input.policy.response_reserve),
        ("system", input.system_tokens),
        ("tools", input.tools_tokens),
    ];
    for (field, tokens) in taken {
        available = available.saturating_sub(tokens);
        if available < MIN_WINDOW_TOKENS {
            return Err(Error::NoRoom { field, available, needed: MIN_WINDOW_TOKENS });
        }
    }
    Ok(available)
}

/// What history is left at least, whatever layers ask for: enough for the newest user message, or a quarter.
pub(crate) fn least_history(available: u64, log: &ItemLog) -> u64 {
    let user = log.newest_user().and_then(|user| log.get(user)).map_or(0, |entry| entry.tokens);
    user.min(available / 4).max(MIN_USER_TOKENS).min(available)
}
