//! Stops a turn from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Stops a turn from outside. Cheap to clone.
#[derive(Clone, Default)]
pub struct AbortHandle(Arc<AbortState>);

#[derive(Default)]
struct AbortState {
    aborted: AtomicBool,
    notify: Notify,
}

impl AbortHandle {
    /// Stops the turn that runs now, or the next one: it returns [`Error::Aborted`](crate::error::Error::Aborted).
    ///
    /// One turn alone: [`resume`](super::Execution::resume) goes on with it, and the turns after it run as ever.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Waits until an abort is asked for, and takes the wish.
    pub(crate) async fn aborted(&self) {
        loop {
            let notified = self.0.notify.notified();
            if self.0.aborted.swap(false, Ordering::SeqCst) {
                return;
            }
            notified.await;
        }
    }
}
