//! What providers say about windows: in their lists of models, and when they refuse a request.

use serde_json::Value;

/// Fields in which lists of models have the window, by provider: Google, Anthropic, OpenRouter, vLLM, and
/// others.
const FIELDS: [&str; 6] =
    ["inputTokenLimit", "max_input_tokens", "context_length", "max_model_len", "context_window", "max_context_length"];

/// Words after which a refusal names the window.
const REFUSALS: [&str; 5] = [
    "exceeds the maximum number of tokens allowed (",
    "maximum context length is ",
    " tokens > ",
    "context window of ",
    "exceeds the model's context limit of ",
];

/// A smaller number is no window.
const LEAST_WINDOW: u64 = 1_000;

/// The windows in a list of models, or in the entry of one, by name.
pub(crate) fn windows_in_list(list: &Value) -> Vec<(String, u64)> {
    let entries = match list["data"].as_array().or_else(|| list["models"].as_array()) {
        Some(entries) => entries.as_slice(),
        None => std::slice::from_ref(list),
    };
    let window = |entry: &Value| FIELDS.iter().find_map(|field| entry[*field].as_u64());
    let named = |entry: &Value| {
        let window = window(entry).or_else(|| window(&entry["limits"])).or_else(|| entry["meta"]["n_ctx"].as_u64());
        let name =
            entry["id"].as_str().or_else(|| entry["name"].as_str().filter(|name| name.starts_with("models/")))?;
        Some((name.to_owned(), window.filter(|window| *window >= LEAST_WINDOW)?))
    };
    entries.iter().filter_map(named).collect()
}

/// The window that a refusal of a too large request names.
pub(crate) fn window_in_refusal(text: &str) -> Option<u64> {
    REFUSALS.iter().find_map(|words| {
        let after = text.split(words).nth(1)?;
        let digits: String = after.chars().take_while(|char| char.is_ascii_digit() || *char == ',').collect();
        digits.replace(',', "").parse().ok().filter(|window| *window >= LEAST_WINDOW)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn windows_are_read_from_lists_of_models() {
        let list = json!({"data": [{"id": "claude-opus-4-8", "max_input_tokens": 1_000_000, "max_tokens": 128_000},
            {"id": "x/y", "context_length": 65_536}, {"id": "local", "max_model_len": 8_192}, {"id": "gpt-5"},
            {"context_length": 9_999}, {"id": "odd", "context_length": 7}]});
        let expected = [("claude-opus-4-8", 1_000_000), ("x/y", 65_536), ("local", 8_192)];
        assert_eq!(windows_in_list(&list), expected.map(|(name, window)| (name.to_owned(), window)));
        assert_eq!(windows_in_list(&json!({"id": "one", "context_window": 32_000})), [("one".to_owned(), 32_000)]);
        let google = json!({"models": [{"name": "models/gemini-2.5-pro", "inputTokenLimit": 1_048_576}]});
        assert_eq!(windows_in_list(&google), [("models/gemini-2.5-pro".to_owned(), 1_048_576)]);
        assert_eq!(windows_in_list(&json!([1, 2])), []);
    }

    #[test]
    fn windows_are_read_from_refusals() {
        let check = |text: &str, expected| assert_eq!(window_in_refusal(text), expected, "{text}");
        check("prompt is too long: 205123 tokens > 200000 maximum", Some(200_000));
        check("This model's maximum context length is 128,000 tokens. However, you requested", Some(128_000));
        check("max_tokens: 5 tokens > 3 maximum", None);
        let google = "The input token count (1243180) exceeds the maximum number of tokens allowed (1048575).";
        check(google, Some(1_048_575));
        check("first message must use the \"user\" role", None);
    }
}
