//! Facts about a recorded transcript that the measures need, computed once.

use std::collections::HashMap;

use contexture::files::argument_names::path_in;
use contexture::item::FunctionCall;
use contexture::transcript::{Record, Transcript};
use memchr::memmem;
use serde_json::Value;

use crate::record_text::{collect_strings, plain_text, unix_lines};
use crate::said::Said;
use crate::told::ToldTexts;

/// The shortest text, in characters, that is searched in a window: shorter ones occur everywhere.
const MIN_TARGET_CHARS: usize = 20;

/// A transcript with the facts that policies and the judge need.
#[derive(Debug)]
pub struct RecordedSession<'a> {
    /// The messages.
    pub records: &'a [Record],
    /// Facts about each message.
    pub facts: Vec<RecordedFact>,
    /// Positions of the assistant messages: there is a request before each of them.
    pub steps: Vec<usize>,
    /// For each path that is written: the calls that write it, in order.
    pub writes: Vec<Vec<Write<'a>>>,
    /// What people said.
    pub said: Said,
    /// What the agent said and used.
    pub told: ToldTexts,
    /// The bytes of all messages before each one, and the total at the end.
    bytes_before: Vec<u64>,
    /// The texts that the edits of a step replace, by the position of the step.
    targets: HashMap<usize, Vec<Target>>,
    /// The output of each call.
    outputs: HashMap<&'a str, usize>,
}

/// Facts about one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedFact {
    /// Its size when it is sent.
    pub bytes: u64,
    /// The characters of its text.
    pub chars: usize,
    /// For the output of a call that reads a file: the file, as a position in [`RecordedSession::writes`].
    pub read: Option<usize>,
}

/// A call that changes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write<'a> {
    /// The position of the message that makes it.
    pub message: usize,
    /// The call.
    pub call_id: &'a str,
}

/// A text that an edit replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The text.
    pub text: String,
    /// The messages before the edit that contain it, oldest first; never empty.
    pub holders: Vec<usize>,
}

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Read,
    Change,
    Other,
}

impl<'a> RecordedSession<'a> {
    /// Computes the facts of a transcript.
    pub fn new(transcript: &'a Transcript) -> Self {
        let records = transcript.records.as_slice();
        let mut paths = Paths::default();
        let mut calls: HashMap<&str, RecordedCall<'_>> = HashMap::new();
        let mut facts = Vec::with_capacity(records.len());
        let mut bytes_before = vec![0];
        for (index, record) in records.iter().enumerate() {
            for call in record.calls().map(RecordedCall::new) {
                paths.note_write(index, &call);
                calls.insert(call.id, call);
            }
            let read = record.output().and_then(|output| paths.read_by(calls.get(&*output.call_id)?));
            let bytes = sent_bytes(record);
            facts.push(RecordedFact { bytes, chars: record.text().chars().count(), read });
            bytes_before.push(bytes_before[index] + bytes);
        }
        let all = || records.iter().enumerate();
        let outputs = all().filter_map(|(index, record)| Some((&*record.output()?.call_id, index)));
        Self {
            records,
            facts,
            steps: all().filter(|(_, record)| record.is_response()).map(|(index, _)| index).collect(),
            writes: paths.writes,
            said: Said::new(records),
            told: ToldTexts::new(records),
            bytes_before,
            targets: find_targets(records),
            outputs: outputs.collect(),
        }
    }

    /// The bytes of all messages before a position.
    pub fn bytes_before(&self, position: usize) -> u64 {
        self.bytes_before[position]
    }

    /// The texts that the edits of the message at a position replace.
    pub fn targets(&self, step: usize) -> &[Target] {
        self.targets.get(&step).map_or(&[], Vec::as_slice)
    }

    /// The position of the output of a call.
    pub fn output_of(&self, call_id: &str) -> Option<usize> {
        self.outputs.get(call_id).copied()
    }

    /// Whether the message at a position is the output of a tool.
    pub fn is_output(&self, position: usize) -> bool {
        self.records[position].output().is_some()
    }

    /// The first user message.
    pub fn first_said(&self) -> usize {
        let is_said = |record: &Record| !record.is_response() && record.output().is_none();
        self.records.iter().position(is_said).unwrap_or(0)
    }
}

/// A call with its arguments.
struct RecordedCall<'a> {
    id: &'a str,
    name: &'a str,
    arguments: Value,
}

impl<'a> RecordedCall<'a> {
    fn new(call: &'a FunctionCall) -> Self {
        Self { id: &call.call_id, name: &call.name, arguments: call.parsed_arguments() }
    }
}

/// Paths so far, with the calls that write them.
#[derive(Default)]
struct Paths<'a> {
    known: HashMap<String, usize>,
    writes: Vec<Vec<Write<'a>>>,
}

impl<'a> Paths<'a> {
    fn id(&mut self, path: String) -> usize {
        let next = self.writes.len();
        let id = *self.known.entry(path).or_insert(next);
        if id == next {
            self.writes.push(Vec::new());
        }
        id
    }

    fn note_write(&mut self, message: usize, call: &RecordedCall<'a>) {
        if deed_of(call) == Deed::Change
            && let Some(path) = path_of(call)
        {
            let id = self.id(path);
            self.writes[id].push(Write { message, call_id: call.id });
        }
    }

    fn read_by(&mut self, call: &RecordedCall<'a>) -> Option<usize> {
        let path = path_of(call).filter(|path| deed_of(call) == Deed::Read && !path.is_empty())?;
        Some(self.id(path))
    }
}

