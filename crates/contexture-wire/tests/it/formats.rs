//! The wire formats, as properties.

use contexture_wire::{Format, Plan, Request, Usage, digest, read};
use proptest::prelude::*;
use serde_json::{Value, json};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", "[a-z \\\\\"\n]{0,60}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn message(format: Format) -> BoxedStrategy<Value> {
    match format {
        Format::Messages => prop_oneof![
            text().prop_map(|text| json!({"role": "user", "content": text})),
            (text(), value()).prop_map(|(text, input)| json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": text, "signature": "s"},
                {"type": "tool_use", "id": "c1", "name": "t", "input": {"a": input}}]})),
            (text(), any::<bool>()).prop_map(|(text, failed)| json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "is_error": failed, "content": [{"type": "text", "text": text}, {"type": "image", "source": {}}]},
                {"type": "text", "text": "and"}]})),
        ].boxed(),
        Format::Chat => prop_oneof![
            text().prop_map(|text| json!({"role": "user", "content": text})),
            (text(), value()).prop_map(|(text, input)| json!({"role": "assistant", "content": text, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "t", "arguments": json!({"a": input}).to_string()}}]})),
            text().prop_map(|text| json!({"role": "tool", "tool_call_id": "c1", "content": text})),
        ].boxed(),
        Format::Responses => prop_oneof![
            text().prop_map(|text| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})),
            value().prop_map(|input| json!({"type": "function_call", "call_id": "c1", "name": "t", "arguments": json!({"a": input}).to_string()})),
            text().prop_map(|text| json!({"type": "function_call_output", "call_id": "c1", "output": text})),
            text().prop_map(|text| json!({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": text})),
        ].boxed(),
        Format::Gemini => prop_oneof![
            text().prop_map(|text| json!({"role": "user", "parts": [{"text": text}]})),
            (text(), value()).prop_map(|(text, input)| json!({"role": "model", "parts": [
                {"text": text, "thought": true}, {"text": text, "thoughtSignature": "s"},
                {"functionCall": {"name": "t", "args": {"a": input}}, "thoughtSignature": "s"}]})),
            text().prop_map(|text| json!({"role": "user", "parts": [
                {"functionResponse": {"name": "t", "response": {"output": text}}}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]})),
        ].boxed(),
    }
}

fn list_of(format: Format) -> &'static str {
    match format {
        Format::Messages | Format::Chat => "messages",
        Format::Responses => "input",
        Format::Gemini => "contents",
    }
}

fn any_request() -> impl Strategy<Value = (Format, Vec<Value>)> {
    prop::sample::select(&Format::ALL[..]).prop_flat_map(|format| {
        prop::collection::vec(message(format), 0..8).prop_map(move |messages| (format, messages))
    })
}

