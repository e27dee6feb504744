//! The measures of a context policy on recorded work: recall, cost, peak, stale.
//!
//! Nothing here calls a model. A policy says what would be sent before every assistant message; what the agent
//! really did next shows whether the window held the text it needed.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::AddAssign;

use contexture::transcript::{Message, Role, ToolCall, Transcript};
use serde_json::Value;

/// Shortest text that counts as something an edit needed.
const LEAST_TARGET_CHARS: usize = 20;

/// What reading a cached token costs, against one that is not cached nor written.
const READ_PRICE: f64 = 0.1;

/// What writing a token to the cache costs.
const WRITE_PRICE: f64 = 1.25;

/// Share of a read's text that must be shown for it to count as shown.
const SHOWN_SHARE: usize = 2;

/// What was measured, in bytes and counts; sums over transcripts are sums of these.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Requests made.
    pub requests: u64,
    /// Bytes sent, over all requests.
    pub bytes: u64,
    /// Bytes billed at cache prices.
    pub cost: f64,
    /// The largest request, in bytes.
    pub peak: u64,
    /// Bytes that pass-through would have sent.
    pub full_bytes: u64,
    /// What pass-through would have been billed.
    pub full_cost: f64,
    /// Pieces of text that edits needed and that stood somewhere before.
    pub targets: u64,
    /// Of those, how many stood in the window.
    pub hits: u64,
    /// Bytes of file reads shown.
    pub read_bytes: u64,
    /// Of those, bytes that a change outside the window had overtaken.
    pub stale_bytes: u64,
    /// Transcripts billed above pass-through.
    pub dearer: u64,
    /// Transcripts with a request above the budget.
    pub over: u64,
}

impl Measured {
    /// The share of needed pieces that stood in the window.
    pub fn recall(&self) -> f64 {
        self.hits as f64 / self.targets.max(1) as f64
    }

    /// The bill against pass-through's.
    pub fn cost_ratio(&self) -> f64 {
        self.cost / self.full_cost.max(f64::MIN_POSITIVE)
    }

    /// The tokens sent against pass-through's.
    pub fn token_ratio(&self) -> f64 {
        self.bytes as f64 / self.full_bytes.max(1) as f64
    }

    /// The share of shown file reads that was overtaken.
    pub fn stale(&self) -> f64 {
        self.stale_bytes as f64 / self.read_bytes.max(1) as f64
    }

    /// The largest request, in tokens of four bytes.
    pub fn peak_tokens(&self) -> u64 {
        self.peak / 4
    }
}

impl AddAssign for Measured {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.cost += other.cost;
        self.peak = self.peak.max(other.peak);
        self.full_bytes += other.full_bytes;
        self.full_cost += other.full_cost;
        self.targets += other.targets;
        self.hits += other.hits;
        self.read_bytes += other.read_bytes;
        self.stale_bytes += other.stale_bytes;
        self.dearer += other.dearer;
        self.over += other.over;
    }
}

/// One message of a window with what the measures need of it, computed once.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Tells it from every other message.
    pub key: u64,
    /// Its bytes: text, and arguments as JSON.
    pub bytes: u64,
    /// Text in which an edit's old text can be found: numbering stripped, arguments as they are.
    pub plain: String,
    /// Bytes of the text alone.
    text_len: usize,
    tool_call_id: Option<String>,
    call_ids: Vec<String>,
}

