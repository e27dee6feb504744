//! Records: one line for each call, or for a run of alike calls, in the account of the earlier conversation.
//!
//! Everything in a record that comes from a call or an output is kept on one line, so that no output can add or end one.
//! A record says what the call was about, and that it failed if that is certain; it guesses at no outcome.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use contexture_agents::every;
use contexture_core::item::FunctionCall;
use serde_json::Value;

use super::cap::short_hash;
use contexture_files::observation::{Kind, Seen};
use contexture_text::block::flat;
use contexture_text::one_line::one_line;
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// How blocks of records began that versions before the account of the earlier conversation wrote.
pub const RECORDS_MARK: &str = "[Contexture's notes on calls made here]";

/// Longest subject of a record, in characters.
const MAX_SUBJECT_CHARS: usize = 160;

/// The same for a command. Later commands draw on the words of earlier ones more than on anything else that is folded,
/// besides outputs. Chosen.
const MAX_COMMAND_CHARS: usize = 240;

/// Longest answer of a person or another agent in a record, in bytes. Nine in ten are shorter.
const MAX_ANSWER_BYTES: usize = 8_000;

/// Of a longer answer, one part in this many is its end and the rest is its start.
const ANSWER_END_PART: usize = 3;

/// Longest line for a run of alike calls, in bytes.
const MAX_RUN_BYTES: usize = 320;

/// Shortest output that a record names by its hash.
const LEAST_NAMED_BYTES: usize = 600;

/// Most calls that are remembered.
const MAX_RECORDS: usize = 2_000;

/// What became of every call, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    records: VecDeque<CallRecord>,
    /// The tool that shows an output by its hash; without one, hashes are left out.
    tool: Option<Arc<str>>,
    /// Bytes that all records take, roughly.
    bytes: usize,
}

/// What became of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallRecord {
    /// The position of the output.
    pub(super) at: usize,
    kind: Kind,
    /// The tool, for calls that are neither about files nor commands.
    tool: String,
    subject: String,
    /// What a person or another agent answered.
    answer: String,
    /// Whether it certainly failed.
    pub(super) has_failed: bool,
    /// The hash of the output.
    pub(super) hash: String,
    /// Whether the output may be worth asking for again.
    is_named: bool,
}

impl CallRecord {
    fn new(at: usize, call: &FunctionCall, seen: &Seen, result: &str) -> Self {
        let arguments = call.parsed_arguments();
        let is_printed = matches!(seen.kind, Kind::Run | Kind::Search | Kind::Answer | Kind::Other);
        let is_answer = seen.kind == Kind::Answer && !seen.failed;
        Self {
            at,
            kind: seen.kind,
            tool: clip(&flat(&call.name), MAX_SUBJECT_CHARS),
            subject: match &seen.command {
                Some(command) => clip(&in_one_line(command), MAX_COMMAND_CHARS),
                None => clip(&subject(seen, &arguments), MAX_SUBJECT_CHARS),
            },
            answer: if is_answer { answer(result) } else { String::new() },
            has_failed: seen.failed,
            hash: short_hash(result),
            is_named: is_printed && result.len() >= LEAST_NAMED_BYTES,
        }
    }

    /// Whether its output is not the text of a file.
    pub(super) fn is_printed(&self) -> bool {
        matches!(self.kind, Kind::Run | Kind::Search | Kind::Answer | Kind::Other)
    }

    /// Whether the output is what a person or another agent answered.
    pub(super) fn is_answer(&self) -> bool {
        !self.answer.is_empty()
    }

    /// Whether the output may be worth asking for again.
    pub(super) fn is_named(&self) -> bool {
        self.is_named
    }

    /// What was called, on one line.
    pub(super) fn told(&self) -> String {
        one_line(&format!("{} {}", self.verb(), self.subject)).into_owned()
    }

    /// Bytes that it takes, roughly.
    fn bytes(&self) -> usize {
        self.subject.len() + self.answer.len() + 4
    }

    /// Whether a run of such calls is written as one line.
    fn is_alike(&self, other: &CallRecord) -> bool {
        let has_verb = !matches!(self.kind, Kind::Run);
        let is_plain = |record: &CallRecord| record.answer.is_empty() && !record.has_failed;
        has_verb && self.verb() == other.verb() && is_plain(self) && is_plain(other)
    }

    fn verb(&self) -> &str {
        match self.kind {
            Kind::Read => "read",
            Kind::Write => "wrote",
            Kind::Edit => "edited",
            Kind::Search => "searched",
            Kind::Run => "$",
            Kind::Answer | Kind::Other => &self.tool,
        }
    }

