//! What providers accept: roles, pairs, the first message, marks.

use std::collections::HashSet;

use contexture::wire::Format;
use serde_json::Value;

/// Checks whether a provider would accept a request.
///
/// # Errors
/// Returns what the provider would refuse.
pub fn check(format: Format, body: &str) -> Result<(), String> {
    let body: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    match format {
        Format::Messages => messages(&body),
        Format::Chat => chat(&body),
        Format::Responses => responses(&body),
    }
}

fn blocks(message: &Value) -> Vec<Value> {
    match &message["content"] {
        Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

fn messages(body: &Value) -> Result<(), String> {
    let marks = body.to_string().matches("\"cache_control\":{").count();
    if marks > 4 {
        return Err(format!("{marks} cache marks"));
    }
    // A provider merges consecutive messages of one role.
    let mut merged: Vec<(String, Vec<Value>)> = Vec::new();
    for message in body["messages"].as_array().ok_or("no messages")? {
        let (role, blocks) = (message["role"].as_str().ok_or("no role")?.to_owned(), blocks(message));
        if blocks.is_empty() {
            return Err("a message without content".into());
        }
        match merged.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => merged.push((role, blocks)),
        }
    }
    // https://docs.claude.com/en/docs/build-with-claude/extended-thinking: the last message of the model has its
    // thinking first.
    let last = merged.iter().rev().find(|(role, _)| role == "assistant");
    let thinks = |block: &Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
    if last.is_some_and(|(_, blocks)| blocks.iter().any(thinks) && !thinks(&blocks[0])) {
        return Err("thinking that is not at the start of a message".into());
    }
    if merged.first().is_none_or(|(role, _)| role != "user") {
        return Err("the first message is not the user's".into());
    }
    let mut asked: Vec<String> = Vec::new();
    for (role, blocks) in &merged {
        let results: Vec<String> = blocks
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .map(|block| block["tool_use_id"].to_string())
            .collect();
        let all_results = blocks.iter().filter(|block| block["type"] == "tool_result").count();
        if role == "user" {
            if all_results != results.len() {
                return Err("results after other blocks".into());
            }
            if results.iter().collect::<HashSet<_>>() != asked.iter().collect::<HashSet<_>>() {
                return Err(format!("asked {asked:?}, returned {results:?}"));
            }
        }
        for block in blocks {
            if block["type"] == "text" && block["text"].as_str().unwrap_or_default().trim().is_empty() {
                return Err("an empty text".into());
            }
        }
        asked =
            blocks.iter().filter(|block| block["type"] == "tool_use").map(|block| block["id"].to_string()).collect();
    }
    if asked.is_empty() { Ok(()) } else { Err("calls without results at the end".into()) }
}

fn chat(body: &Value) -> Result<(), String> {
    let mut open: HashSet<String> = HashSet::new();
    for message in body["messages"].as_array().ok_or("no messages")? {
        let role = message["role"].as_str().ok_or("no role")?;
        if role == "tool" {
            if !open.remove(&message["tool_call_id"].to_string()) {
                return Err("an output without its call before it".into());
            }
            continue;
        }
        if !open.is_empty() {
            return Err(format!("calls without outputs before a message of {role}"));
        }
        // https://platform.openai.com/docs/api-reference/chat/create: content is required unless there are calls.
        let calls = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        if role == "assistant" && !calls && message["content"].is_null() {
            return Err("a message of the model without content and calls".into());
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.map(|call| call["id"].to_string()));
    }
    if open.is_empty() { Ok(()) } else { Err("calls without outputs at the end".into()) }
}

fn responses(body: &Value) -> Result<(), String> {
    let items = body["input"].as_array().ok_or("no input")?;
    let ids = |kind: &str| -> Vec<String> {
        items.iter().filter(|item| item["type"] == kind).map(|item| item["call_id"].to_string()).collect()
    };
    let (calls, outputs) = (ids("function_call"), ids("function_call_output"));
    if calls.iter().collect::<HashSet<_>>() != outputs.iter().collect::<HashSet<_>>() {
        return Err("calls and outputs do not match".into());
    }
    for (at, _) in items.iter().enumerate().filter(|(_, item)| item["type"] == "reasoning") {
        let next = items.get(at + 1).ok_or("reasoning at the end")?;
        let is_of_model = next["type"] == "function_call" || next["role"] == "assistant";
        if !is_of_model {
            return Err("reasoning without what it belongs to".into());
        }
    }
    Ok(())
}
