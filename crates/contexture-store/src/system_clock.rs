//! The clock of the machine.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use contexture_core::clock::Clock;
use futures_util::future::BoxFuture;

/// The system's clock. Sleeping needs a tokio runtime with its timer enabled.
#[derive(Debug, Default)]
pub struct SystemClock {
    started: OnceLock<Instant>,
}

impl SystemClock {
    /// Creates the clock.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        // A clock before 1970 reads as 1970; nothing here depends on more.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn monotonic(&self) -> Duration {
        self.started.get_or_init(Instant::now).elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
