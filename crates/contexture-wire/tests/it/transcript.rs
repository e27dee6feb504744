//! Reading recordings: every format, broken and odd ones, and long ones.

mod agents;
mod chats;
mod damage;
mod long;
mod times;

use contexture_core::item::Role;
use contexture_wire::transcript::{Record, Transcript};
use serde_json::Value;

/// A transcript as short lines: `role: text`, calls as `+id name {arguments}`, answers as `=id name`.
fn brief(records: &[Record]) -> String {
    let mut lines = String::new();
    for record in records {
        lines.push_str(&format!("{}: {:?}", record.role().map_or("tool", Role::as_str), record.text()));
        for call in record.calls() {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or(call.arguments.as_str().into());
            lines.push_str(&format!(" +{} {} {arguments}", call.call_id, call.name));
        }
        if let Some(output) = record.output().filter(|output| !output.call_id.is_empty()) {
            let name = output.extra.get("name").and_then(Value::as_str).unwrap_or("?");
            lines.push_str(&format!(" ={} {name}", output.call_id));
        }
        lines.push('\n');
    }
    lines
}

/// Checks the format and the messages of a recording; indentation of both texts does not matter.
#[track_caller]
fn check(recording: &str, format: &str, expected: &str) {
    let (transcript, report) = Transcript::read(recording.as_bytes()).expect("a known format");
    assert_eq!(brief(&transcript.records), unindent(expected));
    assert_eq!(report.format.to_string(), format);
    assert_eq!(report.messages, transcript.records.len() as u64);
}

fn unindent(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}
