//! What passed through one run of a gateway.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::record::RequestRecord;
use crate::store::Store;

/// Most requests whose records are held in memory.
const MAX_RECORDS: usize = 20_000;

/// One run of a gateway.
pub struct Session {
    id: String,
    store: Option<Arc<Store>>,
    records: Mutex<Vec<RequestRecord>>,
    /// Requests that are over and not noted yet.
    pending: AtomicUsize,
}

impl Session {
    /// A run that begins.
    pub fn new(id: String, store: Option<Arc<Store>>) -> Self {
        Self { id, store, records: Mutex::default(), pending: AtomicUsize::new(0) }
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Says that a request is over and is about to be noted.
    pub fn expect(&self) {
        self.pending.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether all requests that are over are noted.
    pub fn is_complete(&self) -> bool {
        self.pending.load(Ordering::SeqCst) == 0
    }

    /// Notes what became of a request that was expected.
    pub fn note(&self, mut record: RequestRecord) {
        // What cannot be written is still on this run's receipt.
        record.is_unsaved |= self.store.as_ref().is_some_and(|store| store.save_request(&record).is_err());
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() < MAX_RECORDS {
            records.push(record);
        }
        drop(records);
        self.pending.fetch_sub(1, Ordering::SeqCst);
    }

    /// What became of its requests, oldest first.
    pub fn records(&self) -> Vec<RequestRecord> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
