//! `contexture replay --compare`: what context policies would have kept of recorded sessions, and at what cost.

use contexture_text::numbers::counted;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::settings::Config;
use crate::settings::keys::Counter;
use contexture::fold::Prices;
use contexture::transcript::{Report, Transcript};
use serde::Serialize;

use super::example;
use super::settings::settings_of;
use crate::failure::Failure;
use crate::source::{self, RecordingSource, TranscriptProblem};
use contexture_measure::judge::{Measures, WindowJudge};
use contexture_measure::plot::short_count;
use contexture_measure::policies::own::Own;
use contexture_measure::policies::{KNOWN, WindowPolicy};
use contexture_measure::recorded::RecordedSession;
use contexture_measure::work::in_parallel;
use contexture_terminal::progress::ProgressCounter;
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};

/// What the columns and rows of the table are.
pub(super) const EXPLAINED: &str = "\
With --compare, tokens are counted as bytes divided by four.

- recall: of the edits that follow, the share whose old text is in the window
- cost: what is billed for input, relative to sending everything every time
- said: of what the user and the system said so far, the share that is in the window
- told: of what the agent itself said so far, the share that is in the window
- used: of the rare words in the agent's next message that occurred before, the share that is in the window
- peak: the largest window, in tokens
- over: recordings with a window above the budget
- stale: of the file contents in the window, the share that is out of date without showing it
- above: recordings that cost more than sending everything

- contexture replaces the past by what the agent still needs, as it does without --compare
- pass-through sends everything, every time
- sliding window drops as many of the oldest messages as necessary
- half-window drop drops the oldest messages until half of the budget is free
- keep the last 10 replaces all but the ten newest results of tools by a note
- clear all but 3 does the same with all but three results when the window is full
- prune beyond 40k does the same with all results beyond the newest 40 000 tokens of them";

/// The whole comparison, as it is printed as JSON.
#[derive(Serialize)]
struct PolicyComparison {
    recordings: usize,
    skipped: usize,
    budget: u64,
    policies: Vec<PolicyRow>,
}

#[derive(Serialize)]
struct PolicyRow {
    policy: String,
    recall: f64,
    cost: f64,
    tokens: f64,
    peak: f64,
    over: u64,
    stale: f64,
    costlier: u64,
    said: f64,
    told: f64,
    used: f64,
    /// The sums of which the ratios are computed.
    sums: Measures,
}

/// Compares recordings, or without any the example.
///
/// # Errors
/// None of the files is a recording, or the output cannot be written.
pub(super) fn run(files: &[PathBuf], config: &Config, json: bool, screen: Screen) -> Result<(), Failure> {
    let is_example = files.is_empty();
    let budget = config.budget();
    let own = Own { settings: settings_of(config, budget, Counter::Estimate) };
    let known = KNOWN.iter().map(|known| known as &dyn WindowPolicy);
    let policies: Vec<&dyn WindowPolicy> = std::iter::once(&own as &dyn WindowPolicy).chain(known).collect();
    let field = ComparisonField { policies: &policies, budget, prices: own.settings.policy.prices };
    let comparison = if is_example {
        let (transcript, report) = example::transcript();
        let judged = field.judge(&transcript, report).map_err(TranscriptProblem::into_error)?;
        field.comparison(judged.measures, 1, 0)
    } else {
        field.compare(&source::find(files)?)?
    };
    if json {
        return comparison.print_json();
    }
    let mut text = String::new();
    if is_example {
        text.push_str(&example::introduction(screen));
    }
    text.push_str(&comparison.render(screen));
    let next = if is_example {
        "`contexture replay --compare ~/.claude/projects` compares on your own sessions, `contexture help replay` explains the columns"
    } else {
        "`contexture help replay` explains the columns, `contexture replay FILE` shows what became of one recording"
    };
    text.push_str(&screen.next(next));
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// The recordings to compare, and the settings.
struct ComparisonField<'a> {
    policies: &'a [&'a dyn WindowPolicy],
    budget: u64,
    prices: Prices,
}

