//! The formats of agents.

use contexture_wire::transcript::Transcript;

use super::check;

#[test]
fn claude_code_joins_the_lines_of_a_response_and_keeps_answers_behind_it() {
    check(
        r#"
        {"type":"summary","summary":"Fix the parser","leafUuid":"u9"}
        {"type":"user","uuid":"u1","isSidechain":false,"message":{"role":"user","content":"fix the parser"}}
        {"type":"user","uuid":"u2","isMeta":true,"message":{"role":"user","content":[{"type":"text","text":"a skill"}]}}
        {"type":"assistant","uuid":"u3","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"\n\n"}]}}
        {"type":"assistant","uuid":"u4","message":{"id":"m1","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"}]}}
        {"type":"assistant","uuid":"u5","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Reading both."}]}}
        {"type":"assistant","uuid":"u6","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"file_path":"a.rs"}}]}}
        {"type":"user","uuid":"u7","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"fn a() {}"}]},"toolUseResult":{"any":"thing"}}
        {"type":"assistant","uuid":"u8","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"c2","name":"Read","input":{"file_path":"b.png"}}]}}
        {"type":"user","uuid":"u9","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"a picture"},{"type":"image","source":{}}]}]}}
        {"type":"progress","data":{"type":"hook_progress"},"uuid":"p"}
        {"type":"assistant","uuid":"s","isSidechain":true,"message":{"id":"m9","role":"assistant","content":[{"type":"text","text":"below"}]}}
        {"type":"assistant","uuid":"v","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"Done."}]}}
        "#,
        "Claude Code",
        r#"
        user: "fix the parser"
        system: "a skill"
        assistant: "Reading both." +c1 Read {"file_path":"a.rs"} +c2 Read {"file_path":"b.png"}
        tool: "fn a() {}" =c1 Read
        tool: "a picture\n[image]" =c2 Read
        assistant: "Done."
        "#,
    );
}

#[test]
fn claude_code_says_what_was_attached() {
    check(
        r#"
        {"type":"attachment","attachment":{"type":"hook_success","content":"","stdout":"x"},"uuid":"1"}
        {"type":"attachment","attachment":{"type":"edited_text_file","filename":"a.rs","snippet":"1\tfn a()"},"uuid":"2"}
        {"type":"attachment","attachment":{"type":"task_reminder","content":[{"id":"1","subject":"test"},"plain"]},"uuid":"3"}
        {"type":"attachment","attachment":{"type":"file","content":{"type":"text","file":{"filePath":"m.md","content":"memo"}}},"uuid":"4"}
        {"type":"attachment","attachment":{"type":"task_reminder","content":[]},"uuid":"5"}
        "#,
        "Claude Code",
        r#"
        system: "1\tfn a()"
        system: "{\"id\":\"1\",\"subject\":\"test\"}\nplain"
        system: "memo"
        "#,
    );
}

#[test]
fn claude_code_is_read_as_it_prints_its_events() {
    check(
        r#"
        {"type":"system","subtype":"init","session_id":"s","uuid":"i","tools":["Bash"]}
        {"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Task","input":{}}]},"parent_tool_use_id":null,"session_id":"s"}
        {"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"inside the task"}]},"parent_tool_use_id":"t1","session_id":"s"}
        {"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]},"parent_tool_use_id":null,"session_id":"s"}
        {"type":"result","subtype":"success","result":"ok","session_id":"s"}
        "#,
        "Claude Code",
        r#"
        assistant: "" +t1 Task {}
        tool: "ok" =t1 Task
        "#,
    );
}

#[test]
fn codex_gathers_text_and_calls_until_an_answer_comes() {
    check(
        r#"
        {"timestamp":"t","type":"session_meta","payload":{"id":"s","cwd":"/src"}}
        {"timestamp":"t","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"},{"type":"input_text","text":"more rules"}]}}
        {"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}
        {"timestamp":"t","type":"event_msg","payload":{"type":"user_message","message":"go"}}
        {"timestamp":"t","type":"response_item","payload":{"type":"reasoning","summary":[]}}
        {"timestamp":"t","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Looking."}]}}
        {"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"cmd\":\"ls\"}","call_id":"c1"}}
        {"timestamp":"t","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch","call_id":"c2","status":"completed"}}
        {"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a\nb"}}
        {"timestamp":"t","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"patched"}]}}
        {"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"not json","call_id":"c3"}}
        {"timestamp":"t","type":"compacted","payload":{"message":"so far: a patch"}}
        {"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"c3","output":{"content":"failed","success":false}}}
        "#,
        "Codex",
        r#"
        system: "rules\nmore rules"
        user: "go"
        assistant: "Looking." +c1 shell {"cmd":"ls"} +c2 apply_patch {"input":"*** Begin Patch"}
        tool: "a\nb" =c1 shell
        tool: "patched" =c2 apply_patch
        assistant: "" +c3 shell "not json"
        system: "so far: a patch"
        tool: "failed" =c3 shell
        "#,
    );
}

#[test]
fn codex_is_read_without_its_wrapper_too() {
    check(
        r#"
        {"id":"s","timestamp":"t","instructions":null}
        {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}
        {"record_type":"state"}
        {"type":"local_shell_call","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"]}}
        {"type":"function_call_output","call_id":"c1","output":"a"}
        "#,
        "Codex",
        r#"
        user: "go"
        assistant: "" +c1 local_shell {"command":["ls"],"type":"exec"}
        tool: "a" =c1 local_shell
        "#,
    );
}

