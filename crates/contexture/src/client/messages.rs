//! Responses of Anthropic messages.

use contexture_core::item::{Content, FunctionCall, Item, Message, Reasoning, Role};
use contexture_core::model::{Delta, Deltas};
use serde_json::{Value, json};

use super::decode::{Decode, provider_error, text};
use super::error::{ClientError, malformed};

/// A response while it is streamed.
#[derive(Default)]
pub(super) struct MessagesDecoder {
    blocks: Vec<Value>,
    /// The arguments of each block so far, as the model wrote them.
    arguments: Vec<String>,
    /// The call index of each block.
    calls: usize,
    call_of_block: Vec<usize>,
    has_ended: bool,
}

impl Decode for MessagesDecoder {
    fn event(&mut self, event: &Value, deltas: &Deltas) -> Result<(), ClientError> {
        match text(&event["type"]) {
            "content_block_start" => self.start(event, deltas),
            "content_block_delta" => self.delta(event, deltas),
            "message_stop" => {
                self.has_ended = true;
                Ok(())
            }
            "error" => Err(provider_error(event)),
            // Pings, statistics, and events of newer versions of the format.
            _ => Ok(()),
        }
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn finish(self: Box<Self>) -> Result<Vec<Item>, ClientError> {
        let blocks = self.blocks.into_iter().zip(self.arguments);
        blocks.map(|(block, arguments)| item(block, Some(arguments).filter(|text| !text.is_empty()))).collect()
    }
}

impl MessagesDecoder {
    fn start(&mut self, event: &Value, deltas: &Deltas) -> Result<(), ClientError> {
        if event["index"].as_u64() != Some(self.blocks.len() as u64) {
            return Err(malformed("a block does not follow the one before"));
        }
        let block = event["content_block"].clone();
        if !block.is_object() {
            return Err(malformed("a block that is no object"));
        }
        self.call_of_block.push(self.calls);
        if block["type"] == "tool_use" {
            let name = Some(text(&block["name"]).to_owned());
            deltas.send(Delta::Call { index: self.calls, name, arguments: String::new() });
            self.calls += 1;
        }
        self.blocks.push(block);
        self.arguments.push(String::new());
        Ok(())
    }

    fn delta(&mut self, event: &Value, deltas: &Deltas) -> Result<(), ClientError> {
        let index = event["index"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX);
        let Some(block) = self.blocks.get_mut(index) else {
            return Err(malformed("a piece of a block that is not there"));
        };
        let delta = &event["delta"];
        match text(&delta["type"]) {
            "text_delta" => {
                append(block, "text", text(&delta["text"]));
                deltas.send(Delta::text(text(&delta["text"])));
            }
            "thinking_delta" => {
                append(block, "thinking", text(&delta["thinking"]));
                deltas.send(Delta::Reasoning { text: text(&delta["thinking"]).to_owned() });
            }
            "signature_delta" => append(block, "signature", text(&delta["signature"])),
            "input_json_delta" => {
                let piece = text(&delta["partial_json"]);
                self.arguments[index].push_str(piece);
                if block["type"] == "tool_use" {
                    let index = self.call_of_block[index];
                    deltas.send(Delta::Call { index, name: None, arguments: piece.to_owned() });
                }
            }
            "citations_delta" => match block["citations"].as_array_mut() {
                Some(citations) => citations.push(delta["citation"].clone()),
                None => block["citations"] = json!([delta["citation"]]),
            },
            _ => {}
        }
        Ok(())
    }
}

fn append(block: &mut Value, field: &str, piece: &str) {
    match &mut block[field] {
        Value::String(text) => text.push_str(piece),
        other => *other = Value::from(piece),
    }
}

/// Converts a block to an item. `arguments` are those of a streamed call, as the model wrote them.
fn item(mut block: Value, arguments: Option<String>) -> Result<Item, ClientError> {
    Ok(match text(&block["type"]) {
        "text" => {
            let is_plain = block.as_object().is_some_and(|fields| {
                fields.iter().all(|(name, value)| name == "type" || name == "text" || value.is_null())
            });
            match is_plain {
                true => Item::assistant(text(&block["text"])),
                false => Message::new(Role::Assistant, vec![Content::Opaque(block)]).into(),
            }
        }
        "tool_use" => {
            let arguments = arguments.unwrap_or_else(|| block["input"].to_string());
            FunctionCall::new(text(&block["id"]), text(&block["name"]), arguments).into()
        }
        "thinking" | "redacted_thinking" => {
            let thought = text(&block["thinking"]).to_owned();
            Reasoning::new(thought, Some(block)).into()
        }
        "" => return Err(malformed("a block of the response has no type")),
        _ => {
            if let Some(arguments) = arguments {
                block["input"] = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
            }
            Item::Opaque(block)
        }
    })
}

/// Decodes a response that was not streamed.
pub(super) fn items(response: &Value) -> Result<Vec<Item>, ClientError> {
    let blocks = response["content"].as_array().ok_or_else(|| malformed("it has no list `content`"))?;
    blocks.iter().map(|block| item(block.clone(), None)).collect()
}
