//! The lists: conversations, their requests and turns, and what a search finds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use contexture::wire::Format;
use contexture_gateway::account::record::RequestRecord;
use serde::{Deserialize, Serialize};

use super::window::WindowForm;
use crate::block::BlockSource;

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
