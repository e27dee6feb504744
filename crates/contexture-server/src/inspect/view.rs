//! What the API hands out. `docs/api.md` documents it.

use std::collections::BTreeMap;

use contexture::wire::Format;
use serde::{Deserialize, Serialize};

use super::block::{Kind, Source};
use crate::receipt::Receipt;
use crate::record::RequestRecord;

/// What is inspected.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// The program's version.
    pub version: &'static str,
    /// What is shown, for people: an address, a file or a directory.
    pub name: String,
    /// `gateway`, `recordings` or `store`.
    pub kind: &'static str,
    /// Whether new requests may come.
    pub is_live: bool,
    /// Whether conversations can be pinned and stopped.
    pub can_act: bool,
    /// Whether conversations can be forgotten.
    pub can_forget: bool,
}

/// A page of a list.
#[derive(Clone, Debug, Serialize)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// How many there are in all, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What to ask for to get the next page; nothing if this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A conversation in a list.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ConversationLine {
    /// Its name.
    pub id: String,
    /// What was said first.
    pub title: String,
    /// The recording that it is, if it is one.
    pub name: String,
    /// The conversation that it branched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How its requests are written.
    pub format: Option<Format>,
    /// The model that was asked last.
    pub model: String,
    /// When its first and its last request came, in milliseconds since the Unix epoch.
    pub first_ms: u64,
    /// When its last request came.
    pub last_ms: u64,
    /// How many requests there are.
    pub requests: u64,
    /// How often people said something.
    pub turns: u64,
    /// Tokens of its largest request as it came, by our own count.
    pub largest: u64,
    /// Input tokens that came.
    pub came: u64,
    /// Input tokens that were sent.
    pub sent: u64,
    /// Input billed, in tokens at the plain input price.
    pub billed: f64,
    /// What pass-through would have been billed.
    pub passed_through: f64,
    /// Dollars that were paid, and that pass-through would have cost, where all prices are known.
    pub dollars: Option<(f64, f64)>,
    /// How many folds were made.
    pub folds: u64,
    /// How many requests the provider did not serve.
    pub failed: u64,
    /// Whether it is still being read.
    pub is_reading: bool,
    /// Why nothing more is folded in it, if that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// Something that happened to a request, in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// `fold`, `expired`, `missed`, `tools`, `system`, `brought_back`, `passed` or `failed`.
    pub kind: String,
    /// What happened.
    pub text: String,
}

/// A request in a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RequestLine {
    /// Its number in the conversation, from 1.
    pub n: u64,
    /// How often people had said something, from 1.
    pub turn: u64,
    /// What was said, in the first request of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Tokens of what was sent, by our own count, by source.
    pub sources: BTreeMap<String, u64>,
    /// Tokens of what was sent, by our own count.
    pub sent_tokens: u64,
    /// Tokens of what came, by our own count.
    pub came_tokens: u64,
    /// Of the tokens sent, those that the provider read from its cache, by our own count.
    #[serde(default)]
    pub cached_tokens: Option<u64>,
    /// Blocks that were sent.
    pub sent_blocks: u64,
    /// Blocks that came.
    pub came_blocks: u64,
    /// Whether the answer has ended.
    pub is_over: bool,
    /// What happened, if anything did.
    #[serde(default)]
    pub verdicts: Vec<Verdict>,
    /// What became of it, as receipts have it.
    pub record: RequestRecord,
}

/// The beginning of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct Turn {
    /// Its first request.
    pub n: u64,
    /// Its number, from 1.
    pub turn: u64,
    /// What was said.
    pub said: String,
}

/// In which form a window is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// As it was sent.
    Sent,
    /// As it came.
    Came,
    /// As it was sent, against the request before.
    Before,
}

impl Form {
    /// The form of a name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "sent" => Some(Form::Sent),
            "came" => Some(Form::Came),
            "before" => Some(Form::Before),
            _ => None,
        }
    }
}

/// What became of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Sent as it came.
    Kept,
    /// Sent with another text.
    Shortened,
    /// Written by Contexture.
    Made,
    /// Came, and was not sent.
    LeftOut,
    /// As in the request before, and before anything that changed.
    Same,
    /// As in the request before, but behind something that changed: it is billed again.
    Behind,
    /// Not in the request before.
    New,
    /// In the request before, and not in this one.
    Gone,
}

