//! Decisions about a window, which are stored and replayed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::claims::LinesClaim;
use super::policy::FoldWhen;
use super::written::ACCOUNT_START;
use contexture_files::disk::{NotCompared, OnDisk};
use contexture_files::model::{Compared, FileModel, Found};

/// The field of a stored decision that holds its version.
const VERSION: &str = "version";

/// One item of a window, as stored in a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// The item of the log at this position, as it is.
    Logged(usize),
    /// The item of the log at this position with another text; for a call, other arguments.
    Shortened(usize, Arc<str>),
    /// A text that replaces others.
    Made(Arc<str>),
    /// A chapter of the account of the earlier conversation.
    Records(Records),
}

/// A chapter of the account of the earlier conversation. Before version 4: what was done between two things that were
/// said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// The position of the first output that it may tell of.
    pub from: usize,
    /// The position after the last one.
    pub to: usize,
    /// The text.
    pub text: Arc<str>,
}

impl Piece {
    /// The position of the item that it shows.
    pub(super) fn position(&self) -> Option<usize> {
        match self {
            Piece::Logged(at) | Piece::Shortened(at, _) => Some(*at),
            Piece::Made(_) | Piece::Records(_) => None,
        }
    }

    /// The text that it was given.
    pub(super) fn made(&self) -> Option<&str> {
        match self {
            Piece::Logged(_) => None,
            Piece::Shortened(_, text) | Piece::Made(text) | Piece::Records(Records { text, .. }) => Some(text),
        }
    }
}

impl Records {
    /// Whether it is a chapter of the account of the earlier conversation.
    pub(super) fn is_account(&self) -> bool {
        self.text.starts_with(ACCOUNT_START)
    }
}

/// A change of the window, which can be replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "decisions are few, and nearly all of a fold is on the heap anyway")]
pub enum FoldDecision {
    /// The past was folded.
    Fold(Fold),
    /// A file was touched, and known lines of it were put at the window's end.
    #[serde(rename = "recall")]
    BringBack(BringBack),
    /// The provider's cache had expired before a request, so that the whole request was billed in full.
    Cold {
        /// How many items the log had.
        at: usize,
    },
    /// Files were compared with the disk, because they were about to be shown.
    Disk(Checked),
    /// An output is shown with another text from the first time that it is sent.
    Shorten {
        /// Its position in the log.
        position: usize,
        /// The text.
        text: Arc<str>,
        /// Why, in plain words.
        reason: String,
    },
}

/// The version in which decisions are stored. Version 0.1 of the program stored them without one, as version 1. Since
/// version 3 a fold also shows what the agent said, since version 4 its calls and their outputs, and since version 5 a view
/// says of lines whether the file changed since, and a comparison why files were not compared.
const STORED_VERSION: u64 = 5;

/// Why a stored decision cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DecisionError {
    /// A newer version of the program stored it.
    #[error("the decision is stored in version {0}, and this program knows versions up to {STORED_VERSION}")]
    Newer(u64),
    /// It is not a decision, or it is damaged.
    #[error("the stored decision cannot be read")]
    Unreadable(#[from] serde_json::Error),
}

impl FoldDecision {
    /// The decision in its stored form, with its version.
    pub fn to_stored(&self) -> Value {
        let mut stored = serde_json::to_value(self).expect("decisions are texts and finite numbers");
        stored[VERSION] = STORED_VERSION.into();
        stored
    }

    /// Reads a decision that was stored by this version or an earlier one.
    ///
    /// # Errors
    /// It was stored by a newer version of the program, or it is damaged.
    pub fn from_stored(stored: &Value) -> Result<Self, DecisionError> {
        let version = stored.get(VERSION).and_then(Value::as_u64).unwrap_or(1);
        if version > STORED_VERSION {
            return Err(DecisionError::Newer(version));
        }
        Ok(FoldDecision::deserialize(stored)?)
    }

    /// The files of which it shows lines, each once. For a fold this includes the kept parts of the view.
    pub(super) fn files(&self) -> Vec<usize> {
        let mut files: Vec<usize> = match self {
            FoldDecision::Fold(fold) => {
                fold.parts.iter().flat_map(|part| &part.claims).map(|claim| claim.file).collect()
            }
            FoldDecision::BringBack(brought) => brought.shown.iter().map(|lines| lines.file).collect(),
            FoldDecision::Cold { .. } | FoldDecision::Disk(_) | FoldDecision::Shorten { .. } => Vec::new(),
        };
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Whether it was made before the request at which the log had this many items.
    pub(super) fn is_at_request(&self, items: usize) -> bool {
        match self {
            FoldDecision::Fold(fold) => fold.at == items,
            FoldDecision::BringBack(brought) => brought.at == items,
            FoldDecision::Cold { at } => *at == items,
            FoldDecision::Disk(checked) => checked.at == items,
            FoldDecision::Shorten { .. } => false,
        }
    }
}

/// Files that were compared with the disk before a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// How many items the log had.
    pub at: usize,
    /// What was found of each file, without its text.
    pub files: Vec<Compared>,
}

