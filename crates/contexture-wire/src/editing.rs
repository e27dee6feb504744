//! What providers do to a window by themselves: what a request asks for, and what a response says was done.
//!
//! From the public references of June 2026: Anthropic's context editing (`clear_tool_uses_20250919`,
//! `clear_thinking_20251015`) and compaction (`compact_20260112`) in the field `context_management` with its `edits`,
//! answered with `applied_edits`, with blocks of the type `compaction` and with `iterations` in the usage; OpenAI's
//! `context_management` of responses, a list, answered with items of the type `compaction`.

use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

use super::fields::Fields;
use super::format::Format;
use super::request::Request;
use super::usage::{Usage, tokens};

/// The field by which a client asks for it.
const FIELD: &str = "context_management";

/// The list in it, in Anthropic's form.
const EDITS: &str = "edits";

/// The start of the type of edits that clear thoughts only. They never take what a fold shows, and clients send them to
/// keep all thoughts as well.
const THOUGHTS: &str = "clear_thinking";

/// The type of blocks and items into which a provider compacts the past.
const COMPACTION: &str = "compaction";

/// Most edits of one response that are kept, and most fields of one request that are taken out.
const MOST_EDITS: usize = 16;

/// An edit that a provider made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedEdit {
    /// Its type, in the provider's own word.
    pub kind: String,
    /// How many tool uses, or turns with thoughts, it cleared.
    pub cleared: u64,
    /// How many tokens of input the model did not see for it, as far as that is said.
    pub cleared_tokens: u64,
    /// What it took by itself, beside the response: a compaction is a response of its own.
    pub usage: Option<Usage>,
}

impl Request<'_> {
    /// Whether it asks the provider to take something out of the window that is more than thoughts.
    pub fn asks_for_edits(&self) -> bool {
        let kept = self.field(FIELD).map(|field| harmless(field.get()));
        kept.is_some_and(|kept| !matches!(kept, Harmless::All))
    }
}

/// A request without what it asks the provider to take out of the window; everything else keeps its bytes. `None` if it
/// asks for nothing of the kind.
///
/// ```
/// use contexture_wire::{Format, without_edits};
/// let body = r#"{"messages":[], "context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}, "x":1}"#;
/// assert_eq!(without_edits(Format::Messages, body).as_deref(), Some(r#"{"messages":[],  "x":1}"#));
/// assert_eq!(without_edits(Format::Messages, r#"{"messages":[]}"#), None);
/// ```
pub fn without_edits(format: Format, body: &str) -> Option<String> {
    let mut edited = without_first(format, body)?;
    // A name that is there more than once is taken out as often, but nobody writes it without end.
    for _ in 1..MOST_EDITS {
        match without_first(format, &edited) {
            Some(less) => edited = less,
            None => break,
        }
    }
    Some(edited)
}

/// A request without one field that asks for edits.
fn without_first(format: Format, body: &str) -> Option<String> {
    let request = Request::parse(format, body).ok()?;
    if !request.asks_for_edits() {
        return None;
    }
    let field = request.field(FIELD)?;
    let start = field.get().as_ptr() as usize - body.as_ptr() as usize;
    let value = start..start + field.get().len();
    let (range, with) = match harmless(field.get()) {
        Harmless::Some(kept) => (value, kept),
        Harmless::All | Harmless::Nothing => (with_name(body, value)?, String::new()),
    };
    Some(format!("{}{with}{}", &body[..range.start], &body[range.end..]))
}

/// What of the field may stay beside folds.
enum Harmless {
    /// All of it.
    All,
    /// A part, as a value for the field.
    Some(String),
    /// Nothing.
    Nothing,
}

fn harmless(field: &str) -> Harmless {
    if field == "null" {
        return Harmless::All;
    }
    let object = Fields::parse(field).ok();
    let list = object.as_ref().map_or(Some(field), |fields| fields.get(EDITS).map(RawValue::get));
    let Some(edits) = list.and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list).ok()) else {
        // An empty object asks for nothing; what cannot be read may ask for anything.
        return if field == "{}" { Harmless::All } else { Harmless::Nothing };
    };
    let is_harmless = |edit: &&RawValue| {
        let kind = Fields::parse(edit.get()).ok().and_then(|fields| Some(fields.text("type")?.into_owned()));
        kind.is_some_and(|kind| kind.starts_with(THOUGHTS))
    };
    let kept: Vec<&str> = edits.iter().filter(|edit| is_harmless(edit)).map(|edit| edit.get()).collect();
    if kept.len() == edits.len() {
        return Harmless::All;
    }
    if kept.is_empty() {
        return Harmless::Nothing;
    }
    let list = format!("[{}]", kept.join(","));
    Harmless::Some(object.map_or(list.clone(), |fields| fields.with(EDITS, &list)))
}

