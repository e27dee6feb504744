//! Copilot CLI: one event per line, named `user.message`, `assistant.message`, `tool.execution_complete`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Error, Value};

use contexture_core::item::{FunctionCall, Outcome, Role};

use super::assemble::{Assembler, Join, append_text, call};
use super::blocks::IMAGE_NOTE;

#[derive(Deserialize)]
struct CopilotCliRecord<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    message_id: Option<String>,
    content: Option<String>,
    /// What was sent for a user's message: the message with the date and other facts added.
    transformed_content: Option<String>,
    #[serde(default)]
    attachments: Vec<CopilotCliAttachment>,
    #[serde(default)]
    tool_requests: Vec<ToolRequest>,
    /// Set on events of a subagent.
    parent_tool_call_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CopilotCliAttachment {
    mime_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolRequest {
    tool_call_id: String,
    name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CopilotCliExecution {
    tool_call_id: String,
    result: Option<ExecutionResult>,
    error: Option<ExecutionError>,
    success: Option<bool>,
    parent_tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct ExecutionResult {
    content: Option<String>,
}

#[derive(Deserialize)]
struct ExecutionError {
    message: Option<String>,
}

pub(super) fn record(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let line: CopilotCliRecord<'_> = serde_json::from_str(json)?;
    assembler.set_time(line.timestamp.as_deref());
    let Some(data) = line.data else { return Ok(()) };
    match &*line.kind {
        "tool.execution_complete" => executed(serde_json::from_str(data.get())?, assembler),
        "session.start" | "session.resume" => {
            let start: Value = serde_json::from_str(data.get())?;
            assembler.set_directory(start["context"]["cwd"].as_str());
        }
        "session.model_change" => {
            let change: Value = serde_json::from_str(data.get())?;
            assembler.set_model(change["newModel"].as_str());
        }
        "system.message" | "user.message" | "assistant.message" => {
            said(&line.kind, serde_json::from_str(data.get())?, assembler);
        }
        _ => {}
    }
    Ok(())
}

fn executed(execution: CopilotCliExecution, assembler: &mut Assembler<'_>) {
    if execution.parent_tool_call_id.is_some() {
        assembler.tally.side_chain_records += 1;
        return;
    }
    let result = execution.result.and_then(|result| result.content);
    let answer = result.or_else(|| execution.error.and_then(|error| error.message));
    let outcome = match execution.success {
        Some(true) => Outcome::Done,
        Some(false) => Outcome::Failed,
        None => Outcome::Unknown,
    };
    assembler.answer(&execution.tool_call_id, answer.unwrap_or_default(), outcome);
}

fn said(kind: &str, data: Data, assembler: &mut Assembler<'_>) {
    if data.parent_tool_call_id.is_some() {
        assembler.tally.side_chain_records += 1;
        return;
    }
    let text = data.transformed_content.or(data.content).unwrap_or_default();
    match kind {
        "assistant.message" => {
            let join = data.message_id.as_deref().map_or(Join::Never, Join::Response);
            assembler.speak(join, text, data.tool_requests.into_iter().map(ToolRequest::into_call).collect());
        }
        "user.message" => {
            let text = with_images(text, &data.attachments, assembler);
            assembler.say(Role::User, text);
        }
        _ => assembler.say(Role::System, text),
    }
}

fn with_images(mut text: String, attachments: &[CopilotCliAttachment], assembler: &mut Assembler<'_>) -> String {
    let is_image = |attachment: &&CopilotCliAttachment| {
        attachment.mime_type.as_deref().is_some_and(|kind| kind.starts_with("image/"))
    };
    for _ in attachments.iter().filter(is_image) {
        assembler.tally.images += 1;
        append_text(&mut text, IMAGE_NOTE.to_owned());
    }
    text
}

impl ToolRequest {
    fn into_call(self) -> FunctionCall {
        call(&self.tool_call_id, &self.name, self.arguments)
    }
}
