//! Time, passed in.

use std::time::Duration;

use futures_util::future::BoxFuture;

/// Where time comes from.
///
/// The engine reads it for spans, hook timeouts, retries and the age of the provider's cache. Core never asks
/// the system itself, so a test can stop time and move it by hand.
pub trait Clock: Send + Sync {
    /// Time since the Unix epoch, for dates.
    fn now(&self) -> Duration;

    /// Time since some fixed moment, never going back, for durations.
    fn monotonic(&self) -> Duration;

    /// Ends when `duration` has passed.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Ends when work that begins now has had `duration` for it.
    ///
    /// Default: [`sleep`](Clock::sleep). A clock of tests that hurries over pauses has patience with work.
    fn limit(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep(duration)
    }

    /// As [`sleep`](Self::sleep), for work in the background that nobody waits for.
    ///
    /// A clock of a test that hurries over sleeps does not hurry for these.
    fn sleep_in_background(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep(duration)
    }
}
