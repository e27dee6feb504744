//! The lease of a running turn: acquired before it begins, renewed while it runs, released when it ends.
//!
//! Every batch of the turn names the lease, so an execution that was paused for too long writes nothing once another
//! has acquired its thread. The lease is released when its holder is dropped or its process ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::core::{Core, JournalPolicy, LeaseSettings, WhenHeld};
use crate::error::{Error, HeldThread};
use crate::id::{ExecutionId, ThreadId};
use crate::state::{WRITE_ATTEMPTS, describe};
use crate::store::{Fence, Holder, Key, Lease, LeaseRequest, StoreError};

/// How often a lease is renewed before it would expire.
const RENEWALS_PER_LEASE: u32 = 3;

/// The pause between two tries to acquire a thread; it doubles each time.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LONGEST_LOOK: Duration = Duration::from_millis(500);

/// The lease of an execution's running turn.
#[derive(Default)]
pub(crate) struct TurnLease(Mutex<Option<Arc<Lease>>>);

/// Releases the lease when it is dropped.
pub(crate) struct LeaseGuard<'a>(&'a TurnLease);

impl Drop for LeaseGuard<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

impl TurnLease {
    fn set(&self, lease: Option<Lease>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = lease.map(Arc::new);
    }

    /// The fence for batches of the turn; `None` outside of turns.
    pub(crate) fn fence(&self) -> Option<Fence> {
        let lease = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lease.as_ref().map(|lease| lease.fence().clone())
    }

    /// Acquires the lease on a thread; it is released when the returned value is dropped.
    ///
    /// A failing store is retried with growing pauses. If it keeps failing, the journal policy decides whether the turn
    /// may run without a lease.
    pub(crate) async fn acquire(
        &self,
        core: &Core,
        execution: &ExecutionId,
        thread: &ThreadId,
        when_held: WhenHeld,
    ) -> Result<LeaseGuard<'_>, Error> {
        let request = request(core, &format!("execution {execution}"), thread);
        let mut failures = 0;
        let mut lease_wait = LeaseWait::new(when_held);
        loop {
            match wait_for(core, &request, &mut lease_wait).await {
                Ok(lease) => {
                    self.set(Some(lease));
                    return Ok(LeaseGuard(self));
                }
                Err(StoreError::Held(holder)) => return Err(held(thread, *holder)),
                Err(error) => {
                    failures += 1;
                    core.fault(execution, None, "lease", describe(&error));
                    if failures < WRITE_ATTEMPTS {
                        core.states.pause(failures - 1).await;
                        continue;
                    }
                    return match core.settings.journal {
                        JournalPolicy::Require => Err(Error::Journal { thread: thread.clone(), source: error }),
                        JournalPolicy::BestEffort => Ok(LeaseGuard(self)),
                    };
                }
            }
        }
    }

    /// Renews the lease, also an expired one, unless another owner has acquired it.
    pub(crate) async fn renew(&self, core: &Core) -> Result<(), StoreError> {
        match self.fence() {
            Some(fence) => core.store.renew_lease(&fence, core.settings.lease.duration).await,
            None => Ok(()),
        }
    }

    /// Renews the lease periodically; returns when it is lost.
    pub(crate) async fn keep(&self, core: &Core, execution: &ExecutionId) {
        loop {
            core.host.clock.sleep_in_background(core.settings.lease.duration / RENEWALS_PER_LEASE).await;
            match self.renew(core).await {
                Ok(()) => {}
                Err(StoreError::LeaseLost { .. }) => return,
                // There is time for another try before it expires.
                Err(error) => core.fault(execution, None, "lease", describe(&error)),
            }
        }
    }
}

/// Takes the lease on a thread for as long as it takes to delete it.
pub(crate) async fn hold_to_delete(core: &Core, thread: &ThreadId) -> Result<Lease, Error> {
    let request = request(core, "an engine that deletes the thread", thread);
    let mut lease_wait = LeaseWait::new(core.settings.lease.when_held);
    wait_for(core, &request, &mut lease_wait).await.map_err(|error| match error {
        StoreError::Held(holder) => held(thread, *holder),
        source => Error::Remove { thread: thread.clone(), source },
    })
}

/// Asks for a lease until it is free or there is no more time to wait.
async fn wait_for(core: &Core, request: &LeaseRequest, lease_wait: &mut LeaseWait) -> Result<Lease, StoreError> {
    loop {
        match core.store.acquire_lease(request.clone()).await {
            Err(StoreError::Held(holder)) => match lease_wait.next_look(&holder) {
                Some(pause) => core.host.clock.sleep(pause).await,
                None => return Err(StoreError::Held(holder)),
            },
            answer => return answer,
        }
    }
}

/// The progress of waiting for a thread.
struct LeaseWait {
    left: Duration,
    pause: Duration,
}

impl LeaseWait {
    fn new(when_held: WhenHeld) -> Self {
        let left = match when_held {
            WhenHeld::Fail => Duration::ZERO,
            WhenHeld::Wait(longest) => longest,
        };
        Self { left, pause: FIRST_LOOK }
    }

    /// The pause before the next try; `None` if the time is up.
    fn next_look(&mut self, holder: &Holder) -> Option<Duration> {
        if self.left.is_zero() {
            return None;
        }
        // Do not sleep past the expiry of the lease, or others would acquire it first.
        let until_end = holder.remaining.unwrap_or(LONGEST_LOOK).max(Duration::from_millis(1));
        let pause = self.pause.min(until_end).min(self.left);
        self.pause = (self.pause * 2).min(LONGEST_LOOK);
        self.left -= pause;
        Some(pause)
    }
}

fn request(core: &Core, who: &str, thread: &ThreadId) -> LeaseRequest {
    let LeaseSettings { duration, owner, .. } = &core.settings.lease;
    let owner = match &**owner {
        "" => who.to_owned(),
        owner => format!("{owner}, {who}"),
    };
    let key = Key::new("threads").then(thread.as_str()).into_string();
    LeaseRequest { key, owner, duration: *duration }
}

fn held(thread: &ThreadId, holder: Holder) -> Error {
    let Holder { owner, expires_at, remaining, .. } = holder;
    Error::Held(Box::new(HeldThread { thread: thread.clone(), owner, expires_at, remaining }))
}
