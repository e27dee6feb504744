//! The command that compares policies on anyone's recordings.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use contexture_bench::judge::{JudgeOptions, run};
use contexture_cli::failure::Failure;
use contexture_terminal::screen::Screen;

/// Compare policies on recordings, those of other tools too.
///
/// The figures have 95 % intervals, and no model is called: docs/method.md explains the columns and what they cannot see.
#[derive(Args)]
pub struct JudgeCommand {
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

pub fn print(judge: JudgeCommand) -> Result<(), Failure> {
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