impl Shown {
    /// Looks at a message as it stands in a window.
    pub fn new(message: &Message) -> Self {
        let mut hasher = DefaultHasher::new();
        (message.role, &message.text, &message.tool_call_id).hash(&mut hasher);
        let mut bytes = message.text.len() as u64;
        let mut plain = message.text.replace("\r\n", "\n");
        if message.role != Role::User {
            plain = strip_numbers(&plain);
        }
        for call in &message.tool_calls {
            let arguments = arguments_text(&call.arguments);
            (&call.id, &call.name, &arguments).hash(&mut hasher);
            bytes += 1 + arguments_len(&call.arguments);
            each_string(&call.arguments, &mut |text| {
                plain.push('\n');
                plain.push_str(&text.replace("\r\n", "\n"));
            });
        }
        Self {
            key: hasher.finish(),
            bytes,
            plain,
            text_len: message.text.chars().count(),
            tool_call_id: message.tool_call_id.clone(),
            call_ids: message.tool_calls.iter().map(|call| call.id.clone()).collect(),
        }
    }
}

fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text without the line numbers that tools put before lines.
fn strip_numbers(text: &str) -> String {
    let mut stripped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        stripped.push_str(&line[number_len(line)..]);
    }
    stripped
}

/// The length of `  12→`, `12<TAB>`, `12: `, `00012| ` or `12. ` at a line's start; 0 if there is none.
fn number_len(line: &str) -> usize {
    let blanks = line.bytes().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let digits = line[blanks..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return 0;
    }
    let end = blanks + digits;
    let rest = &line[end..];
    if rest.starts_with('→') || rest.starts_with('\t') {
        return end + rest.chars().next().map_or(0, char::len_utf8);
    }
    let is_plain =
        blanks == 0 && (rest.starts_with(": ") || rest.starts_with(". ") || (digits == 5 && rest.starts_with("| ")));
    if is_plain { end + 2 } else { 0 }
}

fn each_string(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(values) => values.iter().for_each(|value| each_string(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| each_string(value, found)),
        _ => {}
    }
}

/// Bytes of arguments as JSON with a blank after every colon and comma; bare text counts as it is.
pub fn arguments_len(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        other => json_len(other),
    }
}

fn json_len(value: &Value) -> u64 {
    let separators = |count: usize| 2 * count.saturating_sub(1) as u64;
    match value {
        Value::Object(fields) => {
            let inner: u64 = fields.iter().map(|(name, value)| quoted_len(name) + 2 + json_len(value)).sum();
            2 + inner + separators(fields.len())
        }
        Value::Array(values) => 2 + values.iter().map(json_len).sum::<u64>() + separators(values.len()),
        Value::String(text) => quoted_len(text),
        other => other.to_string().len() as u64,
    }
}

fn quoted_len(text: &str) -> u64 {
    let extra: u64 = text
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
            0..0x20 => 5,
            _ => 0,
        })
        .sum();
    2 + text.len() as u64 + extra
}

const READS: &[&str] = &["Read", "read", "read_file", "view", "open", "cat_file", "ReadFile"];
const EDITS: &[&str] = &[
    "Edit",
    "edit",
    "MultiEdit",
    "edit_file",
    "apply_patch",
    "str_replace_editor",
    "str_replace_based_edit_tool",
    "string_replace",
];
const WRITES: &[&str] = &["Write", "write", "write_file", "create_file", "create"];

/// What a call does, as the measures see it. This is their own narrow table, so that they judge every policy by
/// the same rule, whatever dialects that policy knows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Read,
    Change,
    Other,
}

fn call_kind(call: &ToolCall) -> CallKind {
    let name = call.name.as_str();
    if name == "str_replace_editor" || name == "str_replace_based_edit_tool" {
        let is_view = call.arguments.get("command").and_then(Value::as_str) == Some("view");
        return if is_view { CallKind::Read } else { CallKind::Change };
    }
    if READS.contains(&name) {
        CallKind::Read
    } else if EDITS.contains(&name) || WRITES.contains(&name) {
        CallKind::Change
    } else {
        CallKind::Other
    }
}

