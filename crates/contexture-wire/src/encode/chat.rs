//! Requests of OpenAI chat completions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use contexture_core::item::{Content, Message, Reasoning, Role};
use contexture_core::model::{ModelRequest, ToolSchema};
use serde::Serialize;
use serde_json::{Value, json};

use super::spelling::Spelling;
use super::turns::{MessageTurn, TurnPart, TurnPiece, spoken, spoken_as_user, turns};

/// Fields in which servers of this format return reasoning. They are sent back unchanged, because some providers need
/// them.
pub const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];

/// The body of a request. Texts are borrowed: a history is written once, and not copied before.
#[derive(Serialize)]
pub(super) struct ChatBody<'a> {
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
pub(super) struct ChatMessage<'a> {
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
) -> ChatBody<'a> {
    let mut messages = Vec::with_capacity(request.items.len() + 1);
    if !request.instructions.trim().is_empty() {
        messages.push(ChatMessage::new("system", ChatContent::Text((&*request.instructions).into())));
    }
    let spelling = Spelling::accepted(request);
    for turn in turns(request.items.iter().map(|item| &**item)) {
        messages.extend(turn_messages(turn, &spelling, developer_role));
    }
    let stream_options = stream.then(|| json!({ "include_usage": true }));
    let tools = request.tools.iter().map(ChatTool::of).collect();
    ChatBody { model, stream, messages, stream_options, tools, max_tokens: request.max_output_tokens }
}

/// The messages of a turn.
pub(super) fn turn_messages<'a>(
    turn: MessageTurn<'a>,
    spelling: &Spelling<'a>,
    developer_role: Option<&'static str>,
) -> Vec<ChatMessage<'a>> {
    match turn {
        MessageTurn::Model(pieces) => Vec::from_iter(model_message(pieces, spelling)),
        MessageTurn::Others(pieces) => {
            pieces.into_iter().filter_map(|piece| other(piece, spelling, developer_role)).collect()
        }
    }
}

/// One message with everything the model produced in a row: text, reasoning and calls.
fn model_message<'a>(pieces: Vec<TurnPiece<'a>>, spelling: &Spelling<'a>) -> Option<ChatMessage<'a>> {
    let mut said: Vec<&'a str> = Vec::new();
    let mut message = ChatMessage::new("assistant", ChatContent::Nothing);
    for piece in pieces {
        match piece.part {
            TurnPart::Said(message) => said.extend(message.content.iter().filter_map(Content::as_text)),
            TurnPart::Asked(call) => {
                let (name, arguments) = (spelling.name(&call.name), spelling.arguments_text(call));
                let function = ChatFunction { name, arguments };
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

/// A message that is not from the model.
fn other<'a>(
    piece: TurnPiece<'a>,
    spelling: &Spelling<'a>,
    developer_role: Option<&'static str>,
) -> Option<ChatMessage<'a>> {
    match piece.part {
        TurnPart::Returned(output) => {
            let content = ChatContent::Text(output.output.as_str().into());
            Some(ChatMessage { tool_call_id: Some(&output.call_id), ..ChatMessage::new("tool", content) })
        }
        TurnPart::Said(message) => said(message, spelling, developer_role),
        _ => None,
    }
}

fn said<'a>(
    message: &'a Message,
    spelling: &Spelling<'a>,
    developer_role: Option<&'static str>,
) -> Option<ChatMessage<'a>> {
    let speaks_as_user = developer_role.is_none() || message.role == Role::User;
    let role = if speaks_as_user { "user" } else { developer_role? };
    let shown = |text: &'a str| -> Cow<'a, str> {
        if speaks_as_user { spoken_as_user(message.role, text) } else { spoken(message.role, text) }
    };
    let parts: Vec<&'a Content> = message.content.iter().filter(|content| spelling.sends(content)).collect();
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
