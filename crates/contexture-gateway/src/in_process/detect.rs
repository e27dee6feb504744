//! In which format a request is written that comes without a path.

use contexture::wire::Format;
use serde_json::Value;
use serde_json::value::RawValue;

use super::RequestError;

/// Fields that only requests in Anthropic's format have.
const ANTHROPIC_FIELDS: [&str; 6] =
    ["system", "stop_sequences", "thinking", "anthropic_version", "context_management", "cache_control"];

/// Fields that only chat completions have.
const CHAT_FIELDS: [&str; 10] = [
    "max_completion_tokens",
    "frequency_penalty",
    "presence_penalty",
    "response_format",
    "logprobs",
    "parallel_tool_calls",
    "reasoning_effort",
    "stream_options",
    "stop",
    "n",
];

/// The format of a request, by what only one of the formats has: `input` for responses; `contents` for
/// Gemini; the roles `system`, `developer`
/// and `tool` or `tool_calls` for chat completions; `system` beside the messages, `tool_use` and `tool_result` for
/// Anthropic's. What both could have sent is Anthropic's if its model is one of theirs and `max_tokens` is set, which
/// they require.
///
/// # Errors
/// It is no JSON, or has no list of messages.
pub fn detected_format(body: &str) -> Result<Format, RequestError> {
    let fields: std::collections::HashMap<&str, &RawValue> = match serde_json::from_str(body) {
        Ok(fields) => fields,
        // Names with an escape cannot be borrowed; nobody sends these.
        Err(error) => return Err(RequestError::NotARequest(error.into())),
    };
    let has = |name: &str| fields.contains_key(name);
    let Some(messages) = fields.get("messages") else {
        if has("contents") {
            return Ok(Format::Gemini);
        }
        return if has("input") { Ok(Format::Responses) } else { Err(RequestError::UnknownFormat) };
    };
    if ANTHROPIC_FIELDS.iter().any(|name| has(name)) {
        return Ok(Format::Messages);
    }
    if CHAT_FIELDS.iter().any(|name| has(name)) {
        return Ok(Format::Chat);
    }
    if let Some(format) = by_tools(fields.get("tools").copied()).or_else(|| by_messages(messages)) {
        return Ok(format);
    }
    let model = fields.get("model").map_or("", |model| model.get());
    Ok(if model.contains("claude") && has("max_tokens") { Format::Messages } else { Format::Chat })
}

/// Tools of chat completions are of the type `function`; Anthropic's have a schema of their own.
fn by_tools(tools: Option<&RawValue>) -> Option<Format> {
    let tools: Vec<Value> = serde_json::from_str(tools?.get()).ok()?;
    let first = tools.first()?;
    if first.get("function").is_some() { Some(Format::Chat) } else { Some(Format::Messages) }
}

/// The first message that only one of the formats has.
fn by_messages(messages: &RawValue) -> Option<Format> {
    let messages: Vec<&RawValue> = serde_json::from_str(messages.get()).ok()?;
    messages.into_iter().find_map(|message| {
        let message: Value = serde_json::from_str(message.get()).ok()?;
        if matches!(message["role"].as_str(), Some("system" | "developer" | "tool" | "function"))
            || message.get("tool_calls").is_some()
        {
            return Some(Format::Chat);
        }
        let blocks = message["content"].as_array()?;
        blocks.iter().find_map(|block| match block["type"].as_str()? {
            "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "image" | "document" => {
                Some(Format::Messages)
            }
            "image_url" | "input_audio" | "file" | "refusal" => Some(Format::Chat),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expected: Format) {
        assert_eq!(detected_format(body).unwrap(), expected, "{body}");
    }

    #[test]
    fn each_format_is_known_by_what_only_it_has() {
        check(r#"{"input":"hello"}"#, Format::Responses);
        check(r#"{"contents":[{"parts":[{"text":"hello"}]}]}"#, Format::Gemini);
        check(r#"{"messages":[{"role":"user","content":"hi"}]}"#, Format::Chat);
        check(r#"{"model":"claude-x","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}"#, Format::Messages);
        check(r#"{"model":"claude-x","messages":[{"role":"user","content":"hi"}]}"#, Format::Chat);
        check(r#"{"model":"m","system":"be brief","messages":[]}"#, Format::Messages);
        check(r#"{"model":"claude-x","max_tokens":5,"messages":[{"role":"system","content":"s"}]}"#, Format::Chat);
        check(
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}"#,
            Format::Messages,
        );
        check(r#"{"messages":[{"role":"assistant","tool_calls":[]}]}"#, Format::Chat);
        check(r#"{"model":"claude-x","max_tokens":5,"messages":[],"tools":[{"type":"function","function":{}}]}"#, {
            Format::Chat
        });
        check(r#"{"messages":[],"tools":[{"name":"Read","input_schema":{}}]}"#, Format::Messages);
    }

    #[test]
    fn what_is_no_request_has_no_format() {
        for body in ["", "5", "[]", "null", "{}", r#"{"prompt":"x"}"#, "{", "\u{0}"] {
            assert!(detected_format(body).is_err(), "{body}");
        }
    }
}
