//! Contents of Gemini: a role, and parts.
//!
//! Google's servers accept every field in two spellings, `functionCall` and `function_call`, and a list of one element
//! without its brackets; both are read.

use std::borrow::Cow;

use contexture_core::item::{
    Content, Extra, FunctionCall, FunctionCallOutput, Item, Message, Outcome, Reasoning, Role,
};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::anthropic::object;
use crate::error::WireError;
use crate::fields::{Fields, quoted, text_of};
use crate::unit::Unit;

/// The names under which the text of an output is written, if it is the only field of its response.
const OUTPUTS: [&str; 4] = ["output", "result", "content", "error"];

/// The name for a text that replaces an output which had no such name.
const OUTPUT: &str = OUTPUTS[0];

/// The name under which a tool says what went wrong.
const ERROR: &str = OUTPUTS[3];

/// A field in either spelling. `name` is the one with capital letters.
pub(crate) fn either<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a RawValue> {
    let found = fields.get(name).or_else(|| fields.get(&spaced(name)));
    found.filter(|raw| raw.get() != "null")
}

/// The spelling of a field that the object uses.
fn spelling<'n>(fields: &Fields<'_>, name: &'n str) -> Cow<'n, str> {
    if fields.get(name).is_some() { Cow::Borrowed(name) } else { Cow::Owned(spaced(name)) }
}

/// A name with underscores instead of capital letters.
fn spaced(name: &str) -> String {
    let mut spaced = String::with_capacity(name.len() + 4);
    for char in name.chars() {
        if char.is_ascii_uppercase() {
            spaced.push('_');
        }
        spaced.push(char.to_ascii_lowercase());
    }
    spaced
}

/// The role of a content; it is the user's if there is none.
pub(crate) fn role<'a>(fields: &Fields<'a>) -> Cow<'a, str> {
    fields.text("role").filter(|role| !role.is_empty()).unwrap_or(Cow::Borrowed("user"))
}

/// The parts of a content.
pub(crate) fn parts<'a>(fields: &Fields<'a>) -> Result<Vec<&'a RawValue>, WireError> {
    match fields.get("parts").filter(|raw| raw.get() != "null") {
        Some(raw) if raw.get().starts_with('[') => Ok(serde_json::from_str(raw.get())?),
        Some(raw) => Ok(vec![raw]),
        None => Ok(Vec::new()),
    }
}

pub(crate) fn read(json: &str) -> Result<Vec<Unit>, WireError> {
    let fields = Fields::parse(json)?;
    let parts = parts(&fields)?;
    match &*role(&fields) {
        // What the model made in one turn is kept as a whole: only its first call carries the signature.
        "model" => parts.iter().map(|part| Ok(Unit::joined(made_part(part.get())?))).collect(),
        "user" | "function" | "tool" => parts.iter().map(|part| Ok(Unit::alone(said_part(part.get())?))).collect(),
        role => Err(WireError::UnknownKind(role.to_owned())),
    }
}

/// A part of the model's.
fn made_part(json: &str) -> Result<Item, WireError> {
    let fields = Fields::parse(json)?;
    if let Some(call) = either(&fields, "functionCall") {
        let call_fields = Fields::parse(call.get())?;
        let name = call_fields.text("name").unwrap_or_default();
        let arguments = either(&call_fields, "args").map_or("{}", RawValue::get);
        let mut call = FunctionCall::new(&call_fields.text("id").unwrap_or_default(), &name, arguments);
        call.extra = fields.others(&["functionCall", "function_call"])?;
        return Ok(call.into());
    }
    let Some(text) = fields.text("text") else { return Ok(Item::Opaque(serde_json::from_str(json)?)) };
    let signature = either(&fields, "thoughtSignature").and_then(text_of);
    // A signature may come at the end of a stream, in a part without a text.
    if fields.is_true("thought") || (text.is_empty() && signature.is_some()) {
        return Ok(Reasoning::new(text, signature.map(|signature| Value::from(signature.into_owned()))).into());
    }
    Ok(text_message(Role::Assistant, text, fields.others(&["text", "thought"])?))
}

/// A part that the model did not make.
fn said_part(json: &str) -> Result<Item, WireError> {
    let fields = Fields::parse(json)?;
    if let Some(response) = either(&fields, "functionResponse") {
        return Ok(output(response)?.into());
    }
    match fields.text("text") {
        Some(text) => Ok(text_message(Role::User, text, fields.others(&["text"])?)),
        None => Ok(Message::new(Role::User, vec![Content::Opaque(attachment(serde_json::from_str(json)?))]).into()),
    }
}

/// A part that is no text, with the kind that other formats write beside it.
fn attachment(mut part: Value) -> Value {
    const DATA: [&str; 4] = ["inlineData", "inline_data", "fileData", "file_data"];
    let Some(fields) = part.as_object_mut() else { return part };
    let Some(data) = DATA.iter().find_map(|name| fields.get(*name)) else { return part };
    let mime = ["mimeType", "mime_type"].iter().find_map(|name| data.get(name)?.as_str()).unwrap_or_default();
    let kind = if mime.starts_with("image/") { "image" } else { "document" };
    fields.insert("type".to_owned(), kind.into());
    part
}

