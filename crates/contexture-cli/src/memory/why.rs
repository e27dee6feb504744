//! `contexture memory why`: where a fact comes from.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use contexture::facts::{Fact, Facts, Place, Source, day, speaker};
use contexture::item::Item;
use contexture::memory::memory;
use contexture::redact::redact_part;
use serde_json::json;

use super::whose::{Whose, in_words, wait};
use crate::failure::Failure;
use crate::store;
use contexture_terminal::harmless::on_one_line;
use contexture_terminal::screen::Screen;

/// How much of an item is printed around a quote, in characters.
const AROUND_CHARS: usize = 160;

/// Print where a fact comes from: who said it, in which words, and what it replaced
#[derive(Args)]
pub struct Why {
    /// The fact; the first characters are enough
    #[arg(value_name = "FACT")]
    id: String,
    #[command(flatten)]
    whose: Whose,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An item that a fact comes from.
struct FactOrigin {
    place: String,
    /// The text around the quote, if the item is still there.
    text: Option<String>,
}

/// Runs the command.
pub(super) fn run(why: &Why, screen: Screen) -> Result<(), Failure> {
    let (place, facts, id, origins) = wait(async {
        let (remembered, looked) = why.whose.look().await?;
        let (place, facts, id) = why.whose.fact(&remembered, &why.id).await?;
        let store = match &looked {
            Some(looked) => looked.path().to_owned(),
            None => store::path_of(&why.whose.place()?),
        };
        let mut origins = Vec::new();
        for source in facts.get(&id).into_iter().flat_map(|fact| &fact.sources) {
            origins.push(origin(&store, source).await?);
        }
        Ok((place, facts, id, origins))
    })?;
    let Some(fact) = facts.get(&id) else { return Ok(()) };
    let replaced: Vec<&Fact> = facts.all().filter(|other| other.superseded_by.as_ref() == Some(&id)).collect();
    let text = match why.json {
        true => {
            let origins: Vec<_> =
                origins.iter().map(|origin| json!({ "in": origin.place, "text": origin.text })).collect();
            let place = json!({ "layer": place.layer, "scope": place.scope, "owner": place.owner });
            format!("{:#}\n", json!({ "place": place, "fact": fact, "origins": origins, "replaced": replaced }))
        }
        false => screen.wrap_lines(&as_text(&place, &facts, fact, &origins, &replaced)),
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn as_text(place: &Place, facts: &Facts, fact: &Fact, origins: &[FactOrigin], replaced: &[&Fact]) -> String {
    let mut text = format!("{}\n", on_one_line(&fact.text));
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("  {name}: {}\n", on_one_line(value)));
        }
    };
    line("kept in", &in_words(place));
    line("about", &fact.entity);
    line(&on_one_line(&fact.attribute), if fact.attribute.is_empty() { "" } else { &fact.value });
    line("said by", &speaker(fact));
    line("since", &day(fact.valid_from_ms));
    line("until", &fact.valid_to_ms.map_or(String::new(), day));
    line("confirmed", if fact.confirmed { "yes, by a person" } else { "no" });
    line("shown", &format!("{} times when it was asked for", fact.uses));
    line("quote", &fact.quote);
    for origin in origins {
        line("from", &origin.place);
        line("  there", origin.text.as_deref().unwrap_or_default());
    }
    for other in replaced {
        line("replaced", &format!("{} ({})", other.text, other.id));
    }
    if let Some(by) = &fact.superseded_by {
        let newer = facts.get(by).map_or(String::new(), |fact| format!(": {}", fact.text));
        line("replaced by", &format!("{by}{newer}"));
    }
    text
}

async fn origin(store: &Path, source: &Source) -> Result<FactOrigin, Failure> {
    let Source::Item { thread, item, start, end, .. } = source else {
        return Ok(FactOrigin { place: "a person, by hand".to_owned(), text: None });
    };
    let place = format!("thread {thread}, item {item}");
    let fail = |error: &dyn std::error::Error| Failure::work(error.to_string());
    let engine = contexture::open(store, memory(())).map_err(|error| fail(&error))?;
    let engine = engine.build().map_err(|error| fail(&error))?;
    let execution = engine.execution(thread.as_str()).start().await.map_err(|error| fail(&error))?;
    let text = execution.log().get(*item).and_then(|entry| around(&entry.item, *start, *end));
    Ok(FactOrigin { place, text })
}

/// The part of an item around a quote.
fn around(item: &Item, start: usize, end: usize) -> Option<String> {
    let text = match item {
        Item::Message(message) => message.text(),
        Item::FunctionCallOutput(output) => output.output.clone(),
        Item::FunctionCall(call) => call.arguments.clone(),
        Item::Reasoning(_) | Item::Opaque(_) => return None,
    };
    let (before, quote, after) = (text.get(..start)?, text.get(start..end)?, text.get(end..)?);
    let from = before.char_indices().rev().take(AROUND_CHARS).last().map_or(start, |(at, _)| at);
    let to = after.char_indices().nth(AROUND_CHARS).map_or(text.len(), |(at, _)| end + at);
    let quote_end = quote.char_indices().nth(2 * AROUND_CHARS).map_or(end, |(at, _)| start + at);
    let (open, close) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    let head = redact_part(&text, from..quote_end);
    let tail = if quote_end < end { format!("…{}", redact_part(&text, end..to)) } else { String::new() };
    match tail.is_empty() {
        true => Some(format!("{open}{}{close}", redact_part(&text, from..to))),
        false => Some(format!("{open}{head}{tail}{close}")),
    }
}
