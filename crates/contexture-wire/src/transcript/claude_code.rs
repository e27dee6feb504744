//! Claude Code: one event per line; a response is spread over lines that share the id of the message.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Error, Value};

use contexture_core::item::{Origin, Role};

use super::assemble::{Assembler, Join};
use super::blocks::{say, speak, text_of};

#[derive(Deserialize)]
struct ClaudeCodeRecord<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    cwd: Option<Cow<'a, str>>,
    #[serde(rename = "isSidechain")]
    is_side_chain: Option<bool>,
    /// Set on the lines of a side chain when the agent prints its events instead of storing them.
    #[serde(borrow)]
    parent_tool_use_id: Option<&'a RawValue>,
    #[serde(rename = "isMeta")]
    is_meta: Option<bool>,
    #[serde(rename = "isCompactSummary")]
    is_compact_summary: Option<bool>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    attachment: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ClaudeCodeMessage<'a> {
    id: Option<String>,
    #[serde(default, borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

pub(super) fn record(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let line: ClaudeCodeRecord<'_> = serde_json::from_str(json)?;
    assembler.set_time(line.timestamp.as_deref());
    if line.is_side_chain == Some(true) || line.parent_tool_use_id.is_some() {
        assembler.tally.side_chain_records += 1;
        return Ok(());
    }
    assembler.set_directory(line.cwd.as_deref());
    match (&*line.kind, line.message, line.attachment) {
        ("user", Some(message), _) if line.is_compact_summary == Some(true) => summary(message, assembler),
        ("user", Some(message), _) => {
            user(message, if line.is_meta == Some(true) { Role::System } else { Role::User }, assembler)
        }
        ("assistant", Some(message), _) => assistant(message, assembler),
        ("attachment", _, Some(attachment)) => attach(attachment, assembler),
        _ => Ok(()),
    }
}

fn assistant(message: &RawValue, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let said: ClaudeCodeMessage<'_> = serde_json::from_str(message.get())?;
    // Messages that the agent wrote in place of the model have this name.
    assembler.set_model(said.model.as_deref().filter(|model| *model != "<synthetic>"));
    let join = said.id.as_deref().map_or(Join::Never, Join::Response);
    speak(said.content, join, assembler)
}

fn user(message: &RawValue, role: Role, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let said: ClaudeCodeMessage<'_> = serde_json::from_str(message.get())?;
    say(said.content, role, assembler)
}

fn summary(message: &RawValue, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let said: ClaudeCodeMessage<'_> = serde_json::from_str(message.get())?;
    let text = text_of(said.content, assembler)?;
    if !text.is_empty() {
        assembler.say_summary(text);
    }
    Ok(())
}

/// Something that the program showed the model besides the conversation: a file, a change, a reminder.
#[derive(Deserialize)]
struct ClaudeCodeAttachment<'a> {
    #[serde(rename = "type")]
    kind: Option<Value>,
    filename: Option<Value>,
    path: Option<Value>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    snippet: Option<String>,
}

#[derive(Deserialize)]
struct AttachedFile {
    file: Option<AttachedText>,
}

#[derive(Deserialize)]
struct AttachedText {
    content: Option<String>,
}

fn attach(attachment: &RawValue, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let attachment: ClaudeCodeAttachment<'_> = serde_json::from_str(attachment.get())?;
    let text = match attachment.content {
        Some(content) => attached_text(content)?,
        None => attachment.snippet.unwrap_or_default(),
    };
    if !text.trim().is_empty() {
        let text_in = |value: Option<Value>| value.as_ref().and_then(Value::as_str).map(Box::from);
        let path = text_in(attachment.filename).or_else(|| text_in(attachment.path));
        let origin = Origin::Harness { kind: text_in(attachment.kind), path };
        assembler.say_from(Role::System, text, origin);
    }
    Ok(())
}

fn attached_text(content: &RawValue) -> Result<String, Error> {
    let json = content.get();
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json),
        Some(b'[') => {
            let parts: Vec<&RawValue> = serde_json::from_str(json)?;
            let parts: Result<Vec<String>, Error> = parts.into_iter().map(attached_part).collect();
            Ok(parts?.join("\n"))
        }
        Some(b'{') => {
            let attached: AttachedFile = serde_json::from_str(json)?;
            Ok(attached.file.and_then(|file| file.content).unwrap_or_default())
        }
        _ => Ok(String::new()),
    }
}

fn attached_part(part: &RawValue) -> Result<String, Error> {
    if part.get().starts_with('"') { serde_json::from_str(part.get()) } else { Ok(part.get().to_owned()) }
}
