use contexture_core::item::{Item, Outcome, Role};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::{AnswerReader, Format, Plan, Request, Segment, ShownUnit, Unit, digest, read_at, rules};

fn body(contents: &Value) -> String {
    json!({"contents": contents, "generationConfig": {"maxOutputTokens": 77}}).to_string()
}

/// The units of the content at a position.
fn units(contents: &Value, at: usize) -> Vec<Unit> {
    let body = body(contents);
    let request = Request::parse(Format::Gemini, &body).unwrap();
    read_at(Format::Gemini, request.messages(), at, None).unwrap()
}

fn ids(contents: &Value, at: usize) -> Vec<String> {
    let id = |unit: Unit| match unit.item {
        Item::FunctionCall(call) => call.call_id.into(),
        Item::FunctionCallOutput(output) => output.call_id.into(),
        _ => String::new(),
    };
    units(contents, at).into_iter().map(id).collect()
}

fn asked(calls: &[(&str, Option<&str>)]) -> Value {
    let call = |(name, id): &(&str, Option<&str>)| json!({"functionCall": {"name": name, "args": {"n": 1}, "id": id}});
    json!({"role": "model", "parts": calls.iter().map(call).collect::<Vec<_>>()})
}

fn answered(responses: &[(&str, Option<&str>)]) -> Value {
    let response = |(name, id): &(&str, Option<&str>)| json!({"functionResponse": {"name": name, "id": id, "response": {"output": "x"}}});
    json!({"role": "user", "parts": responses.iter().map(response).collect::<Vec<_>>()})
}

#[test]
fn outputs_answer_calls_by_id_by_name_and_in_order() {
    #[track_caller]
    fn check(calls: &[(&str, Option<&str>)], responses: &[(&str, Option<&str>)], expected: &[usize]) {
        let contents = json!([{"role": "user", "parts": [{"text": "go"}]}, asked(calls), answered(responses)]);
        let asked = ids(&contents, 1);
        let expected: Vec<&str> = expected.iter().map(|at| asked[*at].as_str()).collect();
        assert_eq!(ids(&contents, 2), expected);
    }
    check(&[("a", None), ("b", None)], &[("a", None), ("b", None)], &[0, 1]);
    check(&[("a", None), ("b", None)], &[("b", None), ("a", None)], &[1, 0]);
    check(&[("a", None), ("a", None)], &[("a", None), ("a", None)], &[0, 1]);
    check(&[("a", Some("1")), ("a", Some("2"))], &[("a", Some("2")), ("a", Some("1"))], &[1, 0]);
    // The client names what the model did not.
    check(&[("a", None), ("a", None)], &[("a", Some("x")), ("a", Some("y"))], &[0, 1]);
    check(&[("a", Some("1"))], &[("a", None)], &[0]);
    // Another name, as some frameworks write it.
    check(&[("a", None)], &[("other", None)], &[0]);
}

#[test]
fn outputs_in_several_contents_and_calls_in_several_contents_are_paired() {
    let contents = json!([
        {"role": "user", "parts": [{"text": "go"}]},
        asked(&[("a", None)]), asked(&[("a", None)]),
        answered(&[("a", None)]), answered(&[("a", None)]),
        asked(&[("a", None)]), answered(&[("a", None)]),
    ]);
    let all: Vec<String> = (1..7).flat_map(|at| ids(&contents, at)).collect();
    assert_eq!((&all[0], &all[1]), (&all[2], &all[3]));
    assert_eq!(all[4], all[5]);
    assert!(all[0] != all[1] && all[0] != all[4]);
    let alone = json!([answered(&[("a", None)])]);
    assert_eq!(ids(&alone, 0), ["a"]);
}

