//! The types that the API returns. `docs/api.md` documents them.

use std::collections::BTreeMap;

use contexture::wire::Format;
use contexture_gateway::account::receipt::Receipt;
use contexture_gateway::account::record::RequestRecord;
use serde::{Deserialize, Serialize};

use super::block::{BlockKind, BlockSource};

/// What is inspected.
#[derive(Clone, Debug, Default, Serialize)]
pub struct About {
    /// The version of the program.
    pub version: &'static str,
    /// A display name for what is shown: an address, a file or a directory.
    pub name: String,
    /// `gateway`, `recordings` or `store`.
    pub kind: &'static str,
    /// Whether new requests may arrive.
    pub is_live: bool,
    /// Whether blocks can be pinned and folding stopped.
    pub can_act: bool,
    /// Whether conversations can be deleted.
    pub can_forget: bool,
    /// What readers must know about what is shown and what is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// A page of a list.
#[derive(Clone, Debug, Serialize)]
pub struct ListPage<T> {
    /// The items.
    pub items: Vec<T>,
    /// The total number of items, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What to request to get the next page; `None` on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A conversation in a list.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ConversationLine {
    /// Its id.
    pub id: String,
    /// What the user said first.
    pub title: String,
    /// The name of the recording, if it is one.
    pub name: String,
    /// The conversation that it branched off from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The format of its requests.
    pub format: Option<Format>,
    /// The last requested model.
    pub model: String,
    /// When its first request arrived, in milliseconds since the Unix epoch.
    pub first_ms: u64,
    /// When its last request arrived.
    pub last_ms: u64,
    /// How many requests there are.
    pub requests: u64,
    /// The number of turns: how often the user said something.
    pub turns: u64,
    /// Tokens of its largest request as received, by our own count.
    pub largest: u64,
    /// Input tokens received.
    pub came: u64,
    /// Input tokens sent.
    pub sent: u64,
    /// Input billed, in tokens at the plain input price.
    pub billed: f64,
    /// What pass-through would have cost.
    pub passed_through: f64,
    /// Dollars that were paid, and that pass-through would have cost, where all prices are known.
    pub dollars: Option<(f64, f64)>,
    /// The number of folds.
    pub folds: u64,
    /// The number of requests that failed.
    pub failed: u64,
    /// Whether it is still being read.
    pub is_reading: bool,
    /// Why nothing more is folded in it, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// Something notable that happened to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestVerdict {
    /// `fold`, `expired`, `missed`, `tools`, `system`, `brought_back`, `passed` or `failed`.
    pub kind: String,
    /// A short description.
    pub text: String,
}

/// A request in a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RequestLine {
    /// Its number in the conversation, from 1.
    pub n: u64,
    /// The number of its turn, from 1.
    pub turn: u64,
    /// What the user said, in the first request of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Tokens sent by source, by our own count.
    pub sources: BTreeMap<String, u64>,
    /// Tokens sent, by our own count.
    pub sent_tokens: u64,
    /// Tokens received, by our own count.
    pub came_tokens: u64,
    /// How many of the tokens sent were read from the provider's cache, by our own count.
    #[serde(default)]
    pub cached_tokens: Option<u64>,
    /// The number of blocks sent.
    pub sent_blocks: u64,
    /// The number of blocks received.
    pub came_blocks: u64,
    /// Whether the response has ended.
    pub is_over: bool,
    /// Notable events, if any.
    #[serde(default)]
    pub verdicts: Vec<RequestVerdict>,
    /// Its record, as in receipts.
    pub record: RequestRecord,
}

/// The start of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct TurnStart {
    /// Its first request.
    pub n: u64,
    /// Its number, from 1.
    pub turn: u64,
    /// What the user said.
    pub said: String,
}

/// The form in which a window is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowForm {
    /// As sent.
    Sent,
    /// As received.
    Came,
    /// As sent, compared with the previous request.
    Before,
}

impl WindowForm {
    /// Parses a form by its name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "sent" => Some(WindowForm::Sent),
            "came" => Some(WindowForm::Came),
            "before" => Some(WindowForm::Before),
            _ => None,
        }
    }
}

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockState {
    /// Sent as received.
    Kept,
    /// Sent with a different text.
    Shortened,
    /// Written by Contexture.
    Made,
    /// Received, but not sent.
    LeftOut,
    /// Unchanged since the previous request, and before the first change.
    Same,
    /// Unchanged since the previous request, but after a change, so it is billed again.
    Behind,
    /// Not in the previous request.
    New,
    /// In the previous request, but not in this one.
    Gone,
}

/// A block of a window.
#[derive(Clone, Debug, Serialize)]
pub struct BlockLine {
    /// Its index in the window.
    pub place: u64,
    /// Its id.
    pub id: u32,
    /// Its source.
    pub source: BlockSource,
    /// Its kind.
    pub kind: BlockKind,
    /// The role of its author.
    pub role: String,
    /// The tool or file it is about.
    pub name: String,
    /// Tokens, by our own count.
    pub tokens: u64,
    /// Bytes of its text.
    pub bytes: u64,
    /// Whether it reports a failure.
    pub is_error: bool,
    /// The start of its text, on one line.
    pub preview: String,
    /// Its state.
    pub state: BlockState,
    /// The reason for its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How reliable the file lines that it shows are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<ShownGrade>,
    /// Why the grade is not higher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade_reason: Option<String>,
    /// The block that it replaces, or that replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<u32>,
    /// Whether it is pinned.
    pub is_pinned: bool,
    /// The request in which it first appeared.
    pub since: u64,
}

