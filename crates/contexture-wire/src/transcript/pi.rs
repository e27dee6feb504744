//! pi: one entry per line, after a header with the working directory.
//!
//! Entries form a tree; the file has them in the order in which they were written, with those of branches that were left.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Error, Value, json};

use contexture_core::item::{FunctionCall, Outcome, Role};

use super::assemble::{Assembler, Join, append_text, call};
use super::blocks::text_of;

#[derive(Deserialize)]
struct PiRecord<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    cwd: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    summary: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PiMessage<'a> {
    #[serde(default, borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    model: Option<String>,
    tool_call_id: Option<String>,
    is_error: Option<bool>,
    /// A command that the person ran, with what it printed.
    command: Option<String>,
    output: Option<String>,
    exit_code: Option<i64>,
    exclude_from_context: Option<bool>,
}

/// A part of what the model said.
#[derive(Deserialize)]
struct PiPart {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(default)]
    arguments: Value,
}

pub(super) fn record(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let line: PiRecord<'_> = serde_json::from_str(json)?;
    assembler.set_time(line.timestamp.as_deref());
    match (&*line.kind, line.message) {
        ("session", _) => assembler.set_directory(line.cwd.as_deref()),
        ("message", Some(message)) => said(serde_json::from_str(message.get())?, assembler)?,
        ("compaction" | "branch_summary", _) => {
            line.summary.into_iter().filter(|text| !text.is_empty()).for_each(|text| assembler.say_summary(text));
        }
        ("custom_message", _) => {
            let text = text_of(line.content, assembler)?;
            if !text.is_empty() {
                assembler.say(Role::System, text);
            }
        }
        _ => {}
    }
    Ok(())
}

fn said(message: PiMessage<'_>, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    match &*message.role {
        "user" => {
            let text = text_of(message.content, assembler)?;
            if !text.is_empty() {
                assembler.say(Role::User, text);
            }
        }
        "assistant" => {
            assembler.set_model(message.model.as_deref());
            let (text, calls) = parts(message.content, assembler)?;
            assembler.speak(Join::Never, text, calls);
        }
        "toolResult" => {
            let text = text_of(message.content, assembler)?;
            let outcome = match message.is_error {
                Some(true) => Outcome::Failed,
                Some(false) => Outcome::Done,
                None => Outcome::Unknown,
            };
            assembler.answer(message.tool_call_id.as_deref().unwrap_or_default(), text, outcome);
        }
        "bashExecution" if message.exclude_from_context != Some(true) => ran(message, assembler),
        _ => {}
    }
    Ok(())
}

fn parts(content: Option<&RawValue>, assembler: &mut Assembler<'_>) -> Result<(String, Vec<FunctionCall>), Error> {
    let (mut text, mut calls) = (String::new(), Vec::new());
    let Some(content) = content.filter(|content| content.get().starts_with('[')) else {
        return Ok((text_of(content, assembler)?, calls));
    };
    for part in serde_json::from_str::<Vec<PiPart>>(content.get())? {
        match part.kind.as_str() {
            "text" => append_text(&mut text, part.text.unwrap_or_default()),
            "thinking" => assembler.tally.thinking_blocks += 1,
            "toolCall" => {
                calls.push(call(&part.id.unwrap_or_default(), &part.name.unwrap_or_default(), part.arguments))
            }
            _ => {}
        }
    }
    Ok((text, calls))
}

/// A command of the person: a call with its output, since its text is not what somebody says.
fn ran(message: PiMessage<'_>, assembler: &mut Assembler<'_>) {
    let command = message.command.unwrap_or_default();
    let outcome = match message.exit_code {
        Some(0) => Outcome::Done,
        Some(_) => Outcome::Failed,
        None => Outcome::Unknown,
    };
    assembler.speak(Join::Never, String::new(), vec![call(OWN_COMMAND, "bash", json!({ "command": command }))]);
    assembler.answer(OWN_COMMAND, message.output.unwrap_or_default(), outcome);
}

/// The id of a command that the person ran, which has none of its own.
const OWN_COMMAND: &str = "bash-execution";
