//! Writes a request as a plan says, if its provider accepts it like that.

use std::borrow::Cow;

use bytes::Bytes;
use contexture::item::Item;
use contexture::wire::in_force::unread_kinds;
use contexture::wire::rules::{Broken, binds_reasoning};
use contexture::wire::{Plan, Request, WireError, read, rules, told, without_edits};
use memchr::memmem;

use crate::conversation::folder::{ConversationFolder, NewDecisions};

/// The body with new decisions; `None` if it is the one that came.
pub(super) fn rewritten(
    request: &Request<'_>,
    folder: &ConversationFolder,
    new: &NewDecisions,
    takes_out_edits: bool,
) -> Result<Option<Bytes>, WireError> {
    let body = allowed(request, &new.plan, takes_out_edits)?;
    if new.has_folded() && !folder.is_paired() {
        return Err(WireError::OtherRequest);
    }
    let is_changed = !new.plan.is_as_it_came() || takes_out_edits;
    Ok(is_changed.then(|| Bytes::from(body.into_owned().into_bytes())))
}

/// A plan for all messages of a request: those that it does not cover yet without their reasoning.
pub(super) fn without_reasoning(mut plan: Plan, request: &Request<'_>) -> Result<Plan, WireError> {
    for at in plan.covered()..request.messages().len() {
        let units = read(request.format(), request.messages()[at], None)?;
        let units = if request.tells_in_thoughts() { told(units) } else { units };
        if !units.iter().any(|unit| matches!(unit.item, Item::Reasoning(_))) {
            plan.push_kept(at..at + 1);
            continue;
        }
        for (unit, read) in units.iter().enumerate() {
            match read.item.as_reasoning() {
                None => plan.push_unit(at, unit, units.len(), None),
                // What it says stays, as a text.
                Some(thought) if thought.is_told => {
                    plan.push_unit(at, unit, units.len(), Some(thought.text.as_str().into()));
                }
                Some(_) => {}
            }
        }
    }
    plan.cover(request.messages().len());
    Ok(plan)
}

/// The kinds of blocks that are not understood and are sent in another form by one plan than by an earlier one.
pub(crate) fn newly_folded(request: &Request<'_>, before: &Plan, plan: &Plan) -> Vec<Box<str>> {
    let is_new = |at: &usize| before.shows(*at) && !plan.shows(*at);
    let folded = (0..plan.covered().min(request.messages().len())).filter(is_new);
    let units = folded.flat_map(|at| read(request.format(), request.messages()[at], None).unwrap_or_default());
    let mut kinds: Vec<Box<str>> = units.flat_map(|unit| unread_kinds(&unit.item)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Whether a request has reasoning that its provider binds to everything that was sent before it. After a fold it is
/// refused as it came.
pub(super) fn has_bound_reasoning(request: &Request<'_>) -> bool {
    let has = |kind: &str| memmem::find(request.body().as_bytes(), kind.as_bytes()).is_some();
    binds_reasoning(request.format(), &request.model().unwrap_or_default())
        && (has("\"thinking\"") || has("\"redacted_thinking\""))
}

/// A request as it came, but without reasoning, and the plan for that; `None` if its provider does not bind reasoning to
/// what was sent before it, or there is none.
pub(crate) fn unbound(request: &Request<'_>) -> Option<(Bytes, Plan)> {
    if !has_bound_reasoning(request) {
        return None;
    }
    let plan = without_reasoning(Plan::default(), request).ok().filter(|plan| !plan.is_as_it_came())?;
    let body = allowed(request, &plan, false).ok()?;
    Some((Bytes::from(body.into_owned().into_bytes()), plan))
}

/// A request as a plan says, if its provider accepts it like that, and without what it asks the provider to edit if that
/// is taken out.
pub(super) fn allowed<'a>(
    request: &Request<'a>,
    plan: &Plan,
    takes_out_edits: bool,
) -> Result<Cow<'a, str>, WireError> {
    let body = request.rewritten(plan)?;
    let without = takes_out_edits.then(|| without_edits(request.format(), &body)).flatten();
    let body = without.map_or(body, Cow::Owned);
    // What the client sends itself is the provider's to judge.
    if plan.is_as_it_came() {
        return Ok(body);
    }
    let model = request.model();
    let broken = |body: &str| rules::all_broken(request.format(), body, model.as_deref());
    let found = broken(&body);
    if found.is_empty() {
        return Ok(body);
    }
    let own = broken(request.body());
    let is_own = |found: &Broken| own.iter().any(|own| std::ptr::eq(own.rule, found.rule));
    match found.iter().find(|found| !is_own(found)) {
        Some(found) => Err(WireError::Refused(found.rule.refused)),
        None => Ok(body),
    }
}
