//! Renders recalled results as items that fit their budgets.

use std::borrow::Cow;
use std::sync::Arc;

use super::voice::{may_speak, meets_schema};
use crate::event::SpanBudget;
use crate::item::{Content, Item};
use crate::layer::{LayerSpec, RecallItems};
use crate::tokens::{TokenCounter, count_item};
use crate::window::{escape_tags, fit_block, fit_item, memory_block};

/// How much of its budget a result uses.
pub(super) fn measure(
    counter: &dyn TokenCounter,
    spec: &LayerSpec,
    answer: &RecallItems,
    allocated: u64,
) -> SpanBudget {
    span_budget(allocated, render(counter, spec, answer, allocated).tokens)
}

pub(super) fn span_budget(allocated: u64, used: u64) -> SpanBudget {
    SpanBudget { allocated, used, yielded: allocated.saturating_sub(used) }
}

/// Returns the items that fit, and a message about what was cut.
#[derive(Default)]
pub(super) struct FittedAnswer {
    pub(super) items: Vec<Arc<Item>>,
    pub(super) tokens: u64,
    pub(super) problem: Option<String>,
}

pub(super) fn render(
    counter: &dyn TokenCounter,
    spec: &LayerSpec,
    answer: &RecallItems,
    allocated: u64,
) -> FittedAnswer {
    match answer {
        RecallItems::Nothing => FittedAnswer::default(),
        RecallItems::Text(text) => render_text(counter, spec, text, allocated),
        RecallItems::Items(items) => render_items(counter, spec, items, allocated),
    }
}

/// Wraps text in a developer message that names the layer; cuts the text, never the wrapping.
fn render_text(counter: &dyn TokenCounter, spec: &LayerSpec, text: &str, allocated: u64) -> FittedAnswer {
    let wrap = |text: &str| Item::developer(memory_block(&spec.id, text));
    let item = wrap(text);
    let tokens = count_item(counter, &item);
    if tokens <= allocated {
        return FittedAnswer { items: vec![Arc::new(item)], tokens, problem: None };
    }
    let problem = Some(over_budget(tokens, allocated));
    let Some(fitting) = fit_block(counter, &spec.id, text, allocated) else {
        return FittedAnswer { problem, ..FittedAnswer::default() };
    };
    let item = wrap(&fitting);
    FittedAnswer { tokens: count_item(counter, &item), items: vec![Arc::new(item)], problem }
}

/// Keeps whole items in order, as far as they fit; the first that does not fit is cut, the rest is dropped. They are
/// unchanged except for tags, which only the program itself may write.
fn render_items(counter: &dyn TokenCounter, spec: &LayerSpec, items: &[Item], allocated: u64) -> FittedAnswer {
    let mut rendered = FittedAnswer::default();
    let accepted: Vec<Cow<'_, Item>> =
        items.iter().filter(|item| is_acceptable(spec, item)).map(without_tags).collect();
    if accepted.len() < items.len() {
        let left_out = items.len() - accepted.len();
        rendered.problem = Some(format!(
            "{left_out} items dropped: a layer may only recall its own messages, as its schemas declare them"
        ));
    }
    let total: u64 = accepted.iter().map(|item| count_item(counter, item)).sum();
    for item in accepted {
        let tokens = count_item(counter, &item);
        let left = allocated - rendered.tokens;
        if tokens <= left {
            rendered.tokens += tokens;
            rendered.items.push(Arc::new(item.into_owned()));
            continue;
        }
        rendered.problem = Some(over_budget(total, allocated));
        if let Some((_, item, tokens)) = fit_item(counter, &item, left) {
            rendered.tokens += tokens;
            rendered.items.push(Arc::new(item));
        }
        break;
    }
    rendered
}

/// An item whose text does not pass for what the program writes.
fn without_tags(item: &Item) -> Cow<'_, Item> {
    let has_tags = |content: &Content| matches!(content.as_text().map(escape_tags), Some(Cow::Owned(_)));
    let Item::Message(message) = item else { return Cow::Borrowed(item) };
    if !message.content.iter().any(has_tags) {
        return Cow::Borrowed(item);
    }
    let mut message = message.clone();
    for content in &mut message.content {
        if let Content::Text { text } = content {
            *text = escape_tags(text).into_owned();
        }
    }
    Cow::Owned(message.into())
}

/// Calls, outputs and reasoning belong to the log; in a recall they would break pairs.
fn is_acceptable(spec: &LayerSpec, item: &Item) -> bool {
    let is_declared = !matches!(item, Item::Opaque(_));
    may_speak(spec, item) && meets_schema(spec, item).unwrap_or(is_declared)
}

fn over_budget(tokens: u64, allocated: u64) -> String {
    format!("returned {tokens} tokens, more than its budget of {allocated}; the rest was cut")
}
