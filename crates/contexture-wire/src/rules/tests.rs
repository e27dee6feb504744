use serde_json::{Value, json};

use super::{TABLE, broken};
use crate::format::Format;

#[track_caller]
fn check(format: Format, messages: Value, expected: Option<(&str, Option<usize>)>) {
    check_for("m", format, messages, expected);
}

#[track_caller]
fn check_for(model: &str, format: Format, messages: Value, expected: Option<(&str, Option<usize>)>) {
    let body = json!({"model": model, format.list(): messages}).to_string();
    let found = broken(format, &body).map(|broken| (broken.rule.id, broken.at));
    assert_eq!(found, expected, "{body}");
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

fn model(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
}

fn calls(ids: &[&str]) -> Value {
    let blocks: Vec<Value> =
        ids.iter().map(|id| json!({"type": "tool_use", "id": id, "name": "t", "input": {}})).collect();
    json!({"role": "assistant", "content": blocks})
}

fn results(ids: &[&str]) -> Value {
    let blocks: Vec<Value> =
        ids.iter().map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "done"})).collect();
    json!({"role": "user", "content": blocks})
}

#[test]
fn every_rule_is_named_once_dated_and_sourced() {
    for (at, rule) in TABLE.iter().enumerate() {
        let is_day = rule.read.len() == 10 && rule.read.starts_with("20");
        assert!(is_day && rule.source.starts_with("https://"), "{}", rule.id);
        let is_same = |other: &super::Rule| other.id == rule.id && other.format == rule.format;
        assert!(!TABLE[..at].iter().any(is_same), "{} is there twice", rule.id);
    }
}

#[test]
fn system_messages_follow_the_user_and_precede_the_model() {
    let check = |messages: Value, expected| check(Format::Messages, messages, expected);
    check(json!([user("a"), system("s"), model("b"), user("c"), system("t")]), None);
    check(json!([user("a"), user("b"), system("s")]), None);
    check(json!([system("s"), user("a")]), Some(("first-is-user", Some(0))));
    check(json!([user("a"), model("b"), system("s"), user("c")]), Some(("system-follows-user", Some(2))));
    check(json!([user("a"), system("s"), system("t")]), Some(("system-follows-user", Some(2))));
    check(json!([user("a"), system("s"), user("c")]), Some(("system-precedes-assistant", Some(1))));
    let searched = json!({"role": "assistant", "content": [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}]});
    check(json!([user("a"), searched, system("s")]), None);
}

#[test]
fn calls_and_results_of_anthropic_are_pairs() {
    let check = |messages: Value, expected| check(Format::Messages, messages, expected);
    check(json!([user("a"), calls(&["1", "2"]), results(&["2", "1"])]), None);
    // The provider joins messages of one role.
    check(json!([user("a"), calls(&["1", "2"]), results(&["1"]), results(&["2"])]), None);
    check(json!([user("a"), calls(&["1"]), results(&["1"]), system("s"), model("b"), user("c")]), None);
    check(json!([user("a"), calls(&["1"]), user("b")]), Some(("calls-answered", Some(1))));
    check(json!([user("a"), calls(&["1"])]), Some(("calls-answered", Some(1))));
    check(json!([user("a"), model("b"), results(&["1"])]), Some(("results-asked", Some(2))));
    check(json!([user("a"), calls(&["1"]), user("b"), results(&["1"])]), Some(("results-first", Some(2))));
    check(
        json!([user("a"), calls(&["1"]), results(&["1"]), calls(&["1"]), results(&["1"])]),
        Some(("unique-calls", Some(3))),
    );
}

#[test]
fn texts_thoughts_and_marks_of_anthropic() {
    let check = |messages: Value, expected| check(Format::Messages, messages, expected);
    let said = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let mark = json!({"type": "ephemeral"});
    let text = json!({"type": "text", "text": "x"});
    let thought = json!({"type": "thinking", "thinking": "", "signature": "s"});
    check(json!([]), Some(("not-empty", None)));
    check(json!([user("")]), Some(("content", Some(0))));
    check(json!([user("a"), said(json!([]))]), None);
    check(json!([user("a"), said(json!([])), user("b")]), Some(("content", Some(1))));
    check(json!([user("a"), said(json!([{"type": "text", "text": " \n"}])), user("b")]), Some(("text", Some(1))));
    check(json!([user("a"), model("b ")]), Some(("end-of-text", Some(1))));
    check(json!([user("a"), said(json!([thought, text])), user("b")]), None);
    check(json!([user("a"), said(json!([text, thought, text])), user("b")]), Some(("thinking-first", Some(1))));
    check(json!([user("a"), said(json!([thought])), user("b")]), Some(("thinking-not-last", Some(1))));
    let bare = json!({"type": "thinking", "thinking": "x"});
    check(json!([user("a"), said(json!([bare, text])), user("b")]), Some(("thinking-signed", Some(1))));
    let marked = json!({"type": "thinking", "thinking": "x", "signature": "s", "cache_control": mark});
    check(json!([user("a"), said(json!([marked, text])), user("b")]), Some(("marks-on-thinking", Some(1))));
    let five: Vec<Value> = (0..5).map(|_| json!({"type": "text", "text": "x", "cache_control": mark})).collect();
    check(json!([{"role": "user", "content": five}]), Some(("marks", None)));
    let long = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}});
    check(json!([{"role": "user", "content": [five[0], long]}]), Some(("long-marks-first", Some(0))));
    check(json!([{"role": "user", "content": [long, five[0]]}]), None);
}

