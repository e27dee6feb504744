//! Results of tools, for the model.

use contexture_core::schema::Schema;
use serde_json::Value;

/// Most bytes of a result that the model is shown.
const MAX_BYTES: usize = 64 * 1024;

/// The text of a result for the model.
pub(super) fn shown(result: &Value) -> String {
    let parts = result["content"].as_array().into_iter().flatten();
    let parts: Vec<String> = parts
        .map(|part| match (part["text"].as_str(), part["resource"]["text"].as_str(), part["uri"].as_str()) {
            (Some(text), _, _) | (None, Some(text), _) => text.to_owned(),
            (None, None, Some(uri)) => format!("[a link to {uri}]"),
            (None, None, None) => {
                format!("[{}, which is not shown]", part["type"].as_str().unwrap_or("something"))
            }
        })
        .collect();
    let text = match (parts.is_empty(), result.get("structuredContent")) {
        (true, Some(structured)) => structured.to_string(),
        _ => parts.join("\n"),
    };
    match text.len() > MAX_BYTES {
        true => {
            let cut = &text[..text.floor_char_boundary(MAX_BYTES)];
            format!("{cut}\n[… {} bytes are not shown …]", text.len() - cut.len())
        }
        false => text,
    }
}

/// Checks that a result has the data that its tool promises.
///
/// # Errors
/// What is missing or different.
pub(super) fn check(result: &Value, promised: Option<&Schema>) -> Result<(), String> {
    let Some(schema) = promised else { return Ok(()) };
    match result.get("structuredContent") {
        Some(structured) => {
            schema.check(structured).map_err(|problem| format!("the result is not what the tool promises: {problem}"))
        }
        None => Err("the result has no `structuredContent`, which the tool promises".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_is_shown_if_there_is_no_text_and_must_be_what_was_promised() {
        let schema = Schema::new(&json!({ "type": "object", "required": ["a"] })).unwrap();
        let result = json!({ "content": [], "structuredContent": { "a": 1 } });
        assert_eq!((shown(&result).as_str(), check(&result, Some(&schema))), ("{\"a\":1}", Ok(())));
        let result = json!({ "content": [{ "type": "text", "text": "x" }], "structuredContent": { "b": 1 } });
        assert_eq!(shown(&result), "x");
        assert!(check(&result, Some(&schema)).unwrap_err().contains("`a` is missing"));
        assert!(check(&json!({ "content": [] }), Some(&schema)).is_err());
        assert_eq!(check(&json!({}), None), Ok(()));
        let link = json!({ "content": [{ "type": "resource_link", "uri": "file:///a" }, { "type": "audio" }] });
        assert_eq!(shown(&link), "[a link to file:///a]\n[audio, which is not shown]");
        let long = json!({ "content": [{ "type": "text", "text": "é".repeat(MAX_BYTES) }] });
        assert!(shown(&long).len() < MAX_BYTES + 100);
    }
}
