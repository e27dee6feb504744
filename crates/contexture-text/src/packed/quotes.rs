//! Lines that are in a text of the log, and where.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use contexture_core::item::Item;
use foldhash::fast::FixedState;
use serde_json::Value;

/// Lines are found by so many bytes at their end; tools put numbers and marks before lines, hardly ever behind them.
/// Shorter lines are quoted only together with those before them: alone, they take less room than a quote.
const TAIL_BYTES: usize = 8;

/// Most places of the same end that are looked at, the newest first.
const MAX_PLACES: usize = 16;

/// A text of the log.
pub(super) struct SourceText<'a> {
    position: usize,
    /// Which of the item's texts it is.
    field: usize,
    text: Cow<'a, str>,
    /// Where each line begins; one more for the end of the last.
    starts: Vec<usize>,
}

impl<'a> SourceText<'a> {
    fn new(position: usize, field: usize, text: Cow<'a, str>) -> Self {
        let feeds = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let starts = [0].into_iter().chain(feeds).chain([text.len() + 1]).collect();
        Self { position, field, text, starts }
    }

    /// A text of an item of a log.
    pub(super) fn read(log: &'a [(Arc<Item>, u64)], position: usize, field: usize) -> Option<Self> {
        let text = texts_of(&log.get(position)?.0).into_iter().nth(field)?;
        Some(Self::new(position, field, text))
    }

    /// The position of its item in the log.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Which of the item's texts it is.
    pub(super) fn field(&self) -> usize {
        self.field
    }

    /// What tells it from another text: how arguments of a call are taken apart may change.
    pub(super) fn check(&self) -> [u8; 4] {
        *blake3::hash(self.text.as_bytes()).as_bytes().first_chunk().expect("a hash has 32 bytes")
    }

    /// How many lines it has.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// A line of it, without its line feed.
    pub(super) fn line(&self, at: usize) -> Option<&str> {
        let (start, end) = (*self.starts.get(at)?, *self.starts.get(at.checked_add(1)?)?);
        let line = &self.text[start..end - 1];
        Some(line.strip_suffix('\r').unwrap_or(line))
    }
}

/// All texts of an item.
fn texts_of(item: &Item) -> Vec<Cow<'_, str>> {
    match item {
        Item::Message(message) => vec![message.text_cow()],
        Item::FunctionCallOutput(output) => vec![Cow::Borrowed(&output.output)],
        Item::FunctionCall(call) => {
            let mut texts = Vec::new();
            take_texts(call.parsed_arguments(), &mut texts);
            texts
        }
        Item::Reasoning(_) | Item::Opaque(_) => Vec::new(),
    }
}

fn take_texts(value: Value, texts: &mut Vec<Cow<'_, str>>) {
    match value {
        Value::String(text) => texts.push(Cow::Owned(text)),
        Value::Array(values) => values.into_iter().for_each(|value| take_texts(value, texts)),
        Value::Object(fields) => fields.into_iter().for_each(|(_, value)| take_texts(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Lines that follow one another in a source.
pub(super) struct Quote {
    pub(super) source: usize,
    /// The first of them.
    pub(super) first: usize,
    /// How many.
    pub(super) count: usize,
    /// How many bytes before each of them are left out.
    pub(super) skipped: usize,
}

/// Finds lines in texts of a log.
pub(super) struct Quotes<'a> {
    log: &'a [(Arc<Item>, u64)],
    added: HashSet<usize>,
    sources: Vec<SourceText<'a>>,
    /// The newest place of each end of a line.
    newest: HashMap<[u8; TAIL_BYTES], usize, FixedState>,
    places: Vec<SourceLine>,
}

/// A line of a source.
struct SourceLine {
    source: usize,
    line: usize,
    /// The place before it with the same end.
    before: Option<usize>,
}

impl<'a> Quotes<'a> {
    pub(super) fn new(log: &'a [(Arc<Item>, u64)]) -> Self {
        let (added, sources, newest, places) = Default::default();
        Self { log, added, sources, newest, places }
    }

    /// A source by its number.
    pub(super) fn source(&self, source: usize) -> &SourceText<'a> {
        &self.sources[source]
    }

    /// Adds the texts of the item at a position.
    pub(super) fn add(&mut self, position: usize) {
        let Some((item, _)) = self.log.get(position).filter(|_| self.added.insert(position)) else { return };
        for (field, text) in texts_of(item).into_iter().enumerate() {
            let (number, source) = (self.sources.len(), SourceText::new(position, field, text));
            for line in 0..source.len() {
                let Some(tail) = source.line(line).and_then(tail_of) else { continue };
                let before = self.newest.insert(tail, self.places.len());
                self.places.push(SourceLine { source: number, line, before });
            }
            self.sources.push(source);
        }
    }

    /// The longest run of lines of one source that some lines begin with.
    pub(super) fn find(&self, lines: &[&str]) -> Option<Quote> {
        let mut next = self.newest.get(&tail_of(lines.first()?)?).copied();
        let mut longest: Option<Quote> = None;
        for _ in 0..MAX_PLACES {
            let Some(place) = next.map(|place| &self.places[place]) else { break };
            next = place.before;
            let Some(quote) = self.run_at(place, lines) else { continue };
            if longest.as_ref().is_none_or(|longest| longest.count < quote.count) {
                let is_all = quote.count == lines.len();
                longest = Some(quote);
                if is_all {
                    break;
                }
            }
        }
        longest
    }

    fn run_at(&self, place: &SourceLine, lines: &[&str]) -> Option<Quote> {
        let source = &self.sources[place.source];
        let skipped = source.line(place.line)?.len().checked_sub(lines[0].len())?;
        let is_next = |(index, line): &(usize, &&str)| {
            source.line(place.line + index).and_then(|own| own.get(skipped..)) == Some(**line)
        };
        let count = lines.iter().enumerate().take_while(is_next).count();
        (count > 0).then_some(Quote { source: place.source, first: place.line, count, skipped })
    }
}

/// The bytes at the end of a line by which it is found.
fn tail_of(line: &str) -> Option<[u8; TAIL_BYTES]> {
    line.as_bytes().last_chunk().copied()
}
