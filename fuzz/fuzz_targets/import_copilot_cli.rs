//! Recordings of Copilot CLI: whatever its records hold and wherever they are cut, calls and answers pair up.

#![no_main]

use contexture::transcript::Format;
use contexture_fuzz::{Layout, Record, check, recording};
use libfuzzer_sys::fuzz_target;

/// The record by which the format is known.
const FIRST: &str = r#"{"type":"user.message","data":{"content":"go"}}"#;

const TEMPLATES: &[&str] = &[
    r#"{"type":"user.message","data":{"content":$T,"transformedContent":$T,"attachments":[{"mimeType":"image/png"}]}}"#,
    r#"{"type":"assistant.message","data":{"messageId":"$I","content":$T,"toolRequests":[{"toolCallId":"$I","name":$T,"arguments":$V},{"toolCallId":"$I","name":"t"}]}}"#,
    r#"{"type":"assistant.message","data":{"messageId":"$I","toolRequests":[{"toolCallId":"$I","name":"t","arguments":$T}]}}"#,
    r#"{"type":"tool.execution_complete","data":{"toolCallId":"$I","result":{"content":$T}}}"#,
    r#"{"type":"tool.execution_complete","data":{"toolCallId":"$I","error":{"message":$T},"result":$V}}"#,
    r#"{"type":"assistant.message","data":{"parentToolCallId":"$I","content":$T}}"#,
    r#"{"type":"system.message","data":$V}"#,
];

fuzz_target!(|records: Vec<Record>| {
    check(&recording(FIRST, TEMPLATES, &records, Layout::Lines), Format::CopilotCli);
});
