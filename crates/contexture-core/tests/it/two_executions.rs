//! Two executions on one thread: nothing is lost, nothing is doubled, and a turn has one owner.
//!
//! Turns hold leases, so concurrent work in these tests is outside of turns, or leases fail and the journal policy allows
//! turns all the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use contexture_core::store::{
    Batch, Fence, Lease, LeaseRequest, MemoryStore, Record, StorageAdapter, StoreError, Version,
};
use contexture_core::testing::{FaultyStore, InFlight, LossyStore, ManualClock};
use contexture_core::{Error, Item, LlmResponse, Role};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::processes::{
    Last, Process, Slow, Tally, begin, check_every_call_has_one_output, check_no_doubles, pair, pair_without_leases,
    texts,
};

#[tokio::test]
async fn interleaved_turns_of_two_executions_are_all_there_once_in_one_order() {
    let (store, slow) = (Arc::new(MemoryStore::new()), Slow::new());
    let (ours, theirs) = pair(&store, &slow);
    let (mut first, mut second) = (ours.open().await, theirs.open().await);
    for number in 0..10 {
        ours.model.clone().says(format!("first answer {number}"));
        first.turn(format!("first {number}")).await.unwrap();
        theirs.model.clone().says(format!("second answer {number}"));
        second.turn(format!("second {number}")).await.unwrap();
    }
    let (first_id, second_id) = (first.id().to_string(), second.id().to_string());
    let first_log = texts(first.log());
    first.complete().await.unwrap();
    second.complete().await.unwrap();

    let reopened = theirs.open().await;
    let log = texts(reopened.log());
    let expected: Vec<String> = (0..10)
        .flat_map(|number| {
            let of = |name: &str| [format!("{name} {number}"), format!("{name} answer {number}")];
            [of("first"), of("second")].concat()
        })
        .collect();
    assert_eq!(log, expected);
    assert!(log.starts_with(&first_log));
    assert_eq!(reopened.memory().state::<Tally, _>(), BTreeMap::from([(first_id, 10), (second_id.clone(), 10)]));
    assert_eq!(reopened.memory().state::<Last, _>(), second_id);
    assert!(ours.faults("merge") > 0 && theirs.faults("merge") > 0, "a diagnostic says that the newer won");
}

#[tokio::test]
async fn turns_at_the_same_time_lose_nothing() {
    let (store, slow) = (Arc::new(MemoryStore::new()), Slow::new());
    let (ours, theirs) = pair_without_leases(&store, &slow);
    let (mut first, mut second) = (ours.open().await, theirs.open().await);
    for process in [&ours, &theirs] {
        let name = if std::ptr::eq(process, &ours) { "first" } else { "second" };
        let call = Item::call(&format!("{name}-call"), "slow", "{}");
        let model = process.model.clone();
        model
            .responds(move |_| Ok(LlmResponse { items: vec![call], ..LlmResponse::default() }))
            .says(format!("{name} done"));
    }
    let end = async {
        slow.begun.acquire_many(2).await.unwrap().forget();
        slow.may_end.add_permits(2);
    };
    let (one, two, ()) = tokio::join!(first.turn("first"), second.turn("second"), end);
    assert!(one.unwrap().durable && two.unwrap().durable);
    first.complete().await.unwrap();
    second.complete().await.unwrap();
    let reopened = ours.open().await;
    assert!(!reopened.has_unfinished_turn());
    check_no_doubles(reopened.log());
    check_every_call_has_one_output(reopened.log());
    assert_eq!(reopened.log().len(), 8);
    assert_eq!(reopened.memory().state::<Tally, _>().values().sum::<usize>(), 4);
}