#[test]
fn parts_are_read_as_items_in_both_spellings() {
    let camel = json!([{"role": "model", "parts": [
        {"text": "hm", "thought": true, "thoughtSignature": "c2ln"},
        {"text": "I look."},
        {"functionCall": {"name": "read_file", "args": {"file_path": "a"}}, "thoughtSignature": "c2ln"},
        {"executableCode": {"language": "PYTHON", "code": "1"}}]}]);
    let snake = json!([{"role": "model", "parts": [
        {"text": "hm", "thought": true, "thought_signature": "c2ln"},
        {"text": "I look."},
        {"function_call": {"name": "read_file", "args": {"file_path": "a"}}, "thought_signature": "c2ln"},
        {"executable_code": {"language": "PYTHON", "code": "1"}}]}]);
    for contents in [&camel, &snake] {
        let found = units(contents, 0);
        assert!(found.iter().all(|unit| !unit.stands_alone && unit.item.is_of_model()));
        let [thought, text, call, code] = &found[..] else { panic!("{found:?}") };
        let Item::Reasoning(thought) = &thought.item else { panic!("{thought:?}") };
        assert_eq!((thought.text.as_str(), &thought.opaque), ("hm", &Some(json!("c2ln"))));
        assert_eq!(text.item, Item::assistant("I look."));
        let call = call.item.as_call().unwrap();
        assert_eq!((&*call.name, call.arguments.as_str()), ("read_file", r#"{"file_path":"a"}"#));
        assert!(matches!(code.item, Item::Opaque(_)));
    }
    let of = |contents: &Value| digest(Format::Gemini, &contents[0].to_string()).unwrap();
    assert_eq!(of(&camel), of(&snake));
    // The names of arguments are not spellings.
    let named = |name: &str| {
        digest(Format::Gemini, &json!({"parts": [{"functionCall": {"name": "f", "args": {name: 1}}}]}).to_string())
            .unwrap()
    };
    assert_ne!(named("filePath"), named("file_path"));
    let one = r#"{"parts":{"text":"hi"}}"#;
    let list = r#"{"role":"user","parts":[{"text":"hi"}]}"#;
    assert_eq!(digest(Format::Gemini, one).unwrap(), digest(Format::Gemini, list).unwrap());
    assert_eq!(units(&json!([{"parts": {"text": "hi"}}]), 0)[0].item, Item::user("hi"));
}

#[test]
fn an_output_has_the_text_that_its_tool_returned() {
    #[track_caller]
    fn check(response: Value, text: &str, outcome: Outcome, rewritten: Value) {
        let part = json!({"functionResponse": {"id": "1", "name": "f", "response": response}});
        let contents = json!([{"role": "user", "parts": [part]}]);
        let found = units(&contents, 0);
        let output = found[0].item.as_output().unwrap();
        assert_eq!((output.output.as_str(), output.outcome), (text, outcome));
        let shown = ShownUnit { unit: 0, text: Some("short".into()) };
        let plan = Plan::of(vec![Segment::Part { message: 0, units: vec![shown] }], 1);
        let body = body(&contents);
        let sent = Request::parse(Format::Gemini, &body).unwrap().rewritten(&plan).unwrap();
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(sent["contents"][0]["parts"][0]["functionResponse"]["response"], rewritten);
        assert_eq!(sent["contents"][0]["parts"][0]["functionResponse"]["id"], "1");
    }
    check(json!({"output": "a\nb"}), "a\nb", Outcome::Unknown, json!({"output": "short"}));
    check(json!({"result": "a"}), "a", Outcome::Unknown, json!({"result": "short"}));
    check(json!({"error": "no file"}), "no file", Outcome::Failed, json!({"error": "short"}));
    check(json!({"a": 1, "output": "x"}), r#"{"a":1,"output":"x"}"#, Outcome::Unknown, json!({"output": "short"}));
    check(json!({"result": [1]}), r#"{"result":[1]}"#, Outcome::Unknown, json!({"output": "short"}));
    check(json!("text"), "\"text\"", Outcome::Unknown, json!({"output": "short"}));
}

#[test]
fn what_a_plan_puts_beside_a_role_is_joined_with_it_and_kept_parts_keep_their_bytes() {
    let body = r#"{"contents": [
        {"role":"user","parts":[{"text":"go"}]},
        {"role":"model","parts":[{"functionCall":{"name":"a","args":{"x":1.0}},"thoughtSignature":"s\u0041"}]},
        {"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":"long"}}}]},
        {"role":"model","parts":[ {"functionCall" : {"name":"b","args":{}},"thoughtSignature":"t\u0041"} ]},
        {"role":"user","parts":[{"functionResponse":{"name":"b","response":{"output":"y"}}}]}
    ], "model":"gemini-3-pro-preview"}"#;
    let request = Request::parse(Format::Gemini, body).unwrap();
    let mut plan = Plan::default();
    plan.push_kept(0..1);
    plan.push_made("records".into());
    plan.push_told("I found it.".into());
    plan.push_kept(3..5);
    plan.cover(5);
    let sent = request.rewritten(&plan).unwrap();
    assert!(sent.contains(r#"{"role":"user","parts":[{"text":"go"},{"text":"records"}]}"#), "{sent}");
    let joined = r#"{"role":"model","parts":[{"text":"I found it."},{"functionCall" : {"name":"b","args":{}},"thoughtSignature":"t\u0041"}]}"#;
    assert!(sent.contains(joined), "{sent}");
    assert!(rules::broken(Format::Gemini, &sent).is_none());
    assert_eq!(request.rewritten(&Plan::keeping(5)).unwrap(), body);
    // Contents that came in a row stay as they came.
    let double = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"user","parts":[{"text":"b"}]},{"role":"model","parts":[{"text":"c"}]},{"role":"user","parts":[{"text":"d"}]}]}"#;
    let request = Request::parse(Format::Gemini, double).unwrap();
    let mut plan = Plan::keeping(2);
    plan.push_told("short".into());
    plan.cover(3);
    let sent = request.rewritten(&plan).unwrap();
    assert!(
        sent.contains(
            r#"[{"role":"user","parts":[{"text":"a"}]},{"role":"user","parts":[{"text":"b"}]},{"role":"model""#
        )
    );
}

