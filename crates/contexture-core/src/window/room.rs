//! How much room a window has, and how much of it is reserved for history.

use super::input::WindowInput;
use crate::error::Error;
use crate::log::ItemLog;

/// The least room in which a window can be built.
pub const MIN_WINDOW_TOKENS: u64 = 96;
/// The newest user message is never shortened below this size.
const MIN_USER_TOKENS: u64 = 24;

/// The room for all bands after system, tools and response.
pub(super) fn available(input: &WindowInput<'_>) -> Result<u64, Error> {
    let budget = input.policy.token_budget;
    let mut available = budget;
    let parts = [
        ("token_budget", 0),
        ("response_reserve", input.policy.response_reserve),
        ("system", input.system_tokens),
        ("tools", input.tools_tokens),
    ];
    for (field, tokens) in parts {
        available = available.saturating_sub(tokens);
        if available < MIN_WINDOW_TOKENS {
            let taken = if field == "token_budget" { budget } else { tokens };
            return Err(Error::NoRoom { field, taken, available, needed: MIN_WINDOW_TOKENS });
        }
    }
    Ok(available)
}

/// The room that is reserved for history: enough for the newest user message, or a quarter.
pub(crate) fn least_history(available: u64, log: &ItemLog) -> u64 {
    let user = log.newest_user().and_then(|user| log.get(user)).map_or(0, |entry| entry.tokens);
    user.min(available / 4).max(MIN_USER_TOKENS).min(available)
}
