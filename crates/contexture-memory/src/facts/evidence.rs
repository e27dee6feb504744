//! What facts may be learned from: items that were said, answered or returned by tools.

use std::borrow::Cow;

use contexture_core::ThreadId;
use contexture_core::item::FunctionCall;
use contexture_core::item::{Item, Outcome, Role};
use contexture_core::log::ItemLog;
use contexture_core::tokens::floor_boundary;
use contexture_files::argument_names::path_in;
use contexture_files::dialect::Dialects;

use super::fact::{MAX_QUOTE_BYTES, Source, Speaker, coverage, hashes, normal};
use super::refusal::Refusal;
use crate::recall::Passage;
use crate::redact::{redact_part, redacted_start};

/// How many items back a quote is looked for.
const MAX_LOOK_BACK: usize = 2_000;
/// How many items back what the model says in its own words is compared with.
const MAX_COMPARED: usize = 40;
/// How much of one item is read.
pub(super) const MAX_READ_BYTES: usize = 6 * 1024;
/// The model repeats an output if this share of its words is in it.
const REPEATED: f64 = 0.7;

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
    pub(super) fn at(log: &'a ItemLog, dialects: &Dialects, position: usize) -> Option<Self> {
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
                let (said_by, name) = speaker_of(call, dialects);
                (said_by, Some(name), Cow::Borrowed(output.output.as_str()))
            }
            _ => return None,
        };
        (!text.trim().is_empty()).then_some(Self { position, text, said_by, name, time_ms: meta.time_ms })
    }

    /// A passage of a past conversation. What a tool returned is its own, never that of whom it speaks of.
    fn of_passage(passage: &Passage) -> Evidence<'static> {
        let (said_by, name, text) = match passage.returned_by() {
            Some((tool, None, output)) => (Speaker::Tool, Some(tool), output),
            Some((_, Some(path), output)) => (Speaker::File, Some(path), output),
            None if passage.speaker == Role::User.as_str() => (Speaker::User, None, passage.text.as_str()),
            None => (Speaker::Assistant, None, passage.text.as_str()),
        };
        let position = usize::try_from(passage.position).unwrap_or(usize::MAX - 1);
        Evidence { position, text: Cow::Owned(text.to_owned()), said_by, name, time_ms: passage.at_ms }
    }

    /// The source that a quote of it is, if it has the quote.
    pub(super) fn source(&self, thread: &ThreadId, quote: &str) -> Option<Source> {
        let start = self.text.find(quote)?;
        let (thread, name) = (thread.clone(), self.name.clone());
        Some(Source::Item { thread, item: self.position, start, end: start + quote.len(), name })
    }

    /// What is found with a source in it.
    pub(super) fn found(&self, source: Source) -> LocatedQuote {
        let sentence = match &source {
            Source::Item { start, end, .. } => sentence_around(&self.text, *start, *end).to_owned(),
            Source::Hand => String::new(),
        };
        LocatedQuote { said_by: self.said_by, quote: self.kept(&source), source, sentence, time_ms: self.time_ms }
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

/// The sentences that a part of a text is in.
fn sentence_around(text: &str, start: usize, end: usize) -> &str {
    let ends = |before: char, after: Option<char>| match before {
        '\n' | '。' | '！' | '？' => true,
        '.' | '!' | '?' => after.is_none_or(char::is_whitespace),
        _ => false,
    };
    let is_end = |at: usize, c: char| ends(c, text[at + c.len_utf8()..].chars().next());
    let from = text[..start].char_indices().rev().find(|(at, c)| is_end(*at, *c));
    let from = from.map_or(0, |(at, c)| at + c.len_utf8());
    let to = text[end..].char_indices().find(|(at, c)| is_end(end + at, *c));
    &text[from..to.map_or(text.len(), |(at, c)| end + at + c.len_utf8())]
}

/// A tool, or the file that it read.
fn speaker_of(call: &FunctionCall, dialects: &Dialects) -> (Speaker, String) {
    match path_in(&dialects.common_arguments(&call.name, call.parsed_arguments())) {
        Some(path) => (Speaker::File, path.to_owned()),
        None => (Speaker::Tool, call.name.to_string()),
    }
}

/// Who said a quote, where, and when.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LocatedQuote {
    pub(super) said_by: Speaker,
    pub(super) source: Source,
    pub(super) quote: String,
    /// The sentence that the quote is in: what the quote can carry.
    pub(super) sentence: String,
    pub(super) time_ms: Option<u64>,
}

