//! One layer's state in one execution, and how it meets what is in the store.

use std::sync::Arc;

use super::record::{backup_key, decode_record, encode_record, guard, state_key};
use crate::id::LayerId;
use crate::layer::{StateCodec, StateValue};
use crate::store::{Batch, Record, ScopedStorage, Version};

/// How many writes of one state may be in doubt before the oldest is forgotten.
const MAX_DOUBTFUL: usize = 8;

/// A version that no store gives, so that whatever is stored differs from it.
const NEVER: Version = Version(u64::MAX);

#[derive(Default)]
pub(super) struct Cell {
    /// `None`: cleared, or never set.
    pub(super) state: Option<StateValue>,
    /// Whether there is an entry at all, be it a cleared one.
    pub(super) present: bool,
    pub(super) disabled: bool,
    /// Counts the changes of `state`.
    pub(super) generation: u64,
    pub(super) durable: Option<Durable>,
}

/// Where a state is mirrored to, and what is known about the record there.
#[derive(Clone)]
pub(crate) struct Durable {
    target: ScopedStorage,
    /// Knows how to read and to unite states; without it ours always wins.
    layer: Option<Arc<dyn StateCodec>>,
    /// The version that a write expects to replace.
    version: Option<Version>,
    /// The newest generation that is durable.
    pub(super) written: u64,
    /// Writes that were begun and whose outcome is not known yet, oldest first.
    doubtful: Vec<Doubtful>,
    /// A record that could not be read and is where the next write goes: it is kept aside in the same batch.
    unread: Option<Unread>,
    /// The state did not come from the record that others share: see [`Durable::apart`].
    apart: bool,
}

#[derive(Clone)]
struct Doubtful {
    generation: u64,
    record: Option<Arc<[u8]>>,
}

/// A stored record that could not be read.
#[derive(Clone)]
pub(crate) struct Unread {
    pub(crate) backup_key: String,
    pub(crate) value: Arc<[u8]>,
}

impl Durable {
    pub(crate) fn new(target: ScopedStorage) -> Self {
        Self { target, layer: None, version: None, written: 0, doubtful: Vec::new(), unread: None, apart: false }
    }

    /// The execution begins with a state of its own in a scope that it shares with others.
    ///
    /// What it begins with is never written. What it changes is united with what is there, and stays its own where
    /// the layer cannot unite them.
    pub(crate) fn apart(mut self) -> Self {
        self.apart = true;
        // So a first write finds a record that it did not expect, and has to be united with it.
        self.version = None;
        self
    }

    /// The version that is known to be there; `None` also if the state did not come from there.
    pub(super) fn known_version(&self) -> Option<Version> {
        self.version.filter(|_| !self.apart)
    }

    /// The layer that reads and unites states.
    pub(crate) fn of_layer(mut self, layer: Arc<dyn StateCodec>) -> Self {
        self.layer = Some(layer);
        self
    }

    /// The version that is there now.
    pub(crate) fn at(mut self, version: Option<Version>) -> Self {
        self.version = version;
        self
    }

    /// What is there, could not be read, and is not kept aside yet.
    pub(crate) fn with_unread(mut self, unread: Option<Unread>) -> Self {
        self.unread = unread;
        self
    }

    pub(super) fn target(&self) -> &ScopedStorage {
        &self.target
    }
}

/// A state that is not durable yet, ready to be written.
pub(crate) struct DirtyState {
    pub(crate) layer: LayerId,
    key: String,
    expected: Option<Version>,
    /// `None`: the record is to be deleted.
    record: Option<Arc<[u8]>>,
    unread: Option<Unread>,
    generation: u64,
}

impl DirtyState {
    /// Adds this write, and what it expects, to a batch.
    pub(crate) fn add_to(&self, mut batch: Batch) -> Batch {
        batch = batch.expect(self.key.clone(), self.expected);
        if let Some(Unread { backup_key, value }) = &self.unread {
            batch = batch.set(backup_key.clone(), value.to_vec());
        }
        match &self.record {
            Some(record) => batch.set(self.key.clone(), record.to_vec()),
            None => batch.delete(self.key.clone()),
        }
    }
}

