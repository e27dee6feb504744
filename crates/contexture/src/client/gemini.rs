//! Responses of Google's generateContent.

use contexture_core::item::{Content, FunctionCall, Item, Message, Reasoning, Role};
use contexture_core::model::{Delta, Deltas};
use serde_json::Value;

use super::decode::{Decode, provider_error, text};
use super::error::{ClientError, malformed};
use crate::wire::encode::SIGNATURE;

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
    let is_end = said.is_empty() && part.get("type").is_none() && part.get(SIGNATURE).is_some();
    if part["thought"] == true || is_end {
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
