//! What people said, kept as they said it.
//!
//! User, system and developer text is kept verbatim, in order and with its speaker, and so is what is pinned. It is cut
//! only if it does not fit: first what users said, the longest texts first, then instructions. What is pinned is left
//! out last, the oldest first. Images and other contents that are no text are kept or left out, never cut.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use contexture_core::item::{Content, Item};

use super::outputs::shortened;
use crate::cap::short_hash;
use crate::conversation::{Conversation, Speaker};
use crate::decision::{CutSaid, Piece};
use crate::settings::Settings;
use crate::state::State;
use crate::stubs;
use contexture_text::one_line::one_line;

/// Repeated texts of at least this many bytes are shown once.
const LEAST_REPEATED_BYTES: usize = 400;

/// How many bytes of a repeated text are quoted where it was said again.
const QUOTED_BYTES: usize = 80;

/// One part in this many of the room is reserved for the newest message.
const NEWEST_PART: u64 = 4;

/// What people said or pinned before a position.
pub(super) struct Said {
    /// The messages, in order.
    pub(super) pieces: Vec<Piece>,
    /// Those that had to be cut.
    pub(super) cut: Vec<CutSaid>,
    /// Tokens of all pieces.
    pub(super) tokens: u64,
}

impl Said {
    /// Returns what was said before a position, within a number of tokens.
    pub(super) fn new(settings: &Settings, state: &State, end: usize, room: u64) -> Self {
        let Pinned { kept, left_out, tokens } = Pinned::new(state, end, room);
        let spoken = spoken(settings, state, end).into_iter().filter(|spoken| !kept.contains(&spoken.at));
        let spoken: Vec<Spoken> = spoken.collect();
        let limits = limits(state, &spoken, room - tokens);
        let mut said = Self { pieces: kept.into_iter().map(Piece::Logged).collect(), cut: Vec::new(), tokens };
        for (spoken, limit) in spoken.into_iter().zip(limits) {
            said.add(settings, state, spoken, limit);
        }
        // A pinned message of a person that did not fit as pinned was added like any other.
        let was_said = |at: &usize| state.conversation.speaker(*at).is_person();
        said.cut.extend(left_out.into_iter().filter(|at| !was_said(at)).map(|at| cut_said(state, at, 0)));
        said.pieces.sort_by_key(Piece::position);
        said.cut.sort_by_key(|cut| cut.position);
        said
    }

    /// Adds a message, cut if it has more than a number of tokens.
    fn add(&mut self, settings: &Settings, state: &State, spoken: Spoken, limit: u64) {
        let Spoken { at, tokens, note } = spoken;
        if let Some(note) = note {
            // Without room for the note there is none for anything said.
            if tokens <= limit {
                self.tokens += tokens;
                self.pieces.push(Piece::Shortened(at, note));
            }
            return;
        }
        if tokens <= limit {
            self.tokens += tokens;
            self.pieces.push(Piece::Logged(at));
            return;
        }
        let piece = Piece::Shortened(at, cut_text(settings, state, at, limit));
        let shown = state.piece_tokens(settings, &piece);
        self.cut.push(cut_said(state, at, shown));
        if limit > 0 {
            self.tokens += shown;
            self.pieces.push(piece);
        }
    }
}

