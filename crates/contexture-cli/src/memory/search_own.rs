//! Searches the user's own memory: this project, or all of them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture::bpe::Bpe;
use contexture::error::BoxError;
use contexture::facts::{day, learned_in, speaker};
use contexture::personal::{Answer, MemoryOwner, PersonalMemory};
use contexture::recall::{Extent, PastQuery, SharedEmbedder};
use contexture::store::{Place as StorePlace, SqliteIndex, SqliteStore};
use serde_json::{Value, json};

use super::own::{current_project, memory_path};
use super::whose::now_ms;
use crate::failure::Failure;
use crate::store::Looked;
use contexture_terminal::harmless::{for_output, on_one_line};
use contexture_terminal::screen::Screen;

/// The least room that is worth a search in one more project.
const LEAST_ROOM: u64 = 100;

/// A search.
pub(super) struct OwnSearch<'a> {
    pub(super) text: &'a str,
    pub(super) store: Option<&'a StorePlace>,
    /// Whether all projects are searched.
    pub(super) all: bool,
    pub(super) limit: Option<usize>,
    pub(super) budget: u64,
    pub(super) json: bool,
    pub(super) embedder: Option<&'a SharedEmbedder>,
}

/// What was found of one owner.
type OwnerAnswer = (MemoryOwner, Answer);

/// Runs the search.
pub(super) fn run(search: &OwnSearch<'_>, screen: Screen) -> Result<(), Failure> {
    let path = match search.store {
        None => memory_path()?,
        Some(StorePlace::File(path)) => path.clone(),
        Some(StorePlace::Postgres(_)) => {
            return Err(Failure::usage("a database is searched for one conversation or user")
                .hint("name it with --thread or --resource"));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (found, note) = match path.is_file() {
        true => runtime.block_on(found(search, &path))?,
        false => (Vec::new(), Some(EMPTY.to_owned())),
    };
    let text = match search.json {
        true => format!("{:#}\n", as_json(&found, note.as_deref())),
        false => as_text(&found, note.as_deref(), search.all, screen),
    };
    io::stdout().write_all(text.as_bytes())?;
    if found.is_empty() { Err(Failure::nothing()) } else { Ok(()) }
}

/// What is said of a memory without anything in it.
const EMPTY: &str = "the memory is empty; `contexture memory import` takes in the sessions of your agents";

/// What the memory has, and why there is nothing.
async fn found(search: &OwnSearch<'_>, path: &Path) -> Result<(Vec<OwnerAnswer>, Option<String>), Failure> {
    let failed = |error: BoxError| Failure::of(&*error);
    let looked = Looked::open(path)?;
    let index = SqliteIndex::new(looked.path());
    let store = SqliteStore::open(looked.path()).map_err(|error| Failure::of(&error))?;
    let mut memory = PersonalMemory::new(Arc::new(store), Arc::new(index.clone()));
    if let Some(embedder) = search.embedder {
        memory = memory.with_embedder(embedder.clone());
    }
    let scopes = index.scopes().await.map_err(|error| Failure::of(&error))?;
    let mut known: Vec<MemoryOwner> = scopes.iter().filter_map(|scope| MemoryOwner::of_scope(scope)).collect();
    let places = memory.remembered().places().await.map_err(|error| Failure::of(&error))?;
    let of_place =
        |place: &contexture::facts::Place| MemoryOwner::of_scope(&format!("semantic-recall/{}", place.scope_key()));
    known.extend(places.iter().filter_map(of_place));
    known.sort();
    known.dedup();
    // What belongs to the keys of a shared gateway is not this person's.
    known.retain(|owner| !matches!(owner, MemoryOwner::Key(_)));
    if known.is_empty() {
        return Ok((Vec::new(), Some(EMPTY.to_owned())));
    }
    let owners: Vec<Vec<MemoryOwner>> = match search.all {
        true => by_fit(search, &memory, known).await.map_err(failed)?.into_iter().map(|owner| vec![owner]).collect(),
        false => {
            let project = current_project()?;
            if !known.contains(&project) && !known.contains(&MemoryOwner::Person) {
                let note = format!("nothing is remembered of {project}; --all searches all projects");
                return Ok((Vec::new(), Some(note)));
            }
            vec![vec![project, MemoryOwner::Person]]
        }
    };
    let (mut found, mut room, mut left) = (Vec::new(), search.budget, search.limit.unwrap_or(usize::MAX));
    for owners in owners {
        if room < LEAST_ROOM.min(search.budget) || left == 0 {
            break;
        }
        let mut answer = memory.search(&owners, query(search, room)).await.map_err(failed)?;
        if let Some(owner) = owners.first().filter(|_| !answer.is_empty()) {
            if answer.len() > left {
                answer.facts.truncate(left);
                answer.found = answer.found.best(left - answer.facts.len(), &Bpe::o200k());
            }
            left -= answer.len();
            room = room.saturating_sub(answer.tokens);
            found.push((owner.clone(), answer));
        }
    }
    let is_missing = found.is_empty().then(|| match search.all {
        true => None,
        false => Some("--all searches all projects".to_owned()),
    });
    Ok((found, is_missing.flatten()))
}

/// The owners who have something on the text, best first.
async fn by_fit(
    search: &OwnSearch<'_>,
    memory: &PersonalMemory,
    owners: Vec<MemoryOwner>,
) -> Result<Vec<MemoryOwner>, BoxError> {
    let mut fitting = Vec::new();
    for owner in owners {
        let answer = memory.search(std::slice::from_ref(&owner), query(search, search.budget)).await?;
        let best = answer.found.shown.iter().map(|shown| shown.score).fold(0.0, f64::max);
        if !answer.is_empty() {
            fitting.push((best, owner));
        }
    }
    fitting.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    Ok(fitting.into_iter().map(|(_, owner)| owner).collect())
}

fn query<'a>(search: &OwnSearch<'a>, budget: u64) -> PastQuery<'a> {
    static COUNTER: std::sync::LazyLock<Bpe> = std::sync::LazyLock::new(Bpe::o200k);
    let (text, now_ms) = (search.text, now_ms());
    PastQuery { text, now_ms, budget, counter: &*COUNTER, extent: Extent::Full, visible: None }
}

