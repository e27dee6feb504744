//! What people said, kept as they said it.
//!
//! User, system and developer text is kept verbatim, in order and with its speaker, and so is what is pinned. It is cut
//! only if it does not fit: first what users said, the longest texts first, then instructions. What is pinned is left
//! out last, the oldest first.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use contexture_core::item::Item;

use super::outputs::shortened;
use crate::fold::cap::short_hash;
use crate::fold::conversation::{Conversation, Speaker};
use crate::fold::decision::{CutSaid, Piece};
use crate::fold::settings::Settings;
use crate::fold::state::State;

/// Repeated texts of at least this many bytes are shown once.
const LEAST_REPEATED_BYTES: usize = 400;

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
        let positions: Vec<usize> = positions(state, end).into_iter().filter(|at| !kept.contains(at)).collect();
        let limits = limits(state, &positions, room - tokens);
        let mut said = Self { pieces: kept.into_iter().map(Piece::Logged).collect(), cut: Vec::new(), tokens };
        for (at, limit) in positions.into_iter().zip(limits) {
            said.add(settings, state, at, limit);
        }
        // A pinned message of a person that did not fit as pinned was added like any other.
        let was_said = |at: &usize| state.conversation.speaker(*at).is_person();
        said.cut.extend(left_out.into_iter().filter(|at| !was_said(at)).map(|at| cut_said(state, at, 0)));
        said.pieces.sort_by_key(Piece::position);
        said.cut.sort_by_key(|cut| cut.position);
        said
    }

    /// Adds a message, cut if it has more than a number of tokens.
    fn add(&mut self, settings: &Settings, state: &State, at: usize, limit: u64) {
        let tokens = state.conversation.item_tokens(at);
        if tokens <= limit {
            self.tokens += tokens;
            self.pieces.push(Piece::Logged(at));
            return;
        }
        let text = shortened(settings, state, at, settings.meter.text_in_item(limit));
        let piece = Piece::Shortened(at, text);
        let shown = state.piece_tokens(settings, &piece);
        self.cut.push(cut_said(state, at, shown));
        if limit > 0 {
            self.tokens += shown;
            self.pieces.push(piece);
        }
    }
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

/// Returns the positions before `end` where people said something, without long repetitions.
fn positions(state: &State, end: usize) -> Vec<usize> {
    let mut long_texts = HashSet::new();
    let conversation = &state.conversation;
    let is_new = |at: &usize| {
        let text = conversation.text(*at);
        text.len() < LEAST_REPEATED_BYTES || long_texts.insert(text)
    };
    (0..end).filter(|at| conversation.speaker(*at).is_person()).filter(is_new).collect()
}

/// Returns how many tokens each message may have so that together they fit.
fn limits(state: &State, positions: &[usize], room: u64) -> Vec<u64> {
    let tokens = |at: &usize| state.conversation.item_tokens(*at);
    let total: u64 = positions.iter().map(tokens).sum();
    let whole = vec![u64::MAX; positions.len()];
    if total <= room {
        return whole;
    }
    let newest = positions.last().copied().filter(|at| state.conversation.speaker(*at) == Speaker::User);
    let own = newest.map_or(0, |at| tokens(&at).min(room / NEWEST_PART));
    let is_instruction = |at: usize| state.conversation.speaker(at) == Speaker::Instructor;
    let instructions = || positions.iter().filter(|at| is_instruction(**at)).map(tokens);
    let users = || positions.iter().filter(|at| !is_instruction(**at) && Some(**at) != newest).map(tokens);
    let left = room - own;
    let of_instructions = level(instructions(), left);
    let taken: u64 = instructions().map(|tokens| tokens.min(of_instructions)).sum();
    let of_users = level(users(), left - taken);
    let limit = |at: &usize| match () {
        () if Some(*at) == newest => own,
        () if is_instruction(*at) => of_instructions,
        () => of_users,
    };
    positions.iter().map(limit).collect()
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
