//! What the fields of an output say about its call that is written as JSON.

use serde_json::{Map, Value};

use super::{OutputVerdict, verdict};

/// Fields that say by a truth value, or by a count, whether something was done.
const DONE: &[&str] = &[
    "applied",
    "changed",
    "edited",
    "modified",
    "ok",
    "replaced",
    "replacements",
    "saved",
    "success",
    "succeeded",
    "successful",
    "updated",
    "written",
];

/// Fields that say so with a word.
const NAMED: &[&str] = &["outcome", "result", "state", "status"];

/// Words of these that say that it was done.
const GOOD: &[&str] = &["applied", "completed", "done", "ok", "okay", "saved", "success", "succeeded", "updated"];

/// Fields that say that something went wrong, unless they are empty.
const BAD: &[&str] = &["error", "errors", "failed", "failures", "iserror", "rejected"];

/// Fields that say that nothing was meant to be done.
const TRIED: &[&str] = &["dryrun", "pending", "preview", "simulated", "requiresapproval"];

/// Fields in which there is more of them.
const INNER: &[&str] = &["data", "output", "response", "result"];

/// Fields with sentences.
const SENTENCES: &[&str] = &["detail", "message", "msg", "note", "warning", "warnings"];

/// What the fields say; `None` if the text is no JSON object, or none of its fields is known.
pub(super) fn verdict_of_fields(text: &str) -> Option<OutputVerdict> {
    let text = text.trim();
    if !text.starts_with('{') {
        return None;
    }
    let fields: Map<String, Value> = serde_json::from_str(text).ok()?;
    let mut said = Vec::new();
    collect(&fields, &mut said);
    let has = |wanted: OutputVerdict| said.contains(&wanted);
    match (has(OutputVerdict::Done), has(OutputVerdict::Failed), has(OutputVerdict::Doubtful)) {
        (false, false, false) => None,
        (true, false, false) => Some(OutputVerdict::Done),
        (false, true, false) => Some(OutputVerdict::Failed),
        _ => Some(OutputVerdict::Doubtful),
    }
}

fn collect(fields: &Map<String, Value>, said: &mut Vec<OutputVerdict>) {
    for (name, value) in fields {
        let name = name.to_lowercase().replace(['_', '-'], "");
        let is = |list: &[&str]| list.contains(&name.as_str());
        let is_set = !matches!(value, Value::Null | Value::Bool(false)) && !is_empty(value);
        match value {
            Value::Object(inner) if is(INNER) => collect(inner, said),
            _ if is(BAD) && is_set => said.push(OutputVerdict::Failed),
            _ if is(TRIED) && is_set => said.push(OutputVerdict::Doubtful),
            Value::Bool(true) if is(DONE) => said.push(OutputVerdict::Done),
            Value::Number(_) if is(DONE) && value.as_u64() == Some(1) => said.push(OutputVerdict::Done),
            _ if is(DONE) && !is_set => said.push(OutputVerdict::Failed),
            Value::Number(_) if is(DONE) => said.push(OutputVerdict::Doubtful),
            Value::String(word) if is(NAMED) && GOOD.contains(&word.to_lowercase().as_str()) => {
                said.push(OutputVerdict::Done);
            }
            Value::String(_) if is(NAMED) => said.push(OutputVerdict::Doubtful),
            Value::String(sentence) if is(SENTENCES) => said.extend(match verdict(sentence) {
                OutputVerdict::Silent => None,
                OutputVerdict::Refused | OutputVerdict::Failed => Some(OutputVerdict::Failed),
                OutputVerdict::Done => Some(OutputVerdict::Done),
                _ => Some(OutputVerdict::Doubtful),
            }),
            _ => {}
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_u64() == Some(0),
        _ => false,
    }
}
