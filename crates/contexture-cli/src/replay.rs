//! `contexture replay`: plays recorded sessions through the folder and shows what would have been sent.

mod compare;
pub mod example;
mod plain;
pub mod settings;
pub mod summary;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::settings::{Command, Config};
use clap::{Args, ValueEnum};
use contexture::transcript::{Record, Transcript, plain_form};
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::{ConfigFlags, OfReplay};
use crate::failure::Failure;
use crate::source::{self, RecordingSource};
use contexture_gateway::models::Models;
use contexture_gateway::simulate::played::Played;
use contexture_gateway::{LEAST_BUDGET, Options};
use contexture_measure::work::in_parallel;
use contexture_terminal::progress::ProgressCounter;
use contexture_terminal::screen::Screen;

use contexture_measure::play::player::Player;
use contexture_measure::play::settings::PlaySettings;
use settings::settings_of;
use summary::{ReplaySummary, Summaries};

/// Play recorded sessions and show what would have been sent to the model
///
/// Without a file, the session of `contexture demo` is played. The summary is the account that the gateway makes, at the prices
/// of the model that the recording names. The format of a recording is detected from its content: Claude Code, Codex,
/// OpenCode, Copilot CLI, Gemini CLI, pi, goose, OpenAI chat, Anthropic messages, or the plain form that `--emit plain`
/// writes. Invalid lines are reported and skipped.
#[derive(Args)]
#[command(after_long_help = compare::EXPLAINED)]
pub struct ReplayCommand {
    /// Recordings, directories to search, or - for standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    config: ConfigFlags<OfReplay>,
    /// Compare with other ways to fit sessions into a window, without calling a model
    #[arg(long, conflicts_with_all = ["emit", "out"])]
    compare: bool,
    /// What to print
    #[arg(long, value_enum, default_value_t = Emit::Summary)]
    emit: Emit,
    /// Write one file for each recording into this directory (with --emit plain)
    #[arg(long, value_name = "DIR", requires = "emit")]
    out: Option<PathBuf>,
    /// Print the summary, the comparison or the list of files as JSON; windows and decisions always are
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// Tokens, bill, folds and files, for people
    Summary,
    /// Every request as its difference to the previous one, one per line
    Windows,
    /// Every decision, one per line
    Decisions,
    /// The recording itself in one plain form, one message per line
    Plain,
}

/// Runs the command.
pub fn run(replay: &ReplayCommand, screen: Screen) -> Result<(), Failure> {
    if replay.emit == Emit::Plain {
        return plain::run(&replay.files, replay.out.as_deref(), replay.json, screen);
    }
    if replay.out.is_some() {
        return Err(Failure::usage("`--out` is for `--emit plain`").hint("`contexture help replay` explains both"));
    }
    if replay.compare {
        return compare::run(&replay.files, &replay.config()?, replay.json, screen);
    }
    if replay.files.is_empty() {
        return replay.play_example(screen);
    }
    let config = replay.config()?;
    let sources = source::find(&replay.files)?;
    match replay.emit {
        Emit::Summary => replay.print(&sum_up(&sources, &config)?, screen),
        emit => emit_all(&sources, &settings_of(&config, config.budget(), config.counter()), emit),
    }
}

impl ReplayCommand {
    fn config(&self) -> Result<Config, Failure> {
        self.config.load(Command::Replay, Path::new("."))
    }

    fn play_example(&self, screen: Screen) -> Result<(), Failure> {
        let config = self.config()?;
        let (transcript, report) = example::transcript();
        if self.emit != Emit::Summary {
            let settings = settings_of(&config, config.budget(), config.counter());
            let mut writer = BufWriter::new(io::stdout().lock());
            emit_one(transcript, &settings, self.emit, &mut JsonLines { writer: &mut writer, recording: None })?;
            return Ok(writer.flush()?);
        }
        if !self.json {
            io::stdout().write_all(example::introduction(screen).as_bytes())?;
        }
        let budget = config.budget().max(LEAST_BUDGET);
        let played = example::played(Played::new(Some(budget)).with_options(options_of(&config)));
        let summary = ReplaySummary::new(example::NAME.to_owned(), &report, &transcript, &played);
        self.print(&Summaries { budget, recordings: vec![summary], skipped: 0 }, screen)
    }