/// A page of a window.
#[derive(Clone, Debug, Serialize)]
pub struct WindowPage {
    /// The form.
    pub form: WindowForm,
    /// The number of blocks in the window.
    pub total: u64,
    /// Tokens of the whole window, by our own count.
    pub tokens: u64,
    /// The index of the first block that differs from what the form is compared with.
    pub first_difference: Option<u64>,
    /// The index of the first block that the provider did not read from its cache, judging by its figures.
    pub cache_boundary: Option<u64>,
    /// The number of blocks in each state.
    pub states: BTreeMap<String, u64>,
    /// The row of the requested block, if it is in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The first row of this page.
    pub from: u64,
    /// The blocks of this page.
    pub blocks: Vec<BlockLine>,
    /// Where the next page starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// The text of a block, or a part of it.
#[derive(Clone, Debug, Serialize)]
pub struct BlockText {
    /// The block.
    pub id: u32,
    /// Its source.
    pub source: BlockSource,
    /// Its kind.
    pub kind: BlockKind,
    /// The tool or file it is about.
    pub name: String,
    /// The id of the call that it is, or that it is the output of.
    pub call: String,
    /// Size of the whole text in bytes.
    pub bytes: u64,
    /// Where this part begins, in bytes.
    pub from: u64,
    /// The text of this part.
    pub text: String,
    /// Where the next part begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A file that a conversation uses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileLine {
    /// Its path as the agent wrote it.
    pub path: String,
    /// How reliable its known lines are.
    pub grade: FileGrade,
    /// Why the grade is not higher.
    pub reason: String,
    /// The number of known lines.
    pub lines: u64,
    /// Whether these are all of its lines.
    pub is_whole: bool,
    /// How often it was read.
    pub reads: u64,
    /// How often the agent changed it.
    pub changes: u64,
    /// The request in which it was last read or changed.
    pub last: u64,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileEventKind {
    /// Lines of it were read.
    Read,
    /// A search showed lines of it.
    Searched,
    /// The agent changed it.
    Changed,
    /// The agent wrote it whole.
    Written,
    /// It was deleted.
    Deleted,
    /// It was renamed.
    Moved,
    /// Something may have changed it.
    InDoubt,
    /// It was named.
    Named,
}

/// How reliable the lines of a file that a block shows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownGrade {
    /// Nothing is known to have changed them.
    Sure,
    /// Something may have changed them.
    InDoubt,
    /// The file was changed since.
    Overtaken,
    /// The file was read again since.
    ReadAgain,
}

/// How reliable the known lines of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileGrade {
    /// The disk has the same.
    Verified,
    /// Nothing is known to have changed them.
    Sure,
    /// They follow from a change that was not shown.
    Presumed,
    /// Something may have changed them.
    InDoubt,
    /// The file was deleted.
    Deleted,
    /// No line is known.
    Unknown,
}

/// An event in the history of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileEvent {
    /// The request that first showed it.
    pub n: u64,
    /// What happened.
    pub what: FileEventKind,
    /// The lines, or the cause.
    pub detail: String,
    /// The block that shows it.
    pub block: u32,
}

/// A declared tool.
#[derive(Clone, Debug, Serialize)]
pub struct ToolLine {
    /// Its name.
    pub name: String,
    /// Tokens of its declaration, by our own count.
    pub tokens: u64,
    /// How often it was called.
    pub calls: u64,
    /// The number of requests that declared it.
    pub requests: u64,
    /// Roughly what its declaration cost in all of them, in tokens at the plain input price.
    pub billed: f64,
    /// The same in dollars, where the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// The block that declares it.
    pub block: u32,
}

/// A line of the bill.
#[derive(Clone, Debug, Serialize)]
pub struct BillLine {
    /// The conversation, day or model.
    pub name: String,
    /// A display name.
    pub title: String,
    /// The totals of its requests, as in `contexture receipts --json`.
    pub receipt: Receipt,
    /// Its most expensive requests.
    pub dearest: Vec<ExpensiveRequest>,
}

/// An expensive request.
#[derive(Clone, Debug, Serialize)]
pub struct ExpensiveRequest {
    /// Its conversation.
    pub conversation: String,
    /// Its number.
    pub n: u64,
    /// Its bill.
    pub billed: f64,
}

/// A search result.
#[derive(Clone, Debug, Serialize)]
pub struct SearchHit {
    /// The conversation.
    pub conversation: String,
    /// What the user said first in it.
    pub title: String,
    /// The first request that contains the block.
    pub n: u64,
    /// The form in which the block is found there.
    pub form: WindowForm,
    /// The block.
    pub block: u32,
    /// Its source.
    pub source: BlockSource,
    /// The tool or file it is about.
    pub name: String,
    /// Text before the match.
    pub before: String,
    /// The match.
    pub found: String,
    /// Text after the match.
    pub behind: String,
}