/// What a cell is at one moment, to be looked at without holding any lock.
pub(super) struct Snapshot {
    state: Option<StateValue>,
    generation: u64,
    durable: Durable,
}

/// What comes of a state in memory and a record that someone may have changed.
pub(super) enum Meeting {
    /// The record is the one we knew.
    Known,
    /// The record is ours, of this generation: its write had succeeded, though nobody told us.
    Ours { generation: u64 },
    /// Nothing of ours is at stake: theirs it is.
    Theirs(Option<StateValue>),
    /// The layer made one state of both.
    United(StateValue),
    /// Theirs gives way, for this reason.
    Kept { reason: String },
    /// What they wrote cannot be read; ours stays, and theirs is kept aside.
    Unreadable { problem: String },
    /// Ours began as a state of its own and cannot be united with theirs: each stays where it is.
    Apart { reason: String },
}

impl Cell {
    pub(super) fn is_dirty(&self) -> bool {
        self.durable.as_ref().is_some_and(|durable| durable.written != self.generation)
    }

    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        let durable = self.durable.clone()?;
        Some(Snapshot { state: self.state.clone(), generation: self.generation, durable })
    }

    /// A write of this state begins; until someone says how it ended, it may or may not have happened.
    pub(super) fn begin_write(&mut self, dirty: &DirtyState) {
        let Some(durable) = &mut self.durable else { return };
        durable.doubtful.retain(|doubtful| doubtful.generation != dirty.generation);
        if durable.doubtful.len() >= MAX_DOUBTFUL {
            durable.doubtful.remove(0);
        }
        durable.doubtful.push(Doubtful { generation: dirty.generation, record: dirty.record.clone() });
    }

    /// The write succeeded.
    pub(super) fn mark_written(&mut self, dirty: &DirtyState, version: Version) {
        let Some(durable) = &mut self.durable else { return };
        durable.version = dirty.record.is_some().then_some(version);
        durable.written = dirty.generation;
        durable.doubtful.clear();
        durable.unread = None;
        durable.apart = false;
    }

    /// Takes note that this version of the record was taken into account, whoever wrote it.
    pub(super) fn has_seen(&mut self, version: Version) {
        if let Some(durable) = self.durable.as_mut().filter(|durable| !durable.apart) {
            durable.version = Some(version);
        }
    }

    /// A write that was in doubt is known to have succeeded, though someone may have written over it since.
    ///
    /// Only if the state has not changed since the first doubtful write is it known which one it was.
    pub(super) fn mark_landed(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        let doubtful = &durable.doubtful;
        if !doubtful.is_empty() && doubtful.iter().all(|doubtful| doubtful.generation == self.generation) {
            durable.written = self.generation;
        }
    }

    /// What is not durable counts for nothing: whatever is stored is the state, once it is read.
    pub(super) fn discard(&mut self) {
        let is_dirty = self.is_dirty();
        let Some(durable) = self.durable.as_mut().filter(|_| is_dirty) else { return };
        durable.written = self.generation;
        durable.version = Some(NEVER);
        durable.doubtful.clear();
    }

    /// Takes over what a meeting came to, unless the state has changed since the snapshot: then `None`.
    ///
    /// `Some(true)`: the state in memory is another one now.
    pub(super) fn settle(&mut self, seen: &Snapshot, theirs: Option<&Record>, meeting: &Meeting) -> Option<bool> {
        let durable = self.durable.as_mut()?;
        if self.generation != seen.generation {
            return None;
        }
        match meeting {
            Meeting::Known => return Some(false),
            Meeting::Apart { .. } => {
                self.durable = None;
                return Some(false);
            }
            _ => {}
        }
        durable.apart = false;
        durable.version = theirs.map(|record| record.version);
        durable.doubtful.clear();
        match meeting {
            Meeting::Known | Meeting::Apart { .. } | Meeting::Kept { .. } => {}
            Meeting::Ours { generation } => durable.written = *generation,
            Meeting::Unreadable { .. } => durable.unread = theirs.map(|record| unread(&durable.target, record)),
            Meeting::Theirs(state) => {
                self.state = state.clone();
                self.generation += 1;
                durable.written = self.generation;
            }
            Meeting::United(state) => {
                self.state = Some(state.clone());
                self.generation += 1;
            }
        }
        Some(matches!(meeting, Meeting::Theirs(_) | Meeting::United(_)))
    }
}

