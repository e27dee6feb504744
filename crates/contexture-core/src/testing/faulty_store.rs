//! A store that fails as planned and counts operations.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::store::{Batch, Fence, Lease, LeaseRequest, Record, StorageAdapter, StoreError, Version};

/// Wraps a store, counts the operations on it, and fails those that the plan names.
///
/// Every call is one operation (reads, writes and leases, failed or not); the first is number 1. Without a plan it only
/// counts. The plan may be changed at any time, also while the store is in use.
///
/// ```
/// use std::sync::Arc;
/// use contexture_core::store::{MemoryStore, StorageAdapter};
/// use contexture_core::testing::FaultyStore;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = FaultyStore::new(Arc::new(MemoryStore::new()));
/// store.fail_at(2);
/// assert!(store.set("a", b"1".to_vec()).await.is_ok());
/// assert!(store.set("a", b"2".to_vec()).await.is_err());
/// assert_eq!(store.get("a").await?.expect("the first write succeeded").value, b"1");
/// assert_eq!((store.operations(), store.reads(), store.writes()), (3, 1, 2));
/// # Ok::<(), contexture_core::store::StoreError>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FaultyStore {
    inner: Arc<dyn StorageAdapter>,
    books: Mutex<Books>,
}

/// The counters and the plan.
#[derive(Default)]
struct Books {
    reads: u64,
    writes: u64,
    leases: u64,
    faults: BTreeMap<u64, StoreFault>,
    fail_from: Option<u64>,
}

/// How one operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreFault {
    /// It is not done, and returns an error.
    NotDone,
    /// It is done, and still returns an error.
    AnswerLost,
}

/// The source of every planned error.
#[derive(Debug, thiserror::Error)]
#[error("operation {number} failed as planned")]
struct PlannedFailure {
    number: u64,
}

impl FaultyStore {
    /// Wraps `inner`, with no fault planned.
    pub fn new(inner: Arc<dyn StorageAdapter>) -> Self {
        Self { inner, books: Mutex::default() }
    }

    /// Plans that operation `number` is not done and returns [`StoreError::Io`]; the next one succeeds again.
    pub fn fail_at(&self, number: u64) {
        self.books().faults.insert(number, StoreFault::NotDone);
    }

    /// Plans that operation `number` and all after it are not done and return [`StoreError::Io`].
    pub fn fail_from(&self, number: u64) {
        self.books().fail_from = Some(number);
    }

    /// Plans that operation `number` is done, but returns [`StoreError::Io`], as if its result had been lost.
    pub fn lose_answer_at(&self, number: u64) {
        self.books().faults.insert(number, StoreFault::AnswerLost);
    }

    /// Clears the plan: nothing fails from now on.
    pub fn heal(&self) {
        let mut books = self.books();
        books.faults.clear();
        books.fail_from = None;
    }

    /// The number of operations.
    pub fn operations(&self) -> u64 {
        self.books().operations()
    }

    /// The number of reads: `get`, `get_many` and `list`.
    pub fn reads(&self) -> u64 {
        self.books().reads
    }

    /// The number of writes: `apply`, `set`, `delete` and `compare_and_set`.
    pub fn writes(&self) -> u64 {
        self.books().writes
    }

    /// The number of lease operations: `acquire_lease` and `renew_lease`.
    pub fn leases(&self) -> u64 {
        self.books().leases
    }

    /// The wrapped store; direct operations on it are not counted and do not fail.
    pub fn inner(&self) -> &Arc<dyn StorageAdapter> {
        &self.inner
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // Nothing can panic while the lock is held.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a read; the error is the planned one.
    fn begin_read(&self, doing: &str) -> Result<(), StoreError> {
        let mut books = self.books();
        books.reads += 1;
        match books.fault() {
            None => Ok(()),
            Some(_) => Err(planned(doing, books.operations())),
        }
    }

    /// Counts a write; the error is the planned one, or one to return after the write is done.
    fn begin_write(&self, doing: &str) -> Result<Option<StoreError>, StoreError> {
        self.begin(doing, |books| books.writes += 1)
    }

    /// The same for a lease operation.
    fn begin_lease(&self, key: &str) -> Result<Option<StoreError>, StoreError> {
        self.begin(&format!("take the lease on `{key}`"), |books| books.leases += 1)
    }

    fn begin(&self, doing: &str, count: impl FnOnce(&mut Books)) -> Result<Option<StoreError>, StoreError> {
        let mut books = self.books();
        count(&mut books);
        match books.fault() {
            None => Ok(None),
            Some(StoreFault::AnswerLost) => Ok(Some(planned(doing, books.operations()))),
            Some(StoreFault::NotDone) => Err(planned(doing, books.operations())),
        }
    }
}

impl Books {
    fn operations(&self) -> u64 {
        self.reads + self.writes + self.leases
    }

    /// The fault planned for the last counted operation.
    fn fault(&self) -> Option<StoreFault> {
        let number = self.operations();
        let lasting = self.fail_from.filter(|from| number >= *from).map(|_| StoreFault::NotDone);
        lasting.or_else(|| self.faults.get(&number).copied())
    }
}

fn planned(doing: &str, number: u64) -> StoreError {
    StoreError::Io { doing: doing.to_owned(), source: PlannedFailure { number }.into() }
}

impl StorageAdapter for FaultyStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            self.begin_read(&format!("read `{key}`"))?;
            self.inner.get(key).await
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            self.begin_read(&format!("list `{prefix}`"))?;
            self.inner.list(prefix).await
        })
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        Box::pin(async move {
            let lost_answer = self.begin_write(&format!("write {} records", batch.changes.len()))?;
            let applied = self.inner.apply(batch).await;
            match lost_answer {
                Some(error) => Err(error),
                None => applied,
            }
        })
    }

    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(async move {
            self.begin_read(&format!("read {} records", keys.len()))?;
            self.inner.get_many(keys).await
        })
    }

    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(async move {
            let lost_answer = self.begin_lease(&request.key)?;
            let lease = self.inner.acquire_lease(request).await?;
            // A lease whose result is lost is released here, as after a broken connection.
            lost_answer.map_or(Ok(lease), Err)
        })
    }

    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let lost_answer = self.begin_lease(&fence.key)?;
            self.inner.renew_lease(fence, duration).await?;
            lost_answer.map_or(Ok(()), Err)
        })
    }
}
