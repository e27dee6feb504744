//! What providers accept, written from their documentation and from the errors that people report, without the table
//! that the gateway itself checks with.
//!
//! Google: the reference of generateContent, the guides on function calling, thought signatures and context caching, and
//! the errors that people report for them.
//!
//! Anthropic: <https://platform.claude.com/docs/en/api/messages>, the pages on tool use, on thinking, on prompt caching
//! and on mid-conversation system messages. OpenAI: the references of chat completions and responses, and the guides on
//! function calling and reasoning. Read on 2026-11-17, and what came later on 2026-11-18: changes of tools
//! (<https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages>), signs and lengths of ids
//! (<https://github.com/maximhq/bifrost/issues/5097>, <https://github.com/openai/codex/issues/14355> and
//! <https://github.com/nodetool-ai/nodetool/pull/4252>), and reasoning that comes back with its calls
//! (<https://api-docs.deepseek.com/guides/thinking_mode>, <https://github.com/continuedev/continue/pull/11806>). Fields of
//! messages, summaries, threads and references: the types of the SDKs anthropic 2.10.0 and openai 3.51.0, read on
//! 2026-11-19.

mod gemini;

use std::collections::HashSet;

use contexture::wire::Format;
use serde_json::{Value, json};

/// Checks whether a provider would accept a request.
///
/// # Errors
/// Returns what the provider would say.
pub fn check(format: Format, body: &str) -> Result<(), String> {
    let body: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    match format {
        Format::Messages => messages(&body),
        Format::Chat => chat(&body),
        Format::Responses => responses(&body),
        Format::Gemini => gemini::check(&body),
    }
}

/// The body of the refusal of a provider.
pub fn refusal(format: Format, message: &str) -> String {
    match format {
        Format::Messages => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).to_string()
        }
        Format::Gemini => json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}).to_string(),
        _ => json!({"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": null}})
            .to_string(),
    }
}

fn blocks(content: &Value) -> Result<Vec<Value>, String> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) if text.is_empty() => Ok(Vec::new()),
        Value::String(text) => Ok(vec![json!({"type": "text", "text": text})]),
        Value::Array(blocks) => Ok(blocks.clone()),
        other => Err(format!("content: Input should be a valid list, not {other}")),
    }
}

/// A turn: messages of one role in a row, which the provider joins.
struct Turn {
    role: String,
    blocks: Vec<Value>,
}

fn messages(body: &Value) -> Result<(), String> {
    let list = body["messages"].as_array().ok_or("messages: Field required")?;
    let model = body["model"].as_str().unwrap_or_default();
    options(body)?;
    if body["thread"]["type"] == "continue" {
        // What its messages answer is with the provider.
        return marks(body);
    }
    let mut turns: Vec<Turn> = Vec::new();
    let roles: Vec<&str> = list.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    for (at, message) in list.iter().enumerate() {
        let blocks = blocks(&message["content"]).map_err(|error| format!("messages.{at}.{error}"))?;
        let is_last = at + 1 == list.len();
        let sets = own_fields(at, message)?;
        summaries(at, &blocks)?;
        match roles[at] {
            "user" | "assistant" => {}
            "system" => system_place(&roles, &turns, at)?,
            role => return Err(format!("messages.{at}.role: Unexpected role {role:?}")),
        }
        if blocks.is_empty() && !(is_last && roles[at] == "assistant") && !sets {
            let text = "all messages must have non-empty content except for the optional final assistant message";
            return Err(format!("messages.{at}: {text}"));
        }
        texts(at, &blocks)?;
        if roles[at] == "system" {
            continue;
        }
        if blocks.iter().any(|block| block["type"] == "tool_addition" || block["type"] == "tool_removal") {
            let text = "'tool_addition'/'tool_removal' blocks are only permitted within role: \"system\" messages";
            return Err(format!("messages.{at}.content: {text}"));
        }
        if model.contains("claude") {
            plain_ids(at, &blocks)?;
        }
        match turns.last_mut() {
            Some(turn) if turn.role == roles[at] => turn.blocks.extend(blocks),
            _ => turns.push(Turn { role: roles[at].to_owned(), blocks }),
        }
    }
    let begins_with_summary = list.first().is_some_and(|first| first["content"][0]["type"] == "compaction");
    if roles.first() != Some(&"user") && !begins_with_summary {
        return Err("messages: first message must use the \"user\" role".into());
    }
    if roles.last() == Some(&"assistant") {
        ends(model, turns.last())?;
    }
    pairs(&turns)?;
    server_results(&turns)?;
    references(body, &turns)?;
    thinking(&turns)?;
    if body["thinking"]["type"] == "enabled" {
        begins(&turns)?;
    }
    marks(body)
}

