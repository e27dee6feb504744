//! `contexture memory edit`: corrects a fact, or moves it to its user.

use std::io::{self, Write};

use clap::Args;
use contexture::facts::{Edit as Change, Place};

use super::whose::{Whose, in_words, not_changed, now_ms, scope_of, wait};
use crate::failure::Failure;
use contexture_terminal::harmless::written_out;

/// Correct a fact, or move it from a project to a user
///
/// What you write is kept as said by the user and confirmed; the old fact stays in its history.
#[derive(Args)]
pub struct MemoryEdit {
    /// The fact; the first characters are enough
    #[arg(value_name = "FACT")]
    id: String,
    #[command(flatten)]
    whose: Whose,
    /// The sentence
    #[arg(long)]
    text: Option<String>,
    /// What it is about
    #[arg(long)]
    entity: Option<String>,
    /// Which property of it
    #[arg(long)]
    attribute: Option<String>,
    /// The value of the property
    #[arg(long)]
    value: Option<String>,
    /// Move it to this resource, which may be known in other projects (needs --yes)
    #[arg(long, value_name = "RESOURCE", conflicts_with_all = ["text", "entity", "attribute", "value"])]
    move_to: Option<String>,
    /// The kind of that resource
    #[arg(long, value_name = "KIND", requires = "move_to", default_value = "user")]
    move_to_kind: String,
    /// Confirm the move
    #[arg(long, requires = "move_to")]
    yes: bool,
}

/// Runs the command.
pub(super) fn run(edit: &MemoryEdit) -> Result<(), Failure> {
    let told = match &edit.move_to {
        Some(resource) => wait(moved(edit, resource))?,
        None => wait(changed(edit))?,
    };
    Ok(writeln!(io::stdout(), "{}", written_out(&told))?)
}

async fn changed(edit: &MemoryEdit) -> Result<String, Failure> {
    let change = Change {
        text: edit.text.clone(),
        entity: edit.entity.clone(),
        attribute: edit.attribute.clone(),
        value: edit.value.clone(),
    };
    if change == Change::default() {
        return Err(Failure::usage("nothing is to be changed").hint("give --text, --entity, --attribute or --value"));
    }
    let remembered = edit.whose.open().await?;
    let (place, _, id) = edit.whose.fact(&remembered, &edit.id).await?;
    let changed = remembered.change(&place, |facts| facts.edit(&id, change.clone(), now_ms())).await;
    Ok(format!("{id} is now {}", changed.map_err(not_changed)?))
}

async fn moved(edit: &MemoryEdit, resource: &str) -> Result<String, Failure> {
    let remembered = edit.whose.open().await?;
    let (from, _, id) = edit.whose.fact(&remembered, &edit.id).await?;
    let layer = from.layer.strip_suffix("-project").unwrap_or(&from.layer);
    let layer = if edit.move_to_kind == "project" { format!("{layer}-project") } else { layer.to_owned() };
    let to = Place::new(layer, scope_of(Some(&edit.move_to_kind)), resource);
    if to == from {
        return Err(Failure::usage(format!("`{id}` is there already")));
    }
    let moved = remembered.move_fact(&from, &to, &id, edit.yes, now_ms()).await;
    let new = moved.map_err(|error| {
        let failure = not_changed(error);
        if edit.yes { failure } else { failure.hint("add --yes if that is what you want") }
    })?;
    Ok(format!("{id} is now {new}, {}", in_words(&to)))
}
