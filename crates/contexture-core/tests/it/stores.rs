//! The in-memory store, the stores of the test kit, and the conformance suite.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use contexture_core::store::{
    Batch, Change, Fence, Lease, LeaseRequest, MemoryStore, Record, StorageAdapter, StoreError, Version,
};
use contexture_core::testing::{
    FaultyStore, InFlight, LossyStore, durable_store_conformance, lease_conformance, store_conformance,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_in_memory_conforms() {
    store_conformance(async |_| Arc::new(MemoryStore::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_of_the_store_in_memory_conform() {
    lease_conformance(async |_, clock| Arc::new(MemoryStore::with_clock(clock))).await;
    lease_conformance(async |_, clock| Arc::new(FaultyStore::new(Arc::new(MemoryStore::with_clock(clock))))).await;
    lease_conformance(async |_, clock| Arc::new(LossyStore::on(Arc::new(MemoryStore::with_clock(clock))))).await;
}

/// An in-memory store is durable as long as it is not dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_kept_conforms_as_durable() {
    let kept = Mutex::new(HashMap::<String, Arc<MemoryStore>>::new());
    durable_store_conformance(async |name| kept.lock().unwrap().entry(name.to_owned()).or_default().clone()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_of_the_test_kit_conform_while_nothing_is_planned() {
    store_conformance(async |_| Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())))).await;
    store_conformance(async |_| Arc::new(LossyStore::new())).await;
}

/// An in-memory store that breaks one requirement.
struct Broken {
    store: MemoryStore,
    flaw: Flaw,
}

#[derive(Clone, Copy, Debug)]
enum Flaw {
    ForgetsDeletes,
    IgnoresExpectations,
    AppliesBeforeChecking,
    ListsWithoutOrder,
    ListsFoldersOnly,
    AppliesPieceByPiece,
    RepeatsVersions,
    IgnoresFences,
    GivesLeasesToAll,
    KeepsDroppedLeases,
    NeverLosesLeases,
}

impl StorageAdapter for Broken {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            let record = self.store.get(key).await?;
            Ok(record.map(|mut record| {
                record.version = self.shown(record.version);
                record
            }))
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let mut keys = self.store.list(prefix).await?;
            match self.flaw {
                Flaw::ListsWithoutOrder => keys.reverse(),
                Flaw::ListsFoldersOnly => keys.retain(|key| key[prefix.len()..].starts_with('/')),
                _ => {}
            }
            Ok(keys)
        })
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        Box::pin(async move { self.apply_with_flaw(batch).await.map(|version| self.shown(version)) })
    }

    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        Box::pin(async move { futures_util::future::try_join_all(keys.iter().map(|key| self.get(key))).await })
    }

    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(self.lease_with_flaw(request))
    }

    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.renew_lease(fence, duration)
    }
}

impl Broken {
    async fn lease_with_flaw(&self, mut request: LeaseRequest) -> Result<Lease, StoreError> {
        match self.flaw {
            Flaw::GivesLeasesToAll => {
                let fence = Fence { key: request.key.clone(), token: 1 };
                Ok(self.store.acquire_lease(request).await.unwrap_or_else(|_| Lease::new(fence, ())))
            }
            Flaw::KeepsDroppedLeases => {
                let lease = self.store.acquire_lease(request).await?;
                let fence = lease.fence().clone();
                std::mem::forget(lease);
                Ok(Lease::new(fence, ()))
            }
            Flaw::NeverLosesLeases => {
                request.duration = Duration::MAX;
                self.store.acquire_lease(request).await
            }
            _ => self.store.acquire_lease(request).await,
        }
    }

    fn shown(&self, version: Version) -> Version {
        if matches!(self.flaw, Flaw::RepeatsVersions) { Version(1) } else { version }
    }

    async fn apply_with_flaw(&self, mut batch: Batch) -> Result<Version, StoreError> {
        match self.flaw {
            Flaw::ForgetsDeletes => batch.changes.retain(|change| matches!(change, Change::Set { .. })),
            Flaw::IgnoresExpectations | Flaw::RepeatsVersions => batch.expectations.clear(),
            Flaw::AppliesBeforeChecking => {
                let checked = Batch { expectations: std::mem::take(&mut batch.expectations), ..Batch::new() };
                let verdict = self.store.apply(checked).await;
                let applied = self.store.apply(batch).await;
                return verdict.and(applied);
            }
            Flaw::AppliesPieceByPiece => {
                let changes = std::mem::take(&mut batch.changes);
                let mut version = self.store.apply(batch).await?;
                for change in changes {
                    version = self.store.apply(Batch { changes: vec![change], ..Batch::new() }).await?;
                }
                return Ok(version);
            }
            Flaw::IgnoresFences => batch.fence = None,
            _ => {}
        }
        self.store.apply(batch).await
    }
}

