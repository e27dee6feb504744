//! One part of the dialogue: what it is, and whose words it is.

use crate::decision::Piece;

/// Something in the dialogue.
pub(super) struct DialoguePiece {
    pub(super) piece: Piece,
    pub(super) tokens: u64,
    pub(super) voice: DialogueVoice,
}

/// Whose words something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DialogueVoice {
    /// The system's, or a developer's.
    Instructor,
    /// The user's.
    User,
    /// The agent's.
    Agent,
    /// The program's.
    Records,
    /// Anyone's, if it is pinned.
    Pinned,
}

impl DialoguePiece {
    /// The position of what was said; for records, of what they tell of first.
    pub(super) fn position(&self) -> usize {
        match &self.piece {
            Piece::Logged(at) | Piece::Shortened(at, _) => *at,
            Piece::Records(records) => records.from,
            Piece::Made(_) => 0,
        }
    }
}
