//! A clock that stands still until a test moves it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::id::IdSource;

/// Where a manual clock starts: 2026-01-01, 00:00 UTC.
const START: Duration = Duration::from_secs(1_767_225_600);

/// A clock that stands still until [`advance`](ManualClock::advance) is called. Clones share the time.
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
    /// Those for whom nobody waits.
    background: Vec<(Duration, oneshot::Sender<()>)>,
    /// Whoever sleeps moves the time himself.
    hurried: bool,
}

impl ManualClock {
    /// A clock that stands still.
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock that jumps to the end of every sleep at once: for retries and for hooks that hang.
    ///
    /// A hook that is at work gets a second of real time before its limit is taken for over, so that one which really
    /// waits, for a file or another task, is not cancelled.
    pub fn hurried() -> Self {
        let clock = Self::default();
        clock.inner().hurried = true;
        clock
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the time and wakes whoever has slept long enough.
    pub fn advance(&self, duration: Duration) {
        let mut inner = self.inner();
        inner.elapsed += duration;
        let elapsed = inner.elapsed;
        let Inner { sleepers, background, .. } = &mut *inner;
        for (_, sleeper) in sleepers.extract_if(.., |(end, _)| *end <= elapsed) {
            // Whoever does not listen any more was cancelled.
            let _ = sleeper.send(());
        }
        for (_, sleeper) in background.extract_if(.., |(end, sleeper)| *end <= elapsed || sleeper.is_closed()) {
            let _ = sleeper.send(());
        }
    }

    /// How many sleep right now, not counting those in the background.
    pub fn sleepers(&self) -> usize {
        self.inner().sleepers.iter().filter(|(_, sleeper)| !sleeper.is_closed()).count()
    }
}

/// What a hook gets of real time on a clock that hurries.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ends after [`PATIENCE`], by the machine's own time.
async fn patience() {
    let (sender, over) = oneshot::channel();
    std::thread::spawn(move || {
        std::thread::sleep(PATIENCE);
        // Whoever does not listen any more has finished its work.
        let _ = sender.send(());
    });
    // An error is impossible: the thread sends before it ends.
    let _ = over.await;
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
                // Whoever races against the sleep gets another turn first. It may be ready and only have been asked
                // to yield by the runtime, as tokio's locks are from time to time.
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
    // An error means that the clock is gone; then nothing will ever be due.
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
        // More often than a task of tokio may take a free lock without yielding.
        for _ in 0..1_000 {
            let locked = pin!(lock.lock());
            let first = select(locked, clock.sleep(Duration::from_secs(5))).await;
            assert!(matches!(first, Either::Left(_)), "the lock was free");
        }
    }
}