fn as_text(found: &[OwnerAnswer], note: Option<&str>, with_projects: bool, screen: Screen) -> String {
    if found.is_empty() {
        let note = note.map_or(String::new(), |note| format!(": {}", on_one_line(note)));
        return format!("nothing was found{note}\n");
    }
    let mut text = String::new();
    for (owner, answer) in found {
        if with_projects {
            text.push_str(&format!("# {}\n", on_one_line(&owner.to_string())));
        }
        for (_, fact) in &answer.facts {
            let learned = learned_in(fact).map_or(String::new(), |thread| format!(", learned in {thread}"));
            let line = format!("{}, {}, {}{learned}: {}", fact.id, day(fact.valid_from_ms), speaker(fact), fact.text);
            text.push_str(&format!("{}\n", on_one_line(&line)));
        }
        if !answer.found.text.is_empty() {
            text.push_str(&format!("{}\n", answer.found.text));
        }
        text.push('\n');
    }
    format!("{}\n", screen.wrap_lines(&for_output(text.trim_end())))
}

fn as_json(found: &[OwnerAnswer], note: Option<&str>) -> Value {
    let mut items: Vec<Value> = Vec::new();
    let mut facts: Vec<Value> = Vec::new();
    for (owner, answer) in found {
        let project = match owner {
            MemoryOwner::Project(directory) => Some(PathBuf::from(directory)),
            _ => None,
        };
        facts.extend(answer.facts.iter().map(|(owner, fact)| {
            json!({ "id": fact.id, "text": fact.text, "said_by": fact.said_by, "at_ms": fact.valid_from_ms,
                "of": owner.to_string() })
        }));
        items.extend(answer.found.shown.iter().map(|shown| {
            let passage = &shown.passage;
            // Threads of `chat` have no agent in their names.
            let (agent, session) = passage.thread.split_once('/').unwrap_or(("chat", &passage.thread));
            json!({
                "id": passage.name(),
                "project": project,
                "agent": agent,
                "session": session,
                "role": passage.speaker,
                "is_quoted": passage.is_of_tool(),
                "day": passage.day(),
                "at_ms": passage.at_ms,
                "text": shown.excerpt,
                "tokens": shown.tokens,
                "score": shown.score,
            })
        }));
    }
    let tokens: u64 = found.iter().map(|(_, answer)| answer.tokens).sum();
    let texts: Vec<&str> = found.iter().map(|(_, answer)| answer.text.as_str()).collect();
    let mut all = json!({ "tokens": tokens, "text": texts.join("\n"), "facts": facts, "items": items });
    if let Some(note) = note {
        all["note"] = note.into();
    }
    all
}
