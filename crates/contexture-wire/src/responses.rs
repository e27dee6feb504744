//! Items of OpenAI responses.

use contexture_core::item::{Content, FunctionCall, FunctionCallOutput, Item, Message, Outcome, Reasoning, Role};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::anthropic::{content_with, object, text_and_others};
use super::chat::{AS_IT_CAME, input_of};
use super::error::WireError;
use super::fields::{Fields, quoted, text_of};
use super::unit::Unit;

/// A search for tools and what it loads are of one response of the model, whoever makes the search.
const TOOL_SEARCH: [&str; 2] = ["tool_search_call", "tool_search_output"];

pub(super) fn read(json: &str) -> Result<Vec<Unit>, WireError> {
    let fields = Fields::parse(json)?;
    let has_role = fields.get("role").is_some();
    let kind = fields.text("type").unwrap_or_else(|| if has_role { "message".into() } else { "item_reference".into() });
    let item = match &*kind {
        "message" => message(&fields)?.into(),
        "function_call" | "custom_tool_call" | "local_shell_call" | "shell_call" => call(&fields)?.into(),
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" | "shell_call_output" => {
            output(&fields)?.into()
        }
        "reasoning" => reasoning(&fields)?.into(),
        kind if TOOL_SEARCH.contains(&kind) => Item::Opaque(serde_json::from_str(json)?),
        // The past as the provider compacted it, and settings from there on: nothing of them is anywhere else.
        "compaction" | "compaction_summary" | "configuration_update" => {
            Message::new(Role::Developer, vec![Content::Opaque(serde_json::from_str(json)?)]).into()
        }
        // What developers add in forms of their own, such as more tools.
        _ if fields.is_instruction() => {
            Message::new(Role::Developer, vec![Content::Opaque(serde_json::from_str(json)?)]).into()
        }
        // A call and what answers it stay together, whatever they are.
        kind if kind.ends_with("_output") && fields.get("call_id").is_some() => unknown_output(json, &fields)?.into(),
        kind if fields.get("call_id").is_some() => unknown_call(kind, &fields)?.into(),
        // Something that the model made, also with the provider's own tools, or a reference to that.
        _ => Item::Opaque(serde_json::from_str(json)?),
    };
    Ok(vec![Unit::alone(item)])
}

fn id(fields: &Fields<'_>) -> Option<Box<str>> {
    fields.text("id").map(|id| id.into())
}

fn message(fields: &Fields<'_>) -> Result<Message, WireError> {
    let role = match &*fields.text("role").unwrap_or_default() {
        "assistant" => Role::Assistant,
        "user" => Role::User,
        "system" => Role::System,
        "developer" => Role::Developer,
        role => return Err(WireError::UnknownKind(role.to_owned())),
    };
    let raw = fields.get("content").ok_or(WireError::NoList("content"))?;
    let content = match text_of(raw) {
        Some(text) => vec![Content::Text { text: text.into_owned() }],
        None => {
            let parts: Vec<&RawValue> = serde_json::from_str(raw.get())?;
            parts.into_iter().map(part).collect::<Result<_, _>>()?
        }
    };
    let mut message = Message::new(role, content);
    message.id = id(fields);
    message.extra = fields.others(&["id", "type", "role", "content"])?;
    Ok(message)
}

fn part(raw: &RawValue) -> Result<Content, WireError> {
    let fields = Fields::parse(raw.get())?;
    match fields.text("text") {
        Some(text) => Ok(Content::Text { text: text.into_owned() }),
        None => Ok(Content::Opaque(serde_json::from_str(raw.get())?)),
    }
}

fn call(fields: &Fields<'_>) -> Result<FunctionCall, WireError> {
    let arguments = match (fields.text("arguments"), fields.text("input"), fields.get("action")) {
        (Some(text), _, _) => text.into_owned(),
        (None, Some(input), _) => json!({ "input": input }).to_string(),
        (None, None, Some(action)) => action.get().to_owned(),
        (None, None, None) => "{}".to_owned(),
    };
    let is_shell = fields.text("type").is_some_and(|kind| kind.ends_with("shell_call"));
    let name = fields.text("name").unwrap_or(if is_shell { "local_shell".into() } else { "".into() });
    let call_id = fields.text("call_id").or_else(|| fields.text("id")).unwrap_or_default();
    let mut call = FunctionCall::new(&call_id, &name, arguments);
    call.id = id(fields);
    call.extra = fields.others(&["id", "type", "call_id", "name", "arguments", "input", "action"])?;
    Ok(call)
}

