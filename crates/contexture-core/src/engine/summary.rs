//! The text that replaces evicted items: by the overflow model, or the ledger.

use std::ops::Range;
use std::time::Duration;

use super::hook_run::{FutureEnd, within};
use super::shared::SharedExecution;
use crate::error::BoxError;
use crate::item::Item;
use crate::log::ItemLog;
use crate::model::MemoryCallModelRequest;
use crate::tokens::TokenCounter;
use crate::window::{ProjectionPolicy, Summary, SummaryRequest, ledger, shorten};

/// The overflow model gets at least this much of every item.
const LEAST_TOLD_TOKENS: u64 = 64;
/// How long the overflow model may take.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A summary by the overflow model, or the ledger if there is no model or its summary is unusable.
pub(crate) async fn summarize(
    shared: &SharedExecution,
    log: &ItemLog,
    policy: &ProjectionPolicy,
    request: &SummaryRequest,
) -> Summary {
    let counter = &*shared.core().counter;
    match summary_by_model(shared, log, policy, request).await {
        Some(Ok(text)) => {
            let tokens = counter.count(&text);
            // The limit is less than what it replaces, so a summary that is not smaller is rejected.
            if tokens <= request.max_tokens && !text.trim().is_empty() {
                return Summary { text, by_model: true };
            }
            let most = request.max_tokens;
            let message =
                format!("the summary has {tokens} tokens, allowed are 1 to {most}; the ledger is used instead");
            shared.fault(None, "overflow", message);
        }
        Some(Err(error)) => {
            let message = format!("the overflow model failed, and the ledger is used instead: {error}");
            shared.fault(None, "overflow", message);
        }
        None => {}
    }
    let range = request.start..request.end;
    let text = ledger(counter, log, range, request.previous.as_deref(), request.max_tokens);
    Summary { text, by_model: false }
}

async fn summary_by_model(
    shared: &SharedExecution,
    log: &ItemLog,
    policy: &ProjectionPolicy,
    request: &SummaryRequest,
) -> Option<Result<String, BoxError>> {
    let model = policy.overflow_model.clone()?;
    let caller = shared.context_data().call_model.clone()?;
    let mut items: Vec<Item> = request.previous.iter().map(|text| Item::developer(text.clone())).collect();
    items.extend(summary_items(&*shared.core().counter, log, policy, request.start..request.end));
    let instructions = format!(
        "Summarise this part of a conversation for the one who goes on with it: what was asked, what was done, \
         what was found, what is open. At most {} tokens. Answer with the summary alone.",
        request.max_tokens
    );
    let call = caller.call(MemoryCallModelRequest { model, items, instructions: Some(instructions) });
    Some(match within(&*shared.core().host.clock, TIME_LIMIT, call).await {
        FutureEnd::Done(response) => response.map(|response| response.output_text()),
        FutureEnd::Panicked(message) => Err(format!("panicked: {message}").into()),
        FutureEnd::Late(limit) => Err(format!("took longer than {} s", limit.as_secs()).into()),
    })
}

/// Items of the log as text for the overflow model, within the size of a window: if there are more, large ones are cut
/// to their share, and the oldest are dropped.
fn summary_items(
    counter: &dyn TokenCounter,
    log: &ItemLog,
    policy: &ProjectionPolicy,
    range: Range<usize>,
) -> Vec<Item> {
    // A fifth is reserved for the names of speakers, the last summary and the instructions.
    let room = policy.token_budget.saturating_sub(policy.response_reserve) / 5 * 4;
    let fits = log.range_tokens(range.clone()) <= room;
    let share = if fits { u64::MAX } else { (room / range.len() as u64).max(LEAST_TOLD_TOKENS) };
    let mut used = 0;
    let newest = log.range(range).rev().map(|(_, entry)| entry).take_while(|entry| {
        used += entry.tokens.min(share);
        used <= room
    });
    let told = |text: String| Item::developer(shorten(counter, &text, share));
    let mut told: Vec<Item> = newest.map(|entry| told(item_as_text(&entry.item))).collect();
    told.reverse();
    told
}

/// An item as a line of text for the overflow model.
fn item_as_text(item: &Item) -> String {
    match item {
        Item::Message(message) => format!("{}: {}", message.role.as_str(), message.text()),
        Item::FunctionCall(call) => format!("call {}: {}", call.name, call.arguments),
        Item::FunctionCallOutput(output) => format!("output: {}", output.output),
        Item::Reasoning(reasoning) => format!("thought: {}", reasoning.text),
        Item::Opaque(value) => value.to_string(),
    }
}
