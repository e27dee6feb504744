//! Which call an output answers, in a format in which neither needs an id.
//!
//! Outputs come directly after the calls. One answers the call with its id, or else the first call of its name that is
//! not answered yet, or else the first that is not.

use contexture_core::item::{FunctionCallOutput, Item};
use serde_json::Value;
use serde_json::value::RawValue;

use super::content::{read, role};
use crate::fields::Fields;
use crate::unit::Unit;

/// A call that waits for its output.
struct UnansweredCall {
    id: Box<str>,
    name: Box<str>,
    has_id: bool,
}

/// Gives an id to the calls of a content that have none, and to outputs that of the call that they answer. `units` are
/// those of the content at this position.
pub(crate) fn pair(units: &mut [Unit], messages: &[&RawValue], at: usize) {
    name_calls(units, at);
    if !units.iter().any(|unit| unit.item.as_output().is_some()) {
        return;
    }
    let mut open = unanswered_calls(messages, at);
    for output in units.iter_mut().filter_map(|unit| match &mut unit.item {
        Item::FunctionCallOutput(output) => Some(output),
        _ => None,
    }) {
        if let Some(id) = take(&mut open, output) {
            output.call_id = id;
        } else if output.call_id.is_empty() {
            output.call_id = name_of(output).into();
        }
    }
}

fn name_calls(units: &mut [Unit], at: usize) {
    let mut number = 0;
    for unit in units {
        let Item::FunctionCall(call) = &mut unit.item else { continue };
        if call.call_id.is_empty() {
            call.call_id = format!("call {at}.{number}").into();
        }
        number += 1;
    }
}

fn name_of(output: &FunctionCallOutput) -> &str {
    output.extra.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The calls before a content that no earlier content has answered.
fn unanswered_calls(messages: &[&RawValue], at: usize) -> Vec<UnansweredCall> {
    let is_model = |at: usize| Fields::parse(messages[at].get()).is_ok_and(|fields| role(&fields) == "model");
    let before = messages.get(..at).map_or(0, <[_]>::len);
    let said = (0..before).rev().take_while(|at| !is_model(*at)).last().unwrap_or(before);
    let made = (0..said).rev().take_while(|at| is_model(*at)).last().unwrap_or(said);
    let mut open = Vec::new();
    for (place, message) in messages.iter().enumerate().take(said).skip(made) {
        let mut units = read(message.get()).unwrap_or_default();
        let has_id: Vec<bool> = calls(&units).map(|call| !call.call_id.is_empty()).collect();
        name_calls(&mut units, place);
        open.extend(calls(&units).zip(has_id).map(|(call, has_id)| UnansweredCall {
            id: call.call_id.clone(),
            name: call.name.clone(),
            has_id,
        }));
    }
    for message in &messages[said..before] {
        for unit in read(message.get()).unwrap_or_default() {
            unit.item.as_output().map(|output| take(&mut open, output));
        }
    }
    open
}

fn calls(units: &[Unit]) -> impl Iterator<Item = &contexture_core::item::FunctionCall> {
    units.iter().filter_map(|unit| unit.item.as_call())
}

fn take(open: &mut Vec<UnansweredCall>, output: &FunctionCallOutput) -> Option<Box<str>> {
    let by_id = open.iter().position(|open| open.has_id && open.id == output.call_id);
    // An id that no call has was made by the client, which then keeps the calls as they came.
    let may_be = |open: &UnansweredCall| output.call_id.is_empty() || !open.has_id;
    let by_name = || open.iter().position(|open| may_be(open) && &*open.name == name_of(output));
    let place = by_id.or_else(by_name).or_else(|| open.iter().position(may_be))?;
    Some(open.remove(place).id)
}