#[test]
fn opencode_gives_each_step_its_calls_and_each_call_its_own_id() {
    check(
        r#"{
          "info": {"id": "ses_1", "title": "a session"},
          "messages": [
            {"info": {"role": "user", "summary": {"diffs": []}}, "parts": [
              {"type": "text", "text": "review"},
              {"type": "text", "text": "not for the model", "ignored": true},
              {"type": "file", "mime": "image/png", "url": "data:", "filename": "a.png"},
              {"type": "file", "mime": "text/plain", "url": "file:", "filename": "b.txt"}]},
            {"info": {"role": "assistant"}, "parts": [
              {"type": "step-start"},
              {"type": "reasoning", "text": "hm"},
              {"type": "tool", "callID": "X", "tool": "bash", "state": {"status": "completed", "input": {"command": "ls"}, "output": "a", "attachments": [{"mime": "image/png", "url": "data:"}]}},
              {"type": "tool", "callID": "X", "tool": "read", "state": {"status": "error", "input": {"filePath": "b"}, "error": "no such file"}},
              {"type": "step-finish"},
              {"type": "step-start"},
              {"type": "text", "text": "Nothing found."},
              {"type": "tool", "callID": "Y", "tool": "bash", "state": {"status": "running", "input": {}}},
              {"type": "step-finish"}]}
          ]
        }"#,
        "OpenCode",
        r#"
        user: "review\n[image]\n[file b.txt]"
        assistant: "" +X bash {"command":"ls"} +X~2 read {"filePath":"b"}
        tool: "a\n[image]" =X bash
        tool: "no such file" =X~2 read
        assistant: "Nothing found." +Y bash {}
        tool: "" =Y bash
        "#,
    );
}

#[test]
fn copilot_cli_shows_what_was_sent_and_leaves_out_agents_below() {
    check(
        r#"
        {"type":"session.start","data":{"sessionId":"s","version":1},"id":"1"}
        {"type":"system.message","data":{"role":"system","content":"rules"},"id":"2"}
        {"type":"user.message","data":{"content":"go","transformedContent":"<date/>go","attachments":[{"mimeType":"image/png"}]},"id":"3"}
        {"type":"assistant.message","data":{"messageId":"m1","content":"","toolRequests":[{"toolCallId":"c1","name":"bash","arguments":{"command":"ls"},"type":"function"},{"toolCallId":"c2","name":"view","arguments":"{\"path\":\"a\"}"}]},"id":"4"}
        {"type":"tool.execution_start","data":{"toolCallId":"c1","toolName":"bash"},"id":"5"}
        {"type":"tool.execution_complete","data":{"toolCallId":"c2","success":false,"error":{"message":"Path does not exist"}},"id":"6"}
        {"type":"assistant.message","data":{"messageId":"m7","content":"below","parentToolCallId":"c1"},"id":"7"}
        {"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"a","detailedContent":"aa"}},"id":"8"}
        {"type":"assistant.message","data":{"messageId":"m2","content":"Done.","toolRequests":[]},"id":"9"}
        "#,
        "Copilot CLI",
        r#"
        system: "rules"
        user: "<date/>go\n[image]"
        assistant: "" +c1 bash {"command":"ls"} +c2 view {"path":"a"}
        tool: "Path does not exist" =c2 view
        tool: "a" =c1 bash
        assistant: "Done."
        "#,
    );
}

#[test]
fn plain_lines_are_taken_one_to_one() {
    let recording = r#"{"role":"user","text":"rules","tool_calls":[],"tool_call_id":null,"name":null,"meta":{"origin":"system"}}
{"role":"user","text":"go","tool_calls":[],"tool_call_id":null,"name":null}
{"role":"assistant","text":"","tool_calls":[{"id":"c","name":"sh","arguments":{"cmd":"ls"}}],"tool_call_id":null,"name":null}
{"role":"assistant","text":"","tool_calls":[{"id":"c","name":"sh","arguments":"ls"}],"tool_call_id":null,"name":null}
{"role":"tool","text":"a","tool_calls":[],"tool_call_id":"c","name":"sh"}
{"role":"tool","text":"b","tool_calls":[],"tool_call_id":"other","name":null}
"#;
    let expected = r#"
        system: "rules"
        user: "go"
        assistant: "" +c sh {"cmd":"ls"}
        assistant: "" +c sh "ls"
        tool: "a" =c sh
        tool: "b" =other ?
    "#;
    check(recording, "plain", expected);
    let (transcript, _) = Transcript::read(recording.as_bytes()).expect("the plain form");
    let mut written = Vec::new();
    for record in &transcript.records {
        contexture_wire::transcript::write(&mut written, record).expect("a vector takes all");
    }
    assert_eq!(String::from_utf8(written).expect("JSON is text"), recording);
}

#[test]
fn what_is_left_out_is_counted() {
    let recording = r#"
        {"type":"user","message":{"role":"user","content":[{"type":"image"},{"type":"text","text":"look"}]}}
        {"type":"assistant","message":{"id":"m","content":[{"type":"thinking","thinking":"a"},{"type":"redacted_thinking"}]}}
        {"type":"assistant","isSidechain":true,"message":{"id":"n","content":"x"}}
        {"type":"assistant","message":{"id":"o","content":[{"type":"tool_use","id":"c","name":"Read","input":{}}]}}
        {"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"elsewhere","content":"x"}]}}
        {"type":"assistant","message":{"id":"p","content":[{"type":"tool_use","id":"c","name":"Read","input":{}}]}}
    "#;
    let (_, report) = Transcript::read(recording.as_bytes()).expect("a known format");
    let counts = (report.images, report.thinking_blocks, report.side_chain_records);
    assert_eq!(counts, (1, 2, 1));
    assert_eq!((report.unanswered_calls, report.orphan_results, report.duplicate_ids), (2, 1, 1));
}
