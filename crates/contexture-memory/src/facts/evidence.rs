//! What facts may be learned from: items that were said, answered or returned by tools.

use std::borrow::Cow;

use contexture_core::ThreadId;
use contexture_core::item::{Item, Outcome, Role};
use contexture_core::log::ItemLog;
use contexture_core::tokens::floor_boundary;
use serde_json::Value;

use super::fact::{MAX_QUOTE_BYTES, Source, Speaker, coverage, hashes, normal};
use super::refusal::Refusal;
use crate::redact::{redact_part, redacted_start};

/// How many items back a quote is looked for.
const MAX_LOOK_BACK: usize = 2_000;
/// How many items back what the model says in its own words is compared with.
const MAX_COMPARED: usize = 40;
/// How much of one item is read.
pub(super) const MAX_READ_BYTES: usize = 6 * 1024;
/// The model repeats an output if this share of its words is in it.
const REPEATED: f64 = 0.7;
/// The names of arguments that hold the path of a file.
const PATHS: &[&str] = &["path", "file_path", "filename", "file", "notebook_path", "uri"];

/// An item that facts may be learned from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Evidence<'a> {
    pub(super) position: usize,
    pub(super) text: Cow<'a, str>,
    pub(super) said_by: Speaker,
    /// The tool, or the path of the file.
    pub(super) name: Option<String>,
    pub(super) time_ms: Option<u64>,
}

impl<'a> Evidence<'a> {
    /// The item at a position. `None` for what layers and harnesses made, what developers and the system wrote, and what
    /// the model thought and called: nothing is learned from these.
    pub(super) fn at(log: &'a ItemLog, position: usize) -> Option<Self> {
        let entry = log.get(position)?;
        let meta = entry.item.meta()?;
        if !meta.origin.is_said() {
            return None;
        }
        let (said_by, name, text) = match &*entry.item {
            Item::Message(message) if message.role == Role::User => (Speaker::User, None, message.text_cow()),
            Item::Message(message) if message.role == Role::Assistant => (Speaker::Assistant, None, message.text_cow()),
            Item::FunctionCallOutput(output) if !matches!(output.outcome, Outcome::Denied | Outcome::Interrupted) => {
                let call = log.get(entry.call?)?.item.as_call()?;
                let (said_by, name) = speaker_of(&call.name, &call.parsed_arguments());
                (said_by, Some(name), Cow::Borrowed(output.output.as_str()))
            }
            _ => return None,
        };
        (!text.trim().is_empty()).then_some(Self { position, text, said_by, name, time_ms: meta.time_ms })
    }

    /// The source that a quote of it is, if it has the quote.
    pub(super) fn source(&self, thread: &ThreadId, quote: &str) -> Option<Source> {
        let start = self.text.find(quote)?;
        let (thread, name) = (thread.clone(), self.name.clone());
        Some(Source::Item { thread, item: self.position, start, end: start + quote.len(), name })
    }

    /// A quote of it as it is kept: the beginning of it, without secrets that the item has there.
    fn kept(&self, source: &Source) -> String {
        let Source::Item { start, end, .. } = source else { return String::new() };
        kept_quote(&redact_part(&self.text, *start..*end))
    }

    /// As much of its text as is read.
    pub(super) fn read(&self) -> &str {
        &self.text[..floor_boundary(&self.text, MAX_READ_BYTES)]
    }
}

/// A tool, or the file that it read.
fn speaker_of(tool: &str, arguments: &Value) -> (Speaker, String) {
    let path = PATHS.iter().find_map(|name| arguments.get(*name)?.as_str());
    match path {
        Some(path) => (Speaker::File, path.to_owned()),
        None => (Speaker::Tool, tool.to_owned()),
    }
}

/// Who said a quote, where, and when.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) said_by: Speaker,
    pub(super) source: Source,
    pub(super) quote: String,
    pub(super) time_ms: Option<u64>,
}

/// The quote as it is kept: the beginning of it, without secrets. It is cut last, since half a key is not recognised.
pub(super) fn kept_quote(quote: &str) -> String {
    redacted_start(quote, MAX_QUOTE_BYTES).trim_end().to_owned()
}

