//! A fold without views, for a request that is far above its budget and for which nothing was decided in time: the task,
//! what people said, and the newest steps that fit.
//!
//! It reads little more than what it keeps, so it takes about as long for a large request as for a small one.

use std::sync::Arc;

use contexture::item::Item;
use contexture::wire::in_force::sets_something;
use contexture::wire::rules::binds_reasoning;
use contexture::wire::{Plan, Request, Unit, read_at, told};

/// What the model is told of what is left out.
const NOTE: &str = "[Contexture's note: older messages are left out here. Their files can be read again.]";

/// The part of the room for what people said, and for the longest text of a message.
const SAID_PART: usize = 4;

/// The newest steps have so many messages at least, whose texts are cut.
const LEAST_MESSAGES: usize = 2;

/// No text is cut to fewer bytes.
const LEAST_TEXT: usize = 200;

/// A message, as far as it matters here.
struct PlainMessage {
    at: usize,
    units: Vec<Unit>,
    bytes: usize,
}

impl PlainMessage {
    fn read(request: &Request<'_>, at: usize) -> Option<Self> {
        let units = read_at(request.format(), request.messages(), at, None).ok()?;
        let units = if request.tells_in_thoughts() { told(units) } else { units };
        Some(Self { at, units, bytes: request.messages()[at].get().len() })
    }

    fn is_of_model(&self) -> bool {
        self.units.first().is_some_and(|unit| unit.item.is_of_model())
    }

    /// Whether a person said it, or the harness for one.
    fn is_said(&self) -> bool {
        let is_said = |unit: &Unit| unit.item.as_message().is_some() && !unit.item.is_of_model();
        !self.units.is_empty() && self.units.iter().all(is_said)
    }
}

/// The plan of such a fold for the messages after the first ones, which stay, within a number of bytes; `None` if a
/// message cannot be read.
pub(super) fn plan(request: &Request<'_>, lead: usize, bytes: usize) -> Option<Plan> {
    let count = request.messages().len();
    let most_text = bytes / SAID_PART;
    let mut newest: Vec<PlainMessage> = Vec::new();
    let (mut used, mut start) = (0, count);
    for at in (lead..count).rev() {
        let message = PlainMessage::read(request, at)?;
        used += message.bytes.min(most_text);
        if used > bytes / 2 && start < count && count - at > LEAST_MESSAGES {
            break;
        }
        let follows_model = at > lead && is_of_model(request, at - 1);
        let can_begin = message.is_said() || (message.is_of_model() && !follows_model);
        newest.push(message);
        if can_begin {
            start = at;
        }
    }
    newest.retain(|message| message.at >= start);
    newest.reverse();
    let mut plan = Plan::default();
    plan.push_kept(0..lead);
    let older = older(request, lead..start, bytes / SAID_PART)?;
    let mut writer =
        PlainWriter { plan, is_bound: is_bound(request), most_text: fitting(&newest, most_text, bytes / 2) };
    older.iter().for_each(|message| writer.push(message));
    if older.len() < start - lead {
        writer.plan.push_made(NOTE.into());
    }
    newest.iter().for_each(|message| writer.push(message));
    let mut plan = writer.plan;
    plan.cover(count);
    Some(plan)
}

/// The longest text of messages, at most a number of bytes, with which all their texts fit.
fn fitting(messages: &[PlainMessage], most_text: usize, bytes: usize) -> usize {
    let texts = messages.iter().flat_map(|message| &message.units).map(|unit| match &unit.item {
        Item::FunctionCallOutput(output) => output.output.len(),
        Item::Message(said) => said.text_cow().len(),
        _ => 0,
    });
    let lengths: Vec<usize> = texts.collect();
    let fits = |most: &usize| lengths.iter().map(|length| length.min(most)).sum::<usize>() <= bytes;
    let halves = std::iter::successors(Some(most_text), |most| Some(most / 2).filter(|most| *most >= LEAST_TEXT));
    halves.into_iter().find(fits).unwrap_or(LEAST_TEXT)
}

fn is_bound(request: &Request<'_>) -> bool {
    binds_reasoning(request.format(), &request.model().unwrap_or_default())
}

fn is_of_model(request: &Request<'_>, at: usize) -> bool {
    PlainMessage::read(request, at).is_some_and(|message| message.is_of_model())
}

/// What stays of older messages: the task, the newest of what people said, and the steps that set something.
fn older(request: &Request<'_>, range: std::ops::Range<usize>, bytes: usize) -> Option<Vec<PlainMessage>> {
    let first = range.start;
    let mut kept: Vec<PlainMessage> = Vec::new();
    let (mut said, mut setting) = (0, Vec::new());
    for at in range.clone().rev() {
        let json = request.messages()[at].get();
        if sets_something(json) {
            setting.extend(step_of(request, at, &range)?);
        }
        // What is long is the work of tools, and is not read.
        if at == first || (json.len() <= bytes - said.min(bytes)) {
            let message = PlainMessage::read(request, at)?;
            if message.is_said() {
                said += message.bytes;
                kept.push(message);
            }
        }
    }
    for at in setting {
        if !kept.iter().any(|message| message.at == at) {
            kept.push(PlainMessage::read(request, at)?);
        }
    }
    kept.sort_by_key(|message| message.at);
    Some(kept)
}

/// The messages of the step that a message is part of: what the model made in a row, and its outputs.
fn step_of(request: &Request<'_>, at: usize, range: &std::ops::Range<usize>) -> Option<std::ops::Range<usize>> {
    let message = PlainMessage::read(request, at)?;
    if message.is_said() {
        return Some(at..at + 1);
    }
    let is_model = |at: &usize| is_of_model(request, *at);
    let made = (range.start..=at).rev().find(is_model)?;
    let first = (range.start..=made).rev().take_while(is_model).last()?;
    let outputs = (made + 1..range.end)
        .find(|at| is_model(at) || PlainMessage::read(request, *at).is_none_or(|message| message.is_said()));
    let last_made = (made..range.end).take_while(is_model).last()?;
    let end = outputs.filter(|end| *end > last_made).unwrap_or(range.end);
    Some(first..end)
}

/// Writes the plan.
struct PlainWriter {
    plan: Plan,
    is_bound: bool,
    most_text: usize,
}

impl PlainWriter {
    /// Adds a message, without thoughts that are bound to what is left out, and without the middle of long texts.
    fn push(&mut self, message: &PlainMessage) {
        let of = message.units.len();
        if of == 0 {
            self.plan.push_kept(message.at..message.at + 1);
        }
        for (unit, read) in message.units.iter().enumerate() {
            let text = match &read.item {
                Item::Reasoning(thought) if self.is_bound && thought.is_told => Some(thought.text.as_str().into()),
                Item::Reasoning(_) if self.is_bound => continue,
                Item::FunctionCallOutput(output) => self.cut(&output.output),
                Item::Message(said) if !read.item.is_of_model() => self.cut(&said.text_cow()),
                _ => None,
            };
            self.plan.push_unit(message.at, unit, of, text);
        }
    }

    /// A text without its middle; `None` if it is not too long.
    fn cut(&self, text: &str) -> Option<Arc<str>> {
        let end = self.most_text / 3;
        let first = text.floor_char_boundary(self.most_text - end);
        let rest = text.ceil_char_boundary(text.len().saturating_sub(end));
        let is_long = text.len() > self.most_text && first < rest;
        is_long.then(|| format!("{}[… {} bytes left out …]{}", &text[..first], rest - first, &text[rest..]).into())
    }
}