/// Fields of a request that exclude each other, or need others.
fn options(body: &Value) -> Result<(), String> {
    if body["compaction"].is_object() && body["context_management"].is_object() {
        return Err("compaction: cannot be combined with `context_management`".into());
    }
    match body["thread"]["type"].as_str() {
        Some("continue") if body["thread"]["previous_message_id"].is_null() => {
            Err("thread.previous_message_id: Field required".into())
        }
        None | Some("create" | "continue") => Ok(()),
        Some(other) => Err(format!("thread: unknown type {other:?}")),
    }
}

/// Fields of a message beside its role and its content. Returns whether they set something.
fn own_fields(at: usize, message: &Value) -> Result<bool, String> {
    let known: &[&str] = if message["role"] == "system" { &["clear_at", "output_config"] } else { &[] };
    let is_known = |name: &str| ["role", "content"].contains(&name) || known.contains(&name);
    let mut names = message.as_object().into_iter().flat_map(|fields| fields.keys());
    if let Some(name) = names.find(|name| !is_known(name)) {
        return Err(format!("messages.{at}.{name}: Extra inputs are not permitted"));
    }
    match message["clear_at"].as_str() {
        None | Some("never" | "next_user_message") => {}
        Some(other) => {
            return Err(format!("messages.{at}.clear_at: Input should be 'next_user_message', not {other:?}"));
        }
    }
    Ok(message["output_config"].as_object().is_some_and(|set| !set.is_empty()))
}

/// A signed summary comes first, since it replaces all before it.
fn summaries(at: usize, blocks: &[Value]) -> Result<(), String> {
    let is_late = |(n, block): (usize, &Value)| {
        block["type"] == "compaction" && block["signature"].is_string() && (at, n) != (0, 0)
    };
    match blocks.iter().enumerate().any(is_late) {
        true => Err(format!("messages.{at}: a signed `compaction` block must come first")),
        false => Ok(()),
    }
}

/// Tools that results refer to are declared.
fn references(body: &Value, turns: &[Turn]) -> Result<(), String> {
    let names: Vec<&Value> = body["tools"].as_array().into_iter().flatten().map(|tool| &tool["name"]).collect();
    let results = turns.iter().flat_map(|turn| &turn.blocks).filter(|block| block["type"] == "tool_result");
    let contents = results.flat_map(|block| block["content"].as_array().into_iter().flatten());
    let mut wanted = contents.filter(|part| part["type"] == "tool_reference").map(|part| &part["tool_name"]);
    match wanted.find(|name| !names.contains(name)) {
        Some(name) => Err(format!("Tool reference {name} not found in available tools")),
        None => Ok(()),
    }
}

