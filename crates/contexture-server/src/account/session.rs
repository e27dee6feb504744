//! The requests of one run of a gateway.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tokio::sync::watch;

use crate::account::record::RequestRecord;
use crate::write::Store;

/// Most records kept in memory.
const MAX_RECORDS: usize = 20_000;

/// One run of a gateway.
pub struct Session {
    id: String,
    store: Option<Arc<dyn Store>>,
    records: Mutex<Records>,
    /// Locked while records are written to the store.
    writing: Mutex<()>,
    /// Requests that have finished but are not recorded yet.
    pending: watch::Sender<usize>,
}

#[derive(Default)]
struct Records {
    all: Vec<RequestRecord>,
    /// Those that are not in the store yet, oldest first.
    unwritten: VecDeque<usize>,
}

impl Session {
    /// Starts a run.
    pub fn new(id: String, store: Option<Arc<dyn Store>>) -> Self {
        Self { id, store, records: Mutex::default(), writing: Mutex::default(), pending: watch::Sender::new(0) }
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Announces that a finished request is about to be recorded.
    pub fn expect(&self) {
        self.pending.send_modify(|pending| *pending += 1);
    }

    /// Waits until all finished requests are recorded, for a limited time.
    pub async fn complete(&self, time: Duration) {
        let mut pending = self.pending.subscribe();
        // Those that are not recorded by then are not on the receipt.
        let _ = tokio::time::timeout(time, pending.wait_for(|pending| *pending == 0)).await;
    }

    /// Records a request that was announced with `expect`.
    pub fn note(&self, record: RequestRecord) {
        let mut records = self.lock();
        if records.all.len() < MAX_RECORDS {
            let at = records.all.len();
            records.all.push(record);
            if self.store.is_some() {
                records.unwritten.push_back(at);
            }
            drop(records);
            self.write();
        } else if let Some(store) = &self.store {
            drop(records);
            // There is no room to keep it until the store works again.
            let _ = store.save_request(&record);
        }
        self.pending.send_modify(|pending| *pending -= 1);
    }

    /// Writes all records that are not in the store yet, as far as it can be written. The others stay in this run's
    /// receipt, and are written when the store works again.
    pub fn write(&self) {
        loop {
            let writing = match self.writing.try_lock() {
                Ok(writing) => writing,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // Another thread is writing, and looks again when it is done.
                Err(TryLockError::WouldBlock) => return,
            };
            let is_done = self.write_each();
            drop(writing);
            if !is_done || self.lock().unwritten.is_empty() {
                return;
            }
        }
    }

    /// Returns whether all were written.
    fn write_each(&self) -> bool {
        let Some(store) = &self.store else { return true };
        let next = || {
            let records = self.lock();
            records.unwritten.front().map(|at| records.all[*at].clone())
        };
        while let Some(record) = next() {
            if store.save_request(&record).is_err() {
                return false;
            }
            self.lock().unwritten.pop_front();
        }
        true
    }

    /// The records of its requests, oldest first.
    pub fn records(&self) -> Vec<RequestRecord> {
        let records = self.lock();
        let mut all = records.all.clone();
        for at in &records.unwritten {
            all[*at].is_unsaved = true;
        }
        all
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
