//! `contexture memory show`: what is remembered.

use std::io::{self, Write};

use clap::Args;
use contexture::facts::{Fact, day, speaker};
use serde_json::{Value, json};

use super::whose::{Kept, Whose, in_words, wait};
use crate::failure::Failure;
use crate::harmless::on_one_line;
use crate::table::{Align, Table};
use crate::terminal::Screen;

/// List what is remembered, with who said it and since when
///
/// Of everyone in the store, or of one conversation, user or project.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    whose: Whose,
    /// Also list what is no longer true
    #[arg(long)]
    all: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(show: &Show, screen: Screen) -> Result<(), Failure> {
    let kept = wait(async {
        let (remembered, _looked) = show.whose.look().await?;
        show.whose.all(&remembered).await
    })?;
    let is_listed = |fact: &&Fact| show.all || fact.is_current();
    let text = match show.json {
        true => format!("{:#}\n", as_json(&kept, is_listed)),
        false => as_text(&kept, is_listed, screen),
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn as_json(kept: &[Kept], is_listed: impl Fn(&&Fact) -> bool) -> Value {
    let places = kept.iter().map(|(place, facts)| {
        let facts: Vec<&Fact> = facts.all().filter(|fact| is_listed(fact)).collect();
        json!({ "layer": place.layer, "scope": place.scope, "owner": place.owner, "facts": facts })
    });
    json!({ "places": places.collect::<Vec<_>>() })
}

fn as_text(kept: &[Kept], is_listed: impl Fn(&&Fact) -> bool, screen: Screen) -> String {
    let mut text = String::new();
    for (place, facts) in kept {
        let mut table =
            Table::new([("fact", Align::Left), ("since", Align::Left), ("said by", Align::Left), ("", Align::Name)]);
        let listed: Vec<&Fact> = facts.all().filter(|fact| is_listed(fact)).collect();
        if listed.is_empty() {
            continue;
        }
        for fact in listed {
            let ended = fact.valid_to_ms.map_or(String::new(), |until| format!(" to {}", day(until)));
            let since = format!("{}{ended}", day(fact.valid_from_ms));
            table.row([fact.id.to_string(), since, speaker(fact), fact.text.clone()]);
        }
        text.push_str(&format!("{}\n{}\n", on_one_line(&in_words(place)), table.fit(screen)));
    }
    if text.is_empty() { "nothing is remembered\n".to_owned() } else { format!("{}\n", text.trim_end()) }
}
