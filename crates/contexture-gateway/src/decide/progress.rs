//! How far a decision has come, for the task that waits for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::watch;

use crate::find::index::FoundConversation;

/// How far a request was looked at.
#[derive(Clone, Default)]
enum FindingStage {
    /// It is being parsed.
    #[default]
    Parsing,
    /// It was parsed, and its conversation is being looked for.
    Searching {
        /// Whether its provider may refuse it as it came.
        may_be_refused: bool,
    },
    /// Its conversation was found.
    Found(FoundConversation),
    /// It has none.
    Nothing,
}

/// The progress of a decision, shared with the task that waits for it.
pub(crate) struct Progress {
    finding: watch::Sender<FindingStage>,
    is_over: AtomicBool,
    /// Whether the request is above its provider's limit, so that a decision is waited for.
    is_needed: AtomicBool,
    /// Whether the request is far above its budget, so that a decision is waited for some time.
    is_far_above: AtomicBool,
    until: Instant,
}

impl Progress {
    /// The progress of a request that is to be sent at this moment.
    pub fn new(until: Instant) -> Self {
        Self {
            finding: watch::Sender::default(),
            is_over: AtomicBool::new(false),
            is_needed: AtomicBool::new(false),
            is_far_above: AtomicBool::new(false),
            until,
        }
    }

    /// When the request is to be sent.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Notes that the request was parsed, and whether its provider may refuse it as it came.
    pub fn note_parsed(&self, may_be_refused: bool) {
        self.finding.send_replace(FindingStage::Searching { may_be_refused });
    }

    /// Sets the conversation of the request.
    pub fn note_found(&self, found: &FoundConversation) {
        self.finding.send_replace(FindingStage::Found(found.clone()));
    }

    /// Notes that the request is above its provider's limit: without a decision it would be refused.
    pub fn note_needed(&self) {
        self.is_needed.store(true, Ordering::SeqCst);
    }

    /// Whether a decision is waited for, however long it takes.
    pub fn is_needed(&self) -> bool {
        self.is_needed.load(Ordering::SeqCst)
    }

    /// Notes that the request is far above its budget: without a decision it is folded plainly.
    pub fn note_far_above(&self) {
        self.is_far_above.store(true, Ordering::SeqCst);
    }

    /// Whether a decision is waited for, if that does not take too long.
    pub fn is_far_above(&self) -> bool {
        self.is_far_above.load(Ordering::SeqCst)
    }

    /// Notes that the request has no conversation.
    pub fn note_nothing(&self) {
        self.finding.send_replace(FindingStage::Nothing);
    }

    /// Waits until the request is parsed. Returns whether its provider may refuse it as it came, if that is not known
    /// better already.
    pub async fn parsed(&self) -> bool {
        let mut finding = self.finding.subscribe();
        let parsed = finding.wait_for(|finding| !matches!(finding, FindingStage::Parsing)).await;
        parsed.is_ok_and(|finding| matches!(*finding, FindingStage::Searching { may_be_refused: true }))
    }

    /// Waits until the conversation of the request is found, or is known not to exist.
    pub async fn settled(&self) {
        let mut finding = self.finding.subscribe();
        // The sender is not dropped meanwhile, since it is part of this.
        let _ = finding.wait_for(|finding| matches!(finding, FindingStage::Found(_) | FindingStage::Nothing)).await;
    }

    /// The conversation of the request, if it is found already. With it, the earlier decisions can be applied.
    pub fn found(&self) -> Option<FoundConversation> {
        match &*self.finding.borrow() {
            FindingStage::Found(found) => Some(found.clone()),
            FindingStage::Parsing | FindingStage::Searching { .. } | FindingStage::Nothing => None,
        }
    }

    /// Ends the waiting or the deciding. Returns whether the caller was the first to do so.
    pub fn end(&self) -> bool {
        !self.is_over.swap(true, Ordering::SeqCst)
    }
}
