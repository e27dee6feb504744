//! The types that the API returns. `docs/api.md` documents them.

use std::borrow::Cow;
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
    pub note: Option<Cow<'static, str>>,
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
    /// The agent that made the recording, if it is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The directory in which the agent worked, where the recording says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// The conversation that it branched off from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The format of its requests.
    pub format: Option<Format>,
    /// The last requested model.
    pub model: String,
    /// When its first request arrived, in milliseconds since the Unix epoch; 0 if the recording does not say.
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
    /// Requests that could not have been sent as they came, because the model's window is smaller. What pass-through
    /// would have cost counts them all the same.
    pub unsendable: u64,
    /// Requests whose bill is simulated.
    pub simulated: u64,
    /// Tokens of some of its requests, in order, for a small picture.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<u64>,
    /// Whether it is still being read.
    pub is_reading: bool,
    /// Whether it is a recording that was not opened yet; it is read when it is.
    pub is_unread: bool,
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

/// Lines of a file that a window shows, and how well they are known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileView {
    /// The block that shows them.
    pub block: u32,
    /// The path, as the model sees it.
    pub path: String,
    /// The lines: `all 40`, `12–20`, or how many.
    pub lines: String,
    /// How many lines.
    pub count: u64,
    /// How well they are known.
    pub grade: FileGrade,
    /// Why the grade is not higher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Whether Contexture wrote them, as against the output of a read.
    pub is_written: bool,
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
    /// What it is, if Contexture wrote it: `views`, `records`, `digest`, `brought_back`, `echoes`, `references`, `note`,
    /// `cut`, `layer` or `summary`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub made: String,
    /// The lines of files that it shows, if Contexture wrote it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<FileView>,
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
    /// The same by grade.
    pub graded: BTreeMap<String, u64>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
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
    /// The file was changed since.
    Overtaken,
    /// The file was read again since.
    ReadAgain,
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

/// A tool that was declared or called.
#[derive(Clone, Debug, Default, Serialize)]
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
    /// The block that declares it; 0 if none does.
    pub block: u32,
    /// Tokens of its calls.
    pub call_tokens: u64,
    /// Tokens of its outputs.
    pub output_tokens: u64,
    /// Tokens of its calls and outputs, each counted in every request in which it was sent.
    pub carried: u64,
    /// Its largest output, and the request in which it first was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<(u32, u64, u64)>,
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
    /// How many of its requests have a simulated bill.
    pub simulated: u64,
    /// How many could not have been sent as they came.
    pub unsendable: u64,
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
    /// How many of these are in doubt.
    pub doubtful: u64,
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
    /// The lines of files in the window, doubtful ones first.
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
