//! The functions of layers that keep facts, which the model calls as tools and the program by name.

use std::sync::Arc;

use contexture_core::error::BoxError;
use contexture_core::layer::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attribute::is_single;
use super::evidence::{LocatedQuote, find_quote, find_repeated, kept_quote};
use super::fact::{FactDraft, FactId, Source, Speaker};
use super::layer::FactLayer;
use super::learner::ms;
use super::ownership::{FactStatement, ends, owned_in};
use super::refusal::Refusal;
use super::render::line;
use super::set::{Added, Facts};

/// The longest history that is told, in lines.
const MAX_HISTORY: usize = 40;

/// What `remember` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remember {
    /// The fact as one short sentence.
    pub text: String,
    /// What it is about: `user`, `project`, or a name.
    #[serde(default)]
    pub entity: String,
    /// Which property, as `lives in`.
    #[serde(default)]
    pub attribute: String,
    /// The property's value, as `Paris`.
    #[serde(default)]
    pub value: String,
    /// Words of the conversation that say it, copied exactly.
    #[serde(default)]
    pub quote: String,
}

/// What `update` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Update {
    /// The fact, as shown in brackets.
    pub id: String,
    /// The new sentence; empty if it is only no longer true.
    #[serde(default)]
    pub text: String,
    /// The new value.
    #[serde(default)]
    pub value: String,
    /// Words of the conversation that say it, copied exactly.
    #[serde(default)]
    pub quote: String,
}

/// What `forget` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forget {
    /// The fact, as shown in brackets.
    pub id: String,
}

/// What `history` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "History")]
pub struct FactHistory {
    /// What it is about.
    pub entity: String,
    /// Which property; empty for all.
    #[serde(default)]
    pub attribute: String,
}

impl FactLayer {
    /// The functions, described for the model.
    pub(super) fn functions(&self, provides: LayerProvides<Facts>) -> LayerProvides<Facts> {
        let layer = self.clone();
        let remember = layer_fn(
            "A sentence; quote: the exact words that say it.",
            move |input: Remember, facts: Arc<Facts>, ctx: ExecutionContext| {
                let layer = layer.clone();
                async move { remember(&layer, input, facts, &ctx) }
            },
        );
        let layer = self.clone();
        let update = layer_fn(
            "Without text: no longer true.",
            move |input: Update, facts: Arc<Facts>, ctx: ExecutionContext| {
                let layer = layer.clone();
                async move { update(&layer, input, facts, &ctx) }
            },
        );
        let layer = self.clone();
        let forget = layer_fn(
            "For good, when the user asks.",
            move |input: Forget, facts: Arc<Facts>, ctx: ExecutionContext| {
                let layer = layer.clone();
                async move {
                    let mut facts = Arc::unwrap_or_clone(facts);
                    let gone = facts.forget(&FactId::from(input.id.as_str()), ms(ctx.clock.now()))?;
                    layer.forget_elsewhere(&ctx, &gone).await;
                    Ok(FnResult::new("forgotten".to_owned()).with_state(facts))
                }
            },
        );
        let history = layer_fn("What was true, and when.", |input: FactHistory, facts: Arc<Facts>, _| async move {
            let lines: Vec<String> =
                facts.history(&input.entity, &input.attribute).into_iter().map(|fact| line(fact, false)).collect();
            let from = lines.len().saturating_sub(MAX_HISTORY);
            let told = if lines.is_empty() { "nothing is remembered".to_owned() } else { lines[from..].join("\n") };
            Ok(FnResult::new(told))
        });
        provides
            .function("remember", remember)
            .function("update", update)
            .function("forget", forget)
            .function("history", history)
            .in_one_tool("Facts beyond this conversation.")
    }
}

fn remember(
    layer: &FactLayer,
    input: Remember,
    facts: Arc<Facts>,
    ctx: &ExecutionContext,
) -> Result<FnResult<String, Facts>, BoxError> {
    let entity = if input.entity.trim().is_empty() { "user".to_owned() } else { input.entity };
    let statement = FactStatement {
        text: &input.text,
        entity: &entity,
        attribute: &input.attribute,
        value: &input.value,
        ..FactStatement::default()
    };
    let found = origin(layer, ctx, statement, &input.quote)?;
    let single = is_single(&input.attribute);
    let before = facts.clone();
    let mut facts = Arc::unwrap_or_clone(facts);
    let added = facts.add(draft(ctx, found, input.text, entity, input.attribute, input.value, single))?;
    let told = match &added {
        Added::New(id) => format!("remembered as {id}"),
        Added::Known(id) => format!("known already as {id}"),
    };
    let told = FnResult::new(told);
    // What is known already need not be written again.
    Ok(if facts == *before { told } else { told.with_state(facts) })
}

