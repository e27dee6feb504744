//! The in-memory store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};

use super::{
    Batch, Change, Fence, Lease, LeaseRequest, LeaseTable, MAX_KEY_BYTES, Record, StorageAdapter, StoreError, Version,
};
use crate::clock::Clock;

/// A store in memory, for tests and for agents that need no durable state.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<MemoryRecords>,
}

#[derive(Debug, Default)]
struct MemoryRecords {
    records: BTreeMap<String, Record>,
    version: u64,
    leases: LeaseTable,
}

impl MemoryStore {
    /// An empty store without a clock: a lease ends only when it is dropped.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store whose leases expire by this clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let leases = LeaseTable::with_clock(clock);
        Self { inner: Mutex::new(MemoryRecords { leases, ..MemoryRecords::default() }) }
    }

    /// Releases all leases, as after a crash of the process.
    pub fn forget_leases(&self) {
        self.inner().leases.clear();
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, MemoryRecords> {
        // A panic cannot leave the map half changed: every change is checked before it is made.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl MemoryRecords {
    fn apply(&mut self, batch: Batch) -> Result<Version, StoreError> {
        for change in &batch.changes {
            let (Change::Set { key, .. } | Change::Delete { key }) = change;
            if key.len() > MAX_KEY_BYTES {
                return Err(StoreError::key_too_long(key));
            }
        }
        self.leases.check(batch.fence.as_ref())?;
        for expectation in batch.expectations {
            let found = self.records.get(&expectation.key).map(|record| record.version);
            if found != expectation.version {
                return Err(StoreError::Conflict { key: expectation.key });
            }
        }
        self.version += 1;
        let version = Version(self.version);
        for change in batch.changes {
            match change {
                Change::Set { key, value } => drop(self.records.insert(key, Record { value, version })),
                Change::Delete { key } => drop(self.records.remove(&key)),
            }
        }
        Ok(version)
    }
}

impl StorageAdapter for MemoryStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(ready(Ok(self.inner().records.get(key).cloned())))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        let inner = self.inner();
        let keys = inner.records.range(prefix.to_owned()..).map(|(key, _)| key);
        Box::pin(ready(Ok(keys.take_while(|key| key.starts_with(prefix)).cloned().collect())))
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        Box::pin(ready(self.inner().apply(batch)))
    }

    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        let inner = self.inner();
        Box::pin(ready(Ok(keys.iter().map(|key| inner.records.get(key).cloned()).collect())))
    }

    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(ready(self.inner().leases.acquire(request)))
    }

    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(ready(self.inner().leases.renew(fence, duration)))
    }
}
