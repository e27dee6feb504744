//! What folded outputs said of names that were just used again.

use std::fmt::Write as _;

use contexture_core::item::Item;
use contexture_core::window::fence_for;

use crate::conversation::text_of;
use crate::records::CallRecord;
use crate::settings::FoldSettings;
use crate::state::State;
use crate::written::ECHOES_TITLE;
use contexture_text::block::start_of;
use contexture_text::one_line::one_line;

/// Most names that are looked for before a request.
const MAX_SOUGHT: usize = 3;

/// Most names that something is brought back for.
const MAX_FOUND: usize = 2;

/// A name in more outputs than this is not rare.
const MAX_HOLDERS: usize = 2;

/// How many bytes of outputs are searched, the newest first.
const MAX_SEARCHED_BYTES: usize = 300_000;

/// Lines that are shown before and after a line with the name.
const AROUND: usize = 2;

/// Longest line that is shown whole, in bytes.
const MAX_LINE_BYTES: usize = 200;

/// Returns the lines around names that the newest messages used, that the window does not show, and that few folded
/// outputs have; empty if there are none, or if they have more than a number of tokens.
pub(super) fn echoes(settings: &FoldSettings, state: &State, tokens: u64) -> String {
    if !state.shown.is_folded() || state.knowledge.named().is_empty() {
        return String::new();
    }
    let mut text = String::new();
    let mut found = 0;
    for name in state.knowledge.named().iter().rev().take(MAX_SOUGHT) {
        if found == MAX_FOUND {
            break;
        }
        // The window is searched last, since it is long.
        let Some((record, output)) = holder(state, name).filter(|_| !is_shown(state, name)) else { continue };
        let mut longer = if text.is_empty() { ECHOES_TITLE.to_owned() } else { text.clone() };
        write_echo(&mut longer, name, record, &output);
        if settings.meter.text(&longer) <= tokens {
            text = longer;
            found += 1;
        }
    }
    text
}

/// Whether the last request showed a name.
fn is_shown(state: &State, name: &str) -> bool {
    let shows = |item: &Item| {
        let is_said = text_of(item).is_some_and(|text| text.contains(name));
        is_said || item.as_call().is_some_and(|call| call.arguments.contains(name))
    };
    state.shown.sent_items().iter().any(|shown| shows(&shown.item))
}

/// The newest folded output with a name, if few have it.
fn holder<'a>(state: &'a State, name: &str) -> Option<(&'a CallRecord, String)> {
    let mut left = MAX_SEARCHED_BYTES;
    let mut newest = None;
    let mut holders = 0;
    let records: Vec<&CallRecord> = state.ledger.within(0..state.shown.start()).collect();
    for record in records.into_iter().rev().filter(|record| record.is_printed()) {
        if !state.conversation.holds(record.at) {
            continue;
        }
        let text = state.conversation.text(record.at);
        let Some(rest) = left.checked_sub(text.len()) else { break };
        left = rest;
        if text.contains(name) {
            holders += 1;
            newest.get_or_insert_with(|| (record, text.into_owned()));
        }
    }
    newest.filter(|_| holders <= MAX_HOLDERS)
}

/// Writes the lines around the first place of a name.
fn write_echo(text: &mut String, name: &str, record: &CallRecord, output: &str) {
    let lines: Vec<&str> = output.lines().collect();
    let at = lines.iter().position(|line| line.contains(name)).unwrap_or_default();
    let around = &lines[at.saturating_sub(AROUND)..(at + AROUND + 1).min(lines.len())];
    let body = around.iter().map(|line| start_of(line, MAX_LINE_BYTES)).collect::<Vec<_>>().join("\n");
    let fence = fence_for(&body);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "`{}`, in the output of `{}`:\n{fence}\n{body}\n{fence}", one_line(name), record.told());
}
