//! Puts together what agents write in pieces: messages, their calls and the answers.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::time::milliseconds;
use super::{Message, Role, ToolCall};

/// Assistant messages held back for answers that come late. A call that is still open when so many newer
/// assistant messages have come gets an empty answer.
const MAX_HELD_GROUPS: usize = 16;

/// Messages held back in all.
const MAX_HELD_MESSAGES: usize = 256;

/// Which pieces of assistant output belong to one message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Join<'a> {
    /// Pieces with the same name of the response, also when answers stand between them.
    Response(&'a str),
    /// Pieces that follow one another with nothing between them.
    Adjacent,
    /// Every piece is a message of its own.
    Never,
}

/// What was put right or left out on the way.
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

/// Collects pieces in the order of the recording and hands out whole messages.
///
/// Every call that leaves here has a unique id and exactly one later answer. An answer to no call is left out, a
/// call without an answer gets an empty one behind the other answers of its message.
pub(super) struct Assembler<'a> {
    sink: &'a mut dyn FnMut(Message),
    groups: VecDeque<Group>,
    /// How often each call id was used, by its hash: a recording may have millions.
    used_ids: HashMap<u64, u32>,
    /// When the record that is being read was written.
    time_ms: Option<u64>,
    pub tally: Tally,
}

/// An assistant message with what came after it and before the next one.
struct Group {
    response: Option<Box<str>>,
    /// The assistant message first.
    messages: Vec<Message>,
    open: Vec<OpenCall>,
}

struct OpenCall {
    recorded_id: String,
    id: String,
    name: String,
}

impl<'a> Assembler<'a> {
    pub fn new(sink: &'a mut dyn FnMut(Message)) -> Self {
        Self { sink, groups: VecDeque::new(), used_ids: HashMap::new(), time_ms: None, tally: Tally::default() }
    }

    /// Hands out a message as it is, without looking at its calls.
    pub fn pass(&mut self, message: Message) {
        self.tally.messages += 1;
        (self.sink)(message);
    }

    /// Says when the record was written that comes next.
    pub fn set_time(&mut self, timestamp: Option<&str>) {
        self.time_ms = timestamp.and_then(milliseconds);
    }

    /// Something said by a person or by the program that runs the agent.
    pub fn say(&mut self, role: Role, text: String) {
        let message = Message { time_ms: self.time_ms, ..Message::said(role, text) };
        match self.groups.back_mut() {
            Some(group) => group.messages.push(message),
            None => self.pass(message),
        }
        self.release();
    }

    /// A piece of assistant output: text, calls or both.
    pub fn speak(&mut self, join: Join<'_>, text: String, calls: Vec<ToolCall>) {
        if text.trim().is_empty() && calls.is_empty() {
            return;
        }
        if !self.groups.back().is_some_and(|group| group.takes(join)) {
            let response = match join {
                Join::Response(name) => Some(name.into()),
                Join::Adjacent | Join::Never => None,
            };
            let messages = vec![Message::said(Role::Assistant, "")];
            self.groups.push_back(Group { response, messages, open: Vec::new() });
        }
        for call in calls {
            self.add_call(join, call);
        }
        let group = self.groups.back_mut().expect("a group was just found or made");
        append_text(&mut group.messages[0].text, text);
        group.messages[0].time_ms = self.time_ms.or(group.messages[0].time_ms);
        self.release();
    }

    /// Adds a call to the newest group under an id of its own.
    ///
    /// An agent that names its responses and writes the same call of a response twice means one call.
    fn add_call(&mut self, join: Join<'_>, mut call: ToolCall) {
        let newest = self.groups.back().expect("calls are added to an existing group");
        let is_repeated = newest.messages[0].tool_calls.iter().any(|known| known.id == call.id);
        if is_repeated && matches!(join, Join::Response(_)) {
            return;
        }
        let recorded_id = call.id.clone();
        call.id = self.unique_id(&recorded_id);
        let group = self.groups.back_mut().expect("calls are added to an existing group");
        group.open.push(OpenCall { recorded_id, id: call.id.clone(), name: call.name.clone() });
        group.messages[0].tool_calls.push(call);
    }

    /// `id`, or `id~2`, `id~3` where it was used before.
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

    /// Counts a use of `id` and says how many there were by now.
    fn use_id(&mut self, id: &str) -> u32 {
        let uses = self.used_ids.entry(hash(id)).or_insert(0);
        *uses += 1;
        *uses
    }

    /// The answer to a call, recognised by the id that both carry in the recording.
    pub fn answer(&mut self, recorded_id: &str, text: String) {
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
        let message = Message { time_ms: self.time_ms, ..group.open.remove(call).answered(text) };
        let at = if index == newest { group.messages.len() } else { group.end_of_answers() };
        group.messages.insert(at, message);
        self.release();
    }

    /// Hands out what can no longer change: groups whose calls are answered, but not the newest group, which may
    /// still grow.
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
        self.groups.iter().map(|group| group.messages.len()).sum()
    }

    fn release_front(&mut self) {
        let Some(mut group) = self.groups.pop_front() else { return };
        let at = group.end_of_answers();
        self.tally.unanswered_calls += group.open.len() as u64;
        let missing = group.open.drain(..).map(|call| call.answered(String::new()));
        group.messages.splice(at..at, missing);
        for message in group.messages {
            self.pass(message);
        }
    }

    /// Hands out all that is held.
    pub fn finish(mut self) -> Tally {
        while !self.groups.is_empty() {
            self.release_front();
        }
        self.tally
    }
}

impl Group {
    fn takes(&self, join: Join<'_>) -> bool {
        match join {
            Join::Response(name) => self.response.as_deref() == Some(name),
            Join::Adjacent => self.response.is_none() && self.messages.len() == 1,
            Join::Never => false,
        }
    }

    /// The place behind the newest answer, or behind the assistant message.
    fn end_of_answers(&self) -> usize {
        self.messages.iter().rposition(|message| message.role == Role::Tool).unwrap_or(0) + 1
    }
}

impl OpenCall {
    fn answered(self, text: String) -> Message {
        Message { tool_call_id: Some(self.id), name: Some(self.name), ..Message::said(Role::Tool, text) }
    }
}

/// Joins texts by a newline; text that is only white space says nothing and is left out.
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

/// Arguments that were written as a JSON text: the value, or the text itself where it is not an object or list.
pub(super) fn arguments_from_text(text: String) -> Value {
    match serde_json::from_str(&text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
        _ => Value::String(text),
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
