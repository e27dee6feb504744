//! What Google accepts, in its own words where people report them.
//!
//! <https://ai.google.dev/gemini-api/docs/function-calling>, <https://ai.google.dev/gemini-api/docs/thought-signatures>,
//! <https://ai.google.dev/gemini-api/docs/caching>, <https://ai.google.dev/api/generate-content>; read on 2026-11-17.

use serde_json::Value;

/// The fields of a request; a name that is none of these is refused.
const FIELDS: [&str; 11] = [
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "safetySettings",
    "cachedContent",
    "labels",
    "model",
    "serviceTier",
    "store",
];

/// Checks a request. A body cannot say which model is asked, so signatures are expected of all that have any: the newest
/// models sign their calls.
pub(super) fn check(body: &Value) -> Result<(), String> {
    let fields = body.as_object().ok_or("Invalid JSON payload received.")?;
    if let Some(name) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(format!("Invalid JSON payload received. Unknown name \"{name}\": Cannot find field."));
    }
    let contents = body["contents"].as_array().filter(|list| !list.is_empty());
    let contents = contents.ok_or("* GenerateContentRequest.contents: contents is not specified")?;
    let is_kept = !body["cachedContent"].is_null();
    if is_kept && ["systemInstruction", "tools", "toolConfig"].iter().any(|name| !body[*name].is_null()) {
        return Err("CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.".into());
    }
    let mut asked: Option<Vec<&Value>> = None;
    let mut last_role = "";
    for (at, content) in contents.iter().enumerate() {
        let role = content["role"].as_str().unwrap_or("user");
        if !["user", "model", "function"].contains(&role) {
            return Err("Please use a valid role: user, model.".into());
        }
        if at == 0 && role == "model" && !is_kept {
            return Err("Please ensure that the first content is of the user.".into());
        }
        if role == last_role {
            return Err("Please ensure that multiturn requests alternate between user and model.".into());
        }
        let parts = content["parts"].as_array().filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| {
            format!("* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.")
        })?;
        let of = |name: &str| parts.iter().filter_map(|part| part.get(name)).collect::<Vec<&Value>>();
        let (calls, responses) = (of("functionCall"), of("functionResponse"));
        check_parts(at, role, parts)?;
        match asked.take() {
            Some(asked) => answers(&asked, &responses)?,
            None if !(responses.is_empty() || is_kept && at == 0) => {
                return Err(
                    "Please ensure that function response turn comes immediately after a function call turn.".into()
                );
            }
            None => {}
        }
        asked = (!calls.is_empty()).then_some(calls);
        last_role = role;
    }
    if last_role == "model" {
        return Err("Please ensure that single turn requests end with a user role or the role field is empty.".into());
    }
    signatures(contents)
}

fn check_parts(at: usize, role: &str, parts: &[Value]) -> Result<(), String> {
    for (n, part) in parts.iter().enumerate() {
        let fields = part.as_object().ok_or("Invalid value at 'contents[].parts[]'.")?;
        let is_empty = fields.is_empty() || (part["text"] == "" && part["thoughtSignature"].is_null());
        if is_empty {
            return Err("Unable to submit request because it has an empty text parameter.".into());
        }
        let kinds = [
            "text",
            "functionCall",
            "functionResponse",
            "inlineData",
            "fileData",
            "executableCode",
            "codeExecutionResult",
            "toolCall",
            "toolResponse",
        ];
        if kinds.iter().filter(|kind| part.get(**kind).is_some()).count() != 1 {
            return Err(format!(
                "* GenerateContentRequest.contents[{at}].parts[{n}].data: required oneof field 'data' must have one initialized field"
            ));
        }
        let wrong = if role == "model" { "functionResponse" } else { "functionCall" };
        if part.get(wrong).is_some() {
            return Err(format!("contents[{at}].parts[{n}]: {wrong} is not allowed in role {role}."));
        }
        let named = part.get("functionCall").or_else(|| part.get("functionResponse"));
        if named.is_some_and(|named| named["name"].as_str().is_none_or(str::is_empty)) {
            return Err(format!("* GenerateContentRequest.contents[{at}].parts[{n}].name: Name cannot be empty."));
        }
        if part.get("functionResponse").is_some_and(|response| !response["response"].is_object()) {
            return Err("Invalid value at 'function_response.response': it must be a Struct.".into());
        }
    }
    Ok(())
}

/// Responses are as many as the calls, of the same names, and with the same ids where both have them.
fn answers(asked: &[&Value], responses: &[&Value]) -> Result<(), String> {
    if asked.len() != responses.len() {
        return Err("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".into());
    }
    let mut open: Vec<&Value> = asked.to_vec();
    for response in responses {
        let is_it = |call: &&Value| {
            call["name"] == response["name"]
                && (call["id"].is_null() || response["id"].is_null() || call["id"] == response["id"])
        };
        let place = open
            .iter()
            .position(is_it)
            .ok_or_else(|| format!("No function call for the function response {}.", response["name"]))?;
        open.remove(place);
    }
    Ok(())
}

/// The first call of every step of the current turn has its signature, if any call of the request has one.
fn signatures(contents: &[Value]) -> Result<(), String> {
    let parts = |content: &Value| content["parts"].as_array().cloned().unwrap_or_default();
    let signs = |part: &Value| part.get("functionCall").is_some() && part["thoughtSignature"].is_string();
    if !contents.iter().flat_map(parts).any(|part| signs(&part)) {
        return Ok(());
    }
    let begins = |content: &Value| {
        content["role"] != "model" && parts(content).iter().all(|part| part.get("functionResponse").is_none())
    };
    let start = contents.iter().rposition(begins).unwrap_or(0);
    for (at, content) in contents.iter().enumerate().skip(start).filter(|(_, content)| content["role"] == "model") {
        let first = parts(content).into_iter().find(|part| part.get("functionCall").is_some());
        if first.is_some_and(|part| !signs(&part)) {
            return Err(format!("Function call is missing a thought_signature in functionCall parts, contents[{at}]."));
        }
    }
    Ok(())
}