/// The signs that ids of calls may have.
fn plain_ids(at: usize, blocks: &[Value]) -> Result<(), String> {
    let is_plain = |id: &str| {
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    for (kind, name) in [("tool_use", "id"), ("tool_result", "tool_use_id")] {
        if ids(blocks, kind, name).iter().any(|id| !is_plain(id)) {
            return Err(format!("messages.{at}.{kind}.{name}: String should match pattern '^[a-zA-Z0-9_-]+$'"));
        }
    }
    Ok(())
}

/// Where a message of role `system` may be.
fn system_place(roles: &[&str], turns: &[Turn], at: usize) -> Result<(), String> {
    let before = at.checked_sub(1).map(|before| roles[before]);
    let is_server = |turn: &Turn| {
        let last = turn.blocks.last().and_then(|block| block["type"].as_str()).unwrap_or_default();
        last == "server_tool_use" || (last.ends_with("_tool_result") && last != "tool_result")
    };
    let follows = match before {
        Some("user") => true,
        Some("assistant") => turns.last().is_some_and(is_server),
        _ => false,
    };
    if !follows {
        return Err(format!("messages.{at}: role 'system' must follow a 'user' message"));
    }
    match roles.get(at + 1) {
        None | Some(&"assistant") => Ok(()),
        Some(_) => Err(format!("messages.{at}: role 'system' must precede an 'assistant' message or end the array")),
    }
}

fn texts(at: usize, blocks: &[Value]) -> Result<(), String> {
    for (n, block) in blocks.iter().enumerate().filter(|(_, block)| block["type"] == "text") {
        let text = block["text"].as_str().ok_or_else(|| format!("messages.{at}.content.{n}.text: Field required"))?;
        let marked = block.get("cache_control").is_some_and(|mark| !mark.is_null());
        if text.is_empty() && marked {
            return Err(format!("messages.{at}.content.{n}.text: cache_control cannot be set for empty text blocks"));
        }
        if text.is_empty() {
            return Err("messages: text content blocks must be non-empty".into());
        }
        if text.trim().is_empty() {
            return Err("messages: text content blocks must contain non-whitespace text".into());
        }
    }
    Ok(())
}

/// Models from Claude 4.6 on do not continue a text that the request begins.
fn ends(model: &str, last: Option<&Turn>) -> Result<(), String> {
    let old =
        ["claude-3", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5", "claude-sonnet-4-2", "claude-sonnet-4-5"];
    let is_old = !model.contains("claude") || old.iter().any(|start| model.contains(start)) || model.ends_with("-4-0");
    if !is_old && !model.contains("haiku-4-5") {
        return Err(
            "This model does not support assistant message prefill. The conversation must end with a user message."
                .into(),
        );
    }
    let text = last.and_then(|turn| turn.blocks.last()).and_then(|block| block["text"].as_str()).unwrap_or_default();
    match text.ends_with(char::is_whitespace) {
        true => Err("messages: final assistant content cannot end with trailing whitespace".into()),
        false => Ok(()),
    }
}

fn ids(blocks: &[Value], kind: &str, id: &str) -> Vec<String> {
    let found = blocks.iter().filter(|block| block["type"] == kind);
    found.map(|block| block[id].as_str().unwrap_or_default().to_owned()).collect()
}

fn pairs(turns: &[Turn]) -> Result<(), String> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut asked: Vec<String> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let results = ids(&turn.blocks, "tool_result", "tool_use_id");
        let first = turn.blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        if let Some(id) = results.iter().find(|id| !asked.contains(id)) {
            return Err(format!("messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"));
        }
        if let Some(id) = asked.iter().find(|id| !results.contains(id)) {
            return Err(format!(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}"
            ));
        }
        if first < results.len() {
            return Err(format!("messages.{at}: `tool_result` blocks must come first in the content"));
        }
        if turn.role == "user" && turn.blocks.iter().any(|block| block["type"] == "tool_use") {
            return Err(format!("messages.{at}: `tool_use` blocks can only be in `assistant` messages"));
        }
        asked = ids(&turn.blocks, "tool_use", "id");
        if let Some(id) = asked.iter().find(|id| !seen.insert((*id).clone())) {
            return Err(format!("messages.{at}: `tool_use` ids must be unique: {id}"));
        }
    }
    match asked.first() {
        Some(id) => Err(format!("`tool_use` ids were found without `tool_result` blocks immediately after: {id}")),
        None => Ok(()),
    }
}