/// A record that could not be read, and where it is to be kept.
fn unread(target: &ScopedStorage, record: &Record) -> Unread {
    Unread { backup_key: backup_key(target, record.version), value: record.value.as_slice().into() }
}

impl Snapshot {
    pub(super) fn is_dirty(&self) -> bool {
        self.durable.written != self.generation
    }

    pub(super) fn to_dirty(&self, layer: &LayerId) -> Result<DirtyState, String> {
        let record = self.state.as_ref().map(encode_record).transpose()?;
        Ok(DirtyState {
            layer: layer.clone(),
            key: state_key(&self.durable.target),
            expected: self.durable.version,
            record: record.map(Arc::from),
            unread: self.durable.unread.clone(),
            generation: self.generation,
        })
    }

    /// Compares the state with what is in the store.
    pub(super) fn meet(&self, theirs: Option<&Record>) -> Meeting {
        let unchanged = self.durable.apart && !self.is_dirty();
        if unchanged || self.durable.version == theirs.map(|record| record.version) {
            return Meeting::Known;
        }
        let value = theirs.map(|record| record.value.as_slice());
        if let Some(generation) = self.wrote(value) {
            return Meeting::Ours { generation };
        }
        let theirs = match (theirs, &self.durable.layer) {
            (None, _) => None,
            (Some(record), Some(layer)) => match decode_record(&**layer, &record.value) {
                Ok(state) => Some(state),
                Err(problem) if self.durable.apart => return Meeting::Apart { reason: problem },
                Err(problem) => return Meeting::Unreadable { problem },
            },
            (Some(_), None) => return Meeting::Kept { reason: "nobody can read theirs".to_owned() },
        };
        if !self.is_dirty() {
            return Meeting::Theirs(theirs);
        }
        match self.unite(theirs.as_ref()) {
            Meeting::Kept { reason } if self.durable.apart => Meeting::Apart { reason },
            meeting => meeting,
        }
    }

    /// The generation whose write made the record what it is, if it was one of ours.
    fn wrote(&self, value: Option<&[u8]>) -> Option<u64> {
        let same = |record: &Doubtful| record.record.as_deref() == value;
        if let Some(doubtful) = self.durable.doubtful.iter().rev().find(|doubtful| same(doubtful)) {
            return Some(doubtful.generation);
        }
        // Someone else may have come to the very same state, and then there is nothing to unite.
        let ours = self.state.as_ref().map(encode_record).transpose().ok()?;
        (ours.as_deref() == value).then_some(self.generation)
    }

    fn unite(&self, theirs: Option<&StateValue>) -> Meeting {
        let kept = |reason: &str| Meeting::Kept { reason: reason.to_owned() };
        let (Some(ours), Some(theirs)) = (&self.state, theirs) else {
            return kept(if theirs.is_some() { "ours clears it" } else { "theirs cleared it" });
        };
        let Some(layer) = &self.durable.layer else { return kept("nobody can unite them") };
        match guard(|| Ok(layer.merge(ours, theirs))) {
            Ok(Some(united)) => Meeting::United(united),
            Ok(None) => kept("the layer does not unite them"),
            Err(problem) => Meeting::Kept { reason: format!("uniting them failed: {problem}") },
        }
    }
}
