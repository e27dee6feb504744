//! The cap: the most that may be spent in a day and in a conversation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

/// The most that may be spent. What is not set is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cap {
    /// In a day, which begins at 00:00 UTC.
    pub day: CapAmounts,
    /// In a conversation, with what was spent in the one that it branched off from, before it did.
    pub conversation: CapAmounts,
}

/// Amounts of a cap, of which each counts for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CapAmounts {
    /// Dollars, output included.
    pub dollars: Option<f64>,
    /// Tokens as the provider counts them: all input, from its cache or not, and output.
    pub tokens: Option<u64>,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Dollars, as far as prices are known.
    pub dollars: f64,
    /// Tokens, input and output.
    pub tokens: u64,
    /// Whether some of the dollars rest on a guess of a model's prices.
    pub is_guessed: bool,
    /// Requests to models whose prices are not known at all, so that their dollars are missing.
    pub unpriced: u64,
}

/// How much of a cap is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CapUse {
    /// The cap for a day.
    pub day: CapAmounts,
    /// What was spent since 00:00 UTC, by all gateways with the same store.
    pub day_spent: Spent,
    /// Whether the store could not be asked what was spent before, or by other gateways.
    pub is_day_incomplete: bool,
    /// The cap for a conversation.
    pub conversation: CapAmounts,
    /// What was spent in the conversation of this run that spent the most.
    pub conversation_spent: Spent,
    /// Requests that were refused because of the cap.
    pub refused: u64,
}

/// What a cap is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CapScope {
    Day,
    Conversation,
}

/// A cap that is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReachedCap {
    scope: CapScope,
    is_dollars: bool,
    cap: CapAmounts,
    spent: Spent,
}

impl Cap {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl CapAmounts {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn reached(&self, scope: CapScope, spent: Spent) -> Option<ReachedCap> {
        let reached = |is_dollars| ReachedCap { scope, is_dollars, cap: *self, spent };
        match () {
            () if self.dollars.is_some_and(|cap| spent.dollars >= cap) => Some(reached(true)),
            () if self.tokens.is_some_and(|cap| spent.tokens >= cap) => Some(reached(false)),
            () => None,
        }
    }

    /// The larger of the shares of its amounts that are used.
    pub(crate) fn share(&self, spent: &Spent) -> f64 {
        let share = |spent: f64, cap: f64| if cap > 0.0 { spent / cap } else { f64::INFINITY };
        let dollars = self.dollars.map_or(0.0, |cap| share(spent.dollars, cap));
        let tokens = self.tokens.map_or(0.0, |cap| share(spent.tokens as f64, cap as f64));
        dollars.max(tokens)
    }
}

impl Spent {
    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            dollars: self.dollars + other.dollars,
            tokens: self.tokens + other.tokens,
            is_guessed: self.is_guessed || other.is_guessed,
            unpriced: self.unpriced + other.unpriced,
        }
    }
}

/// The day of a time, by its number.
pub(crate) fn day_of(time_ms: u64) -> u64 {
    time_ms / DAY_MS
}

/// When a day begins.
pub(crate) fn day_begins_ms(day: u64) -> u64 {
    day * DAY_MS
}

impl ReachedCap {
    /// Why a request was refused, for its record.
    pub(crate) fn reason(&self) -> &'static str {
        match self.scope {
            CapScope::Day => "it was refused: the cap for a day is reached",
            CapScope::Conversation => "it was refused: the cap for a conversation is reached",
        }
    }
}

/// Dollars to the cent, or to two digits where that would be nothing.
pub(crate) fn dollars(amount: f64) -> String {
    let is_tiny = amount > 0.0 && amount < 0.095;
    if is_tiny { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

/// What the client is told, with what can be done.
impl fmt::Display for ReachedCap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cap, spent) = match self.is_dollars {
            true => (dollars(self.cap.dollars.unwrap_or_default()), dollars(self.spent.dollars)),
            false => {
                let tokens = |count: u64| format!("{count} tokens");
                (tokens(self.cap.tokens.unwrap_or_default()), tokens(self.spent.tokens))
            }
        };
        let guessed = if self.is_dollars && self.spent.is_guessed { ", by guessed prices" } else { "" };
        let (unit, sign) = if self.is_dollars { ("dollars", "$") } else { ("tokens", "tokens") };
        let (scope, since, end) = match self.scope {
            CapScope::Day => ("day", "since 00:00 UTC", "wait for 00:00 UTC"),
            CapScope::Conversation => ("conversation", "in this conversation", "begin a new conversation"),
        };
        write!(
            formatter,
            "the cap of {cap} for a {scope} is reached: {spent} were spent {since}{guessed}. Nothing was sent. To go on, \
             raise `{scope}_{unit}` in [gateway.cap] of your own configuration, which `contexture config --path` names, \
             or with --cap N{sign}/{scope}, and start the gateway again; or {end}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(dollars: f64, tokens: u64) -> Spent {
        Spent { dollars, tokens, ..Spent::default() }
    }

    #[test]
    fn each_amount_counts_for_itself_and_what_is_not_set_is_not_limited() {
        let cap = CapAmounts { dollars: Some(5.0), tokens: Some(1_000) };
        let is_reached = |cap: CapAmounts, spent| cap.reached(CapScope::Day, spent).is_some();
        assert!(!is_reached(cap, spent(4.99, 999)));
        assert!(is_reached(cap, spent(5.0, 0)) && is_reached(cap, spent(0.0, 1_000)));
        assert!(!is_reached(CapAmounts::default(), spent(1e9, u64::MAX)));
        assert!(is_reached(CapAmounts { dollars: Some(0.0), tokens: None }, spent(0.0, 0)), "a cap of nothing");
        assert!((cap.share(&spent(1.0, 900)) - 0.9).abs() < 1e-9);
    }

    #[test]
    fn the_sentence_says_how_to_raise_it() {
        let cap = CapAmounts { dollars: Some(5.0), tokens: None };
        let guessed = Spent { is_guessed: true, ..spent(5.031, 7) };
        let text = cap.reached(CapScope::Day, guessed).unwrap().to_string();
        assert!(
            text.contains("$5.00 for a day") && text.contains("$5.03 were spent since 00:00 UTC, by guessed prices")
        );
        assert!(text.contains("`day_dollars`") && text.contains("--cap N$/day"), "{text}");
        // A project's file cannot raise it.
        assert!(text.contains("your own configuration") && !text.contains("contexture.toml"), "{text}");
        let small = CapAmounts { dollars: Some(0.004), tokens: None };
        let text = small.reached(CapScope::Day, spent(0.0063, 7)).unwrap().to_string();
        assert!(text.contains("the cap of $0.0040") && text.contains("$0.0063 were spent"), "{text}");
        let cap = CapAmounts { dollars: None, tokens: Some(10) };
        let text = cap.reached(CapScope::Conversation, guessed.and(spent(0.0, 5))).unwrap().to_string();
        assert!(text.contains("12 tokens were spent in this conversation.") && !text.contains("guessed"), "{text}");
        assert!(text.contains("--cap Ntokens/conversation"), "{text}");
    }
}
