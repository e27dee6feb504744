//! `contexture memory export`: what is remembered, as Markdown files or JSON.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use contexture::facts::mirror::{INDEX, files};
use contexture::facts::{Facts, Place};
use serde_json::json;

use super::whose::{Whose, in_words, wait};
use crate::failure::Failure;
use crate::table::counted;

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
}

/// Runs the command.
pub(super) fn run(export: &Export) -> Result<(), Failure> {
    let kept = wait(async { export.whose.all(&export.whose.open().await?).await })?;
    let Some(folder) = &export.folder else {
        let place = |(place, facts): &(Place, Facts)| json!({ "layer": place.layer, "scope": place.scope, "owner": place.owner, "state": facts });
        let places: Vec<_> = kept.iter().map(place).collect();
        return Ok(writeln!(io::stdout(), "{:#}", json!({ "places": places }))?);
    };
    let [(place, facts)] = kept.as_slice() else {
        let places: Vec<String> = kept.iter().map(|(place, _)| in_words(place)).collect();
        return Err(match places.is_empty() {
            true => Failure::work("nothing is remembered there"),
            false => Failure::usage(format!("a folder is for one of them: {}", places.join("; ")))
                .hint("choose with --layer, --resource, --kind and --thread"),
        });
    };
    let count = write(folder, &in_words(place), facts)?;
    Ok(writeln!(io::stdout(), "{} in {}", counted(count, "fact"), folder.display())?)
}

/// Writes the files, and removes those of facts that are no longer current. Returns how many facts there are.
fn write(folder: &Path, title: &str, facts: &Facts) -> Result<usize, Failure> {
    let failed =
        |doing: &str, path: &Path, error: &io::Error| Failure::work(format!("{doing} `{}`: {error}", path.display()));
    let is_empty = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if folder.exists() && !is_empty && !folder.join(INDEX).is_file() {
        return Err(Failure::usage(format!("`{}` holds something else", folder.display()))
            .hint("name an empty folder, or one that was exported before"));
    }
    fs::create_dir_all(folder).map_err(|error| failed("make", folder, &error))?;
    let files = files(title, facts);
    for fact in facts.all().filter(|fact| !fact.is_current()) {
        let path = folder.join(format!("{}.md", fact.id));
        if path.is_file() {
            fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
        }
    }
    for tombstone in facts.tombstones() {
        let path = folder.join(format!("{}.md", tombstone.id));
        if path.is_file() {
            fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))?;
        }
    }
    for (name, text) in &files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| failed("write", &path, &error))?;
    }
    Ok(files.len() - 1)
}
