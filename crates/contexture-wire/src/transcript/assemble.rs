//! Assembles records from what agents write in pieces: messages, their calls and outputs.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use contexture_core::item::{FunctionCall, FunctionCallOutput, Item, Meta, Origin, Outcome, Role};
use serde_json::Value;

use super::Record;
use super::time::milliseconds;

/// Most responses that are held back for late outputs. A call that is still open when more follow gets an empty output.
const MAX_HELD_GROUPS: usize = 16;

/// Most records that are held back in total.
const MAX_HELD_MESSAGES: usize = 256;

/// Which pieces of assistant output belong to one message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Join<'a> {
    /// Pieces with the same response id, even if outputs are between them.
    Response(&'a str),
    /// Consecutive pieces.
    Adjacent,
    /// Every piece is a message of its own.
    Never,
}

/// Counts of what was repaired or left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub messages: u64,
    pub unanswered_calls: u64,
    pub orphan_results: u64,
    pub duplicate_ids: u64,
    pub side_chain_records: u64,
    pub thinking_blocks: u64,
    pub images: u64,
}

/// Collects pieces in the order of the recording and passes on whole records.
///
/// Every call in its records has a unique id and exactly one later output. An output without a call is left out. A call
/// without an output gets an empty one after the other outputs of its response.
pub(super) struct Assembler<'a> {
    sink: &'a mut dyn FnMut(Record),
    groups: VecDeque<ResponseGroup>,
    /// How often each call id was used, by the hash of the id, since a recording may have millions.
    used_ids: HashMap<u64, u32>,
    /// What applies to the current record: when it was written, and in which directory.
    meta: Meta,
    /// The model that answered last.
    pub model: Option<String>,
    pub tally: Tally,
}

/// A response with what came after it and before the next one.
struct ResponseGroup {
    /// The response id that the agent gave.
    name: Option<Box<str>>,
    text: String,
    calls: Vec<FunctionCall>,
    meta: Meta,
    /// What came after it.
    rest: Vec<Record>,
    open: Vec<OpenCall>,
}

struct OpenCall {
    recorded_id: String,
    id: Box<str>,
    name: Box<str>,
}

impl<'a> Assembler<'a> {
    pub fn new(sink: &'a mut dyn FnMut(Record)) -> Self {
        let (groups, used_ids) = (VecDeque::new(), HashMap::new());
        Self { sink, groups, used_ids, meta: Meta::default(), model: None, tally: Tally::default() }
    }

    /// Passes on a record as it is, without looking at its calls.
    pub fn pass(&mut self, record: Record) {
        self.tally.messages += 1;
        (self.sink)(record);
    }

    /// Sets when the next record was written.
    pub fn set_time(&mut self, timestamp: Option<&str>) {
        self.meta.time_ms = timestamp.and_then(milliseconds);
    }

    /// The same, in milliseconds since the Unix epoch.
    pub fn set_time_ms(&mut self, time_ms: Option<u64>) {
        self.meta.time_ms = time_ms;
    }

    /// Sets the model of the messages that follow; `None` changes nothing.
    pub fn set_model(&mut self, model: Option<&str>) {
        if let Some(model) = model.filter(|new| !new.is_empty() && self.model.as_deref() != Some(new)) {
            self.model = Some(model.to_owned());
        }
    }

    /// Sets the directory in which the agent works from here on; `None` changes nothing.
    pub fn set_directory(&mut self, directory: Option<&str>) {
        if let Some(directory) = directory.filter(|new| self.meta.directory.as_deref() != Some(new)) {
            self.meta.directory = Some(Arc::from(directory));
        }
    }

    /// Something said by a person or by the program that runs the agent.
    pub fn say(&mut self, role: Role, text: String) {
        self.say_from(role, text, Origin::Said);
    }

    /// The same, with its origin.
    pub fn say_from(&mut self, role: Role, text: String, origin: Origin) {
        let meta = Meta { origin, ..self.meta.clone() };
        self.add(Item::message(role, text).with_meta(meta).into());
    }

    /// The summary with which an agent replaced its past.
    pub fn say_summary(&mut self, text: String) {
        let mut meta = self.meta.clone();
        meta.extra.insert(COMPACT, true);
        self.add(Item::message(Role::System, text).with_meta(meta).into());
    }

    fn add(&mut self, record: Record) {
        match self.groups.back_mut() {
            Some(group) => group.rest.push(record),
            None => self.pass(record),
        }
        self.release();
    }

    /// A piece of a response: text, calls or both.
    pub fn speak(&mut self, join: Join<'_>, text: String, calls: Vec<FunctionCall>) {
        if text.trim().is_empty() && calls.is_empty() {
            return;
        }
        if !self.groups.back().is_some_and(|group| group.takes(join)) {
            let name = match join {
                Join::Response(name) => Some(name.into()),
                Join::Adjacent | Join::Never => None,
            };
            self.groups.push_back(ResponseGroup::new(name));
        }
        for call in calls {
            self.add_call(join, call);
        }
        let group = self.groups.back_mut().expect("a group was just found or made");
        append_text(&mut group.text, text);
        group.meta.time_ms = self.meta.time_ms.or(group.meta.time_ms);
        group.meta.directory = self.meta.directory.clone();
        self.release();
    }