/// The first loses the result of a write; before it retries, the second has written.
#[tokio::test]
async fn a_lost_result_under_the_batch_of_another_is_recognised() {
    let (disk, slow) = (Arc::new(MemoryStore::new()), Slow::new());
    for lost in 1..=2 {
        let store = Arc::new(FaultyStore::new(disk.clone()));
        let ours = Process::new(lost * 10, store.clone(), &slow, ManualClock::new());
        let theirs = Process::new(lost * 10 + 1, disk.clone(), &slow, ManualClock::hurried());
        let (mut first, mut second) = (ours.open().await, theirs.open().await);
        ours.model.clone().says(format!("first answer {lost}"));
        // Before its first write, a turn acquires the lease and reads the head.
        store.lose_answer_at(store.operations() + 2 + lost);
        let interruption = async {
            while ours.clock.sleepers() == 0 {
                tokio::task::yield_now().await;
            }
            second.import([Item::user(format!("second {lost}"))]).await.unwrap();
            ours.clock.advance(Duration::from_secs(1));
        };
        let (answer, ()) = tokio::join!(first.turn(format!("first {lost}")), interruption);
        assert!(answer.unwrap().durable);
        let first_id = first.id().to_string();
        first.complete().await.unwrap();
        second.complete().await.unwrap();
        let reopened = theirs.open().await;
        check_no_doubles(reopened.log());
        assert_eq!(reopened.log().len(), lost as usize * 3);
        let tally = reopened.memory().state::<Tally, _>();
        assert_eq!(tally.get(&first_id), Some(&1));
    }
}

#[tokio::test]
async fn a_commit_that_was_cancelled_in_the_middle_duplicates_nothing() {
    let (store, slow) = (Arc::new(LossyStore::new()), Slow::new());
    let process = Process::new(1, store.clone(), &slow, ManualClock::hurried());
    let mut execution = process.open().await;
    execution.turn("one").await.unwrap();
    store.hold();
    tokio::select! {
        biased;
        _ = execution.turn("two") => panic!("the store holds the batch"),
        () = async {
            while store.in_flight() == 0 {
                tokio::task::yield_now().await;
            }
            store.sync();
        } => {}
    }
    let disk = store.crash(InFlight::Lost);
    let process = Process::new(2, disk, &slow, ManualClock::hurried());
    let reopened = process.open().await;
    assert_eq!(texts(reopened.log()), ["one", "ok", "two"], "it arrived, though nobody was told");
    assert!(reopened.has_unfinished_turn());
}

