//! Measures how well past conversations are found again.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use contexture::recall::Extent;
use contexture_bench::recall::planted::{self, PlantedOptions, PlantedResult};
use contexture_bench::recall::written::{CONVERSATIONS, OTHERS, WrittenConversation};
use contexture_bench::recall::{coding, recorded, remembered};
use contexture_cli::failure::Failure;

/// Measure how well past conversations are found again.
///
/// Facts planted in made conversations and asked for in other words; questions about written conversations of two people;
/// and with --recordings, files that later messages of recorded sessions name again.
#[derive(Args)]
pub struct RecallCommand {
    /// How many conversations with planted facts are made, from as many seeds
    #[arg(long, value_name = "N", default_value_t = 5)]
    seeds: u64,
    /// How many turns they have
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    turns: usize,
    /// Recorded sessions, or directories with them
    #[arg(long, value_name = "FILE")]
    recordings: Vec<PathBuf>,
    /// Measure only the questions about coding sessions, of which the recordings are in this directory
    #[arg(long, value_name = "DIR")]
    coding: Option<PathBuf>,
    /// Measure only how often what is recalled at a person's words in --recordings was used next, and what it costs
    #[arg(long, requires = "recordings")]
    remembered: bool,
    /// The most sessions of a project that --remembered plays
    #[arg(long, value_name = "N", default_value_t = usize::MAX)]
    sessions: usize,
    /// Print the questions whose evidence was missed
    #[arg(long)]
    missed: bool,
}

pub fn print(arguments: &RecallCommand) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    if let Some(directory) = &arguments.coding {
        let measure = runtime.block_on(coding::measure(std::slice::from_ref(directory)))?;
        return Ok(io::stdout().write_all(measure.text(arguments.missed).as_bytes())?);
    }
    if arguments.remembered {
        let measure = runtime.block_on(remembered::measure(&arguments.recordings, arguments.sessions))?;
        return Ok(io::stdout().write_all(measure.text().as_bytes())?);
    }
    let failed = |error: contexture::search::SearchError| Failure::work(error.to_string());
    let mut text = runtime.block_on(planted_facts(arguments)).map_err(failed)?;
    text.push_str(&runtime.block_on(written_talks(arguments)).map_err(failed)?);
    if !arguments.recordings.is_empty() {
        let measure = runtime.block_on(recorded::measure(&arguments.recordings))?;
        text.push_str(&measure.text());
    }
    Ok(io::stdout().write_all(text.as_bytes())?)
}

async fn planted_facts(arguments: &RecallCommand) -> Result<String, contexture::search::SearchError> {
    let mut text = format!("planted facts, {} conversations of {} turns\n", arguments.seeds, arguments.turns);
    let cases = [("what fits", 4_000, Extent::Fitting), ("all of 2 000", 2_000, Extent::Full)];
    for (name, budget, extent) in cases {
        let mut sum = PlantedResult::default();
        for seed in 1..=arguments.seeds {
            let one =
                planted::measure(&PlantedOptions { seed, turns: arguments.turns, facts: 60, budget, extent }).await?;
            sum.add(&one);
        }
        let mean = sum.tokens as f64 / (sum.asked + sum.withdrawn).max(1) as f64;
        let _ = writeln!(
            text,
            "  {name:<14} found {:.3} of {}  precision {:.3}  withdrawn shown {} of {}  former without update {}  tokens {mean:.0}",
            sum.recall(),
            sum.asked,
            sum.precision(),
            sum.withdrawn_shown,
            sum.withdrawn,
            sum.outdated_alone,
        );
    }
    Ok(text)
}

async fn written_talks(arguments: &RecallCommand) -> Result<String, contexture::search::SearchError> {
    let mut text = "written conversations, share of the evidence within a tenth and a fifth of the tokens\n".to_owned();
    let talks = CONVERSATIONS.iter().map(|(name, text)| (*name, WrittenConversation::read(text)));
    let others = OTHERS.iter().map(|(name, text)| (*name, WrittenConversation::read(text)));
    let merged = [("all as one", WrittenConversation::merged()), ("others among", WrittenConversation::others())];
    for (name, talk) in talks.chain(others).chain(merged) {
        let tokens = talk.tokens();
        let [tenth, fifth] = [tokens / 10, tokens / 5];
        let (one, two) = (talk.measure(tenth).await?, talk.measure(fifth).await?);
        let _ = writeln!(
            text,
            "  {name:<14} {:.3} {:.3}  ({} questions, {} turns, {tokens} tokens)",
            one.share,
            two.share,
            talk.questions.len(),
            talk.passages.len()
        );
        for question in one.missed.iter().filter(|_| arguments.missed) {
            let _ = writeln!(text, "    {question}");
        }
    }
    Ok(text)
}
