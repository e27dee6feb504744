//! Whether the provider's cache has expired between two requests, if a recording has timestamps.

use std::time::Duration;

use contexture::transcript::Record;

/// The pauses of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    /// How long the cache keeps a prompt; `None` if it never expires.
    cache_life: Option<Duration>,
    /// When the model last responded, and the time of the last message to it, in milliseconds since the Unix epoch.
    responded_ms: Option<u64>,
    received_ms: Option<u64>,
}

impl Pauses {
    /// Starts before the first message.
    pub fn new(cache_life: Option<Duration>) -> Self {
        Self { cache_life, responded_ms: None, received_ms: None }
    }

    /// Adds the next message.
    pub fn note(&mut self, record: &Record) {
        let last = if record.is_response() { &mut self.responded_ms } else { &mut self.received_ms };
        *last = record.time_ms().or(*last);
    }

    /// Whether the cache has expired since the model's last response.
    pub fn has_expired(&self) -> bool {
        let (Some(life), Some(responded), Some(received)) = (self.cache_life, self.responded_ms, self.received_ms)
        else {
            return false;
        };
        u128::from(received.saturating_sub(responded)) > life.as_millis()
    }
}