impl Checked {
    /// Compares what is known of files with what is on the disk.
    pub(super) fn new(at: usize, model: &FileModel, found: Vec<(usize, OnDisk)>) -> Self {
        let compared = |(file, on_disk)| match on_disk {
            OnDisk::Unchanged => Some(Compared { file, found: Found::Unchanged }),
            OnDisk::Gone => model.compare(file, None),
            OnDisk::NotCompared(why) => model.not_compared(file, why),
            OnDisk::Text(text) => model.compare(file, Some(&text)),
        };
        Self { at, files: found.into_iter().filter_map(compared).collect() }
    }

    /// How many files differ from what was known, and how many are gone.
    pub(super) fn differences(&self) -> (usize, usize) {
        let gone = self.files.iter().filter(|file| file.found == Found::Gone).count();
        let is_changed = |file: &&Compared| match &file.found {
            Found::There(there) => there.regions.iter().any(|region| !region.made_of.is_empty()),
            Found::Unchanged | Found::Gone | Found::Unreadable | Found::NotCompared(_) => false,
        };
        (self.files.iter().filter(is_changed).count(), gone)
    }

    /// How many files were not compared, by the reason.
    pub fn not_compared(&self) -> BTreeMap<NotCompared, usize> {
        let mut reasons = BTreeMap::new();
        for file in &self.files {
            if let Found::NotCompared(why) = file.found {
                *reasons.entry(why).or_default() += 1;
            }
        }
        reasons
    }

    /// Describes the result in plain words.
    pub fn reason(&self) -> String {
        match self.differences() {
            (0, 0) if !self.not_compared().is_empty() => "files could not be compared with the disk".to_owned(),
            (0, 0) => "files were compared with the disk, and none had changed".to_owned(),
            (changed, gone) => format!("files were compared with the disk: {changed} changed, {gone} gone"),
        }
    }
}

/// A fold: what replaces the past from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fold {
    /// How many items the log had.
    pub at: usize,
    /// How many items at the start of the previous window are kept as they are.
    pub keep: usize,
    /// The items after those, which replace everything before `start`.
    pub head: Vec<Piece>,
    /// The first item that is shown in its own place.
    pub start: usize,
    /// Items from `start` on whose text was cut to fit the budget.
    pub shortened: Vec<(usize, Arc<str>)>,
    /// The parts of the view, oldest first.
    pub parts: Vec<ViewPart>,
    /// The lines that each of the newest parts shows.
    pub shown: Vec<Vec<ShownLines>>,
    /// Files with changes by the agent that did not fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What people said that had to be cut to fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_said: Vec<CutSaid>,
    /// What the agent said that had to be cut to fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_told: Vec<CutSaid>,
    /// Records that had to be left out to fit, each with the position and the hash of the output that it told of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_records: Vec<CutSaid>,
    /// The occasion. Versions up to 0.1 did not store it.
    #[serde(default, skip_serializing_if = "FoldWhen::is_default")]
    pub when: FoldWhen,
    /// Why it was done now, in plain words.
    pub reason: String,
    /// Tokens of the window before it.
    pub before_tokens: u64,
    /// Tokens of the window after it.
    pub after_tokens: u64,
    /// What is billed again because it comes after the change, in tokens at the plain input price.
    pub cost: f64,
    /// What every later request costs less.
    pub saves_per_request: f64,
}

/// Something of the dialogue that had to be cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutSaid {
    /// Its position in the log.
    pub position: usize,
    /// The hash by which the whole text can be asked for.
    pub hash: String,
    /// How many of its tokens are not shown.
    pub tokens: u64,
}

/// One part of the view: what one fold added to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewPart {
    /// The mark that its lines carry in the model.
    pub mark: u32,
    /// How many lines it shows.
    pub lines: usize,
    /// Bytes of these lines.
    pub bytes: usize,
    /// How many messages there were when it was written.
    #[serde(default)]
    pub message: u32,
    /// What it claims about files. Version 0.1 did not store claims, so its parts are written again at the next fold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<LinesClaim>,
}

impl ViewPart {
    /// Whether everything that it claims still holds.
    pub(super) fn holds(&self, model: &FileModel) -> bool {
        !self.claims.is_empty() && self.claims.iter().all(|claim| claim.holds(model))
    }
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
pub struct BringBack {
    /// How many items the log had.
    pub at: usize,
    /// The text.
    pub text: Arc<str>,
    /// The lines it shows.
    pub shown: Vec<ShownLines>,
}
