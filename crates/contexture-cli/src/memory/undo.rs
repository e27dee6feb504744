//! `contexture memory undo`: takes back the last change.

use std::io::{self, Write};

use clap::Args;

use super::whose::{Whose, in_words, not_changed, now_ms, wait};
use crate::failure::Failure;
use contexture_terminal::harmless::written_out;

/// Take back the last change of what is remembered, or of one fact
///
/// What was forgotten cannot be brought back.
#[derive(Args)]
pub struct MemoryUndo {
    /// The fact; the first characters are enough
    #[arg(value_name = "FACT")]
    id: Option<String>,
    #[command(flatten)]
    whose: Whose,
}

/// Runs the command.
pub(super) fn run(undo: &MemoryUndo) -> Result<(), Failure> {
    let told = wait(async {
        let remembered = undo.whose.open().await?;
        let (place, id) = match &undo.id {
            Some(id) => {
                let (place, _, id) = undo.whose.fact(&remembered, id).await?;
                (place, Some(id))
            }
            None => {
                let kept = undo.whose.all(&remembered).await?;
                let newest =
                    kept.into_iter().max_by_key(|(_, facts)| facts.changes().next_back().map(|change| change.at_ms));
                let (place, _) = newest.ok_or_else(|| Failure::usage("there is no change to undo"))?;
                (place, None)
            }
        };
        let undone = remembered.change(&place, |facts| facts.undo(id.as_ref(), now_ms())).await;
        Ok(format!("undone: {} ({})", undone.map_err(not_changed)?, in_words(&place)))
    })?;
    Ok(writeln!(io::stdout(), "{}", written_out(&told))?)
}