fn call_path(call: &ToolCall) -> Option<String> {
    if call.name == "apply_patch" {
        let mut path = None;
        each_string(&call.arguments, &mut |text| {
            let named = text.lines().find_map(|line| {
                let rest = line.strip_prefix("*** ")?;
                ["Update File: ", "Add File: ", "Delete File: "].iter().find_map(|verb| rest.strip_prefix(verb))
            });
            path = path.take().or(named.map(str::to_owned));
        });
        return path;
    }
    let names = ["file_path", "path", "filePath", "filename", "file"];
    names.iter().find_map(|name| call.arguments.get(*name)?.as_str()).map(str::to_owned)
}

/// The texts that a call needs to find in a file.
fn old_texts(call: &ToolCall) -> Vec<String> {
    let mut texts = Vec::new();
    if call.name == "apply_patch" {
        each_string(&call.arguments, &mut |text| {
            if text.contains("*** Begin Patch") {
                old_sides(text, &mut texts);
            }
        });
        return texts;
    }
    let edits = call.arguments.get("edits").and_then(Value::as_array);
    texts.extend(edits.into_iter().flatten().filter_map(|edit| edit.get("old_string")?.as_str()).map(str::to_owned));
    let names = ["old_string", "oldString", "old_str", "oldText"];
    texts.extend(names.iter().filter_map(|name| call.arguments.get(*name)?.as_str()).map(str::to_owned));
    texts
}

/// The old side of every hunk of a patch that takes something away.
fn old_sides(patch: &str, texts: &mut Vec<String>) {
    let mut old: Vec<&str> = Vec::new();
    for line in patch.split('\n').chain(["@@"]) {
        if line.starts_with("@@") || line.starts_with("***") {
            if old.iter().any(|line| line.starts_with('-')) {
                texts.push(old.iter().map(|line| &line[1..]).collect::<Vec<_>>().join("\n"));
            }
            old.clear();
        } else if line.starts_with([' ', '-']) {
            old.push(line);
        }
    }
}

/// A transcript with everything that judging a policy needs, computed once.
pub struct Judge {
    /// The messages as pass-through shows them.
    pub shown: Vec<Shown>,
    /// Positions of the assistant messages.
    pub steps: Vec<usize>,
    /// Before which message which texts are needed.
    pub targets: HashMap<usize, Vec<String>>,
    /// For a tool's answer to a read: the path that was read.
    read_paths: HashMap<usize, String>,
    /// By path: the calls that change it.
    changes: HashMap<String, Vec<(usize, String)>>,
    answer_of: HashMap<String, usize>,
    calls_at: HashSet<usize>,
}

impl Judge {
    /// Prepares to judge policies on a transcript.
    pub fn new(transcript: &Transcript) -> Self {
        let messages = &transcript.messages;
        let shown: Vec<Shown> = messages.iter().map(Shown::new).collect();
        let mut judge = Self {
            steps: (0..messages.len()).filter(|at| messages[*at].role == Role::Assistant).collect(),
            targets: HashMap::new(),
            read_paths: HashMap::new(),
            changes: HashMap::new(),
            answer_of: HashMap::new(),
            calls_at: (0..messages.len()).filter(|at| !messages[*at].tool_calls.is_empty()).collect(),
            shown,
        };
        judge.index(messages);
        judge
    }

    fn index(&mut self, messages: &[Message]) {
        let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
        for (at, message) in messages.iter().enumerate() {
            for call in &message.tool_calls {
                calls.insert(&call.id, call);
                if let (CallKind::Change, Some(path)) = (call_kind(call), call_path(call)) {
                    self.changes.entry(path).or_default().push((at, call.id.clone()));
                }
            }
            if message.role == Role::Tool
                && let Some(id) = &message.tool_call_id
            {
                self.answer_of.insert(id.clone(), at);
                let read = calls.get(id.as_str()).filter(|call| call_kind(call) == CallKind::Read);
                if let Some(path) = read.and_then(|call| call_path(call)) {
                    self.read_paths.insert(at, path);
                }
            }
            let needed: Vec<String> = message.tool_calls.iter().flat_map(|call| self.needed(at, call)).collect();
            if !needed.is_empty() && message.role == Role::Assistant {
                self.targets.insert(at, needed);
            }
        }
    }

