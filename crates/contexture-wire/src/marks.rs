//! Cache marks of a client: where they are, and where they move if their message is removed.

use std::ops::Range;

use memchr::memmem;
use serde_json::value::RawValue;

use super::anthropic::{ContentBlocks, MARK};
use super::entry::OutgoingMessage;
use super::error::WireError;
use super::fields::{Fields, quoted};
use super::plan::{Plan, Segment};

/// The most marks that the provider accepts in a request.
pub(super) const MOST: usize = 4;

/// The marks of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheMarks {
    /// How many there are.
    pub count: usize,
    /// Whether one requests an hour instead of five minutes.
    pub asks_for_hour: bool,
}

impl CacheMarks {
    /// Finds the marks of a JSON text. In a text that only mentions marks they are escaped.
    pub(super) fn note(&mut self, json: &str) {
        const NAME: &str = "\"cache_control\"";
        for at in memmem::find_iter(json.as_bytes(), NAME) {
            let before = json.as_bytes()[..at].last();
            let after = json[at + NAME.len()..].trim_start();
            if before != Some(&b'\\') && after.starts_with(':') {
                let value = after[1..].trim_start();
                let end = value.find('}').unwrap_or(0);
                self.count += usize::from(value.starts_with('{'));
                self.asks_for_hour |= value[..end].contains("\"1h\"");
            }
        }
    }
}

/// For each segment of a plan, the mark that it gets from a removed message.
pub(super) fn moved<'a>(messages: &[&'a RawValue], plan: &Plan) -> Result<Vec<Option<&'a str>>, WireError> {
    let mut moved = vec![None; plan.segments().len()];
    for at in lost_in(messages, plan)? {
        let (message, mark) = at;
        // What replaces it comes before the messages that follow it.
        let end = plan.segments().iter().position(|segment| first_of(segment).is_some_and(|first| first > message));
        let before = &plan.segments()[..end.unwrap_or(plan.segments().len())];
        if let Some(place) = before.iter().rposition(|segment| matches!(segment, Segment::Made(_))) {
            moved[place] = Some(mark);
        }
    }
    Ok(moved)
}

/// The mark at the end of a request, if new text comes after it: without the mark that text would not be cached, and
/// would be billed twice.
pub(super) fn last<'a>(messages: &[&'a RawValue], plan: &Plan) -> Result<Option<&'a str>, WireError> {
    let is_behind = matches!(plan.segments(), [.., Segment::Made(_)]) && plan.covered() == messages.len();
    let Some(message) = messages.last().filter(|raw| is_behind && has_mark(raw.get())) else { return Ok(None) };
    let Some(content) = Fields::parse(message.get())?.get("content") else { return Ok(None) };
    let ContentBlocks::List(blocks) = ContentBlocks::of(content)? else { return Ok(None) };
    let Some((unit, mark)) = marks_of(message.get())?.pop() else { return Ok(None) };
    let is_sent = unit + 1 == blocks.len() && sends(plan, messages.len() - 1, unit);
    Ok(is_sent.then_some(mark))
}

