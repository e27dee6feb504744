//! The plain form: one message a line, its fields those of [`Message`].
//!
//! Each line is one message, neither joined nor mended, so that positions in the file are positions in the
//! transcript. The program that runs an agent speaks as `user` here, with `"meta": {"origin": "system"}` beside it.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Error, Value};

use super::assemble::Assembler;
use super::{Message, Role, ToolCall};

#[derive(Deserialize)]
struct Line {
    role: LineRole,
    text: Option<String>,
    tool_calls: Option<Vec<Call>>,
    tool_call_id: Option<String>,
    name: Option<String>,
    meta: Option<Meta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum LineRole {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    id: String,
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Where a message comes from that no person wrote.
#[derive(Deserialize)]
struct Meta {
    origin: Option<String>,
    compact: Option<bool>,
}

pub(super) fn record(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let line: Line = serde_json::from_str(json)?;
    let is_made = line.meta.is_some_and(|meta| meta.origin.is_some() || meta.compact == Some(true));
    let role = match line.role {
        LineRole::User if is_made => Role::System,
        LineRole::User => Role::User,
        LineRole::System => Role::System,
        LineRole::Assistant => Role::Assistant,
        LineRole::Tool => Role::Tool,
    };
    let calls = line.tool_calls.unwrap_or_default().into_iter();
    assembler.pass(Message {
        role,
        text: line.text.unwrap_or_default(),
        tool_calls: calls.map(|Call { id, name, arguments }| ToolCall { id, name, arguments }).collect(),
        tool_call_id: line.tool_call_id,
        name: line.name,
        time_ms: None,
    });
    Ok(())
}

#[derive(Serialize)]
struct Written<'a> {
    role: Role,
    text: &'a str,
    tool_calls: &'a [ToolCall],
    tool_call_id: Option<&'a str>,
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<WrittenMeta>,
}

#[derive(Serialize)]
struct WrittenMeta {
    origin: &'static str,
}

/// Writes a message in the plain form, as one line.
///
/// # Errors
///
/// When the writer fails.
pub fn write(mut writer: impl io::Write, message: &Message) -> io::Result<()> {
    let is_system = message.role == Role::System;
    let written = Written {
        role: if is_system { Role::User } else { message.role },
        text: &message.text,
        tool_calls: &message.tool_calls,
        tool_call_id: message.tool_call_id.as_deref(),
        name: message.name.as_deref(),
        meta: is_system.then_some(WrittenMeta { origin: "system" }),
    };
    serde_json::to_writer(&mut writer, &written)?;
    writer.write_all(b"\n")
}
