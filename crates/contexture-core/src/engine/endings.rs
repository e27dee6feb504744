//! Threads whose dropped execution is still ending in the background.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::id::ThreadId;

/// Dropped executions that are still ending in the background.
///
/// Opening such a thread in the same engine waits for them, so that it reads their final states.
#[derive(Default)]
pub(crate) struct Endings(Mutex<HashMap<ThreadId, Vec<watch::Receiver<()>>>>);

/// Held until a dropped execution has ended.
pub(crate) struct EndingGuard {
    _sender: watch::Sender<()>,
}

impl Endings {
    fn threads(&self) -> MutexGuard<'_, HashMap<ThreadId, Vec<watch::Receiver<()>>>> {
        // Every change below is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks an execution of the thread as ending until the returned value is dropped.
    pub(crate) fn begin(&self, thread: &ThreadId) -> EndingGuard {
        let (sender, receiver) = watch::channel(());
        let mut threads = self.threads();
        threads.retain(|_, receivers| {
            receivers.retain(|receiver| receiver.has_changed().is_ok());
            !receivers.is_empty()
        });
        threads.entry(thread.clone()).or_default().push(receiver);
        EndingGuard { _sender: sender }
    }

    /// Waits until all executions of a thread that are ending have ended.
    pub(crate) async fn wait(&self, thread: &ThreadId) {
        let receivers = self.threads().get(thread).cloned().unwrap_or_default();
        for mut receiver in receivers {
            // Nothing is ever sent: an error means that the sender was dropped, which is what we wait for.
            while receiver.changed().await.is_ok() {}
        }
    }
}