/// Where a field is in a body, with its name and one comma, by where its value is.
fn with_name(body: &str, value: Range<usize>) -> Option<Range<usize>> {
    let before = body[..value.start].trim_end().strip_suffix(':')?.trim_end().strip_suffix('"')?;
    // The name has no quotes in it, however it is written.
    let start = before.rfind('"')?;
    let after = body[value.end..].trim_start();
    if let Some(rest) = after.strip_prefix(',') {
        return Some(start..body.len() - rest.len());
    }
    let start = body[..start].trim_end().strip_suffix(',').map_or(start, str::len);
    Some(start..value.end)
}

/// The edits that a response, or a piece of one, reports.
pub(super) fn edits_of(answer: &Value) -> Vec<AppliedEdit> {
    let places = [answer, &answer["message"], &answer["response"], &answer["delta"]];
    let applied = places.iter().find_map(|place| place[FIELD]["applied_edits"].as_array());
    let cleared = applied.into_iter().flatten().take(MOST_EDITS).map(|edit| {
        let number = |name: &str| tokens(&edit[name]).unwrap_or(0);
        AppliedEdit {
            kind: edit["type"].as_str().unwrap_or("an edit").chars().take(64).collect(),
            cleared: number("cleared_tool_uses") + number("cleared_thinking_turns"),
            cleared_tokens: number("cleared_input_tokens"),
            usage: None,
        }
    });
    cleared.chain(compaction_of(&places)).collect()
}