#[test]
fn a_turn_begins_with_thinking_where_it_has_a_budget() {
    let thought = json!({"type": "thinking", "thinking": "x", "signature": "s"});
    let thinks = |id: &str| {
        let call = json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
        json!({"role": "assistant", "content": [thought, call]})
    };
    let found = |kind: &str, messages: Value| {
        let body = json!({"model": "m", "messages": messages, "thinking": {"type": kind, "budget_tokens": 2000}});
        broken(Format::Messages, &body.to_string()).map(|broken| (broken.rule.id, broken.at))
    };
    let wrong = Some(("thinking-begins-turn", Some(1)));
    let bare = json!([user("a"), calls(&["1"]), results(&["1"])]);
    assert_eq!(found("enabled", bare.clone()), wrong);
    assert_eq!(found("adaptive", bare.clone()), None);
    assert_eq!(found("disabled", bare), None);
    // A turn is one as long as results are returned.
    assert_eq!(
        found("enabled", json!([user("a"), thinks("1"), results(&["1"]), calls(&["2"]), results(&["2"])])),
        None
    );
    assert_eq!(
        found("enabled", json!([user("a"), calls(&["1"]), results(&["1"]), thinks("2"), results(&["2"])])),
        wrong
    );
    assert_eq!(found("enabled", json!([user("a"), calls(&["1"]), results(&["1"]), model("b"), user("c")])), None);
    check(Format::Messages, json!([user("a"), calls(&["1"]), results(&["1"])]), None);
}

#[test]
fn results_of_the_provider_s_own_tools_follow_their_calls() {
    let check = |messages: Value, expected| check(Format::Messages, messages, expected);
    let asked = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    let said = |blocks: Value| json!({"role": "assistant", "content": blocks});
    check(json!([user("a"), said(json!([asked, found])), user("b")]), None);
    check(json!([user("a"), said(json!([asked])), said(json!([found])), user("b")]), None);
    let wrong = Some(("server-results-asked", Some(1)));
    check(json!([user("a"), said(json!([found])), user("b")]), wrong);
    check(json!([user("a"), said(json!([found, asked])), user("b")]), wrong);
}

#[test]
fn newer_models_do_not_go_on_with_a_text() {
    check_for("claude-sonnet-4-5", Format::Messages, json!([user("a"), model("b")]), None);
    let expected = Some(("last-is-not-assistant", Some(1)));
    check_for("anthropic/claude-opus-4-8", Format::Messages, json!([user("a"), model("b")]), expected);
    assert!(super::binds_reasoning(Format::Messages, "claude-opus-5-5"));
    assert!(!super::binds_reasoning(Format::Messages, "claude-opus-5"));
}

#[test]
fn calls_and_outputs_of_chat_completions_are_pairs() {
    let check = |messages: Value, expected| check(Format::Chat, messages, expected);
    let asks = |ids: &[&str]| {
        let calls: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}}))
            .collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    };
    let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": ""});
    check(json!([system("s"), user("a"), asks(&["1", "2"]), tool("2"), tool("1"), user("b")]), None);
    check(json!([user("a"), asks(&["1", "2"]), tool("1"), user("b")]), Some(("calls-answered", Some(1))));
    check(json!([user("a"), asks(&["1"])]), Some(("calls-answered", Some(1))));
    check(json!([user("a"), tool("1")]), Some(("outputs-asked", Some(1))));
    check(json!([user("a"), asks(&["1"]), tool("1"), user("b"), tool("1")]), Some(("outputs-asked", Some(4))));
    check(json!([user("a"), {"role": "assistant", "content": null}]), Some(("content", Some(1))));
    let none = json!({"role": "assistant", "content": "x", "tool_calls": []});
    check(json!([user("a"), none, user("b")]), Some(("calls-not-empty", Some(1))));
    check(json!([{"role": "robot", "content": "x"}]), Some(("roles", Some(0))));
}