    fn needed(&self, at: usize, call: &ToolCall) -> Vec<String> {
        let texts = old_texts(call).into_iter().map(|text| text.replace("\r\n", "\n").trim_matches('\n').to_owned());
        let long = texts.filter(|text| text.chars().count() >= LEAST_TARGET_CHARS);
        long.filter(|text| self.shown[..at].iter().rev().any(|shown| shown.plain.contains(text.as_str()))).collect()
    }

    /// Begins to measure a policy.
    pub fn measure(&self, budget: u64) -> Measurement<'_> {
        Measurement { judge: self, budget, previous: Vec::new(), full_before: 0, from: 0, sum: Measured::default() }
    }
}

/// A measurement under way: tell it every request in order.
pub struct Measurement<'a> {
    judge: &'a Judge,
    budget: u64,
    previous: Vec<u64>,
    full_before: u64,
    from: usize,
    sum: Measured,
}

impl Measurement<'_> {
    /// Takes in the request before the message at `before`; answers the needed texts that it lacks.
    pub fn request(&mut self, before: usize, window: &[&Shown]) -> Vec<String> {
        let total: u64 = window.iter().map(|shown| shown.bytes).sum();
        let same = self.previous.iter().zip(window).take_while(|(key, shown)| **key == shown.key).count();
        let cached: u64 = window[..same].iter().map(|shown| shown.bytes).sum();
        self.previous = window.iter().map(|shown| shown.key).collect();
        let full: u64 =
            self.full_before + self.judge.shown[self.from..before].iter().map(|shown| shown.bytes).sum::<u64>();
        let sum = &mut self.sum;
        sum.requests += 1;
        sum.bytes += total;
        sum.cost += READ_PRICE * cached as f64 + WRITE_PRICE * (total - cached) as f64;
        sum.peak = sum.peak.max(total);
        sum.full_bytes += full;
        sum.full_cost += READ_PRICE * self.full_before as f64 + WRITE_PRICE * (full - self.full_before) as f64;
        (self.full_before, self.from) = (full, before);
        if self.judge.calls_at.contains(&before) {
            self.note_stale(before, window);
        }
        self.note_targets(before, window)
    }

    fn note_stale(&mut self, before: usize, window: &[&Shown]) {
        let calls: HashSet<&str> = window.iter().flat_map(|shown| &shown.call_ids).map(String::as_str).collect();
        for shown in window {
            let answer = shown.tool_call_id.as_ref().and_then(|id| self.judge.answer_of.get(id));
            let Some((at, path)) = answer.and_then(|at| Some((*at, self.judge.read_paths.get(at)?))) else { continue };
            if SHOWN_SHARE * shown.text_len <= self.judge.shown[at].text_len {
                continue;
            }
            self.sum.read_bytes += shown.bytes;
            let changes = self.judge.changes.get(path).into_iter().flatten();
            let mut unseen = changes.filter(|(when, id)| at < *when && *when < before && !calls.contains(id.as_str()));
            if unseen.next().is_some() {
                self.sum.stale_bytes += shown.bytes;
            }
        }
    }

    fn note_targets(&mut self, before: usize, window: &[&Shown]) -> Vec<String> {
        let mut missed = Vec::new();
        for text in self.judge.targets.get(&before).into_iter().flatten() {
            self.sum.targets += 1;
            if window.iter().rev().any(|shown| shown.plain.contains(text.as_str())) {
                self.sum.hits += 1;
            } else {
                missed.push(text.clone());
            }
        }
        missed
    }

    /// What was measured.
    pub fn finish(mut self) -> Measured {
        let sum = &mut self.sum;
        sum.dearer = u64::from(sum.cost > sum.full_cost * 1.001);
        sum.over = u64::from(sum.peak as f64 / 4.0 > self.budget as f64 * 1.02);
        self.sum
    }
}
