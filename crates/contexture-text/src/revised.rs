//! Values by name, each with the revision in which it was set: so that what several writers did can be united.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How many removed names are remembered.
const MAX_REMOVED: usize = 256;

/// Values by name.
///
/// A child's copy knows where it started ([`for_child`](Self::for_child)), so that of several children each brings back
/// what it changed itself and nothing else. A name that was removed is remembered for a while, so that it does not
/// return with a writer who still had it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Revised<V> {
    revision: u64,
    /// The revision that a child was given.
    #[serde(default)]
    start: u64,
    entries: BTreeMap<String, Revision<V>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Revision<V> {
    revision: u64,
    /// `None`: removed.
    value: Option<V>,
}

impl<V> Default for Revised<V> {
    fn default() -> Self {
        Self { revision: 0, start: 0, entries: BTreeMap::new() }
    }
}

impl<V: Clone> Revised<V> {
    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.entries.get(name)?.value.as_ref()
    }

    /// What is there, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.entries.iter().filter_map(|(name, entry)| Some((name.as_str(), entry.value.as_ref()?)))
    }

    /// What is there, the newest first.
    pub fn newest(&self) -> Vec<(&str, &V)> {
        let mut entries: Vec<_> = self.entries.iter().filter(|(_, entry)| entry.value.is_some()).collect();
        entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.revision));
        entries.into_iter().filter_map(|(name, entry)| Some((name.as_str(), entry.value.as_ref()?))).collect()
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Sets the value of a name.
    pub fn set(&mut self, name: &str, value: V) {
        self.put(name, Some(value));
    }

    /// Removes a value; `false` if there is none.
    pub fn remove(&mut self, name: &str) -> bool {
        let is_there = self.get(name).is_some();
        if is_there {
            self.put(name, None);
        }
        is_there
    }

    fn put(&mut self, name: &str, value: Option<V>) {
        self.revision += 1;
        self.entries.insert(name.to_owned(), Revision { revision: self.revision, value });
        self.forget_removed();
    }

    fn forget_removed(&mut self) {
        while self.entries.len() > MAX_REMOVED {
            let removed = self.entries.iter().filter(|(_, entry)| entry.value.is_none());
            if removed.clone().count() <= MAX_REMOVED {
                return;
            }
            let Some(oldest) = removed.min_by_key(|(_, entry)| entry.revision).map(|(name, _)| name.clone()) else {
                return;
            };
            self.entries.remove(&oldest);
        }
    }

    /// The same for a child, which knows from now on what it changes itself.
    pub fn for_child(&self) -> Self {
        Self { start: self.revision, ..self.clone() }
    }

    /// Takes over what a child changed.
    pub fn take_back(&mut self, child: &Self) {
        let mut changed: Vec<_> = child.entries.iter().filter(|(_, entry)| entry.revision > child.start).collect();
        changed.sort_by_key(|(_, entry)| entry.revision);
        for (name, entry) in changed {
            self.put(name, entry.value.clone());
        }
    }

    /// What two writers have together who both started with `base`: what each of them changed. Where both changed a value,
    /// `unite` makes one of base, ours and theirs. What one removed is gone, unless it has another name there.
    pub fn merged_since(&self, base: &Self, theirs: &Self, unite: impl Fn(&V, &V, &V) -> V) -> Self
    where
        V: PartialEq + Default,
    {
        let mut merged = theirs.clone();
        (merged.revision, merged.start) = (self.revision.max(theirs.revision), self.start);
        let (mut moved, nothing) = (Vec::new(), V::default());
        let names = || self.entries.keys().chain(theirs.entries.keys());
        for name in names().collect::<std::collections::BTreeSet<_>>() {
            let (before, ours, other) = (base.get(name), self.get(name), theirs.get(name));
            if ours == before || ours == other {
                continue;
            }
            match (before, ours, other) {
                (_, ours, other) if other == before => merged.put(name, ours.cloned()),
                (before, Some(ours), Some(other)) => {
                    merged.put(name, Some(unite(before.unwrap_or(&nothing), ours, other)));
                }
                (Some(before), None, Some(other)) => {
                    merged.put(name, None);
                    moved.extend(self.new_name_of(before, base).map(|name| (name.to_owned(), other.clone())));
                }
                (Some(before), Some(ours), None) => {
                    moved.extend(theirs.new_name_of(before, base).map(|name| (name.to_owned(), ours.clone())));
                }
                (_, ours, _) => merged.put(name, ours.cloned()),
            }
        }
        for (name, value) in moved {
            merged.put(&name, Some(value));
        }
        merged
    }

    /// The name that a value of `base` has since it was renamed.
    fn new_name_of(&self, value: &V, base: &Self) -> Option<&str>
    where
        V: PartialEq,
    {
        self.iter().find(|(name, other)| *other == value && base.get(name).is_none()).map(|(name, _)| name)
    }

    /// What two writers have together: of each name what was set last, and ours where that cannot be told.
    pub fn merged(&self, theirs: &Self) -> Self {
        let mut merged = self.clone();
        merged.revision = self.revision.max(theirs.revision);
        for (name, entry) in &theirs.entries {
            let is_newer = merged.entries.get(name).is_none_or(|ours| ours.revision < entry.revision);
            if is_newer {
                merged.entries.insert(name.clone(), entry.clone());
            }
        }
        merged.forget_removed();
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(revised: &Revised<u32>) -> Vec<(&str, u32)> {
        revised.iter().map(|(name, value)| (name, *value)).collect()
    }

    #[test]
    fn every_child_brings_back_only_what_it_changed() {
        let mut parent = Revised::default();
        for (name, value) in [("a", 1), ("b", 2), ("c", 3)] {
            parent.set(name, value);
        }
        let (mut one, mut two) = (parent.for_child(), parent.for_child());
        one.set("a", 10);
        one.remove("c");
        two.set("b", 20);
        two.set("d", 40);
        parent.set("e", 5);
        parent.take_back(&one);
        parent.take_back(&two);
        assert_eq!(names(&parent), [("a", 10), ("b", 20), ("d", 40), ("e", 5)]);
    }

    #[test]
    fn two_writers_lose_nothing_and_nothing_returns() {
        let mut ours = Revised::default();
        ours.set("old", 1);
        ours.set("both", 1);
        let mut theirs = ours.clone();
        ours.remove("old");
        ours.set("ours", 2);
        theirs.set("theirs", 3);
        let merged = ours.merged(&theirs);
        assert_eq!(names(&merged), [("both", 1), ("ours", 2), ("theirs", 3)]);
        assert_eq!(names(&merged), names(&theirs.merged(&ours)));
    }

    #[test]
    fn two_writers_of_one_state_both_keep_what_they_changed() {
        let mut base = Revised::default();
        for (name, value) in [("same", 1), ("gone", 2), ("moved", 3), ("both", 4)] {
            base.set(name, value);
        }
        let (mut ours, mut theirs) = (base.clone(), base.clone());
        ours.set("both", 5);
        ours.remove("gone");
        ours.set("ours", 6);
        ours.remove("moved");
        ours.set("new name", 3);
        theirs.set("both", 40);
        theirs.set("moved", 30);
        theirs.set("gone", 20);
        let sum = |base: &u32, ours: &u32, theirs: &u32| ours + theirs - base;
        let expected = [("both", 41), ("new name", 30), ("ours", 6), ("same", 1)];
        assert_eq!(names(&ours.merged_since(&base, &theirs, sum)), expected);
        assert_eq!(names(&theirs.merged_since(&base, &ours, sum)), expected);
    }

    #[test]
    fn what_was_removed_is_remembered_within_bounds() {
        let mut revised = Revised::default();
        for n in 0..10_000 {
            let name = n.to_string();
            revised.set(&name, n);
            assert!(revised.remove(&name) && !revised.remove(&name));
        }
        assert!(revised.is_empty() && revised.entries.len() <= MAX_REMOVED);
    }
}
