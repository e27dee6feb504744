//! Whether the provider's cache has expired between two requests, as far as a recording says when things were said.

use std::time::Duration;

use contexture::transcript::Record;

/// How long a conversation was left alone.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    /// How long the cache holds what was last used; `None` if nothing expires.
    cache_life: Option<Duration>,
    /// When the model last responded, and when something was last said to it, in milliseconds since the Unix epoch.
    responded_ms: Option<u64>,
    heard_ms: Option<u64>,
}

impl Pauses {
    /// Begins before anything was said.
    pub fn new(cache_life: Option<Duration>) -> Self {
        Self { cache_life, responded_ms: None, heard_ms: None }
    }

    /// Takes note of the next message.
    pub fn note(&mut self, record: &Record) {
        let last = if record.is_response() { &mut self.responded_ms } else { &mut self.heard_ms };
        *last = record.time_ms().or(*last);
    }

    /// Whether so much time went by since the model responded that the provider has forgotten the last request.
    pub fn has_expired(&self) -> bool {
        let (Some(life), Some(responded), Some(heard)) = (self.cache_life, self.responded_ms, self.heard_ms) else {
            return false;
        };
        u128::from(heard.saturating_sub(responded)) > life.as_millis()
    }
}
