//! A recording being read, record by record.

use std::io::{self, BufRead, Read};

use thiserror::Error;

use super::assemble::{Assembler, Tally};
use super::format::{Format, Guess, guess};
use super::gemini_cli::HeldMessages;
use super::{Record, chat, repair};

/// The longest line that is read; a longer one is reported and skipped.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// How many broken records are reported one by one; the rest are only counted.
pub const MAX_BROKEN_NOTES: usize = 100;

/// How many unknown records may precede the first of a known format.
const MAX_UNKNOWN_RECORDS: u64 = 1_000;

/// The format of a recording, and what of it could not be used.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Who wrote it.
    pub format: Format,
    /// Records passed on.
    pub messages: u64,
    /// The first broken records, at most [`MAX_BROKEN_NOTES`].
    pub broken: Vec<Broken>,
    /// All broken records.
    pub broken_records: u64,
    /// Calls without an output; each was given an empty one.
    pub unanswered_calls: u64,
    /// Outputs without a call; left out.
    pub orphan_results: u64,
    /// Calls whose id was used before; each was given another.
    pub duplicate_ids: u64,
    /// Records of subagents; left out.
    pub side_chain_records: u64,
    /// Blocks of thinking; left out.
    pub thinking_blocks: u64,
    /// Images; each is noted in the text as `[image]`.
    pub images: u64,
    /// The model that answered last, if the recording names it.
    pub model: Option<String>,
}

/// A record that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its line, counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// Why a recording could not be read at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be read.
    #[error("read the recording")]
    Io(#[from] io::Error),
    /// There is nothing in it.
    #[error("the recording is empty")]
    Empty,
    /// No record belongs to a known format.
    #[error("the recording is in no known format")]
    UnknownFormat,
}

/// A recording being read.
pub(super) struct RecordingReading<'a> {
    guess: Option<Guess>,
    unknown_records: u64,
    assembler: Assembler<'a>,
    /// Messages of a format that writes some of them again.
    held: HeldMessages,
    broken: Vec<Broken>,
    broken_records: u64,
}

impl<'a> RecordingReading<'a> {
    pub fn new(sink: &'a mut dyn FnMut(Record)) -> Self {
        let assembler = Assembler::new(sink);
        let held = HeldMessages::default();
        Self { guess: None, unknown_records: 0, assembler, held, broken: Vec::new(), broken_records: 0 }
    }

    pub fn lines(&mut self, mut reader: impl BufRead) -> Result<(), ReadError> {
        let mut bytes = Vec::new();
        for line in 1.. {
            match next_line(&mut reader, &mut bytes)? {
                NextLine::End => break,
                NextLine::TooLong => self.report(line, format!("longer than {MAX_LINE_BYTES} bytes")),
                NextLine::Read => self.record(line, &bytes)?,
            }
        }
        Ok(())
    }

    /// Processes one record; one that cannot be used is reported.
    pub fn record(&mut self, line: u64, bytes: &[u8]) -> Result<(), ReadError> {
        let json = repair::text(bytes.trim_ascii());
        let json = json.trim_start_matches('\u{feff}');
        if json.is_empty() {
            return Ok(());
        }
        let Some(format) = self.format_of(json) else {
            self.unknown_records += 1;
            return self.unknown(line, json);
        };
        if let Err(error) = self.mended_record(format, json) {
            self.report(line, reason(&error));
        }
        Ok(())
    }

    /// The format of the recording, by this record if it was not known before.
    fn format_of(&mut self, json: &str) -> Option<Format> {
        if !matches!(self.guess, Some(Guess::Sure(_))) {
            self.guess = match (self.guess, guess(json)) {
                (Some(Guess::EitherChat), Some(Guess::Sure(format))) if !is_chat(format) => self.guess,
                (known, new) => new.or(known),
            };
        }
        self.guess.map(Guess::format)
    }

    /// Processes a system prompt that is outside the messages, which only one format has.
    pub fn system(&mut self, line: u64, bytes: &[u8]) {
        self.guess.get_or_insert(Guess::Sure(Format::AnthropicMessages));
        if let Err(error) = chat::system(&repair::text(bytes), &mut self.assembler) {
            self.report(line, reason(&error));
        }
    }

    fn unknown(&mut self, line: u64, json: &str) -> Result<(), ReadError> {
        if self.unknown_records > MAX_UNKNOWN_RECORDS {
            return Err(ReadError::UnknownFormat);
        }
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(json) {
            self.report(line, reason(&error));
        }
        Ok(())
    }

    fn mended_record(&mut self, format: Format, json: &str) -> Result<(), serde_json::Error> {
        let mut record = |json: &str| match format {
            Format::GeminiCli => self.held.take(json),
            format => format.record(json, &mut self.assembler),
        };
        match record(json) {
            Err(error) if error.is_syntax() => match repair::without_lone_surrogates(json) {
                Some(json) => record(&json),
                None => Err(error),
            },
            result => result,
        }
    }

    pub fn report(&mut self, line: u64, reason: String) {
        self.broken_records += 1;
        if self.broken.len() < MAX_BROKEN_NOTES {
            self.broken.push(Broken { line, reason });
        }
    }

    pub fn finish(mut self) -> Result<Report, ReadError> {
        if let Err(error) = std::mem::take(&mut self.held).pass_on(&mut self.assembler) {
            self.report(0, reason(&error));
        }
        let model = self.assembler.model.clone();
        let Tally {
            messages,
            unanswered_calls,
            orphan_results,
            duplicate_ids,
            side_chain_records,
            thinking_blocks,
            images,
        } = self.assembler.finish();
        Ok(Report {
            format: self.guess.ok_or(ReadError::UnknownFormat)?.format(),
            messages,
            broken: self.broken,
            broken_records: self.broken_records,
            unanswered_calls,
            orphan_results,
            duplicate_ids,
            side_chain_records,
            thinking_blocks,
            images,
            model,
        })
    }
}

fn is_chat(format: Format) -> bool {
    matches!(format, Format::OpenAiChat | Format::AnthropicMessages)
}

enum NextLine {
    Read,
    TooLong,
    End,
}

/// Reads up to the next line end into `bytes`.
fn next_line(reader: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<NextLine> {
    bytes.clear();
    let limit = MAX_LINE_BYTES as u64;
    if reader.by_ref().take(limit).read_until(b'\n', bytes)? == 0 {
        return Ok(NextLine::End);
    }
    if bytes.len() < MAX_LINE_BYTES || bytes.ends_with(b"\n") {
        return Ok(NextLine::Read);
    }
    loop {
        bytes.clear();
        let count = reader.by_ref().take(limit).read_until(b'\n', bytes)?;
        if count == 0 || bytes.ends_with(b"\n") {
            return Ok(NextLine::TooLong);
        }
    }
}

/// The message of an error without its line number, which is always 1 since each record is parsed separately.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((text, _)) => format!("{text} (column {})", error.column()),
        None => text,
    }
}
