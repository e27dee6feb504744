//! Anthropic messages: whatever its records hold and wherever they are cut, calls and answers pair up.

#![no_main]

use contexture::transcript::Format;
use contexture_fuzz::{Layout, Record, check, recording};
use libfuzzer_sys::fuzz_target;

/// The record by which the format is known.
const FIRST: &str = r#"{"role":"assistant","content":[{"type":"tool_use","id":"z","name":"t","input":{}}]}"#;

const TEMPLATES: &[&str] = &[
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"$I","content":$T},{"type":"text","text":$T}]}"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"$I","content":[$V]}]}"#,
    r#"{"role":"assistant","content":[{"type":"thinking"},{"type":"text","text":$T},{"type":"tool_use","id":"$I","name":$T,"input":{"x":$T}},{"type":"tool_use","id":"$I","name":"t","input":$V}]}"#,
    r#"{"role":"assistant","content":$V}"#,
    r#"{"role":$T,"content":$T}"#,
];

fuzz_target!(|records: Vec<Record>| {
    check(
        &recording(FIRST, TEMPLATES, &records, Layout::List(r#"{"system":"rules","messages":["#)),
        Format::AnthropicMessages,
    );
});
