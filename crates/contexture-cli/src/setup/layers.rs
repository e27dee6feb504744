//! `contexture config layers`: the built-in layers, with what each is for.

use std::io::{self, Write};

use clap::Args;
use contexture::layer::BudgetConfig;
use contexture::layers::{BuiltIn, built_in};
use serde_json::{Value, json};

use crate::failure::Failure;
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};

/// List the built-in layers
///
/// Slot, scope and budget are those of each layer out of the box, and `tools` is what its tools cost in every request.
/// docs/reference/layers has a page for each.
#[derive(Args)]
pub(super) struct LayersCommand {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Carries out the command.
///
/// # Errors
/// The output cannot be written.
pub(super) fn run(command: &LayersCommand, screen: Screen) -> Result<(), Failure> {
    let layers = built_in();
    let counter = contexture::bpe::Bpe::o200k();
    let tokens: Vec<u64> = layers.iter().map(|layer| layer.tool_tokens(&counter)).collect();
    let text = if command.json { as_json(&layers, &tokens) } else { as_table(&layers, &tokens, screen) };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn as_json(layers: &[BuiltIn], tokens: &[u64]) -> String {
    let with_tokens = layers.iter().zip(tokens).map(|(layer, tokens)| {
        let mut layer = json!(layer);
        layer["tool_tokens"] = json!(tokens);
        layer
    });
    let layers: Vec<Value> = with_tokens.collect();
    format!("{:#}\n", json!({ "layers": layers, "tool_tokens": tokens.iter().sum::<u64>() }))
}

fn as_table(layers: &[BuiltIn], tokens: &[u64], screen: Screen) -> String {
    let columns = [
        ("layer", Align::Left),
        ("slot", Align::Right),
        ("scope", Align::Left),
        ("budget", Align::Left),
        ("tools", Align::Right),
        ("", Align::Prose),
    ];
    let mut table = TextTable::new(columns);
    for (layer, tokens) in layers.iter().zip(tokens) {
        let budget = budget_in_words(layer.budget);
        let cells = [layer.id.to_string(), layer.slot.0.to_string(), layer.scope.as_str().to_owned(), budget];
        let cells = cells.into_iter().chain([if *tokens == 0 { String::new() } else { tokens.to_string() }]);
        table.row(cells.chain([layer.says.to_owned()]));
    }
    let sum: u64 = tokens.iter().sum();
    format!("{}tools: tokens a request, {sum} in all\n", table.fit(screen))
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
