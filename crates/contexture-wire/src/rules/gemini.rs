//! The checks of Google's generateContent.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::roles::roles_broken;
use super::rule::{Broken, Check, Rule, at};
use super::table::rules;
use crate::fields::Fields;
use crate::format::Format;
use crate::gemini::{either, parts, role};
use crate::request::Request;

/// A content as the checks see it.
struct CheckedGeminiContent<'a> {
    role: Cow<'a, str>,
    parts: Vec<CheckedGeminiPart<'a>>,
}

/// A part of a content.
struct CheckedGeminiPart<'a> {
    fields: Fields<'a>,
    call: Option<CheckedGeminiCall<'a>>,
    response: Option<CheckedGeminiCall<'a>>,
}

/// A call or a response.
struct CheckedGeminiCall<'a> {
    id: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
}

impl CheckedGeminiPart<'_> {
    fn is_signed(&self) -> bool {
        either(&self.fields, "thoughtSignature").is_some_and(|signature| signature.get().len() > 2)
    }

    /// Whether it has nothing: a signature alone is something.
    fn is_empty(&self) -> bool {
        let is_bare = self.fields.len() == 0;
        is_bare || (self.fields.get("text").is_some_and(|text| text.get() == "\"\"") && !self.is_signed())
    }
}

impl<'a> CheckedGeminiContent<'a> {
    fn calls(&self) -> impl Iterator<Item = &CheckedGeminiCall<'a>> {
        self.parts.iter().filter_map(|part| part.call.as_ref())
    }

    fn responses(&self) -> impl Iterator<Item = &CheckedGeminiCall<'a>> {
        self.parts.iter().filter_map(|part| part.response.as_ref())
    }
}

pub(super) fn broken(request: &Request<'_>, model: &str) -> Option<Vec<Broken>> {
    let said: Vec<CheckedGeminiContent<'_>> = request.messages().iter().map(|raw| said(raw)).collect::<Option<_>>()?;
    let roles: Vec<&str> = said.iter().map(|said| &*said.role).collect();
    let has_past = request.has_cached_content();
    let broken = rules(Format::Gemini, model).filter_map(|rule| match rule.check {
        Check::Content(_) => said.iter().position(|said| said.parts.is_empty()).and_then(|place| at(rule, place)),
        Check::Text => said
            .iter()
            .position(|said| said.parts.iter().any(CheckedGeminiPart::is_empty))
            .and_then(|place| at(rule, place)),
        // What came before the first content is with the provider.
        Check::First(_) if has_past => None,
        Check::CallsAnswered | Check::OutputsAsked => pairs_broken(rule, &said, has_past),
        Check::CallsAfter(known) => calls_broken(rule, known, &said, has_past),
        Check::Signed => signatures_broken(rule, &said),
        Check::Beside(names) => {
            (has_past && names.iter().any(|name| request.has_either(name))).then_some(Broken { rule, at: None })
        }
        _ => roles_broken(rule, &roles),
    });
    Some(broken.collect())
}

fn said(raw: &RawValue) -> Option<CheckedGeminiContent<'_>> {
    let fields = Fields::parse(raw.get()).ok()?;
    let parts = parts(&fields).ok()?.into_iter().map(part).collect::<Option<_>>()?;
    Some(CheckedGeminiContent { role: role(&fields), parts })
}

fn part(raw: &RawValue) -> Option<CheckedGeminiPart<'_>> {
    let fields = Fields::parse(raw.get()).ok()?;
    let named = |name: &str| match either(&fields, name) {
        Some(raw) => {
            let fields = Fields::parse(raw.get()).ok()?;
            let id = fields.text("id").filter(|id| !id.is_empty());
            Some(Some(CheckedGeminiCall { id, name: fields.text("name").unwrap_or_default() }))
        }
        None => Some(None),
    };
    let (call, response) = (named("functionCall")?, named("functionResponse")?);
    Some(CheckedGeminiPart { fields, call, response })
}

/// Contents of one role in a row as one, with the first of each: parallel calls may be in contents of their own.
fn joined<'s, 'a>(said: &'s [CheckedGeminiContent<'a>]) -> Vec<(usize, bool, Vec<&'s CheckedGeminiContent<'a>>)> {
    let mut joined: Vec<(usize, bool, Vec<&CheckedGeminiContent<'a>>)> = Vec::new();
    for (place, said) in said.iter().enumerate() {
        let is_model = said.role == "model";
        match joined.last_mut() {
            Some((_, of_model, all)) if *of_model == is_model => all.push(said),
            _ => joined.push((place, is_model, vec![said])),
        }
    }
    joined
}

fn pairs_broken(rule: &'static Rule, said: &[CheckedGeminiContent<'_>], has_past: bool) -> Option<Broken> {
    let (mut open, mut asked_at): (Vec<&CheckedGeminiCall<'_>>, usize) = (Vec::new(), 0);
    for (number, (place, is_model, all)) in joined(said).iter().enumerate() {
        if *is_model {
            (open, asked_at) = (all.iter().flat_map(|said| said.calls()).collect(), *place);
            continue;
        }
        for response in all.iter().flat_map(|said| said.responses()) {
            let answers = |call: &&CheckedGeminiCall<'_>| match (&call.id, &response.id) {
                (Some(call), Some(response)) => call == response,
                _ => call.name == response.name,
            };
            match open.iter().position(answers) {
                Some(call) => {
                    open.remove(call);
                }
                None if rule.check == Check::OutputsAsked && !(has_past && number == 0) => return at(rule, *place),
                None => {}
            }
        }
        if !open.is_empty() && rule.check == Check::CallsAnswered {
            return at(rule, asked_at);
        }
    }
    (!open.is_empty() && rule.check == Check::CallsAnswered).then_some(Broken { rule, at: Some(asked_at) })
}

fn calls_broken(
    rule: &'static Rule,
    known: &[&str],
    said: &[CheckedGeminiContent<'_>],
    has_past: bool,
) -> Option<Broken> {
    let follows = |place: usize| match place.checked_sub(1) {
        Some(before) => known.contains(&&*said[before].role),
        None => has_past,
    };
    let is_wrong =
        |place: usize| said[place].role == "model" && said[place].calls().next().is_some() && !follows(place);
    (0..said.len()).find(|place| is_wrong(*place)).and_then(|place| at(rule, place))
}

/// The current turn begins with the newest content of the user that is no response.
fn signatures_broken(rule: &'static Rule, said: &[CheckedGeminiContent<'_>]) -> Option<Broken> {
    let begins = |said: &CheckedGeminiContent<'_>| said.role != "model" && said.responses().next().is_none();
    let start = said.iter().rposition(begins).unwrap_or(0);
    let is_wrong = |said: &CheckedGeminiContent<'_>| {
        let first = said.parts.iter().find(|part| part.call.is_some());
        said.role == "model" && first.is_some_and(|part| !part.is_signed())
    };
    (start..said.len()).find(|place| is_wrong(&said[*place])).and_then(|place| at(rule, place))
}