    fn print(&self, summaries: &Summaries, screen: Screen) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        if !self.json {
            let next = match (self.files.is_empty(), summaries.recordings.len()) {
                (true, _) => "`contexture replay ~/.claude/projects` plays your own sessions",
                (_, 1) => "`--compare` with the same file compares this with what other tools do",
                _ => "`contexture replay` with one of these files shows its details",
            };
            // What is piped somewhere is read by programs, for which a line is a line.
            let width = if io::stdout().is_terminal() { screen.columns } else { usize::MAX };
            let text = summaries.render(screen, width) + &screen.next(next);
            return Ok(stdout.write_all(text.as_bytes())?);
        }
        serde_json::to_writer_pretty(&mut stdout, &summaries.to_json())?;
        Ok(stdout.write_all(b"\n")?)
    }
}

/// What the gateway would be told by a configuration.
fn options_of(config: &Config) -> Options {
    Options {
        models: Models::builtin().knowing(config.model()),
        dialects: config.dialects(),
        pins: config.pins(),
        ..Options::default()
    }
}

fn sum_up(sources: &[RecordingSource], config: &Config) -> Result<Summaries, Failure> {
    // As with the gateway, which takes no smaller one.
    let budget = config.budget().max(LEAST_BUDGET);
    let progress = ProgressCounter::new("replaying", sources.len());
    let played = in_parallel(sources, |source| {
        let read = source.transcript();
        let played = read.map(|(transcript, report)| {
            let played = Played::new(Some(budget)).with_options(options_of(config));
            let played = played.with_model(report.model.clone()).with_agent(&report.format.to_string());
            (ReplaySummary::new(source.to_string(), &report, &transcript, &played), report)
        });
        progress.advance();
        played
    });
    drop(progress);
    let mut summaries = Summaries { budget, recordings: Vec::new(), skipped: 0 };
    for (source, played) in sources.iter().zip(played) {
        match played {
            Ok((summary, report)) => {
                source.tell(&report);
                summaries.recordings.push(summary);
            }
            Err(unread) => {
                source.tell_unread(&unread);
                summaries.skipped += 1;
            }
        }
    }
    if summaries.recordings.is_empty() { Err(source::none_read()) } else { Ok(summaries) }
}

/// Prints the windows or decisions of one source after the other, so that only one is in memory at a time.
fn emit_all(sources: &[RecordingSource], settings: &PlaySettings, emit: Emit) -> Result<(), Failure> {
    let mut writer = BufWriter::new(io::stdout().lock());
    let mut is_any_read = false;
    for source in sources {
        match source.transcript() {
            Ok((transcript, report)) => {
                is_any_read = true;
                source.tell(&report);
                let recording = (sources.len() > 1).then(|| source.to_string());
                emit_one(transcript, settings, emit, &mut JsonLines { writer: &mut writer, recording })?;
            }
            Err(unread) => source.tell_unread(&unread),
        }
    }
    writer.flush()?;
    if is_any_read { Ok(()) } else { Err(source::none_read()) }
}

fn emit_one(
    transcript: Transcript,
    settings: &PlaySettings,
    emit: Emit,
    lines: &mut JsonLines<'_, impl Write>,
) -> Result<(), Failure> {
    let mut player = settings.play(transcript.records);
    while let Some(step) = player.step() {
        if emit == Emit::Windows {
            let added = player.window()[step.keep..].iter();
            let messages: Vec<Value> = added.map(|sent| plain_form(&sent.record())).collect();
            lines.write(&json!({ "before": step.before, "keep": step.keep, "messages": messages }))?;
        }
        emit_decisions(&mut player, emit, lines)?;
    }
    // There may be decisions after the last request.
    emit_decisions(&mut player, emit, lines)
}

/// Prints the new decisions if requested, and frees them.
fn emit_decisions(
    player: &mut Player<impl Iterator<Item = Record>>,
    emit: Emit,
    lines: &mut JsonLines<'_, impl Write>,
) -> Result<(), Failure> {
    let decisions = player.take_decisions();
    decisions.iter().filter(|_| emit == Emit::Decisions).try_for_each(|decision| lines.write(decision))
}

/// Objects, one per line.
struct JsonLines<'a, W> {
    writer: &'a mut W,
    /// The name of their recording, added to each object if there are several.
    recording: Option<String>,
}

/// An object with the name of its recording.
#[derive(Serialize)]
struct NamedObject<'a, T> {
    recording: &'a str,
    #[serde(flatten)]
    value: &'a T,
}

impl<W: Write> JsonLines<'_, W> {
    fn write(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        match &self.recording {
            Some(recording) => serde_json::to_writer(&mut *self.writer, &NamedObject { recording, value })?,
            None => serde_json::to_writer(&mut *self.writer, value)?,
        }
        Ok(self.writer.write_all(b"\n")?)
    }
}