fn thinking(turns: &[Turn]) -> Result<(), String> {
    let thinks = |block: &Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
    for (at, turn) in turns.iter().enumerate() {
        for block in turn.blocks.iter().filter(|block| thinks(block)) {
            let sign = if block["type"] == "thinking" { &block["signature"] } else { &block["data"] };
            if sign.as_str().is_none_or(str::is_empty) {
                return Err(format!("messages.{at}: Invalid `signature` in `thinking` block"));
            }
        }
        if turn.role == "assistant" && turn.blocks.last().is_some_and(thinks) {
            return Err(format!("messages.{at}: The final block in an assistant message cannot be `thinking`."));
        }
    }
    let newest = turns.iter().rev().find(|turn| turn.role == "assistant");
    match newest.is_some_and(|turn| turn.blocks.iter().any(thinks) && !thinks(&turn.blocks[0])) {
        true => {
            Err("`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified".into())
        }
        false => Ok(()),
    }
}

/// With a budget for thinking, the final turn of the model begins with it; results do not end a turn. Reported with
/// <https://github.com/BerriAI/litellm/issues/9020>.
fn begins(turns: &[Turn]) -> Result<(), String> {
    let mut first: Option<&Turn> = None;
    for turn in turns {
        match turn.role.as_str() {
            "assistant" => first = first.or(Some(turn)),
            _ if turn.blocks.iter().any(|block| block["type"] == "tool_result") => {}
            _ => first = None,
        }
    }
    let kind = first.and_then(|turn| turn.blocks.first()).map(|block| &block["type"]);
    match kind.is_some_and(|kind| kind != "thinking" && kind != "redacted_thinking") {
        true => Err(format!(
            "Expected `thinking` or `redacted_thinking`, but found {}. When `thinking` is enabled, a final `assistant` message must start with a thinking block",
            kind.unwrap_or(&Value::Null)
        )),
        false => Ok(()),
    }
}

/// What a tool of the provider's own found is after the call of it, and so is what a script of the provider's called: both
/// in one turn of the model, which results do not end. Reported with
/// <https://github.com/anthropics/claude-code/issues/64383>.
fn server_results(turns: &[Turn]) -> Result<(), String> {
    let mut begun: HashSet<String> = HashSet::new();
    for (at, turn) in turns.iter().enumerate() {
        if turn.role == "user" && !turn.blocks.iter().any(|block| block["type"] == "tool_result") {
            begun.clear();
        }
        for block in &turn.blocks {
            let kind = block["type"].as_str().unwrap_or_default();
            let has_begun = |id: &Value| id.as_str().is_some_and(|id| begun.contains(id));
            if kind.ends_with("_tool_result") && !has_begun(&block["tool_use_id"]) {
                return Err(format!(
                    "messages.{at}: unexpected `tool_use_id` found in `{kind}` blocks: {}. Each `{kind}` block must have a corresponding `server_tool_use` block before it.",
                    block["tool_use_id"]
                ));
            }
            let caller = &block["caller"]["tool_id"];
            if kind == "tool_use" && !caller.is_null() && !has_begun(caller) {
                return Err(format!("messages.{at}: `caller.tool_id` {caller} of a `tool_use` block was not found"));
            }
            if kind.ends_with("_tool_use") {
                begun.extend(block["id"].as_str().map(str::to_owned));
            }
        }
    }
    Ok(())
}