/// A call of a form of its own, which is sent as it came.
fn unknown_call(kind: &str, fields: &Fields<'_>) -> Result<FunctionCall, WireError> {
    let mut call = FunctionCall::new(&fields.text("call_id").unwrap_or_default(), kind, "{}");
    call.id = id(fields);
    call.extra = fields.others(&["id", "type", "call_id"])?;
    call.extra.insert(AS_IT_CAME, true);
    Ok(call)
}

/// An output of a form of its own, which is sent as it came.
fn unknown_output(json: &str, fields: &Fields<'_>) -> Result<FunctionCallOutput, WireError> {
    let call_id = fields.text("call_id").unwrap_or_default();
    let mut output = FunctionCallOutput::new(&call_id, "", Outcome::Unknown);
    output.id = id(fields);
    output.extra.insert("content", vec![serde_json::from_str::<Value>(json)?]);
    Ok(output)
}

fn output(fields: &Fields<'_>) -> Result<FunctionCallOutput, WireError> {
    let (text, others) = fields.get("output").map_or(Ok((String::new(), Vec::new())), text_and_others)?;
    let call_id = fields.text("call_id").or_else(|| fields.text("id")).unwrap_or_default();
    // This format does not say what became of a call; texts may.
    let mut output = FunctionCallOutput::new(&call_id, text, Outcome::Unknown);
    output.id = id(fields);
    output.extra = fields.others(&["id", "type", "call_id", "output"])?;
    let list = fields.get("output").filter(|raw| raw.get().starts_with('['));
    let blocks: Vec<Fields<'_>> = list.map(|raw| serde_json::from_str(raw.get())).transpose()?.unwrap_or_default();
    let bytes: Vec<usize> = blocks.iter().filter_map(|block| Some(block.text("text")?.len())).collect();
    if bytes.len() > 1 {
        output.joined_of(bytes);
    }
    if !others.is_empty() {
        let values = others.iter().map(|raw| serde_json::from_str(raw.get()));
        output.extra.insert("content", values.collect::<Result<Vec<Value>, _>>()?);
    }
    Ok(output)
}

fn reasoning(fields: &Fields<'_>) -> Result<Reasoning, WireError> {
    let mut text = String::new();
    for name in ["summary", "content"] {
        let Some(raw) = fields.get(name).filter(|raw| raw.get().starts_with('[')) else { continue };
        for part in serde_json::from_str::<Vec<&RawValue>>(raw.get())? {
            text.push_str(&Fields::parse(part.get())?.text("text").unwrap_or_default());
        }
    }
    let opaque = fields.text("encrypted_content").map(|content| Value::from(content.into_owned()));
    let mut reasoning = Reasoning::new(text, opaque);
    reasoning.id = id(fields);
    reasoning.extra = fields.others(&["id", "type", "summary", "content", "encrypted_content"])?;
    Ok(reasoning)
}

/// An item with another text, or a call with other arguments; what is no text in it stays.
pub(super) fn with_text(json: &str, text: &str) -> Result<String, WireError> {
    let fields = Fields::parse(json)?;
    match fields.text("type").as_deref() {
        Some("function_call") => return Ok(fields.with("arguments", &quoted(text))),
        Some("custom_tool_call") => return Ok(fields.with("input", &quoted(&input_of(text)?))),
        Some("local_shell_call" | "shell_call") => return Ok(fields.with("action", object(text)?)),
        _ => {}
    }
    let name = match fields.text("type").as_deref() {
        None | Some("message") => "content",
        Some(_) => "output",
    };
    let (_, others) = text_and_others(fields.get(name).ok_or(WireError::NoList(name))?)?;
    Ok(fields.with(name, &content_with(text, "input_text", &others)))
}
