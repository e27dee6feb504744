//! Threads whose last execution was dropped and has not put its unfinished step away.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::id::ThreadId;

/// Executions that were dropped, and have not put their unfinished step away.
///
/// Whoever opens such a thread in the same engine waits for that, so that he finds the states as they are stored.
#[derive(Default)]
pub(crate) struct Endings(Mutex<HashMap<ThreadId, Vec<watch::Receiver<()>>>>);

/// Held until a dropped execution has put its unfinished step away.
pub(crate) struct Ending {
    _sender: watch::Sender<()>,
}

impl Endings {
    fn threads(&self) -> MutexGuard<'_, HashMap<ThreadId, Vec<watch::Receiver<()>>>> {
        // Every change below is whole before anything could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An execution of the thread is being put away until the returned value is dropped.
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
