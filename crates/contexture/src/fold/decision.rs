//! What was decided about a window, to be kept and replayed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::window::Slot;

/// Something that was done to the window, to be replayed as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum FoldDecision {
    /// The past was folded.
    Fold(Fold),
    /// A file was touched, and what was known of it was put at the window's end.
    Recall(Recall),
    /// The provider's cache had expired before a request, so that all of it was billed in full.
    Cold {
        /// How many messages the log had.
        at: usize,
    },
    /// An output is shown with another text from its first sending on.
    Shorten {
        /// Its position in the log.
        position: usize,
        /// The text.
        text: Arc<str>,
        /// Why, in plain words.
        reason: String,
    },
}

/// A fold: what stands for the past from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fold {
    /// How many messages the log had.
    pub at: usize,
    /// How many slots at the start of the window before stay as they are.
    pub keep: usize,
    /// What stands behind those for everything before `start`.
    pub head: Vec<Slot>,
    /// The first message that is shown in its own place.
    pub start: usize,
    /// Messages from `start` on whose text was cut because the budget forces it.
    pub shortened: Vec<(usize, Arc<str>)>,
    /// The parts of the view, oldest first.
    pub parts: Vec<Part>,
    /// The lines that each of the newest parts shows.
    pub shown: Vec<Vec<ShownLines>>,
    /// Files with changes of the agent's own that there is no room for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Why it was done now, in plain words.
    pub reason: String,
    /// Tokens of the window before it.
    pub before_tokens: u64,
    /// Tokens of the window behind it.
    pub after_tokens: u64,
    /// What is billed again because it stands behind the change, in tokens at the plain input price.
    pub cost: f64,
    /// What every later request is spared.
    pub saves_per_request: f64,
}

/// One part of the view: what one fold added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The mark that its lines carry in the model.
    pub mark: u32,
    /// How many lines it shows.
    pub lines: usize,
    /// Bytes of these lines.
    pub bytes: usize,
}

/// Lines of the model that a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownLines {
    /// The file's place in the model.
    pub file: usize,
    /// The segment's place in the file.
    pub segment: usize,
    /// The first line's place in the segment.
    pub first: usize,
    /// How many lines.
    pub count: usize,
}

/// Known lines put at the window's end because their file was touched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recall {
    /// How many messages the log had.
    pub at: usize,
    /// The text.
    pub text: Arc<str>,
    /// The lines it shows.
    pub shown: Vec<ShownLines>,
}
