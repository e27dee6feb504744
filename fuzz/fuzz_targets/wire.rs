//! Any request and any answer on the wire: what is kept keeps its bytes, and how an answer comes in pieces is the same.

#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use contexture::wire::{AnswerReader, Format, Plan, Request, digest, read};
use libfuzzer_sys::fuzz_target;

/// Messages of all formats, with gaps for text and for anything.
const MESSAGES: [&str; 22] = [
    r#"{"role":"user","content":$T}"#,
    r#"{"role":"user","content":[{"type":"text","text":$T,"cache_control":{"type":"ephemeral"}}]}"#,
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":$T,"input":{"command":$T}}]}"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":$T,"is_error":true}]}"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":$T}]}]}"#,
    r#"{"role":"assistant","content":[{"type":"thinking","thinking":$T,"signature":"s"},{"type":"text","text":$T}]}"#,
    r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":$T}}]}"#,
    r#"{"role":"tool","tool_call_id":"a","content":$T}"#,
    r#"{"role":"system","content":[{"type":"text","text":$T}]}"#,
    r#"{"type":"message","role":"user","content":[{"type":"input_text","text":$T}]}"#,
    r#"{"type":"function_call","call_id":"a","name":"shell","arguments":$T}"#,
    r#"{"type":"function_call_output","call_id":"a","output":$T}"#,
    r#"{"type":"reasoning","summary":[],"encrypted_content":$T}"#,
    r#"{"type":"custom_tool_call","call_id":"a","name":"apply_patch","input":$T}"#,
    r#"{"role":"developer","content":$V}"#,
    r#"{"role":$V,"content":$T,"content":$T}"#,
    r#"$V"#,
    r#"{"type":"item_reference","id":$T}"#,
    r#"{"role":"user","parts":[{"text":$T}]}"#,
    r#"{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":$T}},"thoughtSignature":$T},{"text":$T,"thought":true}]}"#,
    r#"{"role":"user","parts":[{"function_response":{"name":"f","response":{"output":$T}}},{"inlineData":$V}]}"#,
    r#"{"parts":$V}"#,
];

/// Parts of answers, as they stream.
const EVENTS: [&str; 14] = [
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":5}}}\n\n",
    "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":8,\"output_tokens\":1}}}\n\n",
    "data: [DONE]\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ": a comment\n",
    "data:",
    "\r\n",
    "\n",
    "{\"usage\":{\"input_tokens\":1,\"output_tokens\":18446744073709551615}}",
    "event: error\ndata: {\"type\":\"error\"}\n\n",
    "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":9,\"thoughtsTokenCount\":18446744073709551615,\"candidatesTokenCount\":2}}\n\n",
    "[{\"usageMetadata\":{\"promptTokenCount\":9}}\n,\r\n",
];

#[derive(Arbitrary, Debug)]
struct Message {
    template: u8,
    text: String,
    raw: String,
}

#[derive(Arbitrary, Debug)]
enum Part {
    Event(u8),
    Bytes(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
struct Input {
    format: u8,
    messages: Vec<Message>,
    rest: String,
    from: u8,
    made: String,
    answer: Vec<Part>,
    is_stream: bool,
    piece: u8,
}

fn body(format: Format, input: &Input) -> String {
    let fill = |message: &Message| {
        let text = serde_json::to_string(&message.text).expect("text is JSON");
        let template = MESSAGES[usize::from(message.template) % MESSAGES.len()];
        template.replace("$T", &text).replace("$V", &message.raw)
    };
    let messages: Vec<String> = input.messages.iter().take(32).map(fill).collect();
    let list = match format {
        Format::Messages | Format::Chat => "messages",
        Format::Responses => "input",
        Format::Gemini => "contents",
    };
    format!("{{\"model\":\"m\",\"{list}\":[{}]{}}}", messages.join(", "), input.rest)
}

fn check_request(format: Format, body: &str, input: &Input) {
    let Ok(request) = Request::parse(format, body) else { return };
    let count = request.messages().len();
    assert_eq!(request.rewritten(&Plan::keeping(count)).as_deref().ok(), Some(body), "what is kept is as it came");
    let _ = (request.model(), request.cache_key(), request.most_output(), request.marks());
    assert!(request.leading_instructions() <= count);
    for message in request.messages() {
        let units = read(format, message, None);
        assert_eq!(digest(format, message.get()).ok(), digest(format, message.get()).ok());
        if let Ok(units) = units {
            assert_eq!(units.len(), read(format, message, None).expect("as before").len());
        }
    }
    let from = usize::from(input.from).min(count);
    let mut plan = Plan::default();
    plan.push_made(Arc::from(input.made.as_str()));
    plan.push_kept(from..count);
    plan.cover(count);
    let Ok(rewritten) = request.rewritten(&plan) else { return };
    let again = Request::parse(format, &rewritten).expect("a rewritten body is a request");
    assert_eq!(again.messages().len(), count - from + 1, "one was made and the others are kept");
    assert_eq!(again.model(), request.model());
}

fn check_answer(input: &Input) {
    let part = |part: &Part| match part {
        Part::Event(at) => EVENTS[usize::from(*at) % EVENTS.len()].as_bytes().to_vec(),
        Part::Bytes(bytes) => bytes.clone(),
    };
    let bytes: Vec<u8> = input.answer.iter().take(64).flat_map(part).collect();
    let mut whole = AnswerReader::new(input.is_stream);
    whole.push(&bytes);
    let mut pieces = AnswerReader::new(input.is_stream);
    bytes.chunks(usize::from(input.piece).max(1)).for_each(|piece| pieces.push(piece));
    assert_eq!(whole.finish(), pieces.finish());
    assert_eq!((whole.has_ended(), whole.bytes()), (pieces.has_ended(), pieces.bytes()));
}

fuzz_target!(|input: Input| {
    let format = Format::ALL[usize::from(input.format) % Format::ALL.len()];
    check_request(format, &body(format, &input), &input);
    check_answer(&input);
});
