//! Requests of Google's generateContent.

use std::borrow::Cow;

use contexture_core::item::{Content, Message, Reasoning};
use contexture_core::model::{ModelRequest, ToolSchema};
use serde::Serialize;
use serde_json::{Value, json};

use super::spelling::{self, Spelling};
use super::turns::{MessageTurn, NO_BEGINNING, TurnPart, TurnPiece, spoken_as_user, turns};

/// The field in which the model signs what it thought.
pub const SIGNATURE: &str = "thoughtSignature";

/// What Google's documentation names as the signature of a call that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Models that refuse a call of the current turn without a signature.
const SIGNING: [&str; 2] = ["gemini-3", "gemini-4"];

/// Parts that are sent back as they came, by the field that they have.
const OWN_PARTS: [&str; 6] =
    ["executableCode", "codeExecutionResult", "inlineData", "fileData", "toolCall", "toolResponse"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GeminiContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTools<'a>>,
    contents: Vec<GeminiContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<Value>,
}

#[derive(Serialize)]
pub(super) struct GeminiContent<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    role: &'static str,
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireTools<'a> {
    function_declarations: Vec<GeminiTool<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiTool<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum GeminiPart<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    Call {
        function_call: WireCall<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    Response {
        function_response: WireResponse<'a>,
    },
    AsItCame(&'a Value),
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    name: Cow<'a, str>,
    args: Value,
}

#[derive(Serialize)]
struct WireResponse<'a> {
    id: &'a str,
    name: Cow<'a, str>,
    response: Value,
}

/// The body of a request. Whether it is streamed is in its address.
pub(super) fn body<'a>(request: &'a ModelRequest, model: &str) -> GeminiBody<'a> {
    let is_spoken = !request.instructions.trim().is_empty();
    let spoken = || vec![GeminiPart::Text { text: Cow::Borrowed(&*request.instructions), thought_signature: None }];
    let tools: Vec<GeminiTool<'_>> = request.tools.iter().map(wire_tool).collect();
    GeminiBody {
        system_instruction: is_spoken.then(|| GeminiContent { role: "", parts: spoken() }),
        tools: if tools.is_empty() { Vec::new() } else { vec![WireTools { function_declarations: tools }] },
        contents: contents(request, SIGNING.iter().any(|start| model.starts_with(start))),
        generation_config: request.max_output_tokens.map(|most| json!({ "maxOutputTokens": most })),
    }
}

fn wire_tool(tool: &ToolSchema) -> GeminiTool<'_> {
    let ToolSchema { name, description, parameters, .. } = tool;
    GeminiTool { name, description, parameters_json_schema: parameters }
}

fn contents(request: &ModelRequest, is_signing: bool) -> Vec<GeminiContent<'_>> {
    let calls = request.items.iter().filter_map(|item| item.as_call());
    let spelling = Spelling::accepted(request).with_calls(calls);
    let mut contents: Vec<GeminiContent<'_>> = Vec::new();
    for turn in turns(request.items.iter().map(|item| &**item)) {
        let GeminiContent { role, mut parts } = content(turn, &spelling);
        if is_signing {
            sign(&mut parts);
        }
        if contents.is_empty() && role == "model" {
            let text = Cow::Borrowed(NO_BEGINNING);
            contents
                .push(GeminiContent { role: "user", parts: vec![GeminiPart::Text { text, thought_signature: None }] });
        }
        match contents.last_mut().filter(|last| last.role == role) {
            _ if parts.is_empty() => {}
            Some(last) => last.parts.append(&mut parts),
            None => contents.push(GeminiContent { role, parts }),
        }
    }
    contents
}

/// The content of a turn, which may have no parts.
pub(super) fn content<'a>(turn: MessageTurn<'a>, spelling: &Spelling<'a>) -> GeminiContent<'a> {
    let (role, pieces) = match turn {
        MessageTurn::Model(pieces) => ("model", pieces),
        MessageTurn::Others(pieces) => ("user", pieces),
    };
    let mut parts = Vec::new();
    for TurnPiece { part, .. } in pieces {
        push_part(&mut parts, part, spelling);
    }
    GeminiContent { role, parts }
}

/// The first call of a turn has the signature of all of them.
fn sign(parts: &mut [GeminiPart<'_>]) {
    let first = parts.iter_mut().find_map(|part| match part {
        GeminiPart::Call { thought_signature, .. } => Some(thought_signature),
        _ => None,
    });
    if let Some(signature @ None) = first {
        *signature = Some(NO_SIGNATURE);
    }
}

fn push_part<'a>(parts: &mut Vec<GeminiPart<'a>>, part: TurnPart<'a>, spelling: &Spelling<'a>) {
    match part {
        TurnPart::Said(message) => push_said(parts, message, spelling),
        TurnPart::Asked(call) => parts.push(GeminiPart::Call {
            function_call: WireCall {
                id: &call.call_id,
                name: spelling.name(&call.name),
                args: spelling::arguments(call),
            },
            thought_signature: signature_of(call.extra.get(SIGNATURE)),
        }),
        TurnPart::Returned(output) => {
            let field = if output.outcome.is_error() { "error" } else { "output" };
            let response = json!({ field: output.output });
            let function_response =
                WireResponse { id: &output.call_id, name: spelling.name_of_output(output), response };
            parts.push(GeminiPart::Response { function_response });
        }
        // Reasoning of other providers means nothing to this one.
        TurnPart::Thought(Reasoning { opaque: Some(part), .. }) if is_thought(part) => {
            parts.push(GeminiPart::AsItCame(part));
        }
        TurnPart::Thought(_) => {}
        TurnPart::Unknown(part) if OWN_PARTS.iter().any(|name| part.get(name).is_some()) => {
            parts.push(GeminiPart::AsItCame(part));
        }
        TurnPart::Unknown(_) => {}
    }
}

fn signature_of(signature: Option<&Value>) -> Option<&str> {
    signature.and_then(Value::as_str).filter(|signature| !signature.is_empty())
}

fn is_thought(part: &Value) -> bool {
    part["thought"] == true || (part.get("type").is_none() && part.get(SIGNATURE).is_some())
}

fn push_said<'a>(parts: &mut Vec<GeminiPart<'a>>, message: &'a Message, spelling: &Spelling<'a>) {
    for content in message.content.iter().filter(|content| spelling.sends(content)) {
        parts.push(match content {
            Content::Text { text } => GeminiPart::Text {
                text: spoken_as_user(message.role, text),
                thought_signature: signature_of(message.extra.get(SIGNATURE)),
            },
            Content::Opaque(part) => GeminiPart::AsItCame(part),
        });
    }
}
