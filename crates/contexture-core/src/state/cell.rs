//! One layer's state in one execution, and how it is compared with the stored one.

use std::sync::Arc;

use super::record::{backup_key, decode_record, encode_record, guard, state_key};
use crate::id::LayerId;
use crate::layer::{StateCodec, StateValue};
use crate::store::{Batch, Record, ScopedStorage, Version};

/// How many writes of one state with unknown outcome are remembered.
const MAX_DOUBTFUL: usize = 8;

/// A version that no store uses, so that it differs from any stored version.
const NEVER: Version = Version(u64::MAX);

#[derive(Default)]
pub(super) struct Cell {
    /// `None`: cleared, or never set.
    pub(super) state: Option<StateValue>,
    /// Whether there is an entry, including a cleared one.
    pub(super) present: bool,
    pub(super) disabled: bool,
    /// Counts the changes of `state`.
    pub(super) generation: u64,
    pub(super) durable: Option<Durable>,
}

/// The stored record of a state, and what is known about it.
#[derive(Clone)]
pub(crate) struct Durable {
    target: ScopedStorage,
    /// Reads and merges states; without it ours always wins.
    layer: Option<Arc<dyn StateCodec>>,
    /// The version that a write expects to replace.
    version: Option<Version>,
    /// The state in that version: what our changes were made to. `None` if it is not known.
    base: Option<StateValue>,
    /// The newest generation that is durable.
    pub(super) written: u64,
    /// Writes whose outcome is not known yet, oldest first.
    doubtful: Vec<Doubtful>,
    /// An unreadable record that the next write would overwrite: it is backed up in the same batch.
    unread: Option<UnreadableRecord>,
    /// The state did not come from the shared record: see [`Durable::apart`].
    apart: bool,
}

#[derive(Clone)]
struct Doubtful {
    generation: u64,
    state: Option<StateValue>,
    record: Option<Arc<[u8]>>,
}

/// A stored record that could not be read.
#[derive(Clone)]
pub(crate) struct UnreadableRecord {
    pub(crate) backup_key: String,
    pub(crate) value: Arc<[u8]>,
}

impl Durable {
    pub(crate) fn new(target: ScopedStorage) -> Self {
        Self {
            target,
            layer: None,
            version: None,
            base: None,
            written: 0,
            doubtful: Vec::new(),
            unread: None,
            apart: false,
        }
    }

    /// The execution starts with its own state in a scope that it shares with others.
    ///
    /// The initial state is never written. Changes are merged with the stored state, and stay in the execution if the
    /// layer cannot merge them.
    pub(crate) fn apart(mut self) -> Self {
        self.apart = true;
        // So the first write conflicts with the stored record and is merged with it.
        self.version = None;
        self
    }

    /// The known version of the record, with its state; `None` also if the state did not come from it.
    pub(super) fn known(&self) -> Option<(Version, Option<StateValue>)> {
        Some((self.version.filter(|_| !self.apart)?, self.base.clone()))
    }

    /// Sets the state that changes are made to.
    pub(crate) fn with_base(mut self, base: Option<StateValue>) -> Self {
        self.base = base;
        self
    }

    pub(super) fn set_base(&mut self, base: Option<StateValue>) {
        self.base = base;
    }

    /// The layer that reads and merges states.
    pub(crate) fn of_layer(mut self, layer: Arc<dyn StateCodec>) -> Self {
        self.layer = Some(layer);
        self
    }

    /// Sets the current version of the record.
    pub(crate) fn at(mut self, version: Option<Version>) -> Self {
        self.version = version;
        self
    }

    /// The unreadable record that is not backed up yet.
    pub(crate) fn with_unread(mut self, unread: Option<UnreadableRecord>) -> Self {
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
    state: Option<StateValue>,
    /// `None`: delete the record.
    record: Option<Arc<[u8]>>,
    unread: Option<UnreadableRecord>,
    generation: u64,
}

impl DirtyState {
    /// Adds this write and its expectation to a batch.
    pub(crate) fn add_to(&self, mut batch: Batch) -> Batch {
        batch = batch.expect(self.key.clone(), self.expected);
        if let Some(UnreadableRecord { backup_key, value }) = &self.unread {
            batch = batch.set(backup_key.clone(), value.to_vec());
        }
        match &self.record {
            Some(record) => batch.set(self.key.clone(), record.to_vec()),
            None => batch.delete(self.key.clone()),
        }
    }
}

/// A snapshot of a cell, to be examined without holding a lock.
pub(super) struct CellSnapshot {
    state: Option<StateValue>,
    generation: u64,
    durable: Durable,
}

/// The result of comparing a state in memory with its record.
pub(super) enum Meeting {
    /// The record has not changed.
    Known,
    /// The record is our write of this generation, whose result was lost.
    Ours { generation: u64, state: Option<StateValue> },
    /// We have no unwritten change: theirs is used.
    Theirs(Option<StateValue>),
    /// The layer merged both.
    United { state: StateValue, theirs: StateValue },
    /// Ours is kept, for this reason.
    Kept { reason: String },
    /// Theirs cannot be read; ours is kept, and theirs is backed up.
    Unreadable { problem: String },
    /// Ours started as a separate state and cannot be merged with theirs: both are kept.
    Apart { reason: String },
}

impl Cell {
    pub(super) fn is_dirty(&self) -> bool {
        self.durable.as_ref().is_some_and(|durable| durable.written != self.generation)
    }

    pub(super) fn snapshot(&self) -> Option<CellSnapshot> {
        let durable = self.durable.clone()?;
        Some(CellSnapshot { state: self.state.clone(), generation: self.generation, durable })
    }

