//! Google's generateContent.

use std::borrow::Cow;
use std::collections::HashMap;

use contexture_core::item::{Content, FunctionCall, FunctionCallOutput, Item, Message, Reasoning, Role};
use contexture_core::model::{Delta, Deltas, ModelRequest, ToolSchema};
use serde::Serialize;
use serde_json::{Value, json};

use super::decode::{Decode, call_arguments, provider_error, text};
use super::error::{ClientError, malformed};
use super::turns::{MessageTurn, ToolNames, TurnPart, TurnPiece, is_blank, spoken_as_user, turns};

/// The field in which the model signs what it thought.
const SIGNATURE: &str = "thoughtSignature";

/// What Google's documentation names as the signature of a call that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Models that refuse a call of the current turn without a signature.
const SIGNING: [&str; 2] = ["gemini-3", "gemini-4"];

/// The text of a user's content that is inserted if the window begins with the model.
const NO_BEGINNING: &str = "(The beginning of this conversation is not shown.)";

/// Parts that are sent back as they came, by the field that they have.
const OWN_PARTS: [&str; 6] =
    ["executableCode", "codeExecutionResult", "inlineData", "fileData", "toolCall", "toolResponse"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GeminiContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTools<'a>>,
    contents: Vec<GeminiContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<Value>,
}

#[derive(Serialize)]
struct GeminiContent<'a> {
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
pub(super) fn body<'a>(request: &'a ModelRequest, model: &str) -> impl Serialize + 'a {
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
    let names = CallNames::of(request);
    let mut contents: Vec<GeminiContent<'_>> = Vec::new();
    for turn in turns(request) {
        let (role, pieces) = match turn {
            MessageTurn::Model(pieces) => ("model", pieces),
            MessageTurn::Others(pieces) => ("user", pieces),
        };
        let mut parts: Vec<GeminiPart<'_>> = Vec::new();
        for TurnPiece { part, .. } in pieces {
            push_part(&mut parts, part, &names);
        }
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

/// The names of tools on the wire, also by call: a response names its function.
struct CallNames<'a> {
    tools: ToolNames<'a>,
    calls: HashMap<&'a str, &'a str>,
}

impl<'a> CallNames<'a> {
    fn of(request: &'a ModelRequest) -> Self {
        let calls = request.items.iter().filter_map(|item| item.as_call());
        Self { tools: ToolNames::of(request), calls: calls.map(|call| (&*call.call_id, &*call.name)).collect() }
    }

    fn of_output(&self, output: &FunctionCallOutput) -> Cow<'a, str> {
        self.tools.on_wire(self.calls.get(&*output.call_id).copied().unwrap_or_default())
    }
}

