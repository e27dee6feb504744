//! Every rule in the table of what providers refuse is one of the provider of the tests too, which knows nothing of the
//! table.

use contexture::wire::Format;
use contexture::wire::rules::{Check, TABLE, broken_for};
use contexture_gateway::testing::rules;
use serde_json::{Value, json};

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn model(blocks: Value) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "t", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "done"})
}

fn marked(mut block: Value, life: &str) -> Value {
    block["cache_control"] = json!({"type": "ephemeral", "ttl": life});
    block
}

/// Lists of messages in Anthropic's format, each with the rule that it breaks.
fn messages() -> Vec<(&'static str, Value)> {
    let thought = json!({"type": "thinking", "thinking": "x", "signature": "s"});
    let system = json!({"role": "system", "content": "s"});
    let said = |blocks: Value| json!({"role": "user", "content": blocks});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    let five: Vec<Value> = (0..5).map(|_| marked(text("x"), "5m")).collect();
    let pair = |id: &str| [model(json!([call(id)])), said(json!([result(id)]))];
    let [asked, answered] = pair("1");
    vec![
        ("not-empty", json!([])),
        ("roles", json!([user("a"), {"role": "robot", "content": "x"}])),
        ("first-is-user", json!([model(json!([text("x")])), user("a")])),
        ("last-is-not-assistant", json!([user("a"), model(json!([text("b")]))])),
        ("content", json!([user("a"), model(json!([])), user("b")])),
        ("text", json!([said(json!([text(" \n")]))])),
        ("end-of-text", json!([user("a"), model(json!([text("b ")]))])),
        ("system-follows-user", json!([user("a"), model(json!([text("b")])), system, user("c")])),
        ("system-precedes-assistant", json!([user("a"), system, user("c")])),
        ("calls-answered", json!([user("a"), asked, user("b")])),
        ("results-asked", json!([user("a"), model(json!([text("b")])), answered])),
        ("results-first", json!([user("a"), asked, said(json!([text("b"), result("1")]))])),
        ("server-results-asked", json!([user("a"), model(json!([found])), user("b")])),
        ("unique-calls", json!([user("a"), asked, answered, asked, answered])),
        (
            "thinking-signed",
            json!([user("a"), model(json!([{"type": "thinking", "thinking": "x"}, text("b")])), user("b")]),
        ),
        ("thinking-first", json!([user("a"), model(json!([text("b"), thought, text("c")])), user("b")])),
        ("thinking-not-last", json!([user("a"), model(json!([thought])), user("b")])),
        ("thinking-begins-turn", json!([user("a"), asked, answered])),
        ("marks", json!([said(json!(five))])),
        ("marks-on-thinking", json!([user("a"), model(json!([marked(thought.clone(), "5m"), text("b")])), user("b")])),
        ("marks-on-empty", json!([said(json!([marked(text(""), "5m"), text("b")]))])),
        ("long-marks-first", json!([said(json!([marked(text("a"), "5m"), marked(text("b"), "1h")]))])),
        ("tool-changes", json!([said(json!([text("a"), {"type": "tool_removal", "tool": {"name": "t"}}]))])),
        ("plain-ids", json!([user("a"), model(json!([call("a.b:0")])), said(json!([result("a.b:0")]))])),
    ]
}

fn chat() -> Vec<(&'static str, Value)> {
    let call = json!({"id": "1", "type": "function", "function": {"name": "t", "arguments": "{}"}});
    let asked = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let answered = json!({"role": "tool", "tool_call_id": "1", "content": "x"});
    vec![
        ("not-empty", json!([])),
        ("roles", json!([{"role": "robot", "content": "x"}])),
        ("content", json!([user("a"), {"role": "assistant", "content": null}])),
        ("calls-not-empty", json!([user("a"), {"role": "assistant", "content": "b", "tool_calls": []}])),
        ("calls-answered", json!([user("a"), asked, user("b")])),
        ("outputs-asked", json!([user("a"), {"role": "tool", "tool_call_id": "1", "content": "x"}])),
        (
            "calls-reasoned",
            json!([user("a"), asked, answered, {"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": [call]}, answered]),
        ),
    ]
}

