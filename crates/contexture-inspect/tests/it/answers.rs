//! What the model answered is shown when it has arrived, and what the provider and the agent did about the window.

use contexture::wire::Format;
use contexture_gateway::{Gateway, RequestRecord};
use contexture_inspect::{Archive, ArchivedRequest, InspectServer};
use serde_json::{Value, json};

use super::agent::{Agent, Step};
use super::api::Asking;
use super::inspected::inspected;
use super::played::{records, small};
use super::provider::{Fault, Provider, post};

const MESSAGES: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"m1","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I look at "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"the zebra."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call_0001","name":"Read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"file_path\": \"/zebra.rs\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":12}}

event: message_stop
data: {"type":"message_stop"}

"#;

const CHAT: &str = r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"I look at "}}]}

data: {"choices":[{"index":0,"delta":{"content":"the zebra."}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_0001","type":"function","function":{"name":"Read","arguments":""}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"file_path\": \"/zebra.rs\"}"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

"#;

const RESPONSES: &str = r#"data: {"type":"response.created","response":{"id":"r1","status":"in_progress","output":[]}}

data: {"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look at the zebra.","annotations":[]}]}}

data: {"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_0001","name":"Read","arguments":"{\"file_path\": \"/zebra.rs\"}","status":"completed"}}

data: {"type":"response.completed","response":{"id":"r1","status":"completed","output":[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look at the zebra.","annotations":[]}]},{"id":"fc_1","type":"function_call","call_id":"call_0001","name":"Read","arguments":"{\"file_path\": \"/zebra.rs\"}","status":"completed"}],"usage":{"input_tokens":9,"output_tokens":12}}}

"#;

const GEMINI: &str = r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":"I look at "}]}}]}

