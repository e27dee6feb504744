//! `contexture memory forget`: deletes facts for good.

use std::io::{self, Write};

use clap::Args;
use contexture::facts::{Place, Remembered};
use contexture::notes::delete_file;

use super::contained::forget_containing;
use super::forgotten::{forget_elsewhere, scrub};
use super::whose::{Whose, failed, not_changed, now_ms, wait};
use crate::failure::Failure;
use contexture_text::numbers::counted;

/// Forget facts for good, with their older values, or files that a model keeps
///
/// Facts also leave the search over past conversations and the episodes, and are not learned again from the same messages.
/// The conversations themselves are kept.
#[derive(Args)]
pub struct MemoryForget {
    /// The facts, of which the first characters are enough, or paths beneath /memories
    #[arg(value_name = "FACT", required_unless_present = "containing")]
    ids: Vec<String>,
    /// Forget all facts and passages that say this, whoever said it
    #[arg(long, value_name = "TEXT")]
    containing: Option<String>,
    #[command(flatten)]
    whose: Whose,
}

/// What the paths of files begin with.
const FILES: &str = "/memories";

/// Runs the command.
pub(super) fn run(forget: &MemoryForget) -> Result<(), Failure> {
    let (count, files) = wait(async {
        let remembered = forget.whose.open().await?;
        // All are looked for first, so that a wrong name changes nothing.
        let (mut found, mut files) = (Vec::new(), Vec::new());
        let (paths, ids): (Vec<&String>, Vec<&String>) = forget.ids.iter().partition(|id| id.starts_with(FILES));
        for path in paths {
            files.push((file(forget, &remembered, path).await?, path));
        }
        for id in ids {
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
        if let Some(text) = &forget.containing {
            count += forget_containing(&forget.whose, &remembered, text).await?;
        }
        for (place, path) in &files {
            delete_file(&**remembered.store(), place, path).await.map_err(|error| failed(&error))?;
        }
        scrub(&**remembered.store()).await;
        Ok((count, files.len()))
    })?;
    let told = match (count, files) {
        (0, 0) if forget.containing.is_some() => "what says so".to_owned(),
        (_, 0) if forget.containing.is_some() => format!("{} and what else says so", counted(count, "fact")),
        (_, 0) => counted(count, "fact"),
        (0, _) => counted(files, "path"),
        _ => format!("{} and {}", counted(count, "fact"), counted(files, "path")),
    };
    Ok(writeln!(io::stdout(), "forgot {told}")?)
}

/// Where a file or directory is kept.
async fn file(forget: &MemoryForget, remembered: &Remembered, path: &str) -> Result<Place, Failure> {
    let path = path.trim_end_matches('/');
    let is_in = |name: &str| name == path || name.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    let mut places: Vec<Place> = forget
        .whose
        .notes(remembered)
        .await?
        .into_iter()
        .filter(|note| is_in(&note.name))
        .map(|note| note.place)
        .collect();
    places.dedup();
    match places.len() {
        1 if path.len() > FILES.len() => Ok(places.remove(0)),
        0 => Err(Failure::work(format!("there is no `{path}`")).hint("`contexture memory show` lists them")),
        1 => Err(Failure::usage(format!("`{path}` is the directory itself")).hint("name what is in it")),
        count => {
            Err(Failure::usage(format!("{count} owners have `{path}`")).hint("choose with --resource or --thread"))
        }
    }
}
