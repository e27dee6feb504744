//! The account of the earlier conversation: one block for the oldest steps, made of quotes.
//!
//! It has what people said and what the agent said, verbatim and in order, and a line for each step, in the form in
//! which agents sum up their own conversations. It grows by chapters, so that what was sent stays in the provider's
//! cache. Texts are fenced, and a line for a step stays a line, so nothing in them can pass for another entry.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use contexture_core::window::fence_for;

use super::said::{LEAST_REPEATED_BYTES, cut_said, cut_text, others_note, repeated};
use crate::conversation::ItemSpeaker;
use crate::decision::CutSaid;
use crate::settings::FoldSettings;
use crate::state::State;
use crate::written::ACCOUNT_START;

/// Something of the account.
enum Entry {
    /// The text of an item, verbatim or shortened.
    Quote { at: usize, text: Arc<str>, is_agent: bool },
    /// Lines for steps.
    Steps(String),
}

/// One chapter, and what had to be cut of it.
#[derive(Default)]
pub(super) struct Chapter {
    pub(super) text: Arc<str>,
    pub(super) cut_said: Vec<CutSaid>,
    pub(super) cut_told: Vec<CutSaid>,
    /// How many bytes of lines for steps were left out.
    pub(super) left_out_bytes: usize,
}

impl Entry {
    fn bytes(&self) -> usize {
        match self {
            Entry::Quote { text, .. } => text.len() + QUOTE_BYTES,
            Entry::Steps(lines) => lines.len(),
        }
    }

    fn write(&self, text: &mut String) {
        match self {
            Entry::Quote { text: quoted, is_agent, .. } => {
                let fence = fence_for(quoted);
                let who = if *is_agent { "You" } else { "User" };
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{who}:\n{fence}\n{quoted}\n{fence}");
            }
            Entry::Steps(lines) => text.push_str(lines),
        }
    }
}

/// What an account has in its second line of which words had to be cut.
const CUT_LINE: &str = "[… older words and steps left out …]\n";

/// Whether words had to be cut of a chapter.
pub(super) fn is_cut(text: &str) -> bool {
    text.split_once('\n').is_some_and(|(_, rest)| rest.starts_with(CUT_LINE))
}

/// Bytes of what stands around a quote.
const QUOTE_BYTES: usize = 15;

/// Least bytes of a text of a person that is shortened; with less room it is left out.
const LEAST_SHORTENED_BYTES: usize = 160;

/// Quotes the items in a range, except for those that are in their own place.
pub(super) fn chapter(state: &State, range: Range<usize>, in_place: &BTreeSet<usize>) -> Chapter {
    let entries = entries(state, range.clone(), in_place);
    Chapter { text: written(state, range, &entries, [false; 2]).into(), ..Chapter::default() }
}

/// The same within a number of tokens. Lines for steps go first, then what the agent said, then what people said, the
/// oldest first each time. The task is not among them: it is in its own place before the account.
pub(super) fn chapter_within(
    settings: &FoldSettings,
    state: &State,
    range: Range<usize>,
    in_place: &BTreeSet<usize>,
    tokens: u64,
) -> Chapter {
    let mut entries = entries(state, range.clone(), in_place);
    let mut chapter = Chapter::default();
    let mut bytes = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(4);
    for _ in 0..MAX_TRIES {
        cut(settings, state, &mut entries, bytes.saturating_sub(HEADING_BYTES), &mut chapter);
        let has_lost = [!(chapter.cut_told.is_empty() && chapter.cut_said.is_empty()), chapter.left_out_bytes > 0];
        chapter.text = written(state, range.clone(), &entries, has_lost).into();
        let counted = settings.meter.made(&chapter.text);
        if counted <= tokens {
            break;
        }
        bytes = (chapter.text.len() as f64 * tokens as f64 / counted as f64 * AIM) as usize;
    }
    if settings.meter.made(&chapter.text) > tokens {
        chapter.text = "".into();
    }
    chapter
}

/// How often a chapter is written again because it was too large, and how far below what that suggests each try aims.
const MAX_TRIES: usize = 6;
const AIM: f64 = 0.95;

/// Bytes of the heading and of the note that something is left out.
const HEADING_BYTES: usize = 160;

