//! Searches of the memory that had not ended when their requests were sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinHandle;

use crate::account::record::DecidedNote;

/// Conversations whose late searches are kept.
const MAX_LATE: usize = 256;

/// What is added after a message.
pub(crate) struct RecalledText {
    /// The text; `None` if it was not found in time.
    pub(crate) text: Option<Arc<str>>,
    /// What the record says about it.
    pub(crate) note: DecidedNote,
}

/// A search that goes on.
pub(super) type LateSearch = JoinHandle<Option<RecalledText>>;

/// The newest of each conversation.
#[derive(Default)]
pub(super) struct LateSearches {
    searches: Mutex<HashMap<Arc<str>, LateSearch>>,
}

impl LateSearches {
    /// The search of a conversation that has ended meanwhile.
    pub(super) fn take(&self, conversation: &str) -> Option<LateSearch> {
        let mut searches = self.lock();
        searches.get(conversation).filter(|search| search.is_finished())?;
        searches.remove(conversation)
    }

    pub(super) fn put(&self, conversation: &Arc<str>, search: LateSearch) {
        let mut searches = self.lock();
        if searches.len() >= MAX_LATE && !searches.contains_key(conversation) {
            searches.clear();
        }
        searches.insert(conversation.clone(), search);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, LateSearch>> {
        self.searches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
