//! One request as it was sent, as far as its bill depends on it.

use crate::account::growth::BodyBytes;

/// One request as it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SentRequest {
    /// Tokens sent, by our own count.
    pub sent_tokens: u64,
    /// Tokens received from the client, by our own count.
    pub came_tokens: u64,
    /// Whether these two were counted, and not only estimated from bytes.
    pub is_counted: bool,
    /// Bytes received from the client.
    pub came_bytes: BodyBytes,
    /// Bytes sent.
    pub sent_bytes: BodyBytes,
    /// Whether it was sent changed.
    pub is_changed: bool,
    /// Whether its prefix differs from what was sent before.
    pub has_moved: bool,
    /// Tokens that new folds leave out, by our own count; `None` without one.
    pub folded: Option<u64>,
    /// Whether the client asks to go on from a content that the provider keeps under a name. What is read from a cache
    /// is that content then.
    pub has_apart: bool,
    /// How the client changed what it had sent before, if it did.
    pub rewritten: Option<Rewritten>,
    /// The most tokens that the agent would have sent: with more it summarises its conversation, or the model refuses it.
    /// `None` if that is not known.
    pub most: Option<u64>,
    /// When it was sent, in milliseconds since the Unix epoch.
    pub time_ms: u64,
}

/// How a client changed what it had sent before. The provider's cache holds only what is before the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rewritten {
    /// Bytes of the request as it came that the provider can still have in its cache.
    pub same: BodyBytes,
    /// Bytes of the request as it came before the first changed message of which something is sent; `None` if nothing of
    /// any changed message is, so that what was sent before is sent again.
    pub sent_same: Option<BodyBytes>,
}

impl SentRequest {
    /// Whether the client has changed something that is sent.
    pub(super) fn has_lost(&self) -> bool {
        self.rewritten.is_some_and(|rewritten| rewritten.sent_same.is_some())
    }
}
