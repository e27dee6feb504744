//! The named recordings: files, directories to search, or standard input.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use contexture::transcript::{self, ReadError, Record, Report, Transcript};

use crate::failure::Failure;
use contexture_terminal::harmless::written_out;
use contexture_text::numbers::counted;

/// Bytes read from a file at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The name of standard input.
const STANDARD_INPUT: &str = "-";

/// The hint for files in no known format.
pub const KNOWN_FORMATS: &str = "name recordings of Claude Code, Codex, OpenCode, Copilot CLI, Gemini CLI or pi, \
                                 chat messages as JSON, or what `contexture replay --emit plain` writes";

/// One file that may be a recording.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordingSource {
    /// Its path.
    pub path: PathBuf,
    /// Its path below the named directory, or its file name.
    pub short: PathBuf,
    /// Whether this file was named; others were found in directories.
    pub is_named: bool,
}

impl fmt::Display for RecordingSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(formatter)
    }
}

/// Why a source has no transcript.
#[derive(Debug)]
pub enum TranscriptProblem {
    /// It is not a recording of an agent.
    Unknown,
    /// It is empty.
    Empty,
    /// It could not be read.
    Failed(anyhow::Error),
}

impl TranscriptProblem {
    /// Converts it to an error.
    pub fn into_error(self) -> anyhow::Error {
        match self {
            TranscriptProblem::Unknown => anyhow::anyhow!("it is in no known format"),
            TranscriptProblem::Empty => anyhow::anyhow!("it is empty"),
            TranscriptProblem::Failed(error) => error,
        }
    }
}

impl RecordingSource {
    /// Reads the recording message by message.
    pub fn read(&self, sink: &mut impl FnMut(Record)) -> Result<Report, TranscriptProblem> {
        let mut has_messages = false;
        let sink = &mut |record| {
            has_messages = true;
            sink(record);
        };
        let result = if self.path == Path::new(STANDARD_INPUT) {
            transcript::read(io::stdin().lock(), sink)
        } else {
            let file = File::open(&self.path).context("open it").map_err(TranscriptProblem::Failed)?;
            transcript::read(BufReader::with_capacity(BUFFER_BYTES, file), sink)
        };
        match result {
            // A text may have a line that looks like one of a recording.
            Ok(report) if !self.is_named && !has_messages && report.broken_records > 0 => {
                Err(TranscriptProblem::Unknown)
            }
            Ok(report) => Ok(report),
            Err(ReadError::UnknownFormat) => Err(TranscriptProblem::Unknown),
            Err(ReadError::Empty) => Err(TranscriptProblem::Empty),
            Err(error) => Err(TranscriptProblem::Failed(error.into())),
        }
    }

    /// Reads the records at its start, and says whether that was all of it. `None` for standard input, which can be read
    /// only once.
    #[allow(clippy::type_complexity, reason = "three values, each named above")]
    pub fn start(&self, bytes: u64) -> Option<Result<(Vec<Record>, Option<Report>, bool), TranscriptProblem>> {
        if self.path == Path::new(STANDARD_INPUT) {
            return None;
        }
        Some(self.start_of_file(bytes))
    }

    fn start_of_file(&self, bytes: u64) -> Result<(Vec<Record>, Option<Report>, bool), TranscriptProblem> {
        let file = File::open(&self.path).context("open it").map_err(TranscriptProblem::Failed)?;
        let is_whole = file.metadata().is_ok_and(|metadata| metadata.len() <= bytes);
        let mut records = Vec::new();
        let read = transcript::read(BufReader::new(file.take(bytes)), &mut |record| records.push(record));
        match read {
            Ok(report) => Ok((records, Some(report), is_whole)),
            // The first record may be longer.
            Err(ReadError::UnknownFormat) if !is_whole => Ok((records, None, is_whole)),
            Err(ReadError::UnknownFormat) => Err(TranscriptProblem::Unknown),
            Err(ReadError::Empty) => Err(TranscriptProblem::Empty),
            Err(error) => Err(TranscriptProblem::Failed(error.into())),
        }
    }

    /// Reads the whole recording.
    pub fn transcript(&self) -> Result<(Transcript, Report), TranscriptProblem> {
        let mut transcript = Transcript::default();
        let report = self.read(&mut |record| transcript.records.push(record))?;
        Ok((transcript, report))
    }