    /// A write of this state begins; its outcome is unknown until it is reported.
    pub(super) fn begin_write(&mut self, dirty: &DirtyState) {
        let Some(durable) = &mut self.durable else { return };
        durable.doubtful.retain(|doubtful| doubtful.generation != dirty.generation);
        if durable.doubtful.len() >= MAX_DOUBTFUL {
            durable.doubtful.remove(0);
        }
        durable.doubtful.push(Doubtful {
            generation: dirty.generation,
            state: dirty.state.clone(),
            record: dirty.record.clone(),
        });
    }

    /// The write succeeded.
    pub(super) fn mark_written(&mut self, dirty: &DirtyState, version: Version) {
        let Some(durable) = &mut self.durable else { return };
        durable.version = dirty.record.is_some().then_some(version);
        durable.base = dirty.state.clone();
        durable.written = dirty.generation;
        durable.doubtful.clear();
        durable.unread = None;
        durable.apart = false;
    }

    /// Marks this version of the record, with this state, as known.
    pub(super) fn has_seen(&mut self, version: Version, state: Option<StateValue>) {
        if let Some(durable) = self.durable.as_mut().filter(|durable| !durable.apart) {
            (durable.version, durable.base) = (Some(version), state);
        }
    }

    /// A write with unknown outcome is known to have succeeded, though others may have overwritten it since.
    ///
    /// Which write it was is known only if the state has not changed since the first one with unknown outcome.
    pub(super) fn mark_durable(&mut self) {
        let Some(durable) = &mut self.durable else { return };
        let doubtful = &durable.doubtful;
        if !doubtful.is_empty() && doubtful.iter().all(|doubtful| doubtful.generation == self.generation) {
            durable.written = self.generation;
            durable.base = self.state.clone();
        }
    }

    /// Discards what is not durable: the stored state is used once it is read.
    pub(super) fn discard(&mut self) {
        let is_dirty = self.is_dirty();
        let Some(durable) = self.durable.as_mut().filter(|_| is_dirty) else { return };
        durable.written = self.generation;
        durable.version = Some(NEVER);
        durable.doubtful.clear();
    }

    /// Applies the result of a comparison; `None` if the state has changed since the snapshot.
    ///
    /// `Some(true)`: the state in memory has changed.
    pub(super) fn settle(&mut self, seen: &CellSnapshot, theirs: Option<&Record>, meeting: &Meeting) -> Option<bool> {
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
            Meeting::Known | Meeting::Apart { .. } => {}
            Meeting::Kept { .. } => durable.base = None,
            Meeting::Ours { generation, state } => {
                durable.written = *generation;
                durable.base = state.clone();
            }
            Meeting::Unreadable { .. } => {
                durable.unread = theirs.map(|record| unread(&durable.target, record));
                durable.base = None;
            }
            Meeting::Theirs(state) => {
                self.state = state.clone();
                self.generation += 1;
                durable.written = self.generation;
                durable.base = state.clone();
            }
            Meeting::United { state, theirs } => {
                self.state = Some(state.clone());
                self.generation += 1;
                durable.base = Some(theirs.clone());
            }
        }
        Some(matches!(meeting, Meeting::Theirs(_) | Meeting::United { .. }))
    }
}

/// An unreadable record, and the key of its backup.
fn unread(target: &ScopedStorage, record: &Record) -> UnreadableRecord {
    UnreadableRecord { backup_key: backup_key(target, record.version), value: record.value.as_slice().into() }
}

impl CellSnapshot {
    pub(super) fn is_dirty(&self) -> bool {
        self.durable.written != self.generation
    }

    pub(super) fn to_dirty(&self, layer: &LayerId) -> Result<DirtyState, String> {
        let record = self.state.as_ref().map(encode_record).transpose()?;
        Ok(DirtyState {
            layer: layer.clone(),
            key: state_key(&self.durable.target),
            expected: self.durable.version,
            state: self.state.clone(),
            record: record.map(Arc::from),
            unread: self.durable.unread.clone(),
            generation: self.generation,
        })
    }

    /// Compares the state with the stored one.
    pub(super) fn meet(&self, theirs: Option<&Record>) -> Meeting {
        let unchanged = self.durable.apart && !self.is_dirty();
        if unchanged || self.durable.version == theirs.map(|record| record.version) {
            return Meeting::Known;
        }
        let value = theirs.map(|record| record.value.as_slice());
        if let Some((generation, state)) = self.wrote(value) {
            return Meeting::Ours { generation, state };
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

    /// The generation of our write that produced the record, and what it wrote, if it was ours.
    fn wrote(&self, value: Option<&[u8]>) -> Option<(u64, Option<StateValue>)> {
        let same = |record: &Doubtful| record.record.as_deref() == value;
        if let Some(doubtful) = self.durable.doubtful.iter().rev().find(|doubtful| same(doubtful)) {
            return Some((doubtful.generation, doubtful.state.clone()));
        }
        // If another writer stored the same state, there is nothing to merge.
        let ours = self.state.as_ref().map(encode_record).transpose().ok()?;
        (ours.as_deref() == value).then(|| (self.generation, self.state.clone()))
    }

    fn unite(&self, theirs: Option<&StateValue>) -> Meeting {
        let kept = |reason: &str| Meeting::Kept { reason: reason.to_owned() };
        let (Some(ours), Some(theirs)) = (&self.state, theirs) else {
            return kept(if theirs.is_some() { "ours clears it" } else { "theirs cleared it" });
        };
        let Some(layer) = &self.durable.layer else { return kept("nobody can unite them") };
        match guard(|| Ok(layer.merge(self.durable.base.as_ref(), ours, theirs))) {
            Ok(Some(state)) => Meeting::United { state, theirs: theirs.clone() },
            Ok(None) => kept("the layer does not merge them"),
            Err(problem) => Meeting::Kept { reason: format!("merging them failed: {problem}") },
        }
    }
}
