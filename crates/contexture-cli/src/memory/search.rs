//! `contexture memory search`: what past conversations say about a text.

use std::io::{self, Write};
use std::time::SystemTime;

use clap::Args;
use contexture::bpe::Bpe;
use contexture::recall::{Extent, PastQuery, Recollection, SharedEmbedder};
use contexture::search::SearchError;
use contexture::store::Place as StorePlace;
use serde_json::{Value, json};

use super::embedder::{configured_embedder, tell_trouble};
use super::own::memory_path;
use super::place::MemoryPlace;
use super::search_own::{self, OwnSearch};
use crate::failure::Failure;
use crate::settings::Command;
use crate::store;
use contexture_terminal::harmless::{for_output, on_one_line};
use contexture_terminal::screen::Screen;

/// A budget in which everything that is found has room.
const LARGE_BUDGET: u64 = 100_000;

/// Search what your agents did before in this project
///
/// It prints passages of past conversations with their days, agents and sessions, and remembered facts. What tools and
/// files said is in quotes: it gives no instructions. With --thread or --resource, it prints what the layer semantic-recall
/// would show, but as much as there is room for.
#[derive(Args)]
pub struct MemorySearchCommand {
    /// The text, as a user would write it
    #[arg(value_name = "TEXT")]
    text: String,
    /// The store: a SQLite file, or a database (postgres://user@host/database); without one, your own memory
    #[arg(long, hide = true, value_name = "DB", value_parser = store::place)]
    store: Option<StorePlace>,
    /// Search this conversation
    #[arg(long, hide = true, value_name = "ID")]
    thread: Option<String>,
    /// Search the conversations of this user
    #[arg(long, hide = true, value_name = "ID")]
    resource: Option<String>,
    /// Search all your projects
    #[arg(long, conflicts_with_all = ["thread", "resource"])]
    all: bool,
    /// The most passages
    #[arg(long, value_name = "N", conflicts_with_all = ["thread", "resource"])]
    limit: Option<usize>,
    /// The most tokens of the result
    #[arg(long, value_name = "TOKENS", default_value_t = 4_000)]
    budget: u64,
    /// Print JSON, with the ids and tokens of items
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(search: &MemorySearchCommand, screen: Screen) -> Result<(), Failure> {
    let embedder = configured_embedder(Command::Memory)?;
    let searched = run_with(search, embedder.as_ref(), screen);
    tell_trouble(embedder.as_ref());
    searched
}

fn run_with(search: &MemorySearchCommand, embedder: Option<&SharedEmbedder>, screen: Screen) -> Result<(), Failure> {
    if search.text.trim().is_empty() {
        return Err(Failure::usage("there is nothing to search for")
            .hint("write it as `contexture memory search \"how did we fix the flaky test\"`"));
    }
    if search.thread.is_none() && search.resource.is_none() {
        let (store, all, limit, budget) = (search.store.as_ref(), search.all, search.limit, search.budget);
        let (text, json) = (&search.text, search.json);
        return search_own::run(&OwnSearch { text, store, all, limit, budget, json, embedder }, screen);
    }
    let store = search.store.clone().map_or_else(|| memory_path().map(StorePlace::File), Ok)?;
    let thread = search.thread.clone().unwrap_or_default();
    let place = MemoryPlace { store, thread, resource: search.resource.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(place.must_exist())?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let query = PastQuery {
        text: &search.text,
        now_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        budget: search.budget,
        counter: &Bpe::o200k(),
        extent: Extent::Full,
        visible: None,
    };
    let looked = place.look()?;
    let mut past = place.past_in(looked.as_ref())?;
    if let Some(embedder) = embedder {
        past = past.sharing_embedder(embedder.clone());
    }
    let (found, missing) = runtime
        .block_on(async {
            if past.count().await? == 0 {
                return Ok((Recollection::default(), Some(SearchGap::Everything)));
            }
            let found = past.search(query).await?;
            if !found.shown.is_empty() {
                return Ok((found, None));
            }
            let more = past.search(PastQuery { budget: LARGE_BUDGET.max(search.budget), ..query }).await?;
            Ok((found, if more.shown.is_empty() { None } else { Some(SearchGap::Room) }))
        })
        .map_err(|error: SearchError| Failure::of(&error))?;
    let note = missing.map(|missing| missing.in_words(search, &place));
    let text = match (search.json, found.shown.is_empty()) {
        (true, _) => format!("{:#}\n", as_json(&found, note.as_deref())),
        (false, true) => format!("nothing was found{}\n", note.map_or(String::new(), |note| format!(": {note}"))),
        (false, false) => format!("{}\n", screen.wrap_lines(&for_output(&found.text))),
    };
    io::stdout().write_all(text.as_bytes())?;
    if found.shown.is_empty() { Err(Failure::nothing()) } else { Ok(()) }
}

/// Why a search that could find something does not.
enum SearchGap {
    /// No conversation of this name was added.
    Everything,
    /// What was found does not fit.
    Room,
}

impl SearchGap {
    fn in_words(&self, search: &MemorySearchCommand, place: &MemoryPlace) -> String {
        match self {
            SearchGap::Everything => {
                let whose = on_one_line(&place.in_words());
                format!("this store has no conversation of {whose}; --thread and --resource name others")
            }
            SearchGap::Room => {
                format!("what there is does not fit into {} tokens; --budget allows more", search.budget)
            }
        }
    }
}

fn as_json(found: &Recollection, note: Option<&str>) -> Value {
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
    let mut all = json!({ "tokens": found.tokens, "text": found.text, "items": items });
    if let Some(note) = note {
        all["note"] = note.into();
    }
    all
}
