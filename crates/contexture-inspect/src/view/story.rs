//! The story of a request: what was shown, taken away, answered and paid.

use std::collections::BTreeMap;

use serde::Serialize;

use super::lists::{RequestLine, RequestVerdict};
use super::window::FileView;
use crate::block::{BlockKind, BlockSource};

/// Some neighbouring requests of a conversation, for its picture.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OverviewColumn {
    /// The request that is shown for all of them: the dearest.
    pub n: u64,
    /// The first and the last of them.
    pub range: (u64, u64),
    /// The turn of the first.
    pub turn: u64,
    /// Whether a turn begins in it.
    pub begins: bool,
    /// Tokens sent with the shown one, by source.
    pub sources: BTreeMap<String, u64>,
    /// Tokens of the shown one, sent and received.
    pub sent: u64,
    /// Tokens received.
    pub came: u64,
    /// What the shown one was billed.
    pub billed: f64,
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
    /// The model's window.
    pub context: Option<u64>,
    /// The bill of one request in the middle, by size.
    pub usual: f64,
    /// How many requests are much dearer than that.
    pub dear: u64,
}

/// What left the window, of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemovedKind {
    /// `made`, `call`, `output`, `file`, `told`, `thought`, `said` or `other`.
    pub kind: &'static str,
    /// How many blocks.
    pub count: u64,
    /// Their tokens.
    pub tokens: u64,
    /// The largest of them.
    pub block: u32,
}

/// The price of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FoldPrice {
    /// What is billed again, in tokens at the plain input price.
    pub cost: f64,
    /// What every later request costs less.
    pub saves_per_request: f64,
}

/// What a fold did.
#[derive(Clone, Debug, Serialize)]
pub struct FoldStory {
    /// Why it was made.
    pub reason: String,
    /// Tokens of the window before it.
    pub before_tokens: u64,
    /// Tokens after it.
    pub after_tokens: u64,
    /// Its price as it was estimated when it was decided.
    pub estimated: Option<FoldPrice>,
    /// Its price as it was billed.
    pub billed: Option<FoldPrice>,
    /// The request with which it was paid back, if it was.
    pub paid_back: Option<u64>,
    /// The next fold.
    pub next: Option<u64>,
    /// Files with the agent's own changes that had no room.
    pub left_out: Vec<String>,
    /// What of the dialogue was cut: its kind, the hash that shows it again, and its tokens.
    pub cut: Vec<(String, String, u64)>,
}

/// A piece of the picture of a window: one block, or several small ones.
#[derive(Clone, Debug, Serialize)]
pub struct WindowPiece {
    /// The first block.
    pub block: u32,
    /// How many blocks.
    pub count: u64,
    /// Their source.
    pub source: BlockSource,
    /// What it is, if Contexture wrote it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub made: String,
    /// The name of the first block.
    pub name: String,
    /// Their tokens.
    pub tokens: u64,
    /// Whether the provider read them from its cache.
    pub is_cached: bool,
    /// Whether they are unchanged since the request before.
    pub is_unchanged: bool,
    /// Whether the model does not see them, because the provider has compacted what is before a later block.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
    /// How many views they have.
    pub views: u64,
    /// How many of these are from before a change.
    pub changed: u64,
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
    /// The most tokens that the window could have.
    pub budget: Option<u64>,
    /// The window, in order.
    pub pieces: Vec<WindowPiece>,
    /// Blocks of the window.
    pub blocks: u64,
    /// What the model does not see of it, because the provider has compacted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<HiddenPart>,
    /// Tokens that are unchanged since the request before, and were not read from the cache.
    pub again: u64,
    /// The lines of files in the window, those from before a change first.
    pub views: Vec<FileView>,
    /// What left the window since the request before.
    pub removed: Vec<RemovedKind>,
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
    /// The bill of one of the requests around it in the middle, by size.
    pub usual: f64,
    /// Dollars that were paid, and that pass-through would have cost, where known.
    pub dollars: Option<(f64, f64)>,
}