#[tokio::test]
async fn an_execution_continues_after_its_turn_was_dropped_in_the_middle_of_a_commit() {
    let (disk, slow) = (Arc::new(MemoryStore::new()), Slow::new());
    let store = Arc::new(LossyStore::on(disk.clone()));
    let process = Process::new(1, store.clone(), &slow, ManualClock::hurried());
    let mut execution = process.open().await;
    store.hold();
    {
        let turn = std::pin::pin!(execution.turn("one"));
        let waiting = async {
            while store.in_flight() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! { biased; _ = turn => panic!("the store holds the batch"), () = waiting => {} }
    }
    store.sync();
    let going_on = async {
        loop {
            store.sync();
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { biased; answer = execution.turn("two") => { answer.unwrap(); }, () = going_on => {} }
    assert_eq!(texts(execution.log()), ["one", "two", "ok"]);
    let reopened = Process::new(2, disk, &slow, ManualClock::hurried()).open().await;
    assert_eq!(texts(reopened.log()), ["one", "two", "ok"]);
}

#[tokio::test]
async fn a_turn_that_was_taken_over_ends_with_its_former_owner_and_no_tool_runs_twice() {
    let (store, slow, quick) = (Arc::new(MemoryStore::new()), Slow::new(), Slow::new());
    quick.may_end.add_permits(10);
    let ours = Process::without_leases(1, store.clone(), &slow, ManualClock::hurried());
    let theirs = Process::without_leases(2, store.clone(), &quick, ManualClock::hurried());
    let mut first = ours.open().await;
    ours.model.clone().calls_all(&[("slow", "{}"), ("slow", "{}")]).says("first done");
    let ended = begin(&mut first, &slow, async || {
        let mut second = theirs.open().await;
        assert!(second.has_unfinished_turn());
        theirs.model.clone().says("second done");
        assert_eq!(second.resume().await.unwrap().unwrap().text(), "second done");
    })
    .await;
    assert!(matches!(ended, Err(Error::TakenOver)), "{ended:?}");
    assert!(!first.has_unfinished_turn());
    let reopened = theirs.open().await;
    check_every_call_has_one_output(reopened.log());
    check_no_doubles(reopened.log());
    assert!(!reopened.has_unfinished_turn());
    assert_eq!((slow.runs(), quick.runs()), (1, 1), "the first call ran there, the second here");
    first.turn("go on").await.unwrap();
}

#[tokio::test]
async fn a_new_turn_beside_a_running_one_leaves_one_output_for_each_call() {
    let (store, slow) = (Arc::new(MemoryStore::new()), Slow::new());
    let (ours, theirs) = pair_without_leases(&store, &slow);
    let mut first = ours.open().await;
    ours.model.clone().calls("slow", "{}").says("first done");
    let ended = begin(&mut first, &slow, async || {
        let mut second = theirs.open().await;
        second.turn("me too").await.unwrap();
    })
    .await;
    assert!(matches!(ended, Err(Error::TakenOver)), "{ended:?}");
    let reopened = theirs.open().await;
    check_every_call_has_one_output(reopened.log());
    assert!(!reopened.has_unfinished_turn());
}

#[tokio::test]
async fn an_execution_opened_earlier_does_not_close_a_turn_that_has_continued() {
    let (store, slow) = (Arc::new(MemoryStore::new()), Slow::new());
    let (ours, theirs) = pair_without_leases(&store, &slow);
    let mut first = ours.open().await;
    ours.model.clone().calls("slow", "{}").calls("slow", "{}").says("first done");
    let mut second = None;
    let interruption = async {
        slow.begun.acquire().await.unwrap().forget();
        second = Some(theirs.open().await);
        slow.may_end.add_permits(1);
        slow.begun.acquire().await.unwrap().forget();
        // The first is in its second call by now; what the second knows is old.
        second.as_mut().unwrap().turn("me too").await.unwrap();
        slow.may_end.add_permits(1);
    };
    let (answer, ()) = tokio::join!(first.turn("take your time"), interruption);
    assert_eq!(answer.unwrap().text(), "first done");
    let reopened = theirs.open().await;
    check_every_call_has_one_output(reopened.log());
    let real = texts(reopened.log()).into_iter().filter(|text| text.ends_with(": took its time")).count();
    assert_eq!(real, 2, "both real outputs are there: {:#?}", texts(reopened.log()));
}

/// A store that lets others run before it lists keys.
struct Listing {
    store: Arc<MemoryStore>,
    begun: Semaphore,
    may_end: Semaphore,
}

impl StorageAdapter for Listing {
    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.store.acquire_lease(request)
    }

    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.store.renew_lease(fence, duration)
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.store.get(key)
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            self.begun.add_permits(1);
            let _ended = self.may_end.acquire().await.unwrap();
            self.store.list(prefix).await
        })
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.store.apply(batch)
    }

    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        self.store.get_many(keys)
    }
}

#[tokio::test]
async fn a_turn_newer_than_the_log_that_was_read_gets_no_second_outputs() {
    let (disk, slow) = (Arc::new(MemoryStore::new()), Slow::new());
    let listing = Arc::new(Listing { store: disk.clone(), begun: Semaphore::new(0), may_end: Semaphore::new(0) });
    let ours = Process::without_leases(1, disk.clone(), &slow, ManualClock::hurried());
    let theirs = Process::without_leases(2, listing.clone(), &slow, ManualClock::hurried());
    let mut first = ours.open().await;
    ours.model.clone().calls("slow", "{}").calls("slow", "{}").calls("slow", "{}").says("first done");
    let next_call = async || {
        slow.may_end.add_permits(1);
        slow.begun.acquire().await.unwrap().forget();
    };
    let interruption = async {
        slow.begun.acquire().await.unwrap().forget();
        let meanwhile = async {
            listing.begun.acquire().await.unwrap().forget();
            next_call().await;
            listing.may_end.add_permits(1);
        };
        // The second has read the log with one call, and the turn with the next one.
        let (mut second, ()) = tokio::join!(theirs.open(), meanwhile);
        next_call().await;
        second.turn("me too").await.unwrap();
        slow.may_end.add_permits(1);
    };
    let (answer, ()) = tokio::join!(first.turn("take your time"), interruption);
    assert_eq!(answer.unwrap().text(), "first done");
    check_every_call_has_one_output(ours.open().await.log());
}

