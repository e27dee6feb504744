//! `contexture compare`: what context policies would have kept of recorded work, and at what price.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use contexture::config::Command;
use contexture::config::keys::{self, Counter};
use contexture::fold::Prices;
use contexture::transcript::Report;
use serde::Serialize;

use crate::config::{ConfigFlags, OfCompare};
use crate::failure::Failure;
use crate::judge::{Judge, Measures};
use crate::policies::own::Own;
use crate::policies::{KNOWN, Policy};
use crate::progress::Progress;
use crate::recorded::Recorded;
use crate::replay::settings::Settings;
use crate::source::{self, Source, Unread};
use crate::table::{Align, Table, counted};
use crate::work::in_parallel;

/// Compare context policies on recorded work, without a model
///
/// Tokens are counted as bytes divided by four.
///
/// recall: of the edits that follow, the share whose old text stands in the window.
/// cost: billed input at cache prices, against sending everything every time.
/// tokens: input tokens, against sending everything every time.
/// peak: the largest window, in tokens of four bytes.
/// over: recordings with a window above the budget.
/// stale: of the file contents shown, the share changed since by a call that is no longer shown.
/// dearer: recordings that cost more than sending everything.
/// said: of the lines that the user and the system said so far, the share of bytes in the window, over all requests.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Compare {
    /// Recordings, directories to walk, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    config: ConfigFlags<OfCompare>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// The whole comparison, as it is printed as JSON.
#[derive(Serialize)]
struct Comparison {
    recordings: usize,
    skipped: usize,
    budget: u64,
    policies: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    policy: String,
    recall: f64,
    cost: f64,
    tokens: f64,
    peak: f64,
    over: u64,
    stale: f64,
    dearer: u64,
    said: f64,
    /// The sums that these were made of.
    sums: Measures,
}

/// Carries out the command.
pub fn run(compare: &Compare) -> Result<(), Failure> {
    let config = compare.config.load(Command::Compare, Path::new("."))?;
    let budget: u64 = config.get(&keys::BUDGET);
    let own = Own { settings: Settings::new(&config, budget, Counter::Estimate) };
    let prices = own.settings.policy.prices;
    let sources = source::find(&compare.files)?;
    let known = KNOWN.iter().map(|known| known as &dyn Policy);
    let policies: Vec<&dyn Policy> = std::iter::once(&own as &dyn Policy).chain(known).collect();
    let progress = Progress::new("comparing", sources.len());
    let judged = in_parallel(&sources, |source| {
        let judged = judge_source(source, &policies, budget as f64, prices);
        progress.advance();
        judged
    });
    drop(progress);
    let comparison = sum_up(&sources, judged, &policies, budget)?;
    print(&comparison, compare.json)
}

/// One recording with the measures of every policy.
struct Judged {
    report: Report,
    measures: Vec<Measures>,
}

fn judge_source(source: &Source, policies: &[&dyn Policy], budget: f64, prices: Prices) -> Result<Judged, Unread> {
    let (transcript, report) = source.transcript()?;
    let recorded = Recorded::new(&transcript);
    let judge_one = |policy: &&dyn Policy| {
        let mut judge = Judge::new(&recorded, prices);
        for request in policy.requests(&transcript, &recorded, budget) {
            judge.take(request.map_err(Unread::Failed)?);
        }
        Ok(judge.finish(budget))
    };
    let measures: Result<Vec<Measures>, Unread> = policies.iter().map(judge_one).collect();
    Ok(Judged { report, measures: measures? })
}

fn sum_up(
    sources: &[Source],
    judged: Vec<Result<Judged, Unread>>,
    policies: &[&dyn Policy],
    budget: u64,
) -> Result<Comparison, Failure> {
    let mut sums = vec![Measures::default(); policies.len()];
    let (mut recordings, mut skipped) = (0, 0);
    for (source, judged) in sources.iter().zip(judged) {
        match judged {
            Ok(Judged { report, measures }) => {
                recordings += 1;
                source.tell(&report);
                sums.iter_mut().zip(&measures).for_each(|(sum, measures)| sum.add(measures));
            }
            Err(unread) => {
                skipped += 1;
                source.tell_unread(&unread);
            }
        }
    }
    if recordings == 0 {
        return Err(source::none_read());
    }
    let rows = policies.iter().zip(sums).map(|(policy, measures)| Row::new(policy.name(), measures));
    Ok(Comparison { recordings, skipped, budget, policies: rows.collect() })
}

impl Row {
    fn new(policy: &str, measures: Measures) -> Self {
        Self {
            policy: policy.to_owned(),
            recall: measures.recall(),
            cost: measures.cost_ratio(),
            tokens: measures.tokens_ratio(),
            peak: measures.peak_tokens(),
            over: measures.over,
            stale: measures.stale(),
            dearer: measures.dearer,
            said: measures.said_share(),
            sums: measures,
        }
    }
}

fn print(comparison: &Comparison, as_json: bool) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    if as_json {
        serde_json::to_writer_pretty(&mut stdout, comparison)?;
        return Ok(stdout.write_all(b"\n")?);
    }
    let Comparison { recordings, skipped, budget, policies } = comparison;
    let requests = policies.first().map_or(0, |row| row.sums.requests);
    let (recordings, skipped) = (counted(*recordings, "recording"), counted(*skipped, "file"));
    writeln!(stdout, "{recordings}, {requests} requests, budget {budget} tokens; {skipped} skipped\n")?;
    stdout.write_all(table(policies).render().as_bytes())?;
    Ok(())
}

fn table(rows: &[Row]) -> Table {
    let numbers = ["recall", "cost", "tokens", "peak", "over", "stale", "dearer", "said"];
    let numbers = numbers.map(|title| (title, Align::Right));
    let mut table = Table::new([("policy", Align::Left)].into_iter().chain(numbers));
    for row in rows {
        table.row([
            row.policy.clone(),
            format!("{:.4}", row.recall),
            format!("{:.3}", row.cost),
            format!("{:.3}", row.tokens),
            format!("{:.0}", row.peak),
            row.over.to_string(),
            format!("{:.3}", row.stale),
            row.dearer.to_string(),
            format!("{:.4}", row.said),
        ]);
    }
    table
}