    /// What it was about, and how to see the output.
    fn about(&self, names_hashes: bool) -> String {
        match names_hashes && self.is_named {
            true => format!("{} (#{})", self.subject, self.hash),
            false => self.subject.clone(),
        }
    }
}

impl Ledger {
    /// Sets the tool that shows outputs by their hash, so that records name hashes.
    pub(super) fn set_output_tool(&mut self, tool: Arc<str>) {
        self.tool = Some(tool);
    }

    /// Notes a finished call whose output is at a position.
    pub(super) fn note(&mut self, at: usize, call: &FunctionCall, seen: &Seen, result: &str) {
        if self.records.len() == MAX_RECORDS {
            self.bytes -= self.records.pop_front().map_or(0, |record| record.bytes());
        }
        let mut record = CallRecord::new(at, call, seen, result);
        // What the output tool showed can be asked for again.
        record.is_named &= self.tool.as_deref().is_some_and(|tool| *tool != *call.name);
        self.bytes += record.bytes();
        self.records.push_back(record);
    }

    /// Whether an output is known not to be the text of a file.
    pub(super) fn is_printed(&self, at: usize) -> bool {
        self.within(at..at + 1).any(CallRecord::is_printed)
    }

    /// The records of outputs in a range, oldest first.
    pub(super) fn within(&self, range: Range<usize>) -> impl Iterator<Item = &CallRecord> {
        let first = self.records.partition_point(|record| record.at < range.start);
        self.records.range(first..).take_while(move |record| record.at < range.end)
    }

    /// Writes the records of outputs in a range as lines.
    pub(super) fn lines(&self, range: Range<usize>) -> String {
        let records: Vec<&CallRecord> = self.within(range).collect();
        let mut lines = String::new();
        for run in records.chunk_by(|one, other| one.is_alike(other)) {
            write_run(run, self.tool.is_some(), &mut lines);
        }
        lines
    }

    /// Bytes that all records take, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes all records.
    pub(super) fn rest(&self, packer: &mut Packer<'_>) {
        let Self { records, tool: _, bytes: _ } = self;
        let mut before = (0, "");
        packer.list(records, |packer, record| {
            let CallRecord { at, kind, tool, subject, answer, has_failed, hash, is_named } = record;
            packer.number(at - before.0);
            packer.number(KINDS.iter().position(|other| other == kind).unwrap_or_default());
            packer.text(tool);
            packer.text_after(before.1, subject);
            packer.text(answer);
            packer.flag(*has_failed);
            packer.raw(hash.as_bytes());
            packer.flag(*is_named);
            before = (*at, subject);
        });
    }

    /// Reads them again.
    pub(super) fn wake(&mut self, unpacker: &mut Unpacker<'_>) -> Result<(), Damaged> {
        let mut before = (0_usize, String::new());
        let records = unpacker.list(|unpacker| {
            let at = before.0.checked_add(unpacker.number()?).ok_or(Damaged)?;
            let kind = KINDS[unpacker.place(KINDS.len())?];
            let tool = unpacker.text()?.as_ref().to_owned();
            let subject = unpacker.text_after(&before.1)?;
            let answer = unpacker.text()?.as_ref().to_owned();
            let has_failed = unpacker.flag()?;
            let hash = String::from_utf8(unpacker.raw::<12>()?.to_vec()).map_err(|_| Damaged)?;
            let is_named = unpacker.flag()?;
            before = (at, subject.clone());
            Ok(CallRecord { at, kind, tool, subject, answer, has_failed, hash, is_named })
        })?;
        self.records = records.into();
        self.bytes = self.records.iter().map(CallRecord::bytes).sum();
        Ok(())
    }
}

/// All kinds of calls, in the order in which they are numbered at rest.
const KINDS: [Kind; 7] = [Kind::Read, Kind::Write, Kind::Edit, Kind::Search, Kind::Run, Kind::Other, Kind::Answer];