#[tokio::test]
async fn a_turn_that_runs_in_the_same_engine_is_not_abandoned() {
    let (store, slow) = (Arc::new(MemoryStore::new()), Slow::new());
    let (ours, _) = pair_without_leases(&store, &slow);
    let mut first = ours.open().await;
    ours.model.clone().calls("slow", "{}").says("second done").says("first done");
    let ended = begin(&mut first, &slow, async || {
        let mut second = ours.open().await;
        assert!(!second.has_unfinished_turn());
        assert_eq!(second.turn("me too").await.unwrap().text(), "second done");
    })
    .await;
    assert_eq!(ended.unwrap(), "first done");
    check_every_call_has_one_output(first.log());
}

#[tokio::test]
async fn all_unfinished_turns_of_a_thread_get_outputs_for_their_calls() {
    for resume in [true, false] {
        let (store, slow) = (Arc::new(MemoryStore::new()), Slow::new());
        let (ours, theirs) = pair_without_leases(&store, &slow);
        let (mut first, mut second) = (ours.open().await, theirs.open().await);
        for (process, name) in [(&ours, "first"), (&theirs, "second")] {
            let call = Item::call(name, "slow", "{}");
            process.model.clone().responds(move |_| Ok(LlmResponse { items: vec![call], ..LlmResponse::default() }));
        }
        let both = async { slow.begun.acquire_many(2).await.unwrap().forget() };
        tokio::select! {
            _ = async { tokio::join!(first.turn("first"), second.turn("second")) } => panic!("the tools wait"),
            () = both => {}
        }
        // Neither is ended: this is what a crash of both leaves.
        std::mem::forget((first, second));

        let third = Process::without_leases(3, store.clone(), &slow, ManualClock::hurried());
        let mut execution = third.open().await;
        assert!(execution.has_unfinished_turn());
        match resume {
            true => assert!(execution.resume().await.unwrap().is_some()),
            false => assert!(execution.turn("go on").await.is_ok()),
        }
        check_every_call_has_one_output(execution.log());
        assert!(store.list("threads/thread/turns/").await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_dropped_execution_leaves_its_turn_to_the_next_in_the_same_engine() {
    let (store, slow) = (Arc::new(MemoryStore::new()), Slow::new());
    let (ours, _) = pair(&store, &slow);
    let mut first = ours.open().await;
    ours.model.clone().fails("overloaded").says("now");
    assert!(matches!(first.turn("hello").await, Err(Error::Model(_))));
    drop(first);
    let mut second = ours.open().await;
    assert_eq!(second.resume().await.unwrap().unwrap().text(), "now");
    assert_eq!(texts(second.log()), ["hello", "now"]);
}

#[tokio::test]
async fn a_thread_deleted_during_an_execution_is_written_again_completely() {
    let (store, slow) = (Arc::new(MemoryStore::new()), Slow::new());
    let (ours, theirs) = pair(&store, &slow);
    let mut first = ours.open().await;
    first.turn("one").await.unwrap();
    for key in store.list("threads/").await.unwrap() {
        store.delete(&key).await.unwrap();
    }
    first.turn("two").await.unwrap();
    let reopened = theirs.open().await;
    assert_eq!(texts(reopened.log()), ["one", "ok", "two", "ok"]);
}

#[tokio::test]
async fn a_state_set_in_a_turn_is_not_stored_before_its_items() {
    let (store, slow) = (Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()))), Slow::new());
    let process = Process::new(1, store.clone(), &slow, ManualClock::hurried());
    let mut execution = process.open().await;
    execution.turn("one").await.unwrap();
    // The response and the state that counts it are in memory only.
    store.fail_from(store.operations() + 5);
    assert!(matches!(execution.turn("two").await, Err(Error::Journal { .. })));
    store.heal();
    let not_durable = execution.flush().await;
    assert_eq!(not_durable.len(), 2, "{not_durable:?}");
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let other = Process::new(2, store.inner().clone(), &slow, ManualClock::hurried()).open().await;
    let responses = other.log().iter().filter(|item| item.is_message_of(Role::Assistant)).count();
    assert_eq!(other.memory().state::<Tally, _>().values().sum::<usize>(), responses);
    drop(other);
    execution.resume().await.unwrap();
    assert!(execution.flush().await.is_empty());
}
