//! Recorded work as an agent would have sent it, request by request.

use std::collections::HashSet;

use contexture::item::{Item, Role};
use contexture::transcript::Record;
use contexture::wire::Format;
use serde_json::{Value, json};

/// How long a text of the system is taken for instructions in front of everything, in messages.
const MAX_LEAD: usize = 4;

/// Recorded work in one format.
pub struct Recorded {
    format: Format,
    system: String,
    /// The messages, each as the format writes it.
    messages: Vec<Value>,
    /// How many messages each request has.
    requests: Vec<usize>,
}

impl Recorded {
    /// Writes records in a format. Calls without outputs and outputs without calls are left out, since no provider
    /// takes them.
    pub fn new(format: Format, records: &[Record]) -> Self {
        let answered: HashSet<&str> =
            records.iter().filter_map(|record| record.output()).map(|output| &*output.call_id).collect();
        let mut recorded = Self { format, system: String::new(), messages: Vec::new(), requests: Vec::new() };
        let mut asked: HashSet<String> = HashSet::new();
        for (at, record) in records.iter().enumerate() {
            if at < MAX_LEAD && record.role() == Some(Role::System) && recorded.messages.is_empty() {
                recorded.system.push_str(&record.text());
                continue;
            }
            if record.is_response() {
                recorded.note_request();
                recorded.respond(record, &answered, &mut asked);
            } else if let Some(output) = record.output() {
                // An id that is used again answers nothing.
                if asked.remove(&*output.call_id) {
                    recorded.answer(&output.call_id, &output.output, output.outcome.is_error());
                }
            } else {
                recorded.say(&record.text());
            }
        }
        recorded
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    fn note_request(&mut self) {
        // Before the user says something there is nothing to ask, and two responses in a row are one.
        if !self.messages.is_empty() && self.requests.last() != Some(&self.messages.len()) && !self.is_of_model() {
            self.requests.push(self.messages.len());
        }
    }

    fn is_of_model(&self) -> bool {
        self.messages.last().is_some_and(|last| last["role"] == "assistant" || last["type"] == "function_call")
    }

    fn say(&mut self, text: &str) {
        let text = if text.is_empty() { "…" } else { text };
        self.messages.push(match self.format {
            Format::Messages => json!({"role": "user", "content": [{"type": "text", "text": text}]}),
            Format::Chat => json!({"role": "user", "content": text}),
            Format::Responses => {
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
            }
        });
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
        match self.format {
            Format::Messages => {
                let mut blocks = Vec::new();
                if !text.is_empty() {
                    blocks.push(json!({"type": "text", "text": text}));
                }
                let call = |call: &&contexture::item::FunctionCall| {
                    let input = match call.parsed_arguments() {
                        input @ Value::Object(_) => input,
                        other => json!({"input": other}),
                    };
                    json!({"type": "tool_use", "id": call.call_id, "name": call.name, "input": input})
                };
                blocks.extend(calls.iter().map(call));
                self.messages.push(json!({"role": "assistant", "content": blocks}));
            }
            Format::Chat => {
                let call = |call: &&contexture::item::FunctionCall| json!({"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
                let mut message = json!({"role": "assistant", "content": text});
                if !calls.is_empty() {
                    message["tool_calls"] = calls.iter().map(call).collect();
                }
                self.messages.push(message);
            }
            Format::Responses => {
                if !text.is_empty() {
                    self.messages.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}));
                }
                self.messages.extend(calls.iter().map(|call| json!({"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments})));
            }
        }
    }

    fn answer(&mut self, id: &str, text: &str, is_error: bool) {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error});
        match self.format {
            Format::Messages => {
                // All results of a response are one message.
                let last = self.messages.last_mut().filter(|last| last["content"][0]["type"] == "tool_result");
                match last.and_then(|last| last["content"].as_array_mut()) {
                    Some(blocks) => blocks.push(block),
                    None => self.messages.push(json!({"role": "user", "content": [block]})),
                }
            }
            Format::Chat => self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": text})),
            Format::Responses => {
                self.messages.push(json!({"type": "function_call_output", "call_id": id, "output": text}))
            }
        }
    }

    /// A request as it is sent, with a mark on its last block.
    pub fn request(&self, number: usize) -> String {
        let messages = &self.messages[..self.requests[number]];
        let tools = json!([{"name": "tool", "description": "A tool.", "input_schema": {"type": "object"}}]);
        match self.format {
            Format::Messages => {
                let mut messages = messages.to_vec();
                let last = messages.last_mut().and_then(|last| last["content"].as_array_mut()).and_then(|blocks| blocks.last_mut());
                if let Some(block) = last {
                    block["cache_control"] = json!({"type": "ephemeral"});
                }
                let system = json!([{"type": "text", "text": format!("{}\n.", self.system), "cache_control": {"type": "ephemeral"}}]);
                json!({"model": "claude-sonnet-4-5", "max_tokens": 8000, "system": system, "tools": tools, "messages": messages}).to_string()
            }
            Format::Chat => {
                let mut all = vec![json!({"role": "system", "content": self.system})];
                all.extend_from_slice(messages);
                json!({"model": "gpt-5", "messages": all, "tools": tools}).to_string()
            }
            Format::Responses => {
                json!({"model": "gpt-5", "store": false, "instructions": self.system, "input": messages, "tools": tools}).to_string()
            }
        }
    }
}
