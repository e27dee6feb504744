//! Threads whose last execution was dropped and is still being written down.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::id::ThreadId;

/// Executions that were dropped, and whose threads are not written down yet.
///
/// Whoever opens such a thread waits for that. Otherwise its turn would change hands while its old owner still writes
/// it, and the new one would take that for a sign of life.
#[derive(Default)]
pub(crate) struct Endings(Mutex<HashMap<ThreadId, Vec<watch::Receiver<()>>>>);

/// Held while a thread is being written down.
pub(crate) struct Ending {
    _sender: watch::Sender<()>,
}

impl Endings {
    fn threads(&self) -> MutexGuard<'_, HashMap<ThreadId, Vec<watch::Receiver<()>>>> {
        // Every change below is whole before anything could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread is being written down until the returned value is dropped.
    pub(crate) fn begin(&self, thread: &ThreadId) -> Ending {
        let (sender, receiver) = watch::channel(());
        let mut threads = self.threads();
        threads.retain(|_, receivers| {
            receivers.retain(|receiver| receiver.has_changed().is_ok());
            !receivers.is_empty()
        });
        threads.entry(thread.clone()).or_default().push(receiver);
        Ending { _sender: sender }
    }

    /// Waits until everything that was begun for a thread is done.
    pub(crate) async fn wait(&self, thread: &ThreadId) {
        let receivers = self.threads().get(thread).cloned().unwrap_or_default();
        for mut receiver in receivers {
            // Nothing is ever sent: an error says that the sender is gone, which is what we wait for.
            while receiver.changed().await.is_ok() {}
        }
    }
}
