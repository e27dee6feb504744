//! Token counting.

use crate::item::{Content, Item};

/// Tokens that a provider adds around every item: role, separators, names of fields.
///
/// Providers do not publish the exact figure; four is what the public chat formats come to.
pub const ITEM_OVERHEAD_TOKENS: u64 = 4;

/// Counts tokens of text.
///
/// The engine calls [`count`](TokenCounter::count) once for every item when it is logged and stores the result. The
/// other methods are used to cut text to a budget; their defaults call `count`.
/// Implementations must be deterministic. Appending text may lower the count only by what merging tokens at the
/// boundary can explain (a few tokens).
pub trait TokenCounter: Send + Sync {
    /// The name of the counter, for reports: `o200k`, `estimate`.
    fn name(&self) -> &str;

    /// The number of tokens of `text`.
    fn count(&self, text: &str) -> u64;

    /// The number of tokens of `text`, or `None` as soon as it is known to be above `limit`.
    fn count_until(&self, text: &str, limit: u64) -> Option<u64> {
        let count = self.count(text);
        (count <= limit).then_some(count)
    }

    /// How many bytes of the start of `text` make at most `tokens` tokens, at a character boundary.
    fn head(&self, text: &str, tokens: u64) -> usize {
        longest(text.len(), |len| {
            let len = floor_boundary(text, len);
            self.count_until(&text[..len], tokens).is_some().then_some(len)
        })
    }

    /// How many bytes of the end of `text` make at most `tokens` tokens, at a character boundary.
    fn tail(&self, text: &str, tokens: u64) -> usize {
        longest(text.len(), |len| {
            let start = ceil_boundary(text, text.len() - len);
            self.count_until(&text[start..], tokens).is_some().then_some(text.len() - start)
        })
    }

    /// Whether counts are estimates that should be corrected by the usage that a provider reports.
    fn is_estimate(&self) -> bool {
        false
    }
}

/// The largest length that fits, by bisection; `fits` rounds a length to a boundary and tests it.
fn longest(max: usize, fits: impl Fn(usize) -> Option<usize>) -> usize {
    if let Some(len) = fits(max) {
        return len;
    }
    let (mut good, mut bad, mut answer) = (0, max, 0);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match fits(middle) {
            Some(len) => (good, answer) = (middle, len),
            None => bad = middle,
        }
    }
    answer
}

/// The largest character boundary at or below `at`.
pub fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The smallest character boundary at or above `at`.
pub fn ceil_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// The cheap estimate: UTF-8 bytes divided by four, rounded up.
///
/// For models without a public vocabulary. On code and English it is within about 15 % of o200k, on other
/// scripts it can be off by half; the engine corrects it with the usage that the provider reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate;

impl TokenCounter for Estimate {
    fn name(&self) -> &str {
        "estimate"
    }

    fn count(&self, text: &str) -> u64 {
        (text.len() as u64).div_ceil(4)
    }

    fn head(&self, text: &str, tokens: u64) -> usize {
        floor_boundary(text, usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX))
    }

    fn tail(&self, text: &str, tokens: u64) -> usize {
        let len = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX).min(text.len());
        text.len() - ceil_boundary(text, text.len() - len)
    }

    fn is_estimate(&self) -> bool {
        true
    }
}

/// The tokens of one item, with what providers add around it.
pub fn count_item(counter: &dyn TokenCounter, item: &Item) -> u64 {
    ITEM_OVERHEAD_TOKENS
        + match item {
            Item::Message(message) => message.content.iter().map(|content| count_content(counter, content)).sum(),
            Item::FunctionCall(call) => counter.count(&call.name) + counter.count(&call.arguments),
            Item::FunctionCallOutput(output) => counter.count(&output.output),
            Item::Reasoning(reasoning) => {
                counter.count(&reasoning.text)
                    + reasoning.opaque.as_ref().map_or(0, |value| counter.count(&value.to_string()))
            }
            Item::Opaque(value) => counter.count(&value.to_string()),
        }
}

fn count_content(counter: &dyn TokenCounter, content: &Content) -> u64 {
    match content {
        Content::Text { text } => counter.count(text),
        Content::Opaque(value) => counter.count(&value.to_string()),
    }
}

/// Converts a number from a configuration file to whole tokens; the error is a message that names the field.
///
/// ```
/// use contexture_core::tokens::whole_tokens;
/// assert_eq!(whole_tokens("budget.max", 1500.7), Ok(1500));
/// assert_eq!(whole_tokens("budget.max", f64::NAN), Err("`budget.max` is not a number".into()));
/// assert_eq!(whole_tokens("budget.min", -1.0), Err("`budget.min` is negative (-1)".into()));
/// ```
pub fn whole_tokens(field: &str, number: f64) -> Result<u64, String> {
    if number.is_nan() {
        return Err(format!("`{field}` is not a number"));
    }
    if number < 0.0 {
        return Err(format!("`{field}` is negative ({number})"));
    }
    if number > MAX_TOKENS as f64 {
        return Err(format!("`{field}` is above {MAX_TOKENS} ({number})"));
    }
    Ok(number as u64)
}

/// The largest valid budget: 2^40 tokens.
pub const MAX_TOKENS: u64 = 1 << 40;