/// The quote as it is kept: the beginning of it, without secrets. It is cut last, since half a key is not recognised.
pub(super) fn kept_quote(quote: &str) -> String {
    redacted_start(quote, MAX_QUOTE_BYTES).trim_end().to_owned()
}

/// Finds a quote: in the newest message of the user that has it, else in the newest answer, else in the newest output.
pub(super) fn find_quote(
    log: &ItemLog,
    dialects: &Dialects,
    thread: &ThreadId,
    quote: &str,
) -> Result<LocatedQuote, Refusal> {
    let quote = quote.trim();
    check_quote(quote)?;
    let mut best: Option<(Speaker, LocatedQuote)> = None;
    for position in (log.len().saturating_sub(MAX_LOOK_BACK)..log.len()).rev() {
        let Some(evidence) = Evidence::at(log, dialects, position) else { continue };
        let rank = evidence.said_by;
        if best.as_ref().is_some_and(|(known, _)| *known >= rank) {
            continue;
        }
        let Some(source) = evidence.source(thread, quote) else { continue };
        best = Some((rank, evidence.found(source)));
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
pub(super) fn find_repeated(log: &ItemLog, dialects: &Dialects, thread: &ThreadId, text: &str) -> Option<LocatedQuote> {
    let words = hashes(text);
    let mut best: Option<(f64, LocatedQuote)> = None;
    for position in log.len().saturating_sub(MAX_COMPARED)..log.len() {
        let Some(evidence) = Evidence::at(log, dialects, position) else { continue };
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
        best = Some((share, evidence.found(source)));
    }
    best.map(|(_, found)| found)
}

/// Some items that are read together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EvidenceBatch {
    pub(super) thread: ThreadId,
    /// The position after the last item.
    pub(super) end: usize,
    pub(super) items: Vec<Evidence<'static>>,
}

impl EvidenceBatch {
    /// The items from a position on, of about so many tokens.
    pub(super) fn next(log: &ItemLog, dialects: &Dialects, thread: &ThreadId, from: usize, tokens: u64) -> Self {
        let (mut items, mut used, mut end) = (Vec::new(), 0, from);
        for (position, entry) in log.range(from..log.len()) {
            if used >= tokens {
                break;
            }
            end = position + 1;
            if let Some(evidence) = Evidence::at(log, dialects, position) {
                used += entry.tokens.min(MAX_READ_BYTES as u64 / 4);
                items.push(Evidence { text: Cow::Owned(evidence.text.into_owned()), ..evidence });
            }
        }
        Self { thread: thread.clone(), end, items }
    }

    /// Passages of a conversation from a position on, of about so many bytes.
    pub(super) fn of_passages(thread: &ThreadId, from: usize, passages: &[Passage], bytes: usize) -> Self {
        let (mut items, mut used, mut end) = (Vec::new(), 0, from);
        for passage in passages {
            if used >= bytes {
                break;
            }
            end = usize::try_from(passage.position).unwrap_or(usize::MAX - 1) + 1;
            let evidence = Evidence::of_passage(passage);
            used += evidence.text.len().min(MAX_READ_BYTES);
            items.push(evidence);
        }
        Self { thread: thread.clone(), end, items }
    }

    /// The item that has a quote: the one that was named, or the first.
    pub(super) fn find(&self, item: Option<usize>, quote: &str) -> Result<LocatedQuote, Refusal> {
        let quote = quote.trim();
        check_quote(quote)?;
        let named = self.items.iter().filter(|evidence| Some(evidence.position) == item);
        let mut items = named.chain(self.items.iter());
        let found = items.find_map(|evidence| Some((evidence, evidence.source(&self.thread, quote)?)));
        let (evidence, source) = found.ok_or(Refusal::QuoteNotFound)?;
        Ok(evidence.found(source))
    }
}

/// Whether a text names something that a name stands for, in the same words.
pub(super) fn names(text: &str, name: &str) -> bool {
    let (text, name) = (format!(" {} ", normal(text)), format!(" {} ", normal(name)));
    name.len() > 2 && text.contains(&name)
}