fn responses() -> Vec<(&'static str, Value)> {
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "1", "name": "t", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "1", "output": "done"});
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let wrong = json!({"type": "message", "role": "assistant", "content": [{"type": "input_text", "text": "x"}]});
    vec![
        ("roles", json!([{"type": "message", "role": "robot", "content": "x"}])),
        ("calls-answered", json!([user("a"), call])),
        ("outputs-asked", json!([user("a"), output])),
        ("unique-items", json!([user("a"), call, output, thought, thought, call, output])),
        ("reasoning-followed", json!([user("a"), thought, user("b")])),
        ("parts-of-role", json!([user("a"), wrong])),
        ("item-ids", json!([user("a"), {"type": "message", "role": "user", "id": "item_1", "content": "b"}])),
    ]
}

fn gemini() -> Vec<(&'static str, Value)> {
    let of = |role: &str, part: Value| json!({"role": role, "parts": [part]});
    let said = |text: &str| of("user", json!({"text": text}));
    let asked = of("model", json!({"functionCall": {"name": "t", "args": {}}}));
    let signed = of("model", json!({"functionCall": {"name": "t", "args": {}}, "thoughtSignature": "s"}));
    let answered = of("user", json!({"functionResponse": {"name": "t", "response": {"output": "x"}}}));
    let told = of("model", json!({"text": "b"}));
    vec![
        ("not-empty", json!([])),
        ("roles", json!([of("robot", json!({"text": "a"}))])),
        ("first-is-user", json!([told, said("a")])),
        ("last-is-user", json!([said("a"), told])),
        ("parts", json!([{"role": "user", "parts": []}])),
        ("text", json!([of("user", json!({"text": ""}))])),
        ("calls-answered", json!([said("a"), signed, said("b")])),
        ("responses-asked", json!([said("a"), told, answered])),
        ("calls-after-user", json!([said("a"), told, signed, answered])),
        ("roles-alternate", json!([said("a"), said("b")])),
        ("calls-signed", json!([said("a"), signed, answered, asked, answered])),
        ("beside-cached-content", json!([said("a")])),
    ]
}

/// A request with these messages, in which the rule applies.
fn request(format: Format, rule: &str, messages: &Value) -> (String, &'static str) {
    let (list, model) = match (format, rule) {
        (Format::Messages, "last-is-not-assistant" | "plain-ids") => ("messages", "claude-opus-4-8"),
        (Format::Chat, "calls-reasoned") => ("messages", "kimi-k2.6"),
        (Format::Responses, "item-ids") => ("input", "gpt-6-sol"),
        (Format::Messages | Format::Chat, _) => ("messages", "m"),
        (Format::Responses, _) => ("input", "m"),
        (Format::Gemini, _) => ("contents", "gemini-3.1-pro-preview"),
    };
    let mut body = json!({list: messages});
    if format != Format::Gemini {
        body["model"] = model.into();
    }
    match rule {
        "thinking-begins-turn" => body["thinking"] = json!({"type": "enabled", "budget_tokens": 2000}),
        "beside-cached-content" => {
            body["cachedContent"] = "cachedContents/x".into();
            body["tools"] = json!([{"functionDeclarations": [{"name": "t"}]}]);
        }
        _ => {}
    }
    (body.to_string(), model)
}

#[test]
fn the_provider_of_the_tests_refuses_whatever_breaks_a_rule_of_the_table() {
    let samples = [
        (Format::Messages, messages()),
        (Format::Chat, chat()),
        (Format::Responses, responses()),
        (Format::Gemini, gemini()),
    ];
    for (format, samples) in &samples {
        for rule in TABLE.iter().filter(|rule| rule.format == *format && rule.check != Check::Elsewhere) {
            let sample = samples.iter().find(|(id, _)| *id == rule.id);
            let (_, messages) = sample.unwrap_or_else(|| panic!("nothing breaks {} of {format:?}", rule.id));
            let (body, model) = request(*format, rule.id, messages);
            assert!(rules::check(*format, &body).is_err(), "{format:?}: {} is accepted: {body}", rule.id);
            let found = broken_for(*format, &body, Some(model)).map(|broken| broken.rule.id);
            // What is empty is refused with a mark and without it.
            let expected = if rule.check == Check::UnmarkedEmpty { "text" } else { rule.id };
            assert_eq!(found, Some(expected), "{format:?}: {body}");
        }
    }
}
