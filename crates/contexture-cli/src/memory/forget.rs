//! `contexture memory forget`: deletes facts for good.

use std::io::{self, Write};

use clap::Args;

use super::forgotten::forget_elsewhere;
use super::whose::{Whose, failed, not_changed, now_ms, wait};
use crate::failure::Failure;
use crate::table::counted;

/// Forget facts for good, with their older values
///
/// They also leave the search over past conversations and the episodes, and are not learned again from the same messages.
/// The conversations themselves are kept.
#[derive(Args)]
pub struct Forget {
    /// The facts; the first characters are enough
    #[arg(value_name = "FACT", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    whose: Whose,
}

/// Runs the command.
pub(super) fn run(forget: &Forget) -> Result<(), Failure> {
    let count = wait(async {
        let remembered = forget.whose.open().await?;
        // All are looked for first, so that a wrong name changes nothing.
        let mut found = Vec::new();
        for id in &forget.ids {
            let (place, _, id) = forget.whose.fact(&remembered, id).await?;
            if !found.contains(&(place.clone(), id.clone())) {
                found.push((place, id));
            }
        }
        let mut count = 0;
        for (place, id) in found {
            let kept = remembered.load(&place).await.map_err(|error| failed(&error))?;
            // A newer value that was forgotten just now may have taken it along.
            let Ok(gone) = kept.unwrap_or_default().forget(&id, now_ms()) else { continue };
            // The facts themselves go last: if this fails, the command can be repeated.
            forget_elsewhere(&forget.whose, &remembered, &place, &gone).await?;
            remembered.change(&place, |facts| facts.forget(&id, now_ms())).await.map_err(not_changed)?;
            count += gone.len();
        }
        Ok(count)
    })?;
    Ok(writeln!(io::stdout(), "forgot {}", counted(count, "fact"))?)
}