    /// Adds a call to the newest group under a unique id.
    ///
    /// If an agent gives response ids and writes the same call of a response twice, it is one call.
    fn add_call(&mut self, join: Join<'_>, mut call: FunctionCall) {
        let newest = self.groups.back().expect("calls are added to an existing group");
        let is_repeated = newest.calls.iter().any(|known| known.call_id == call.call_id);
        if is_repeated && matches!(join, Join::Response(_)) {
            return;
        }
        let recorded_id = String::from(call.call_id);
        call.call_id = self.unique_id(&recorded_id).into();
        let group = self.groups.back_mut().expect("calls are added to an existing group");
        group.open.push(OpenCall { recorded_id, id: call.call_id.clone(), name: call.name.clone() });
        group.calls.push(call);
    }

    /// `id`, or `id~2`, `id~3` if it was used before.
    fn unique_id(&mut self, id: &str) -> String {
        let mut uses = self.use_id(id);
        if uses == 1 {
            return id.to_owned();
        }
        self.tally.duplicate_ids += 1;
        loop {
            let candidate = format!("{id}~{uses}");
            if self.use_id(&candidate) == 1 {
                return candidate;
            }
            uses = self.use_id(id);
        }
    }

    /// Counts a use of `id` and returns how many there were so far.
    fn use_id(&mut self, id: &str) -> u32 {
        let uses = self.used_ids.entry(hash(id)).or_insert(0);
        *uses += 1;
        *uses
    }

    /// The output of a call, matched by the id that both have in the recording.
    pub fn answer(&mut self, recorded_id: &str, text: String, outcome: Outcome) {
        let newest = self.groups.len().wrapping_sub(1);
        let found = self.groups.iter().enumerate().rev().find_map(|(index, group)| {
            let call = group.open.iter().position(|call| call.recorded_id == recorded_id)?;
            Some((index, call))
        });
        let Some((index, call)) = found else {
            self.tally.orphan_results += 1;
            return;
        };
        let group = &mut self.groups[index];
        let record = group.open.remove(call).answered(text, outcome, self.meta.clone());
        let at = if index == newest { group.rest.len() } else { group.end_of_answers() };
        group.rest.insert(at, record);
        self.release();
    }

    /// Passes on what can no longer change: groups whose calls all have an output, except for the newest group, which
    /// may still grow.
    fn release(&mut self) {
        loop {
            let crowded = self.groups.len() > MAX_HELD_GROUPS || self.held() > MAX_HELD_MESSAGES;
            let complete = self.groups.len() > 1 && self.groups.front().is_some_and(|group| group.open.is_empty());
            if !crowded && !complete {
                return;
            }
            self.release_front();
        }
    }

    fn held(&self) -> usize {
        self.groups.iter().map(|group| 1 + group.rest.len()).sum()
    }

    fn release_front(&mut self) {
        let Some(mut group) = self.groups.pop_front() else { return };
        let at = group.end_of_answers();
        self.tally.unanswered_calls += group.open.len() as u64;
        let missing = group.open.drain(..).map(|call| {
            // It is unknown how far the call got.
            call.answered(String::new(), Outcome::Interrupted, Meta::default())
        });
        group.rest.splice(at..at, missing);
        let ResponseGroup { text, calls, meta, rest, .. } = group;
        let calls = calls.into_iter().map(|call| FunctionCall { meta: meta.clone(), ..call });
        let mut items = Record::response(text, calls).into_items();
        items[0] = items[0].clone().with_meta(meta);
        self.pass(Record::from_items(items));
        for record in rest {
            self.pass(record);
        }
    }

    /// Passes on everything that is held.
    pub fn finish(mut self) -> Tally {
        while !self.groups.is_empty() {
            self.release_front();
        }
        self.tally
    }
}

impl ResponseGroup {
    fn new(name: Option<Box<str>>) -> Self {
        let (text, calls, rest, open) = (String::new(), Vec::new(), Vec::new(), Vec::new());
        Self { name, text, calls, meta: Meta::default(), rest, open }
    }

    fn takes(&self, join: Join<'_>) -> bool {
        match join {
            Join::Response(name) => self.name.as_deref() == Some(name),
            Join::Adjacent => self.name.is_none() && self.rest.is_empty(),
            Join::Never => false,
        }
    }

    /// The place after the newest output, or the start of what came after the response.
    fn end_of_answers(&self) -> usize {
        self.rest.iter().rposition(|record| record.output().is_some()).map_or(0, |newest| newest + 1)
    }
}

impl OpenCall {
    fn answered(self, text: String, outcome: Outcome, meta: Meta) -> Record {
        let mut output = FunctionCallOutput { meta, ..FunctionCallOutput::new(&self.id, text, outcome) };
        output.extra.insert(TOOL_NAME, &*self.name);
        Item::from(output).into()
    }
}

/// The field of an output that names its tool.
pub(super) const TOOL_NAME: &str = "name";

/// The field of a message's metadata that marks it as the summary of an earlier part.
pub(super) const COMPACT: &str = "compact";

/// Joins texts by a newline. Text that is only white space is left out.
pub(super) fn append_text(text: &mut String, more: String) {
    if more.trim().is_empty() {
        return;
    }
    if text.is_empty() {
        *text = more;
    } else {
        text.push('\n');
        text.push_str(&more);
    }
}

/// A call whose arguments were written as a value, or as a text that may contain one.
///
/// Objects are always written in the same form, so that equal calls are equal.
pub(super) fn call(id: &str, name: &str, arguments: Value) -> FunctionCall {
    let value = match &arguments {
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    };
    let arguments = match (value, arguments) {
        (Some(value @ (Value::Object(_) | Value::Array(_))), _) => value.to_string(),
        (_, Value::String(text)) => text,
        (_, value) => value.to_string(),
    };
    FunctionCall::new(id, name, arguments)
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
