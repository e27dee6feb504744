//! The record of one request, from which receipts are made.

use contexture::wire::{Format, Usage};
use serde::{Deserialize, Serialize};

use crate::account::bill::Bill;
use crate::account::models::Source;

/// The record of one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestRecord {
    /// The run of the gateway that handled it.
    pub session: String,
    /// Its conversation, if it belongs to one.
    pub conversation: Option<String>,
    /// When it arrived, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Its format, if it called a model.
    pub format: Option<Format>,
    /// The requested model.
    pub model: String,
    /// Whether it only asked for a token count.
    pub is_count: bool,
    /// The provider's status.
    pub status: u16,
    /// Whether it was sent changed.
    pub is_changed: bool,
    /// Why it was sent unchanged or without new decisions.
    pub passed: Option<String>,
    /// Whether something of it could not be written to the store.
    pub is_unsaved: bool,
    /// The decisions for it, in plain words.
    pub decided: Vec<DecidedNote>,
    /// The usage that the provider reported.
    pub usage: Option<Usage>,
    /// Its bill.
    pub bill: Option<Bill>,
    /// Dollars per million input and output tokens for what was sent, where known.
    pub dollars: Option<(f64, f64)>,
    /// The same for what pass-through would have sent: large requests may cost more.
    pub dollars_through: Option<(f64, f64)>,
    /// Where the prices were learnt.
    pub price_from: Option<Source>,
    /// The model's context window in tokens.
    pub context: Option<u64>,
    /// Where the window was learnt.
    pub context_from: Option<Source>,
    /// Tokens that would have been sent, in observe mode.
    pub would_send: Option<u64>,
    /// What the provider reported about its cache, if asked.
    pub diagnosis: Option<String>,
    /// How long the gateway itself worked on it, in microseconds.
    pub own_us: u64,
    /// Time to the first byte of the response, in milliseconds.
    pub first_byte_ms: u64,
    /// Time to the end of the response, in milliseconds.
    pub whole_ms: u64,
    /// Headers that report the use of a quota.
    pub quota: Vec<(String, String)>,
}

/// A decision in plain words.
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
    /// What a fold makes the provider bill again, in tokens at the plain input price.
    #[serde(default)]
    pub cost: f64,
    /// What it saves in every later request.
    #[serde(default)]
    pub saves_per_request: f64,
}
