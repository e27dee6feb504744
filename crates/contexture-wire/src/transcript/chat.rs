//! The two chat formats of providers: OpenAI chat and Anthropic messages.
//!
//! They differ in where calls and outputs are, and one record never has both, so one reader serves both.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Error, Value, json};

use contexture_core::item::{FunctionCall, Outcome, Role};

use super::assemble::{Assembler, Join, call};
use super::blocks::{say, speak, text_of};

#[derive(Deserialize)]
struct ChatRecord<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    tool_calls: Option<Vec<ChatCall>>,
    /// The single call of old OpenAI recordings, whose output names the function.
    function_call: Option<ChatCallFunction>,
    tool_call_id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct ChatCall {
    id: Option<String>,
    function: Option<ChatCallFunction>,
    custom: Option<Custom>,
}

#[derive(Deserialize)]
struct ChatCallFunction {
    name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize)]
struct Custom {
    name: String,
    #[serde(default)]
    input: String,
}

pub(super) fn record(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let record: ChatRecord<'_> = serde_json::from_str(json)?;
    match &*record.role {
        "assistant" | "model" => assistant(record, assembler),
        "tool" | "function" => {
            let answer = text_of(record.content, assembler)?;
            let id = record.tool_call_id.or(record.name).unwrap_or_default();
            assembler.answer(&id, answer, Outcome::Unknown);
            Ok(())
        }
        role => {
            let role = if role == "user" { Role::User } else { Role::System };
            say(record.content, role, assembler)
        }
    }
}

/// The instructions of an Anthropic request, which are not among its messages.
pub(super) fn system(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    say(serde_json::from_str(json)?, Role::System, assembler)
}

fn assistant(record: ChatRecord<'_>, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let calls = record.tool_calls.unwrap_or_default();
    let mut calls: Vec<FunctionCall> = calls.into_iter().filter_map(ChatCall::into_call).collect();
    calls.extend(record.function_call.map(|function| function.into_call(None)));
    if calls.is_empty() {
        return speak(record.content, Join::Never, assembler);
    }
    let text = text_of(record.content, assembler)?;
    assembler.speak(Join::Never, text, calls);
    Ok(())
}

impl ChatCall {
    fn into_call(self) -> Option<FunctionCall> {
        if let Some(custom) = self.custom {
            let id = self.id.unwrap_or_default();
            return Some(call(&id, &custom.name, json!({ "input": custom.input })));
        }
        Some(self.function?.into_call(self.id))
    }
}

impl ChatCallFunction {
    fn into_call(self, id: Option<String>) -> FunctionCall {
        call(id.as_deref().unwrap_or(&self.name), &self.name, self.arguments)
    }
}
