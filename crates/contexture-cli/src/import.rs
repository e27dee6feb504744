//! `contexture import`: recorded work of agents in the plain form.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use contexture::transcript::{self, Report};
use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::source::{self, Source, Unread};
use crate::table::{Align, Table};

/// Turn recorded work of agents into the plain form, one message a line
///
/// The format is told by the content: Claude Code, Codex, OpenCode, Copilot CLI, OpenAI chat, Anthropic messages, or
/// the plain form itself. Broken lines are reported and skipped.
#[derive(Args)]
pub struct Import {
    /// Files, directories to walk, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write one file for each recording into this directory, instead of all to standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print what was imported as JSON (with --out)
    #[arg(long, requires = "out")]
    json: bool,
}

/// What a person may do whose file is in no known format.
const KNOWN_FORMATS: &str =
    "known are Claude Code, Codex, OpenCode, Copilot CLI, OpenAI chat, Anthropic messages and the plain form";

/// What became of one source.
#[derive(Serialize)]
struct Imported {
    file: String,
    format: String,
    messages: u64,
    broken: u64,
    unanswered: u64,
    orphans: u64,
    out: String,
}

/// Sources that could not be imported.
#[derive(Default)]
struct Skipped {
    /// Found by walking, and no recordings.
    unknown: usize,
    /// Named or damaged: worth an exit code.
    failed: usize,
}

/// Carries out the command.
pub fn run(import: &Import) -> Result<(), Failure> {
    let sources = source::find(&import.files)?;
    let mut skipped = Skipped::default();
    match &import.out {
        Some(directory) => {
            let imported = to_directory(&sources, directory, &mut skipped)?;
            print(&imported, import.json)?;
        }
        None if sources.len() > 1 => {
            return Err(Failure::usage(format!("{} files cannot share one output", sources.len()))
                .hint("add `--out DIR` to write one file for each"));
        }
        None => to_output(&sources[0], &mut skipped)?,
    }
    skipped.outcome()
}

fn to_output(source: &Source, skipped: &mut Skipped) -> Result<(), Failure> {
    let mut writer = BufWriter::new(io::stdout().lock());
    if let Some(report) = copy(source, &mut writer, skipped)? {
        source.tell(&report);
    }
    Ok(writer.flush()?)
}

fn to_directory(sources: &[Source], directory: &Path, skipped: &mut Skipped) -> Result<Vec<Imported>, Failure> {
    let progress = Progress::new("importing", sources.len());
    let mut taken = HashSet::new();
    let mut imported = Vec::new();
    for source in sources {
        let out = free_name(directory, &source.short, &mut taken);
        if let Some(report) = to_file(source, &out, skipped)? {
            imported.push(Imported::new(source, &report, &out));
        }
        progress.advance();
    }
    drop(progress);
    Ok(imported)
}

/// Writes one recording to a new file. Nothing that exists is overwritten, and no file is left of what is no recording.
fn to_file(source: &Source, out: &Path, skipped: &mut Skipped) -> Result<Option<Report>, Failure> {
    let failed = |error: io::Error| Failure::work(format!("write `{}`: {error}", out.display()));
    fs::create_dir_all(out.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    let file = File::create_new(out).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => failed(error).hint("name an empty directory with --out"),
        _ => failed(error),
    })?;
    let mut writer = BufWriter::new(file);
    let report = copy(source, &mut writer, skipped)?;
    writer.flush().map_err(failed)?;
    if let Some(report) = &report {
        source.tell(report);
    } else {
        fs::remove_file(out).map_err(failed)?;
    }
    Ok(report)
}

/// Copies a recording to a writer; what is no recording is reported and gives nothing.
fn copy(source: &Source, writer: &mut impl Write, skipped: &mut Skipped) -> Result<Option<Report>, Failure> {
    let mut written = Ok(());
    let result = source.read(&mut |record| {
        if written.is_ok() {
            written = transcript::write(&mut *writer, &record);
        }
    });
    written?;
    match result {
        Ok(report) => return Ok(Some(report)),
        Err(Unread::Unknown | Unread::Empty) if !source.is_named => skipped.unknown += 1,
        Err(Unread::Empty) => {
            skipped.failed += 1;
            eprintln!("{source}: skipped, it is empty");
        }
        Err(Unread::Unknown) => {
            skipped.failed += 1;
            eprintln!("{source}: skipped, it is no recording in a known format");
        }
        Err(Unread::Failed(error)) => {
            skipped.failed += 1;
            eprintln!("{source}: skipped, it could not be read: {error:#}");
        }
    }
    Ok(None)
}

fn print(imported: &[Imported], as_json: bool) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    if as_json {
        serde_json::to_writer_pretty(&mut stdout, imported)?;
        return Ok(stdout.write_all(b"\n")?);
    }
    let titles = [("recording", Align::Left), ("format", Align::Left), ("messages", Align::Right)];
    let counts = [("broken", Align::Right), ("unanswered", Align::Right), ("written to", Align::Left)];
    let mut table = Table::new(titles.into_iter().chain(counts));
    for row in imported {
        let Imported { file, format, messages, broken, unanswered, orphans: _, out } = row;
        let counts = [messages, broken, unanswered].map(u64::to_string);
        let [messages, broken, unanswered] = counts;
        table.row([file.clone(), format.clone(), messages, broken, unanswered, out.clone()]);
    }
    Ok(stdout.write_all(table.render().as_bytes())?)
}

impl Imported {
    fn new(source: &Source, report: &Report, out: &Path) -> Self {
        Self {
            file: source.to_string(),
            format: report.format.to_string(),
            messages: report.messages,
            broken: report.broken_records,
            unanswered: report.unanswered_calls,
            orphans: report.orphan_results,
            out: out.display().to_string(),
        }
    }
}

impl Skipped {
    fn outcome(self) -> Result<(), Failure> {
        match self.unknown {
            0 => {}
            1 => eprintln!("1 file skipped that is no recording"),
            count => eprintln!("{count} files skipped that are no recordings"),
        }
        let sentence = match self.failed {
            0 => return Ok(()),
            1 => "one file could not be imported".to_owned(),
            count => format!("{count} files could not be imported"),
        };
        Err(Failure::work(sentence).hint(KNOWN_FORMATS))
    }
}

/// A name beneath `directory` that no earlier source has: `a/session.jsonl`, then `a/session-2.jsonl`.
fn free_name(directory: &Path, short: &Path, taken: &mut HashSet<PathBuf>) -> PathBuf {
    let stem = short.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let parent = directory.join(short.parent().unwrap_or(Path::new("")));
    let mut candidate = parent.join(format!("{stem}.jsonl"));
    let mut count = 1;
    while !taken.insert(candidate.clone()) {
        count += 1;
        candidate = parent.join(format!("{stem}-{count}.jsonl"));
    }
    candidate
}
