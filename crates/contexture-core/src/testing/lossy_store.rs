//! A store that simulates power cuts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::oneshot;

use crate::store::{Batch, Fence, Lease, LeaseRequest, MemoryStore, Record, StorageAdapter, StoreError, Version};

/// A store that simulates a power cut at any write, to see what a restart would find.
///
/// A batch is first in flight, then synced, then acknowledged. Readers see only what is synced. By default
/// every batch is synced at once, so the store behaves like any other until [`cut_power_at`](Self::cut_power_at)
/// or [`crash`](Self::crash); between [`hold`](Self::hold) and [`sync`](Self::sync) batches stay in flight and
/// their callers wait.
///
/// ```
/// use contexture_core::store::StorageAdapter;
/// use contexture_core::testing::{InFlight, LossyStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = LossyStore::new();
/// store.cut_power_at(2);
/// store.set("a", b"1".to_vec()).await?;
/// assert!(store.set("a", b"2".to_vec()).await.is_err());
///
/// let after_restart = store.crash(InFlight::Lost);
/// assert_eq!(after_restart.get("a").await?.expect("the first write was acknowledged").value, b"1");
/// # Ok::<(), contexture_core::store::StoreError>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct LossyStore {
    disk: Arc<MemoryStore>,
    state: Mutex<State>,
}

/// What happens to batches that were in flight at the power cut. Each is kept or lost as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// None of them had reached the disk.
    Lost,
    /// All of them had reached the disk without being acknowledged.
    Kept,
}

#[derive(Default)]
struct State {
    writes: u64,
    held: bool,
    off: bool,
    cut_at: Option<u64>,
    in_flight: Vec<Flight>,
}

/// A batch that is not synced yet, and its caller.
struct Flight {
    batch: Batch,
    answer: oneshot::Sender<Result<Version, StoreError>>,
}

/// The source of every error after the power cut.
#[derive(Debug, thiserror::Error)]
#[error("the power is off")]
struct PowerOff;

impl LossyStore {
    /// An empty store that syncs every batch at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// A store with the contents of `disk`, to continue after a [`crash`](Self::crash).
    pub fn on(disk: Arc<MemoryStore>) -> Self {
        Self { disk, state: Mutex::default() }
    }

    /// From now on batches stay in flight until [`sync`](Self::sync).
    pub fn hold(&self) {
        self.state().held = true;
    }

    /// Syncs all batches in flight, in order, and acknowledges them.
    ///
    /// Does nothing once the power is off.
    pub fn sync(&self) {
        let mut state = self.state();
        if !state.off {
            self.sync_all(&mut state);
        }
    }

    /// Plans a power cut during write `number` (the first is 1), which stays in flight.
    ///
    /// That write and every later operation return [`StoreError::Io`].
    pub fn cut_power_at(&self, number: u64) {
        self.state().cut_at = Some(number);
    }

    /// The number of writes that were started.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// The number of batches in flight.
    pub fn in_flight(&self) -> usize {
        self.state().in_flight.len()
    }

    /// Cuts the power now, if it is not off yet, and returns the store that a restart finds.
    ///
    /// Callers that wait for a sync get [`StoreError::Io`], as does every later operation.
    pub fn crash(&self, in_flight: InFlight) -> Arc<MemoryStore> {
        let mut state = self.state();
        state.off = true;
        for Flight { mut batch, answer } in state.in_flight.drain(..) {
            if in_flight == InFlight::Kept {
                // It reached the disk while its lease was held, even if that was released since.
                batch.fence = None;
                // A batch with a conflict would not have reached the disk; its caller is gone either way.
                let _ = self.write(batch);
            }
            // The receiver is gone if the power was cut while this batch was written.
            let _ = answer.send(Err(power_off("write")));
        }
        // All holders of leases died with the power cut.
        self.disk.forget_leases();
        self.disk.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing can panic while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_power(&self, doing: &str) -> Result<(), StoreError> {
        if self.state().off { Err(power_off(doing)) } else { Ok(()) }
    }

    /// Puts a batch in flight, and syncs it unless batches are held or the power is cut.
    fn begin(&self, batch: Batch) -> Result<oneshot::Receiver<Result<Version, StoreError>>, StoreError> {
        let mut state = self.state();
        if state.off {
            return Err(power_off("write"));
        }
        state.writes += 1;
        let (answer, answered) = oneshot::channel();
        state.in_flight.push(Flight { batch, answer });
        if state.cut_at.is_some_and(|number| state.writes >= number) {
            state.off = true;
            return Err(power_off("write"));
        }
        if !state.held {
            self.sync_all(&mut state);
        }
        Ok(answered)
    }

    fn sync_all(&self, state: &mut State) {
        for Flight { batch, answer } in state.in_flight.drain(..) {
            // The receiver is gone if the caller was dropped; the batch is durable all the same.
            let _ = answer.send(self.write(batch));
        }
    }

    fn write(&self, batch: Batch) -> Result<Version, StoreError> {
        self.disk.apply(batch).now_or_never().expect("a store in memory never waits")
    }
}

fn power_off(doing: &str) -> StoreError {
    StoreError::Io { doing: doing.to_owned(), source: PowerOff.into() }
}

impl StorageAdapter for LossyStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            self.check_power("read")?;
            self.disk.get(key).await
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            self.check_power("read")?;
            self.disk.list(prefix).await
        })
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        Box::pin(async move {
            let answered = self.begin(batch)?;
            answered.await.unwrap_or_else(|_| Err(power_off("write")))
        })
    }

    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(async move {
            self.check_power("read")?;
            self.disk.get_many(keys).await
        })
    }

    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(async move {
            self.check_power("take a lease")?;
            self.disk.acquire_lease(request).await
        })
    }

    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.check_power("renew a lease")?;
            self.disk.renew_lease(fence, duration).await
        })
    }
}
