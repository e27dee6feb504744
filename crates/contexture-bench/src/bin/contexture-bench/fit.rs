//! Fits the weights of need to recordings, and evaluates them on held-out recordings.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use contexture_bench::fit::{DEFAULT_BUDGET, FitOptions, run};
use contexture_cli::failure::Failure;

/// Fit the weights that choose what a fold shows.
///
/// They are judged on recordings that they were not fitted to. Prints the weights, and how much of what edits needed
/// later is captured when the best chunks fill 20 to 80 kB.
#[derive(Args)]
pub struct FitCommand {
    /// Directories with recordings, or recordings. A project is what a file's name has before `__`, or else the
    /// directory in which the agent worked.
    #[arg(value_name = "DIR", required = true)]
    paths: Vec<PathBuf>,
    /// Look at requests of conversations longer than this many tokens.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_BUDGET, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// Leave a weight out of everything. May be given several times.
    #[arg(long, value_name = "WEIGHT")]
    without: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn print(arguments: FitCommand) -> Result<(), Failure> {
    let FitCommand { paths, budget, without, json } = arguments;
    let report = run(&FitOptions { paths, budget, without })?;
    let text = if json { format!("{:#}\n", report.json()) } else { report.text() };
    Ok(io::stdout().write_all(text.as_bytes())?)
}
