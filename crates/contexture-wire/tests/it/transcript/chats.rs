//! The chat formats of providers.

use contexture_wire::transcript::Transcript;

use super::{brief, check};

#[test]
fn openai_chat_is_read_as_a_request() {
    check(
        r#"{"model": "m", "tools": [{"type": "function"}], "messages": [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": [{"type": "text", "text": "what is this"}, {"type": "image_url", "image_url": {"url": "data:"}}]},
            {"role": "assistant", "content": null, "tool_calls": [
              {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}},
              {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "text"}}]},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "assistant", "content": "A cat."}
        ], "stream": true}"#,
        "OpenAI chat",
        r#"
        system: "rules"
        user: "what is this\n[image]"
        assistant: "" +c1 look {"at":1} +c2 patch {"input":"text"}
        tool: "two" =c2 patch
        tool: "one" =c1 look
        assistant: "A cat."
        "#,
    );
}

#[test]
fn openai_chat_is_read_as_a_list_and_line_by_line() {
    let messages = [
        r#"{"role":"user","content":"add"}"#,
        r#"{"role":"assistant","content":null,"function_call":{"name":"add","arguments":"{}"}}"#,
        r#"{"role":"function","name":"add","content":"2"}"#,
    ];
    let expected = r#"
        user: "add"
        assistant: "" +add add {}
        tool: "2" =add add
    "#;
    check(&format!("[{}]", messages.join(",")), "OpenAI chat", expected);
    check(&messages.join("\n"), "OpenAI chat", expected);
}

#[test]
fn anthropic_messages_are_read_with_their_system_prompt() {
    check(
        r#"{"model": "m", "system": [{"type": "text", "text": "rules", "cache_control": {}}], "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [
              {"type": "thinking", "thinking": "hm", "signature": "s"},
              {"type": "text", "text": "Reading."},
              {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}]},
            {"role": "user", "content": [
              {"type": "tool_result", "tool_use_id": "c1", "content": "fn a() {}"},
              {"type": "text", "text": "and be quick"}]},
            {"role": "assistant", "content": "Done."}
        ]}"#,
        "Anthropic messages",
        r#"
        system: "rules"
        user: "go"
        assistant: "Reading." +c1 read {"path":"a"}
        tool: "fn a() {}" =c1 read
        user: "and be quick"
        assistant: "Done."
        "#,
    );
}

#[test]
fn a_chat_is_named_by_the_first_message_that_tells() {
    let shared = r#"{"role":"user","content":"a"}"#;
    let tells = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{}}]}"#;
    let (_, report) = Transcript::read(format!("[{shared},{tells}]").as_bytes()).expect("a chat");
    assert_eq!(report.format.to_string(), "Anthropic messages");
    let (_, report) = Transcript::read(format!("[{shared}]").as_bytes()).expect("a chat");
    assert_eq!(report.format.to_string(), "OpenAI chat");
}

#[test]
fn only_the_first_of_several_documents_is_read() {
    let document = r#"{"messages":[{"role":"user","content":"a"}]}"#;
    let recording = format!("{document}\n{document}\n");
    let (transcript, report) = Transcript::read(recording.as_bytes()).expect("a chat");
    assert_eq!(brief(&transcript.records), "user: \"a\"\n");
    assert_eq!(report.broken[0].line, 2);
}