/// Finds a quote: in the newest message of the user that has it, else in the newest answer, else in the newest output.
pub(super) fn find_quote(log: &ItemLog, thread: &ThreadId, quote: &str) -> Result<Found, Refusal> {
    let quote = quote.trim();
    check_quote(quote)?;
    let mut best: Option<(Speaker, Found)> = None;
    for position in (log.len().saturating_sub(MAX_LOOK_BACK)..log.len()).rev() {
        let Some(evidence) = Evidence::at(log, position) else { continue };
        let rank = evidence.said_by;
        if best.as_ref().is_some_and(|(known, _)| *known >= rank) {
            continue;
        }
        let Some(source) = evidence.source(thread, quote) else { continue };
        let quote = evidence.kept(&source);
        best = Some((rank, Found { said_by: rank, source, quote, time_ms: evidence.time_ms }));
        if rank == Speaker::User {
            break;
        }
    }
    best.map(|(_, found)| found).ok_or(Refusal::QuoteNotFound)
}

/// A single letter is in every message, and shows nothing.
pub(super) fn check_quote(quote: &str) -> Result<(), Refusal> {
    let letters = quote.chars().filter(|c| c.is_alphanumeric()).count();
    let is_dense = quote.chars().any(|c| c.is_alphabetic() && u32::from(c) >= 0x2E80);
    if letters >= 4 || (is_dense && letters >= 2) { Ok(()) } else { Err(Refusal::QuoteTooShort) }
}

/// Where what the model says in its own words comes from: the output that it repeats, unless the user said the same. That
/// the model said it before, too, makes it no less the output's.
pub(super) fn find_repeated(log: &ItemLog, thread: &ThreadId, text: &str) -> Option<Found> {
    let words = hashes(text);
    let mut best: Option<(f64, Found)> = None;
    for position in log.len().saturating_sub(MAX_COMPARED)..log.len() {
        let Some(evidence) = Evidence::at(log, position) else { continue };
        let share = coverage(&words, &hashes(evidence.read()));
        if share < REPEATED || evidence.said_by == Speaker::Assistant {
            continue;
        }
        if evidence.said_by == Speaker::User {
            return None;
        }
        if best.as_ref().is_some_and(|(known, _)| *known > share) {
            continue;
        }
        let line = evidence
            .read()
            .lines()
            .max_by(|one, other| coverage(&words, &hashes(one)).total_cmp(&coverage(&words, &hashes(other))));
        let source = evidence.source(thread, line.unwrap_or_default().trim())?;
        let quote = evidence.kept(&source);
        best = Some((share, Found { said_by: evidence.said_by, source, quote, time_ms: evidence.time_ms }));
    }
    best.map(|(_, found)| found)
}

/// Some items that are read together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Batch {
    pub(super) thread: ThreadId,
    /// The position after the last item.
    pub(super) end: usize,
    pub(super) items: Vec<Evidence<'static>>,
}

impl Batch {
    /// The items from a position on, of about so many tokens.
    pub(super) fn next(log: &ItemLog, thread: &ThreadId, from: usize, tokens: u64) -> Self {
        let (mut items, mut used, mut end) = (Vec::new(), 0, from);
        for (position, entry) in log.range(from..log.len()) {
            if used >= tokens {
                break;
            }
            end = position + 1;
            if let Some(evidence) = Evidence::at(log, position) {
                used += entry.tokens.min(MAX_READ_BYTES as u64 / 4);
                items.push(Evidence { text: Cow::Owned(evidence.text.into_owned()), ..evidence });
            }
        }
        Self { thread: thread.clone(), end, items }
    }

    /// The item that has a quote: the one that was named, or the first.
    pub(super) fn find(&self, item: Option<usize>, quote: &str) -> Result<Found, Refusal> {
        let quote = quote.trim();
        check_quote(quote)?;
        let named = self.items.iter().filter(|evidence| Some(evidence.position) == item);
        let mut items = named.chain(self.items.iter());
        let found = items.find_map(|evidence| Some((evidence, evidence.source(&self.thread, quote)?)));
        let (evidence, source) = found.ok_or(Refusal::QuoteNotFound)?;
        let quote = evidence.kept(&source);
        Ok(Found { said_by: evidence.said_by, source, quote, time_ms: evidence.time_ms })
    }
}

/// Whether a text names something that a name stands for, in the same words.
pub(super) fn names(text: &str, name: &str) -> bool {
    let (text, name) = (format!(" {} ", normal(text)), format!(" {} ", normal(name)));
    name.len() > 2 && text.contains(&name)
}