/// One recording with the measures of every policy.
struct JudgedRecording {
    report: Report,
    measures: Vec<Measures>,
}

impl ComparisonField<'_> {
    fn compare(&self, sources: &[RecordingSource]) -> Result<PolicyComparison, Failure> {
        let progress = ProgressCounter::new("comparing", sources.len());
        let judged = in_parallel(sources, |source| {
            let read = source.transcript();
            let judged = read.and_then(|(transcript, report)| self.judge(&transcript, report));
            progress.advance();
            judged
        });
        drop(progress);
        let mut sums = vec![Measures::default(); self.policies.len()];
        let (mut recordings, mut skipped) = (0, 0);
        for (source, judged) in sources.iter().zip(judged) {
            match judged {
                Ok(JudgedRecording { report, measures }) => {
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
        Ok(self.comparison(sums, recordings, skipped))
    }

    fn judge(&self, transcript: &Transcript, report: Report) -> Result<JudgedRecording, TranscriptProblem> {
        let (recorded, budget) = (RecordedSession::new(transcript), self.budget as f64);
        let judge_one = |policy: &&dyn WindowPolicy| {
            let mut judge = WindowJudge::new(&recorded, self.prices);
            for request in policy.requests(transcript, &recorded, budget) {
                judge.take(request.map_err(TranscriptProblem::Failed)?);
            }
            Ok(judge.finish(budget))
        };
        let measures: Result<Vec<Measures>, TranscriptProblem> = self.policies.iter().map(judge_one).collect();
        Ok(JudgedRecording { report, measures: measures? })
    }

    fn comparison(&self, sums: Vec<Measures>, recordings: usize, skipped: usize) -> PolicyComparison {
        let rows = self.policies.iter().zip(sums).map(|(policy, measures)| PolicyRow::new(policy.name(), measures));
        PolicyComparison { recordings, skipped, budget: self.budget, policies: rows.collect() }
    }
}

impl PolicyRow {
    fn new(policy: &str, measures: Measures) -> Self {
        Self {
            policy: policy.to_owned(),
            recall: measures.recall(),
            cost: measures.cost_ratio(),
            tokens: measures.tokens_ratio(),
            peak: measures.peak_tokens(),
            over: measures.over,
            stale: measures.stale(),
            costlier: measures.costlier,
            said: measures.said_share(),
            told: measures.told_share(),
            used: measures.used_share(),
            sums: measures,
        }
    }
}

impl PolicyComparison {
    fn print_json(&self) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        serde_json::to_writer_pretty(&mut stdout, self)?;
        Ok(stdout.write_all(b"\n")?)
    }

    fn render(&self, screen: Screen) -> String {
        let requests = self.policies.first().map_or(0, |row| row.sums.requests);
        let recordings = counted(self.recordings, "recording");
        let budget = short_count(self.budget);
        let mut heading = format!("{recordings}, {} requests, budget {budget} tokens", short_count(requests));
        if self.skipped > 0 {
            heading.push_str(&format!("; {} skipped", counted(self.skipped, "other file")));
        }
        format!("{}\n\n{}", screen.wrap(&heading, 0), self.table().fit(screen))
    }

    fn table(&self) -> TextTable {
        let numbers = ["recall", "cost", "said", "told", "used", "peak", "over", "stale", "above"];
        let numbers = numbers.map(|title| (title, Align::Right));
        let mut table = TextTable::new([("policy", Align::Left)].into_iter().chain(numbers));
        for (index, row) in self.policies.iter().enumerate() {
            table.row([
                row.policy.clone(),
                format!("{:.4}", row.recall),
                format!("{:.3}", row.cost),
                format!("{:.3}", row.said),
                format!("{:.3}", row.told),
                format!("{:.3}", row.used),
                short_count(row.peak.ceil() as u64),
                row.over.to_string(),
                format!("{:.3}", row.stale),
                row.costlier.to_string(),
            ]);
            if index == 0 {
                table.strong();
            }
        }
        table
    }
}
