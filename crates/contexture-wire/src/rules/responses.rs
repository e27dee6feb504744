//! The checks of responses.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use super::roles::roles_broken;
use super::rule::{Broken, Check, Rule, at};
use super::table::rules;
use crate::fields::Fields;
use crate::format::Format;
use crate::request::Request;

/// The kinds of items that the checks tell apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResponsesItemKind {
    Message,
    Reasoning,
    /// A call whose output comes from the client.
    ClientCall,
    /// A call that the provider answers itself.
    ProviderCall,
    CallOutput,
    Compaction,
    Reference,
    Other,
}

impl ResponsesItemKind {
    fn of(name: &str) -> Self {
        match name {
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "item_reference" => Self::Reference,
            "function_call" | "custom_tool_call" | "local_shell_call" | "shell_call" | "apply_patch_call"
            | "computer_call" => Self::ClientCall,
            name if name.ends_with("_call") => Self::ProviderCall,
            name if name.ends_with("_call_output") => Self::CallOutput,
            name if name.starts_with("compaction") => Self::Compaction,
            _ => Self::Other,
        }
    }
}

/// How the ids of items begin, by their kinds.
const BEGINNINGS: &[(&str, &str)] =
    &[("message", "msg"), ("function_call", "fc"), ("reasoning", "rs"), ("custom_tool_call", "ctc")];

/// An item as the checks see it.
struct CheckedResponsesItem<'a> {
    kind: ResponsesItemKind,
    /// What the provider calls its kind.
    kind_name: Cow<'a, str>,
    /// The role, for a message.
    role: Option<Cow<'a, str>>,
    id: Option<Cow<'a, str>>,
    call: Option<Cow<'a, str>>,
    content: Option<&'a RawValue>,
}

pub(super) fn broken(request: &Request<'_>, model: &str) -> Option<Vec<Broken>> {
    // What came before is with the provider, so calls and outputs may be there.
    let has_past = request.has_field("previous_response_id") || request.has_field("conversation");
    let given: Vec<CheckedResponsesItem<'_>> =
        request.messages().iter().map(|raw| given(raw)).collect::<Option<_>>()?;
    let roles: Vec<&str> = given.iter().filter_map(|given| given.role.as_deref()).collect();
    let broken = rules(Format::Responses, model).filter_map(|rule| match rule.check {
        Check::CallsAnswered => calls_broken(rule, &given),
        Check::OutputsAsked => outputs_broken(rule, &given).filter(|_| !has_past),
        Check::UniqueIds => ids_broken(rule, &given),
        Check::ItemIds(most) => {
            given.iter().position(|given| has_odd_id(given, most)).and_then(|place| at(rule, place))
        }
        Check::ReasoningFollowed => {
            let is_wrong =
                |place: usize| given[place].kind == ResponsesItemKind::Reasoning && !leads_to(&given[place + 1..]);
            (0..given.len()).find(|place| is_wrong(*place)).and_then(|place| at(rule, place))
        }
        Check::PartsOfRole => given.iter().position(has_wrong_part).and_then(|place| at(rule, place)),
        _ => roles_broken(rule, &roles),
    });
    Some(broken.collect())
}

fn given(raw: &RawValue) -> Option<CheckedResponsesItem<'_>> {
    let fields = Fields::parse(raw.get()).ok()?;
    let role = fields.text("role");
    let usual = || if role.is_some() { "message".into() } else { "item_reference".into() };
    let kind_name = fields.text("type").unwrap_or_else(usual);
    let kind = ResponsesItemKind::of(&kind_name);
    let (id, call, content) = (fields.text("id"), fields.text("call_id"), fields.get("content"));
    let role = role.filter(|_| kind == ResponsesItemKind::Message);
    Some(CheckedResponsesItem { kind, kind_name, role, id, call, content })
}

impl CheckedResponsesItem<'_> {
    fn is_of_model(&self) -> bool {
        let is_call = matches!(self.kind, ResponsesItemKind::ClientCall | ResponsesItemKind::ProviderCall);
        is_call || self.role.as_deref() == Some("assistant")
    }

    fn is_output(&self) -> bool {
        self.kind == ResponsesItemKind::CallOutput
    }
}

/// Whether reasoning is followed by something that the model did: a text, a call, or more reasoning with it.
fn leads_to(rest: &[CheckedResponsesItem<'_>]) -> bool {
    let next = rest.iter().find(|given| given.kind != ResponsesItemKind::Reasoning);
    // What compacts the conversation takes everything before it.
    let may_lead = [ResponsesItemKind::Compaction, ResponsesItemKind::Reference];
    next.is_some_and(|next| next.is_of_model() || may_lead.contains(&next.kind))
}

fn calls_broken(rule: &'static Rule, given: &[CheckedResponsesItem<'_>]) -> Option<Broken> {
    let answered: HashSet<&str> =
        given.iter().filter(|given| given.is_output()).filter_map(|given| given.call.as_deref()).collect();
    let is_open = |given: &CheckedResponsesItem<'_>| {
        given.kind == ResponsesItemKind::ClientCall
            && given.call.as_deref().is_some_and(|call| !answered.contains(call))
    };
    given.iter().position(is_open).and_then(|place| at(rule, place))
}

fn outputs_broken(rule: &'static Rule, given: &[CheckedResponsesItem<'_>]) -> Option<Broken> {
    let mut asked: HashSet<&str> = HashSet::new();
    for (place, given) in given.iter().enumerate() {
        if given.kind == ResponsesItemKind::Reference {
            // It may be any call.
            return None;
        }
        let Some(call) = given.call.as_deref() else { continue };
        if given.is_output() {
            if !asked.contains(call) {
                return at(rule, place);
            }
        } else {
            asked.insert(call);
        }
    }
    None
}

fn ids_broken(rule: &'static Rule, given: &[CheckedResponsesItem<'_>]) -> Option<Broken> {
    let mut seen = HashSet::new();
    let is_again = |given: &CheckedResponsesItem<'_>| {
        let id = given.id.as_deref().filter(|_| given.kind != ResponsesItemKind::Reference).map(str::to_owned);
        id.is_some_and(|id| !seen.insert(id))
    };
    given.iter().position(is_again).and_then(|place| at(rule, place))
}

fn has_odd_id(given: &CheckedResponsesItem<'_>, most: usize) -> bool {
    let is_long = |id: &Option<Cow<'_, str>>| id.as_deref().is_some_and(|id| id.chars().count() > most);
    let beginning = BEGINNINGS.iter().find(|(kind, _)| *kind == given.kind_name).map(|(_, beginning)| *beginning);
    let is_other = given.id.as_deref().zip(beginning).is_some_and(|(id, beginning)| !id.starts_with(beginning));
    is_other || is_long(&given.id) || is_long(&given.call)
}

fn has_wrong_part(given: &CheckedResponsesItem<'_>) -> bool {
    let (Some(role), Some(content)) = (given.role.as_deref(), given.content) else { return false };
    if !content.get().starts_with('[') {
        return false;
    }
    let parts: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    parts.iter().any(|part| {
        let kind = Fields::parse(part.get()).ok().and_then(|fields| fields.text("type"));
        kind.is_some_and(|kind| kind.starts_with(if role == "assistant" { "input_" } else { "output_" }))
    })
}
