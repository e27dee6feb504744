//! The room for what waits to be written: a budget of bytes for all conversations and records together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most bytes that wait to be written. A hundred streams that all fold at the same time take about a third of it.
const MOST_BYTES: usize = 32 << 20;

/// The room for what waits to be written.
pub(super) struct WriteRoom {
    most: usize,
    taken: AtomicUsize,
}

/// A part of the room, which is free again when this is dropped.
pub(super) struct TakenRoom {
    room: Arc<WriteRoom>,
    bytes: usize,
}

impl WriteRoom {
    /// The room of a store.
    pub(super) fn of_store() -> Arc<Self> {
        Self::of_bytes(MOST_BYTES)
    }

    /// Room for so many bytes.
    pub(super) fn of_bytes(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicUsize::new(0) })
    }

    /// Takes room for so many bytes. `None` if there is not so much; what waits alone always has room.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Option<TakenRoom> {
        self.replace(0, bytes).then(|| TakenRoom { room: self.clone(), bytes })
    }

    /// Whether less than half of it is taken. From then on nothing new is decided; the rest is for what was decided before,
    /// and for the records of requests.
    pub(super) fn is_free(&self) -> bool {
        self.taken() < self.most / 2
    }

    /// How many bytes wait.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes room in place of some that was taken. Returns whether there is so much.
    fn replace(&self, old: usize, new: usize) -> bool {
        let fits = |taken: usize| {
            let others = taken - old;
            (new <= old || others == 0 || others + new <= self.most).then_some(others + new)
        };
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }
}

impl TakenRoom {
    /// Changes how much is taken. Returns `false`, and changes nothing, if there is not so much.
    pub(super) fn resize(&mut self, bytes: usize) -> bool {
        let fits = self.room.replace(self.bytes, bytes);
        if fits {
            self.bytes = bytes;
        }
        fits
    }

    /// How much is taken.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for TakenRoom {
    fn drop(&mut self) {
        self.room.replace(self.bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_for_all_together_and_is_free_again() {
        let room = WriteRoom::of_bytes(100);
        let mut one = room.take(40).unwrap();
        assert!(room.is_free());
        let two = room.take(50).unwrap();
        assert!(!room.is_free() && room.take(20).is_none());
        assert!(!one.resize(60) && one.bytes() == 40, "there is not so much");
        assert!(one.resize(50) && one.resize(10));
        drop(two);
        assert_eq!(room.taken(), 10);
        drop(one);
        assert_eq!(room.taken(), 0);
        assert!(room.take(1_000).is_some(), "what waits alone always has room");
        assert_eq!(room.taken(), 0);
    }
}
