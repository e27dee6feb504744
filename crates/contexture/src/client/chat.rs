//! OpenAI chat completions, and compatible servers.

use std::borrow::Cow;

use contexture_core::item::{Content, FunctionCall, Item, Message, Reasoning, Role};
use contexture_core::model::{Delta, Deltas, ModelRequest};
use serde_json::{Map, Value, json};

use super::decode::{Decode, call_arguments, provider_error, text};
use super::error::{ClientError, malformed};
use super::turns::{Part, Piece, ToolNames, Turn, is_blank, spoken_as_user, turns};

/// Fields in which servers of this format return reasoning. They are sent back unchanged, because some providers need
/// them.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];

/// The body of a request.
pub(super) fn body(request: &ModelRequest, model: &str, stream: bool, developer_role: Option<&str>) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    if !request.instructions.trim().is_empty() {
        messages.push(json!({ "role": "system", "content": &*request.instructions }));
    }
    let names = ToolNames::of(request);
    for turn in turns(request) {
        match turn {
            Turn::Model(pieces) => messages.extend(model_message(&pieces, &names)),
            Turn::Others(pieces) => messages.extend(pieces.iter().filter_map(|piece| other(piece, developer_role))),
        }
    }
    let mut body = json!({ "model": model, "stream": stream });
    // Moved: in the macro, the whole history would be copied once more.
    body["messages"] = messages.into();
    if stream {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(tokens) = request.max_output_tokens {
        body["max_tokens"] = tokens.into();
    }
    body
}

fn tool(tool: &contexture_core::model::ToolSchema) -> Value {
    let function = json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters });
    json!({ "type": "function", "function": function })
}

/// One message with everything the model produced in a row: text, reasoning and calls.
fn model_message(pieces: &[Piece<'_>], names: &ToolNames<'_>) -> Option<Value> {
    let (mut said, mut calls) = (Vec::new(), Vec::new());
    let mut message = Map::new();
    for piece in pieces {
        match &piece.part {
            Part::Said(message) => said.extend(message.content.iter().filter_map(Content::as_text)),
            Part::Asked(call) => {
                let function =
                    json!({ "name": names.on_wire(&call.name), "arguments": call_arguments(call).to_string() });
                calls.push(json!({ "id": &*call.call_id, "type": "function", "function": function }));
            }
            Part::Thought(Reasoning { opaque: Some(Value::Object(fields)), .. }) => {
                let thoughts = fields.iter().filter(|(name, _)| THOUGHTS.contains(&name.as_str()));
                message.extend(thoughts.map(|(name, value)| (name.clone(), value.clone())));
            }
            Part::Thought(_) | Part::Returned(_) | Part::Unknown(_) => {}
        }
    }
    if said.is_empty() && calls.is_empty() {
        return None;
    }
    message.insert("role".to_owned(), "assistant".into());
    let content = if said.is_empty() { Value::Null } else { said.join("\n").into() };
    message.insert("content".to_owned(), content);
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    Some(message.into())
}

/// A message that is not from the model.
fn other(piece: &Piece<'_>, developer_role: Option<&str>) -> Option<Value> {
    match &piece.part {
        Part::Returned(output) => {
            Some(json!({ "role": "tool", "tool_call_id": &*output.call_id, "content": output.output }))
        }
        Part::Said(message) => said(message, developer_role),
        _ => None,
    }
}

fn said(message: &Message, developer_role: Option<&str>) -> Option<Value> {
    let speaks_as_user = developer_role.is_none() || message.role == Role::User;
    let role = if speaks_as_user { "user" } else { developer_role? };
    let shown = |text: &'_ str| -> String {
        let text: Cow<'_, str> = if speaks_as_user { spoken_as_user(message.role, text) } else { text.into() };
        text.into_owned()
    };
    let parts: Vec<&Content> = message.content.iter().filter(|content| !is_blank(content)).collect();
    let content: Value = match parts.as_slice() {
        [] => return None,
        // Every server of this format supports plain text.
        [Content::Text { text }] => shown(text).into(),
        parts => parts
            .iter()
            .map(|part| match part {
                Content::Text { text } => json!({ "type": "text", "text": shown(text) }),
                Content::Opaque(part) => part.clone(),
            })
            .collect(),
    };
    let mut message = Map::new();
    message.insert("role".to_owned(), role.into());
    message.insert("content".to_owned(), content);
    Some(message.into())
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
