//! Recorded sessions as the requests that an agent would have sent.

use std::collections::HashSet;

use contexture::item::{FunctionCall, FunctionCallOutput, Item, Outcome, Role};
use contexture::transcript::Record;
use contexture::wire::{Format, as_reminder, encode, read};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Number of leading messages in which a system text counts as instructions.
const MAX_LEAD: usize = 4;

/// A recorded session in one format.
pub struct RecordedSession {
    format: Format,
    system: String,
    /// The messages in that format.
    messages: Vec<Value>,
    /// The items of the messages, each with the index of its message.
    items: Vec<(usize, Item)>,
    /// The message count of each request.
    requests: Vec<usize>,
    /// The time of each request, if recorded.
    times: Vec<Option<u64>>,
    /// Whether requests declare a tool and every other one is written in another form, as tests need.
    is_tested: bool,
}

impl RecordedSession {
    /// Converts records to a format. Calls without outputs and outputs without calls are left out, since no provider
    /// accepts them.
    pub fn new(format: Format, records: &[Record]) -> Self {
        let answered: HashSet<&str> =
            records.iter().filter_map(|record| record.output()).map(|output| &*output.call_id).collect();
        let mut recorded = Self {
            format,
            system: String::new(),
            messages: Vec::new(),
            items: Vec::new(),
            requests: Vec::new(),
            times: Vec::new(),
            is_tested: true,
        };
        let mut asked: HashSet<String> = HashSet::new();
        for (at, record) in records.iter().enumerate() {
            if at < MAX_LEAD && record.role() == Some(Role::System) && recorded.messages.is_empty() {
                recorded.system.push_str(&record.text());
                continue;
            }
            if record.is_response() {
                recorded.note_request(record.time_ms());
                recorded.respond(record, &answered, &mut asked);
            } else if let Some(output) = record.output() {
                // An output for an id that was already answered belongs to no call.
                if asked.remove(&*output.call_id) {
                    recorded.answer(&output.call_id, &output.output, output.outcome.is_error());
                }
            } else if record.role() == Some(Role::System) {
                // Nobody said it, so it must not look as if somebody had.
                let origin = record.items()[0].meta().map(|meta| meta.origin.clone()).unwrap_or_default();
                recorded.say(&as_reminder(&origin, &record.text()));
            } else {
                recorded.say(&record.text());
            }
        }
        recorded
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are no requests.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The items of a request, each with the index of its message, without instructions.
    pub fn items(&self, number: usize) -> &[(usize, Item)] {
        let end = self.items.partition_point(|(message, _)| *message < self.requests[number]);
        &self.items[..end]
    }

    /// Adds nothing to the recording: no tool is declared, and every message keeps its form.
    pub fn as_recorded(mut self) -> Self {
        self.is_tested = false;
        self
    }

    /// The time of a request, in milliseconds since the Unix epoch, if recorded.
    pub fn time_ms(&self, number: usize) -> Option<u64> {
        self.times[number]
    }

    /// The time of the first request, if recorded.
    pub fn time_ms_of_first(&self) -> Option<u64> {
        self.times.iter().flatten().next().copied()
    }

    /// The size in bytes of the model's response to a request.
    pub fn answer_bytes(&self, number: usize) -> u64 {
        let answer = self.messages.get(self.requests[number]..).unwrap_or_default();
        let is_answer = |message: &&Value| {
            message["role"] == "assistant" || message["role"] == "model" || message["type"] == "function_call"
        };
        answer.iter().take_while(is_answer).map(|message| message.to_string().len() as u64).sum()
    }

    /// The model's response to a request.
    pub fn response_to(&self, number: usize) -> Vec<Item> {
        let start = self.items.partition_point(|(message, _)| *message < self.requests[number]);
        self.items[start..].iter().map(|(_, item)| item).take_while(|item| item.is_of_model()).cloned().collect()
    }

    /// The instructions.
    pub fn instructions(&self) -> &str {
        &self.system
    }

    /// All messages, each as it would be sent.
    pub fn raw_messages(&self) -> Vec<Box<RawValue>> {
        self.messages.iter().map(raw).collect()
    }

    /// How many messages a request has.
    pub fn messages_of(&self, number: usize) -> usize {
        self.requests[number]
    }

    fn note_request(&mut self, time_ms: Option<u64>) {
        // There is no request before the user says something, and two responses in a row count as one.
        if !self.messages.is_empty() && self.requests.last() != Some(&self.messages.len()) && !self.is_of_model() {
            self.requests.push(self.messages.len());
            self.times.push(time_ms);
        }
    }

    fn is_of_model(&self) -> bool {
        self.messages.last().is_some_and(|last| {
            last["role"] == "assistant" || last["role"] == "model" || last["type"] == "function_call"
        })
    }

    fn say(&mut self, text: &str) {
        let text = if text.is_empty() { "…" } else { text };
        for message in encode::verbatim(self.format, &[Item::user(text)], []) {
            let units = read(self.format, &raw(&message), None).expect("it is written as the format says");
            self.items.extend(units.into_iter().map(|unit| (self.messages.len(), unit.item)));
            self.messages.push(message);
        }
    }

    fn respond(&mut self, record: &Record, answered: &HashSet<&str>, asked: &mut HashSet<String>) {
        if self.messages.is_empty() {
            self.say("Go on.");
        }
        let text = record.items().iter().filter_map(Item::as_message).map(|message| message.text()).collect::<String>();
        let calls = record.calls().filter(|call| answered.contains(&*call.call_id));
        let calls: Vec<_> = calls.filter(|call| asked.insert(call.call_id.to_string())).collect();
        if text.is_empty() && calls.is_empty() {
            return;
        }
        let said = (!text.is_empty()).then(|| Item::assistant(text));
        let calls = calls.iter().map(|call| Item::call(&call.call_id, &call.name, self.arguments_of(call)));
        let mut items: Vec<Item> = said.into_iter().chain(calls).collect();
        let start = self.messages.len();
        let message = |number| if self.format == Format::Responses { start + number } else { start };
        self.items.extend(items.iter().cloned().enumerate().map(|(number, item)| (message(number), item)));
        // As Google does it, the first call has the signature.
        let first = items.iter_mut().find_map(|item| match item {
            Item::FunctionCall(call) => Some(call),
            _ => None,
        });
        if let (Format::Gemini, Some(call)) = (self.format, first) {
            call.extra.insert(encode::SIGNATURE, format!("c2lnbmVk{start}"));
        }
        self.messages.extend(encode::verbatim(self.format, &items, []));
    }

    /// The arguments of a call as a reader of the format would see them.
    fn arguments_of(&self, call: &FunctionCall) -> String {
        match (self.format, call.parsed_arguments()) {
            (Format::Chat | Format::Responses, _) => call.arguments.clone(),
            (Format::Messages | Format::Gemini, input @ Value::Object(_)) => input.to_string(),
            (Format::Messages | Format::Gemini, other) => json!({"input": other}).to_string(),
        }
    }

    fn answer(&mut self, id: &str, text: &str, is_error: bool) {
        let outcome = match (self.format, is_error) {
            (Format::Messages, true) => Outcome::Failed,
            (Format::Messages, false) => Outcome::Done,
            (Format::Gemini, true) => Outcome::Failed,
            // These formats do not report errors, or nothing else.
            (Format::Chat | Format::Responses | Format::Gemini, _) => Outcome::Unknown,
        };
        let output = Item::from(FunctionCallOutput::new(id, text, outcome));
        let call = self.items.iter().rev().filter_map(|(_, item)| item.as_call()).find(|call| &*call.call_id == id);
        for mut message in encode::verbatim(self.format, std::slice::from_ref(&output), call) {
            // All results of a response go into one message.
            let (list, is_answer): (_, fn(&Value) -> bool) = match self.format {
                Format::Gemini => ("parts", |part| part.get("functionResponse").is_some()),
                _ => ("content", |block| block["type"] == "tool_result"),
            };
            let last = self.messages.last_mut().filter(|last| is_answer(&last[list][0]));
            match (last.and_then(|last| last[list].as_array_mut()), message.get_mut(list).and_then(Value::as_array_mut))
            {
                (Some(results), Some(result)) => results.append(result),
                _ => self.messages.push(message),
            }
        }
        self.items.push((self.messages.len() - 1, output));
    }

    /// A request body with a cache mark on its last block. If `is_tested`, every other request has its messages in an
    /// equivalent form: contents as strings, arguments serialised differently.
    pub fn request(&self, number: usize) -> String {
        let mut messages = self.messages[..self.requests[number]].to_vec();
        if number % 2 == 1 && self.is_tested {
            messages.iter_mut().for_each(change_form);
        }
        let tool = json!({"name": "tool", "description": "A tool.", "input_schema": {"type": "object"}});
        let tools = if self.is_tested { json!([tool]) } else { json!([]) };
        match self.format {
            Format::Messages => {
                let last = messages.last_mut().and_then(|last| last["content"].as_array_mut()).and_then(|blocks| blocks.last_mut());
                if let Some(block) = last {
                    block["cache_control"] = json!({"type": "ephemeral"});
                }
                let system = json!([{"type": "text", "text": format!("{}\n.", self.system), "cache_control": {"type": "ephemeral"}}]);
                json!({"model": "claude-sonnet-4-5", "max_tokens": 8000, "system": system, "tools": tools, "messages": messages}).to_string()
            }
            Format::Chat => {
                let mut all = vec![json!({"role": "system", "content": self.system})];
                all.append(&mut messages);
                json!({"model": "gpt-5", "messages": all, "tools": tools}).to_string()
            }
            Format::Gemini => {
                let tools = if self.is_tested { json!([{"functionDeclarations": [{"name": "tool", "description": "A tool."}]}]) } else { json!([]) };
                json!({"systemInstruction": {"parts": [{"text": self.system}]}, "contents": messages, "tools": tools}).to_string()
            }
            Format::Responses => {
                json!({"model": "gpt-5", "store": false, "instructions": self.system, "input": messages, "tools": tools}).to_string()
            }
        }
    }
}

/// A message as it would be sent.
fn raw(message: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(message).expect("a value can be written")
}

/// Rewrites a message in an equivalent form, as clients do from request to request.
fn change_form(message: &mut Value) {
    let spaced = |arguments: &mut Value| {
        let value: Option<Value> = arguments.as_str().and_then(|text| serde_json::from_str(text).ok());
        if let Some(text) = value.filter(Value::is_object).and_then(|value| serde_json::to_string_pretty(&value).ok()) {
            *arguments = text.into();
        }
    };
    for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        spaced(&mut call["function"]["arguments"]);
    }
    if message.get("arguments").is_some() {
        spaced(&mut message["arguments"]);
    }
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    // The last user message carries the mark, for which a plain string has no place.
    if let ([block], "assistant") = (blocks, message["role"].as_str().unwrap_or_default())
        && block["type"] == "text"
    {
        message["content"] = block["text"].clone();
    }
}
