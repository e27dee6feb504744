//! The checks of chat completions.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::roles::roles_broken;
use super::rule::{Broken, Check, Rule, at};
use super::table::rules;
use crate::fields::Fields;
use crate::format::Format;
use crate::request::Request;

/// A message as the checks see it.
struct CheckedChatMessage<'a> {
    role: Cow<'a, str>,
    has_content: bool,
    /// The ids of its calls.
    calls: Vec<Cow<'a, str>>,
    /// Whether it has a list for calls.
    lists_calls: bool,
    /// Whether it has calls of the older form, which have no ids.
    has_function_call: bool,
    /// Whether it has what the model thought, which may be nothing.
    has_reasoning: bool,
    /// The call that it answers.
    answers: Option<Cow<'a, str>>,
}

pub(super) fn broken(request: &Request<'_>, model: &str) -> Option<Vec<Broken>> {
    let said: Vec<CheckedChatMessage<'_>> = request.messages().iter().map(|raw| said(raw)).collect::<Option<_>>()?;
    let roles: Vec<&str> = said.iter().map(|said| &*said.role).collect();
    let broken = rules(Format::Chat, model).filter_map(|rule| match rule.check {
        Check::Content(_) => {
            let is_wrong =
                |said: &CheckedChatMessage<'_>| !said.has_content && said.calls.is_empty() && !said.has_function_call;
            said.iter().position(is_wrong).and_then(|message| at(rule, message))
        }
        Check::CallsNotEmpty => {
            let is_wrong = |said: &CheckedChatMessage<'_>| said.lists_calls && said.calls.is_empty();
            said.iter().position(is_wrong).and_then(|message| at(rule, message))
        }
        Check::CallsReasoned => {
            let has_calls = |said: &CheckedChatMessage<'_>| said.role == "assistant" && !said.calls.is_empty();
            let is_wrong = |said: &CheckedChatMessage<'_>| has_calls(said) && !said.has_reasoning;
            let others_have = said.iter().any(|said| has_calls(said) && said.has_reasoning);
            said.iter().position(is_wrong).filter(|_| others_have).and_then(|message| at(rule, message))
        }
        Check::CallsAnswered | Check::OutputsAsked => pairs_broken(rule, &said),
        _ => roles_broken(rule, &roles),
    });
    Some(broken.collect())
}

fn said(raw: &RawValue) -> Option<CheckedChatMessage<'_>> {
    let fields = Fields::parse(raw.get()).ok()?;
    let is_there = |name: &str| fields.get(name).is_some_and(|raw| raw.get() != "null");
    let calls = match fields.get("tool_calls").filter(|raw| raw.get() != "null") {
        Some(raw) => {
            let calls: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
            calls.into_iter().map(|call| Fields::parse(call.get()).ok()?.text("id")).collect::<Option<_>>()?
        }
        None => Vec::new(),
    };
    let role = fields.text("role")?;
    let has_content = match fields.get("content") {
        Some(raw) => raw.get() != "null" && raw.get() != "[]",
        None => false,
    };
    // Refusals and voices are contents too.
    let has_content = has_content || is_there("refusal") || is_there("audio");
    let answers = if role == "tool" { fields.text("tool_call_id") } else { None };
    let (lists_calls, has_function_call) = (is_there("tool_calls"), is_there("function_call"));
    let has_reasoning = is_there("reasoning_content");
    Some(CheckedChatMessage { has_content, calls, lists_calls, has_function_call, has_reasoning, answers, role })
}

fn pairs_broken(rule: &'static Rule, said: &[CheckedChatMessage<'_>]) -> Option<Broken> {
    let (mut open, mut asked_at): (Vec<&str>, usize) = (Vec::new(), 0);
    for (message, said) in said.iter().enumerate() {
        if said.role == "tool" {
            let place = said.answers.as_deref().and_then(|id| open.iter().position(|open| *open == id));
            match place {
                Some(place) => {
                    open.swap_remove(place);
                }
                None if rule.check == Check::OutputsAsked => return at(rule, message),
                None => {}
            }
            continue;
        }
        if !open.is_empty() && rule.check == Check::CallsAnswered {
            return at(rule, asked_at);
        }
        (open, asked_at) = (said.calls.iter().map(|id| &**id).collect(), message);
    }
    (!open.is_empty() && rule.check == Check::CallsAnswered).then_some(Broken { rule, at: Some(asked_at) })
}
