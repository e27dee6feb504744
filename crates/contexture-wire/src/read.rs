//! A message of any format as units.

use std::sync::Arc;

use contexture_agents::every;
use contexture_core::item::{Item, Meta, Origin};
use serde_json::value::RawValue;

use super::error::WireError;
use super::format::Format;
use super::unit::Unit;
use super::{anthropic, chat, gemini, responses};

/// How harnesses mark what they add to messages on their own account: before it, and after it.
pub(super) const REMINDER: [&str; 2] = ["<system-reminder>", "</system-reminder>"];

/// What harnesses remind of by themselves: words, and the kind of note that has them. All other reminders are taken for
/// somebody's instructions.
fn notes() -> impl Iterator<Item = (&'static str, &'static str)> {
    every(|agent| agent.notes().reminders()).map(|reminder| (reminder.words(), reminder.kind()))
}

/// Reads a message as its units, in order.
///
/// `directory` is where the agent works, if that is known.
///
/// # Errors
/// The message is not written as the format says, or has a part of an unknown kind.
pub fn read(format: Format, message: &RawValue, directory: Option<&Arc<str>>) -> Result<Vec<Unit>, WireError> {
    let mut units = match format {
        Format::Messages => anthropic::read(message.get())?,
        Format::Chat => chat::read(message.get())?,
        Format::Responses => responses::read(message.get())?,
        Format::Gemini => gemini::read(message.get())?,
    };
    note(&mut units, directory);
    Ok(units)
}

/// Reads the message at a position of a request. In formats in which calls need no id, they get one here, and outputs
/// have that of the call that they answer.
///
/// # Errors
/// The message is not written as the format says, has a part of an unknown kind, or is not there.
pub fn read_at(
    format: Format,
    messages: &[&RawValue],
    at: usize,
    directory: Option<&Arc<str>>,
) -> Result<Vec<Unit>, WireError> {
    let message = messages.get(at).ok_or(WireError::OtherRequest)?;
    let mut units = read(format, message, directory)?;
    if format == Format::Gemini {
        gemini::pair(&mut units, messages, at);
    }
    Ok(units)
}

/// Notes that thoughts among units are what the model says to people, for requests of which
/// [that is so](super::Request::tells_in_thoughts).
pub fn told(mut units: Vec<Unit>) -> Vec<Unit> {
    for unit in &mut units {
        if let Item::Reasoning(reasoning) = &mut unit.item {
            reasoning.is_told = !reasoning.text.trim().is_empty();
        }
    }
    units
}

/// A text that nobody said, as a harness adds it to what the user says: [`read`] finds its origin again.
pub fn as_reminder(origin: &Origin, text: &str) -> String {
    let (kind, path) = match origin {
        Origin::Harness { kind, path } => (kind.as_deref(), path.as_deref()),
        Origin::Said | Origin::Layer { .. } => (None, None),
    };
    let note = notes().find(|(_, noted)| kind == Some(*noted));
    let note = note.map(|(words, _)| match path {
        Some(path) => format!("Note: {path} {words}\n"),
        None => format!("{words}\n"),
    });
    let [start, end] = REMINDER;
    if text.trim_start().starts_with(start) {
        return text.to_owned();
    }
    format!("{start}\n{}{text}\n{end}", note.unwrap_or_default())
}

/// Notes where the agent works, and who wrote what.
fn note(units: &mut [Unit], directory: Option<&Arc<str>>) {
    for unit in units {
        let origin = origin_of(&unit.item);
        if directory.is_some() || !origin.is_said() {
            let meta = Meta { directory: directory.cloned(), origin, ..Meta::default() };
            unit.item = std::mem::replace(&mut unit.item, Item::Opaque(serde_json::Value::Null)).with_meta(meta);
        }
    }
}

/// Who wrote an item: harnesses mark what they add to what the user said.
fn origin_of(item: &Item) -> Origin {
    let Some(message) = item.as_message().filter(|message| message.role == contexture_core::item::Role::User) else {
        return Origin::Said;
    };
    let text = message.text_cow();
    if !text.trim_start().starts_with(REMINDER[0]) {
        return Origin::Said;
    }
    let note = notes().find(|(words, _)| text.contains(words));
    Origin::Harness { kind: note.map(|(_, kind)| kind.into()), path: None }
}
