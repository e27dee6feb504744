//! The public benchmark: compares policies on anyone's recordings.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use contexture_bench::judge::{JudgeOptions, run};
use contexture_cli::failure::Failure;
use contexture_terminal::screen::Screen;

/// Measures what context policies keep and cost, on recordings of your own.
#[derive(Parser)]
#[command(name = "contexture-bench")]
struct Arguments {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    Judge(JudgeCommand),
}

/// Compare policies on recordings, those of other tools too, with 95 % intervals; no model is called.
///
/// docs/benchmark.md explains the columns and what they cannot see.
#[derive(Args)]
struct JudgeCommand {
    /// Directories with recordings, or recordings.
    #[arg(value_name = "DIR", required = true)]
    paths: Vec<PathBuf>,
    /// How many tokens a window may have, counted as bytes divided by four.
    #[arg(long, value_name = "N", default_value_t = 64_000, value_parser = clap::value_parser!(u64).range(4_000..))]
    budget: u64,
    /// The list of tools that `crates/contexture-bench/judge/install` has written.
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Compare only this policy. May be given several times.
    #[arg(long, value_name = "POLICY")]
    only: Vec<String>,
    /// Judge only so many recordings, drawn at random.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,
    /// The seed of the draw.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many seconds a tool may take for one recording.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    limit: u64,
    /// Print a table for a page.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(Arguments { command: BenchCommand::Judge(judge) }) => {
            print(judge).map_or_else(Failure::report, |()| ExitCode::SUCCESS)
        }
        Err(error) => Failure::from(error).hint("`contexture-bench judge --help` says what can be asked for").report(),
    }
}

fn print(judge: JudgeCommand) -> Result<(), Failure> {
    let JudgeCommand { paths, budget, tools, only, sample, seed, limit, markdown, json } = judge;
    let sample = sample.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let report = run(&JudgeOptions { paths, budget, tools, only, sample, seed, limit: Duration::from_secs(limit) })?;
    let text = match (json, markdown) {
        (true, _) => format!("{:#}\n", report.json()),
        (_, true) => report.markdown(),
        _ => report.text(Screen::of_output()),
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}