proptest! {
    #[test]
    fn nothing_decided_means_the_very_same_bytes((format, messages) in any_request(), pretty in any::<bool>()) {
        let body = json!({"model": "m", list_of(format): messages, "x": 1.0});
        let body = if pretty { serde_json::to_string_pretty(&body).unwrap() } else { body.to_string() };
        let request = Request::parse(format, &body).unwrap();
        prop_assert_eq!(request.messages().len(), messages.len());
        prop_assert_eq!(&*request.rewritten(&Plan::default()).unwrap(), body.as_str());
        prop_assert_eq!(&*request.rewritten(&Plan::keeping(messages.len())).unwrap(), body.as_str());
    }

    #[test]
    fn keeping_every_part_keeps_every_message((format, messages) in any_request()) {
        let body = json!({"model": "m", list_of(format): messages}).to_string();
        let request = Request::parse(format, &body).unwrap();
        let mut plan = Plan::default();
        for (at, message) in request.messages().iter().enumerate() {
            let units = read(format, message, None).unwrap();
            for unit in 0..units.len() {
                plan.push_unit(at, unit, units.len(), None);
            }
        }
        plan.cover(messages.len());
        prop_assert!(plan.is_as_it_came() || messages.is_empty());
    }

    #[test]
    fn the_form_of_a_message_makes_no_difference((format, messages) in any_request()) {
        for message in &messages {
            let one = digest(format, &message.to_string()).unwrap();
            prop_assert_eq!(one, digest(format, &serde_json::to_string_pretty(message).unwrap()).unwrap());
            let mut marked = message.clone();
            if let Some(block) = marked["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
                block["cache_control"] = json!({"type": "ephemeral"});
            } else if let Some(text) = marked["content"].as_str().filter(|text| !text.is_empty()) {
                marked["content"] = json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
            }
            prop_assert_eq!(one, digest(format, &marked.to_string()).unwrap());
        }
    }

    #[test]
    fn what_is_said_makes_a_difference(one in "[a-z]{1,20}", two in "[a-z]{1,20}") {
        let of = |text: &str| digest(Format::Chat, &json!({"role": "user", "content": text}).to_string()).unwrap();
        prop_assert_eq!(one == two, of(&one) == of(&two));
    }

    #[test]
    fn a_shortened_output_keeps_its_other_fields_and_images(text in text()) {
        let block = json!({"type": "tool_result", "tool_use_id": "c1", "is_error": true, "future": [1, 2],
            "content": [{"type": "text", "text": "long"}, {"type": "image", "source": {"data": "AAAA"}}]});
        let body = json!({"messages": [{"role": "user", "content": [block]}]}).to_string();
        let request = Request::parse(Format::Messages, &body).unwrap();
        let mut plan = Plan::default();
        plan.push_unit(0, 0, 1, Some(text.as_str().into()));
        plan.cover(1);
        let sent: Value = serde_json::from_str(&request.rewritten(&plan).unwrap()).unwrap();
        let block = &sent["messages"][0]["content"][0];
        prop_assert_eq!(block, &json!({"type": "tool_result", "tool_use_id": "c1", "is_error": true, "future": [1, 2],
            "content": [{"type": "text", "text": text}, {"type": "image", "source": {"data": "AAAA"}}]}));
    }

    #[test]
    fn usage_is_read_however_a_stream_is_cut(cuts in prop::collection::vec(1_usize..40, 1..30)) {
        let stream = "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":50,\"cache_creation_input_tokens\":7,\"cache_creation\":{\"ephemeral_1h_input_tokens\":2},\"output_tokens\":1}}}\r\n\r\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n";
        let mut reader = contexture_wire::AnswerReader::new(true);
        let (mut rest, mut cuts) = (stream.as_bytes(), cuts.into_iter().cycle());
        while !rest.is_empty() {
            let (now, later) = rest.split_at(cuts.next().unwrap().min(rest.len()));
            reader.push(now);
            rest = later;
        }
        let expected = Usage { input: 3, cache_read: 50, cache_write: 5, cache_write_hour: 2, output: 9 };
        prop_assert_eq!(reader.finish().usage, Some(expected));
    }
}