/// Cache marks, in the order of the provider: tools, system, messages.
fn marks(body: &Value) -> Result<(), String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut blocks = list(&body["tools"]);
    blocks.extend(list(&body["system"]));
    blocks.extend(list(&body["messages"]).iter().flat_map(|message| list(&message["content"])));
    let marked: Vec<&Value> =
        blocks.iter().filter(|block| block.get("cache_control").is_some_and(|mark| !mark.is_null())).collect();
    // The mark that a request leaves to the provider takes one of the four.
    let count = marked.len() + usize::from(body["cache_control"].is_object());
    if count > 4 {
        return Err(format!("A maximum of 4 blocks with cache_control may be provided. Found {count}."));
    }
    if marked.iter().any(|block| block["type"] == "thinking" || block["type"] == "redacted_thinking") {
        return Err("cache_control: Extra inputs are not permitted on thinking blocks".into());
    }
    let is_long = |block: &&&Value| block["cache_control"]["ttl"] == "1h";
    let first_short = marked.iter().position(|block| !is_long(&block)).unwrap_or(marked.len());
    match marked[first_short..].iter().any(|block| is_long(&block)) {
        true => Err("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block".into()),
        false => Ok(()),
    }
}

fn chat(body: &Value) -> Result<(), String> {
    let list = body["messages"].as_array().ok_or("Missing required parameter: 'messages'.")?;
    if list.is_empty() {
        return Err("Invalid 'messages': empty array.".into());
    }
    let mut open: HashSet<String> = HashSet::new();
    for (at, message) in list.iter().enumerate() {
        let role = message["role"].as_str().ok_or("Missing required parameter: 'messages[].role'.")?;
        if !["developer", "system", "user", "assistant", "tool", "function"].contains(&role) {
            return Err(format!("Invalid value: '{role}'."));
        }
        if role == "tool" {
            if !open.remove(message["tool_call_id"].as_str().unwrap_or_default()) {
                return Err(
                    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.".into()
                );
            }
        } else if !open.is_empty() {
            return Err(unanswered(&open));
        }
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        if message["tool_calls"] == json!([]) {
            return Err(format!(
                "Invalid 'messages[{at}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."
            ));
        }
        let is_empty = message["content"].is_null() || message["content"].as_array().is_some_and(Vec::is_empty);
        let has_other = !calls.is_empty() || !message["function_call"].is_null() || !message["refusal"].is_null();
        if is_empty && !(role == "assistant" && has_other) {
            return Err(format!("Invalid value for 'content': expected a string, got null. messages[{at}]"));
        }
        open.extend(calls.iter().map(|call| call["id"].as_str().unwrap_or_default().to_owned()));
    }
    if !open.is_empty() {
        return Err(unanswered(&open));
    }
    let model = body["model"].as_str().unwrap_or_default();
    if model.contains("kimi") || model.contains("deepseek") { reasoned(list) } else { Ok(()) }
}

/// Where a model thinks aloud, its calls come back with what it thought. That it does is seen by those that have it.
fn reasoned(list: &[Value]) -> Result<(), String> {
    let has_calls = |message: &Value| message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
    let is_without = |message: &Value| message["reasoning_content"].is_null();
    let without = list.iter().position(|message| has_calls(message) && is_without(message));
    let is_thinking = list.iter().any(|message| has_calls(message) && !is_without(message));
    match without.filter(|_| is_thinking) {
        Some(at) => Err(format!(
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}"
        )),
        None => Ok(()),
    }
}

fn unanswered(open: &HashSet<String>) -> String {
    let text =
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'";
    format!("{text}: {open:?}")
}

/// Items that others answer, and what they are answered by.
const CALLS: [(&str, &str); 6] = [
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("local_shell_call", "local_shell_call_output"),
    ("shell_call", "shell_call_output"),
    ("apply_patch_call", "apply_patch_call_output"),
    ("computer_call", "computer_call_output"),
];

