//! The plain form: one message per line.
//!
//! `{"role", "text", "tool_calls": [{"id", "name", "arguments"}], "tool_call_id", "name", "meta"}`. Each line is one
//! record, neither joined nor repaired, so that positions in the file are positions in the transcript. Messages of the
//! program that runs an agent have the role `user` and `"meta": {"origin": "system"}`; what it attached by itself has
//! `"meta": {"origin": "attachment", "kind", "path"}`. Other metadata is in `meta` too: `time_ms`, `directory`,
//! `outcome` (or `error` and `missing`), `compact`. Unknown fields are kept.

use std::borrow::Cow;
use std::io;

use contexture_core::item::{Extra, FunctionCall, FunctionCallOutput, Item, Meta, Origin, Outcome, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Error, Map, Value, json};

use super::Record;
use super::assemble::{Assembler, COMPACT, TOOL_NAME, call};

#[derive(Deserialize)]
struct PlainRecord {
    role: LineRole,
    text: Option<String>,
    tool_calls: Option<Vec<PlainCall>>,
    tool_call_id: Option<String>,
    name: Option<String>,
    meta: Option<Map<String, Value>>,
    #[serde(flatten)]
    extra: Extra,
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
struct PlainCall {
    #[serde(default)]
    id: String,
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// The fields of `meta` for the outcome of a call.
const OUTCOME: &str = "outcome";
const ERROR: &str = "error";
const MISSING: &str = "missing";

/// The values in `meta` for the origin of a message that no person wrote.
const SYSTEM: &str = "system";
const ATTACHMENT: &str = "attachment";

pub(super) fn record(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let line: PlainRecord = serde_json::from_str(json)?;
    let text = line.text.unwrap_or_default();
    let mut fields = line.meta.unwrap_or_default();
    let outcome = take_outcome(&mut fields);
    let is_made = fields.contains_key("origin") || fields.get(COMPACT) == Some(&Value::Bool(true));
    let meta = meta_of(fields);
    let mut items = match line.role {
        LineRole::Assistant => {
            let calls = line.tool_calls.unwrap_or_default().into_iter();
            Record::response(text, calls.map(|made| call(&made.id, &made.name, made.arguments))).into_items()
        }
        LineRole::Tool => {
            let id = line.tool_call_id.unwrap_or_default();
            let mut output = FunctionCallOutput::new(&id, text, outcome);
            if let Some(name) = line.name {
                output.extra.insert(TOOL_NAME, name);
            }
            vec![output.into()]
        }
        LineRole::User if !is_made => vec![Item::user(text)],
        LineRole::User | LineRole::System => vec![Item::message(Role::System, text)],
    };
    items[0] = with_extra(items[0].clone(), line.extra).with_meta(meta.clone());
    for item in items.iter_mut().skip(1) {
        *item = item.clone().with_meta(Meta { extra: Extra::default(), ..meta.clone() });
    }
    assembler.pass(Record::from_items(items));
    Ok(())
}

/// The outcome of a call. Not every recorder marks failures, so a result without a mark may be either.
fn take_outcome(fields: &mut Map<String, Value>) -> Outcome {
    let outcome = fields.remove(OUTCOME).and_then(|value| serde_json::from_value(value).ok());
    let is_set = |value: Option<Value>| value == Some(Value::Bool(true));
    let (is_error, is_missing) = (is_set(fields.remove(ERROR)), is_set(fields.remove(MISSING)));
    outcome.unwrap_or(match (is_error, is_missing) {
        (_, true) => Outcome::Interrupted,
        (true, _) => Outcome::Failed,
        _ => Outcome::Unknown,
    })
}

/// The metadata of a message, from the fields of its `meta`.
fn meta_of(mut fields: Map<String, Value>) -> Meta {
    let mut text = |name: &str| match fields.get(name) {
        Some(Value::String(_)) => fields.remove(name).and_then(|value| Some(Box::from(value.as_str()?))),
        Some(Value::Null) => fields.remove(name).and(None),
        _ => None,
    };
    let origin = match text("origin").as_deref() {
        Some(ATTACHMENT) => Origin::Harness { kind: text("kind"), path: text("path") },
        Some(SYSTEM) | None => Origin::Said,
        Some(other) => Origin::Harness { kind: Some(other.into()), path: None },
    };
    let directory = text("directory").map(|directory: Box<str>| directory.into());
    let time_ms = fields.get("time_ms").and_then(Value::as_u64);
    if time_ms.is_some() {
        fields.remove("time_ms");
    }
    Meta { time_ms, directory, origin, extra: fields.into() }
}

fn with_extra(mut item: Item, extra: Extra) -> Item {
    match &mut item {
        Item::Message(message) => message.extra = extra,
        Item::FunctionCall(call) => call.extra = extra,
        Item::FunctionCallOutput(output) => output.extra.extend(extra),
        Item::Reasoning(_) | Item::Opaque(_) => {}
    }
    item
}

/// A record in the plain form, to be written.
#[derive(Serialize)]
struct WrittenRecord<'a> {
    role: &'static str,
    text: Cow<'a, str>,
    tool_calls: Vec<WrittenCall<'a>>,
    tool_call_id: Option<&'a str>,
    name: Option<&'a Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    meta: Map<String, Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Serialize)]
struct WrittenCall<'a> {
    id: &'a str,
    name: &'a str,
    arguments: Value,
}

impl<'a> WrittenRecord<'a> {
    fn new(record: &'a Record) -> Self {
        let output = record.output();
        let id = output.map(|output| &*output.call_id).filter(|id| !id.is_empty());
        Self {
            role: match record.role() {
                Some(Role::Assistant) => "assistant",
                Some(_) => "user",
                None => "tool",
            },
            text: record.text(),
            tool_calls: record.calls().map(WrittenCall::new).collect(),
            tool_call_id: id,
            name: output.and_then(|output| output.extra.get(TOOL_NAME)),
            meta: plain_meta(record),
            extra: extra_of(&record.items()[0]).filter(|(name, _)| *name != TOOL_NAME).map(copied).collect(),
        }
    }
}

impl<'a> WrittenCall<'a> {
    fn new(call: &'a FunctionCall) -> Self {
        Self { id: &call.call_id, name: &call.name, arguments: call.parsed_arguments() }
    }
}

fn copied((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn extra_of(item: &Item) -> impl Iterator<Item = (&String, &Value)> {
    let extra = match item {
        Item::Message(message) => Some(&message.extra),
        Item::FunctionCall(call) => Some(&call.extra),
        Item::FunctionCallOutput(output) => Some(&output.extra),
        Item::Reasoning(_) | Item::Opaque(_) => None,
    };
    extra.into_iter().flat_map(Extra::iter)
}

fn plain_meta(record: &Record) -> Map<String, Value> {
    let mut fields = Map::new();
    let Some(meta) = record.items()[0].meta() else { return fields };
    fields.extend(meta.extra.iter().map(copied));
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            fields.insert(name.to_owned(), value);
        }
    };
    match &meta.origin {
        Origin::Harness { kind, path } => {
            set("origin", ATTACHMENT.into());
            set("kind", json!(kind));
            set("path", json!(path));
        }
        // A summary is already marked as such.
        _ if meta.extra.get(COMPACT).is_some() => {}
        _ if matches!(record.role(), Some(Role::System | Role::Developer)) => set("origin", SYSTEM.into()),
        _ => {}
    }
    set("time_ms", json!(meta.time_ms));
    set("directory", json!(meta.directory));
    match record.output().map(|output| output.outcome) {
        None | Some(Outcome::Unknown) => {}
        Some(outcome) => set(OUTCOME, json!(outcome)),
    }
    fields
}

/// A record in the plain form.
pub fn plain_form(record: &Record) -> Value {
    serde_json::to_value(WrittenRecord::new(record)).expect("a record is made of texts and JSON")
}

/// Writes a record in the plain form, as one line.
///
/// # Errors
///
/// When the writer fails.
pub fn write(mut writer: impl io::Write, record: &Record) -> io::Result<()> {
    serde_json::to_writer(&mut writer, &WrittenRecord::new(record))?;
    writer.write_all(b"\n")
}
