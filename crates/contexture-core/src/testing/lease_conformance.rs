//! The conformance suite for leases of stores.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::manual_clock::ManualClock;
use crate::clock::Clock;
use crate::store::{Batch, Fence, Holder, Lease, LeaseRequest, StorageAdapter, StoreError};

type Store = Arc<dyn StorageAdapter>;

/// The number of competitors for one lease, and of rounds.
const RIVALS: usize = 8;
const ROUNDS: usize = 12;

/// How long the leases of the checks last.
const DURATION: Duration = Duration::from_secs(30);

/// Checks the leases of a store with a manual clock.
///
/// `open` is called with a new name for each check, and with the clock by which leases of that store expire.
/// [`store_conformance`](super::store_conformance) checks what needs no clock.
///
/// ```
/// use std::sync::Arc;
/// use contexture_core::store::MemoryStore;
/// use contexture_core::testing::lease_conformance;
///
/// # tokio::runtime::Builder::new_multi_thread().build().expect("a runtime").block_on(async {
/// lease_conformance(async |_name, clock| Arc::new(MemoryStore::with_clock(clock))).await;
/// # });
/// ```
///
/// # Panics
/// At the first requirement that is not met, with a message that names it.
pub async fn lease_conformance<S: StorageAdapter + 'static>(open: impl AsyncFn(&str, Arc<dyn Clock>) -> Arc<S>) {
    let clock = ManualClock::new();
    let open = async |name: &str| -> Store {
        let store: Store = open(name, Arc::new(clock.clone())).await;
        store
    };
    a_lease_runs_out(open("lease-ends").await, &clock).await;
    a_paused_holder_writes_nothing(open("lease-paused").await, &clock).await;
    renewing_keeps_it(open("lease-renewed").await, &clock).await;
    dropping_a_lost_lease_harms_nobody(open("lease-late-drop").await, &clock).await;
    one_rival_takes_it_over(open("lease-take-over").await, &clock).await;
}

/// The checks that need no clock.
pub(super) async fn leases_are_kept(open: impl AsyncFn(&str) -> Store) {
    a_lease_has_one_holder(open("lease").await).await;
    a_fence_guards_a_batch(open("lease-fence").await).await;
    leases_and_records_never_meet(open("lease-records").await).await;
    one_rival_gets_it(open("lease-rivals").await).await;
}

async fn a_lease_has_one_holder(store: Store) {
    let first = acquired(&store, "a", "first").await;
    let holder = held(store.acquire_lease(request("a", "second")).await, "while it is held");
    assert_eq!((&*holder.key, &*holder.owner), ("a", "first"), "who asks for a lease that is held must be told whose");
    assert_eq!(holder.expires_at.is_some(), holder.remaining.is_some(), "an end and the time until then go together");
    let other = acquired(&store, "b", "second").await;
    assert!(first.fence() != other.fence(), "leases on two keys must differ");
    renewed(&store, first.fence()).await;
    let token = first.fence().token;
    let fence = first.fence().clone();
    drop(first);
    lost(store.renew_lease(&fence, DURATION).await, "a lease that was dropped must not be renewed");
    let second = acquired(&store, "a", "second").await;
    assert!(second.fence().token > token, "of two leases on one key the later must have the higher token");
    drop(other);
    held(store.acquire_lease(request("a", "third")).await, "though a lease on another key was dropped");
    for key in ["", "a/b", "a\0", "日本", "'; DROP TABLE leases; --"] {
        drop(acquired(&store, key, "odd \0 owner").await);
    }
}

