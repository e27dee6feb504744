//! The windows that a program prints, one request per line.
//!
//! `{"before": INDEX, "keep": K, "messages": [MESSAGE, …]}` is the request before message INDEX of the recording: the
//! first K messages of the request before it, then the others. A message has the plain form of `contexture replay --emit plain`, or
//! is `{"at": INDEX}` for that message of the recording as it is. `contexture replay --emit windows` prints them too.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use contexture::item::{FunctionCall, Item, Role};
use contexture::transcript::{Record, Transcript};
use contexture_measure::policies::{MadeMessage, ShownMessage, WindowChange, WindowEntry};
use serde_json::Value;

/// Reads one line.
///
/// # Errors
///
/// When it is not a request, or names a message that a recording of `len` messages does not have.
pub fn parsed(line: &str, len: usize) -> Result<WindowChange, String> {
    let request: Value = serde_json::from_str(line).map_err(|error| format!("a line that is no JSON: {error}"))?;
    let number = |name: &str| {
        let value = request[name].as_u64().and_then(|number| usize::try_from(number).ok());
        value.ok_or_else(|| format!("a request without the number `{name}`"))
    };
    let messages = request["messages"].as_array().ok_or("a request without `messages`")?;
    let added: Result<Vec<WindowEntry>, String> = messages.iter().map(|message| entry(message, len)).collect();
    Ok(WindowChange { before: number("before")?, keep: number("keep")?, added: added? })
}

fn entry(message: &Value, len: usize) -> Result<WindowEntry, String> {
    if let Some(at) = message["at"].as_u64() {
        let index = usize::try_from(at).ok().filter(|index| *index < len);
        let index = index.ok_or_else(|| format!("message {at}, which the recording does not have"))?;
        return Ok(whole(index));
    }
    let text = message["text"].as_str().unwrap_or_default();
    let record = match message["role"].as_str() {
        Some("assistant") => {
            let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
            Record::response(text, calls.iter().map(call))
        }
        Some("tool") => {
            Record::from_items(vec![Item::output(message["tool_call_id"].as_str().unwrap_or_default(), text)])
        }
        Some("system" | "developer") => Record::from_items(vec![Item::message(Role::System, text)]),
        Some("user") => Record::from_items(vec![Item::user(text)]),
        other => return Err(format!("a message of the role {}", other.unwrap_or("that is missing"))),
    };
    Ok(WindowEntry::Made(MadeMessage::new(record)))
}

fn call(call: &Value) -> FunctionCall {
    let text = |name: &str| call[name].as_str().unwrap_or_default();
    let arguments = match &call["arguments"] {
        Value::String(arguments) => arguments.clone(),
        other => other.to_string(),
    };
    FunctionCall::new(text("id"), text("name"), arguments)
}

fn whole(index: usize) -> WindowEntry {
    WindowEntry::RecordedSession { index, shown: ShownMessage::Full }
}

/// The messages of a recording, to be recognised in windows.
pub struct Recorded<'a> {
    records: &'a [Record],
    by_content: HashMap<u64, usize>,
}

impl<'a> Recorded<'a> {
    /// The messages of a recording. Of two with the same content, the first is recognised.
    pub fn new(transcript: &'a Transcript) -> Self {
        let mut by_content = HashMap::new();
        for (index, record) in transcript.records.iter().enumerate() {
            by_content.entry(hashed(record)).or_insert(index);
        }
        Self { records: &transcript.records, by_content }
    }

    /// The same request; messages that are sent as they were recorded are those of the recording.
    pub fn matched(&self, mut change: WindowChange) -> WindowChange {
        for entry in &mut change.added {
            let Some(made) = entry.made() else { continue };
            let found =
                self.by_content.get(&hashed(&made.record)).filter(|at| is_same(&made.record, &self.records[**at]));
            // What comes later in the recording cannot have been sent.
            if let Some(index) = found.filter(|at| **at < change.before) {
                *entry = whole(*index);
            }
        }
        change
    }
}

fn output_id(record: &Record) -> Option<&str> {
    record.output().map(|output| &*output.call_id)
}

fn hashed(record: &Record) -> u64 {
    let mut hasher = DefaultHasher::new();
    record.text().hash(&mut hasher);
    output_id(record).hash(&mut hasher);
    record.calls().for_each(|call| (&call.call_id, &call.name, &call.arguments).hash(&mut hasher));
    hasher.finish()
}

fn is_same(one: &Record, two: &Record) -> bool {
    let same_calls = one
        .calls()
        .map(|call| (&call.call_id, &call.name, &call.arguments))
        .eq(two.calls().map(|call| (&call.call_id, &call.name, &call.arguments)));
    one.is_response() == two.is_response() && one.text() == two.text() && output_id(one) == output_id(two) && same_calls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording() -> Transcript {
        let call = FunctionCall::new("c1", "Read", r#"{"file_path":"a.rs"}"#);
        Transcript {
            records: vec![
                Record::from_items(vec![Item::user("read it")]),
                Record::response("1. I read", [call]),
                Record::from_items(vec![Item::output("c1", "fn a() {}")]),
            ],
        }
    }

    #[test]
    fn messages_as_recorded_are_recognised_and_changed_ones_are_not() {
        let transcript = recording();
        let line = r#"{"before": 3, "keep": 0, "messages": [{"role": "user", "text": "read it"},
            {"role": "assistant", "text": "1. I read", "tool_calls": [{"id": "c1", "name": "Read", "arguments": {"file_path": "a.rs"}}]},
            {"role": "tool", "text": "fn …", "tool_call_id": "c1"}, {"at": 2}]}"#;
        let change = Recorded::new(&transcript).matched(parsed(line, 3).unwrap());
        assert_eq!(change.added[0], whole(0));
        assert_eq!(change.added[1], whole(1));
        assert_eq!(change.added[2].made().unwrap().record.text(), "fn …");
        assert_eq!(change.added[3], whole(2));
    }

    #[test]
    fn a_message_that_is_recorded_later_was_not_sent() {
        let transcript = recording();
        let line =
            r#"{"before": 1, "keep": 0, "messages": [{"role": "tool", "text": "fn a() {}", "tool_call_id": "c1"}]}"#;
        let change = Recorded::new(&transcript).matched(parsed(line, 3).unwrap());
        assert!(change.added[0].made().is_some());
    }

    #[test]
    fn what_is_no_request_is_said() {
        let check = |line: &str, expected: &str| {
            let error = parsed(line, 3).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("no", "no JSON");
        check(r#"{"keep": 0, "messages": []}"#, "`before`");
        check(r#"{"before": 1, "keep": 0}"#, "`messages`");
        check(r#"{"before": 1, "keep": 0, "messages": [{"at": 3}]}"#, "message 3");
        check(r#"{"before": 1, "keep": 0, "messages": [{"role": "oracle"}]}"#, "role oracle");
    }
}
