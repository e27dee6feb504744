//! `contexture memory import FOLDER`: takes over Markdown files that a person changed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use contexture::facts::Place;
use contexture::facts::mirror::{Applied, MAX_FILE_BYTES, apply};

use super::forgotten::{forget_elsewhere, scrub};
use super::whose::{Whose, failed, in_words, not_changed, now_ms, wait};
use crate::failure::Failure;
use contexture_terminal::harmless::written_out;
use contexture_text::numbers::counted;

/// Takes over the files of a folder.
pub(super) fn run(folder: &Path, whose: &Whose, forget_missing: bool, json: bool) -> Result<(), Failure> {
    let files = read(folder)?;
    let (place, applied) = wait(async {
        let remembered = whose.open().await?;
        let mut places: Vec<Place> = whose.all(&remembered).await?.into_iter().map(|(place, _)| place).collect();
        let place = match (places.len(), whose.scope()) {
            (1, _) => places.remove(0),
            // Nothing is remembered there yet.
            (0, Some((scope, owner))) => {
                let layer = if scope == "resource.project" { "entity-project" } else { "entity" };
                Place::new(whose.layer.as_deref().unwrap_or(layer), scope, owner)
            }
            _ => {
                let failure = Failure::usage("a folder is taken over for one layer and one owner");
                return Err(failure.hint("choose with --layer, --resource, --kind and --thread"));
            }
        };
        let kept = remembered.load(&place).await.map_err(|error| failed(&error))?;
        let (_, gone) = apply(&mut kept.unwrap_or_default(), &files, forget_missing, now_ms()).map_err(|refusal| {
            Failure::usage(refusal.to_string()).hint("export to a folder, and delete files there")
        })?;
        // The facts themselves go last: if this fails, the command can be repeated.
        forget_elsewhere(whose, &remembered, &place, &gone).await?;
        let changed = remembered.change(&place, |facts| Ok(apply(facts, &files, forget_missing, now_ms())?.0)).await;
        let applied = changed.map_err(not_changed)?;
        if !applied.forgotten.is_empty() {
            scrub(&**remembered.store()).await;
        }
        Ok((place, applied))
    })?;
    match json {
        true => writeln!(io::stdout(), "{:#}", serde_json::to_value(&applied)?)?,
        false => io::stdout().write_all(written_out(&applied_text(&place, &applied)).as_bytes())?,
    }
    match applied.refused.len() {
        0 => Ok(()),
        1 => Err(Failure::work("1 file was not taken over")),
        count => Err(Failure::work(format!("{count} files were not taken over"))),
    }
}

fn applied_text(place: &Place, applied: &Applied) -> String {
    let mut text = format!(
        "{}: {} added, {} changed, {} forgotten\n",
        in_words(place),
        applied.added.len(),
        applied.changed.len(),
        applied.forgotten.len()
    );
    for (file, reason) in &applied.refused {
        text.push_str(&format!("{file}: not taken over, {reason}\n"));
    }
    if !applied.missing.is_empty() {
        let count = counted(applied.missing.len(), "fact");
        text.push_str(&format!("{count} without a file kept; --forget-missing forgets those that were exported\n"));
    }
    if !applied.newer.is_empty() {
        let count = counted(applied.newer.len(), "fact");
        text.push_str(&format!("{count} kept that changed after the export\n"));
    }
    text
}

fn read(folder: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let failed = |path: &Path, error: &io::Error| Failure::work(format!("read `{}`: {error}", path.display()));
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, &error))? {
        let entry = entry.map_err(|error| failed(folder, &error))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // A link could lead anywhere; only files of the folder itself are read.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !name.ends_with(".md") {
            continue;
        }
        let path = entry.path();
        let size = entry.metadata().map_err(|error| failed(&path, &error))?.len();
        if size > MAX_FILE_BYTES {
            return Err(Failure::work(format!("`{}` has {size} bytes: a fact is one sentence", path.display()))
                .hint("move it out of the folder"));
        }
        files.insert(name, fs::read_to_string(&path).map_err(|error| failed(&path, &error))?);
    }
    Ok(files)
}
