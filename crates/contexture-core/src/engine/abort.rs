//! The handle that aborts a turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

/// Aborts a turn. Cheap to clone.
#[derive(Clone, Default)]
pub struct AbortHandle(Arc<AbortState>);

#[derive(Default)]
struct AbortState {
    aborted: AtomicBool,
    notify: Notify,
    /// The handles of children that still exist.
    children: Mutex<Vec<Weak<AbortState>>>,
}

impl AbortHandle {
    /// Aborts the running turn, or else the next one: it returns [`Error::Aborted`](crate::error::Error::Aborted).
    ///
    /// It affects only one turn: [`resume`](super::Execution::resume) continues it, and later turns run normally.
    /// Children of the execution, and theirs, are aborted in the same way.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
        self.abort_children();
    }

    /// Stops the turns of all children, and of theirs.
    pub(crate) fn abort_children(&self) {
        for child in self.children() {
            child.abort();
        }
    }

    /// Makes aborting this one abort `child` too.
    pub(crate) fn add_child(&self, child: &AbortHandle) {
        let mut children = self.0.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain(|child| child.strong_count() > 0);
        children.push(Arc::downgrade(&child.0));
    }

    fn children(&self) -> Vec<AbortHandle> {
        let children = self.0.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.iter().filter_map(Weak::upgrade).map(AbortHandle).collect()
    }

    /// Waits for a request to abort, and clears it.
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
