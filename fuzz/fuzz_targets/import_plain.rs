//! The plain form: whatever its records hold and wherever they are cut, calls and answers pair up.

#![no_main]

use contexture::transcript::Format;
use contexture_fuzz::{Layout, Record, check, recording};
use libfuzzer_sys::fuzz_target;

/// The record by which the format is known.
const FIRST: &str = r#"{"role":"user","text":"go","tool_calls":[]}"#;

const TEMPLATES: &[&str] = &[
    r#"{"role":"user","text":$T,"meta":{"origin":$T}}"#,
    r#"{"role":"assistant","text":$T,"tool_calls":[{"id":"$I","name":$T,"arguments":$V}]}"#,
    r#"{"role":"tool","text":$T,"tool_call_id":"$I","name":$T}"#,
    r#"{"role":$T,"text":$T,"tool_calls":$V}"#,
];

fuzz_target!(|records: Vec<Record>| {
    check(&recording(FIRST, TEMPLATES, &records, Layout::Lines), Format::Plain);
});
