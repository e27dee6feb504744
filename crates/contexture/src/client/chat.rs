//! Responses of OpenAI chat completions, and of compatible servers.

use contexture_core::item::{FunctionCall, Item, Reasoning};
use contexture_core::model::{Delta, Deltas};
use serde_json::{Map, Value};

use super::decode::{Decode, provider_error, text};
use super::error::{ClientError, malformed};
use crate::wire::encode::THOUGHTS;

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