/// Writes a run of alike calls, in lines that are not too long. A subject that is repeated is counted.
fn write_run(run: &[&CallRecord], names_hashes: bool, lines: &mut String) {
    let mut subjects: Vec<(String, usize)> = Vec::new();
    for record in run {
        let about = record.about(names_hashes);
        match subjects.iter_mut().find(|(subject, _)| *subject == about) {
            Some((_, count)) => *count += 1,
            None => subjects.push((about, 1)),
        }
    }
    let verb = run[0].verb();
    let mut line = String::new();
    for (subject, count) in subjects {
        let times = if count > 1 { format!(" ×{count}") } else { String::new() };
        if line.len() + subject.len() > MAX_RUN_BYTES && !line.is_empty() {
            lines.push_str(&line);
            lines.push('\n');
            line.clear();
        }
        match line.is_empty() {
            true => {
                line.push_str("- ");
                line.push_str(verb);
            }
            false => line.push(','),
        }
        if !subject.is_empty() {
            line.push(' ');
            line.push_str(&subject);
        }
        line.push_str(&times);
    }
    if run[0].has_failed {
        line.push_str(" → failed");
    }
    if !run[0].answer.is_empty() {
        line.push_str(" → ");
        line.push_str(&run[0].answer);
    }
    lines.push_str(&line);
    lines.push('\n');
}

/// A command on one line. A mark shows where its lines end.
fn in_one_line(command: &str) -> String {
    let lines = command.lines().map(flat).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ⏎ ")
}

/// What a call that is not a command was about, on one line.
fn subject(seen: &Seen, arguments: &Value) -> String {
    let path = seen.paths.first().map(|path| flat(path)).unwrap_or_default();
    match seen.kind {
        Kind::Read => format!("{path}{}", lines_asked_for(arguments)),
        Kind::Write | Kind::Edit => match seen.paths.len() {
            0 | 1 => path,
            _ => seen.paths.iter().map(|path| flat(path)).collect::<Vec<_>>().join(", "),
        },
        Kind::Search => {
            Some(searched(arguments, &path)).filter(|told| !told.is_empty()).unwrap_or_else(|| given(arguments))
        }
        Kind::Run | Kind::Answer | Kind::Other => {
            match named_text(arguments, &["description", "query", "prompt", "url", "skill"]) {
                Some(text) => flat(text.trim().lines().next().unwrap_or_default()),
                None if path.is_empty() => given(arguments),
                None => path,
            }
        }
    }
}

/// What a call was given that has none of the usual arguments.
fn given(arguments: &Value) -> String {
    match arguments {
        Value::Object(fields) if fields.is_empty() => String::new(),
        Value::Null => String::new(),
        Value::String(text) => flat(text),
        given => flat(&given.to_string()),
    }
}

/// The lines that a read asked for: `:10-60`.
fn lines_asked_for(arguments: &Value) -> String {
    let number = |names: &[&str]| names.iter().find_map(|name| arguments.get(name)?.as_u64());
    let range = arguments.get("view_range").and_then(|range| Some((range[0].as_u64()?, range[1].as_i64()?)));
    match (number(&["offset", "start_line"]), number(&["limit"]), number(&["end_line"]), range) {
        (_, _, _, Some((first, last))) if last > 0 => format!(":{first}-{last}"),
        (_, _, _, Some((first, _))) => format!(":{first}-"),
        (Some(first), _, Some(last), None) => format!(":{first}-{last}"),
        (Some(first), Some(count), None, None) => format!(":{first}-{}", first.saturating_add(count).saturating_sub(1)),
        (Some(first), None, None, None) => format!(":{first}-"),
        (None, Some(count), None, None) => format!(":1-{count}"),
        (None, _, _, None) => String::new(),
    }
}

/// What was searched for, and where.
fn searched(arguments: &Value, path: &str) -> String {
    let pattern = named_text(arguments, &["pattern", "query", "regex", "search_term", "glob", "search"]);
    let pattern = pattern.map(|pattern| format!("\"{}\"", flat(pattern))).unwrap_or_default();
    let place = named_text(arguments, &["path", "glob", "include", "directory", "dir_path"]).map(flat);
    let place = place.unwrap_or_else(|| path.to_owned());
    match (pattern.is_empty(), place.is_empty()) {
        (false, false) => format!("{pattern} in {place}"),
        (false, true) => pattern,
        (true, _) => place,
    }
}

fn named_text<'a>(arguments: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| arguments.get(name)?.as_str()).filter(|text| !text.is_empty())
}

/// What a person or another agent answered, on one line: a report is what the agent has found out.
fn answer(result: &str) -> String {
    let ends = every(|agent| agent.output().report_end());
    let said = ends.fold(result, |said, end| said.split(end).next().unwrap_or_default());
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = flat(&lines.join(" "));
    if text.len() <= MAX_ANSWER_BYTES {
        return text;
    }
    let end = MAX_ANSWER_BYTES / ANSWER_END_PART;
    let start = text.floor_char_boundary(MAX_ANSWER_BYTES - end);
    let rest = text.ceil_char_boundary(text.len() - end);
    format!("{} [… {} bytes left out …] {}", &text[..start], rest - start, &text[rest..])
}

fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
