//! How far conversations were taken into the memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture::recall::PassageReader;

/// Conversations whose place is known without looking into the index.
const MAX_READERS: usize = 256;

type PassageReaders = HashMap<Arc<str>, (usize, PassageReader)>;

/// How many messages of each conversation were taken in, with the reader that goes on.
#[derive(Default)]
pub(super) struct KnownReaders {
    readers: Mutex<PassageReaders>,
}

impl KnownReaders {
    /// The readers, with room for one of this conversation.
    pub(super) fn with_room(&self, conversation: &str) -> MutexGuard<'_, PassageReaders> {
        let mut readers = self.lock();
        if readers.len() >= MAX_READERS && !readers.contains_key(conversation) {
            readers.clear();
        }
        readers
    }

    /// Forgets how far a conversation was taken in: it is looked up again.
    pub(super) fn forget(&self, conversation: &str) {
        self.lock().remove(conversation);
    }

    fn lock(&self) -> MutexGuard<'_, PassageReaders> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
