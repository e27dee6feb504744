//! The recordings that a person names: files, directories to walk, or standard input.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context;
use contexture::transcript::{self, ReadError, Record, Report, Transcript};

use crate::failure::Failure;

/// Bytes read from a file at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The name that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// One file that may be a recording.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Where it is.
    pub path: PathBuf,
    /// Its place beneath the directory that was named, or its file name.
    pub short: PathBuf,
    /// Whether the person named this very file; others were found by walking.
    pub is_named: bool,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(formatter)
    }
}

/// Why a source gives no transcript.
#[derive(Debug)]
pub enum Unread {
    /// It is no recording of an agent.
    Unknown,
    /// There is nothing in it.
    Empty,
    /// It could not be read.
    Failed(anyhow::Error),
}

impl Source {
    /// Reads the recording message by message.
    pub fn read(&self, sink: &mut impl FnMut(Record)) -> Result<Report, Unread> {
        let result = if self.path == Path::new(STANDARD_INPUT) {
            transcript::read(io::stdin().lock(), sink)
        } else {
            let file = File::open(&self.path).context("open it").map_err(Unread::Failed)?;
            transcript::read(BufReader::with_capacity(BUFFER_BYTES, file), sink)
        };
        result.map_err(|error| match error {
            ReadError::UnknownFormat => Unread::Unknown,
            ReadError::Empty => Unread::Empty,
            error => Unread::Failed(error.into()),
        })
    }

    /// Reads the whole recording.
    pub fn transcript(&self) -> Result<(Transcript, Report), Unread> {
        let mut transcript = Transcript::default();
        let report = self.read(&mut |record| transcript.records.push(record))?;
        Ok((transcript, report))
    }

    /// Tells the person of what could not be used, on standard error.
    pub fn tell(&self, report: &Report) {
        for broken in &report.broken {
            eprintln!("{self}:{}: skipped, {}", broken.line, broken.reason);
        }
        let untold = report.broken_records - report.broken.len() as u64;
        if untold > 0 {
            eprintln!("{self}: {untold} more broken records skipped");
        }
    }

    /// Tells the person that nothing could be used. Files found by walking may be anything, and are not spoken of.
    pub fn tell_unread(&self, unread: &Unread) {
        match unread {
            Unread::Failed(error) => eprintln!("{self}: skipped, it could not be read: {error:#}"),
            Unread::Empty if self.is_named => eprintln!("{self}: skipped, it is empty"),
            Unread::Unknown if self.is_named => eprintln!("{self}: skipped, it is in no known format"),
            Unread::Empty | Unread::Unknown => {}
        }
    }
}

/// All files that the named paths stand for, those of a directory in the order of their names.
pub fn find(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == STANDARD_INPUT {
            sources.push(Source { path: path.clone(), short: PathBuf::from("stdin"), is_named: true });
            continue;
        }
        let kind = fs::metadata(path).map_err(|error| missing(path, &error))?;
        if kind.is_dir() {
            let start = sources.len();
            walk(path, path, &mut sources)?;
            sources[start..].sort();
        } else {
            let short = PathBuf::from(path.file_name().unwrap_or(OsStr::new("recording")));
            sources.push(Source { path: path.clone(), short, is_named: true });
        }
    }
    if sources.is_empty() {
        return Err(Failure::work("there is no file in the directories that were named")
            .hint("name a directory with recordings, such as ~/.claude/projects"));
    }
    Ok(sources)
}

/// What a command says that found no recording in any of its sources.
pub fn none_read() -> Failure {
    Failure::work("none of the files is a recording in a known format")
        .hint("name recordings of Claude Code, Codex, OpenCode, Copilot CLI, or chat messages as JSON")
}

fn missing(path: &Path, error: &io::Error) -> Failure {
    Failure::work(format!("open `{}`: {error}", path.display()))
        .hint("name a file, a directory such as ~/.claude/projects, or - for standard input")
}

/// Collects the files beneath a directory. Links to directories are not followed, so that a walk ends.
fn walk(base: &Path, directory: &Path, sources: &mut Vec<Source>) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::work(format!("list `{}`: {error}", directory.display()));
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        if kind.is_dir() {
            walk(base, &path, sources)?;
        } else if fs::metadata(&path).is_ok_and(|target| target.is_file()) {
            let short = path.strip_prefix(base).unwrap_or(&path).to_owned();
            sources.push(Source { path, short, is_named: false });
        }
    }
    Ok(())
}
