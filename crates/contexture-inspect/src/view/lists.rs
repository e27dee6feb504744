//! The lists: conversations, their requests and turns, and what a search finds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use contexture::wire::Format;
use contexture_gateway::account::record::{DecidedNote, RequestRecord};
use contexture_text::window_part::WindowPart;
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
    /// Tokens of its largest request as received.
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
    /// Requests that came after the agent would have summarised its conversation, so that nothing counts as saved.
    pub beyond: u64,
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

/// A kind of notable thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It failed.
    Failed,
    /// The past was folded.
    Fold,
    /// The provider's cache had expired.
    Expired,
    /// The provider did not find what it should have had in its cache.
    Missed,
    /// The client changed its tools.
    Tools,
    /// The client changed its instructions.
    System,
    /// Something was brought back.
    BroughtBack,
    /// What the folds so far have cost is paid back.
    PaidBack,
    /// Nothing new was decided.
    Passed,
    /// A kind of another version.
    #[serde(other)]
    Other,
}

impl VerdictKind {
    /// Whether it is told in the course of a conversation; the others happen every few requests.
    pub(crate) fn is_listed(self) -> bool {
        !matches!(self, Self::BroughtBack | Self::PaidBack | Self::Other)
    }

    /// Whether the provider bills again what it had in its cache.
    pub(crate) fn is_billed_again(self) -> bool {
        matches!(self, Self::Fold | Self::Expired | Self::Missed | Self::Tools | Self::System)
    }
}

/// Something notable that happened to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestVerdict {
    /// Its kind.
    pub kind: VerdictKind,
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
    /// Tokens sent, by part of the window.
    #[serde(default)]
    pub parts: BTreeMap<WindowPart, u64>,
    /// Tokens sent: as the provider counts them once it has said how many there were, until then by our own count.
    pub sent_tokens: u64,
    /// Tokens received, in the same count.
    pub came_tokens: u64,
    /// How many of the tokens sent were read from the provider's cache.
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
    /// What it cost, as far as that is known.
    #[serde(skip_deserializing)]
    pub cost: Cost,
}

impl RequestLine {
    /// Takes the provider's counts of what was sent, of what came and of what was cached in place of our own. What parts
    /// have of it is as before.
    pub(crate) fn count_as(&mut self, sent: u64, came: u64, cached: u64) {
        let own: u64 = self.parts.values().sum();
        let (mut sum, mut end) = (0, 0);
        for tokens in self.parts.values_mut() {
            sum += *tokens;
            let next = (u128::from(sent) * u128::from(sum) / u128::from(own.max(1))) as u64;
            (*tokens, end) = (next - end, next);
        }
        (self.sent_tokens, self.came_tokens, self.cached_tokens) = (sent, came, Some(cached));
    }

    /// Whether the past was folded with it.
    pub(crate) fn is_fold(&self) -> bool {
        self.record.decided.iter().any(DecidedNote::is_fold)
    }

    /// Whether the provider bills again what it had in its cache.
    pub(crate) fn is_billed_again(&self) -> bool {
        self.verdicts.iter().any(|verdict| verdict.kind.is_billed_again())
    }
}

/// What something cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Dollars, where the prices of all that was billed are known.
    pub dollars: Option<f64>,
    /// Input billed, in tokens at the plain input price.
    pub billed: f64,
}

impl Default for Cost {
    fn default() -> Self {
        Self { dollars: Some(0.0), billed: 0.0 }
    }
}

impl Cost {
    /// What a request cost.
    pub fn of(record: &RequestRecord) -> Self {
        let dollars = match record.usage.zip(record.bill) {
            Some(_) => record.paid().map(|(paid, _)| paid),
            None => Some(0.0),
        };
        Self { dollars, billed: record.bill.map_or(0.0, |bill| bill.billed) }
    }

    /// What both cost together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let dollars = self.dollars.zip(other.dollars).map(|(one, other)| one + other);
        Self { dollars, billed: self.billed + other.billed }
    }
}

/// A piece of the course of a conversation: the start of a turn, a request in which something happened, or quiet ones.
#[derive(Clone, Debug, Serialize)]
pub struct ConversationEvent {
    /// The first and the last request.
    pub range: (u64, u64),
    /// Its turn, from 1.
    pub turn: u64,
    /// What the user said, at the start of a turn. Its cost is that of the whole turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// What happened with a request. Quiet ones have neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<RequestVerdict>,
    /// What these requests cost.
    pub cost: Cost,
}

/// A search result.
#[derive(Clone, Debug, Serialize)]
pub struct TextHit {
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