/// Puts a mark at the end of what stays at the start of a plan: the client marks the end of the request, which a fold
/// rewrites, and without an entry at what stays the provider would bill that again too. `count` is how many marks the
/// request has, and `automatic` the one with which it leaves its end to the provider. If none is to spare, returns the
/// message that gives up its own: one that is marked before the newest.
///
/// A request that changes the plan reads there what was marked before; later ones mark what stays from then on.
pub(super) fn stand<'a>(
    messages: &[&'a RawValue],
    plan: &Plan,
    marks: &mut [Option<&'a str>],
    (count, automatic): (usize, Option<&'a str>),
) -> Result<Option<usize>, WireError> {
    let is_new = plan.covered() == messages.len();
    let standing = if is_new && plan.stayed() > 0 { plan.stayed() } else { plan.standing() };
    let mut before = plan.segments().get(..standing).unwrap_or_default();
    let place = loop {
        let Some((last, others)) = before.split_last() else { return Ok(None) };
        match end_of(messages, last)? {
            SegmentEnd::Markable => break others.len(),
            SegmentEnd::Marked => return Ok(None),
            SegmentEnd::Unmarkable => before = others,
        }
    };
    if marks[place].is_some() {
        return Ok(None);
    }
    // A client that marks no message wants none of them cached, unless the provider marks the last one for it.
    let mut marked = (0..messages.len()).rev().filter(|at| has_mark(messages[*at].get()));
    let own = match marked.next() {
        Some(newest) => marks_of(messages[newest].get())?.pop().map(|(_, mark)| mark),
        None => None,
    };
    let Some(mark) = own.or(automatic) else { return Ok(None) };
    // One that the plan leaves out has been moved already.
    let other = marked.find(|at| *at >= plan.covered() || is_kept(plan, *at)).filter(|_| count >= MOST);
    if count < MOST || other.is_some() {
        marks[place] = Some(mark);
    }
    Ok(other)
}

/// What the end of what a segment sends is to a mark.
enum SegmentEnd {
    /// It can have one.
    Markable,
    /// It has one.
    Marked,
    /// The provider accepts none there.
    Unmarkable,
}

/// The kinds of blocks that accept a mark if they are not empty.
const MARKABLE: [&str; 3] = ["text", "tool_use", "tool_result"];

fn end_of(messages: &[&RawValue], segment: &Segment) -> Result<SegmentEnd, WireError> {
    let (message, unit) = match segment {
        Segment::Made(_) | Segment::Told(_) => return Ok(SegmentEnd::Markable),
        Segment::Keep(kept) => (kept.end.saturating_sub(1), None),
        Segment::Part { message, units } => (*message, units.last().map(|shown| shown.unit)),
    };
    let message = Fields::parse(messages.get(message).ok_or(WireError::OtherRequest)?.get())?;
    let Some(content) = message.get("content") else { return Ok(SegmentEnd::Unmarkable) };
    let ContentBlocks::List(blocks) = ContentBlocks::of(content)? else { return Ok(SegmentEnd::Unmarkable) };
    let block = unit.map_or(blocks.last(), |unit| blocks.get(unit));
    let Some(block) = block.map(|block| Fields::parse(block.get())).transpose()? else {
        return Ok(SegmentEnd::Unmarkable);
    };
    let is_empty = block.text("text").is_some_and(|text| text.trim().is_empty());
    Ok(match block.get(MARK).filter(|mark| mark.get() != "null") {
        Some(_) => SegmentEnd::Marked,
        // A system message may be sent in another place.
        None if is_empty || message.is_instruction() => SegmentEnd::Unmarkable,
        None if block.text("type").is_some_and(|kind| MARKABLE.contains(&&*kind)) => SegmentEnd::Markable,
        None => SegmentEnd::Unmarkable,
    })
}

/// The field by which a client of OpenAI's formats marks a part up to which the prompt is cached. Clients can ask for
/// caching at such marks only.
const BREAKPOINT: &str = "prompt_cache_breakpoint";

/// Puts the newest mark of a part that is not sent at the end of what replaces the past.
pub(super) fn carry_breakpoint(entries: &mut [OutgoingMessage<'_>], messages: &[&RawValue]) -> Result<(), WireError> {
    let is_sent = |at: usize| entries.iter().any(|entry| entry.from == Some(at) && entry.json.contains(BREAKPOINT));
    let mut marked = (0..messages.len()).rev().filter(|at| messages[*at].get().contains(BREAKPOINT));
    let Some(lost) = marked.find(|at| !is_sent(*at)) else { return Ok(()) };
    let Some(mark) = breakpoint_of(messages[lost].get())? else { return Ok(()) };
    let Some(place) = entries.iter().rposition(|entry| entry.from.is_none()) else { return Ok(()) };
    let fields = Fields::parse(&entries[place].json)?;
    let Some(content) = fields.get("content") else { return Ok(()) };
    // In one format a text is a message of its own kind.
    let kind = if fields.get("type").is_some() { "input_text" } else { "text" };
    let mut blocks: Vec<String> = match ContentBlocks::of(content)? {
        ContentBlocks::Text(text) => vec![format!("{{\"type\":\"{kind}\",\"text\":{}}}", quoted(&text))],
        ContentBlocks::List(blocks) => blocks.iter().map(|block| block.get().to_owned()).collect(),
    };
    if let Some(last) = blocks.last_mut() {
        *last = Fields::parse(last)?.with(BREAKPOINT, mark);
    }
    let json = fields.with("content", &format!("[{}]", blocks.join(",")));
    entries[place].json = json.into();
    Ok(())
}

/// The last mark among the parts of a message.
fn breakpoint_of(message: &str) -> Result<Option<&str>, WireError> {
    let fields = Fields::parse(message)?;
    let Some(content) = fields.get("content").or_else(|| fields.get("output")) else { return Ok(None) };
    let ContentBlocks::List(blocks) = ContentBlocks::of(content)? else { return Ok(None) };
    let mut mark = None;
    for block in blocks {
        mark = Fields::parse(block.get())?.get(BREAKPOINT).map(RawValue::get).filter(|mark| *mark != "null").or(mark);
    }
    Ok(mark)
}

/// Whether a JSON text may have a mark.
fn has_mark(json: &str) -> bool {
    memmem::find(json.as_bytes(), MARK.as_bytes()).is_some()
}

fn first_of(segment: &Segment) -> Option<usize> {
    match segment {
        Segment::Keep(kept) => Some(kept.start),
        Segment::Part { message, .. } => Some(*message),
        Segment::Made(_) | Segment::Told(_) => None,
    }
}

/// Marks of parts that are not sent, with their messages.
fn lost_in<'a>(messages: &[&'a RawValue], plan: &Plan) -> Result<Vec<(usize, &'a str)>, WireError> {
    let mut lost = Vec::new();
    for (message, raw) in messages.iter().enumerate().take(plan.covered()) {
        // Few messages have marks, and plans may be long.
        if !has_mark(raw.get()) || is_kept(plan, message) {
            continue;
        }
        for (unit, mark) in marks_of(raw.get())? {
            if !sends(plan, message, unit) {
                lost.push((message, mark));
            }
        }
    }
    Ok(lost)
}

fn is_kept(plan: &Plan, message: usize) -> bool {
    let keeps = |range: &Range<usize>| range.contains(&message);
    plan.segments().iter().any(|segment| matches!(segment, Segment::Keep(range) if keeps(range)))
}

fn sends(plan: &Plan, message: usize, unit: usize) -> bool {
    plan.segments().iter().any(|segment| match segment {
        Segment::Part { message: other, units } => *other == message && units.iter().any(|shown| shown.unit == unit),
        Segment::Keep(range) => range.contains(&message),
        Segment::Made(_) | Segment::Told(_) => false,
    })
}

/// The marks of a message, each with the part that carries it.
fn marks_of(json: &str) -> Result<Vec<(usize, &str)>, WireError> {
    let Some(content) = Fields::parse(json)?.get("content") else { return Ok(Vec::new()) };
    let ContentBlocks::List(blocks) = ContentBlocks::of(content)? else { return Ok(Vec::new()) };
    let mut marks = Vec::new();
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| has_mark(block.get())) {
        if let Some(mark) = Fields::parse(block.get())?.get(MARK).filter(|mark| mark.get() != "null") {
            marks.push((at, mark.get()));
        }
    }
    Ok(marks)
}
