//! Time, passed in.

use std::time::Duration;

use futures_util::future::BoxFuture;

/// A source of time.
///
/// The engine uses it for spans, hook timeouts, retries and the age of the provider's cache. Core never reads the
/// system's clock, so a test can stop and advance time.
pub trait Clock: Send + Sync {
    /// Time since the Unix epoch, for dates.
    fn now(&self) -> Duration;

    /// Monotonic time since some fixed moment, for durations.
    fn monotonic(&self) -> Duration;

    /// Completes when `duration` has passed.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Completes when work that begins now has exceeded `duration`.
    ///
    /// Default: [`sleep`](Clock::sleep). A test clock that skips sleeps still gives work real time to finish.
    fn limit(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep(duration)
    }

    /// Like [`sleep`](Self::sleep), for background work that nothing waits for.
    ///
    /// A test clock that skips sleeps does not skip these.
    fn sleep_in_background(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep(duration)
    }
}