/// How long ids may be, and how those of items begin.
fn item_ids(items: &[Value]) -> Result<(), String> {
    for (at, item) in items.iter().enumerate() {
        for name in ["id", "call_id"] {
            let length = item[name].as_str().map_or(0, |id| id.chars().count());
            if length > 64 {
                return Err(format!(
                    "Invalid 'input[{at}].{name}': string too long. Expected a string with maximum length 64, but got a string with length {length} instead."
                ));
            }
        }
        let beginning = match item["type"].as_str() {
            Some("function_call") => "fc",
            Some("custom_tool_call") => "ctc",
            Some("reasoning") => "rs",
            Some("message") | None => "msg",
            Some(_) => continue,
        };
        if let Some(id) = item["id"].as_str().filter(|id| !id.starts_with(beginning)) {
            return Err(format!("Invalid 'input[{at}].id': '{id}'. Expected an ID that begins with '{beginning}'."));
        }
    }
    Ok(())
}

/// What a program called, and what it printed, comes after the program.
fn called_by_programs(items: &[Value]) -> Result<(), String> {
    for (at, item) in items.iter().enumerate() {
        let is_output = item["type"] == "program_output";
        let program = if is_output { &item["call_id"] } else { &item["caller"]["caller_id"] };
        let is_there = |other: &Value| other["type"] == "program" && other["call_id"] == *program;
        if !program.is_null() && !items[..at].iter().any(is_there) {
            return Err(format!("No program found with call_id {program}, for input[{at}]."));
        }
    }
    Ok(())
}

fn responses(body: &Value) -> Result<(), String> {
    let items = body["input"].as_array().ok_or("Missing required parameter: 'input'.")?;
    let has_past = !body["previous_response_id"].is_null();
    let mut seen: HashSet<&str> = HashSet::new();
    for (call_kind, output_kind) in CALLS {
        let of = |kind: &str| -> Vec<(usize, &Value)> {
            items.iter().enumerate().filter(|(_, item)| item["type"] == kind).collect()
        };
        let (calls, outputs) = (of(call_kind), of(output_kind));
        // A reference may be to any item that the provider keeps.
        let has_past = has_past || items.iter().any(|item| item["type"] == "item_reference");
        for (at, output) in &outputs {
            let is_asked = calls.iter().any(|(asked, call)| asked < at && call["call_id"] == output["call_id"]);
            if !is_asked && !has_past {
                return Err(format!("No tool call found for function call output with call_id {}.", output["call_id"]));
            }
        }
        for (_, call) in &calls {
            if !outputs.iter().any(|(_, output)| output["call_id"] == call["call_id"]) {
                return Err(format!("No tool output found for function call {}.", call["call_id"]));
            }
        }
    }
    called_by_programs(items)?;
    if body["model"].as_str().is_some_and(|model| model.contains("gpt-")) {
        item_ids(items)?;
    }
    for (at, item) in items.iter().enumerate() {
        let id = item["id"].as_str().filter(|_| item["type"] != "item_reference");
        if id.is_some_and(|id| !seen.insert(id)) {
            return Err(format!("Duplicate item found with id {}.", item["id"]));
        }
        if item["type"] == "reasoning" {
            let next = items[at + 1..].iter().find(|next| next["type"] != "reasoning");
            let is_of_model = |next: &Value| {
                let of_kind = |kind: &str| kind.ends_with("_call") || kind == "item_reference";
                next["role"] == "assistant" || next["type"].as_str().is_some_and(of_kind)
            };
            if !next.is_some_and(is_of_model) {
                return Err(format!(
                    "Item {} of type 'reasoning' was provided without its required following item.",
                    item["id"]
                ));
            }
        }
        if item["type"].is_null() || item["type"] == "message" {
            let role = item["role"].as_str().unwrap_or_default();
            if !["developer", "system", "user", "assistant"].contains(&role) {
                return Err(format!(
                    "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
                ));
            }
            let start = if role == "assistant" { "output_" } else { "input_" };
            let parts = item["content"].as_array().cloned().unwrap_or_default();
            let kinds = parts.iter().filter_map(|part| part["type"].as_str()).filter(|kind| *kind != "refusal");
            if let Some(kind) = kinds.into_iter().find(|kind| !kind.starts_with(start)) {
                return Err(format!("Invalid value: '{kind}' in input[{at}]."));
            }
        }
    }
    Ok(())
}
