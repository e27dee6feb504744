//! `contexture memory show`: what is remembered.

use std::io::{self, Write};

use clap::Args;
use contexture::facts::{Fact, day, learned_in, speaker};
use contexture::notes::Note;
use serde_json::{Value, json};

use super::whose::{PlacedFacts, Whose, in_words, wait};
use crate::failure::Failure;
use contexture_terminal::harmless::on_one_line;
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};

/// List what is remembered, with who said it and since when
///
/// Of everyone in the store, or of one conversation, user or project: facts, the files that models keep beneath /memories,
/// and their notes.
#[derive(Args)]
pub struct MemoryShow {
    #[command(flatten)]
    whose: Whose,
    /// Also list what is no longer true
    #[arg(long)]
    all: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// How much of what a model wrote for itself is printed; `--json` prints all.
const MAX_NOTE_CHARS: usize = 400;

/// Runs the command.
pub(super) fn run(show: &MemoryShow, screen: Screen) -> Result<(), Failure> {
    let (placed_facts, notes) = wait(async {
        let (remembered, _looked) = show.whose.look().await?;
        Ok((show.whose.all(&remembered).await?, show.whose.notes(&remembered).await?))
    })?;
    let is_listed = |fact: &&Fact| show.all || fact.is_current();
    let text = match show.json {
        true => format!("{:#}\n", as_json(&placed_facts, &notes, is_listed)),
        false => as_text(&placed_facts, &notes, is_listed, screen),
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn as_json(placed_facts: &[PlacedFacts], notes: &[Note], is_listed: impl Fn(&&Fact) -> bool) -> Value {
    let places = placed_facts.iter().map(|(place, facts)| {
        let facts: Vec<&Fact> = facts.all().filter(|fact| is_listed(fact)).collect();
        json!({ "layer": place.layer, "scope": place.scope, "owner": place.owner, "facts": facts })
    });
    let notes: Vec<Value> = notes.iter().map(note_as_json).collect();
    json!({ "places": places.collect::<Vec<_>>(), "notes": notes })
}

/// What a model wrote for itself, as JSON.
pub(super) fn note_as_json(note: &Note) -> Value {
    let (place, text) = (&note.place, &note.text);
    json!({ "layer": place.layer, "scope": place.scope, "owner": place.owner, "name": note.name,
        "bytes": text.len(), "text": text })
}

fn as_text(placed_facts: &[PlacedFacts], notes: &[Note], is_listed: impl Fn(&&Fact) -> bool, screen: Screen) -> String {
    let mut text = String::new();
    for (place, facts) in placed_facts {
        let mut table = TextTable::new([
            ("fact", Align::Left),
            ("since", Align::Left),
            ("said by", Align::Left),
            ("", Align::Name),
        ]);
        let listed: Vec<&Fact> = facts.all().filter(|fact| is_listed(fact)).collect();
        if listed.is_empty() {
            continue;
        }
        for fact in listed {
            let ended = fact.valid_to_ms.map_or(String::new(), |until| format!(" to {}", day(until)));
            let since = format!("{}{ended}", day(fact.valid_from_ms));
            let learned = learned_in(fact).map_or(String::new(), |thread| format!(", learned in {thread}"));
            table.row([fact.id.to_string(), since, format!("{}{learned}", speaker(fact)), fact.text.clone()]);
        }
        text.push_str(&format!("{}\n{}\n", on_one_line(&in_words(place)), table.fit(screen)));
    }
    for notes in notes.chunk_by(|one, other| one.place == other.place) {
        let mut table = TextTable::new([("file", Align::Left), ("bytes", Align::Right), ("", Align::Name)]);
        for note in notes {
            let text: String = note.text.chars().take(MAX_NOTE_CHARS).collect();
            table.row([note.name.clone(), note.text.len().to_string(), text]);
        }
        text.push_str(&format!("{}\n{}\n", on_one_line(&in_words(&notes[0].place)), table.fit(screen)));
    }
    if text.is_empty() { "nothing is remembered\n".to_owned() } else { format!("{}\n", text.trim_end()) }
}