data: {"candidates":[{"content":{"role":"model","parts":[{"text":"the zebra."},{"functionCall":{"name":"Read","args":{"file_path":"/zebra.rs"}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":12}}

"#;

/// A gateway whose provider gives one answer, after one request.
async fn answered(
    agent: &Agent,
    kind: &'static str,
    body: &'static str,
) -> (Provider, Gateway, InspectServer, Asking, String) {
    let provider = Provider::start().await;
    let (gateway, server) = inspected(&provider, small()).await;
    let headers = vec![("content-type", kind)];
    provider.set_fault(Some(Fault { status: 200, headers, body, only_with: None }));
    post(&gateway, agent.format, agent.request(1, true)).await;
    records(&gateway, 1).await;
    let asking = Asking::new(&server.inspector().url());
    let id = asking.get("conversations").await["items"][0]["id"].as_str().unwrap().to_owned();
    (provider, gateway, server, asking, id)
}

fn shown(story: &Value) -> Vec<(String, String, String)> {
    let text = |block: &Value, name: &str| block[name].as_str().unwrap().to_owned();
    let answer = story["answer"].as_array().unwrap();
    answer.iter().map(|block| (text(block, "kind"), text(block, "name"), text(block, "preview"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_shown_when_it_has_arrived() {
    for (format, body) in
        [(Format::Messages, MESSAGES), (Format::Chat, CHAT), (Format::Responses, RESPONSES), (Format::Gemini, GEMINI)]
    {
        let mut agent = Agent::new(format, "Please look at the zebra.");
        let (provider, gateway, _server, asking, id) = answered(&agent, "text/event-stream", body).await;
        let story = asking.get(&format!("conversations/{id}/requests/1/story")).await;
        let shown = shown(&story);
        assert_eq!(shown.len(), 2, "{format:?}: {story:#}");
        assert_eq!((&*shown[0].0, &*shown[0].2), ("text", "I look at the zebra."), "{format:?}");
        assert_eq!((&*shown[1].0, &*shown[1].1), ("call", "Read"), "{format:?}");
        assert!(shown[1].2.contains("/zebra.rs"), "{format:?}: {shown:?}");
        let text = asking.text(&id, &story["answer"][0]).await;
        assert_eq!(text, "I look at the zebra.", "{format:?}");
        // The agent sends it back in its own form, which is shown from then on, once.
        provider.set_fault(None);
        agent.call("I look at the zebra.", "Read", json!({"file_path": "/zebra.rs"}), "stripes");
        assert!(matches!(agent.steps.last(), Some(Step::Outputs(_))));
        let (status, answer) = post(&gateway, format, agent.request(3, true)).await;
        assert_eq!(status, 200, "{format:?}: {answer}");
        records(&gateway, 2).await;
        let page = asking.get("conversations").await;
        assert_eq!((&page["total"], &page["items"][0]["requests"]), (&json!(1), &json!(2)), "{format:?}: {page}");
        let story = asking.get(&format!("conversations/{id}/requests/1/story")).await;
        let kinds: Vec<&str> =
            story["answer"].as_array().unwrap().iter().filter_map(|one| one["kind"].as_str()).collect();
        assert!(kinds.ends_with(&["text", "call"]), "{format:?}: {story:#}");
        for words in ["look at the zebra.", "zebra.rs"] {
            let hits = asking.get(&format!("search?q={}", words.replace(' ', "%20"))).await;
            let of_model = |hit: &&Value| hit["source"] == "model";
            assert_eq!(hits["items"].as_array().unwrap().iter().filter(of_model).count(), 1, "{format:?}: {hits:#}");
        }
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_stream_is_shown_and_what_cannot_be_read_is_not() {
    let agent = Agent::new(Format::Messages, "Please look.");
    let whole = r#"{"id":"m1","role":"assistant","content":[{"type":"text","text":"All is well."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":12}}"#;
    for (kind, body, expected) in [
        ("application/json", whole, 1),
        ("application/json", "{\"content\": 7}", 0),
        ("text/event-stream", "data: no json\n\n", 0),
        ("text/event-stream", &MESSAGES[..600], 0),
        ("text/plain", "", 0),
    ] {
        let (_provider, gateway, _server, asking, id) = answered(&agent, kind, body).await;
        let story = asking.get(&format!("conversations/{id}/requests/1/story")).await;
        assert_eq!(story["answer"].as_array().unwrap().len(), expected, "{kind} {body}: {story:#}");
        assert_eq!(story["line"]["is_over"], true);
        gateway.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_is_forgotten_keeps_nothing_of_an_answer() {
    let agent = Agent::new(Format::Messages, "Please look at the zebra.");
    let (_provider, gateway, _server, asking, id) = answered(&agent, "text/event-stream", MESSAGES).await;
    let (status, _) = asking.act(reqwest::Method::DELETE, &format!("conversations/{id}"), json!({})).await;
    assert_eq!(status, 200);
    let hits = asking.get("search?q=zebra").await;
    assert_eq!(hits["items"], json!([]), "{hits:#}");
    gateway.stop().await;
}

/// An archive with some requests of one conversation, given by their bodies.
fn archived(bodies: &[(Value, RequestRecord)]) -> Archive {
    let archive = Archive::temporary().unwrap();
    for (body, record) in bodies {
        let record = RequestRecord { conversation: Some("c".to_owned()), status: 200, ..record.clone() };
        let came = body.to_string();
        let seen = ArchivedRequest {
            conversation: "c",
            parent: None,
            format: Format::Messages,
            came: &came,
            sent: None,
            record: record.clone(),
        };
        let ticket = archive.note_sent(seen).unwrap();
        archive.note_over(&ticket, &record).unwrap();
    }
    archive
}

#[test]
fn what_a_provider_has_compacted_is_said_not_to_be_seen() {
    let read = |id: &str, path: &str| {
        let lines: String = (1..40).map(|line| format!("{line:6}\tfn part_{line}() {{}}\n")).collect();
        [
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": path}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": lines}]}),
        ]
    };
    let [call, output] = read("1", "/before.rs");
    let [later, seen] = read("2", "/after.rs");
    let summary =
        json!({"role": "assistant", "content": [{"type": "compaction", "content": "We looked at before.rs."}]});
    let system = json!([{"type": "text", "text": "You are careful."}]);
    let said = json!({"role": "user", "content": "Please look."});
    let whole = |messages: &[&Value]| json!({"model": "claude-sonnet-4-5", "system": system, "messages": messages});
    let archive = archived(&[
        (whole(&[&said, &call, &output]), RequestRecord::default()),
        (whole(&[&said, &call, &output, &summary, &said, &later, &seen]), RequestRecord::default()),
    ]);
    let before = archive.story("c", 1).unwrap().unwrap();
    assert!(before.hidden.is_none() && before.files.iter().any(|file| file.path == "/before.rs"));
    let story = archive.story("c", 2).unwrap().unwrap();
    let hidden = story.hidden.expect("the provider's summary hides what is before it");
    // The message, the call and its output; the instructions are seen, and the message is said again.
    assert_eq!(hidden.blocks, 3);
    let summary = archive.block(hidden.block, 0, 1_000).unwrap().unwrap();
    assert_eq!(summary.text, "We looked at before.rs.");
    let names: Vec<&str> = story.parts.iter().flat_map(|part| &part.largest).map(|block| block.name.as_str()).collect();
    assert!(names.contains(&"You are careful.") && names.contains(&"/after.rs"), "{names:?}");
    assert!(!names.contains(&"/before.rs"), "{names:?}");
    let paths: Vec<&str> = story.files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["/after.rs"], "the model believes nothing about what it does not see");
}

#[test]
fn signs_that_something_was_missing_name_the_requests() {
    let counted = |repeated_reads: u64, failed_edits: u64| {
        let signals = json!({"turns": 2, "repeated_reads": repeated_reads, "failed_edits": failed_edits});
        serde_json::from_value::<RequestRecord>(json!({"signals": signals})).unwrap()
    };
    let body = |n: usize| json!({"model": "m", "messages": [{"role": "user", "content": format!("Part {n}")}]});
    let records = [(0, 0), (1, 0), (1, 0), (2, 1), (2, 1)];
    let bodies: Vec<_> =
        records.iter().enumerate().map(|(n, (reads, edits))| (body(n), counted(*reads, *edits))).collect();
    let archive = archived(&bodies);
    let told = |n: u64| {
        let signals = archive.story("c", n).unwrap().unwrap().signals;
        signals.into_iter().map(|line| (line.count, line.requests)).collect::<Vec<_>>()
    };
    assert_eq!(told(1), []);
    assert_eq!(told(3), [(1, vec![2])]);
    assert_eq!(told(5), [(2, vec![4, 2]), (1, vec![4])]);
}