async fn a_fence_guards_a_batch(store: Store) {
    let lease = acquired(&store, "a", "first").await;
    let fenced = |fence: &Fence, value: u8| Batch::new().fenced(Some(fence.clone())).set("record", [value]);
    applied(&store, fenced(lease.fence(), 1)).await;
    let fence = lease.fence().clone();
    let wrong_token = Fence { token: fence.token + 1, ..fence.clone() };
    let wrong_key = Fence { key: "b".to_owned(), ..fence.clone() };
    for wrong in [wrong_token, wrong_key] {
        lost(store.apply(fenced(&wrong, 2)).await.map(drop), "a batch under a lease that nobody holds must be refused");
    }
    let conflicting = fenced(&fence, 3).expect("record", None);
    let answer = store.apply(conflicting).await;
    assert!(matches!(answer, Err(StoreError::Conflict { .. })), "a fence does not replace expectations");
    drop(lease);
    let late = fenced(&fence, 4).expect("record", None);
    lost(store.apply(late).await.map(drop), "a batch must be refused once its lease was dropped, before all else");
    let next = acquired(&store, "a", "second").await;
    lost(store.apply(fenced(&fence, 5)).await.map(drop), "a batch under the lease before must be refused");
    assert_eq!(value(&store, "record").await, Some(vec![1]), "a batch that is refused must change nothing");
    applied(&store, fenced(next.fence(), 6)).await;
    applied(&store, Batch::new().set("record", [7])).await;
    assert_eq!(value(&store, "record").await, Some(vec![7]), "a batch without a fence needs no lease");
}

async fn leases_and_records_never_meet(store: Store) {
    let lease = acquired(&store, "a", "first").await;
    let keys = store.list("").await.expect("a store that works");
    assert_eq!(keys, [""; 0], "a lease must not be listed among records");
    let batch = Batch::new().fenced(Some(lease.fence().clone())).expect("a", None).set("a", *b"record").delete("a");
    applied(&store, batch).await;
    applied(&store, Batch::new().fenced(Some(lease.fence().clone()))).await;
}

async fn one_rival_gets_it(store: Store) {
    for round in 0..ROUNDS {
        let mut rivals = JoinSet::new();
        for rival in 0..RIVALS {
            let store = store.clone();
            rivals.spawn(async move { store.acquire_lease(request("prize", &format!("rival {rival}"))).await });
        }
        check_one_won(rivals.join_all().await, round);
    }
}

async fn a_lease_runs_out(store: Store, clock: &ManualClock) {
    let first = acquired(&store, "a", "first").await;
    clock.advance(DURATION / 3);
    let holder = held(store.acquire_lease(request("a", "second")).await, "before it has run out");
    assert_eq!(holder.remaining, Some(DURATION * 2 / 3), "who asks must be told how long the lease still lasts");
    assert_eq!(holder.expires_at, Some(clock.now() + DURATION * 2 / 3), "the end must be by the store's clock");
    clock.advance(DURATION * 2 / 3 - Duration::from_millis(1));
    held(store.acquire_lease(request("a", "second")).await, "a millisecond before its end");
    clock.advance(Duration::from_millis(1));
    let second = acquired(&store, "a", "second").await;
    assert!(second.fence().token > first.fence().token, "who takes a lease over must get a higher token");
}

async fn a_paused_holder_writes_nothing(store: Store, clock: &ManualClock) {
    let paused = acquired(&store, "a", "paused").await;
    let batch = || Batch::new().fenced(Some(paused.fence().clone())).set("record", *b"paused");
    clock.advance(DURATION);
    lost(store.apply(batch()).await.map(drop), "a batch must be refused once its lease has run out");
    renewed(&store, paused.fence()).await;
    applied(&store, batch()).await;
    applied(&store, Batch::new().set("record", *b"before")).await;
    clock.advance(DURATION);
    let next = acquired(&store, "a", "next").await;
    lost(store.apply(batch()).await.map(drop), "a batch must be refused once somebody else has its lease");
    lost(store.renew_lease(paused.fence(), DURATION).await, "a lease that somebody else has must not be renewed");
    assert_eq!(value(&store, "record").await, Some(b"before".to_vec()), "a holder that came late must change nothing");
    drop(next);
    lost(store.apply(batch()).await.map(drop), "a lease that was taken over must not come back when it is free again");
    lost(store.renew_lease(paused.fence(), DURATION).await, "nor may it be renewed");
}

