//! The request that was billed last, as far as the next one is compared with it.

use serde::{Deserialize, Serialize};

use crate::account::growth::BodyBytes;
use crate::account::sent_request::SentRequest;

/// The request that was billed last. It is stored as part of an account, so its names say whose they are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LastRequest {
    /// Whether it was sent changed.
    #[serde(default, rename = "last_changed")]
    is_changed: bool,
    /// Tokens that pass-through would have sent.
    #[serde(rename = "last_came")]
    came: u64,
    /// Tokens that were sent.
    #[serde(default, rename = "last_sent")]
    sent: u64,
    /// The same two by our own count: sent, and received from the client.
    #[serde(default, rename = "last_own")]
    own: Option<(u64, u64)>,
    /// The pieces of the text that came, and of what was sent.
    #[serde(default, rename = "last_pieces")]
    pieces: (u64, u64),
    #[serde(default, rename = "last_bytes")]
    came_bytes: u64,
    #[serde(default, rename = "last_sent_bytes")]
    sent_bytes: u64,
    /// Of the same two, the bytes that say little for their length.
    #[serde(default, rename = "last_opaque")]
    opaque: (u64, u64),
    /// Tokens that were not cached.
    #[serde(default, rename = "last_plain")]
    plain: u64,
    /// When its response arrived, in milliseconds since the Unix epoch.
    #[serde(rename = "last_ms")]
    time_ms: u64,
    /// Tokens that the provider should have in its cache.
    #[serde(rename = "last_held")]
    held: u64,
}

/// What the provider reported of a request.
#[derive(Clone, Copy)]
pub(super) struct Reported {
    /// Tokens that pass-through would have sent.
    pub(super) came: u64,
    /// Tokens that were sent.
    pub(super) sent: u64,
    /// Of these, the tokens that the provider should have in its cache now.
    pub(super) held: u64,
    /// When the response arrived, in milliseconds since the Unix epoch.
    pub(super) time_ms: u64,
}

impl LastRequest {
    /// A request that was billed.
    pub(super) fn new(sent: &SentRequest, reported: Reported) -> Self {
        Self {
            is_changed: sent.is_changed,
            came: reported.came,
            sent: reported.sent,
            own: sent.is_counted.then_some((sent.sent_tokens, sent.came_tokens)),
            pieces: (sent.came_bytes.pieces, sent.sent_bytes.pieces),
            came_bytes: sent.came_bytes.text,
            sent_bytes: sent.sent_bytes.text,
            opaque: (sent.came_bytes.opaque, sent.sent_bytes.opaque),
            plain: reported.sent - reported.held,
            time_ms: reported.time_ms,
            held: reported.held,
        }
    }

    /// Whether there was none yet.
    pub(super) fn is_none(&self) -> bool {
        self.sent == 0
    }

    /// Whether it was sent changed.
    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Tokens that pass-through would have sent.
    pub(super) fn came(&self) -> u64 {
        self.came
    }

    /// Tokens that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The tokens that were sent and that came, by our own count, if they were counted.
    pub(super) fn own(&self) -> Option<(u64, u64)> {
        self.own
    }

    /// Tokens that pass-through would have sent and that were cached.
    pub(super) fn came_cached(&self) -> u64 {
        self.came.saturating_sub(self.plain)
    }

    /// Tokens that the provider should have in its cache.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Whether some of its tokens were not cached.
    pub(super) fn has_plain(&self) -> bool {
        self.plain > 0
    }

    /// When its response arrived, in milliseconds since the Unix epoch; 0 if there was none.
    pub(super) fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// The bytes that came.
    pub(super) fn came_bytes(&self) -> BodyBytes {
        BodyBytes { text: self.came_bytes, pieces: self.pieces.0, opaque: self.opaque.0 }
    }

    /// The bytes that were sent.
    pub(super) fn sent_bytes(&self) -> BodyBytes {
        BodyBytes { text: self.sent_bytes, pieces: self.pieces.1, opaque: self.opaque.1 }
    }
}