fn update(
    layer: &FactLayer,
    input: Update,
    facts: Arc<Facts>,
    ctx: &ExecutionContext,
) -> Result<FnResult<String, Facts>, BoxError> {
    let id = FactId::from(input.id.as_str());
    let old = facts.get(&id).ok_or_else(|| Refusal::Unknown(id.clone()))?.clone();
    if input.text.trim().is_empty() && input.value.trim().is_empty() {
        let found = quoted(layer, ctx, &old.text, &input.quote)?;
        let said_by = if found.source == Source::Hand || ends(&found, &old) {
            found.said_by
        } else {
            found.said_by.min(Speaker::Assistant)
        };
        let mut facts = Arc::unwrap_or_clone(facts);
        facts.end(&id, said_by, ms(ctx.clock.now()))?;
        return Ok(FnResult::new(format!("{id} is no longer current")).with_state(facts));
    }
    let value = if input.value.trim().is_empty() && input.text.contains(&old.value) { old.value } else { input.value };
    let text = match input.text.trim().is_empty() {
        true => format!("{} {}: {}", old.entity, old.attribute, value),
        false => input.text,
    };
    let statement = FactStatement {
        text: &text,
        entity: &old.entity,
        attribute: &old.attribute,
        value: &value,
        ..FactStatement::default()
    };
    let found = origin(layer, ctx, statement, &input.quote)?;
    let mut facts = Arc::unwrap_or_clone(facts);
    let new = facts.update(&id, draft(ctx, found, text, old.entity, old.attribute, value, old.single))?;
    Ok(FnResult::new(format!("{id} is now {new}")).with_state(facts))
}

fn draft(
    ctx: &ExecutionContext,
    found: LocatedQuote,
    text: String,
    entity: String,
    attribute: String,
    value: String,
    single: bool,
) -> FactDraft {
    let LocatedQuote { said_by, source, quote, time_ms, .. } = found;
    let at_ms = time_ms.unwrap_or_else(|| ms(ctx.clock.now()));
    FactDraft { text, entity, attribute, value, single, said_by, source, quote, at_ms, confirmed: false }
}

/// Who says a statement: the one who is quoted, if the quote carries it; else the model, if it makes this call; else the
/// program.
fn origin(
    layer: &FactLayer,
    ctx: &ExecutionContext,
    statement: FactStatement<'_>,
    quote: &str,
) -> Result<LocatedQuote, Refusal> {
    let found = quoted(layer, ctx, statement.text, quote)?;
    if quote.trim().is_empty() {
        return Ok(found);
    }
    let names: Vec<&str> = ctx.resource_id.iter().map(|id| id.as_str()).collect();
    let statement = FactStatement { names: &names.join(" "), ..statement };
    Ok(owned_in(&ctx.log(), layer.dialects(), &ctx.thread_id, found, &statement))
}

/// Who is quoted; without a quote the model, if it makes this call, or the program.
///
/// A model that says in its own words what a tool or a file just told it does not make it its own: that stays the
/// statement of the tool or the file.
fn quoted(layer: &FactLayer, ctx: &ExecutionContext, text: &str, quote: &str) -> Result<LocatedQuote, Refusal> {
    let (log, thread) = (ctx.log(), &ctx.thread_id);
    if !quote.trim().is_empty() {
        return find_quote(&log, layer.dialects(), thread, quote);
    }
    let prefix = format!("{}/", layer.id());
    let is_own = |position: &usize| {
        let call = log.get(*position).and_then(|entry| entry.item.as_call());
        call.is_some_and(|call| call.name.starts_with(&prefix))
    };
    let own_words = kept_quote(text.trim());
    let by = |said_by, source| LocatedQuote {
        said_by,
        source,
        quote: own_words.clone(),
        sentence: String::new(),
        time_ms: None,
    };
    let Some(item) = log.open_calls().find(is_own) else {
        return Ok(by(Speaker::User, Source::Hand));
    };
    if let Some(repeated) = find_repeated(&log, layer.dialects(), thread, text) {
        return Ok(repeated);
    }
    let end = log.get(item).and_then(|entry| entry.item.as_call()).map_or(0, |call| call.arguments.len());
    Ok(by(Speaker::Assistant, Source::Item { thread: thread.clone(), item, start: 0, end, name: None }))
}