/// The kind of a call, by the name of its tool.
fn deed_of(call: &RecordedCall<'_>) -> Deed {
    match call.name {
        "str_replace_editor" | "str_replace_based_edit_tool" => match call.arguments["command"].as_str() {
            Some("view") => Deed::Read,
            _ => Deed::Change,
        },
        "Read" | "read" | "read_file" | "view" | "open" | "cat_file" | "ReadFile" => Deed::Read,
        "Edit" | "edit" | "MultiEdit" | "edit_file" | "apply_patch" | "string_replace" => Deed::Change,
        "Write" | "write" | "write_file" | "create_file" | "create" => Deed::Change,
        _ => Deed::Other,
    }
}

/// The file that a call is about.
fn path_of(call: &RecordedCall<'_>) -> Option<String> {
    if call.name == "apply_patch" {
        let mut texts = Vec::new();
        collect_strings(&call.arguments, &mut texts);
        return texts.into_iter().flat_map(str::lines).find_map(patched_path).map(str::to_owned);
    }
    path_in(&call.arguments).map(str::to_owned)
}

fn patched_path(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("*** ")?;
    let headers = ["Update File: ", "Add File: ", "Delete File: "];
    headers.into_iter().find_map(|header| rest.strip_prefix(header)).filter(|path| !path.is_empty())
}

/// For every step that edits: the texts that its edits replace, and the earlier messages that contain them.
fn find_targets(records: &[Record]) -> HashMap<usize, Vec<Target>> {
    let mut targets = HashMap::new();
    let mut plain: Vec<String> = Vec::new();
    for (step, record) in records.iter().enumerate().filter(|(_, record)| record.is_response()) {
        let texts = record.calls().flat_map(|call| old_texts(&RecordedCall::new(call)));
        let texts: Vec<String> = texts.map(|text| unix_lines(&text).trim_matches('\n').to_owned()).collect();
        let is_long = |text: &String| text.chars().count() >= MIN_TARGET_CHARS;
        if !texts.iter().any(is_long) {
            continue;
        }
        let new = &records[plain.len()..step];
        plain.extend(new.iter().map(|record| plain_text(record, record.output().is_some())));
        let found: Vec<Target> =
            texts.into_iter().filter(is_long).filter_map(|text| Target::find(text, &plain)).collect();
        targets.insert(step, found);
    }
    targets
}

impl Target {
    /// The text with all messages that contain it, if there are any.
    fn find(text: String, plain: &[String]) -> Option<Self> {
        let finder = memmem::Finder::new(&text);
        let holds = |(index, plain): (usize, &String)| finder.find(plain.as_bytes()).map(|_| index);
        let holders: Vec<usize> = plain.iter().enumerate().filter_map(holds).collect();
        (!holders.is_empty()).then_some(Self { text, holders })
    }
}

/// The texts that a call replaces.
fn old_texts(call: &RecordedCall<'_>) -> Vec<String> {
    if call.name == "apply_patch" {
        let mut texts = Vec::new();
        collect_strings(&call.arguments, &mut texts);
        let patches = texts.into_iter().filter(|text| text.contains("*** Begin Patch"));
        return patches.flat_map(old_sides).collect();
    }
    let edits = call.arguments.get("edits").and_then(Value::as_array);
    let edits = edits.into_iter().flatten().filter_map(|edit| edit.get("old_string")?.as_str());
    let keys = ["old_string", "oldString", "old_str", "oldText"];
    let single = keys.into_iter().filter_map(|key| call.arguments.get(key)?.as_str());
    edits.chain(single).map(str::to_owned).collect()
}

/// The old side of every hunk of a patch that takes lines away.
fn old_sides(patch: &str) -> Vec<String> {
    let mut sides = Vec::new();
    let mut old: Vec<&str> = Vec::new();
    for line in patch.split('\n').chain(["@@"]) {
        if line.starts_with("@@") || line.starts_with("***") {
            if old.iter().any(|line| line.starts_with('-')) {
                sides.push(old.iter().map(|line| &line[1..]).collect::<Vec<_>>().join("\n"));
            }
            old.clear();
        } else if line.starts_with([' ', '-']) {
            old.push(line);
        }
    }
    sides
}

/// The size of a message when it is sent: its text, and its calls' arguments as JSON with a space after each comma
/// and colon.
pub fn sent_bytes(record: &Record) -> u64 {
    let arguments = record.calls().map(|call| 1 + argument_len(&call.parsed_arguments()));
    (record.text().len() + arguments.sum::<usize>()) as u64
}

fn argument_len(arguments: &Value) -> usize {
    match arguments {
        Value::String(text) => text.len(),
        value => json_len(value),
    }
}

fn json_len(value: &Value) -> usize {
    let between = |count: usize| 2 * count.saturating_sub(1);
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => number_text_len(number),
        Value::String(text) => json_text_len(text),
        Value::Array(values) => 2 + values.iter().map(json_len).sum::<usize>() + between(values.len()),
        Value::Object(fields) => {
            let members = fields.iter().map(|(key, value)| json_text_len(key) + 2 + json_len(value));
            2 + members.sum::<usize>() + between(fields.len())
        }
    }
}

fn json_text_len(text: &str) -> usize {
    let extra = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..0x20 => 5,
        _ => 0,
    };
    2 + text.len() + text.bytes().map(extra).sum::<usize>()
}

/// The length of a number; exponents are counted with a sign and at least two digits.
fn number_text_len(number: &serde_json::Number) -> usize {
    let text = number.to_string();
    match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let digits = exponent.trim_start_matches(['+', '-']);
            mantissa.len() + 2 + digits.len().max(2)
        }
        None => text.len(),
    }
}
