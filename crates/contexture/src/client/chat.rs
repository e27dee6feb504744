//! OpenAI chat completions, and compatible servers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use contexture_core::item::{Content, FunctionCall, Item, Message, Reasoning, Role};
use contexture_core::model::{Delta, Deltas, ModelRequest, ToolSchema};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::decode::{Decode, call_arguments, is_object, provider_error, text};
use super::error::{ClientError, malformed};
use super::turns::{MessageTurn, ToolNames, TurnPart, TurnPiece, is_blank, spoken, spoken_as_user, turns};

/// Fields in which servers of this format return reasoning. They are sent back unchanged, because some providers need
/// them.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];

/// The body of a request. Texts are borrowed: a history is written once, and not copied before.
#[derive(Serialize)]
struct ChatBody<'a> {
    model: &'a str,
    stream: bool,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    content: ChatContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatToolCall<'a>>,
    /// Reasoning, in the fields in which it came.
    #[serde(flatten)]
    thoughts: BTreeMap<&'a str, &'a Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChatContent<'a> {
    Nothing,
    Text(Cow<'a, str>),
    Parts(Vec<ChatPart<'a>>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChatPart<'a> {
    Text {
        #[serde(rename = "type")]
        kind: &'static str,
        text: Cow<'a, str>,
    },
    AsItCame(&'a Value),
}

#[derive(Serialize)]
struct ChatToolCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: ChatFunction<'a>,
}

#[derive(Serialize)]
struct ChatFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Declared<'a>,
}

#[derive(Serialize)]
struct Declared<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> ChatTool<'a> {
    fn of(tool: &'a ToolSchema) -> Self {
        let ToolSchema { name, description, parameters, .. } = tool;
        Self { kind: "function", function: Declared { name, description, parameters } }
    }
}

impl<'a> ChatMessage<'a> {
    fn new(role: &'static str, content: ChatContent<'a>) -> Self {
        Self { role, content, tool_call_id: None, tool_calls: Vec::new(), thoughts: BTreeMap::new() }
    }
}

/// The body of a request.
pub(super) fn body<'a>(
    request: &'a ModelRequest,
    model: &'a str,
    stream: bool,
    developer_role: Option<&'static str>,
) -> impl Serialize + 'a {
    let mut messages = Vec::with_capacity(request.items.len() + 1);
    if !request.instructions.trim().is_empty() {
        messages.push(ChatMessage::new("system", ChatContent::Text((&*request.instructions).into())));
    }
    let names = ToolNames::of(request);
    for turn in turns(request) {
        match turn {
            MessageTurn::Model(pieces) => messages.extend(model_message(pieces, &names)),
            MessageTurn::Others(pieces) => {
                messages.extend(pieces.into_iter().filter_map(|piece| other(piece, developer_role)));
            }
        }
    }
    let stream_options = stream.then(|| json!({ "include_usage": true }));
    let tools = request.tools.iter().map(ChatTool::of).collect();
    ChatBody { model, stream, messages, stream_options, tools, max_tokens: request.max_output_tokens }
}

/// One message with everything the model produced in a row: text, reasoning and calls.
fn model_message<'a>(pieces: Vec<TurnPiece<'a>>, names: &ToolNames<'a>) -> Option<ChatMessage<'a>> {
    let mut said: Vec<&'a str> = Vec::new();
    let mut message = ChatMessage::new("assistant", ChatContent::Nothing);
    for piece in pieces {
        match piece.part {
            TurnPart::Said(message) => said.extend(message.content.iter().filter_map(Content::as_text)),
            TurnPart::Asked(call) => {
                let function = ChatFunction { name: names.on_wire(&call.name), arguments: arguments_text(call) };
                message.tool_calls.push(ChatToolCall { id: &call.call_id, kind: "function", function });
            }
            TurnPart::Thought(Reasoning { opaque: Some(Value::Object(fields)), .. }) => {
                let thoughts = fields.iter().filter(|(name, _)| THOUGHTS.contains(&name.as_str()));
                message.thoughts.extend(thoughts.map(|(name, value)| (name.as_str(), value)));
            }
            TurnPart::Thought(_) | TurnPart::Returned(_) | TurnPart::Unknown(_) => {}
        }
    }
    message.content = match said.as_slice() {
        [] if message.tool_calls.is_empty() => return None,
        [] => ChatContent::Nothing,
        [text] => ChatContent::Text((*text).into()),
        texts => ChatContent::Text(texts.join("\n").into()),
    };
    Some(message)
}

/// The arguments of a call as the model wrote them, if they are an object.
fn arguments_text(call: &FunctionCall) -> Cow<'_, str> {
    match is_object(&call.arguments) {
        true => Cow::Borrowed(&call.arguments),
        false => call_arguments(call).to_string().into(),
    }
}

/// A message that is not from the model.
fn other<'a>(piece: TurnPiece<'a>, developer_role: Option<&'static str>) -> Option<ChatMessage<'a>> {
    match piece.part {
        TurnPart::Returned(output) => {
            let content = ChatContent::Text(output.output.as_str().into());
            Some(ChatMessage { tool_call_id: Some(&output.call_id), ..ChatMessage::new("tool", content) })
        }
        TurnPart::Said(message) => said(message, developer_role),
        _ => None,
    }
}

