//! The text that a person typed in a message of the user's role: harnesses write there too, with text of tools and files.

use contexture::item::{Content, Item, Role};
use contexture::wire::{Format, Request, read};
use contexture_agents::every;
use contexture_text::spoken::spoken;
use serde_json::value::RawValue;

use crate::options::References;

/// What a person typed at the end of a request.
pub(super) enum Typed {
    /// This, in the one block of a fresh turn that the agent puts nothing into.
    Text(String),
    /// Perhaps this: what a person types is not known of the agent.
    Unknown(String),
    /// Nothing that is certain.
    Nothing,
}

/// Returns what a person typed in the messages of a request from one on.
pub(super) fn typed(request: &Request<'_>, from: usize, references: References) -> Typed {
    let (format, messages) = (request.format(), request.messages());
    // Instructions may follow what a person typed.
    let is_other = |message: &&RawValue| !matches!(speaker(format, message), Speaker::Instructor);
    let Some(newest) = messages.iter().rposition(is_other).filter(|at| *at >= from) else {
        return Typed::Nothing;
    };
    let Some(text) = only_block(format, messages[newest], references) else { return Typed::Nothing };
    if spoken(&text) != Some(text.trim()) || has_tags(&text) || !is_fresh(format, &messages[..newest]) {
        return Typed::Nothing;
    }
    match references {
        References::Unknown => Typed::Unknown(text),
        References::Typed | References::Beside(_) => Typed::Text(text),
    }
}

/// Who speaks in a message.
enum Speaker {
    User,
    Instructor,
    /// The model, which is done.
    Model,
    /// A tool, or the model that calls one.
    Tool,
    Nobody,
}

fn speaker(format: Format, message: &RawValue) -> Speaker {
    let Ok(units) = read(format, message, None) else { return Speaker::Nobody };
    let is_of_tool = |item: &Item| item.as_call().is_some() || item.as_output().is_some();
    if units.iter().any(|unit| is_of_tool(&unit.item)) {
        return Speaker::Tool;
    }
    let mut roles = units.iter().filter_map(|unit| Some(unit.item.as_message()?.role));
    match roles.next_back() {
        Some(Role::User) => Speaker::User,
        Some(Role::Assistant) => Speaker::Model,
        Some(Role::System | Role::Developer) => Speaker::Instructor,
        _ => Speaker::Nobody,
    }
}

/// Whether a turn begins after these messages: the model is done, or has said nothing yet.
fn is_fresh(format: Format, before: &[&RawValue]) -> bool {
    for message in before.iter().rev() {
        match speaker(format, message) {
            Speaker::Model => return true,
            Speaker::Tool => return false,
            Speaker::User | Speaker::Instructor | Speaker::Nobody => {}
        }
    }
    true
}

/// The one block of a message of the user's role that its agent does not put beside what a person types.
fn only_block(format: Format, message: &RawValue, references: References) -> Option<String> {
    let units = read(format, message, None).ok()?;
    let is_user = |item: &Item| item.as_message().is_some_and(|message| message.role == Role::User);
    if !units.iter().all(|unit| is_user(&unit.item)) {
        return None;
    }
    let contents = units.iter().filter_map(|unit| unit.item.as_message()).flat_map(|message| &message.content);
    let is_beside = |text: &str| match references {
        References::Beside(beside) => beside.iter().any(|start| text.trim_start().starts_with(start)),
        References::Typed | References::Unknown => {
            let all = every(|agent| agent.typed().map_or(&[], |typed| typed.beside()));
            all.copied().any(|start| text.trim_start().starts_with(start))
        }
    };
    let mut others = contents.filter_map(Content::as_text).filter(|text| !is_beside(text));
    let only = others.next()?;
    others.next().is_none().then(|| only.to_owned())
}

/// Whether a text has what harnesses mark things with: a tag at the start of a line, or one that closes anywhere.
fn has_tags(text: &str) -> bool {
    let is_name = |rest: &str| rest.starts_with(|sign: char| sign.is_ascii_alphabetic());
    let opens = |line: &str| line.trim_start().strip_prefix('<').is_some_and(is_name);
    text.lines().any(opens) || text.match_indices("</").any(|(at, _)| is_name(&text[at + 2..]))
}