#[test]
fn a_request_says_its_model_and_its_limits_wherever_they_are() {
    let inner = json!({"contents": [{"parts": [{"text": "x"}]}], "generation_config": {"max_output_tokens": 9}, "cached_content": "cachedContents/1"});
    let plain = inner.to_string();
    let request = Request::parse(Format::Gemini, &plain).unwrap().addressed_to(Some("gemini-2.5-pro"));
    assert_eq!(request.model().as_deref(), Some("gemini-2.5-pro"));
    assert_eq!((request.most_output(), request.has_cached_content()), (Some(9), true));
    let counted =
        json!({"generateContentRequest": {"model": "models/gemini-3-pro", "contents": inner["contents"]}}).to_string();
    let request = Request::parse(Format::Gemini, &counted).unwrap();
    assert_eq!((request.messages().len(), request.model().as_deref()), (1, Some("models/gemini-3-pro")));
    let mut plan = Plan::default();
    plan.push_made("m".into());
    plan.cover(1);
    let sent: Value = serde_json::from_str(&request.rewritten(&plan).unwrap()).unwrap();
    assert_eq!(sent["generateContentRequest"]["contents"][0]["parts"][0]["text"], "m");
    let wrapped = json!({"model": "gemini-2.5-flash", "project": "p", "request": inner}).to_string();
    let request = Request::parse(Format::Gemini, &wrapped).unwrap();
    assert_eq!(request.model().as_deref(), Some("gemini-2.5-flash"));
}