/// The text of a message within a number of tokens. Contents that are no text are left out, which the text says.
fn cut_text(settings: &Settings, state: &State, at: usize, limit: u64) -> Arc<str> {
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
fn others_note(item: &Item) -> Option<String> {
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

/// Records that only some tokens of a message are shown.
fn cut_said(state: &State, at: usize, shown: u64) -> CutSaid {
    let hash = short_hash(&state.conversation.text(at));
    CutSaid { position: at, hash, tokens: state.conversation.item_tokens(at).saturating_sub(shown) }
}

/// What is pinned before a position.
#[derive(Default)]
struct Pinned {
    /// What there is room for, in order.
    kept: BTreeSet<usize>,
    /// What there is no room for.
    left_out: Vec<usize>,
    /// Tokens of what is kept.
    tokens: u64,
}

impl Pinned {
    /// Keeps the newest pinned items that fit into a number of tokens. A call, its output and the reasoning before it
    /// are kept or left out together.
    fn new(state: &State, end: usize, room: u64) -> Self {
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
fn units(conversation: &Conversation, end: usize) -> Vec<Vec<usize>> {
    let mut units: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for at in (0..end).filter(|at| conversation.is_pinned(*at)) {
        match (conversation.speaker(at), conversation.call_at(at)) {
            (Speaker::Tool, Some(call)) => units.entry(conversation.moment(call)).or_default().extend([call, at]),
            (Speaker::Tool, None) => {}
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

/// Something that a person said.
struct Spoken {
    /// Its position in the log.
    at: usize,
    /// Tokens of how it is shown.
    tokens: u64,
    /// What is shown in its place, if it was said before.
    note: Option<Arc<str>>,
}

/// Returns what people said before `end`.
///
/// A long text that was said before is shown as a note in its place: the first one stays where it is, since everything
/// before the newest fold is cached, and without the note something said in between would look like the last word.
/// Where nothing else was said in between, there is no note either.
fn spoken(settings: &Settings, state: &State, end: usize) -> Vec<Spoken> {
    let conversation = &state.conversation;
    // By text: which of the messages that people sent was the last one with it.
    let mut last_said: HashMap<Cow<'_, str>, usize> = HashMap::new();
    let mut spoken = Vec::new();
    let people = (0..end).filter(|at| conversation.speaker(*at).is_person());
    for (count, at) in people.enumerate() {
        let text = conversation.text(at);
        let is_long = text.len() >= LEAST_REPEATED_BYTES && others_note(conversation.item(at)).is_none();
        let before = if is_long { last_said.insert(text.clone(), count) } else { None };
        let note: Option<Arc<str>> = before.map(|_| repeated(conversation.speaker(at), &text).into());
        let tokens = note.as_ref().map_or(conversation.item_tokens(at), |note| settings.meter.made(note));
        if before.is_none_or(|before| before + 1 < count) {
            spoken.push(Spoken { at, tokens, note });
        }
    }
    spoken
}

/// The note for a text that was said again.
fn repeated(speaker: Speaker, text: &str) -> String {
    let quoted = text[..text.floor_char_boundary(QUOTED_BYTES)].trim();
    let who = if speaker == Speaker::User { "The user said again" } else { "It was said again" };
    format!("[{who}, as above: «{}…»]", one_line(quoted))
}

/// Returns how many tokens each message may have so that together they fit.
fn limits(state: &State, spoken: &[Spoken], room: u64) -> Vec<u64> {
    let total: u64 = spoken.iter().map(|spoken| spoken.tokens).sum();
    if total <= room {
        return vec![u64::MAX; spoken.len()];
    }
    let newest = spoken.last().filter(|newest| state.conversation.speaker(newest.at) == Speaker::User);
    let own = newest.map_or(0, |newest| newest.tokens.min(room / NEWEST_PART));
    let newest = newest.map(|newest| newest.at);
    let is_instruction = |spoken: &Spoken| state.conversation.speaker(spoken.at) == Speaker::Instructor;
    let tokens = |spoken: &Spoken| spoken.tokens;
    let instructions = || spoken.iter().filter(|spoken| is_instruction(spoken)).map(tokens);
    let users = || spoken.iter().filter(|spoken| !is_instruction(spoken) && Some(spoken.at) != newest).map(tokens);
    let left = room - own;
    let of_instructions = level(instructions(), left);
    let taken: u64 = instructions().map(|tokens| tokens.min(of_instructions)).sum();
    let of_users = level(users(), left - taken);
    let limit = |spoken: &Spoken| match () {
        () if Some(spoken.at) == newest => own,
        () if is_instruction(spoken) => of_instructions,
        () => of_users,
    };
    spoken.iter().map(limit).collect()
}

/// Returns the largest limit such that messages cut to it have at most `room` tokens together.
fn level(tokens: impl Iterator<Item = u64>, room: u64) -> u64 {
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