fn said<'a>(message: &'a Message, developer_role: Option<&'static str>) -> Option<ChatMessage<'a>> {
    let speaks_as_user = developer_role.is_none() || message.role == Role::User;
    let role = if speaks_as_user { "user" } else { developer_role? };
    let shown = |text: &'a str| -> Cow<'a, str> {
        if speaks_as_user { spoken_as_user(message.role, text) } else { spoken(message.role, text) }
    };
    let parts: Vec<&'a Content> = message.content.iter().filter(|content| !is_blank(content)).collect();
    let content = match parts.as_slice() {
        [] => return None,
        // Every server of this format supports plain text.
        [Content::Text { text }] => ChatContent::Text(shown(text)),
        parts => {
            let part = |part: &&'a Content| match part {
                Content::Text { text } => ChatPart::Text { kind: "text", text: shown(text) },
                Content::Opaque(part) => ChatPart::AsItCame(part),
            };
            ChatContent::Parts(parts.iter().map(part).collect())
        }
    };
    Some(ChatMessage::new(role, content))
}

/// A response while it is streamed.
#[derive(Default)]
pub(super) struct ChatDecoder {
    content: String,
    refusal: String,
    thoughts: Map<String, Value>,
    calls: Vec<PartialCall>,
    has_ended: bool,
}

#[derive(Default)]
struct PartialCall {
    /// The provider's index of the call, by which later chunks refer to it.
    number: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Decode for ChatDecoder {
    fn event(&mut self, event: &Value, deltas: &Deltas) -> Result<(), ClientError> {
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(provider_error(event));
        }
        let choice = &event["choices"][0];
        self.has_ended |= choice["finish_reason"].is_string();
        let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        self.take(delta, deltas);
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn finish(self: Box<Self>) -> Result<Vec<Item>, ClientError> {
        let mut items = Vec::new();
        if !self.thoughts.is_empty() {
            let thought = THOUGHTS.iter().find_map(|name| self.thoughts.get(*name)?.as_str()).unwrap_or_default();
            items.push(Reasoning::new(thought, Some(self.thoughts.clone().into())).into());
        }
        // A refusal is treated as text of the model.
        let said = if self.content.is_empty() { self.refusal } else { self.content };
        if !said.is_empty() {
            items.push(Item::assistant(said));
        }
        for call in self.calls {
            let arguments = if call.arguments.is_empty() { "{}".to_owned() } else { call.arguments };
            items.push(FunctionCall::new(&call.id, &call.name, arguments).into());
        }
        Ok(items)
    }
}

impl ChatDecoder {
    fn take(&mut self, delta: &Value, deltas: &Deltas) {
        let said = text(&delta["content"]);
        if !said.is_empty() {
            self.content.push_str(said);
            deltas.send(Delta::text(said));
        }
        self.refusal.push_str(text(&delta["refusal"]));
        for name in THOUGHTS {
            self.think(name, &delta[name], deltas);
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call, deltas);
        }
    }

    fn think(&mut self, name: &str, piece: &Value, deltas: &Deltas) {
        match (piece, self.thoughts.get_mut(name)) {
            (Value::String(piece), Some(Value::String(thought))) => thought.push_str(piece),
            (Value::Array(piece), Some(Value::Array(thoughts))) => thoughts.extend(piece.iter().cloned()),
            (Value::String(piece), None) if piece.is_empty() => return,
            (Value::String(_) | Value::Array(_), None) => {
                self.thoughts.insert(name.to_owned(), piece.clone());
            }
            _ => return,
        }
        if let Some(text) = piece.as_str() {
            deltas.send(Delta::Reasoning { text: text.to_owned() });
        }
    }

    /// A chunk of a call: it refers to its call by index or id, or belongs to the last one.
    fn call(&mut self, piece: &Value, deltas: &Deltas) {
        let (number, id) = (piece["index"].as_u64(), text(&piece["id"]));
        let known = match number {
            Some(number) => self.calls.iter().position(|call| call.number == Some(number)),
            None if !id.is_empty() => self.calls.iter().position(|call| call.id == id),
            None => self.calls.len().checked_sub(1),
        };
        let index = known.unwrap_or_else(|| {
            self.calls.push(PartialCall { number, ..PartialCall::default() });
            self.calls.len() - 1
        });
        let call = &mut self.calls[index];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let function = &piece["function"];
        let name = Some(text(&function["name"])).filter(|name| !name.is_empty() && call.name.is_empty());
        if let Some(name) = name {
            name.clone_into(&mut call.name);
        }
        let arguments = match &function["arguments"] {
            Value::String(arguments) => arguments.clone(),
            // Some servers send an object instead of a string.
            Value::Object(fields) => Value::Object(fields.clone()).to_string(),
            _ => String::new(),
        };
        call.arguments.push_str(&arguments);
        deltas.send(Delta::Call { index, name: name.map(str::to_owned), arguments });
    }
}

/// Decodes a response that was not streamed.
pub(super) fn items(response: &Value) -> Result<Vec<Item>, ClientError> {
    let message = &response["choices"][0]["message"];
    if !message.is_object() {
        return Err(malformed("it has no `choices[0].message`"));
    }
    let mut decoder = ChatDecoder::default();
    decoder.take(message, &Deltas::default());
    Box::new(decoder).finish()
}
