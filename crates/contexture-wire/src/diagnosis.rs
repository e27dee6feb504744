//! What a provider says of its own cache when it is asked why less was found than expected.

use serde_json::{Value, json};

use super::format::Format;
use super::request::Request;

/// The body of a request that also asks the provider to compare it with the one whose answer had an id.
///
/// `None` if its format knows no such question, if there is nothing to compare with, or if the client asks already.
///
/// ```
/// use contexture_wire::{Format, asking_for_diagnosis};
/// let body = r#"{"input":[]}"#;
/// let asking = asking_for_diagnosis(Format::Responses, body, Some("resp_1"));
/// let expected = r#"{"input":[],"prompt_cache_options":{"comparison_response_id":"resp_1"}}"#;
/// assert_eq!(asking.as_deref(), Some(expected));
/// assert_eq!(asking_for_diagnosis(Format::Responses, expected, Some("resp_1")), None);
/// ```
pub fn asking_for_diagnosis(format: Format, body: &str, previous: Option<&str>) -> Option<String> {
    let (name, question) = match format {
        // The first request asks too, or there would be nothing to compare the second one with.
        Format::Messages => ("diagnostics", json!({"previous_message_id": previous})),
        Format::Responses => ("prompt_cache_options", json!({"comparison_response_id": previous?})),
        Format::Chat | Format::Gemini => return None,
    };
    let request = Request::parse(format, body).ok()?;
    if request.has_field(name) {
        return None;
    }
    // A request has its list of messages, so something comes before the comma.
    let end = body.trim_end().strip_suffix('}')?;
    Some(format!("{end},\"{name}\":{question}}}"))
}

/// What an answer, or a piece of one, says about the provider's cache, in the provider's own word.
pub(super) fn diagnosis_of(answer: &Value) -> Option<String> {
    let places = [answer, &answer["message"], &answer["response"], &answer["delta"]];
    let anthropic = places.iter().map(|place| &place["diagnostics"]).find(|found| found.is_object());
    if let Some(found) = anthropic {
        let reason = found["cache_miss_reason"]["type"].as_str();
        return Some(reason.unwrap_or("no difference").to_owned());
    }
    let openai = places.iter().map(|place| &place["prompt_cache_diagnostics"]).find(|found| found.is_object())?;
    let words = [&openai["reason"]["type"], &openai["reason"], &openai["type"]];
    words.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// The id of an answer.
pub(super) fn id_of(answer: &Value) -> Option<&str> {
    let places = [&answer["message"], &answer["response"], answer];
    let named = places.into_iter().find_map(|place| place["id"].as_str());
    named.or_else(|| answer["responseId"].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: Value, expected: Option<&str>) {
        assert_eq!(diagnosis_of(&answer).as_deref(), expected, "{answer}");
    }

    #[test]
    fn what_providers_say_is_found_where_they_say_it() {
        let changed = json!({"cache_miss_reason": {"type": "messages_changed", "cache_missed_input_tokens": 7}});
        check(json!({"id": "msg_1", "diagnostics": changed}), Some("messages_changed"));
        check(json!({"type": "message_start", "message": {"diagnostics": changed}}), Some("messages_changed"));
        check(json!({"diagnostics": {"cache_miss_reason": null}}), Some("no difference"));
        check(json!({"diagnostics": null}), None);
        let missed = json!({"type": "cache_miss", "reason": "tools_changed"});
        check(
            json!({"type": "response.completed", "response": {"prompt_cache_diagnostics": missed}}),
            Some("tools_changed"),
        );
        check(json!({"prompt_cache_diagnostics": {"type": "cache_hit"}}), Some("cache_hit"));
    }

    #[test]
    fn a_question_is_added_once_and_nothing_else_moves() {
        let body = "{\"messages\" : [ ],\n \"max_tokens\":1.0 }\n";
        let asking = asking_for_diagnosis(Format::Messages, body, None).unwrap();
        assert_eq!(
            asking,
            "{\"messages\" : [ ],\n \"max_tokens\":1.0 ,\"diagnostics\":{\"previous_message_id\":null}}"
        );
        assert_eq!(asking_for_diagnosis(Format::Messages, &asking, Some("msg_1")), None);
        assert_eq!(asking_for_diagnosis(Format::Responses, r#"{"input":[]}"#, None), None);
        assert_eq!(asking_for_diagnosis(Format::Chat, r#"{"messages":[]}"#, Some("x")), None);
        assert_eq!(asking_for_diagnosis(Format::Messages, "no json", Some("x")), None);
    }
}