#[test]
fn items_of_responses_belong_together() {
    let check = |items: Value, expected| check(Format::Responses, items, expected);
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "1", "name": "t", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "1", "output": "done"});
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
    let said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]});
    let asked = json!({"role": "user", "content": [{"type": "input_text", "text": "x"}]});
    check(json!([asked, thought, call, output, said]), None);
    check(json!([asked, thought, call]), Some(("calls-answered", Some(2))));
    check(json!([asked, output]), Some(("outputs-asked", Some(1))));
    check(json!([output, call]), Some(("outputs-asked", Some(0))));
    check(json!([asked, thought, asked]), Some(("reasoning-followed", Some(1))));
    check(json!([thought]), Some(("reasoning-followed", Some(0))));
    check(json!([call, output, call]), Some(("unique-items", Some(2))));
    let wrong = json!({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]});
    check(json!([wrong]), Some(("parts-of-role", Some(0))));
    let body = json!({"input": [output], "previous_response_id": "resp_1"}).to_string();
    assert!(broken(Format::Responses, &body).is_none(), "the call is with the provider");
}

#[test]
fn what_cannot_be_read_is_not_judged() {
    for body in ["", "[]", r#"{"messages":[1]}"#, r#"{"messages":[{"role":"user","content":{"a":1}}]}"#] {
        assert!(broken(Format::Messages, body).is_none(), "{body}");
    }
    check(Format::Responses, json!([{"type": "compaction_trigger"}, {"type": "something_new", "x": 1}]), None);
}

#[test]
fn tools_are_changed_by_the_system_only() {
    let change = json!({"type": "tool_addition", "tool": {"type": "tool_reference", "name": "t"}});
    let said = |role: &str| json!({"role": role, "content": [{"type": "text", "text": "x"}, change]});
    check(Format::Messages, json!([user("a"), said("system")]), None);
    check(Format::Messages, json!([user("a"), said("user")]), Some(("tool-changes", Some(1))));
}

#[test]
fn ids_are_checked_for_the_providers_that_check_them() {
    let odd = json!([user("a"), calls(&["functions.Bash:0"]), results(&["functions.Bash:0"])]);
    check_for("claude-opus-5-5", Format::Messages, odd.clone(), Some(("plain-ids", Some(1))));
    check_for("kimi-k2.6", Format::Messages, odd, None);
    let item = |id: &str, call: &str| {
        let call_item = json!({"type": "function_call", "id": id, "call_id": call, "name": "t", "arguments": "{}"});
        json!([call_item, {"type": "function_call_output", "call_id": call, "output": "x"}])
    };
    let wrong = Some(("item-ids", Some(0)));
    check_for("gpt-6-sol", Format::Responses, item("fc_1", "call_1"), None);
    check_for("gpt-6-sol", Format::Responses, item("call_1", "call_1"), wrong);
    check_for("openai/gpt-6-sol", Format::Responses, item("fc_1", &"x".repeat(65)), wrong);
    check_for("qwen3", Format::Responses, item("item_1", &"x".repeat(65)), None);
}

#[test]
fn calls_come_back_with_their_reasoning_where_others_do() {
    let call = json!({"id": "1", "type": "function", "function": {"name": "t", "arguments": "{}"}});
    let bare = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let mut thought = bare.clone();
    thought["reasoning_content"] = "".into();
    let done = json!({"role": "tool", "tool_call_id": "1", "content": "x"});
    let told = json!({"role": "assistant", "content": "b"});
    let mixed = json!([user("a"), thought, done, told, user("c"), bare, done]);
    check_for("kimi-k2.6", Format::Chat, mixed.clone(), Some(("calls-reasoned", Some(5))));
    check_for("deepseek/deepseek-v4-pro", Format::Chat, mixed.clone(), Some(("calls-reasoned", Some(5))));
    check_for("gpt-5.1", Format::Chat, mixed, None);
    check_for("kimi-k2.6", Format::Chat, json!([user("a"), bare, done, bare, done]), None);
    check_for("kimi-k2.6", Format::Chat, json!([user("a"), thought, done, told, user("c")]), None);
}

#[test]
fn all_broken_rules_are_told_in_the_order_of_the_table() {
    let body = json!({"model": "m", "messages": [model("a"), user(" ")]}).to_string();
    let found = super::all_broken(Format::Messages, &body, None);
    assert_eq!(found.iter().map(|broken| broken.rule.id).collect::<Vec<_>>(), ["first-is-user", "text"]);
}
