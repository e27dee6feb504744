//! Recordings of Claude Code: whatever its records hold and wherever they are cut, calls and answers pair up.

#![no_main]

use contexture::transcript::Format;
use contexture_fuzz::{Layout, Record, check, recording};
use libfuzzer_sys::fuzz_target;

/// The record by which the format is known.
const FIRST: &str = r#"{"type":"user","message":{"role":"user","content":"go"}}"#;

const TEMPLATES: &[&str] = &[
    r#"{"type":"assistant","message":{"id":"$I","content":[{"type":"text","text":$T},{"type":"tool_use","id":"$I","name":$T,"input":{"x":$T}}]}}"#,
    r#"{"type":"assistant","message":{"id":"$I","content":[{"type":"tool_use","id":"$I","input":$V}]}}"#,
    r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"$I","content":$T},{"type":"text","text":$T}]}}"#,
    r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"$I","content":[{"type":"image"},$V]}]}}"#,
    r#"{"type":"user","isMeta":true,"message":{"content":$V}}"#,
    r#"{"type":"assistant","isSidechain":true,"message":{"id":"$I","content":$T}}"#,
    r#"{"type":"attachment","attachment":{"content":$V,"snippet":$T}}"#,
    r#"{"type":$T,"message":$V,"uuid":"u","sessionId":"s"}"#,
];

fuzz_target!(|records: Vec<Record>| {
    check(&recording(FIRST, TEMPLATES, &records, Layout::Lines), Format::ClaudeCode);
});
