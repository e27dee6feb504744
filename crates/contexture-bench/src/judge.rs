//! Compares policies on recordings: our own, plain ones, and those of other tools, which are called as they are.
//!
//! The measures are those of `contexture replay --compare`; new are the tools, and an interval for each value. Every policy is
//! measured in the same way: a message that it sends as it was recorded is that message, and anything else is what the
//! policy wrote.

pub mod report;
pub mod tool;
pub mod windows;

use std::path::PathBuf;
use std::time::Duration;

use contexture::fold::Prices;
use contexture::transcript::Transcript;
use contexture_cli::failure::Failure;
use contexture_cli::replay::settings::settings_of;
use contexture_cli::settings::keys::Counter;
use contexture_cli::settings::{Command, SettingSources, resolve};
use contexture_cli::source::{self, RecordingSource};
use contexture_measure::judge::{Measures, WindowJudge};
use contexture_measure::policies::own::Own;
use contexture_measure::policies::{KNOWN, WindowPolicy};
use contexture_measure::recorded::RecordedSession;
use contexture_measure::work::in_parallel;
use contexture_terminal::progress::ProgressCounter;

use contexture_measure::random::Rng;
use report::{JudgeReport, JudgedPolicy};
use tool::{ExternalTool, ExternalTools};
use windows::Recorded;

/// What to compare.
#[derive(Clone, Debug)]
pub struct JudgeOptions {
    /// Files and directories with recordings.
    pub paths: Vec<PathBuf>,
    /// The most tokens of a window.
    pub budget: u64,
    /// The file that lists the tools of others.
    pub tools: Option<PathBuf>,
    /// The names of the policies to compare; all of them if there are none.
    pub only: Vec<String>,
    /// Of how many recordings, drawn at random; all of them if there is no number.
    pub sample: Option<usize>,
    /// The seed of that draw.
    pub seed: u64,
    /// How long a tool may take for one recording.
    pub limit: Duration,
}

