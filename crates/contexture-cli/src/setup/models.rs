//! `contexture config models`: what is known of models.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use contexture_gateway::models::{Models, agent_models, names_in};

use crate::failure::Failure;
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};
use contexture_text::numbers::{counted, thousands};

/// List what is known of models: windows, prices, and where these come from
///
/// With --check, look for names that agents know and the table does not.
#[derive(Args)]
pub(super) struct ModelsCommand {
    /// Names to look up; all of the table without any
    names: Vec<String>,
    /// Fail if a name that agents know has no row or no price
    #[arg(long)]
    check: bool,
    /// Check the names in this file instead, the first word of each line
    #[arg(long, requires = "check", value_name = "FILE")]
    list: Option<PathBuf>,
}

/// Carries out the command.
///
/// # Errors
/// The list cannot be read, or the table has gaps.
pub(super) fn run(command: &ModelsCommand, screen: Screen) -> Result<(), Failure> {
    let models = Models::builtin();
    if command.check {
        return check(&models, command);
    }
    let names: Vec<String> = match command.names.is_empty() {
        true => models.names().map(str::to_owned).collect(),
        false => command.names.clone(),
    };
    Ok(io::stdout().write_all(table(&models, &names).fit(screen).as_bytes())?)
}

/// What is known of models, with a remark where that is not what the table says.
fn table(models: &Models, names: &[String]) -> TextTable {
    let mut table = TextTable::new([
        ("model", Align::Name),
        ("window", Align::Right),
        ("$/M in", Align::Right),
        ("$/M out", Align::Right),
        ("known", Align::Prose),
    ]);
    for name in names {
        let known = models.find(name);
        let (input, output) = known
            .model
            .dollars(0)
            .map_or_else(Default::default, |(input, output)| (input.to_string(), output.to_string()));
        let said = match known.window == known.price {
            true => known.window.to_string(),
            false => format!("window {}, price {}", known.window, known.price),
        };
        table.row([name.clone(), thousands(known.model.context), input, output, said]);
    }
    table
}

fn check(models: &Models, command: &ModelsCommand) -> Result<(), Failure> {
    let list = match &command.list {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| Failure::work(format!("read `{}`: {error}", path.display())))?;
            names_in(&text).map(str::to_owned).collect()
        }
        None if command.names.is_empty() => agent_models().map(str::to_owned).collect(),
        None => command.names.clone(),
    };
    let gaps = models.gaps(list.iter().map(String::as_str));
    let mut text = format!(
        "{}, {} in the table of {}\n",
        counted(list.len(), "name"),
        counted(gaps.len(), "gap"),
        models.checked()
    );
    for (name, gap) in &gaps {
        text.push_str(&format!("{name}: {gap}\n"));
    }
    io::stdout().write_all(text.as_bytes())?;
    match gaps.is_empty() {
        true => Ok(()),
        false => Err(Failure::work(format!("the table of models has {}", counted(gaps.len(), "gap")))),
    }
}
