//! Stops a turn from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;

/// Stops a turn from outside. Cheap to clone.
#[derive(Clone, Default)]
pub struct AbortHandle(Arc<AbortState>);

#[derive(Default)]
struct AbortState {
    aborted: AtomicBool,
    notify: Notify,
    /// Those of the children that are still held by anyone.
    children: Mutex<Vec<Weak<AbortState>>>,
}

impl AbortHandle {
    /// Stops the turn that runs now, or the next one: it returns [`Error::Aborted`](crate::error::Error::Aborted).
    ///
    /// One turn alone: [`resume`](super::Execution::resume) goes on with it, and the turns after it run as ever.
    /// Children of the execution, and theirs, are stopped in the same way.
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

    /// Whenever this one is aborted, so is `child`.
    pub(crate) fn add_child(&self, child: &AbortHandle) {
        let mut children = self.0.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain(|child| child.strong_count() > 0);
        children.push(Arc::downgrade(&child.0));
    }

    fn children(&self) -> Vec<AbortHandle> {
        let children = self.0.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.iter().filter_map(Weak::upgrade).map(AbortHandle).collect()
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