fn entries(state: &State, range: Range<usize>, in_place: &BTreeSet<usize>) -> Vec<Entry> {
    let conversation = &state.conversation;
    let mut entries = Vec::new();
    let mut heard: HashSet<Arc<str>> = HashSet::new();
    let mut from = range.start;
    for at in range.clone().filter(|at| conversation.holds(*at)) {
        let is_person = conversation.speaker(at).is_person();
        if !(is_person || conversation.is_told(at)) {
            continue;
        }
        add_steps(state, from..at, &mut entries);
        from = at;
        if in_place.contains(&at) {
            continue;
        }
        let text: Arc<str> = match others_note(conversation.item(at)) {
            Some(note) => format!("{}\n{note}", conversation.text(at)).trim_start().into(),
            None => conversation.text(at).into(),
        };
        if text.trim().is_empty() {
            continue;
        }
        let is_agent = conversation.speaker(at) == ItemSpeaker::Model;
        // What was said before is not said again, but the last word stays the last.
        let is_repeated = text.len() >= LEAST_REPEATED_BYTES && !heard.insert(text.clone());
        let text = if is_repeated { repeated(conversation.speaker(at), &text).into() } else { text };
        entries.push(Entry::Quote { at, text, is_agent });
    }
    add_steps(state, from..range.end, &mut entries);
    entries
}

fn add_steps(state: &State, range: Range<usize>, entries: &mut Vec<Entry>) {
    let lines = state.ledger.lines(range);
    match entries.last_mut() {
        _ if lines.is_empty() => {}
        Some(Entry::Steps(before)) => before.push_str(&lines),
        _ => entries.push(Entry::Steps(lines)),
    }
}

fn written(
    state: &State,
    range: Range<usize>,
    entries: &[Entry],
    [has_lost_words, has_lost_steps]: [bool; 2],
) -> String {
    let (first, last) =
        (state.conversation.messages_before(range.start) + 1, state.conversation.messages_before(range.end));
    let mut text = format!("{ACCOUNT_START}, messages {first} to {last}, in quotes]\n");
    if has_lost_words {
        text.push_str(CUT_LINE);
    } else if has_lost_steps {
        text.push_str("[… older steps left out …]\n");
    }
    entries.iter().for_each(|entry| entry.write(&mut text));
    text
}

/// Leaves out entries until they have at most a number of bytes.
fn cut(settings: &FoldSettings, state: &State, entries: &mut Vec<Entry>, bytes: usize, chapter: &mut Chapter) {
    let mut excess = entries.iter().map(Entry::bytes).sum::<usize>().saturating_sub(bytes);
    // The lines of the oldest steps.
    for entry in entries.iter_mut() {
        let Entry::Steps(lines) = entry else { continue };
        let cut = lines.split_inclusive('\n').scan(0, |cut, line| {
            let before = *cut;
            *cut += line.len();
            (before < excess).then_some(*cut)
        });
        let cut = cut.last().unwrap_or(0);
        lines.drain(..cut);
        chapter.left_out_bytes += cut;
        excess = excess.saturating_sub(cut);
    }
    // The agent's oldest words.
    entries.retain(|entry| {
        let Entry::Quote { at, is_agent: true, .. } = entry else {
            return !matches!(entry, Entry::Steps(lines) if lines.is_empty());
        };
        if excess > 0 {
            excess = excess.saturating_sub(entry.bytes());
            chapter.cut_told.push(cut_said(state, *at, 0));
            return false;
        }
        true
    });
    if excess == 0 {
        return;
    }
    // People's words: the newest stay, as far as there is room.
    let mut room = bytes;
    let mut kept: Vec<Entry> = Vec::new();
    for entry in std::mem::take(entries).into_iter().rev() {
        let Entry::Quote { at, text, is_agent } = entry else { continue };
        if text.len() + QUOTE_BYTES <= room {
            room -= text.len() + QUOTE_BYTES;
            kept.push(Entry::Quote { at, text, is_agent });
            continue;
        }
        let left = room.saturating_sub(QUOTE_BYTES);
        let tokens = settings.meter.text(&text) * left as u64 / text.len().max(1) as u64;
        let shortened = (left >= LEAST_SHORTENED_BYTES).then(|| cut_text(settings, state, at, tokens));
        let shortened = shortened.filter(|shorter| !shorter.trim().is_empty() && shorter.len() <= left);
        let shown = shortened.as_ref().map_or(0, |text| settings.meter.made(text));
        chapter.cut_said.retain(|cut| cut.position != at);
        chapter.cut_said.push(cut_said(state, at, shown));
        // No older words are shown where newer ones were cut.
        room = 0;
        kept.extend(shortened.map(|text| Entry::Quote { at, text, is_agent }));
    }
    kept.reverse();
    *entries = kept;
}
