//! Identifies a message independent of its form.
//!
//! Cache marks, the order of fields, empty fields, a content that is written as a text or as a list, and arguments that
//! are serialised anew make no difference.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::anthropic::MARK;
use super::error::WireError;
use super::format::Format;
use super::gemini;

/// The digest of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(pub [u8; 16]);

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The digest of bytes.
pub fn raw_digest(bytes: &[u8]) -> Digest {
    short(blake3::hash(bytes))
}

fn short(hash: blake3::Hash) -> Digest {
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.as_bytes()[..16]);
    Digest(digest)
}

/// The digest of a message, independent of its form.
///
/// # Errors
/// It is not JSON.
pub fn digest(format: Format, message: &str) -> Result<Digest, WireError> {
    Ok(digest_of(&plain(format, message)?))
}

/// The digest of a message, and that of the same message with nothing in its outputs: the second one stays if a client
/// replaces old outputs by notes.
///
/// # Errors
/// It is not JSON.
pub fn digests(format: Format, message: &str) -> Result<(Digest, Digest), WireError> {
    let mut value = plain(format, message)?;
    let digest = digest_of(&value);
    let has_emptied = value.as_object_mut().is_some_and(|fields| empty_outputs(format, fields));
    Ok((digest, if has_emptied { digest_of(&value) } else { digest }))
}

/// A message without what makes no difference.
fn plain(format: Format, message: &str) -> Result<Value, WireError> {
    let mut value: Value = serde_json::from_str(message)?;
    if let Value::Object(fields) = &mut value {
        if format == Format::Gemini {
            gemini::plain(fields);
        }
        plain_message(fields);
    }
    Ok(value)
}

fn digest_of(value: &Value) -> Digest {
    let mut hasher = blake3::Hasher::new();
    feed(&mut hasher, value);
    short(hasher.finalize())
}

/// Removes what tools returned from a message. Returns whether there was any.
fn empty_outputs(format: Format, fields: &mut Map<String, Value>) -> bool {
    let is = |fields: &Map<String, Value>, name: &str, value: &str| fields.get(name).is_some_and(|own| own == value);
    let list = |fields: &mut Map<String, Value>, name: &str, empty: &dyn Fn(&mut Map<String, Value>) -> bool| {
        let elements = fields.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        elements.filter_map(Value::as_object_mut).map(empty).fold(false, |any, one| any | one)
    };
    match format {
        Format::Messages => list(fields, "content", &|block| {
            is(block, "type", "tool_result") && (block.remove("content").is_some() | block.remove("is_error").is_some())
        }),
        Format::Chat => is(fields, "role", "tool") && fields.remove("content").is_some(),
        Format::Responses => fields.contains_key("call_id") && fields.remove("output").is_some(),
        Format::Gemini => list(fields, "parts", &|part| {
            let response = part.get_mut("functionResponse").and_then(Value::as_object_mut);
            response.is_some_and(|response| response.remove("response").is_some() | response.remove("parts").is_some())
        }),
    }
}

/// Removes what makes no difference.
fn plain_message(fields: &mut Map<String, Value>) {
    for name in ["content", "output"] {
        if let Some(content) = fields.get_mut(name) {
            plain_content(content);
        }
    }
    if fields.get("type").and_then(Value::as_str) == Some("message") {
        fields.remove("type");
    }
    for call in fields.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(call) = call.as_object_mut() {
            call.remove("index");
            if let Some(function) = call.get_mut("function").and_then(Value::as_object_mut) {
                parse_arguments(function);
            }
        }
    }
    parse_arguments(fields);
    fields.remove(MARK);
    drop_empty(fields);
}

fn parse_arguments(fields: &mut Map<String, Value>) {
    let Some(arguments) = fields.get_mut("arguments") else { return };
    let parsed = arguments.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    if let Some(parsed @ (Value::Object(_) | Value::Array(_))) = parsed {
        *arguments = parsed;
    }
}

/// A content as a list of blocks without marks.
fn plain_content(content: &mut Value) {
    if let Value::String(text) = content {
        let text = std::mem::take(text);
        // An empty text is no content: clients write it where others write nothing.
        *content = if text.is_empty() { Value::Null } else { Value::Array(vec![Value::String(text)]) };
        return;
    }
    for block in content.as_array_mut().into_iter().flatten() {
        plain_block(block);
    }
}

fn plain_block(block: &mut Value) {
    let Some(fields) = block.as_object_mut() else { return };
    fields.remove(MARK);
    drop_empty(fields);
    let is_text = matches!(fields.get("type").and_then(Value::as_str), Some("text" | "input_text" | "output_text"));
    if is_text
        && fields.len() == 2
        && let Some(text @ Value::String(_)) = fields.remove("text")
    {
        *block = text;
        return;
    }
    if let Some(content) = fields.get_mut("content") {
        plain_content(content);
    }
}

fn drop_empty(fields: &mut Map<String, Value>) {
    fields.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        _ => true,
    });
}

/// Feeds a value: fields by name, numbers by what they are.
fn feed(hasher: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::Null => feed_bytes(hasher, b'n', b""),
        Value::Bool(flag) => feed_bytes(hasher, b'b', &[u8::from(*flag)]),
        Value::Number(number) => feed_bytes(hasher, b'd', plain_number(number).as_bytes()),
        Value::String(text) => feed_bytes(hasher, b's', text.as_bytes()),
        Value::Array(list) => {
            feed_bytes(hasher, b'a', &(list.len() as u64).to_le_bytes());
            list.iter().for_each(|value| feed(hasher, value));
        }
        Value::Object(fields) => {
            feed_bytes(hasher, b'o', &(fields.len() as u64).to_le_bytes());
            // Another crate of the build may ask for maps that keep the order of the text.
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            for name in names {
                feed_bytes(hasher, b's', name.as_bytes());
                feed(hasher, &fields[name]);
            }
        }
    }
}

fn feed_bytes(hasher: &mut blake3::Hasher, kind: u8, bytes: &[u8]) {
    hasher.update(&[kind]);
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

/// A number as it is written where whole ones have no point.
fn plain_number(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => (float as i64).to_string(),
        _ => number.to_string(),
    }
}
