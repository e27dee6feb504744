//! Gemini CLI: one record per line, or one document with all messages in older versions.
//!
//! A message is written again with the same id when its tools have answered, so records are held until the end of the
//! recording, the last of an id in the place of the first.

use std::borrow::Cow;
use std::collections::HashMap;

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
}

/// The fields by which records are told apart.
#[derive(Deserialize)]
struct Line<'a> {
    id: Option<String>,
    #[serde(rename = "$rewindTo")]
    rewind_to: Option<String>,
    #[serde(rename = "$set", borrow)]
    set: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Changed<'a> {
    #[serde(borrow, default)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
    #[serde(default)]
    thoughts: Vec<Value>,
    model: Option<String>,
}

#[derive(Deserialize)]
struct ToolCall {
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
        let line: Line<'_> = serde_json::from_str(json)?;
        if let Some(first) = line.rewind_to {
            let at = self.at.get(&first).copied().unwrap_or(0);
            self.messages.truncate(at);
            self.at.retain(|_, place| *place < at);
        } else if let Some(set) = line.set {
            let changed: Changed<'_> = serde_json::from_str(set.get())?;
            if let Some(messages) = changed.messages {
                *self = Self::default();
                messages.into_iter().try_for_each(|message| self.take(message.get()))?;
            }
        } else if let Some(messages) = line.messages {
            messages.into_iter().try_for_each(|message| self.take(message.get()))?;
        } else if let Some(id) = line.id {
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
    pub fn pass_on(self, assembler: &mut Assembler<'_>) -> Result<(), Error> {
        self.messages.iter().try_for_each(|(_, json)| record(json, assembler))
    }
}

pub(super) fn record(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let message: Message<'_> = serde_json::from_str(json)?;
    assembler.set_time(message.timestamp.as_deref());
    assembler.tally.thinking_blocks += message.thoughts.len() as u64;
    let text = text_of(message.content, assembler)?;
    match &*message.kind {
        "user" if !text.is_empty() => assembler.say(Role::User, text),
        "gemini" => {
            assembler.set_model(message.model.as_deref());
            let calls: Vec<FunctionCall> =
                message.tool_calls.iter().map(|asked| call(&asked.id, &asked.name, asked.args.clone())).collect();
            assembler.speak(Join::Never, text, calls);
            for asked in message.tool_calls {
                let outcome = match asked.status.as_str() {
                    "success" => Outcome::Done,
                    "error" => Outcome::Failed,
                    "cancelled" => Outcome::Interrupted,
                    _ => Outcome::Unknown,
                };
                assembler.answer(&asked.id, output_of(&asked.result), outcome);
            }
        }
        // Notes of the program for the person.
        _ => {}
    }
    Ok(())
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
