//! A request as received.

use bytes::Bytes;
use contexture::wire::Format;

use crate::models::Asks;

/// A request to a model, as received.
#[derive(Clone, Debug)]
pub(crate) struct IncomingRequest {
    /// The body, decompressed.
    pub body: Bytes,
    /// Its format.
    pub format: Format,
    /// The model, where the address names it.
    pub model: Option<String>,
    /// Whose it is.
    pub scope: RequestScope,
    /// Whether it only asks for a token count.
    pub is_count: bool,
    /// Whether its headers say that the client is summarising the conversation.
    pub is_compaction: bool,
    /// Whether its headers say that a sub-agent sends it.
    pub is_sub_agent: bool,
    /// What its headers say about the model's window.
    pub asks: Asks,
}

/// Whose a request is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestScope {
    /// The name of its key, if the gateway has several. Conversations of one owner are never found by another.
    pub owner: String,
    /// The client's session, if its headers name one.
    pub session: String,
}
