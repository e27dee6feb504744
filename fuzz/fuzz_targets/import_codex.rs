//! Recordings of Codex: whatever its records hold and wherever they are cut, calls and answers pair up.

#![no_main]

use contexture::transcript::Format;
use contexture_fuzz::{Layout, Record, check, recording};
use libfuzzer_sys::fuzz_target;

/// The record by which the format is known.
const FIRST: &str = r#"{"type":"session_meta","payload":{"id":"s"}}"#;

const TEMPLATES: &[&str] = &[
    r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":$T}]}}"#,
    r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":$V}}"#,
    r#"{"type":"response_item","payload":{"type":"function_call","name":$T,"arguments":$T,"call_id":"$I"}}"#,
    r#"{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":$T,"id":"$I"}}"#,
    r#"{"type":"response_item","payload":{"type":"local_shell_call","action":$V,"call_id":"$I"}}"#,
    r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"$I","output":$T}}"#,
    r#"{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"$I","output":$V}}"#,
    r#"{"type":"compacted","payload":{"message":$T}}"#,
    r#"{"type":"message","role":$T,"content":$V}"#,
];

fuzz_target!(|records: Vec<Record>| {
    check(&recording(FIRST, TEMPLATES, &records, Layout::Lines), Format::Codex);
});