/// One policy of the comparison.
enum ComparedPolicy {
    /// Built in, with what it does.
    Own(Box<dyn WindowPolicy>, &'static str),
    /// A tool of others.
    Tool(ExternalTool),
}

impl ComparedPolicy {
    fn name(&self) -> &str {
        match self {
            ComparedPolicy::Own(policy, _) => policy.name(),
            ComparedPolicy::Tool(tool) => &tool.name,
        }
    }
}

/// Judges all policies on all recordings.
///
/// # Errors
///
/// When no file is a recording, when a name is unknown, or when the list of tools cannot be read.
pub fn run(options: &JudgeOptions) -> Result<JudgeReport, Failure> {
    let tools = options.tools.as_deref().map(ExternalTools::read).transpose()?.unwrap_or_default();
    let policies = chosen(options, tools.installed)?;
    let sources = sampled(source::find(&options.paths)?, options);
    let progress = ProgressCounter::new("judging", sources.len());
    let read = in_parallel(&sources, |source| {
        let judged = source.transcript().map(|(transcript, _)| judge(&transcript, &policies, options));
        progress.advance();
        judged
    });
    drop(progress);
    let mut recordings: Vec<Vec<Result<Measures, String>>> = Vec::new();
    for (source, judged) in sources.iter().zip(read) {
        match judged {
            Ok(row) => recordings.push(row),
            Err(unread) => source.tell_unread(&unread),
        }
    }
    // A recording without any response of the agent has no request to judge.
    recordings.retain(|row| row.iter().any(|judged| judged.as_ref().map_or(true, |measures| measures.requests > 0)));
    if recordings.is_empty() {
        return Err(source::none_read());
    }
    let columns = policies.iter().enumerate().map(|(at, policy)| {
        let rows = recordings.iter().map(|row| row[at].clone()).collect();
        let (version, settings) = match policy {
            ComparedPolicy::Own(_, settings) => (None, (*settings).to_owned()),
            ComparedPolicy::Tool(tool) => (Some(tool.version.clone()), tool.settings.clone()),
        };
        JudgedPolicy { name: policy.name().to_owned(), version, settings, recordings: rows }
    });
    Ok(JudgeReport { budget: options.budget, judged: columns.collect(), missing: tools.missing })
}

/// The policies that were asked for.
fn chosen(options: &JudgeOptions, tools: Vec<ExternalTool>) -> Result<Vec<ComparedPolicy>, Failure> {
    let config = resolve(&SettingSources::default()).map_err(|error| Failure::work(error.to_string()))?;
    let settings = settings_of(&config.for_command(Command::Replay), options.budget, Counter::Estimate);
    let mut all =
        vec![ComparedPolicy::Own(Box::new(Own { settings }), "as `contexture run` does it, with its defaults")];
    all.extend(KNOWN.iter().zip(WHAT_KNOWN_DO).map(|(known, what)| ComparedPolicy::Own(Box::new(*known), what)));
    all.extend(tools.into_iter().map(ComparedPolicy::Tool));
    if let Some(unknown) = options.only.iter().find(|name| !all.iter().any(|policy| policy.name() == **name)) {
        let names: Vec<&str> = all.iter().map(ComparedPolicy::name).collect();
        return Err(
            Failure::usage(format!("there is no policy `{unknown}`")).hint(format!("there are {}", names.join(", ")))
        );
    }
    all.retain(|policy| options.only.is_empty() || options.only.iter().any(|name| name == policy.name()));
    Ok(all)
}

/// What each of [`KNOWN`] does, in their order.
const WHAT_KNOWN_DO: [&str; KNOWN.len()] = [
    "everything, every time",
    "drops the oldest messages but the first of the user, as many as necessary; like `truncation: auto` of OpenAI",
    "the same, until half of the budget is free",
    "replaces all outputs of tools but the ten newest by a note",
    "the same with all but three, when the window is full; like `clear_tool_uses` of Anthropic with its defaults",
    "the same with all outputs beyond the newest 40 000 tokens of them, as OpenCode does",
];

/// The recordings to judge: all, or some drawn with a seed, in the order of their names.
fn sampled(mut sources: Vec<RecordingSource>, options: &JudgeOptions) -> Vec<RecordingSource> {
    let Some(count) = options.sample.filter(|count| *count < sources.len()) else { return sources };
    let mut random = Rng::new(options.seed);
    for at in 0..count {
        let other = at + random.below(sources.len() - at);
        sources.swap(at, other);
    }
    sources.truncate(count);
    sources.sort();
    sources
}

/// The measures of each policy on one recording, or why there are none.
fn judge(
    transcript: &Transcript,
    policies: &[ComparedPolicy],
    options: &JudgeOptions,
) -> Vec<Result<Measures, String>> {
    let session = RecordedSession::new(transcript);
    let recorded = Recorded::new(transcript);
    let budget = options.budget as f64;
    let judge_one = |policy: &ComparedPolicy| {
        let mut judge = WindowJudge::new(&session, Prices::ANTHROPIC);
        let mut steps = session.steps.iter();
        let mut take = |change| {
            let change = recorded.matched(change);
            if steps.next() != Some(&change.before) {
                return Err(format!("a request before message {} was not expected", change.before));
            }
            judge.take(change);
            Ok(())
        };
        match policy {
            ComparedPolicy::Own(policy, _) => {
                for request in policy.requests(transcript, &session, budget) {
                    take(request.map_err(|error| error.to_string())?)?;
                }
            }
            ComparedPolicy::Tool(tool) => tool.play(transcript, options.budget, options.limit, &mut take)?,
        }
        match steps.next() {
            Some(step) => Err(format!("there is no request before message {step}")),
            None => Ok(judge.finish(budget)),
        }
    };
    policies.iter().map(judge_one).collect()
}
