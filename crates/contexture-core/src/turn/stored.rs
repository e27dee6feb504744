//! The stored form of a turn.

use serde::{Deserialize, Serialize};

use super::{OwedStore, Turn, TurnPhase};
use crate::item::FunctionCall;

/// The stored form of a turn: remaining calls are referred to by their position in the log.
///
/// So the record that is written after every call stays small, however many calls a response has.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredTurn {
    phase: StoredPhase,
    steps: u32,
    max_steps: u32,
    retries: u32,
    guidance: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owed: Option<OwedStore>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredPhase {
    Model,
    /// The format of version 0.1, also used if a call is not in the log.
    Tools {
        calls: Vec<FunctionCall>,
        next: usize,
        started: bool,
    },
    /// The calls are the first `count` in the log from the position `from` on.
    Calls {
        from: usize,
        count: usize,
        started: bool,
    },
    Done,
}

impl StoredTurn {
    /// Encodes a turn with the positions of its calls in the log.
    pub(crate) fn new(turn: &Turn, position: impl FnOnce(&str) -> Option<usize>) -> Self {
        let phase = match &turn.phase {
            TurnPhase::Model => StoredPhase::Model,
            TurnPhase::Done => StoredPhase::Done,
            TurnPhase::Tools { calls, next, started } => {
                let (next, started) = (*next, *started);
                match calls.get(next).and_then(|call| position(&call.call_id)) {
                    Some(from) => StoredPhase::Calls { from, count: calls.len() - next, started },
                    None => StoredPhase::Tools { calls: calls.to_vec(), next, started },
                }
            }
        };
        let Turn { steps, max_steps, retries, guidance, owed, .. } = turn.clone();
        Self { phase, steps, max_steps, retries, guidance, owed }
    }

    /// Decodes the turn; `calls` returns a number of calls from a position on. `None` if they are not in the log.
    pub(crate) fn into_turn(self, calls: impl FnOnce(usize, usize) -> Vec<FunctionCall>) -> Option<Turn> {
        let phase = match self.phase {
            StoredPhase::Model => TurnPhase::Model,
            StoredPhase::Done => TurnPhase::Done,
            StoredPhase::Tools { calls, next, started } => TurnPhase::Tools { calls: calls.into(), next, started },
            StoredPhase::Calls { from, count, started } => {
                let calls = calls(from, count);
                if calls.is_empty() || calls.len() != count {
                    return None;
                }
                TurnPhase::Tools { calls: calls.into(), next: 0, started }
            }
        };
        let Self { steps, max_steps, retries, guidance, owed, .. } = self;
        Some(Turn { phase, steps, max_steps, retries, guidance, owed })
    }
}
