//! Waits for a database from code that is not asynchronous, for a limited time.

use std::future::Future;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

use super::error::StoreError;

/// How long the database is left alone after it did not respond.
const PAUSE: Duration = Duration::from_secs(1);

/// A runtime of its own for operations of a database.
pub(super) struct Waiting {
    /// `None` only while it is being dropped.
    runtime: Option<Runtime>,
    away_until: Mutex<Option<Instant>>,
}

impl Waiting {
    pub(super) fn new() -> Result<Self, StoreError> {
        let builder =
            Builder::new_multi_thread().worker_threads(1).thread_name("contexture-store").enable_all().build();
        Ok(Self { runtime: Some(builder.map_err(StoreError::Waiting)?), away_until: Mutex::default() })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken only when this is dropped")
    }

    /// Runs an operation and waits for it until the time is up. Afterwards, others fail at once for a moment, so that a
    /// database that is away does not delay every request.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.away_until().is_some_and(|until| Instant::now() < until) {
            return Err(StoreError::Away);
        }
        let (send, receive) = sync_channel(1);
        let task = self.runtime().spawn(async move {
            // Nobody receives it once the time is up.
            let _ = send.send(work.await);
        });
        let wait = || receive.recv_timeout(limit);
        // A thread that runs other tasks hands them over first.
        let is_shared = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        match if is_shared { tokio::task::block_in_place(wait) } else { wait() } {
            Ok(done) => done,
            Err(_) => {
                task.abort();
                *self.away_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + PAUSE);
                Err(StoreError::Away)
            }
        }
    }

    /// Runs an operation that nobody waits for.
    pub(super) fn begin(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.runtime().spawn(work);
    }

    fn away_until(&self) -> Option<Instant> {
        *self.away_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Waiting for the end is not allowed where tasks run.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
