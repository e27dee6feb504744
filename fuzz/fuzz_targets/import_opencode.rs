//! Exported sessions of OpenCode: whatever its records hold and wherever they are cut, calls and answers pair up.

#![no_main]

use contexture::transcript::Format;
use contexture_fuzz::{Layout, Record, check, recording};
use libfuzzer_sys::fuzz_target;

/// The record by which the format is known.
const FIRST: &str = r#"{"info":{"role":"user"},"parts":[{"type":"text","text":"go"}]}"#;

const TEMPLATES: &[&str] = &[
    r#"{"info":{"role":"user"},"parts":[{"type":"text","text":$T},{"type":"file","mime":$T,"filename":$T}]}"#,
    r#"{"info":{"role":"assistant"},"parts":[{"type":"step-start"},{"type":"text","text":$T},{"type":"tool","callID":"$I","tool":$T,"state":{"input":{"x":$T},"output":$T}}]}"#,
    r#"{"info":{"role":"assistant"},"parts":[{"type":"tool","callID":"$I","tool":"t","state":$V},{"type":"step-start"},{"type":"tool","callID":"$I","tool":"t"}]}"#,
    r#"{"info":{"role":$T},"parts":[$V]}"#,
    r#"{"info":{"role":"assistant"},"parts":[{"type":"tool","callID":"$I","state":{"input":$V,"error":$T,"attachments":[{"mime":"image/png"}]}}]}"#,
];

fuzz_target!(|records: Vec<Record>| {
    check(&recording(FIRST, TEMPLATES, &records, Layout::List(r#"{"info":{"id":"s"},"messages":["#)), Format::OpenCode);
});