    /// Reports invalid records on standard error.
    pub fn tell(&self, report: &Report) {
        if !self.is_named && report.broken_records > 0 {
            // Of a directory nobody wants to read each line of each file.
            say(&format!("{self}: {} skipped", counted(report.broken_records as usize, "broken record")));
            return;
        }
        for broken in &report.broken {
            say(&format!("{self}:{}: skipped, {}", broken.line, broken.reason));
        }
        let untold = report.broken_records - report.broken.len() as u64;
        if untold > 0 {
            say(&format!("{self}: {untold} more broken records skipped"));
        }
    }

    /// Reports a source without a transcript on standard error, unless it was found in a directory and is just another file.
    pub fn tell_unread(&self, unread: &TranscriptProblem) {
        match unread {
            TranscriptProblem::Failed(error) => say(&format!("{self}: skipped, it could not be read: {error:#}")),
            TranscriptProblem::Empty if self.is_named => say(&format!("{self}: skipped, it is empty")),
            TranscriptProblem::Unknown if self.is_named => say(&format!("{self}: skipped, it is in no known format")),
            TranscriptProblem::Empty | TranscriptProblem::Unknown => {}
        }
    }
}

/// Writes a line about a recording on standard error.
pub(crate) fn say(line: &str) {
    // Nobody may be listening any more, as after `2>&1 | head`.
    let _ = writeln!(io::stderr(), "{}", written_out(line));
}

/// All files of the named paths, those of a directory in the order of their names.
pub fn find(paths: &[PathBuf]) -> Result<Vec<RecordingSource>, Failure> {
    let (mut sources, mut unlisted) = (Vec::new(), Vec::new());
    for path in paths {
        if path.as_os_str() == STANDARD_INPUT {
            sources.push(RecordingSource { path: path.clone(), short: PathBuf::from("stdin"), is_named: true });
            continue;
        }
        let kind = fs::metadata(path).map_err(|error| missing(path, &error))?;
        if kind.is_dir() {
            let start = sources.len();
            unlisted.extend(walk(path, path, &mut sources));
            sources[start..].sort();
        } else {
            let short = PathBuf::from(path.file_name().unwrap_or(OsStr::new("recording")));
            sources.push(RecordingSource { path: path.clone(), short, is_named: true });
        }
    }
    let sources = each_once(sources);
    if let Some(first) = unlisted.first().filter(|_| sources.is_empty()) {
        return Err(Failure::work(first).hint("it belongs to another user, perhaps; name another directory"));
    }
    unlisted.iter().for_each(|why| say(&format!("{why}; skipped")));
    if sources.is_empty() {
        return Err(Failure::work("the named directories have no files")
            .hint("name a directory with recordings; `contexture demo` has one of its own"));
    }
    Ok(sources)
}

/// Removes sources that are the same file as an earlier one. A file that was also named counts as named.
fn each_once(sources: Vec<RecordingSource>) -> Vec<RecordingSource> {
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    let mut once: Vec<RecordingSource> = Vec::new();
    for source in sources {
        // A source without a canonical path, such as standard input, is identified by its name.
        let place = fs::canonicalize(&source.path).unwrap_or_else(|_| source.path.clone());
        match places.entry(place) {
            Entry::Vacant(free) => {
                free.insert(once.len());
                once.push(source);
            }
            Entry::Occupied(taken) => once[*taken.get()].is_named |= source.is_named,
        }
    }
    once
}

/// The error if no source is a recording.
pub fn none_read() -> Failure {
    Failure::work("none of the files is a recording in a known format").hint(KNOWN_FORMATS)
}

fn missing(path: &Path, error: &io::Error) -> Failure {
    Failure::work(format!("open `{}`: {error}", path.display()))
        .hint("name a file, a directory with recordings, or - for standard input; `contexture demo` has one of its own")
}

/// Collects the files below a directory, and returns why some of it cannot be listed. Links to directories are not
/// followed, to avoid cycles.
fn walk(base: &Path, directory: &Path, sources: &mut Vec<RecordingSource>) -> Vec<String> {
    let failed = |error: io::Error| vec![format!("list `{}`: {error}", directory.display())];
    let entries: Result<Vec<fs::DirEntry>, io::Error> = fs::read_dir(directory).and_then(Iterator::collect);
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => return failed(error),
    };
    let mut unlisted = Vec::new();
    for entry in entries {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlisted.extend(walk(base, &path, sources));
        } else if fs::metadata(&path).is_ok_and(|target| target.is_file()) {
            let short = path.strip_prefix(base).unwrap_or(&path).to_owned();
            sources.push(RecordingSource { path, short, is_named: false });
        }
    }
    unlisted
}
