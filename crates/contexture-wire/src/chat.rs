//! Messages of OpenAI chat completions.

use std::borrow::Cow;

use contexture_core::item::{Content, FunctionCall, FunctionCallOutput, Message, Outcome, Reasoning, Role};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::anthropic::{ContentBlocks, content_with, object, text_and_others};
use super::error::WireError;
use super::fields::{Fields, quoted};
use super::unit::Unit;

/// Names under which providers put what the model thought.
const THOUGHTS: [&str; 2] = ["reasoning_content", "reasoning"];

/// The field of calls of forms that are not known: they are sent as they came.
pub(super) const AS_IT_CAME: &str = "as_it_came";

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

/// A message with other texts, or calls with other arguments, each with the place of its unit; what is no text in it
/// stays.
pub(super) fn with_texts(json: &str, texts: &[(usize, &str)]) -> Result<String, WireError> {
    let fields = Fields::parse(json)?;
    let calls = calls(&fields)?;
    let count = read(json)?.len();
    let first_call = count - calls.len() - usize::from(function_call(&fields).is_some());
    let has_thought = fields.text("role").as_deref() == Some("assistant") && thought(&fields).is_some();
    let (mut written, mut written_calls) = (json.to_owned(), Vec::new());
    for (at, call) in calls.iter().enumerate() {
        let text = texts.iter().find(|(unit, _)| *unit == first_call + at);
        written_calls.push(match text {
            Some((_, arguments)) => call_with(call.get(), arguments)?,
            None => call.get().to_owned(),
        });
    }
    for (unit, text) in texts.iter().filter(|(unit, _)| *unit < first_call || *unit >= first_call + calls.len()) {
        let now = Fields::parse(&written)?;
        let other = match function_call(&now).filter(|_| *unit >= first_call + calls.len()) {
            Some(call) => now.with("function_call", &with_arguments(call, text)?),
            None if has_thought && *unit == 0 => return Err(WireError::OtherRequest),
            None => {
                let (_, others) = content(&now)?;
                now.with("content", &content_with(text, "text", &others))
            }
        };
        written = other;
    }
    match written_calls.is_empty() {
        true => Ok(written),
        false => Ok(Fields::parse(&written)?.with("tool_calls", &format!("[{}]", written_calls.join(",")))),
    }
}

/// A call with other arguments.
fn call_with(json: &str, arguments: &str) -> Result<String, WireError> {
    let fields = Fields::parse(json)?;
    if let Some(function) = fields.get("function") {
        return Ok(fields.with("function", &with_arguments(function, arguments)?));
    }
    let custom = Fields::parse(fields.get("custom").ok_or(WireError::OtherRequest)?.get())?;
    Ok(fields.with("custom", &custom.with("input", &quoted(&input_of(arguments)?))))
}

fn with_arguments(function: &RawValue, arguments: &str) -> Result<String, WireError> {
    let fields = Fields::parse(function.get())?;
    let is_text = fields.get("arguments").is_none_or(|raw| raw.get().starts_with('"'));
    let arguments = if is_text { quoted(arguments) } else { object(arguments)?.to_owned() };
    Ok(fields.with("arguments", &arguments))
}

/// The text that a tool of the client's own form is given.
pub(super) fn input_of(arguments: &str) -> Result<String, WireError> {
    let value: Value = serde_json::from_str(arguments)?;
    value["input"].as_str().map(str::to_owned).ok_or(WireError::OtherRequest)
}

/// What the model thought, if anything.
fn thought<'a>(fields: &Fields<'a>) -> Option<Cow<'a, str>> {
    THOUGHTS.iter().find_map(|name| fields.text(name)).filter(|thought| !thought.is_empty())
}

fn calls<'a>(fields: &Fields<'a>) -> Result<Vec<&'a RawValue>, WireError> {
    match fields.get("tool_calls").filter(|raw| raw.get() != "null") {
        Some(raw) => Ok(serde_json::from_str(raw.get())?),
        None => Ok(Vec::new()),
    }
}

fn function_call<'a>(fields: &Fields<'a>) -> Option<&'a RawValue> {
    fields.get("function_call").filter(|raw| raw.get() != "null")
}

/// A response of the model. It is kept or left out as a whole.
fn assistant(fields: &Fields<'_>) -> Result<Vec<Unit>, WireError> {
    let mut units = Vec::new();
    if let Some(thought) = thought(fields) {
        units.push(Unit::joined(Reasoning::new(thought, None)));
    }
    let calls = calls(fields)?;
    let parts = parts(fields)?;
    let is_empty = parts.iter().all(|part| part.as_text().is_some_and(str::is_empty));
    let function_call = function_call(fields);
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
        (None, None) => FunctionCall::new(&id, &fields.text("type").unwrap_or_default(), "{}"),
    };
    call.extra = fields.others(&["id", "type", "function", "custom", "index"])?;
    if fields.get("function").is_none() && fields.get("custom").is_none() {
        call.extra.insert(AS_IT_CAME, true);
    }
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
