//! A store that forgets everything when it is dropped.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::future::{BoxFuture, ready};

use super::{Batch, Change, MAX_KEY_BYTES, Record, StorageAdapter, StoreError, Version};

/// Keeps records in memory: for tests, and for agents that need no past.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    records: BTreeMap<String, Record>,
    version: u64,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        // A panic cannot leave the map half changed: every change is checked before it is made.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Inner {
    fn apply(&mut self, batch: Batch) -> Result<Version, StoreError> {
        for change in &batch.changes {
            let (Change::Set { key, .. } | Change::Delete { key }) = change;
            if key.len() > MAX_KEY_BYTES {
                return Err(StoreError::key_too_long(key));
            }
        }
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
}
