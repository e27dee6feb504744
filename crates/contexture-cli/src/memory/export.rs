//! `contexture memory export`: what is remembered, as Markdown files or JSON.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use contexture::facts::mirror::{Exported, INDEX, files, is_taken_over};
use contexture::facts::{Facts, Place};
use serde_json::json;

use super::show::note_as_json;
use super::whose::{Whose, in_words, wait};
use crate::failure::Failure;
use contexture_text::numbers::counted;

/// Write what is remembered to a folder: an index, and a file for each fact
///
/// Change the files with an editor, and `contexture memory import FOLDER` takes the changes over. With --json everything,
/// also what is no longer true, goes to standard output.
#[derive(Args)]
pub struct Export {
    /// The folder
    #[arg(value_name = "FOLDER", required_unless_present = "json", conflicts_with = "json")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    whose: Whose,
    /// Print JSON instead
    #[arg(long)]
    json: bool,
    /// Overwrite files that you changed and that were not imported
    #[arg(long)]
    force: bool,
}

/// The name of a file that is being written.
const NEW: &str = ".contexture-export.tmp";

/// Runs the command.
pub(super) fn run(export: &Export) -> Result<(), Failure> {
    let (kept, notes) = wait(async {
        let remembered = export.whose.open().await?;
        Ok((export.whose.all(&remembered).await?, export.whose.notes(&remembered).await?))
    })?;
    let Some(folder) = &export.folder else {
        let place = |(place, facts): &(Place, Facts)| json!({ "layer": place.layer, "scope": place.scope, "owner": place.owner, "state": facts });
        let places: Vec<_> = kept.iter().map(place).collect();
        let notes: Vec<_> = notes.iter().map(note_as_json).collect();
        return Ok(writeln!(io::stdout(), "{:#}", json!({ "places": places, "notes": notes }))?);
    };
    let [(place, facts)] = kept.as_slice() else {
        let places: Vec<String> = kept.iter().map(|(place, _)| in_words(place)).collect();
        return Err(match places.is_empty() {
            true => Failure::work("nothing is remembered there"),
            false => Failure::usage(format!("a folder is for one of them: {}", places.join("; ")))
                .hint("choose with --layer, --resource, --kind and --thread"),
        });
    };
    let count = write(folder, &in_words(place), facts, export.force)?;
    Ok(writeln!(io::stdout(), "{} in {}", counted(count, "fact"), folder.display())?)
}

/// Writes the files, and removes those of facts that are no longer current. Returns how many facts there are.
fn write(folder: &Path, title: &str, facts: &Facts, force: bool) -> Result<usize, Failure> {
    let exported = exported_before(folder)?;
    fs::create_dir_all(folder).map_err(|error| failed("make", folder, &error))?;
    let new = files(title, facts);
    let gone: Vec<String> = exported.names().filter(|name| !new.contains_key(*name)).map(str::to_owned).collect();
    // All are looked at first, so that nothing is written if one of them is in the way.
    let mut old = Vec::new();
    for name in new.keys().chain(&gone) {
        let Some(text) = read(&folder.join(name))? else { continue };
        let is_ours =
            name == INDEX || exported.has(name, &text) || new.get(name) == Some(&text) || is_taken_over(facts, &text);
        if !is_ours && !force {
            return Err(Failure::usage(format!("`{}` was changed after it was exported", folder.join(name).display()))
                .hint(format!("take it over with `contexture memory import {}`, or add --force", folder.display())));
        }
        old.push(name.clone());
    }
    for name in gone.iter().filter(|name| old.contains(name)) {
        let path = folder.join(name);
        fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
    }
    for (name, text) in &new {
        replace(folder, name, text)?;
    }
    Ok(new.len() - 1)
}

/// What was exported to a folder before. A folder with something else in it is refused.
fn exported_before(folder: &Path) -> Result<Exported, Failure> {
    let is_empty = fs::read_dir(folder).map_or(!folder.exists(), |mut entries| entries.next().is_none());
    if is_empty {
        return Ok(Exported::default());
    }
    let index = if folder.is_dir() { read(&folder.join(INDEX))? } else { None };
    index.and_then(|index| Exported::read(&index)).ok_or_else(|| {
        Failure::usage(format!("`{}` holds something else", folder.display()))
            .hint("name an empty folder, or one that was exported before")
    })
}

/// The text of a file, if it is there. A link could lead anywhere, and is refused.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path, &error)),
        Ok(metadata) if metadata.is_file() => match fs::read(path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) => Err(failed("read", path, &error)),
        },
        Ok(_) => Err(Failure::usage(format!("`{}` is a link or no file", path.display())).hint("remove it")),
    }
}

/// Writes a file wholly or not at all, and never through a link.
fn replace(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let (path, new) = (folder.join(name), folder.join(NEW));
    if let Err(error) = fs::remove_file(&new)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(failed("remove", &new, &error));
    }
    let written = fs::File::create_new(&new).and_then(|mut file| file.write_all(text.as_bytes()));
    written.and_then(|()| fs::rename(&new, &path)).map_err(|error| failed("write", &path, &error))
}

fn failed(doing: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::work(format!("{doing} `{}`: {error}", path.display())).hint("name a folder that you may write to")
}