fn push_part<'a>(parts: &mut Vec<GeminiPart<'a>>, part: TurnPart<'a>, names: &CallNames<'a>) {
    match part {
        TurnPart::Said(message) => push_said(parts, message),
        TurnPart::Asked(call) => parts.push(GeminiPart::Call {
            function_call: WireCall {
                id: &call.call_id,
                name: names.tools.on_wire(&call.name),
                args: call_arguments(call),
            },
            thought_signature: signature_of(call.extra.get(SIGNATURE)),
        }),
        TurnPart::Returned(output) => {
            let field = if output.outcome.is_error() { "error" } else { "output" };
            let response = json!({ field: output.output });
            let function_response = WireResponse { id: &output.call_id, name: names.of_output(output), response };
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

fn push_said<'a>(parts: &mut Vec<GeminiPart<'a>>, message: &'a Message) {
    for content in message.content.iter().filter(|content| !is_blank(content)) {
        parts.push(match content {
            Content::Text { text } => GeminiPart::Text {
                text: spoken_as_user(message.role, text),
                thought_signature: signature_of(message.extra.get(SIGNATURE)),
            },
            Content::Opaque(part) => GeminiPart::AsItCame(part),
        });
    }
}

/// A response while it is streamed.
#[derive(Default)]
pub(super) struct GeminiDecoder {
    parts: Vec<Value>,
    calls: usize,
    has_ended: bool,
}

impl Decode for GeminiDecoder {
    fn event(&mut self, event: &Value, deltas: &Deltas) -> Result<(), ClientError> {
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(provider_error(event));
        }
        if let Some(reason) = event["promptFeedback"]["blockReason"].as_str() {
            return Err(ClientError::Failed { message: format!("the prompt was blocked: {reason}") });
        }
        let candidate = &event["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.take(part, deltas);
        }
        self.has_ended |= candidate["finishReason"].is_string();
        match (candidate["finishReason"].as_str(), candidate["finishMessage"].as_str()) {
            (Some(reason @ "MALFORMED_FUNCTION_CALL"), why) if self.parts.is_empty() => {
                Err(ClientError::Failed { message: why.unwrap_or(reason).to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn finish(self: Box<Self>) -> Result<Vec<Item>, ClientError> {
        Ok(self.parts.into_iter().map(item).collect())
    }
}

impl GeminiDecoder {
    fn take(&mut self, part: &Value, deltas: &Deltas) {
        if let Some(call) = part.get("functionCall") {
            let name = Some(text(&call["name"]).to_owned());
            deltas.send(Delta::Call { index: self.calls, name, arguments: arguments_of(call) });
            self.calls += 1;
            self.parts.push(part.clone());
            return;
        }
        let Some(piece) = part["text"].as_str() else { return self.parts.push(part.clone()) };
        let is_thought = part["thought"] == true;
        if !piece.is_empty() {
            deltas.send(if is_thought { Delta::Reasoning { text: piece.to_owned() } } else { Delta::text(piece) });
        }
        // Pieces of one text go together; a signature ends it.
        let last = self.parts.last_mut().filter(|last| {
            last["text"].is_string() && (last["thought"] == true) == is_thought && last.get(SIGNATURE).is_none()
        });
        match last {
            Some(last) => {
                let whole = format!("{}{piece}", text(&last["text"]));
                last["text"] = whole.into();
                if let Some(signature) = part.get(SIGNATURE) {
                    last[SIGNATURE] = signature.clone();
                }
            }
            None if piece.is_empty() && part.get(SIGNATURE).is_none() => {}
            None => self.parts.push(part.clone()),
        }
    }
}

fn arguments_of(call: &Value) -> String {
    if call["args"].is_null() { "{}".to_owned() } else { call["args"].to_string() }
}

fn item(part: Value) -> Item {
    if let Some(call) = part.get("functionCall") {
        // The id is ours to make where the model makes none.
        let made = || format!("call-{}", uuid::Uuid::now_v7().simple());
        let id = call["id"].as_str().filter(|id| !id.is_empty()).map_or_else(made, str::to_owned);
        let mut asked = FunctionCall::new(&id, text(&call["name"]), arguments_of(call));
        if let Some(signature) = part.get(SIGNATURE) {
            asked.extra.insert(SIGNATURE, signature.clone());
        }
        return asked.into();
    }
    let Some(said) = part["text"].as_str().map(str::to_owned) else { return Item::Opaque(part) };
    if is_thought(&part) && (part["thought"] == true || said.is_empty()) {
        return Reasoning::new(said, Some(part)).into();
    }
    let mut message = Message::new(Role::Assistant, vec![Content::Text { text: said }]);
    if let Some(signature) = part.get(SIGNATURE) {
        message.extra.insert(SIGNATURE, signature.clone());
    }
    message.into()
}

/// Decodes a response that was not streamed.
pub(super) fn items(response: &Value) -> Result<Vec<Item>, ClientError> {
    if !response["candidates"].is_array() && response.get("promptFeedback").is_none() {
        return Err(malformed("it has no list `candidates`"));
    }
    let mut decoder = GeminiDecoder::default();
    decoder.event(response, &Deltas::default())?;
    Box::new(decoder).finish()
}
