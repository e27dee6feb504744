//! Messages of Anthropic: a role, and a text or blocks.

use contexture_core::item::{
    Content, FunctionCall, FunctionCallOutput, Item, Message, Meta, Origin, Outcome, Reasoning, Role,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::WireError;
use super::fields::{Fields, quoted, text_of};
use super::in_force::CLEAR_AT;
use super::unit::Unit;

/// The kind of a note that leaves at the next user message.
const PASSING_NOTE: &str = "passing_note";

/// The field by which a client asks for caching.
pub(super) const MARK: &str = "cache_control";

/// The blocks of a content; a text is one.
pub(super) enum ContentBlocks<'a> {
    /// One text.
    Text(String),
    /// A list.
    List(Vec<&'a RawValue>),
}

impl<'a> ContentBlocks<'a> {
    pub(super) fn of(content: &'a RawValue) -> Result<Self, WireError> {
        match content.get().as_bytes().first() {
            Some(b'"') => Ok(ContentBlocks::Text(serde_json::from_str(content.get())?)),
            _ => Ok(ContentBlocks::List(serde_json::from_str(content.get())?)),
        }
    }
}

pub(super) fn read(json: &str) -> Result<Vec<Unit>, WireError> {
    let fields = Fields::parse(json)?;
    let role = fields.text("role").unwrap_or_default();
    let blocks = match fields.get("content").filter(|content| content.get() != "null") {
        Some(content) => ContentBlocks::of(content)?,
        // Such a message only sets something.
        None if role == "system" => ContentBlocks::List(Vec::new()),
        None => return Err(WireError::NoList("content")),
    };
    match (&*role, blocks) {
        ("assistant", ContentBlocks::Text(text)) => Ok(vec![Unit::joined(Item::assistant(text))]),
        ("assistant", ContentBlocks::List(blocks)) => {
            blocks.iter().map(|block| Ok(Unit::joined(made_block(block.get())?))).collect()
        }
        ("user", ContentBlocks::Text(text)) => Ok(vec![Unit::alone(Item::user(text))]),
        ("user", ContentBlocks::List(blocks)) => {
            blocks.iter().map(|block| Ok(Unit::alone(said_block(block.get(), Role::User)?))).collect()
        }
        ("system", ContentBlocks::Text(text)) => Ok(vec![system_unit(Item::message(Role::System, text), &fields)]),
        ("system", ContentBlocks::List(blocks)) => {
            let unit = |block: &&RawValue| Ok(system_unit(said_block(block.get(), Role::System)?, &fields));
            blocks.iter().map(unit).collect()
        }
        (role, _) => Err(WireError::UnknownKind(role.to_owned())),
    }
}

/// A part of a system message. A text that leaves at the next user message is a note, and nobody's instruction.
fn system_unit(item: Item, fields: &Fields<'_>) -> Unit {
    let is_note = fields.text(CLEAR_AT).is_some_and(|when| when != "never");
    let origin = Origin::Harness { kind: Some(PASSING_NOTE.into()), path: None };
    Unit::joined(if is_note { item.with_meta(Meta { origin, ..Meta::default() }) } else { item })
}

/// A block of the model's.
fn made_block(json: &str) -> Result<Item, WireError> {
    let fields = Fields::parse(json)?;
    let text = |name: &str| fields.text(name).unwrap_or_default();
    Ok(match &*text("type") {
        "text" => text_message(&fields, Role::Assistant, json)?,
        "tool_use" => {
            let input = fields.get("input").map_or("{}", RawValue::get);
            let call = FunctionCall::new(&text("id"), &text("name"), input);
            FunctionCall { extra: fields.others(&["type", "id", "name", "input", MARK])?, ..call }.into()
        }
        "thinking" => {
            let signature = fields.text("signature").map(|signature| Value::from(signature.into_owned()));
            Reasoning::new(text("thinking"), signature).into()
        }
        "redacted_thinking" => Reasoning::new("", Some(text("data").into_owned().into())).into(),
        // What the provider's own tools asked and found is the model's too.
        _ => Item::Opaque(serde_json::from_str(json)?),
    })
}

/// A block that the model did not make.
fn said_block(json: &str, role: Role) -> Result<Item, WireError> {
    let fields = Fields::parse(json)?;
    match &*fields.text("type").unwrap_or_default() {
        "text" => text_message(&fields, role, json),
        "tool_result" => Ok(output(&fields)?.into()),
        _ => Ok(Message::new(role, vec![Content::Opaque(serde_json::from_str(json)?)]).into()),
    }
}

fn text_message(fields: &Fields<'_>, role: Role, json: &str) -> Result<Item, WireError> {
    let content = match fields.others(&["type", "text", MARK])?.is_empty() {
        true => Content::Text { text: fields.text("text").unwrap_or_default().into_owned() },
        false => Content::Opaque(serde_json::from_str(json)?),
    };
    Ok(Message::new(role, vec![content]).into())
}

fn output(fields: &Fields<'_>) -> Result<FunctionCallOutput, WireError> {
    let (text, others) = fields.get("content").map_or(Ok((String::new(), Vec::new())), text_and_others)?;
    // Not every client marks failures, so an output without the mark may be either.
    let outcome = match fields.get("is_error").map(RawValue::get) {
        Some("true") => Outcome::Failed,
        Some("false") => Outcome::Done,
        _ => Outcome::Unknown,
    };
    let mut output = FunctionCallOutput::new(&fields.text("tool_use_id").unwrap_or_default(), text, outcome);
    output.extra = fields.others(&["type", "tool_use_id", "content", "is_error", MARK])?;
    if !others.is_empty() {
        let values = others.iter().map(|raw| serde_json::from_str(raw.get()));
        output.extra.insert("content", values.collect::<Result<Vec<Value>, _>>()?);
    }
    Ok(output)
}

/// The text of a content, and its blocks that are no texts.
pub(super) fn text_and_others(content: &RawValue) -> Result<(String, Vec<&RawValue>), WireError> {
    let blocks = match ContentBlocks::of(content)? {
        ContentBlocks::Text(text) => return Ok((text, Vec::new())),
        ContentBlocks::List(blocks) => blocks,
    };
    let (mut text, mut others) = (None::<String>, Vec::new());
    for block in blocks {
        let fields = Fields::parse(block.get())?;
        match fields.get("text").and_then(text_of) {
            Some(more) => match &mut text {
                Some(text) => {
                    text.push('\n');
                    text.push_str(&more);
                }
                None => text = Some(more.into_owned()),
            },
            None => others.push(block),
        }
    }
    Ok((text.unwrap_or_default(), others))
}

/// A block with another text, or a call with other arguments; what is no text in an output stays. A block without a text
/// becomes one.
pub(super) fn with_text(block: &str, text: &str) -> Result<String, WireError> {
    let fields = Fields::parse(block)?;
    match &*fields.text("type").unwrap_or_default() {
        "tool_use" => Ok(fields.with("input", object(text)?)),
        "text" => Ok(fields.with("text", &quoted(text))),
        "tool_result" => {
            let (_, others) = fields.get("content").map_or(Ok((String::new(), Vec::new())), text_and_others)?;
            Ok(fields.with("content", &content_with(text, "text", &others)))
        }
        "redacted_thinking" => Err(WireError::OtherRequest),
        // A thought is never altered: what it says to people becomes a text beside the calls.
        _ => {
            let mark = fields.get(MARK).map(|mark| format!(",\"{MARK}\":{}", mark.get())).unwrap_or_default();
            Ok(format!("{{\"type\":\"text\",\"text\":{}{mark}}}", quoted(text)))
        }
    }
}

/// Arguments that are an object.
pub(super) fn object(arguments: &str) -> Result<&str, WireError> {
    let is_object = arguments.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(arguments).is_ok();
    is_object.then_some(arguments).ok_or(WireError::OtherRequest)
}

/// A content of a text and of blocks that are no texts.
pub(super) fn content_with(text: &str, kind: &str, others: &[&RawValue]) -> String {
    if others.is_empty() {
        return quoted(text);
    }
    let mut json = format!("[{{\"type\":\"{kind}\",\"text\":{}}}", quoted(text));
    for other in others {
        json.push(',');
        json.push_str(other.get());
    }
    json.push(']');
    json
}
