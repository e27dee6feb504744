//! When things were said, where a recording tells.

use contexture_wire::transcript::Transcript;

#[track_caller]
fn check(recording: &str, expected: &[Option<u64>]) {
    let (transcript, _) = Transcript::read(recording.as_bytes()).expect("a known format");
    assert_eq!(transcript.records.iter().map(|record| record.time_ms()).collect::<Vec<_>>(), expected);
}

#[test]
fn agents_say_when_and_a_response_is_as_old_as_its_last_piece() {
    let claude_code = r#"
        {"type":"user","timestamp":"1970-01-01T00:00:01.000Z","message":{"role":"user","content":"look"}}
        {"type":"assistant","timestamp":"1970-01-01T00:00:02.500Z","message":{"id":"m","content":[{"type":"text","text":"I look."}]}}
        {"type":"assistant","timestamp":"1970-01-01T00:00:03.000Z","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"Read","input":{}}]}}
        {"type":"user","timestamp":"1970-01-01T00:09:00.000Z","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"it"}]}}
        {"type":"user","message":{"role":"user","content":"without a time"}}
    "#;
    check(claude_code, &[Some(1_000), Some(3_000), Some(540_000), None]);
    let codex = r#"
        {"timestamp":"1970-01-01T00:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"look"}]}}
        {"timestamp":"1970-01-01T00:00:02Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}}
        {"timestamp":"1970-01-01T00:00:05Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"ok"}}
    "#;
    check(codex, &[Some(1_000), Some(2_000), Some(5_000)]);
}

#[test]
fn the_plain_form_has_no_times() {
    check(r#"{"role":"user","text":"look","timestamp":"1970-01-01T00:00:01Z"}"#, &[None]);
}
