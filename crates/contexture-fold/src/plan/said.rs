//! How what was said is cut if it does not fit, and what is pinned.
//!
//! What is pinned is left out last, the oldest first. Images and other contents that are no text are kept or left out,
//! never cut.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contexture_core::item::{Content, Item};

use super::outputs::shortened;
use crate::cap::short_hash;
use crate::conversation::{ConversationItems, ItemSpeaker};
use crate::decision::CutSaid;
use crate::settings::FoldSettings;
use crate::state::State;
use crate::stubs;
use contexture_text::one_line::one_line;

/// Repeated texts of at least this many bytes are shown once.
pub(super) const LEAST_REPEATED_BYTES: usize = 400;

/// How many bytes of a repeated text are quoted where it was said again.
const QUOTED_BYTES: usize = 80;

/// The text of a message within a number of tokens. Contents that are no text are left out, which the text says.
pub(super) fn cut_text(settings: &FoldSettings, state: &State, at: usize, limit: u64) -> Arc<str> {
    let room = settings.meter.text_in_item(limit);
    let Some(note) = others_note(state.conversation.item(at)) else { return shortened(settings, state, at, room) };
    let text = state.conversation.text(at);
    if text.is_empty() {
        return note.into();
    }
    let room = room.saturating_sub(settings.meter.text(&note));
    let text = match settings.meter.text(&text) > room {
        true => Cow::Owned(shortened(settings, state, at, room).to_string()),
        false => text,
    };
    format!("{text}\n{note}").into()
}

/// What is said in place of the contents of a message that are no text; `None` if there are none.
pub(super) fn others_note(item: &Item) -> Option<String> {
    let others = item.as_message()?.content.iter().filter(|content| content.as_text().is_none());
    let kind = |content: &Content| match content {
        Content::Opaque(value) => value["type"].as_str().map(str::to_owned),
        Content::Text { .. } => None,
    };
    let kinds: Vec<Option<String>> = others.map(kind).collect();
    let is_image = |kind: &Option<String>| kind.as_deref().is_some_and(|kind| kind.contains("image"));
    let is_document = |kind: &Option<String>| matches!(kind.as_deref(), Some("document" | "file" | "input_file"));
    let what = match kinds.as_slice() {
        [] => return None,
        [kind] if is_image(kind) => "an image".to_owned(),
        [kind] if is_document(kind) => "a document".to_owned(),
        [_] => "an attachment".to_owned(),
        kinds if kinds.iter().all(is_image) => format!("{} images", kinds.len()),
        kinds => format!("{} attachments", kinds.len()),
    };
    Some(stubs::left_out(&what))
}

/// Notes that only some tokens of a message are shown.
pub(super) fn cut_said(state: &State, at: usize, shown: u64) -> CutSaid {
    let hash = short_hash(&state.conversation.text(at));
    CutSaid { position: at, hash, tokens: state.conversation.item_tokens(at).saturating_sub(shown) }
}

/// What is pinned before a position.
#[derive(Default)]
pub(super) struct PinnedItems {
    /// What there is room for, in order.
    pub(super) kept: BTreeSet<usize>,
    /// What there is no room for.
    pub(super) left_out: Vec<usize>,
    /// Tokens of what is kept.
    tokens: u64,
}

impl PinnedItems {
    /// Keeps the newest pinned items that fit into a number of tokens. A call, its output and the reasoning before it
    /// are kept or left out together.
    pub(super) fn new(state: &State, end: usize, room: u64) -> Self {
        let conversation = &state.conversation;
        let mut pinned = Self::default();
        for unit in units(conversation, end).into_iter().rev() {
            let tokens: u64 = unit.iter().map(|at| conversation.item_tokens(*at)).sum();
            if pinned.left_out.is_empty() && pinned.tokens + tokens <= room {
                pinned.tokens += tokens;
                pinned.kept.extend(unit);
            } else {
                pinned.left_out.extend(unit);
            }
        }
        pinned
    }
}

/// Returns what is pinned before a position, in units that are kept or left out together: a message, or the calls of
/// one response that have outputs, with the outputs and the reasoning that led to them.
fn units(conversation: &ConversationItems, end: usize) -> Vec<Vec<usize>> {
    let mut units: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for at in (0..end).filter(|at| conversation.is_pinned(*at)) {
        match (conversation.speaker(at), conversation.call_at(at)) {
            (ItemSpeaker::Tool, Some(call)) => units.entry(conversation.moment(call)).or_default().extend([call, at]),
            (ItemSpeaker::Tool, None) => {}
            _ if conversation.item(at).as_message().is_some() => {
                units.entry(conversation.moment(at)).or_default().push(at)
            }
            _ => {}
        }
    }
    for at in (0..end).filter(|at| conversation.is_pinned(*at)) {
        if let (Item::Reasoning(_), Some(unit)) = (&**conversation.item(at), units.get_mut(&conversation.moment(at))) {
            unit.push(at);
        }
    }
    units.into_values().collect()
}

/// The note for a text that was said again.
pub(super) fn repeated(speaker: ItemSpeaker, text: &str) -> String {
    let quoted = text[..text.floor_char_boundary(QUOTED_BYTES)].trim();
    let who = if speaker == ItemSpeaker::User { "The user said again" } else { "It was said again" };
    format!("[{who}, as above: «{}…»]", one_line(quoted))
}

/// Returns the largest limit such that messages cut to it have at most `room` tokens together.
pub(super) fn level(tokens: impl Iterator<Item = u64>, room: u64) -> u64 {
    let mut sizes: Vec<u64> = tokens.collect();
    sizes.sort_unstable();
    let mut left = room;
    let count = sizes.len();
    for (index, size) in sizes.iter().enumerate() {
        let share = left / (count - index) as u64;
        if *size > share {
            return share;
        }
        left -= size;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::level;

    proptest! {
        #[test]
        fn cut_to_their_level_all_messages_fit_and_short_ones_stay_whole(
            sizes in prop::collection::vec(0_u64..10_000, 0..30),
            room in 0_u64..50_000,
        ) {
            let level = level(sizes.iter().copied(), room);
            let cut: u64 = sizes.iter().map(|size| *size.min(&level)).sum();
            prop_assert!(cut <= room || sizes.is_empty());
            let more: u64 = sizes.iter().map(|size| *size.min(&level.saturating_add(sizes.len() as u64))).sum();
            prop_assert!(level == u64::MAX || more > room.saturating_sub(sizes.len() as u64), "more would fit");
        }
    }
}
