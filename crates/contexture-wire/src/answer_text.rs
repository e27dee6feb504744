//! What a response says, if it ends a turn: its text, without thoughts and unless it calls tools.

use serde_json::Value;

/// The most bytes that are kept.
const MAX_BYTES: usize = 64 << 10;

/// Collects the text of a response in any format, streamed or whole.
#[derive(Debug, Default)]
pub(super) struct AnswerText {
    text: String,
    has_call: bool,
}

impl AnswerText {
    /// Takes in an event, or a whole response.
    pub(super) fn take(&mut self, value: &Value) {
        match value["type"].as_str() {
            Some("content_block_delta") if value["delta"]["type"] == "text_delta" => self.add(&value["delta"]["text"]),
            Some("content_block_start") => self.block(&value["content_block"]),
            Some("response.output_text.delta") => self.add(&value["delta"]),
            Some("response.output_item.added") => self.has_call |= is_call(&value["item"]),
            // The end of a stream repeats what came before.
            Some(kind) if kind.starts_with("response.") => {}
            _ => self.whole(value),
        }
    }

    /// The text; `None` if there is none, or if tools are called: what follows repeats it then.
    pub(super) fn finish(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.text);
        (!self.has_call && !text.trim().is_empty()).then_some(text)
    }

    fn whole(&mut self, value: &Value) {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        list(&value["content"]).iter().for_each(|block| self.block(block));
        for item in list(&value["output"]) {
            self.has_call |= is_call(&item);
            list(&item["content"])
                .iter()
                .filter(|part| part["type"] == "output_text")
                .for_each(|part| self.add(&part["text"]));
        }
        for said in [&value["choices"][0]["delta"], &value["choices"][0]["message"]] {
            self.add(&said["content"]);
            self.has_call |= said["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        }
        for place in [value, &value["response"]] {
            for part in list(&place["candidates"][0]["content"]["parts"]) {
                self.has_call |= part.get("functionCall").is_some();
                if part["thought"] != true {
                    self.add(&part["text"]);
                }
            }
        }
    }

    fn block(&mut self, block: &Value) {
        self.has_call |= block["type"] == "tool_use";
        if block["type"] == "text" {
            self.add(&block["text"]);
        }
    }

    fn add(&mut self, text: &Value) {
        let text = text.as_str().unwrap_or_default();
        let room = MAX_BYTES.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room.min(text.len()))]);
    }
}

fn is_call(item: &Value) -> bool {
    item["type"].as_str().is_some_and(|kind| kind.ends_with("_call"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(values: &[Value], expected: Option<&str>) {
        let mut text = AnswerText::default();
        values.iter().for_each(|value| text.take(value));
        assert_eq!(text.finish().as_deref(), expected, "{values:?}");
    }

    #[test]
    fn the_text_of_every_format_is_collected() {
        let part = |text: &str| json!({ "candidates": [{ "content": { "parts": [{ "text": text }] } }] });
        let thought = json!({ "candidates": [{ "content": { "parts": [{ "text": "hm", "thought": true }] } }] });
        let block =
            |kind: &str| json!({ "type": "content_block_start", "content_block": { "type": kind, "text": "" } });
        let delta =
            |kind: &str, text: &str| json!({ "type": "content_block_delta", "delta": { "type": kind, "text": text } });
        check(
            &[block("text"), delta("text_delta", "It "), delta("thinking_delta", "hm"), delta("text_delta", "is.")],
            Some("It is."),
        );
        check(&[block("text"), delta("text_delta", "I look."), block("tool_use")], None);
        check(&[json!({ "type": "message", "content": [{ "type": "text", "text": "It is." }] })], Some("It is."));
        let chat = |delta: Value| json!({ "choices": [{ "delta": delta }] });
        check(&[chat(json!({ "content": "It " })), chat(json!({ "content": "is." })), chat(json!({}))], Some("It is."));
        check(&[chat(json!({ "content": "I look." })), chat(json!({ "tool_calls": [{ "index": 0 }] }))], None);
        check(&[json!({ "choices": [{ "message": { "content": "It is.", "tool_calls": null } }] })], Some("It is."));
        let said = |text: &str| json!({ "type": "response.output_text.delta", "delta": text });
        let item = |kind: &str| json!({ "type": "response.output_item.added", "item": { "type": kind } });
        let output = json!([{ "type": "message", "content": [{ "type": "output_text", "text": "It is." }] }]);
        let done = json!({ "type": "response.completed", "response": { "output": output } });
        check(&[item("message"), said("It "), said("is."), done], Some("It is."));
        check(&[said("I look."), item("function_call")], None);
        check(&[json!({ "object": "response", "output": output })], Some("It is."));
        check(&[thought, part("It "), part("is.")], Some("It is."));
        check(&[json!({ "candidates": [{ "content": { "parts": [{ "functionCall": { "name": "a" } }] } }] })], None);
        check(&[json!({ "error": { "message": "no" } }), json!(null), json!([1])], None);
    }
}
