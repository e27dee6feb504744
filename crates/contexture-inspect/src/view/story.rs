//! The story of a request: what was shown, taken away, answered and paid.

use std::collections::BTreeMap;

use contexture_text::window_part::WindowPart;
use serde::Serialize;

use super::files::{FileGrade, ReadLines};
use super::lists::{Cost, RequestLine, RequestVerdict};
use super::window::FileView;
use crate::block::BlockKind;

/// Some neighbouring requests of a conversation, for its picture.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OverviewColumn {
    /// The request that is shown for all of them: the dearest.
    pub n: u64,
    /// The first and the last of them.
    pub range: (u64, u64),
    /// The turn of the last.
    pub turn: u64,
    /// Whether a turn begins in it.
    pub begins: bool,
    /// Tokens sent with the shown one, by part of the window.
    pub parts: BTreeMap<WindowPart, u64>,
    /// Tokens of the shown one, sent.
    pub sent: u64,
    /// Tokens received.
    pub came: u64,
    /// What the shown one cost.
    pub cost: Cost,
    /// Whether the shown one was billed again for what the provider had in its cache.
    pub is_billed_again: bool,
    /// The budget of its window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// How many folds there are among them.
    pub folds: u64,
    /// Notable events of the shown one.
    pub verdicts: Vec<RequestVerdict>,
}

/// A conversation at a glance.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Overview {
    /// The columns, in order.
    pub columns: Vec<OverviewColumn>,
    /// The largest budget.
    pub budget: Option<u64>,
    /// What all requests cost.
    pub cost: Cost,
    /// What those cost that were billed again for what the provider had in its cache: folds, and caches that were lost.
    pub again: Cost,
}

/// A block with its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedBlock {
    /// The block.
    pub block: u32,
    /// What it is about, or the start of it.
    pub name: String,
    /// Its tokens.
    pub tokens: u64,
}

/// A part of a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartLine {
    /// Which.
    pub part: WindowPart,
    /// Its tokens.
    pub tokens: u64,
    /// How many blocks it has.
    pub blocks: u64,
    /// The largest of them.
    pub largest: Vec<NamedBlock>,
}

/// What kind of thing left a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemovedKind {
    /// What Contexture wrote earlier.
    Made,
    /// Reads of files.
    File,
    /// Calls.
    Call,
    /// Other outputs of tools.
    Output,
    /// Thoughts.
    Thought,
    /// What the model said.
    Told,
    /// What people said.
    Said,
    /// Anything else.
    Other,
}

/// What left the window, of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemovedPart {
    /// Its kind.
    pub kind: RemovedKind,
    /// How many blocks.
    pub count: u64,
    /// Their tokens.
    pub tokens: u64,
    /// The largest of them.
    pub largest: Vec<NamedBlock>,
}

/// What a fold did.
#[derive(Clone, Debug, Serialize)]
pub struct FoldStory {
    /// Why it was made.
    pub reason: String,
    /// By how many tokens the window is smaller.
    pub left_out_tokens: u64,
    /// What was billed again for it, as far as that is known already.
    pub cost: Cost,
    /// What every later request costs less.
    pub saves_per_request: Cost,
    /// What it would cost as it was estimated when it was decided, if the cost is as billed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated: Option<Cost>,
    /// The request with which it was paid back, if it was.
    pub paid_back: Option<u64>,
    /// The next fold.
    pub next: Option<u64>,
    /// What of the dialogue was cut: its kind, the hash that shows it again, and its tokens.
    pub cut: Vec<(String, String, u64)>,
}

/// A file of which a window shows lines, and how well these are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WindowFile {
    /// Its path.
    pub path: String,
    /// The first block that shows lines of it.
    pub block: u32,
    /// How many lines are shown.
    pub lines: u64,
    /// Those that are as on the disk.
    pub verified: u64,
    /// Those from before a change. All others are as they were seen or written.
    pub changed: u64,
    /// The first and the last message at which lines were seen or written, as the model is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<(u32, u32)>,
    /// The first and the last request that brought lines which are shown as they were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<(u64, u64)>,
    /// What changed it since, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

impl WindowFile {
    /// A file of which a block shows lines.
    pub(crate) fn new(path: &str, block: u32) -> Self {
        Self { path: path.to_owned(), block, ..Self::default() }
    }

