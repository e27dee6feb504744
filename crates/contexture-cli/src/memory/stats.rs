//! `contexture memory stats`: how much is remembered, and what learning it cost.

use std::io::{self, Write};

use clap::Args;
use contexture::facts::{Facts, Place, Speaker};
use contexture::notes::Note;
use serde_json::{Value, json};

use super::whose::{PlacedFacts, Whose, in_words, wait};
use crate::failure::Failure;
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};

/// Count what is remembered, and what learning it cost
#[derive(Args)]
pub struct Stats {
    #[command(flatten)]
    whose: Whose,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(stats: &Stats, screen: Screen) -> Result<(), Failure> {
    let (placed_facts, notes) = wait(async {
        let (remembered, _looked) = stats.whose.look().await?;
        Ok((stats.whose.all(&remembered).await?, stats.whose.notes(&remembered).await?))
    })?;
    let text = match stats.json {
        true => format!("{:#}\n", as_json(&placed_facts, &notes)),
        false => {
            let tables =
                [(!placed_facts.is_empty()).then(|| as_table(&placed_facts, screen)), notes_table(&notes, screen)];
            let tables: Vec<String> = tables.into_iter().flatten().collect();
            if tables.is_empty() { "nothing is remembered\n".to_owned() } else { tables.join("\n") }
        }
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// How many current facts have a speaker.
fn by(facts: &Facts, speaker: Speaker) -> usize {
    facts.current().filter(|fact| fact.said_by == speaker).count()
}

/// What models wrote for themselves, by place: how many, and how long.
fn note_sizes(notes: &[Note]) -> Vec<(&Place, usize, usize)> {
    let of_place = |notes: &[Note]| notes.iter().map(|note| note.text.len()).sum();
    let places = notes.chunk_by(|one, other| one.place == other.place);
    places.filter_map(|notes| Some((&notes.first()?.place, notes.len(), of_place(notes)))).collect()
}

fn notes_table(notes: &[Note], screen: Screen) -> Option<String> {
    let mut table = TextTable::new([("", Align::Name), ("files", Align::Right), ("bytes", Align::Right)]);
    for (place, count, bytes) in note_sizes(notes) {
        table.row([in_words(place), count.to_string(), bytes.to_string()]);
    }
    (!notes.is_empty()).then(|| table.fit(screen))
}

fn as_json(placed_facts: &[PlacedFacts], notes: &[Note]) -> Value {
    let places = placed_facts.iter().map(|(place, facts)| {
        let count = |speaker| by(facts, speaker);
        json!({
            "layer": place.layer, "scope": place.scope, "owner": place.owner,
            "current": facts.current().count(),
            "no_longer_true": facts.all().count() - facts.current().count(),
            "confirmed": facts.current().filter(|fact| fact.confirmed).count(),
            "forgotten": facts.tombstones().iter().filter(|tombstone| !tombstone.undone).count(),
            "dropped": facts.dropped(),
            "said_by": {
                "user": count(Speaker::User), "assistant": count(Speaker::Assistant),
                "tool": count(Speaker::Tool), "file": count(Speaker::File),
            },
            "spent": facts.spent(),
        })
    });
    let notes = note_sizes(notes).into_iter().map(|(place, count, bytes)| {
        json!({ "layer": place.layer, "scope": place.scope, "owner": place.owner, "files": count, "bytes": bytes })
    });
    json!({ "places": places.collect::<Vec<_>>(), "notes": notes.collect::<Vec<_>>() })
}

fn as_table(placed_facts: &[PlacedFacts], screen: Screen) -> String {
    let columns = ["facts", "old", "confirmed", "forgotten", "by user", "by tools", "calls", "tokens"];
    let mut table = TextTable::new([("", Align::Name)].into_iter().chain(columns.map(|name| (name, Align::Right))));
    for (place, facts) in placed_facts {
        let (current, spent) = (facts.current().count(), facts.spent());
        let numbers = [
            current,
            facts.all().count() - current,
            facts.current().filter(|fact| fact.confirmed).count(),
            facts.tombstones().iter().filter(|tombstone| !tombstone.undone).count(),
            by(facts, Speaker::User),
            by(facts, Speaker::Tool) + by(facts, Speaker::File),
        ];
        let cost = [spent.calls, spent.input_tokens + spent.output_tokens];
        let cells = numbers.iter().map(ToString::to_string).chain(cost.iter().map(ToString::to_string));
        table.row([in_words(place)].into_iter().chain(cells));
    }
    table.fit(screen)
}
