//! How far a decision has come, for the task that waits for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use crate::find::index::FoundConversation;

/// The conversation of a request, as far as it was looked for.
#[derive(Clone, Default)]
enum Finding {
    /// It is still being looked for.
    #[default]
    Searching,
    /// It was found.
    Found(FoundConversation),
    /// There is none.
    Nothing,
}

/// The progress of a decision, shared with the task that waits for it.
#[derive(Default)]
pub struct Progress {
    finding: watch::Sender<Finding>,
    is_over: AtomicBool,
    /// Whether the request is above its provider's limit, so that a decision is waited for.
    is_needed: AtomicBool,
}

impl Progress {
    /// Sets the conversation of the request.
    pub fn note_found(&self, found: &FoundConversation) {
        self.finding.send_replace(Finding::Found(found.clone()));
    }

    /// Notes that the request is above its provider's limit: without a decision it would be refused.
    pub fn note_needed(&self) {
        self.is_needed.store(true, Ordering::SeqCst);
    }

    /// Whether a decision is waited for, however long it takes.
    pub fn is_needed(&self) -> bool {
        self.is_needed.load(Ordering::SeqCst)
    }

    /// Notes that the request has no conversation.
    pub fn note_nothing(&self) {
        self.finding.send_replace(Finding::Nothing);
    }

    /// Returns the conversation of the request if it is found in time. With it, the earlier decisions can be applied.
    pub async fn found(&self, time: Duration) -> Option<FoundConversation> {
        let mut finding = self.finding.subscribe();
        let found = finding.wait_for(|finding| !matches!(finding, Finding::Searching));
        match tokio::time::timeout(time, found).await {
            Ok(Ok(finding)) => match &*finding {
                Finding::Found(found) => Some(found.clone()),
                Finding::Searching | Finding::Nothing => None,
            },
            // The time is up. The sender is not dropped meanwhile, since it is part of this.
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// The conversation of the request, if it is found by now.
    pub fn found_so_far(&self) -> Option<FoundConversation> {
        match &*self.finding.borrow() {
            Finding::Found(found) => Some(found.clone()),
            Finding::Searching | Finding::Nothing => None,
        }
    }

    /// Ends the waiting or the deciding. Returns whether the caller was the first to do so.
    pub fn end(&self) -> bool {
        !self.is_over.swap(true, Ordering::SeqCst)
    }
}