fn compaction_of(places: &[&Value]) -> Option<AppliedEdit> {
    let made = |usage, cleared_tokens| AppliedEdit { kind: COMPACTION.to_owned(), cleared: 0, cleared_tokens, usage };
    let of_type = |list: &Value, kind: &str| -> Vec<Usage> {
        let list = list.as_array().into_iter().flatten().filter(|entry| entry["type"] == kind);
        list.map(|entry| {
            let mut usage = Usage::default();
            usage.take(&serde_json::json!({ "usage": entry }));
            usage
        })
        .collect()
    };
    let iterations = places.iter().map(|place| &place["usage"]["iterations"]).find(|list| list.is_array());
    let sum = |usages: &[Usage]| {
        usages.iter().fold(Usage::default(), |sum, usage| Usage {
            input: sum.input + usage.input,
            cache_read: sum.cache_read + usage.cache_read,
            cache_write: sum.cache_write + usage.cache_write,
            cache_write_hour: sum.cache_write_hour + usage.cache_write_hour,
            output: sum.output + usage.output,
        })
    };
    if let Some(iterations) = iterations {
        let compactions = of_type(iterations, COMPACTION);
        if let Some(last) = compactions.last() {
            let after = of_type(iterations, "message").last().map_or(0, Usage::total_input);
            let cleared = if after > 0 { last.total_input().saturating_sub(after) } else { 0 };
            return Some(made(Some(sum(&compactions)), cleared));
        }
    }
    let has = |list: &Value| list.as_array().into_iter().flatten().any(|part| part["type"] == COMPACTION);
    places.iter().any(|place| has(&place["content"]) || has(&place["output"])).then(|| made(None, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check_asked(format: Format, field: Option<&str>, expected: bool) {
        let list = if format == Format::Responses { "input" } else { "messages" };
        let field = field.map(|field| format!(",\"context_management\":{field}")).unwrap_or_default();
        let body = format!("{{\"{list}\":[]{field}}}");
        assert_eq!(Request::parse(format, &body).unwrap().asks_for_edits(), expected, "{body}");
        let without = without_edits(format, &body);
        assert_eq!(without.is_some(), expected, "{body}");
        if let Some(without) = without {
            assert!(!Request::parse(format, &without).unwrap().asks_for_edits(), "{without}");
            assert!(serde_json::from_str::<Value>(&without).is_ok(), "{without}");
        }
    }

    #[test]
    fn what_takes_more_than_thoughts_is_an_edit() {
        for (field, expected) in [
            (None, false),
            (Some("null"), false),
            (Some("{}"), false),
            (Some(r#"{"edits":[]}"#), false),
            (Some(r#"{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}"#), false),
            (Some(r#"{"edits":[{"type":"clear_tool_uses_20250919"}]}"#), true),
            (Some(r#"{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000}}]}"#), true),
            (Some(r#"{"edits":[{"type":"clear_thinking_20251015"},{"type":"clear_tool_uses_20250919"}]}"#), true),
            (Some(r#"{"edits":[{"type":"of_tomorrow"}]}"#), true),
            (Some(r#"{"edits":[7]}"#), true),
            (Some(r#"{"edits":"all"}"#), true),
            (Some("true"), true),
        ] {
            check_asked(Format::Messages, field, expected);
        }
        check_asked(Format::Responses, Some(r#"[{"type":"compaction","compact_threshold":200000}]"#), true);
        check_asked(Format::Responses, Some("[]"), false);
    }

    #[test]
    fn only_the_field_goes_and_thoughts_stay() {
        let check = |body: &str, expected: &str| {
            assert_eq!(without_edits(Format::Messages, body).as_deref(), Some(expected));
        };
        check(
            r#"{ "context_management" : {"edits":[{"type":"x"}]} , "messages":[ 1.0 ] }"#,
            r#"{  "messages":[ 1.0 ] }"#,
        );
        check(r#"{"messages":[],"context_management":["x"]}"#, r#"{"messages":[]}"#);
        check("{\"messages\":[] ,\n\"context\\u005fmanagement\":[\"x\"] }", "{\"messages\":[]  }");
        check(
            r#"{"messages":[],"context_management":{"a":1,"edits":[{"type":"clear_thinking_1", "keep":2},{"type":"y"}]}}"#,
            r#"{"messages":[],"context_management":{"a":1,"edits":[{"type":"clear_thinking_1", "keep":2}]}}"#,
        );
        check(r#"{"context_management":["x"],"messages":[],"context_management":["y"]}"#, r#"{"messages":[]}"#);
    }

    /// A body that is nothing but the field neither takes for ever nor all of the stack.
    #[test]
    fn a_name_without_end_is_taken_out_some_times() {
        let body = format!(r#"{{{}"messages":[]}}"#, r#""context_management":["x"],"#.repeat(10_000));
        let less = without_edits(Format::Messages, &body).unwrap();
        assert_eq!(body.len() - less.len(), 16 * r#""context_management":["x"],"#.len());
    }

    #[test]
    fn a_compacted_conversation_is_known_by_its_block() {
        let is = |content: Value| {
            let body = json!({"messages": [{"role": "assistant", "content": content}]}).to_string();
            Request::parse(Format::Messages, &body).unwrap().leading_instructions() == 1
        };
        assert!(is(json!([{"type": "compaction", "content": "what was"}, {"type": "text", "text": "on"}])));
        assert!(!is(json!([{"type": "text", "text": "a \"compaction\" block"}])) && !is(json!("compaction")));
    }

    #[test]
    fn what_was_done_is_read_where_providers_say_it() {
        let applied = json!({"applied_edits": [
            {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50_000},
            {"type": "clear_thinking_20251015", "cleared_thinking_turns": 2, "cleared_input_tokens": 100}]});
        let edits = edits_of(&json!({"type": "message_delta", "usage": {}, "context_management": applied}));
        let seen: Vec<_> = edits.iter().map(|edit| (&*edit.kind, edit.cleared, edit.cleared_tokens)).collect();
        assert_eq!(seen, [("clear_tool_uses_20250919", 8, 50_000), ("clear_thinking_20251015", 2, 100)]);
        let usage = json!({"input_tokens": 23_000, "output_tokens": 1_000, "iterations": [
            {"type": "compaction", "input_tokens": 100_000, "cache_read_input_tokens": 80_000, "output_tokens": 3_500},
            {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000}]});
        let edits = edits_of(&json!({"content": [{"type": "compaction", "content": "…"}], "usage": usage}));
        assert_eq!((edits.len(), &*edits[0].kind, edits[0].cleared_tokens), (1, "compaction", 157_000));
        assert_eq!(
            edits[0].usage.map(|usage| (usage.input, usage.cache_read, usage.output)),
            Some((100_000, 80_000, 3_500))
        );
        let openai =
            json!({"type": "response.completed", "response": {"output": [{"type": "compaction"}], "usage": {}}});
        assert_eq!(edits_of(&openai).len(), 1);
        assert!(
            edits_of(&json!({"context_management": {"applied_edits": []}, "output": [{"type": "message"}]})).is_empty()
        );
        assert!(edits_of(&json!({"context_management": null})).is_empty());
    }
}
