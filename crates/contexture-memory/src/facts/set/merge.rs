//! What two writers of facts know together.

use std::sync::Arc;

use super::super::fact::{Fact, FactId, MAX_SOURCES, Speaker, normal};
use super::super::tombstone::Tombstone;
use super::Facts;

impl Facts {
    /// What two writers know together. Nothing that either learned is lost, and nothing that either forgot returns.
    pub fn merged(&self, theirs: &Self) -> Self {
        let mut merged = theirs.clone();
        let new = self.tombstones.iter().filter(|ours| !theirs.tombstones.iter().any(|other| other.id == ours.id));
        merged.tombstones.extend(new.cloned());
        let marks = merged.tombstones.clone();
        let of_both = theirs.facts.iter().chain(&self.facts);
        merged.facts.clear();
        for fact in of_both.filter(|fact| !marks.iter().any(|mark| mark.id == fact.id)) {
            let fact = without_undone(fact, &marks);
            match merged.facts.iter_mut().find(|other| other.id == fact.id) {
                Some(other) => *other = Arc::new(united(&fact, other)),
                None => merged.facts.push(fact),
            }
        }
        merged.facts.sort_by(|one, other| (one.valid_from_ms, &one.id).cmp(&(other.valid_from_ms, &other.id)));
        merged.settle();
        let new = self.changes.iter().filter(|change| !theirs.changes.contains(change));
        merged.changes.extend(new.cloned());
        merged.changes.make_contiguous().sort_by_key(|change| change.at_ms);
        let forgotten: Vec<FactId> = merged.tombstones.iter().map(|tombstone| tombstone.id.clone()).collect();
        merged.forget_in_changes(&forgotten);
        for (thread, item) in &self.read {
            merged.set_read(thread, *item);
        }
        merged.spent = self.spent.merged(&theirs.spent);
        merged.dropped = self.dropped.max(theirs.dropped);
        merged.bound_tombstones();
        merged.bound_changes();
        merged.drop_surplus();
        merged
    }

    /// Lets newer facts take the place of older ones that another writer added; facts are in order of time.
    fn settle(&mut self) {
        for at in 0..self.facts.len() {
            let new = self.facts[at].clone();
            if !new.is_current() || !new.single || normal(&new.attribute).is_empty() {
                continue;
            }
            for old in
                self.facts[..at].iter_mut().filter(|old| old.is_current() && old.single && old.has_property_of(&new))
            {
                let is_users = old.said_by == Speaker::User || old.confirmed;
                if !is_users || new.said_by == Speaker::User {
                    let old = Arc::make_mut(old);
                    (old.superseded_by, old.valid_to_ms) = (Some(new.id.clone()), Some(new.valid_from_ms));
                }
            }
        }
    }
}

/// A fact that is current again if what took its place was undone.
fn without_undone(fact: &Arc<Fact>, marks: &[Tombstone]) -> Arc<Fact> {
    let mut fact = fact.clone();
    let is_undone = |id: &FactId| marks.iter().any(|mark| mark.undone && mark.id == *id);
    if fact.superseded_by.as_ref().is_some_and(is_undone) {
        let fact = Arc::make_mut(&mut fact);
        (fact.superseded_by, fact.valid_to_ms) = (None, None);
    }
    fact
}

/// One fact as two writers have it.
fn united(ours: &Fact, theirs: &Fact) -> Fact {
    let mut fact = if ours.said_by >= theirs.said_by { ours.clone() } else { theirs.clone() };
    let other = if ours.said_by >= theirs.said_by { theirs } else { ours };
    for source in &other.sources {
        if !fact.sources.contains(source) && fact.sources.len() < MAX_SOURCES {
            fact.sources.push(source.clone());
        }
    }
    fact.confirmed |= other.confirmed;
    fact.uses = fact.uses.max(other.uses);
    fact.last_used_ms = fact.last_used_ms.max(other.last_used_ms);
    fact.valid_to_ms = fact.valid_to_ms.max(other.valid_to_ms);
    fact.superseded_by = fact.superseded_by.max(other.superseded_by.clone());
    fact
}
