//! `contexture replay --emit plain`: converts recorded sessions to the plain form.

use contexture_text::numbers::counted;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use contexture::transcript::{self, Report};
use serde::Serialize;

use crate::failure::Failure;
use crate::source::{self, RecordingSource, TranscriptProblem, say};
use contexture_measure::names::Names;
use contexture_terminal::progress::ProgressCounter;
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};

/// The result of one source.
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
    /// Files in directories that are not recordings.
    unknown: usize,
    /// Named or damaged files, which cause an exit code.
    failed: usize,
}

/// Converts recordings: one to standard output, or each to a file of its own.
///
/// # Errors
/// A file cannot be read or written, or is no recording.
pub(super) fn run(files: &[PathBuf], out: Option<&Path>, json: bool, screen: Screen) -> Result<(), Failure> {
    if files.is_empty() || (json && out.is_none()) {
        let wrong = if files.is_empty() {
            "`--emit plain` needs a recording"
        } else {
            "`--emit plain --json` needs `--out DIR`"
        };
        return Err(Failure::usage(wrong).hint("write it as `contexture replay --emit plain FILE --out DIR`"));
    }
    let sources = source::find(files)?;
    let mut skipped = Skipped::default();
    let count = match out {
        Some(directory) => {
            let imported = to_directory(&sources, directory, &mut skipped)?;
            if !imported.is_empty() || json {
                print(&imported, directory, json, screen)?;
            }
            imported.len()
        }
        None => to_output(&sources, &mut skipped)?,
    };
    skipped.outcome(count)
}

/// Writes the only recording among the sources to standard output, and returns how many there were.
fn to_output(sources: &[RecordingSource], skipped: &mut Skipped) -> Result<usize, Failure> {
    let mut found = Vec::new();
    for source in sources {
        // A single source need not be read twice; standard input cannot be.
        if sources.len() == 1 || source.read(&mut |_| {}).is_ok() {
            found.push(source);
        } else {
            copy(source, &mut io::sink(), skipped)?;
        }
        if found.len() > 1 {
            return Err(Failure::usage("standard output has room for one recording only")
                .hint("add `--out DIR` to write one file for each"));
        }
    }
    let [source] = found.as_slice() else { return Ok(0) };
    let mut writer = BufWriter::new(io::stdout().lock());
    let report = copy(source, &mut writer, skipped)?;
    writer.flush()?;
    report.iter().for_each(|report| source.tell(report));
    Ok(report.iter().count())
}

fn to_directory(
    sources: &[RecordingSource],
    directory: &Path,
    skipped: &mut Skipped,
) -> Result<Vec<Imported>, Failure> {
    let progress = ProgressCounter::new("importing", sources.len());
    let mut taken = HashSet::new();
    let mut imported = Vec::new();
    for source in sources {
        let out = free_name(directory, &source.short, &mut taken);
        if let Some(report) = to_file(source, &out, skipped)? {
            imported.push(Imported::new(source, &report, &out));
        } else {
            taken.remove(&out);
        }
        progress.advance();
    }
    drop(progress);
    Ok(imported)
}

/// Writes one recording to a new file. Existing files are not overwritten, and no file is created for other sources.
fn to_file(source: &RecordingSource, out: &Path, skipped: &mut Skipped) -> Result<Option<Report>, Failure> {
    let mut writer = NewFile { path: out, writer: None };
    let copied = copy(source, &mut writer, skipped).and_then(|report| writer.flush().map(|()| report));
    let failed = |error: io::Error| {
        let failure = Failure::work(format!("write `{}`: {error}", out.display()));
        let is_there = error.kind() == io::ErrorKind::AlreadyExists;
        if is_there { failure.hint("name an empty directory with --out") } else { failure }
    };
    let report = copied.map_err(failed)?;
    match &report {
        Some(report) => source.tell(report),
        // Remove the file of a recording that could not be read to its end.
        None if writer.writer.is_some() => fs::remove_file(out).map_err(failed)?,
        None => {}
    }
    Ok(report)
}

