//! Responses of OpenAI responses.

use std::collections::BTreeMap;

use contexture_core::item::{Content, Extra, FunctionCall, Item, Message, Reasoning, Role};
use contexture_core::model::{Delta, Deltas};
use serde_json::Value;

use super::decode::{Decode, error_message, provider_error, text};
use super::error::{ClientError, malformed};

/// A response while it is streamed.
#[derive(Default)]
pub(super) struct ResponsesDecoder {
    /// Complete items, by their index in the response.
    done: BTreeMap<u64, Value>,
    /// The call index of each item, by its index in the response.
    calls: BTreeMap<u64, usize>,
    /// The whole response, as repeated by its last event.
    whole: Option<Value>,
}

impl Decode for ResponsesDecoder {
    fn event(&mut self, event: &Value, deltas: &Deltas) -> Result<(), ClientError> {
        let place = event["output_index"].as_u64().unwrap_or_default();
        match text(&event["type"]) {
            "response.output_text.delta" | "response.refusal.delta" => deltas.send(Delta::text(text(&event["delta"]))),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                deltas.send(Delta::Reasoning { text: text(&event["delta"]).to_owned() });
            }
            "response.output_item.added" if event["item"]["type"] == "function_call" => {
                let (index, name) = (self.calls.len(), Some(text(&event["item"]["name"]).to_owned()));
                self.calls.insert(place, index);
                deltas.send(Delta::Call { index, name, arguments: String::new() });
            }
            "response.function_call_arguments.delta" => {
                if let Some(index) = self.calls.get(&place).copied() {
                    let arguments = text(&event["delta"]).to_owned();
                    deltas.send(Delta::Call { index, name: None, arguments });
                }
            }
            "response.output_item.done" => {
                self.done.insert(place, event["item"].clone());
            }
            "response.completed" | "response.incomplete" => self.whole = Some(event["response"].clone()),
            "response.failed" => {
                let message = error_message(&event["response"]).unwrap_or_else(|| "it did not say why".to_owned());
                return Err(ClientError::Failed { message });
            }
            "error" => return Err(provider_error(event)),
            _ => {}
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.whole.is_some()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Item>, ClientError> {
        let whole = self.whole.unwrap_or_default();
        // Some servers do not repeat the items at the end.
        match whole["output"].as_array().filter(|output| !output.is_empty()) {
            Some(_) => items(&whole),
            None => self.done.into_values().map(item).collect(),
        }
    }
}

fn item(mut value: Value) -> Result<Item, ClientError> {
    let kind = text(&value["type"]).to_owned();
    Ok(match kind.as_str() {
        "message" => message(value)?,
        "function_call" => {
            let call_id = [&value["call_id"], &value["id"]].into_iter().find_map(Value::as_str).unwrap_or_default();
            let mut call = FunctionCall::new(call_id, text(&value["name"]), text(&value["arguments"]));
            call.id = value["id"].as_str().map(Into::into);
            call.extra = others(&mut value, &["type", "id", "call_id", "name", "arguments"]);
            call.into()
        }
        "reasoning" => {
            let parts = ["summary", "content"].into_iter().filter_map(|name| value[name].as_array());
            let thought: Vec<&str> = parts.flatten().filter_map(|part| part["text"].as_str()).collect();
            Reasoning::new(thought.join("\n"), Some(value.clone())).into()
        }
        "" => return Err(malformed("an item of the response has no type")),
        _ => Item::Opaque(value),
    })
}

fn message(mut value: Value) -> Result<Item, ClientError> {
    let parts = value["content"].as_array().ok_or_else(|| malformed("a message of the response has no content"))?;
    let content = parts.iter().map(|part| match (text(&part["type"]), part["text"].as_str()) {
        ("output_text", Some(said)) if part["annotations"].as_array().is_none_or(Vec::is_empty) => {
            Content::Text { text: said.to_owned() }
        }
        _ => Content::Opaque(part.clone()),
    });
    let mut message = Message::new(Role::Assistant, content.collect());
    message.id = value["id"].as_str().map(Into::into);
    message.extra = others(&mut value, &["type", "id", "role", "content"]);
    Ok(message.into())
}

/// The unknown fields.
fn others(value: &mut Value, known: &[&str]) -> Extra {
    let mut fields = value.as_object_mut().map(std::mem::take).unwrap_or_default();
    fields.retain(|name, _| !known.contains(&name.as_str()));
    fields.into()
}

/// Decodes a response that was not streamed.
pub(super) fn items(response: &Value) -> Result<Vec<Item>, ClientError> {
    if text(&response["status"]) == "failed" {
        return Err(provider_error(response));
    }
    let output = response["output"].as_array().ok_or_else(|| malformed("it has no list `output`"))?;
    output.iter().cloned().map(item).collect()
}
