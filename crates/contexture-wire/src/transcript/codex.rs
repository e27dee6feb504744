//! Codex: one event per line; text, calls and outputs are separate items.
//!
//! What the model was sent and said is in `response_item`; other events repeat it for display. Old recordings have the
//! items without the wrapper.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Error, Value, json};

use contexture_core::item::{FunctionCall, Outcome, Role};

use super::assemble::{Assembler, Join, call};
use super::blocks::text_of;

#[derive(Deserialize)]
struct CodexRecord<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CodexItem<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    role: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    call_id: Option<String>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    input: Option<String>,
    action: Option<Value>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

/// The output of a tool, where it is neither a text nor a list of blocks.
#[derive(Deserialize)]
struct CodexOutput<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    success: Option<bool>,
}

/// Where the agent works.
#[derive(Deserialize)]
struct CodexContext<'a> {
    #[serde(default, borrow)]
    cwd: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
}

/// The place where the agent replaced its past by a summary.
#[derive(Deserialize)]
struct Compacted {
    message: Option<String>,
}

pub(super) fn record(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let line: CodexRecord<'_> = serde_json::from_str(json)?;
    assembler.set_time(line.timestamp.as_deref());
    match (&*line.kind, line.payload) {
        ("response_item", Some(payload)) => item(payload.get(), assembler),
        ("compacted", Some(payload)) => {
            let compacted: Compacted = serde_json::from_str(payload.get())?;
            assembler.say_summary(compacted.message.unwrap_or_default());
            Ok(())
        }
        ("session_meta" | "turn_context", Some(payload)) => {
            let place: CodexContext<'_> = serde_json::from_str(payload.get())?;
            assembler.set_directory(place.cwd.as_deref());
            assembler.set_model(place.model.as_deref());
            Ok(())
        }
        (_, Some(_)) => Ok(()),
        (_, None) => item(json, assembler),
    }
}

fn item(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let item: CodexItem<'_> = serde_json::from_str(json)?;
    match &*item.kind {
        "message" => message(&item, assembler)?,
        "function_call" | "custom_tool_call" | "local_shell_call" => {
            assembler.speak(Join::Adjacent, String::new(), vec![function_call(item)]);
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let outcome = outcome(item.output);
            let answer = answer(item.output, assembler)?;
            assembler.answer(item.call_id.as_deref().unwrap_or_default(), answer, outcome);
        }
        "reasoning" => assembler.tally.thinking_blocks += 1,
        _ => {}
    }
    Ok(())
}

fn message(item: &CodexItem<'_>, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let text = text_of(item.content, assembler)?;
    match item.role.as_deref() {
        Some("assistant") => assembler.speak(Join::Adjacent, text, Vec::new()),
        _ if text.is_empty() => {}
        Some("user") => assembler.say(Role::User, text),
        _ => assembler.say(Role::System, text),
    }
    Ok(())
}

fn function_call(item: CodexItem<'_>) -> FunctionCall {
    let arguments = match (item.arguments, item.input, item.action) {
        (Some(text), _, _) => Value::String(text),
        (_, Some(input), _) => json!({ "input": input }),
        (_, _, Some(action)) => action,
        _ => json!({}),
    };
    let name = item.name.as_deref().unwrap_or("local_shell");
    call(&item.call_id.or(item.id).unwrap_or_default(), name, arguments)
}

fn answer(output: Option<&RawValue>, assembler: &mut Assembler<'_>) -> Result<String, Error> {
    match output {
        Some(raw) if raw.get().starts_with('{') => {
            let output: CodexOutput<'_> = serde_json::from_str(raw.get())?;
            text_of(output.content, assembler)
        }
        raw => text_of(raw, assembler),
    }
}

/// The outcome of a call, if the output has a field for it; most have it only in their text.
fn outcome(output: Option<&RawValue>) -> Outcome {
    let output = output.filter(|raw| raw.get().starts_with('{'));
    match output.and_then(|raw| serde_json::from_str::<CodexOutput<'_>>(raw.get()).ok()?.success) {
        Some(true) => Outcome::Done,
        Some(false) => Outcome::Failed,
        None => Outcome::Unknown,
    }
}
