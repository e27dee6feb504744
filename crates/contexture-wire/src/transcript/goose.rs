//! goose: one message per line, with typed parts; older files begin with a line about the session.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Error, Value};

use contexture_core::item::{FunctionCall, Outcome, Role};

use super::assemble::{Assembler, Join, append_text, call};
use super::blocks::IMAGE_NOTE;

#[derive(Deserialize)]
struct GooseMessage<'a> {
    #[serde(default, borrow)]
    role: Cow<'a, str>,
    /// Seconds since the Unix epoch.
    created: Option<u64>,
    #[serde(default)]
    content: Vec<GoosePart>,
    /// Of the line about the session, and of messages that were read from the database.
    working_dir: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoosePart {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    #[serde(default)]
    id: String,
    #[serde(default)]
    tool_call: Value,
    #[serde(default)]
    tool_result: Value,
}

pub(super) fn record(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let line: GooseMessage<'_> = serde_json::from_str(json)?;
    assembler.set_directory(line.working_dir.as_deref());
    // Some versions wrote milliseconds.
    let time = line.created.map(|time| if time < 100_000_000_000 { time * 1_000 } else { time });
    assembler.set_time_ms(time);
    let (mut text, mut calls): (String, Vec<FunctionCall>) = (String::new(), Vec::new());
    for part in line.content {
        match part.kind.as_str() {
            "text" => append_text(&mut text, part.text.unwrap_or_default()),
            "image" => {
                assembler.tally.images += 1;
                append_text(&mut text, IMAGE_NOTE.to_owned());
            }
            "thinking" | "redactedThinking" | "reasoning" => assembler.tally.thinking_blocks += 1,
            "toolRequest" | "frontendToolRequest" => calls.extend(function_call(&part)),
            "toolResponse" => {
                let (answer, outcome) = answered(&part.tool_result);
                assembler.answer(&part.id, answer, outcome);
            }
            _ => {}
        }
    }
    match &*line.role {
        "assistant" => assembler.speak(Join::Never, text, calls),
        "user" if !text.is_empty() => assembler.say(Role::User, text),
        _ => {}
    }
    Ok(())
}

/// The call of a part; `None` if the model wrote one that could not be read.
fn function_call(part: &GoosePart) -> Option<FunctionCall> {
    let asked = inner(&part.tool_call);
    Some(call(&part.id, asked["name"].as_str()?, asked["arguments"].clone()))
}

/// The value of a result, which newer versions wrap with its status.
fn inner(value: &Value) -> &Value {
    value.get("value").unwrap_or(value)
}

fn answered(result: &Value) -> (String, Outcome) {
    if let Some(error) = result["error"].as_str() {
        return (error.to_owned(), Outcome::Failed);
    }
    let value = inner(result);
    let content = value.get("content").unwrap_or(value);
    let mut text = String::new();
    for part in content.as_array().into_iter().flatten() {
        append_text(&mut text, part["text"].as_str().unwrap_or_default().to_owned());
    }
    let outcome = match (result["status"].as_str(), value["isError"].as_bool()) {
        (Some("error"), _) | (_, Some(true)) => Outcome::Failed,
        (Some("success"), _) | (_, Some(false)) => Outcome::Done,
        _ => Outcome::Unknown,
    };
    (text, outcome)
}