#[test]
fn usage_of_all_providers_is_understood() {
    let check = |answer: Value, expected: Usage| {
        let mut usage = Usage::default();
        assert!(usage.take(&answer));
        assert_eq!(usage, expected, "{answer}");
    };
    check(
        json!({"usage": {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 64}}}),
        Usage { input: 36, cache_read: 64, output: 5, ..Usage::default() },
    );
    check(
        json!({"usage": {"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 40}}),
        Usage { input: 60, cache_read: 40, output: 5, ..Usage::default() },
    );
    check(
        json!({"response": {"usage": {"input_tokens": 10, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}}}),
        Usage { input: 6, cache_read: 4, output: 2, ..Usage::default() },
    );
    check(
        json!({"usage": {"input_tokens": 10, "output_tokens": 2}}),
        Usage { input: 10, output: 2, ..Usage::default() },
    );
}

#[test]
fn marks_move_to_what_replaces_their_place_and_behind_what_is_added() {
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let user = |text: &str, is_marked: bool| {
        let mut block = json!({"type": "text", "text": text});
        if is_marked {
            block["cache_control"] = mark.clone();
        }
        json!({"role": "user", "content": [block]})
    };
    let body = json!({"messages": [user("one", false), user("two", true), user("three", true)]}).to_string();
    let request = Request::parse(Format::Messages, &body).unwrap();
    let mut plan = Plan::default();
    plan.push_unit(0, 0, 1, None);
    plan.push_made("folded".into());
    plan.push_unit(2, 0, 1, None);
    plan.push_made("brought back".into());
    plan.cover(3);
    let sent: Value = serde_json::from_str(&request.rewritten(&plan).unwrap()).unwrap();
    let expected = json!({"messages": [user("one", false), user("folded", true), user("three", false), user("brought back", true)]});
    assert_eq!(sent, expected);
    // With the next message the client's mark is there, and nothing of this one is left.
    let body = json!({"messages": [user("one", false), user("two", false), user("three", false), user("four", true)]})
        .to_string();
    let request = Request::parse(Format::Messages, &body).unwrap();
    let sent: Value = serde_json::from_str(&request.rewritten(&plan).unwrap()).unwrap();
    let texts = [
        user("one", false),
        user("folded", false),
        user("three", false),
        user("brought back", false),
        user("four", true),
    ];
    assert_eq!(sent, json!({"messages": texts}));
}

#[test]
fn a_mark_stands_at_what_stays_and_there_are_never_more_than_four() {
    let mark = json!({"type": "ephemeral"});
    let user = |text: &str, is_marked: bool| {
        let mut block = json!({"type": "text", "text": text});
        if is_marked {
            block["cache_control"] = mark.clone();
        }
        json!({"role": "user", "content": [block]})
    };
    let check = |tools: usize, marked: &[usize], expected: &[&str]| {
        let tools: Vec<Value> = (0..tools).map(|n| json!({"name": format!("t{n}"), "cache_control": mark})).collect();
        let messages: Vec<Value> = (0..6).map(|n| user(&n.to_string(), marked.contains(&n))).collect();
        let body = json!({"tools": tools, "messages": messages}).to_string();
        let request = Request::parse(Format::Messages, &body).unwrap();
        let mut plan = Plan::default();
        plan.push_made("stays".into());
        plan.push_made("changes".into());
        plan.push_kept(2..3);
        plan.cover(3);
        plan.stand(1);
        let sent: Value = serde_json::from_str(&request.rewritten(&plan).unwrap()).unwrap();
        let blocks = sent["messages"].as_array().unwrap().iter().map(|message| &message["content"][0]);
        let marked: Vec<&str> = blocks
            .filter(|block| block.get("cache_control").is_some())
            .map(|block| block["text"].as_str().unwrap())
            .collect();
        assert_eq!(marked, expected, "{sent}");
    };
    check(2, &[5], &["stays", "5"]);
    check(3, &[5], &["5"]);
    check(2, &[4, 5], &["stays", "5"]);
    check(0, &[2, 4, 5], &["stays", "2", "4", "5"]);
    check(1, &[2, 4, 5], &["stays", "2", "5"]);
    check(2, &[], &[]);
}

#[test]
fn a_mark_stands_at_the_end_of_what_stays_also_where_that_is_a_message_of_the_agent() {
    let mark = json!({"type": "ephemeral"});
    let call = |input: &str| {
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t", "signature": "s"},
            {"type": "tool_use", "id": "c1", "name": "t", "input": {"a": input}}]})
    };
    let output = |text: &str| json!({"type": "tool_result", "tool_use_id": "c1", "content": text});
    let said = |block: Value| json!({"role": "user", "content": [block]});
    let marked = |mut block: Value| {
        block["cache_control"] = mark.clone();
        block
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let check = |end: Value, plan: &Plan, expected: Vec<Value>| {
        let messages = [said(text("one")), call("long"), end, said(marked(text("four")))];
        let body = json!({"model": "m", "messages": messages}).to_string();
        let request = Request::parse(Format::Messages, &body).unwrap();
        let sent: Value = serde_json::from_str(&request.rewritten(plan).unwrap()).unwrap();
        assert_eq!(sent["messages"], Value::from(expected));
    };
    let mut plan = Plan::default();
    plan.push_kept(0..1);
    plan.push_unit(1, 0, 2, None);
    plan.push_unit(1, 1, 2, Some(r#"{"a":"l"}"#.into()));
    let mut short = plan.clone();
    short.push_unit(2, 0, 1, Some("o".into()));
    plan.push_kept(2..3);
    for plan in [&mut short, &mut plan] {
        plan.stand(3);
        plan.push_made("changes".into());
        plan.push_kept(3..4);
        plan.cover(4);
    }
    let sent = |end: Value| vec![said(text("one")), call("l"), end, said(text("changes")), said(marked(text("four")))];
    check(said(output("output")), &short, sent(said(marked(output("o")))));
    check(said(output("output")), &plan, sent(said(marked(output("output")))));
    // What has a mark of the client's keeps it; what accepts none leaves it to what comes before.
    check(said(marked(output("output"))), &plan, sent(said(marked(output("output")))));
    let mut before = sent(said(text("")));
    before[1]["content"][1] = marked(before[1]["content"][1].clone());
    check(said(text("")), &plan, before);
}

#[test]
fn a_call_with_other_arguments_keeps_everything_else_in_every_format() {
    let check = |format: Format, message: Value, units: usize, at: usize, expected: Value| {
        let body = json!({"model": "m", list_of(format): [message]}).to_string();
        let request = Request::parse(format, &body).unwrap();
        assert_eq!(read(format, request.messages()[0], None).unwrap().len(), units);
        let mut plan = Plan::default();
        for unit in 0..units {
            plan.push_unit(0, unit, units, (unit == at).then(|| r#"{"input":"short"}"#.into()));
        }
        plan.cover(1);
        let sent: Value = serde_json::from_str(&request.rewritten(&plan).unwrap()).unwrap();
        assert_eq!(sent[list_of(format)][0], expected, "{format:?}");
    };
    let check = |format: Format, units: usize, at: usize, message: &dyn Fn(&str) -> Value| {
        check(format, message("long"), units, at, message("short"));
    };
    let arguments = |input: &str| json!({"input": input}).to_string();
    check(Format::Messages, 3, 1, &|input| {
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t", "signature": "s"},
            {"type": "tool_use", "id": "c1", "name": "t", "input": {"input": input}, "caller": {"type": "direct"}},
            {"type": "tool_use", "id": "c2", "name": "t", "input": {"input": "other"}}]})
    });
    check(Format::Chat, 4, 2, &|input| {
        json!({"role": "assistant", "content": "text", "reasoning_content": "t", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "t", "arguments": arguments(input)}},
            {"id": "c2", "type": "function", "function": {"name": "t", "arguments": arguments("other")}}]})
    });
    check(Format::Chat, 1, 0, &|input| {
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "custom", "custom": {"name": "t", "input": input}}]})
    });
    check(
        Format::Chat,
        2,
        1,
        &|input| json!({"role": "assistant", "content": "text", "function_call": {"name": "t", "arguments": arguments(input)}}),
    );
    check(
        Format::Responses,
        1,
        0,
        &|input| json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "t", "arguments": arguments(input)}),
    );
    check(
        Format::Responses,
        1,
        0,
        &|input| json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "t", "input": input}),
    );
    check(
        Format::Gemini,
        2,
        1,
        &|input| json!({"role": "model", "parts": [{"text": "text"}, {"functionCall": {"name": "t", "args": {"input": input}}}]}),
    );
}