fn text_message(role: Role, text: Cow<'_, str>, extra: Extra) -> Item {
    let mut message = Message::new(role, vec![Content::Text { text: text.into_owned() }]);
    message.extra = extra;
    message.into()
}

fn output(response: &RawValue) -> Result<FunctionCallOutput, WireError> {
    let fields = Fields::parse(response.get())?;
    let said = fields.get("response").map(FunctionAnswer::of).unwrap_or_default();
    // Only failures are said: what ran and ended badly is told by the text.
    let outcome = if said.name == Some(ERROR) { Outcome::Failed } else { Outcome::Unknown };
    let mut output = FunctionCallOutput::new(&fields.text("id").unwrap_or_default(), said.text, outcome);
    output.extra = fields.others(&["id", "response", "parts"])?;
    if let Some(parts) = fields.get("parts").filter(|parts| parts.get().starts_with('[') && parts.get().len() > 2) {
        let parts: Vec<Value> = serde_json::from_str(parts.get())?;
        output.extra.insert("content", parts.into_iter().map(attachment).collect::<Vec<Value>>());
    }
    Ok(output)
}

/// What the response of a function says.
#[derive(Default)]
struct FunctionAnswer<'a> {
    text: Cow<'a, str>,
    /// The name of its only field, if that is a text.
    name: Option<&'static str>,
}

impl<'a> FunctionAnswer<'a> {
    fn of(response: &'a RawValue) -> Self {
        let whole = || Self { text: Cow::Borrowed(response.get()), name: None };
        let Ok(fields) = Fields::parse(response.get()) else { return whole() };
        let found = OUTPUTS.iter().find_map(|name| Some((*name, fields.text(name)?)));
        match found.filter(|_| fields.len() == 1) {
            Some((name, text)) => Self { text, name: Some(name) },
            None => whole(),
        }
    }
}

/// A part with another text, or a call with other arguments; what is no text in an output stays. A part without a text
/// becomes one.
fn with_text(part: &str, text: &str) -> Result<String, WireError> {
    let fields = Fields::parse(part)?;
    if let Some(response) = either(&fields, "functionResponse") {
        let inner = Fields::parse(response.get())?;
        let name = inner.get("response").map(FunctionAnswer::of).unwrap_or_default().name.unwrap_or(OUTPUT);
        let response = inner.with("response", &format!("{{\"{name}\":{}}}", quoted(text)));
        return Ok(fields.with(&spelling(&fields, "functionResponse"), &response));
    }
    if let Some(call) = either(&fields, "functionCall") {
        let call = Fields::parse(call.get())?;
        let arguments = call.with(&spelling(&call, "args"), object(text)?);
        return Ok(fields.with(&spelling(&fields, "functionCall"), &arguments));
    }
    if fields.is_true("thought") {
        return Err(WireError::OtherRequest);
    }
    match fields.get("text") {
        Some(_) => Ok(fields.with("text", &quoted(text))),
        None => Ok(format!("{{\"text\":{}}}", quoted(text))),
    }
}

/// Some parts of a content, or parts with another text: each with its position.
pub(crate) fn part<'u>(
    message: &str,
    units: impl Iterator<Item = (usize, Option<&'u str>)>,
) -> Result<String, WireError> {
    let fields = Fields::parse(message)?;
    let parts = parts(&fields)?;
    let mut written = Vec::new();
    for (unit, text) in units {
        let part = parts.get(unit).ok_or(WireError::OtherRequest)?.get();
        written.push(text.map_or(Ok(part.to_owned()), |text| with_text(part, text))?);
    }
    Ok(fields.with("parts", &format!("[{}]", written.join(","))))
}

/// A content as it is compared: one spelling, a role, and a list of parts.
pub(crate) fn plain(fields: &mut serde_json::Map<String, Value>) {
    if fields.get("role").and_then(Value::as_str).is_none_or(str::is_empty) {
        fields.insert("role".to_owned(), "user".into());
    }
    let Some(parts) = fields.get_mut("parts") else { return };
    if parts.is_object() {
        *parts = Value::Array(vec![parts.take()]);
    }
    for part in parts.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        respell(part);
        // What a function is given and returns has names of its own.
        let is_ours = |name: &str| name != "functionResponse" && name != "functionCall";
        part.iter_mut()
            .filter(|(name, _)| is_ours(name))
            .filter_map(|(_, value)| value.as_object_mut())
            .for_each(respell);
        part.retain(|_, value| !value.is_null());
    }
}

/// Names without underscores.
fn respell(fields: &mut serde_json::Map<String, Value>) {
    let names: Vec<String> = fields.keys().filter(|name| name.contains('_')).cloned().collect();
    for name in names {
        let mut words = name.split('_');
        let mut joined = words.next().unwrap_or_default().to_owned();
        for word in words {
            let mut chars = word.chars();
            joined.extend(chars.next().map(|first| first.to_ascii_uppercase()));
            joined.push_str(chars.as_str());
        }
        if !fields.contains_key(&joined)
            && let Some(value) = fields.remove(&name)
        {
            fields.insert(joined, value);
        }
    }
}
