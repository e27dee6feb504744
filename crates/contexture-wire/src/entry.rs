//! A message on its way to the provider.

use std::borrow::Cow;

use serde_json::value::RawValue;

/// A message as it is sent.
pub(super) struct OutgoingMessage<'a> {
    /// Its JSON.
    pub(super) json: Cow<'a, str>,
    /// The message of the request that it is, whole or in part.
    pub(super) from: Option<usize>,
}

impl<'a> OutgoingMessage<'a> {
    /// A message that is new.
    pub(super) fn made(json: String) -> Self {
        Self { json: Cow::Owned(json), from: None }
    }

    /// A message as it came.
    pub(super) fn kept(from: usize, raw: &'a RawValue) -> Self {
        Self { json: Cow::Borrowed(raw.get()), from: Some(from) }
    }
}
