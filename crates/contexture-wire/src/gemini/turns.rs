//! Contents of one role in a row, after contents around them were replaced.
//!
//! Gemini wants the roles to alternate. What a fold puts beside contents of the same role is joined with them, part by
//! part; contents that came next to each other are left alone.

use std::borrow::Cow;

use super::content::{parts, role};
use crate::entry::OutgoingMessage;
use crate::error::WireError;
use crate::fields::Fields;

/// Contents of which no two in a row have the same role, unless they came like that.
pub(crate) fn joined(entries: Vec<OutgoingMessage<'_>>) -> Result<Vec<OutgoingMessage<'_>>, WireError> {
    let mut runs: Vec<Vec<OutgoingMessage<'_>>> = Vec::with_capacity(entries.len());
    for entry in entries {
        match runs.last_mut() {
            Some(run) if !came_before(run, &entry) && is_of_one_role(run, &entry)? => run.push(entry),
            _ => runs.push(vec![entry]),
        }
    }
    runs.into_iter().map(as_one).collect()
}

/// Whether a content came directly before another one: most do, and then there is nothing to read.
fn came_before(run: &[OutgoingMessage<'_>], next: &OutgoingMessage<'_>) -> bool {
    let last = run.last().and_then(|last| last.from);
    last.zip(next.from).is_some_and(|(last, next)| last + 1 == next)
}

fn is_of_one_role(run: &[OutgoingMessage<'_>], next: &OutgoingMessage<'_>) -> Result<bool, WireError> {
    let Some(first) = run.first() else { return Ok(false) };
    let (first, next) = (Fields::parse(&first.json)?, Fields::parse(&next.json)?);
    Ok(role(&first) == role(&next))
}

/// Contents as one, with all their parts.
fn as_one(mut run: Vec<OutgoingMessage<'_>>) -> Result<OutgoingMessage<'_>, WireError> {
    if run.len() == 1 {
        return Ok(run.remove(0));
    }
    let mut list = String::from("[");
    for entry in &run {
        for part in parts(&Fields::parse(&entry.json)?)? {
            if list.len() > 1 {
                list.push(',');
            }
            list.push_str(part.get());
        }
    }
    list.push(']');
    let json = Fields::parse(&run[0].json)?.with("parts", &list);
    Ok(OutgoingMessage { json: Cow::Owned(json), from: None })
}
