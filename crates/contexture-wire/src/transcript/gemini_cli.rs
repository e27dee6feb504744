//! Gemini CLI: one record per line, or one document with all messages in older versions.
//!
//! A message is written again with the same id when its tools have answered, so records are held until the end of the
//! recording, the last of an id in the place of the first. When old outputs are masked, all messages are written again as
//! they are sent: calls and responses are parts of their contents then.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Error, Value};

use contexture_core::item::{FunctionCall, Outcome, Role};

use super::assemble::{Assembler, Join, append_text, call};
use super::blocks::text_of;

/// Messages that may still be replaced or taken back.
#[derive(Default)]
pub(super) struct HeldMessages {
    /// The JSON of each, by id, in the order of the first writing.
    messages: Vec<(String, String)>,
    /// Where each id is.
    at: HashMap<String, usize>,
    calls: Calls,
}

/// What calls returned, whichever record says it.
#[derive(Default)]
struct Calls {
    /// The output of each that is not masked, by the id of the call.
    outputs: HashMap<String, (String, Outcome)>,
    /// Those whose output was passed on.
    answered: HashSet<String>,
}

/// How an output begins that was replaced by a part of it.
const MASK: &str = "<tool_output_masked>";

/// The fields by which records are told apart.
#[derive(Deserialize)]
struct GeminiCliRecord<'a> {
    id: Option<String>,
    #[serde(rename = "$rewindTo")]
    rewind_to: Option<String>,
    #[serde(rename = "$set", borrow)]
    set: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct GeminiCliChange<'a> {
    #[serde(borrow, default)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCliMessage<'a> {
    #[serde(rename = "type", default)]
    kind: GeminiCliKind,
    #[serde(default, borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    tool_calls: Vec<GeminiCliCall>,
    #[serde(default)]
    thoughts: Vec<Value>,
    model: Option<String>,
}

/// Who a message is from.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GeminiCliKind {
    User,
    Gemini,
    /// The program itself: a note for the person.
    #[default]
    #[serde(other)]
    Program,
}

#[derive(Deserialize)]
struct GeminiCliCall {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    status: String,
}

