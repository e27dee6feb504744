//! `contexture config`: the configuration with the source of each value, and commands about what it leads to.

mod layers;
mod models;
mod window;

use std::io::{self, Write};
use std::path::PathBuf;

use crate::settings::Resolved;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::config::{ConfigFileCandidate, ConfigFlags, Everything, Files};
use crate::failure::{Failure, without_passwords};
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};

/// Print the configuration with the source of each value
///
/// Sources, in order of precedence: flags, environment variables, the project's file, the user's file, defaults.
/// docs/reference/configuration.md explains all keys.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ConfigCommand {
    #[command(subcommand)]
    about: Option<ConfigSubject>,
    #[command(flatten)]
    flags: ConfigFlags<Everything>,
    /// The directory in which the search for the project's file starts
    #[arg(long, value_name = "DIR", default_value = ".")]
    base: PathBuf,
    /// Print the paths of the configuration files, and whether they exist
    #[arg(long)]
    path: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// What is printed instead.
#[derive(Subcommand)]
enum ConfigSubject {
    Layers(layers::LayersCommand),
    Window(window::WindowCommand),
    Models(models::ModelsCommand),
}

/// Runs the command.
///
/// # Errors
/// The configuration is invalid.
pub fn run(command: &ConfigCommand, screen: Screen) -> Result<(), Failure> {
    match &command.about {
        None => print(command, screen),
        Some(ConfigSubject::Layers(layers)) => layers::run(layers, screen),
        Some(ConfigSubject::Window(window)) => window::run(window, screen),
        Some(ConfigSubject::Models(models)) => models::run(models, screen),
    }
}

fn print(command: &ConfigCommand, screen: Screen) -> Result<(), Failure> {
    let text = if command.path {
        let files = command.flags.files(&command.base);
        if command.json { pretty(&files_as_json(&files))? } else { files_as_table(&files, screen) }
    } else {
        let (resolved, files) = command.flags.resolve(&command.base)?;
        if command.json { pretty(&as_json(&resolved, &files))? } else { as_table(&resolved, &files, screen) }
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn as_table(resolved: &Resolved, files: &Files, screen: Screen) -> String {
    let mut table = TextTable::new([("key", Align::Left), ("value", Align::Name), ("from", Align::Left)]);
    // Before they are fitted: of what is cut off nobody could tell that it was a password.
    resolved.lines().into_iter().for_each(|line| table.row(line.map(|cell| without_passwords(&cell))));
    let mut text = format!("{}\n{}", table.fit(screen), files_as_table(files, screen));
    for (index, (variable, nearest)) in resolved.unknown_variables().iter().enumerate() {
        let hint = nearest.as_ref().map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
        let gap = if index == 0 { "\n" } else { "" };
        text.push_str(&format!("{gap}variable `{variable}` sets no key{hint}\n"));
    }
    text
}

fn files_as_table(files: &Files, screen: Screen) -> String {
    let mut table = TextTable::new([("file", Align::Left), ("path", Align::Name), ("state", Align::Left)]);
    for place in files.places() {
        table.row([place.owner.name().to_owned(), place.shown_path(), place.state()]);
    }
    table.fit(screen)
}

fn as_json(resolved: &Resolved, files: &Files) -> Value {
    let unknown = resolved.unknown_variables().iter();
    let unknown = unknown.map(|(variable, nearest)| json!({ "variable": variable, "nearest": nearest }));
    json!({
        "keys": shown(resolved.to_json()),
        "files": files_as_json(files),
        "unknown_variables": unknown.collect::<Vec<_>>(),
    })
}

/// A value without the passwords of addresses in it.
fn shown(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(without_passwords(&text)),
        Value::Array(items) => items.into_iter().map(shown).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, shown(value))).collect(),
        other => other,
    }
}

fn files_as_json(files: &Files) -> Value {
    files.places().iter().map(ConfigFileCandidate::to_json).collect()
}

fn pretty(value: &Value) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
