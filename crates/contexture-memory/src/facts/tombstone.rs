//! What remains of a fact that was forgotten: enough to know it again, and nothing of what it said.

use serde::{Deserialize, Serialize};

use super::fact::{Fact, FactDraft, FactId, Source};

/// The mark of a fact that was forgotten or undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tombstone {
    /// The fact.
    pub id: FactId,
    /// The items that it came from, without names.
    pub sources: Vec<Source>,
    /// When it was forgotten, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// A hash of its entity and attribute.
    key: u64,
    /// A hash of what it claimed.
    claim: u64,
    /// Whether the change that made it was undone, rather than the fact forgotten.
    #[serde(default)]
    pub undone: bool,
}

impl Tombstone {
    pub(super) fn of(fact: &Fact, at_ms: u64, undone: bool) -> Self {
        let without_name = |source: &Source| match source.clone() {
            Source::Item { thread, item, start, end, .. } => Source::Item { thread, item, start, end, name: None },
            Source::Hand => Source::Hand,
        };
        let sources = fact.sources.iter().map(without_name).collect();
        Self { id: fact.id.clone(), sources, at_ms, key: fact.key(), claim: fact.claim(), undone }
    }

    /// Whether a new fact is the forgotten one again: from the same words, or from the same item about the same thing.
    pub(super) fn blocks(&self, draft: &FactDraft) -> bool {
        self.sources.iter().any(|source| {
            source.overlaps(&draft.source)
                || (source.is_same_item(&draft.source) && (self.key == draft.key() || self.claim == draft.claim()))
        })
    }
}
