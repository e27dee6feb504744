//! OpenAI chat messages: whatever its records hold and wherever they are cut, calls and answers pair up.

#![no_main]

use contexture::transcript::Format;
use contexture_fuzz::{Layout, Record, check, recording};
use libfuzzer_sys::fuzz_target;

/// The record by which the format is known.
const FIRST: &str = r#"{"role":"assistant","tool_calls":[],"content":"go"}"#;

const TEMPLATES: &[&str] = &[
    r#"{"role":"user","content":[{"type":"text","text":$T},{"type":"image_url"}]}"#,
    r#"{"role":"assistant","content":$T,"tool_calls":[{"id":"$I","function":{"name":$T,"arguments":$T}},{"id":"$I","custom":{"name":"t","input":$T}}]}"#,
    r#"{"role":"assistant","tool_calls":[{"function":{"name":$T,"arguments":$V}},{"id":"$I"}]}"#,
    r#"{"role":"assistant","content":null,"function_call":{"name":"$I","arguments":$T}}"#,
    r#"{"role":"tool","tool_call_id":"$I","content":$T}"#,
    r#"{"role":"function","name":"$I","content":$V}"#,
    r#"{"role":$T,"content":$V}"#,
];

fuzz_target!(|records: Vec<Record>| {
    check(&recording(FIRST, TEMPLATES, &records, Layout::List(r#"{"messages":["#)), Format::OpenAiChat);
});
