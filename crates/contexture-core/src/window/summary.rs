//! The text that replaces evicted items.

use std::ops::Range;
use std::sync::Arc;

use super::epoch::PinnedSummary;
use super::input::WindowInput;
use super::output::SummaryRequest;
use super::shorten::{fit_item, shorten};
use super::text::escape_tags;
use crate::decision::Action;
use crate::item::Item;
use crate::tokens::count_item;

/// A summary may take this share of history's room.
pub(super) const SHARE: u64 = 8;
/// A shorter summary would be useless.
const MIN_TEXT_TOKENS: u64 = 8;
/// The start of a summary, so that it is not mistaken for a message of a person.
const OPENING: &str = "What happened before, in short:\n";

/// What happens to the summary when history is cut.
pub(super) enum SummaryChange {
    Unchanged,
    Gone,
    New { pinned: PinnedSummary, tokens: u64, action: Action },
}

/// Creates the summary of a range of the log, or requests its text.
///
/// It is always smaller than what it replaces; if that is impossible, there is none.
pub(super) fn summarize(
    input: &WindowInput<'_>,
    evicted: Range<usize>,
    last: Option<&PinnedSummary>,
    room: u64,
) -> Result<SummaryChange, SummaryRequest> {
    let counter = input.counter;
    let last_tokens = last.map_or(0, |last| count_item(counter, &last.item));
    let evicted_tokens = input.history.log().range_tokens(evicted.clone()) + last_tokens;
    let most = room.min(evicted_tokens.saturating_sub(1));
    let max_tokens = most.saturating_sub(count_item(counter, &Item::developer(OPENING)));
    if max_tokens < MIN_TEXT_TOKENS {
        return Ok(SummaryChange::Gone);
    }
    let Some(summary) = &input.summary else {
        let previous = last.map(|last| last.text.clone());
        return Err(SummaryRequest { start: evicted.start, end: evicted.end, previous, max_tokens });
    };
    let text = escape_tags(&summary.text);
    let text = shorten(counter, &text, max_tokens);
    let item = Item::developer(format!("{OPENING}{text}"));
    // The boundary between the opening and the text may take one more token.
    let Some((_, item, tokens)) = fit_item(counter, &item, most) else { return Ok(SummaryChange::Gone) };
    let action = Action::Summarize { end: evicted.end, text: text.clone(), tokens, by_model: summary.by_model };
    Ok(SummaryChange::New { pinned: PinnedSummary { text, item: Arc::new(item) }, tokens, action })
}
