//! Messages of OpenAI chat completions.

use contexture_core::item::{Content, FunctionCall, FunctionCallOutput, Message, Outcome, Reasoning, Role};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::anthropic::{ContentBlocks, content_with, text_and_others};
use super::error::WireError;
use super::fields::Fields;
use super::unit::Unit;

/// Names under which providers put what the model thought.
const THOUGHTS: [&str; 2] = ["reasoning_content", "reasoning"];

pub(super) fn read(json: &str) -> Result<Vec<Unit>, WireError> {
    let fields = Fields::parse(json)?;
    match &*fields.text("role").unwrap_or_default() {
        "assistant" => assistant(&fields),
        "tool" | "function" => {
            let (text, others) = content(&fields)?;
            let id = fields.text("tool_call_id").or_else(|| fields.text("name")).unwrap_or_default();
            // This format does not say what became of a call.
            let mut output = FunctionCallOutput::new(&id, text, Outcome::Unknown);
            if !others.is_empty() {
                let values = others.iter().map(|raw| serde_json::from_str(raw.get()));
                output.extra.insert("content", values.collect::<Result<Vec<Value>, _>>()?);
            }
            Ok(vec![Unit::alone(output)])
        }
        "user" => Ok(vec![Unit::alone(said(&fields, Role::User)?)]),
        "system" => Ok(vec![Unit::alone(said(&fields, Role::System)?)]),
        "developer" => Ok(vec![Unit::alone(said(&fields, Role::Developer)?)]),
        role => Err(WireError::UnknownKind(role.to_owned())),
    }
}

fn content<'a>(fields: &Fields<'a>) -> Result<(String, Vec<&'a RawValue>), WireError> {
    match fields.get("content").filter(|raw| raw.get() != "null") {
        Some(raw) => text_and_others(raw),
        None => Ok((String::new(), Vec::new())),
    }
}

fn said(fields: &Fields<'_>, role: Role) -> Result<Message, WireError> {
    Ok(Message::new(role, parts(fields)?))
}

fn parts(fields: &Fields<'_>) -> Result<Vec<Content>, WireError> {
    let Some(raw) = fields.get("content").filter(|raw| raw.get() != "null") else { return Ok(Vec::new()) };
    match ContentBlocks::of(raw)? {
        ContentBlocks::Text(text) => Ok(vec![Content::Text { text }]),
        ContentBlocks::List(blocks) => blocks.into_iter().map(|block| part(block.get())).collect(),
    }
}

fn part(json: &str) -> Result<Content, WireError> {
    let fields = Fields::parse(json)?;
    let is_plain = fields.others(&["type", "text", super::anthropic::MARK])?.is_empty();
    match fields.text("text").filter(|_| is_plain) {
        Some(text) => Ok(Content::Text { text: text.into_owned() }),
        None => Ok(Content::Opaque(serde_json::from_str(json)?)),
    }
}

/// A response of the model. It is kept or left out as a whole.
fn assistant(fields: &Fields<'_>) -> Result<Vec<Unit>, WireError> {
    let mut units = Vec::new();
    if let Some(thought) = THOUGHTS.iter().find_map(|name| fields.text(name)).filter(|thought| !thought.is_empty()) {
        units.push(Unit::joined(Reasoning::new(thought, None)));
    }
    let calls = match fields.get("tool_calls").filter(|raw| raw.get() != "null") {
        Some(raw) => serde_json::from_str::<Vec<&RawValue>>(raw.get())?,
        None => Vec::new(),
    };
    let parts = parts(fields)?;
    let is_empty = parts.iter().all(|part| part.as_text().is_some_and(str::is_empty));
    let function_call = fields.get("function_call").filter(|raw| raw.get() != "null");
    if !is_empty || (calls.is_empty() && function_call.is_none()) {
        units.push(Unit::joined(Message::new(Role::Assistant, parts)));
    }
    for call in calls {
        units.push(Unit::joined(made_call(call.get())?));
    }
    if let Some(raw) = function_call {
        let name = Fields::parse(raw.get())?.text("name").unwrap_or_default().into_owned();
        units.push(Unit::joined(function(&name, raw)?));
    }
    Ok(units)
}

fn made_call(json: &str) -> Result<FunctionCall, WireError> {
    let fields = Fields::parse(json)?;
    let id = fields.text("id").unwrap_or_default();
    let mut call = match (fields.get("function"), fields.get("custom")) {
        (Some(raw), _) => function(&id, raw)?,
        (None, Some(raw)) => {
            let custom = Fields::parse(raw.get())?;
            let input = json!({ "input": custom.text("input").unwrap_or_default() });
            FunctionCall::new(&id, &custom.text("name").unwrap_or_default(), input.to_string())
        }
        (None, None) => return Err(WireError::UnknownKind(fields.text("type").unwrap_or_default().into_owned())),
    };
    call.extra = fields.others(&["id", "type", "function", "custom", "index"])?;
    Ok(call)
}

fn function(id: &str, raw: &RawValue) -> Result<FunctionCall, WireError> {
    let fields = Fields::parse(raw.get())?;
    let arguments = match fields.get("arguments") {
        Some(raw) if raw.get().starts_with('"') => fields.text("arguments").unwrap_or_default().into_owned(),
        Some(raw) => raw.get().to_owned(),
        None => String::new(),
    };
    Ok(FunctionCall::new(id, &fields.text("name").unwrap_or_default(), arguments))
}

/// A message with another text; what is no text in it stays.
pub(super) fn with_text(json: &str, text: &str) -> Result<String, WireError> {
    let fields = Fields::parse(json)?;
    let (_, others) = content(&fields)?;
    Ok(fields.with("content", &content_with(text, "text", &others)))
}
