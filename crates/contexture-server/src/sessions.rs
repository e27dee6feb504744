//! The requests of one run of a gateway.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::record::RequestRecord;
use crate::store::Store;

/// Most records kept in memory.
const MAX_RECORDS: usize = 20_000;

/// One run of a gateway.
pub struct Session {
    id: String,
    store: Option<Arc<Store>>,
    records: Mutex<Vec<RequestRecord>>,
    /// Requests that have finished but are not recorded yet.
    pending: AtomicUsize,
}

impl Session {
    /// Starts a run.
    pub fn new(id: String, store: Option<Arc<Store>>) -> Self {
        Self { id, store, records: Mutex::default(), pending: AtomicUsize::new(0) }
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Announces that a finished request is about to be recorded.
    pub fn expect(&self) {
        self.pending.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether all finished requests are recorded.
    pub fn is_complete(&self) -> bool {
        self.pending.load(Ordering::SeqCst) == 0
    }

    /// Records a request that was announced with `expect`.
    pub fn note(&self, mut record: RequestRecord) {
        // A record that cannot be written is still in this run's receipt.
        record.is_unsaved |= self.store.as_ref().is_some_and(|store| store.save_request(&record).is_err());
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() < MAX_RECORDS {
            records.push(record);
        }
        drop(records);
        self.pending.fetch_sub(1, Ordering::SeqCst);
    }

    /// The records of its requests, oldest first.
    pub fn records(&self) -> Vec<RequestRecord> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