#[tokio::test]
async fn the_suite_finds_every_broken_duty() {
    let check = async |flaw: Flaw, expected: &str| {
        let suite = store_conformance(async |_| Arc::new(Broken { store: MemoryStore::new(), flaw }));
        let found = std::panic::AssertUnwindSafe(suite).catch_unwind().await;
        let panic = found.expect_err(&format!("{flaw:?} went unnoticed"));
        let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(message.contains(expected), "{flaw:?} was reported as: {message}");
    };
    check(Flaw::ForgetsDeletes, "`delete` must remove the record").await;
    check(Flaw::IgnoresExpectations, "is the first that is not as expected; it was applied").await;
    check(Flaw::AppliesBeforeChecking, "a batch in conflict must leave records as they were").await;
    check(Flaw::ListsWithoutOrder, "`list` of prefix `a` must be exact").await;
    check(Flaw::ListsFoldersOnly, "`list` of prefix `a` must be exact").await;
    check(Flaw::AppliesPieceByPiece, "the version that `apply` returns").await;
    check(Flaw::RepeatsVersions, "no version may be given twice").await;
    check(Flaw::IgnoresFences, "a batch under a lease that nobody holds must be refused").await;
    check(Flaw::GivesLeasesToAll, "a second lease must be refused as held").await;
    check(Flaw::KeepsDroppedLeases, "a lease that was dropped must not be renewed").await;

    let suite = lease_conformance(async |_, clock| {
        Arc::new(Broken { store: MemoryStore::with_clock(clock), flaw: Flaw::NeverLosesLeases })
    });
    let panic = std::panic::AssertUnwindSafe(suite).catch_unwind().await.expect_err("a lease must run out");
    let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(message.contains("how long the lease still lasts"), "{message}");
}

fn faulty() -> (FaultyStore, Arc<MemoryStore>) {
    let inner = Arc::new(MemoryStore::new());
    (FaultyStore::new(inner.clone()), inner)
}

/// Writes 1, 2, 3, 4, 5 under `a`; returns which of them were acknowledged, and the final value.
async fn five_writes(store: &dyn StorageAdapter, behind: &MemoryStore) -> (Vec<u8>, Option<u8>) {
    let mut acknowledged = Vec::new();
    for n in 1..=5 {
        if store.set("a", vec![n]).await.is_ok() {
            acknowledged.push(n);
        }
    }
    let left = behind.get("a").await.expect("a store in memory never fails");
    (acknowledged, left.map(|record| record.value[0]))
}

#[tokio::test]
async fn a_faulty_store_fails_as_planned() {
    let (store, inner) = faulty();
    store.fail_at(2);
    assert_eq!(five_writes(&store, &inner).await, (vec![1, 3, 4, 5], Some(5)));

    let (store, inner) = faulty();
    store.fail_from(4);
    assert_eq!(five_writes(&store, &inner).await, (vec![1, 2, 3], Some(3)));
    store.heal();
    assert!(store.get("a").await.is_ok());

    let (store, inner) = faulty();
    store.lose_answer_at(5);
    assert_eq!(five_writes(&store, &inner).await, (vec![1, 2, 3, 4], Some(5)));
}

#[tokio::test]
async fn a_faulty_store_counts_and_fails_reads_too() {
    let (store, _) = faulty();
    store.fail_at(3);
    store.get("a").await.unwrap();
    store.set("a", vec![1]).await.unwrap();
    assert!(matches!(store.list("").await, Err(StoreError::Io { .. })));
    store.get_many(&[]).await.unwrap();
    store.delete("a").await.unwrap();
    assert!(matches!(store.compare_and_set("a", Some(Version(9)), vec![]).await, Err(StoreError::Conflict { .. })));
    assert_eq!((store.operations(), store.reads(), store.writes()), (6, 3, 3));
}

#[tokio::test]
async fn a_power_cut_keeps_acknowledged_batches_and_may_keep_batches_in_flight() {
    for (in_flight, left) in [(InFlight::Lost, Some(2)), (InFlight::Kept, Some(3))] {
        let store = LossyStore::new();
        store.cut_power_at(3);
        let (acknowledged, _) = five_writes(&store, &MemoryStore::new()).await;
        assert_eq!(acknowledged, [1, 2]);
        assert!(store.get("a").await.is_err(), "the power is off");
        assert_eq!((store.writes(), store.in_flight()), (3, 1));
        let after_restart = store.crash(in_flight);
        assert_eq!(after_restart.get("a").await.unwrap().map(|record| record.value[0]), left);
        assert_eq!(five_writes(&LossyStore::on(after_restart.clone()), &after_restart).await.1, Some(5));
    }
}

#[tokio::test]
async fn nothing_is_acknowledged_or_seen_before_it_is_synced() {
    let store = LossyStore::new();
    store.hold();
    let mut first = store.set("a", vec![1]);
    let mut second = store.compare_and_set("a", None, vec![2]);
    assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
    assert_eq!((store.in_flight(), store.get("a").await.unwrap()), (2, None));
    store.sync();
    assert!(first.await.is_ok());
    assert!(matches!(second.await, Err(StoreError::Conflict { .. })), "batches arrive in their order");

    let mut third = store.set("a", vec![3]);
    assert!(third.as_mut().now_or_never().is_none());
    let after_restart = store.crash(InFlight::Lost);
    assert!(matches!(third.await, Err(StoreError::Io { .. })));
    assert_eq!(after_restart.get("a").await.unwrap().map(|record| record.value), Some(vec![1]));
}
