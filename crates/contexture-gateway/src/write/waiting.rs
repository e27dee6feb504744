//! Waits for a database from code that is not asynchronous, for a limited time.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::sync::watch;

use super::error::StoreError;
use super::saving::PendingWrite;

/// How long to wait between two looks whether the database is back.
const PAUSE: Duration = Duration::from_millis(500);

/// Asks the database whether it is there.
type Probe = Box<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// A runtime of its own for operations of a database.
pub(super) struct DatabaseRuntime {
    /// `None` only while it is being dropped.
    runtime: Option<Runtime>,
    state: Arc<RuntimeState>,
}

struct RuntimeState {
    /// Whether it did not respond within the time. Then everything fails at once until it is back.
    is_away: AtomicBool,
    probe: OnceLock<Probe>,
    /// Operations that were begun and that nobody need wait for.
    begun: watch::Sender<usize>,
}

impl DatabaseRuntime {
    pub(super) fn new() -> Result<Self, StoreError> {
        let builder =
            Builder::new_multi_thread().worker_threads(1).thread_name("contexture-store").enable_all().build();
        let state =
            RuntimeState { is_away: AtomicBool::new(false), probe: OnceLock::new(), begun: watch::Sender::new(0) };
        Ok(Self { runtime: Some(builder.map_err(StoreError::Waiting)?), state: Arc::new(state) })
    }

    /// Sets what is asked while the database is away.
    pub(super) fn probe_with(
        &self,
        probe: impl Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync + 'static,
    ) {
        // It is set once, when the store is opened.
        let _ = self.state.probe.set(Box::new(probe));
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken only when this is dropped")
    }

    /// Runs an operation and waits for it until the time is up.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (send, receive) = sync_channel(1);
        let limited = limited(self.state.clone(), limit, work);
        self.runtime().spawn(async move {
            // Nobody receives it once the time is up.
            let _ = send.send(limited.await);
        });
        // It ends by itself when the time is up.
        let wait = || receive.recv().unwrap_or(Err(StoreError::Away));
        // A thread that runs other tasks hands them over first.
        let is_shared = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        if is_shared { tokio::task::block_in_place(wait) } else { wait() }
    }

    /// Begins an operation that can be waited for.
    pub(super) fn begin(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<(), StoreError>> + Send + 'static,
    ) -> PendingWrite {
        let (writing, written) = PendingWrite::pending();
        let (state, limited) = (self.state.clone(), limited(self.state.clone(), limit, work));
        state.begun.send_modify(|begun| *begun += 1);
        self.runtime().spawn(async move {
            writing.tell(limited.await);
            state.begun.send_modify(|begun| *begun -= 1);
        });
        written
    }

    /// Waits until everything that was begun has ended, for a limited time.
    pub(super) fn settle(&self, time: Duration) {
        let mut begun = self.state.begun.subscribe();
        let until = Instant::now() + time;
        // Looking is enough where waiting is not allowed.
        while *begun.borrow_and_update() > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// An operation that fails when the time is up, or at once while the database is away.
async fn limited<T>(
    state: Arc<RuntimeState>,
    limit: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    if state.is_away.load(Ordering::SeqCst) {
        return Err(StoreError::Away);
    }
    match tokio::time::timeout(limit, work).await {
        Ok(done) => done,
        Err(_) => {
            if !state.is_away.swap(true, Ordering::SeqCst) {
                tokio::spawn(come_back(state));
            }
            Err(StoreError::Away)
        }
    }
}

/// Asks the database from time to time until it responds.
async fn come_back(state: Arc<RuntimeState>) {
    while let Some(probe) = state.probe.get() {
        tokio::time::sleep(PAUSE).await;
        if tokio::time::timeout(10 * PAUSE, probe()).await == Ok(true) {
            break;
        }
    }
    state.is_away.store(false, Ordering::SeqCst);
}

impl Drop for DatabaseRuntime {
    fn drop(&mut self) {
        // Waiting for the end is not allowed where tasks run.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
