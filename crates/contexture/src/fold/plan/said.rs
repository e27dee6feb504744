//! What people said, kept as they said it.
//!
//! User, system and developer text stays verbatim, in its order and with its speaker. Only where it does not fit is it
//! cut: what users said first, the longest texts before others, instructions last.

use std::collections::HashSet;

use super::outputs::shortened;
use crate::fold::cap::short_hash;
use crate::fold::conversation::Speaker;
use crate::fold::decision::{CutSaid, Piece};
use crate::fold::settings::Settings;
use crate::fold::state::State;

/// Texts of at least so many bytes are shown once, however often they were said.
const LEAST_REPEATED_BYTES: usize = 400;

/// One part in so many of the room is the newest message's own.
const NEWEST_PART: u64 = 4;

/// What people said before a position.
pub(super) struct Said {
    /// The messages, in order.
    pub(super) pieces: Vec<Piece>,
    /// Those that had to be cut.
    pub(super) cut: Vec<CutSaid>,
    /// Tokens of all pieces.
    pub(super) tokens: u64,
}

impl Said {
    /// What was said before a position, within a number of tokens.
    pub(super) fn new(settings: &Settings, state: &State, end: usize, room: u64) -> Self {
        let positions = positions(state, end);
        let limits = limits(state, &positions, room);
        let mut said = Self { pieces: Vec::new(), cut: Vec::new(), tokens: 0 };
        for (at, limit) in positions.into_iter().zip(limits) {
            let tokens = state.conversation.item_tokens(at);
            if tokens <= limit {
                said.tokens += tokens;
                said.pieces.push(Piece::Logged(at));
                continue;
            }
            let text = shortened(settings, state, at, settings.meter.text_in_item(limit));
            let hash = short_hash(&state.conversation.text(at));
            let piece = Piece::Shortened(at, text);
            let shown = state.piece_tokens(settings, &piece);
            said.cut.push(CutSaid { position: at, hash, tokens: tokens.saturating_sub(shown) });
            if limit > 0 {
                said.tokens += shown;
                said.pieces.push(piece);
            }
        }
        said
    }
}

/// Where people said something before a position, long repetitions left out.
fn positions(state: &State, end: usize) -> Vec<usize> {
    let mut long_texts = HashSet::new();
    let conversation = &state.conversation;
    let is_new = |at: &usize| {
        let text = conversation.text(*at);
        text.len() < LEAST_REPEATED_BYTES || long_texts.insert(text)
    };
    (0..end).filter(|at| conversation.speaker(*at).is_person()).filter(is_new).collect()
}

/// How many tokens each message may have, so that all have no more than there is room for.
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

/// The largest number of tokens to which all messages can be cut so that they have no more than `room` together.
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
