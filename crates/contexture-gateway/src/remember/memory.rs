//! The memory of a gateway: whose it is, and how much of it is shown.

use std::sync::Arc;

use contexture::personal::{MemoryOwner, PersonalMemory};

use super::readers::KnownReaders;
use crate::watch::{MemoryOperation, Watcher};

/// The most tokens that are added to a request.
pub const DEFAULT_BUDGET: u64 = 1_000;

/// The percentage of what a person's words are about that a passage must have words for, or nothing is added.
pub const DEFAULT_THRESHOLD: u8 = 60;

/// The memory of a gateway.
#[derive(Clone)]
pub struct GatewayMemory {
    pub(super) memory: PersonalMemory,
    /// Whose memory is used for requests of a gateway with one key: a project and its person, what passes being kept for
    /// the first.
    own: Vec<MemoryOwner>,
    pub(super) budget: u64,
    pub(super) threshold: u8,
    pub(super) readers: Arc<KnownReaders>,
    /// Who hears of what is done with it.
    watchers: Vec<Arc<dyn Watcher>>,
}

impl GatewayMemory {
    /// A memory for one person. With several keys, each has a memory of its own in the same store instead.
    pub fn new(memory: PersonalMemory, own: Vec<MemoryOwner>) -> Self {
        let (budget, threshold) = (DEFAULT_BUDGET, DEFAULT_THRESHOLD);
        Self { memory, own, budget, threshold, readers: Arc::default(), watchers: Vec::new() }
    }

    /// Sets the most tokens that are added to a request.
    pub fn with_budget(self, budget: u64) -> Self {
        Self { budget, ..self }
    }

    /// Sets the percentage of what a person's words are about that a passage must have words for.
    pub fn with_threshold(self, threshold: u8) -> Self {
        Self { threshold, ..self }
    }

    /// Sets who hears of what is done with it.
    pub(crate) fn watched_by(self, watchers: Vec<Arc<dyn Watcher>>) -> Self {
        Self { watchers, ..self }
    }

    /// Tells watchers what was done.
    pub(super) fn tell_of(&self, operation: &MemoryOperation<'_>) {
        self.watchers.iter().for_each(|watcher| watcher.remembered(operation));
    }

    /// Whose memory is used for a request of this key: the empty name is that of a gateway with one key.
    pub(super) fn owners(&self, key: &str) -> Vec<MemoryOwner> {
        if key.is_empty() { self.own.clone() } else { vec![MemoryOwner::Key(key.to_owned())] }
    }

    /// Opens the files, so that the first request need not wait for it.
    pub(crate) async fn warm(&self) {
        for owner in &self.own {
            // If it fails, requests find out, and are sent without memory.
            let _ = self.memory.count(owner).await;
        }
    }
}
