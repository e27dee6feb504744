//! A request with its messages as a plan says.

use std::borrow::Cow;

use contexture_core::item::Item;
use serde_json::value::RawValue;

use super::entry::OutgoingMessage;
use super::error::WireError;
use super::format::Format;
use super::marks;
use super::plan::{Plan, Segment};
use super::{gemini, system_turns, write};

/// A request that is rewritten.
pub(super) struct Came<'r, 'a> {
    /// How it is written.
    pub(super) format: Format,
    /// Its messages.
    pub(super) messages: &'r [&'a RawValue],
    /// How many cache marks it has.
    pub(super) marks: usize,
    /// The mark with which it asks the provider to mark its end, if it does.
    pub(super) automatic: Option<&'a str>,
}

/// The messages of a request as a plan says, as one text.
pub(super) fn list(came: &Came<'_, '_>, plan: &Plan) -> Result<String, WireError> {
    let mut entries = entries(came, plan)?;
    match came.format {
        Format::Messages => entries = system_turns::placed(entries, came.messages)?,
        Format::Gemini => entries = gemini::joined(entries)?,
        Format::Chat | Format::Responses => marks::carry_breakpoint(&mut entries, came.messages)?,
    }
    let bytes = entries.iter().map(|entry| entry.json.len() + 1).sum();
    let mut list = String::with_capacity(bytes);
    for entry in entries {
        if !list.is_empty() {
            list.push(',');
        }
        list.push_str(&entry.json);
    }
    Ok(list)
}

fn entries<'a>(came: &Came<'_, 'a>, plan: &Plan) -> Result<Vec<OutgoingMessage<'a>>, WireError> {
    let Came { format, messages, marks: count, automatic } = *came;
    let (mut moved, last) = match format {
        Format::Messages => (marks::moved(messages, plan)?, marks::last(messages, plan)?),
        _ => (vec![None; plan.segments().len()], None),
    };
    if let Some(end) = moved.last_mut().filter(|_| last.is_some()) {
        *end = last;
    }
    let given_up = match format {
        Format::Messages => marks::stand(messages, plan, &mut moved, (count, automatic))?,
        _ => None,
    };
    let unmarked = messages.len() - usize::from(last.is_some());
    let mut entries = Vec::with_capacity(messages.len());
    for (segment, mark) in plan.segments().iter().zip(moved) {
        match segment {
            Segment::Keep(kept) => {
                let range = kept.start..kept.end.min(unmarked);
                let raws = messages.get(range.clone()).ok_or(WireError::OtherRequest)?;
                entries.extend(range.zip(raws).map(|(at, raw)| OutgoingMessage::kept(at, raw)));
                if kept.end > unmarked {
                    let json = write::without_last_mark(messages[unmarked].get())?;
                    entries.push(OutgoingMessage { from: Some(unmarked), ..OutgoingMessage::made(json) });
                }
                if let Some((mark, entry)) = mark.zip(entries.last_mut()) {
                    entry.json = Cow::Owned(write::with_last_mark(&entry.json, mark)?);
                }
            }
            Segment::Made(text) => {
                entries.push(OutgoingMessage::made(write::made(format, &Item::user(&**text), mark)?));
            }
            Segment::Told(text) => {
                entries.push(OutgoingMessage::made(write::made(format, &Item::assistant(&**text), mark)?));
            }
            Segment::Part { message, units } => {
                let raw = messages.get(*message).ok_or(WireError::OtherRequest)?;
                let part = write::part(format, raw.get(), units)?;
                let part = if *message == unmarked { write::without_last_mark(&part)? } else { part };
                let part = match mark {
                    Some(mark) => write::with_last_mark(&part, mark)?,
                    None => part,
                };
                entries.push(OutgoingMessage { from: Some(*message), ..OutgoingMessage::made(part) });
            }
        }
    }
    let rest = messages.iter().enumerate().skip(plan.covered());
    entries.extend(rest.map(|(at, raw)| OutgoingMessage::kept(at, raw)));
    for entry in entries.iter_mut().filter(|entry| given_up.is_some() && entry.from == given_up) {
        entry.json = Cow::Owned(write::without_marks(&entry.json)?);
    }
    Ok(entries)
}