async fn renewing_keeps_it(store: Store, clock: &ManualClock) {
    let lease = acquired(&store, "a", "first").await;
    for _ in 0..5 {
        clock.advance(DURATION * 2 / 3);
        renewed(&store, lease.fence()).await;
        held(store.acquire_lease(request("a", "second")).await, "since it was renewed in time");
    }
    clock.advance(DURATION * 2 / 3);
    applied(&store, Batch::new().fenced(Some(lease.fence().clone())).set("record", *b"1")).await;
}

async fn dropping_a_lost_lease_harms_nobody(store: Store, clock: &ManualClock) {
    let first = acquired(&store, "a", "first").await;
    clock.advance(DURATION);
    let second = acquired(&store, "a", "second").await;
    drop(first);
    // A store may release a dropped lease later; even then it must not release the next one.
    for _ in 0..3 {
        held(store.acquire_lease(request("a", "third")).await, "though the lease before it was dropped late");
    }
    applied(&store, Batch::new().fenced(Some(second.fence().clone())).set("record", *b"1")).await;
}

async fn one_rival_takes_it_over(store: Store, clock: &ManualClock) {
    let mut before = acquired(&store, "prize", "first").await;
    for round in 0..ROUNDS {
        clock.advance(DURATION);
        let mut rivals = JoinSet::new();
        for rival in 0..RIVALS {
            let store = store.clone();
            rivals.spawn(async move { store.acquire_lease(request("prize", &format!("rival {rival}"))).await });
        }
        let fence = before.fence().clone();
        before = check_one_won(rivals.join_all().await, round);
        assert!(before.fence().token > fence.token, "who takes a lease over must get a higher token");
        lost(store.renew_lease(&fence, DURATION).await, "the lease before must be lost");
    }
}

#[track_caller]
fn check_one_won(answers: Vec<Result<Lease, StoreError>>, round: usize) -> Lease {
    let mut won = Vec::new();
    for answer in answers {
        match answer {
            Ok(lease) => won.push(lease),
            Err(StoreError::Held(_)) => {}
            Err(error) => panic!("a rival must get the lease or be told who has it (round {round}): {error}"),
        }
    }
    assert_eq!(won.len(), 1, "of {RIVALS} who ask for one lease, exactly one must get it (round {round})");
    won.remove(0)
}

fn request(key: &str, owner: &str) -> LeaseRequest {
    LeaseRequest { key: key.to_owned(), owner: owner.to_owned(), duration: DURATION }
}

async fn acquired(store: &Store, key: &str, owner: &str) -> Lease {
    let answer = store.acquire_lease(request(key, owner)).await;
    answer.unwrap_or_else(|error| panic!("a lease on {key:?} that nobody holds must be given: {error}"))
}

async fn renewed(store: &Store, fence: &Fence) {
    let answer = store.renew_lease(fence, DURATION).await;
    answer.unwrap_or_else(|error| panic!("a lease that nobody else has taken must be renewed: {error}"));
}

async fn applied(store: &Store, batch: Batch) {
    let answer = store.apply(batch).await;
    answer.unwrap_or_else(|error| panic!("a batch under a lease that is held must be applied: {error}"));
}

async fn value(store: &Store, key: &str) -> Option<Vec<u8>> {
    store.get(key).await.expect("a store that works").map(|record| record.value)
}

#[track_caller]
fn held(answer: Result<Lease, StoreError>, when: &str) -> Holder {
    match answer {
        Err(StoreError::Held(holder)) => *holder,
        Err(error) => panic!("a second lease must be refused as held {when}; the result was: {error}"),
        Ok(_) => panic!("a second lease must be refused as held {when}; it was given"),
    }
}

#[track_caller]
fn lost(answer: Result<(), StoreError>, duty: &str) {
    match answer {
        Err(StoreError::LeaseLost { .. }) => {}
        Err(error) => panic!("{duty}; the result was: {error}"),
        Ok(()) => panic!("{duty}; it was done"),
    }
}
