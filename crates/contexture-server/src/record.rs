//! What became of one request, as receipts tell it.

use contexture::wire::{Format, Usage};
use serde::{Deserialize, Serialize};

use crate::account::Bill;

/// What became of one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestRecord {
    /// The run of the gateway that it passed through.
    pub session: String,
    /// Its conversation, if it belongs to one.
    pub conversation: Option<String>,
    /// When it came, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// How it is written, if it asks a model.
    pub format: Option<Format>,
    /// The model that was asked.
    pub model: String,
    /// The provider's status.
    pub status: u16,
    /// Whether it was sent otherwise than it came.
    pub is_changed: bool,
    /// Why it was sent as it came, although others are not.
    pub passed: Option<String>,
    /// Whether something about it could not be written to the store.
    pub is_unsaved: bool,
    /// What was decided about it, in plain words.
    pub decided: Vec<DecidedNote>,
    /// What the provider says that it took.
    pub usage: Option<Usage>,
    /// What it was billed.
    pub bill: Option<Bill>,
    /// Dollars for a million tokens of input and of output, where they are known.
    pub dollars: Option<(f64, f64)>,
    /// Tokens that the model takes.
    pub context: Option<u64>,
    /// Tokens that would have been sent, where everything is only watched.
    pub would_send: Option<u64>,
    /// What the provider said of its cache, if it was asked.
    pub diagnosis: Option<String>,
    /// The gateway's own work, in microseconds.
    pub own_us: u64,
    /// From the request to the first byte of the answer, in milliseconds.
    pub first_byte_ms: u64,
    /// From the request to the end of the answer, in milliseconds.
    pub whole_ms: u64,
    /// Headers that tell how much of a quota is used.
    pub quota: Vec<(String, String)>,
}

/// Something that was decided, in plain words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DecidedNote {
    /// `fold`, `shorten`, `bring back` or `cold`.
    pub what: String,
    /// Why.
    pub reason: String,
    /// Tokens before it.
    pub before_tokens: u64,
    /// Tokens after it.
    pub after_tokens: u64,
    /// What a fold made the provider bill again, in tokens at the plain input price.
    #[serde(default)]
    pub cost: f64,
    /// What every later request is spared by it.
    #[serde(default)]
    pub saves_per_request: f64,
}