impl HeldMessages {
    /// Takes in a record.
    pub fn take(&mut self, json: &str) -> Result<(), Error> {
        let line: GeminiCliRecord<'_> = serde_json::from_str(json)?;
        if let Some(first) = line.rewind_to {
            let at = self.at.get(&first).copied().unwrap_or(0);
            self.messages.truncate(at);
            self.at.retain(|_, place| *place < at);
        } else if let Some(set) = line.set {
            let changed: GeminiCliChange<'_> = serde_json::from_str(set.get())?;
            if let Some(messages) = changed.messages {
                *self = Self { calls: std::mem::take(&mut self.calls), ..Self::default() };
                messages.into_iter().try_for_each(|message| self.take(message.get()))?;
            }
        } else if let Some(messages) = line.messages {
            messages.into_iter().try_for_each(|message| self.take(message.get()))?;
        } else if let Some(id) = line.id {
            self.calls.note(json);
            match self.at.get(&id) {
                Some(at) => json.clone_into(&mut self.messages[*at].1),
                None => {
                    self.at.insert(id.clone(), self.messages.len());
                    self.messages.push((id, json.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Passes on all messages.
    pub fn pass_on(mut self, assembler: &mut Assembler<'_>) -> Result<(), Error> {
        let messages = std::mem::take(&mut self.messages);
        messages.iter().try_for_each(|(_, json)| self.calls.pass_on(json, assembler))
    }
}

impl Calls {
    /// Notes the outputs in a message.
    fn note(&mut self, json: &str) {
        let Ok(message) = serde_json::from_str::<GeminiCliMessage<'_>>(json) else { return };
        for (id, text, outcome) in message.results() {
            if text.is_empty() || text.starts_with(MASK) {
                continue;
            }
            // What became of a call is said only where the call is.
            let is_said = message.tool_calls.iter().any(|asked| asked.id == id);
            let known = self.outputs.entry(id).or_insert_with(|| (text.clone(), outcome));
            if is_said {
                *known = (text, outcome);
            }
        }
    }

    /// Passes on a message.
    fn pass_on(&mut self, json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
        let message: GeminiCliMessage<'_> = serde_json::from_str(json)?;
        assembler.set_time(message.timestamp.as_deref());
        assembler.tally.thinking_blocks += message.thoughts.len() as u64;
        let text = text_of(message.content, assembler)?;
        match message.kind {
            GeminiCliKind::Gemini => {
                assembler.set_model(message.model.as_deref());
                assembler.speak(Join::Never, text, message.calls());
                self.answer(&message, assembler);
            }
            GeminiCliKind::User => {
                self.answer(&message, assembler);
                if !text.is_empty() {
                    assembler.say(Role::User, text);
                }
            }
            GeminiCliKind::Program => {}
        }
        Ok(())
    }

    /// Passes on the outputs in a message that were not passed on before.
    fn answer(&mut self, message: &GeminiCliMessage<'_>, assembler: &mut Assembler<'_>) {
        for (id, text, outcome) in message.results() {
            if !self.answered.insert(id.clone()) {
                continue;
            }
            let (text, outcome) = self.outputs.remove(&id).unwrap_or((text, outcome));
            assembler.answer(&id, text, outcome);
        }
    }
}

impl GeminiCliMessage<'_> {
    /// The parts of its content.
    fn parts(&self) -> Vec<Value> {
        self.content.and_then(|content| serde_json::from_str(content.get()).ok()).unwrap_or_default()
    }

    /// Its calls, each once.
    fn calls(&self) -> Vec<FunctionCall> {
        let mut calls: Vec<FunctionCall> =
            self.tool_calls.iter().map(|asked| call(&asked.id, &asked.name, asked.args.clone())).collect();
        let parts = self.parts();
        let sent = parts.iter().filter_map(|part| part.get("functionCall"));
        for asked in sent {
            let (id, name) = (asked["id"].as_str().unwrap_or_default(), asked["name"].as_str().unwrap_or_default());
            if !self.tool_calls.iter().any(|known| known.id == id) {
                calls.push(call(id, name, asked["args"].clone()));
            }
        }
        calls
    }

    /// What calls returned: the id of each, with its output.
    fn results(&self) -> Vec<(String, String, Outcome)> {
        let mut results: Vec<_> = self.tool_calls.iter().map(GeminiCliCall::returned).collect();
        for part in self.parts().iter().filter(|part| part.get("functionResponse").is_some()) {
            let response = &part["functionResponse"];
            let has_failed = response["response"].get("error").is_some();
            let outcome = if has_failed { Outcome::Failed } else { Outcome::Done };
            results.push((response["id"].as_str().unwrap_or_default().to_owned(), output_of(part), outcome));
        }
        results
    }
}

impl GeminiCliCall {
    /// Its id, its output, and what became of it.
    fn returned(&self) -> (String, String, Outcome) {
        let outcome = match self.status.as_str() {
            "success" => Outcome::Done,
            "error" => Outcome::Failed,
            "cancelled" => Outcome::Interrupted,
            _ => Outcome::Unknown,
        };
        (self.id.clone(), output_of(&self.result), outcome)
    }
}

pub(super) fn record(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    Calls::default().pass_on(json, assembler)
}

/// The text of a tool's result: a text, or parts with texts and responses of functions.
fn output_of(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let mut text = String::new();
            parts.iter().for_each(|part| append_text(&mut text, output_of(part)));
            text
        }
        Value::Object(part) => {
            if let Some(text) = part.get("text").and_then(Value::as_str) {
                return text.to_owned();
            }
            let response = part.get("functionResponse").map(|response| &response["response"]);
            match response {
                Some(response) => ["output", "error"]
                    .iter()
                    .find_map(|name| response[name].as_str())
                    .map_or_else(|| response.to_string(), str::to_owned),
                None => String::new(),
            }
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Record, Transcript};
    use super::*;

    /// Old outputs are masked: all messages are written again, as they are sent.
    #[test]
    fn calls_and_outputs_are_read_after_old_outputs_were_masked() {
        let output = |n: usize| format!("output {n} of a tool, {}", "long ".repeat(20));
        let response = |n: usize, text: &str| json!({"functionResponse": {"id": format!("c{n}"), "name": "read_file", "response": {"output": text}}});
        let asked = |n: usize| json!({"functionCall": {"id": format!("c{n}"), "name": "read_file", "args": {"file_path": format!("/p/{n}.txt")}}});
        let first = json!({"id": "1", "type": "user", "content": [{"text": "Look at both."}]});
        let again = json!([
            first,
            {"id": "7", "type": "gemini", "content": [{"text": "First."}, asked(1)], "thoughts": []},
            {"id": "8", "type": "user", "content": [response(1, "<tool_output_masked>\noutput 1\n</tool_output_masked>")]},
        ]);
        let lines = [
            json!({"sessionId": "s", "projectHash": "h", "kind": "main"}),
            first.clone(),
            json!({"id": "2", "type": "gemini", "content": "First.", "toolCalls": [{"id": "c1", "name": "read_file",
                "args": {"file_path": "/p/1.txt"}, "status": "success", "result": [response(1, &output(1))]}]}),
            json!({"id": "3", "type": "user", "content": [response(1, &output(1))]}),
            json!({"$set": {"messages": again}}),
            json!({"id": "9", "type": "gemini", "content": [{"text": "Second."}, asked(2)], "thoughts": []}),
            json!({"id": "10", "type": "user", "content": [response(2, &output(2))]}),
            json!({"id": "11", "type": "gemini", "content": "Done.", "thoughts": []}),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let (transcript, report) = Transcript::read(text.as_bytes()).unwrap();
        assert!(report.broken.is_empty(), "{report:?}");
        let items = serde_json::to_string(&transcript.records.iter().map(Record::items).collect::<Vec<_>>()).unwrap();
        for n in [1, 2] {
            assert_eq!(items.matches(&output(n)).count(), 1, "{items}");
            assert_eq!(items.matches(&format!("/p/{n}.txt")).count(), 1, "{items}");
        }
        assert!(!items.contains(MASK), "{items}");
    }
}