/// A file that is created with the first write.
struct NewFile<'a> {
    path: &'a Path,
    writer: Option<BufWriter<File>>,
}

impl Write for NewFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.writer.is_none() {
            fs::create_dir_all(self.path.parent().unwrap_or(Path::new(".")))?;
            self.writer = Some(BufWriter::new(File::create_new(self.path)?));
        }
        self.writer.as_mut().map_or(Ok(0), |writer| writer.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Copies a recording to a writer; other sources are reported and return nothing.
fn copy(source: &RecordingSource, writer: &mut impl Write, skipped: &mut Skipped) -> io::Result<Option<Report>> {
    let mut written = Ok(());
    let result = source.read(&mut |record| {
        if written.is_ok() {
            written = transcript::write(&mut *writer, &record);
        }
    });
    written?;
    match result {
        Ok(report) => return Ok(Some(report)),
        Err(TranscriptProblem::Unknown | TranscriptProblem::Empty) if !source.is_named => skipped.unknown += 1,
        Err(TranscriptProblem::Empty) => {
            skipped.failed += 1;
            say(&format!("{source}: skipped, it is empty"));
        }
        Err(TranscriptProblem::Unknown) => {
            skipped.failed += 1;
            say(&format!("{source}: skipped, it is not a recording in a known format"));
        }
        Err(TranscriptProblem::Failed(error)) => {
            skipped.failed += 1;
            say(&format!("{source}: skipped, it could not be read: {error:#}"));
        }
    }
    Ok(None)
}

fn print(imported: &[Imported], directory: &Path, as_json: bool, screen: Screen) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    if as_json {
        serde_json::to_writer_pretty(&mut stdout, imported)?;
        return Ok(stdout.write_all(b"\n")?);
    }
    let titles = [("recording", Align::Name), ("format", Align::Left), ("messages", Align::Right)];
    let counts = [("broken", Align::Right), ("unanswered", Align::Right), ("written to", Align::Name)];
    let mut table = TextTable::new(titles.into_iter().chain(counts));
    let names = Names::of(imported.iter().map(|row| row.file.as_str()));
    for row in imported {
        let Imported { file, format, messages, broken, unanswered, orphans: _, out } = row;
        let [messages, broken, unanswered] = [messages, broken, unanswered].map(u64::to_string);
        let out = Path::new(out).strip_prefix(directory).unwrap_or(Path::new(out)).display().to_string();
        table.row([names.short(file), format.clone(), messages, broken, unanswered, out]);
    }
    let from = names.folder().map(|folder| format!(" from {folder}")).unwrap_or_default();
    let heading = format!("{}{from} to {}", counted(imported.len(), "recording"), directory.display());
    let next = screen.next(&format!("`contexture replay {}` plays them", directory.display()));
    Ok(stdout.write_all(format!("{}\n\n{}{next}", screen.wrap(&heading, 2), table.fit(screen)).as_bytes())?)
}

impl Imported {
    fn new(source: &RecordingSource, report: &Report, out: &Path) -> Self {
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
    /// The end of the command, by how many recordings were imported.
    fn outcome(self, imported: usize) -> Result<(), Failure> {
        match self.unknown {
            0 => {}
            1 => eprintln!("1 file skipped that is no recording"),
            count => eprintln!("{count} files skipped that are not recordings"),
        }
        let sentence = match self.failed {
            0 if imported > 0 => return Ok(()),
            0 => return Err(source::none_read()),
            1 => "one file could not be imported".to_owned(),
            count => format!("{count} files could not be imported"),
        };
        Err(Failure::work(sentence).hint(source::KNOWN_FORMATS))
    }
}

/// A name below `directory` that no earlier source has: `a/session.jsonl`, then `a/session-2.jsonl`.
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