#[test]
fn usage_is_read_from_events_from_lists_and_from_what_is_cut_off() {
    let piece = |said: u64, stop: Value| {
        json!({"candidates": [{"content": {"parts": [{"text": "日"}]}, "finishReason": stop}], "usageMetadata": {
        "promptTokenCount": 100, "cachedContentTokenCount": 60, "toolUsePromptTokenCount": 5, "candidatesTokenCount": said, "thoughtsTokenCount": 7}, "responseId": "r1"})
    };
    let (one, two) = (piece(1, Value::Null), piece(4, json!("STOP")));
    #[track_caller]
    fn check(is_stream: bool, text: &[u8], output: u64, has_ended: bool) {
        for size in [text.len(), 1, 7] {
            let mut reader = AnswerReader::new(is_stream);
            text.chunks(size).for_each(|bytes| reader.push(bytes));
            let answered = reader.finish();
            let usage = answered.usage.unwrap();
            assert_eq!((usage.input, usage.cache_read, usage.output), (45, 60, output));
            assert_eq!((reader.has_ended(), answered.id.as_deref()), (has_ended, Some("r1")));
        }
    }
    check(true, format!("data: {one}\r\n\r\ndata: {two}\r\n\r\n").as_bytes(), 11, true);
    check(true, format!("data: {one}\n\n").as_bytes(), 8, false);
    check(false, two.to_string().as_bytes(), 11, true);
    check(false, format!("[{one}\n,\r\n{two}\n]").as_bytes(), 11, true);
    let cut = format!("[{one},{two}");
    check(false, &cut.as_bytes()[..cut.len() - 30], 8, false);
    check(false, json!({"response": two, "responseId": "r1"}).to_string().as_bytes(), 11, true);
}

#[test]
fn what_google_refuses() {
    let said = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
    #[track_caller]
    fn check(model: &str, contents: Value, expected: Option<(&str, Option<usize>)>) {
        let found = rules::broken_for(Format::Gemini, &body(&contents), Some(model));
        assert_eq!(found.map(|broken| (broken.rule.id, broken.at)), expected, "{contents}");
    }
    let (old, new) = ("gemini-2.5-pro", "models/gemini-3.1-pro-preview");
    let signed = |name: &str| json!({"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}, "thoughtSignature": "s"}, {"functionCall": {"name": name, "args": {}}}]});
    let two = answered(&[("a", None), ("a", None)]);
    check(
        old,
        json!([said("user", "a"), asked(&[("a", None), ("b", None)]), answered(&[("b", None), ("a", None)])]),
        None,
    );
    check(old, json!([]), Some(("not-empty", None)));
    check(old, json!([said("model", "a"), said("user", "b")]), Some(("first-is-user", Some(0))));
    check(old, json!([said("user", "a"), said("model", "b")]), Some(("last-is-user", Some(1))));
    check(old, json!([said("system", "a")]), Some(("roles", Some(0))));
    check(old, json!([said("user", "a"), said("user", "b")]), Some(("roles-alternate", Some(1))));
    check(old, json!([{"role": "user", "parts": []}]), Some(("parts", Some(0))));
    check(old, json!([said("user", "")]), Some(("text", Some(0))));
    check(old, json!([said("user", "a"), asked(&[("a", None)]), said("user", "b")]), Some(("calls-answered", Some(1))));
    check(
        old,
        json!([said("user", "a"), asked(&[("a", None), ("a", None)]), answered(&[("a", None)])]),
        Some(("calls-answered", Some(1))),
    );
    check(old, json!([said("user", "a"), answered(&[("a", None)])]), Some(("responses-asked", Some(0))));
    check(
        old,
        json!([said("user", "a"), said("model", "b"), asked(&[("a", None)]), answered(&[("a", None)])]),
        Some(("calls-after-user", Some(2))),
    );
    check(new, json!([said("user", "a"), signed("a"), two]), None);
    check(
        new,
        json!([said("user", "a"), asked(&[("a", None)]), answered(&[("a", None)])]),
        Some(("calls-signed", Some(1))),
    );
    // Earlier turns are not checked.
    check(
        new,
        json!([
            said("user", "a"),
            asked(&[("a", None)]),
            answered(&[("a", None)]),
            said("model", "b"),
            said("user", "c"),
            signed("a"),
            two
        ]),
        None,
    );
    let kept = json!({"cachedContent": "cachedContents/1", "contents": [two], "tools": []}).to_string();
    assert_eq!(rules::broken(Format::Gemini, &kept).map(|broken| broken.rule.id), Some("beside-cached-content"));
    let kept = json!({"cachedContent": "cachedContents/1", "contents": [two]}).to_string();
    assert!(rules::broken(Format::Gemini, &kept).is_none());
}

/// A part of any kind, in either spelling, with a chance of nonsense.
fn any_part() -> impl Strategy<Value = Value> {
    let text = "[a-z\"\\\\é日 ]{0,12}";
    prop_oneof![
        text.prop_map(|text| json!({"text": text})),
        text.prop_map(|text| json!({"text": text, "thought": true, "thoughtSignature": "c2ln"})),
        (text, any::<bool>()).prop_map(|(name, has_id)| json!({"functionCall": {"name": name, "args": {"a": [1.0, null]}, "id": has_id.then_some("x")}})),
        (text, text).prop_map(|(name, text)| json!({"functionResponse": {"name": name, "response": {"output": text}}})),
        text.prop_map(|text| json!({"function_response": {"name": "f", "response": [text]}})),
        Just(json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})),
        Just(json!({"file_data": {"file_uri": "gs://x", "mime_type": "text/plain"}})),
        Just(json!({"codeExecutionResult": {"outcome": "OUTCOME_OK"}})),
        Just(json!({"fromTheFuture": {"a": 1}, "text": 7})),
        Just(json!({})),
        Just(json!(3)),
    ]
}

