//! What waits to be written to the file: one state for each conversation, of which the newest replaces the older, and one
//! record for each request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::account::record::RequestRecord;
use crate::conversation::folder::FolderSnapshot;
use crate::write::error::StoreError;
use crate::write::room::{TakenRoom, WriteRoom};
use crate::write::saving::{PendingWrite, RecordPlace, Saving, Writing};

/// What waits to be written.
pub(super) struct PendingWrites {
    room: Arc<WriteRoom>,
    waiting: Mutex<WaitingWrites>,
}

#[derive(Default)]
struct WaitingWrites {
    conversations: HashMap<Arc<str>, PendingConversation>,
    /// By the names of their places.
    records: HashMap<String, PendingRecord>,
}

/// What is new about a conversation.
pub(super) struct PendingConversation {
    /// Its newest state, if that is new.
    pub(super) saving: Option<Box<Saving>>,
    /// The newest snapshot of its folder, if there is a new one.
    pub(super) snapshot: Option<Arc<FolderSnapshot>>,
    /// Those who wait for this state, or for one that it has replaced.
    pub(super) writings: Vec<Writing>,
    /// Kept for as long as all of this is in memory.
    room: TakenRoom,
}

/// The record of a request.
pub(super) struct PendingRecord {
    pub(super) place: Arc<RecordPlace>,
    pub(super) record: Arc<RequestRecord>,
    /// Those who wait for it, or for one that it has replaced.
    pub(super) writings: Vec<Writing>,
    /// Kept for as long as it waits.
    _room: TakenRoom,
}

/// What became of something that is to be written.
pub(super) enum PutOutcome {
    /// It waits, and the thread that writes is to be told.
    Waits,
    /// It has replaced something that waits.
    Replaces,
    /// There is no room.
    Full,
}

impl PendingWrites {
    /// Nothing waits.
    pub(super) fn new(room: Arc<WriteRoom>) -> Self {
        Self { room, waiting: Mutex::default() }
    }

    /// The room of what waits.
    pub(super) fn room(&self) -> &WriteRoom {
        &self.room
    }

    /// Adds the newest state of a conversation.
    pub(super) fn put_state(&self, saving: Saving) -> (PutOutcome, PendingWrite) {
        let (writing, written) = PendingWrite::pending();
        let mut waiting = self.lock();
        let id = saving.beginning.id.clone();
        if let Some(pending) = waiting.conversations.get_mut(&id) {
            if !pending.replace(saving) {
                return (PutOutcome::Full, PendingWrite::failed(StoreError::Full));
            }
            pending.writings.push(writing);
            return (PutOutcome::Replaces, written);
        }
        let Some(room) = self.room.take(saving.bytes()) else {
            return (PutOutcome::Full, PendingWrite::failed(StoreError::Full));
        };
        let (saving, writings) = (Some(Box::new(saving)), vec![writing]);
        waiting.conversations.insert(id, PendingConversation { saving, snapshot: None, writings, room });
        (PutOutcome::Waits, written)
    }

    /// Adds the newest snapshot of a conversation's folder.
    pub(super) fn put_snapshot(&self, id: &Arc<str>, snapshot: &Arc<FolderSnapshot>) -> PutOutcome {
        let mut waiting = self.lock();
        let bytes = snapshot.rest.as_bytes().len();
        if let Some(pending) = waiting.conversations.get_mut(id) {
            let old = pending.snapshot.as_ref().map_or(0, |old| old.rest.as_bytes().len());
            if !pending.room.resize(pending.room.bytes() - old + bytes) {
                return PutOutcome::Full;
            }
            pending.snapshot = Some(snapshot.clone());
            return PutOutcome::Replaces;
        }
        let Some(room) = self.room.take(bytes) else { return PutOutcome::Full };
        let snapshot = Some(snapshot.clone());
        waiting
            .conversations
            .insert(id.clone(), PendingConversation { saving: None, snapshot, writings: Vec::new(), room });
        PutOutcome::Waits
    }

    /// Adds the record of a request, in place of an older one.
    pub(super) fn put_record(
        &self,
        place: &Arc<RecordPlace>,
        record: Arc<RequestRecord>,
    ) -> (PutOutcome, PendingWrite) {
        let (writing, written) = PendingWrite::pending();
        let mut waiting = self.lock();
        if let Some(pending) = waiting.records.get_mut(&place.id) {
            // It is hardly larger than the one before.
            pending.record = record;
            pending.writings.push(writing);
            return (PutOutcome::Replaces, written);
        }
        let Some(room) = self.room.take(record.bytes()) else {
            return (PutOutcome::Full, PendingWrite::failed(StoreError::Full));
        };
        let pending = PendingRecord { place: place.clone(), record, writings: vec![writing], _room: room };
        waiting.records.insert(place.id.clone(), pending);
        (PutOutcome::Waits, written)
    }

    /// Takes what waits of a conversation.
    pub(super) fn take_conversation(&self, id: &str) -> Option<PendingConversation> {
        self.lock().conversations.remove(id)
    }

    /// Takes the record that waits for a place.
    pub(super) fn take_record(&self, place: &str) -> Option<PendingRecord> {
        self.lock().records.remove(place)
    }

    fn lock(&self) -> MutexGuard<'_, WaitingWrites> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingConversation {
    /// Replaces its state by a newer one, which has everything that is not in the store. Returns `false`, and changes
    /// nothing, if there is no room.
    fn replace(&mut self, saving: Saving) -> bool {
        let old = self.saving.as_ref().map_or(0, |old| old.bytes());
        let texts = self.saving.as_ref().map_or(0, |old| old.texts_bytes());
        if !self.room.resize(self.room.bytes() - old + saving.bytes() + texts) {
            return false;
        }
        self.saving = Some(Box::new(match self.saving.take() {
            Some(old) if !Arc::ptr_eq(&old.mark, &saving.mark) => {
                // What is in memory was read again, because another gateway went on with the conversation.
                old.mark.note_overtaken();
                self.writings.drain(..).for_each(|writing| writing.tell(Err(StoreError::Conflict)));
                saving
            }
            Some(old) if old.after.version > saving.after.version => old.following(saving),
            Some(old) => saving.following(*old),
            None => saving,
        }));
        true
    }
}
