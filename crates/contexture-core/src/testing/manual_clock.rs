//! A clock that tests control.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::id::IdSource;

/// The initial time of a manual clock: 2026-01-01, 00:00 UTC.
const START: Duration = Duration::from_secs(1_767_225_600);

/// A clock whose time changes only when [`advance`](ManualClock::advance) is called. Clones share the time.
///
/// ```
/// # use contexture_core::{clock::Clock, testing::ManualClock};
/// # use std::time::Duration;
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now() - before, Duration::from_secs(60));
/// ```
#[derive(Clone, Default)]
pub struct ManualClock {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    elapsed: Duration,
    sleepers: Vec<(Duration, oneshot::Sender<()>)>,
    /// Sleeps in the background.
    background: Vec<(Duration, oneshot::Sender<()>)>,
    /// Whether sleeping advances the time.
    hurried: bool,
}

impl ManualClock {
    /// A clock whose time changes only with `advance`.
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock that advances to the end of every sleep at once: for retries and for hooks that hang.
    ///
    /// A running hook gets about a second of real time before its timeout, and more where the machine is busy, so that
    /// one that waits for a file or another task is not cancelled.
    pub fn hurried() -> Self {
        let clock = Self::default();
        clock.inner().hurried = true;
        clock
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Advances the time and wakes the sleeps that are over.
    pub fn advance(&self, duration: Duration) {
        let mut inner = self.inner();
        inner.elapsed += duration;
        let elapsed = inner.elapsed;
        let Inner { sleepers, background, .. } = &mut *inner;
        for (_, sleeper) in sleepers.extract_if(.., |(end, _)| *end <= elapsed) {
            // The receiver is gone if the sleep was cancelled.
            let _ = sleeper.send(());
        }
        for (_, sleeper) in background.extract_if(.., |(end, sleeper)| *end <= elapsed || sleeper.is_closed()) {
            let _ = sleeper.send(());
        }
    }

    /// The number of current sleeps, not counting those in the background.
    pub fn sleepers(&self) -> usize {
        self.inner().sleepers.iter().filter(|(_, sleeper)| !sleeper.is_closed()).count()
    }
}

/// How often a hook on a clock that skips sleeps can wait for another thread, one after the other, before its timeout.
const PATIENCE: usize = 1_000;

/// Completes after [`PATIENCE`] short waits for another thread.
///
/// A fixed time would be too short on a machine that is busy enough: these waits take longer there too.
async fn patience() {
    for _ in 0..PATIENCE {
        let (sender, over) = oneshot::channel();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(1));
            // The receiver is gone if the work has finished.
            let _ = sender.send(());
        });
        // An error is impossible: the thread sends before it ends.
        let _ = over.await;
    }
}

impl Clock for ManualClock {
    fn limit(&self, duration: Duration) -> BoxFuture<'static, ()> {
        if !self.inner().hurried {
            return self.sleep(duration);
        }
        let clock = self.clone();
        Box::pin(async move {
            patience().await;
            clock.inner().elapsed += duration;
        })
    }

    fn now(&self) -> Duration {
        START + self.inner().elapsed
    }

    fn monotonic(&self) -> Duration {
        self.inner().elapsed
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut inner = self.inner();
        if inner.hurried {
            drop(inner);
            let clock = self.clone();
            return Box::pin(async move {
                // Let a future that races against the sleep run once more. It may be ready and only have been made to
                // yield by the runtime, as tokio's locks are from time to time.
                tokio::task::yield_now().await;
                clock.advance(duration);
            });
        }
        let (sleeper, woken) = oneshot::channel();
        let end = inner.elapsed + duration;
        inner.sleepers.push((end, sleeper));
        Box::pin(wake(woken))
    }

    fn sleep_in_background(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (sleeper, woken) = oneshot::channel();
        let mut inner = self.inner();
        let end = inner.elapsed + duration;
        inner.background.retain(|(_, sleeper)| !sleeper.is_closed());
        inner.background.push((end, sleeper));
        Box::pin(wake(woken))
    }
}

async fn wake(woken: oneshot::Receiver<()>) {
    // An error means that the clock was dropped; then the sleep never ends.
    if woken.await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Names that count up: `id-0`, `id-1`, …
#[derive(Debug, Default)]
pub struct CountingIds(std::sync::atomic::AtomicU64);

impl CountingIds {
    /// A source that starts at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// A source that starts at `first`: for a second engine over the same store.
    pub fn starting_at(first: u64) -> Self {
        Self(first.into())
    }
}

impl IdSource for CountingIds {
    fn fresh(&self) -> String {
        format!("id-{}", self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::future::{Either, select};

    use super::*;

    #[tokio::test]
    async fn a_hurried_sleep_does_not_outrun_what_is_ready() {
        let (clock, lock) = (ManualClock::hurried(), tokio::sync::Mutex::new(()));
        // More often than a tokio task may take a free lock without yielding.
        for _ in 0..1_000 {
            let locked = pin!(lock.lock());
            let first = select(locked, clock.sleep(Duration::from_secs(5))).await;
            assert!(matches!(first, Either::Left(_)), "the lock was free");
        }
    }
}