proptest! {
    #[test]
    fn any_request_is_read_or_refused_and_written_back_as_it_came(
        contents in prop::collection::vec((prop::sample::select(vec!["user", "model", "function", "", "alien"]), prop::collection::vec(any_part(), 0..4)), 0..8),
        keep in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let contents: Vec<Value> = contents.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect();
        let body = serde_json::to_string_pretty(&json!({"contents": contents, "x": 1.50})).unwrap();
        let request = Request::parse(Format::Gemini, &body).unwrap();
        let count = request.messages().len();
        prop_assert_eq!(request.rewritten(&Plan::keeping(count)).unwrap(), body.as_str());
        let _ = rules::broken_for(Format::Gemini, &body, Some("gemini-3-pro"));
        let mut ids = Vec::new();
        for (at, content) in contents.iter().enumerate() {
            let Ok(units) = read_at(Format::Gemini, request.messages(), at, None) else { continue };
            ids.extend(units.iter().filter_map(|unit| unit.item.as_call()).map(|call| call.call_id.to_string()));
            let shown = (0..units.len()).map(|unit| ShownUnit { unit, text: None }).collect();
            let plan = Plan::of(vec![Segment::Part { message: at, units: shown }], count);
            let sent = request.rewritten(&plan).unwrap();
            let sent: Value = serde_json::from_str(&sent).unwrap();
            prop_assert_eq!(&sent["contents"][0], content);
            prop_assert!(units.iter().all(|unit| unit.item.as_message().is_none_or(|message| message.role != Role::System)));
        }
        if count > 0 {
            let from = keep.index(count);
            let mut plan = Plan::default();
            plan.push_made("made".into());
            plan.push_kept(from..count);
            plan.cover(count);
            let sent = request.rewritten(&plan).unwrap();
            for raw in &request.messages()[from..] {
                let parts: Vec<&RawValue> = serde_json::from_str::<std::collections::HashMap<&str, &RawValue>>(raw.get()).unwrap().get("parts").map(|parts| serde_json::from_str(parts.get()).unwrap()).unwrap();
                prop_assert!(parts.iter().all(|part| sent.contains(part.get())));
            }
        }
        // A body that is cut anywhere is refused or read, and nothing else.
        let end = body.floor_char_boundary(cut.index(body.len() + 1));
        let _ = Request::parse(Format::Gemini, &body[..end]).map(|request| request.messages().len());
    }
}
