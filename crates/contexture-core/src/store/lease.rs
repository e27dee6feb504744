//! Leases: the exclusive right to write, for a limited time.
//!
//! A lease has an owner, a token that no other lease of the store has, and an expiry by the store's clock. Its holder
//! names it in batches ([`Batch::fenced`](super::Batch::fenced)); once it has expired or another owner has it, the store
//! refuses them.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::StoreError;
use crate::clock::Clock;

/// A request for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The key to hold.
    pub key: String,
    /// The owner, as shown to others who request the same lease.
    pub owner: String,
    /// How long it lasts unless it is renewed.
    pub duration: Duration,
}

/// Identifies a lease in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The key that is held.
    pub key: String,
    /// The token of the lease. Of two leases on one key, the later has the higher one.
    pub token: u64,
}

/// A held lease. Dropping it releases it at once, and so does the end of the process.
pub struct Lease {
    fence: Fence,
    /// Releases the lease in the store when it is dropped.
    _hold: Box<dyn Any + Send + Sync>,
}

impl Lease {
    /// Creates a lease that ends when `hold` is dropped.
    pub fn new(fence: Fence, hold: impl Any + Send + Sync) -> Self {
        Self { fence, _hold: Box::new(hold) }
    }

    /// Returns the fence that batches name.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("fence", &self.fence).finish_non_exhaustive()
    }
}

/// The current holder of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The key that is held.
    pub key: String,
    /// Its owner.
    pub owner: String,
    /// When it expires by the store's clock, since the Unix epoch; `None` if the store has no clock.
    pub expires_at: Option<Duration>,
    /// The time until then, by the same clock.
    pub remaining: Option<Duration>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` holds it", self.owner)?;
        match self.remaining {
            Some(remaining) => write!(f, " for another {:.1} s unless it is renewed", remaining.as_secs_f64()),
            None => write!(f, " until it lets go"),
        }
    }
}

/// The leases of a store that is used by one process only: they end with the process.
///
/// Clones share one table. A store calls [`acquire`](Self::acquire) and [`check`](Self::check) while holding its write
/// lock, so that no lease is given between the check and the write.
///
/// ```
/// use std::time::Duration;
/// use contexture_core::store::{LeaseRequest, LeaseTable, StoreError};
///
/// let leases = LeaseTable::new();
/// let request = |owner: &str| LeaseRequest {
///     key: "thread".to_owned(),
///     owner: owner.to_owned(),
///     duration: Duration::from_secs(30),
/// };
/// let lease = leases.acquire(request("first"))?;
/// assert!(matches!(leases.acquire(request("second")), Err(StoreError::Held(holder)) if holder.owner == "first"));
/// leases.check(Some(lease.fence()))?;
/// drop(lease);
/// assert!(leases.acquire(request("second")).is_ok());
/// # Ok::<(), StoreError>(())
/// ```
#[derive(Clone, Default)]
pub struct LeaseTable {
    rows: Arc<Mutex<LeaseRows>>,
    clock: Option<Arc<dyn Clock>>,
}

#[derive(Default)]
struct LeaseRows {
    last_token: u64,
    by_key: BTreeMap<String, LeaseEntry>,
}

struct LeaseEntry {
    owner: String,
    token: u64,
    expires_at: Option<Duration>,
}

/// Releases a lease when it is dropped.
struct MemoryLease {
    rows: Arc<Mutex<LeaseRows>>,
    fence: Fence,
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        let mut rows = lock(&self.rows);
        if rows.by_key.get(&self.fence.key).is_some_and(|row| row.token == self.fence.token) {
            rows.by_key.remove(&self.fence.key);
        }
    }
}

fn lock(rows: &Mutex<LeaseRows>) -> MutexGuard<'_, LeaseRows> {
    // Nothing that can panic happens while the rows are locked.
    rows.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LeaseTable {
    /// A table without a clock: leases end only when they are dropped.
    pub fn new() -> Self {
        Self::default()
    }

    /// A table whose leases expire by this clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { rows: Arc::default(), clock: Some(clock) }
    }

    /// Acquires the lease.
    ///
    /// # Errors
    /// [`StoreError::Held`] if another owner holds it.
    pub fn acquire(&self, request: LeaseRequest) -> Result<Lease, StoreError> {
        let now = self.now();
        let mut rows = lock(&self.rows);
        if let Some(row) = rows.by_key.get(&request.key).filter(|row| !row.has_ended(now)) {
            return Err(StoreError::Held(Box::new(row.holder(request.key, now))));
        }
        rows.last_token += 1;
        let token = rows.last_token;
        let expires_at = now.map(|now| now.saturating_add(request.duration));
        rows.by_key.insert(request.key.clone(), LeaseEntry { owner: request.owner, token, expires_at });
        let fence = Fence { key: request.key, token };
        Ok(Lease::new(fence.clone(), MemoryLease { rows: self.rows.clone(), fence }))
    }

    /// Extends a lease to `duration` from now, also an expired one if nobody else has acquired it.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if another owner has it, or if it was released.
    pub fn renew(&self, fence: &Fence, duration: Duration) -> Result<(), StoreError> {
        let expires_at = self.now().map(|now| now.saturating_add(duration));
        let mut rows = lock(&self.rows);
        match rows.by_key.get_mut(&fence.key).filter(|row| row.token == fence.token) {
            Some(row) => row.expires_at = expires_at,
            None => return Err(StoreError::LeaseLost { key: fence.key.clone() }),
        }
        Ok(())
    }

    /// Checks that a batch with this fence may be applied now.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] if the lease has expired, was released, or another owner has it.
    pub fn check(&self, fence: Option<&Fence>) -> Result<(), StoreError> {
        let Some(fence) = fence else { return Ok(()) };
        let now = self.now();
        match lock(&self.rows).by_key.get(&fence.key) {
            Some(row) if row.token == fence.token && !row.has_ended(now) => Ok(()),
            _ => Err(StoreError::LeaseLost { key: fence.key.clone() }),
        }
    }

    /// Releases all leases, as if all owners had died.
    pub fn clear(&self) {
        lock(&self.rows).by_key.clear();
    }

    fn now(&self) -> Option<Duration> {
        self.clock.as_ref().map(|clock| clock.now())
    }
}

impl LeaseEntry {
    fn has_ended(&self, now: Option<Duration>) -> bool {
        self.expires_at.zip(now).is_some_and(|(expires_at, now)| expires_at <= now)
    }

    fn holder(&self, key: String, now: Option<Duration>) -> Holder {
        let remaining = self.expires_at.zip(now).map(|(expires_at, now)| expires_at.saturating_sub(now));
        Holder { key, owner: self.owner.clone(), expires_at: self.expires_at, remaining }
    }
}

impl fmt::Debug for LeaseTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseTable").field("held", &lock(&self.rows).by_key.len()).finish_non_exhaustive()
    }
}
