//! `contexture memory search`: what semantic recall would show for a text.

use std::io::{self, Write};
use std::time::SystemTime;

use clap::Args;
use contexture::bpe::Bpe;
use contexture::recall::{Extent, PastQuery, Recollection};
use serde_json::{Value, json};

use super::place::Place;
use crate::failure::Failure;
use crate::terminal::Screen;

/// Print what past conversations say about a text
///
/// It is what the layer semantic-recall would show, but as much as there is room for.
#[derive(Args)]
pub struct Search {
    /// The text, as a user would write it
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    place: Place,
    /// The most tokens of the result
    #[arg(long, value_name = "TOKENS", default_value_t = 4_000)]
    budget: u64,
    /// Print JSON, with the ids and tokens of items
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(search: &Search, screen: Screen) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(search.place.must_exist())?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let query = PastQuery {
        text: &search.text,
        now_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        budget: search.budget,
        counter: &Bpe::o200k(),
        extent: Extent::Full,
        visible: None,
    };
    let found = runtime.block_on(search.place.past()?.search(query));
    let found = found.map_err(|error| Failure::of(&error))?;
    let text = match (search.json, found.shown.is_empty()) {
        (true, _) => format!("{:#}\n", as_json(&found)),
        (false, true) => "nothing was found\n".to_owned(),
        (false, false) => format!("{}\n", screen.wrap_lines(&found.text)),
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn as_json(found: &Recollection) -> Value {
    let items: Vec<Value> = found
        .shown
        .iter()
        .map(|shown| {
            let passage = &shown.passage;
            json!({
                "id": passage.name(),
                "thread": passage.thread,
                "role": passage.speaker,
                "at_ms": passage.at_ms,
                "text": shown.excerpt,
                "tokens": shown.tokens,
                "score": shown.score,
            })
        })
        .collect();
    json!({ "tokens": found.tokens, "text": found.text, "items": items })
}