    /// Adds lines that Contexture wrote.
    pub(crate) fn add_view(&mut self, view: &FileView) {
        self.add(view.count, view.grade, view.cause.as_deref());
        self.messages = united(self.messages, view.moments);
    }

    /// Adds lines as they were read.
    pub(crate) fn add_read(&mut self, read: &ReadLines) {
        self.add(read.count, read.grade, read.reason.as_deref());
        self.requests = united(self.requests, Some((read.n, read.n)));
    }

    fn add(&mut self, count: u64, grade: FileGrade, cause: Option<&str>) {
        self.lines += count;
        match grade {
            FileGrade::Verified => self.verified += count,
            FileGrade::Changed | FileGrade::Overtaken | FileGrade::Deleted => self.changed += count,
            FileGrade::Seen | FileGrade::ReadAgain | FileGrade::Unknown => return,
        }
        if let Some(cause) = cause.filter(|cause| !self.causes.iter().any(|known| known == cause)) {
            self.causes.push(cause.to_owned());
        }
    }
}

/// The range of two ranges.
fn united<T: Ord>(one: Option<(T, T)>, other: Option<(T, T)>) -> Option<(T, T)> {
    match (one, other) {
        (Some((first, last)), Some((other_first, other_last))) => Some((first.min(other_first), last.max(other_last))),
        (one, other) => one.or(other),
    }
}

/// What agents and their users do when something is missing. None of it proves harm by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// A part of a file was read again that no edit had changed.
    RepeatedReads,
    /// The same, after a fold that may have taken the earlier read.
    ReadsAfterFold,
    /// An edit failed because its text is not in the file.
    FailedEdits,
    /// The user gave an instruction again.
    RepeatedInstructions,
    /// The user began with a "no".
    Noes,
    /// The user stopped the agent.
    Interruptions,
    /// A call failed.
    ToolErrors,
}

impl SignalKind {
    /// All of them, those that harm may have caused first.
    pub const ALL: [SignalKind; 7] = [
        SignalKind::RepeatedReads,
        SignalKind::ReadsAfterFold,
        SignalKind::FailedEdits,
        SignalKind::RepeatedInstructions,
        SignalKind::Noes,
        SignalKind::Interruptions,
        SignalKind::ToolErrors,
    ];
}

/// How often something happened in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignalLine {
    /// What happened.
    pub kind: SignalKind,
    /// How often, up to a request.
    pub count: u64,
    /// The newest requests with which it happened.
    pub requests: Vec<u64>,
}

/// What a provider hides of a window: it has compacted what is before one of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HiddenPart {
    /// The provider's own summary.
    pub block: u32,
    /// Blocks before it, without instructions and tools.
    pub blocks: u64,
    /// Their tokens.
    pub tokens: u64,
}

/// A block of an answer.
#[derive(Clone, Debug, Serialize)]
pub struct AnswerBlock {
    /// Its id.
    pub id: u32,
    /// Its kind.
    pub kind: BlockKind,
    /// The tool, for a call.
    pub name: String,
    /// Its tokens.
    pub tokens: u64,
    /// The start of its text.
    pub preview: String,
}

/// A request in whole: what the model saw, what was taken away, what it answered, and what it cost.
#[derive(Clone, Debug, Serialize)]
pub struct RequestStory {
    /// The request.
    pub line: RequestLine,
    /// The window, by its parts.
    pub parts: Vec<PartLine>,
    /// Blocks of the window.
    pub blocks: u64,
    /// What the model does not see of it, because the provider has compacted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<HiddenPart>,
    /// Tokens that are unchanged since the request before, and were not read from the cache.
    pub again: u64,
    /// The files of which the window shows lines, those that changed since first.
    pub files: Vec<WindowFile>,
    /// What left the window since the request before.
    pub removed: Vec<RemovedPart>,
    /// What a fold did, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold: Option<FoldStory>,
    /// The newest fold up to here that had no room for the agent's own changes, with the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<(u64, Vec<String>)>,
    /// What the model answered, as far as it is known.
    pub answer: Vec<AnswerBlock>,
    /// Signs up to here that something was missing from the windows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<SignalLine>,
    /// How many times the bill is that of the requests around it, of which the one in the middle counts.
    pub times_usual: f64,
    /// Dollars that were paid, and that pass-through would have cost, where known.
    pub dollars: Option<(f64, f64)>,
}