/// A block of a window.
#[derive(Clone, Debug, Serialize)]
pub struct BlockLine {
    /// Its place in the window, from 0.
    pub place: u64,
    /// Its name.
    pub id: u32,
    /// What it is made of.
    pub source: Source,
    /// What kind of part it is.
    pub kind: Kind,
    /// Whose words it is.
    pub role: String,
    /// The tool or file that it is about.
    pub name: String,
    /// Tokens, by our own count.
    pub tokens: u64,
    /// Bytes of its text.
    pub bytes: u64,
    /// Whether it tells of a failure.
    pub is_error: bool,
    /// Its start, on one line.
    pub preview: String,
    /// What became of it.
    pub state: State,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How well the lines of files that it shows are still known: `sure`, `in_doubt`, `overtaken`, `read_again`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<&'static str>,
    /// Why no better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade_reason: Option<String>,
    /// The block that it replaces, or that replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<u32>,
    /// Whether it is pinned.
    pub is_pinned: bool,
    /// The request in which it first came.
    pub since: u64,
}

/// A page of a window.
#[derive(Clone, Debug, Serialize)]
pub struct WindowPage {
    /// In which form.
    pub form: Form,
    /// How many blocks it has.
    pub total: u64,
    /// Tokens of all of them, by our own count.
    pub tokens: u64,
    /// The place of the first block that differs from what the form is compared with.
    pub first_difference: Option<u64>,
    /// The place of the first block that the provider did not read from its cache, as far as its figures tell.
    pub cache_boundary: Option<u64>,
    /// How many blocks became what.
    pub states: BTreeMap<String, u64>,
    /// The row of the block that was asked for, if it is in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The first row of this page.
    pub from: u64,
    /// The blocks that were asked for.
    pub blocks: Vec<BlockLine>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// The text of a block, or a piece of it.
#[derive(Clone, Debug, Serialize)]
pub struct BlockText {
    /// The block.
    pub id: u32,
    /// What it is made of.
    pub source: Source,
    /// What kind of part it is.
    pub kind: Kind,
    /// The tool or file that it is about.
    pub name: String,
    /// The call that it is, or that it answers.
    pub call: String,
    /// Bytes of the whole text.
    pub bytes: u64,
    /// Where the piece begins, in bytes.
    pub from: u64,
    /// The piece.
    pub text: String,
    /// Where the next piece begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A file that a conversation is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileLine {
    /// The file, as the agent wrote it.
    pub path: String,
    /// How well its lines are known: `verified`, `sure`, `presumed`, `in_doubt`, `deleted` or `unknown`.
    pub grade: &'static str,
    /// Why no better.
    pub reason: String,
    /// How many lines are known.
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

/// Something that happened to a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileEvent {
    /// The request that first showed it.
    pub n: u64,
    /// `read`, `searched`, `changed`, `written`, `deleted`, `moved`, `in_doubt` or `named`.
    pub what: &'static str,
    /// Lines, or what did it.
    pub detail: String,
    /// The block that tells it.
    pub block: u32,
}

/// A tool that is declared.
#[derive(Clone, Debug, Serialize)]
pub struct ToolLine {
    /// Its name.
    pub name: String,
    /// Tokens of its declaration, by our own count.
    pub tokens: u64,
    /// How often it was called.
    pub calls: u64,
    /// In how many requests it was declared.
    pub requests: u64,
    /// What its declaration was billed in all of them, in tokens at the plain input price, about.
    pub billed: f64,
    /// The same in dollars, where the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// The block that declares it.
    pub block: u32,
}

/// A part of the bill.
#[derive(Clone, Debug, Serialize)]
pub struct BillLine {
    /// The conversation, day or model.
    pub name: String,
    /// What it is, for people.
    pub title: String,
    /// What its requests come to, as `contexture receipts --json` has it.
    pub receipt: Receipt,
    /// Its dearest requests.
    pub dearest: Vec<Dear>,
}

/// A request that cost much.
#[derive(Clone, Debug, Serialize)]
pub struct Dear {
    /// Its conversation.
    pub conversation: String,
    /// Its number.
    pub n: u64,
    /// What it was billed.
    pub billed: f64,
}

/// A place at which a text was found.
#[derive(Clone, Debug, Serialize)]
pub struct Hit {
    /// The conversation.
    pub conversation: String,
    /// What was said first in it.
    pub title: String,
    /// The first request that has the block.
    pub n: u64,
    /// In which form the block is found there.
    pub form: Form,
    /// The block.
    pub block: u32,
    /// What it is made of.
    pub source: Source,
    /// The tool or file that it is about.
    pub name: String,
    /// Text before what was found.
    pub before: String,
    /// What was found.
    pub found: String,
    /// Text behind it.
    pub behind: String,
}
