//! `contexture layers`: the built-in layers, with what each is for.

use std::io::{self, Write};

use clap::Args;
use contexture::layer::BudgetConfig;
use contexture::layers::{BuiltIn, built_in};
use serde_json::json;

use crate::failure::Failure;
use crate::table::{Align, TextTable};
use crate::terminal::Screen;

/// List the built-in layers
///
/// Slot, scope and budget are those of each layer out of the box. docs/layers has a page for each.
#[derive(Args)]
pub struct LayersCommand {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Carries out the command.
///
/// # Errors
/// The output cannot be written.
pub fn run(command: &LayersCommand, screen: Screen) -> Result<(), Failure> {
    let layers = built_in();
    let text = if command.json { format!("{:#}\n", json!({ "layers": layers })) } else { as_table(&layers, screen) };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn as_table(layers: &[BuiltIn], screen: Screen) -> String {
    let columns = [
        ("layer", Align::Left),
        ("slot", Align::Right),
        ("scope", Align::Left),
        ("budget", Align::Left),
        ("", Align::Prose),
    ];
    let mut table = TextTable::new(columns);
    for layer in layers {
        let budget = budget_in_words(layer.budget);
        let cells = [layer.id.to_string(), layer.slot.0.to_string(), layer.scope.as_str().to_owned(), budget];
        table.row(cells.into_iter().chain([layer.says.to_owned()]));
    }
    table.fit(screen)
}

fn budget_in_words(budget: BudgetConfig) -> String {
    match budget {
        BudgetConfig::Cap(0) => "none".to_owned(),
        BudgetConfig::Cap(max) => format!("at most {max}"),
        BudgetConfig::Range { min: 0, max } => format!("at most {max}"),
        BudgetConfig::Range { min, max } => format!("{min} to {max}"),
        BudgetConfig::Auto => "auto".to_owned(),
    }
}
