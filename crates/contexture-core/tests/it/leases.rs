//! A running turn holds a lease on its thread: a second one fails, waits, or continues after a dead holder.

use std::collections::BTreeMap;
use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use contexture_core::engine::{DEFAULT_LEASE, Engine, JournalPolicy, WhenHeld};
use contexture_core::error::HeldThread;
use contexture_core::store::{
    Batch, Fence, Lease, LeaseRequest, MemoryStore, Record, StorageAdapter, StoreError, Version,
};
use contexture_core::testing::{CountingIds, FaultyStore, ManualClock, ScriptedModel};
use contexture_core::{Error, Item, memory};
use futures_util::future::{BoxFuture, join_all};

use crate::processes::{Process, Slow, Tally, begin, check_every_call_has_one_output, check_no_doubles, pair, texts};

/// A store whose clock the test advances.
fn store() -> (Arc<MemoryStore>, ManualClock) {
    let clock = ManualClock::new();
    (Arc::new(MemoryStore::with_clock(Arc::new(clock.clone()))), clock)
}

#[track_caller]
fn held<T: std::fmt::Debug>(answer: Result<T, Error>) -> HeldThread {
    match answer {
        Err(Error::Held(held)) => *held,
        other => panic!("the thread is held: {other:?}"),
    }
}

#[tokio::test]
async fn a_second_execution_gets_the_owner_and_the_expiry() {
    let ((store, clock), slow) = (store(), Slow::new());
    let named = |number, owner: &'static str| {
        Process::with(number, store.clone(), &slow, ManualClock::hurried(), |builder| builder.owner(owner))
    };
    let (ours, theirs) = (named(1, "process 17"), named(2, "process 18"));
    let mut first = ours.open().await;
    ours.model.clone().calls("slow", "{}").says("first done");
    let ended = begin(&mut first, &slow, async || {
        clock.advance(Duration::from_millis(9_500));
        let mut second = theirs.open().await;
        let told = held(second.turn("me too").await);
        assert_eq!((told.thread.as_str(), &*told.owner), ("thread", "process 17, execution id-1000"));
        assert_eq!(told.remaining, Some(Duration::from_millis(20_500)));
        let message = Error::Held(Box::new(told)).to_string();
        assert_eq!(
            message,
            "thread `thread` is held by process 17, execution id-1000, whose lease expires in 20.5 s unless it is \
             renewed\nhint: try again when that has ended, or wait for it with `when_held`"
        );
        held(second.resume().await);
        held(second.window("me too").await);
        assert_eq!(texts(second.log()).len(), 2, "what was refused left nothing behind");
    })
    .await;
    assert_eq!(ended.unwrap(), "first done");
    let mut second = theirs.open().await;
    theirs.model.clone().says("second done");
    assert_eq!(second.turn("now").await.unwrap().text(), "second done");
}

#[tokio::test]
async fn a_second_execution_of_the_same_engine_gets_them_too() {
    let ((store, _), slow) = (store(), Slow::new());
    let (ours, _) = pair(&store, &slow);
    let mut first = ours.open().await;
    ours.model.clone().calls("slow", "{}").says("first done").says("second done");
    let mut second = ours.open().await;
    let ended = begin(&mut first, &slow, async || drop(held(second.turn("me too").await))).await;
    assert_eq!(ended.unwrap(), "first done");
    assert_eq!(second.turn("now").await.unwrap().text(), "second done");
    assert_eq!(texts(second.log()).len(), 6, "what the first wrote is known to the second: {:?}", texts(second.log()));
}

#[tokio::test]
async fn turns_can_wait_for_one_another() {
    let ((store, _), slow) = (store(), Slow::new());
    let waiting = |number| {
        let when_held = WhenHeld::Wait(Duration::from_secs(3_600));
        Process::with(number, store.clone(), &slow, ManualClock::hurried(), |builder| builder.when_held(when_held))
    };
    let processes: Vec<Process> = (1..=5).map(waiting).collect();
    slow.may_end.add_permits(100);
    let turns = processes.iter().enumerate().map(async |(number, process)| {
        let mut execution = process.open().await;
        for turn in 0..3 {
            let call = Item::call(&format!("call {number} {turn}"), "slow", "{}");
            let model = process.model.clone();
            model
                .responds(move |_| Ok(contexture_core::LlmResponse { items: vec![call], ..Default::default() }))
                .says(format!("answer {number} {turn}"));
            execution.turn(format!("turn {number} {turn}")).await.unwrap();
        }
        execution.complete().await.unwrap();
    });
    join_all(turns).await;
    let reopened = processes[0].open().await;
    check_no_doubles(reopened.log());
    check_every_call_has_one_output(reopened.log());
    assert_eq!((reopened.log().len(), slow.runs()), (60, 15));
    for turn in texts(reopened.log()).chunks(4) {
        let name = turn[0].strip_prefix("turn ").unwrap();
        let expected =
            [format!("turn {name}"), format!("call call {name}"), format!("output call {name}: took its time")];
        assert_eq!(turn[..3], expected, "turns follow one another and do not mix");
        assert_eq!(turn[3], format!("answer {name}"));
    }
    assert_eq!(reopened.memory().state::<Tally, _>().values().sum::<usize>(), 30);
}

#[tokio::test]
async fn waiting_for_too_long_is_an_error() {
    let ((store, _), slow) = (store(), Slow::new());
    let ours = Process::new(1, store.clone(), &slow, ManualClock::hurried());
    let clock = ManualClock::hurried();
    let theirs = Process::with(2, store.clone(), &slow, clock.clone(), |builder| {
        builder.when_held(WhenHeld::Wait(Duration::from_secs(5)))
    });
    let mut first = ours.open().await;
    ours.model.clone().calls("slow", "{}").says("first done");
    let ended = begin(&mut first, &slow, async || {
        let mut second = theirs.open().await;
        let before = contexture_core::clock::Clock::monotonic(&clock);
        held(second.turn("me too").await);
        assert_eq!(contexture_core::clock::Clock::monotonic(&clock) - before, Duration::from_secs(5));
    })
    .await;
    assert_eq!(ended.unwrap(), "first done");
}

/// The records of a store, without those that change with every batch.
async fn picture(store: &MemoryStore) -> BTreeMap<String, Vec<u8>> {
    let keys = store.list("").await.unwrap();
    let records = store.get_many(&keys).await.unwrap();
    keys.into_iter().zip(records).filter_map(|(key, record)| Some((key, record?.value))).collect()
}

#[tokio::test]
async fn a_holder_that_was_paused_too_long_commits_nothing() {
    for second_finishes in [true, false] {
        let ((store, clock), slow, quick) = (store(), Slow::new(), Slow::new());
        let ours = Process::new(1, store.clone(), &slow, ManualClock::hurried());
        let theirs = Process::new(2, store.clone(), &quick, ManualClock::hurried());
        let mut first = ours.open().await;
        ours.model.clone().calls_all(&[("slow", "{}"), ("slow", "{}")]).says("first done");
        let (mut second, mut after) = (None, BTreeMap::new());
        if second_finishes {
            quick.may_end.add_permits(10);
        }
        let ended = begin(&mut first, &slow, async || {
            clock.advance(DEFAULT_LEASE);
            let mut next = theirs.open().await;
            theirs.model.clone().says("second done");
            if second_finishes {
                assert_eq!(next.resume().await.unwrap().unwrap().text(), "second done");
            } else {
                // It is in the second call when the first wakes up.
                let begun = async { quick.begun.acquire().await.unwrap().forget() };
                tokio::select! { _ = next.resume() => panic!("the tool waits"), () = begun => {} }
                quick.begun.add_permits(1);
            }
            after = picture(&store).await;
            second = Some(next);
        })
        .await;
        assert!(matches!(ended, Err(Error::TakenOver)), "{ended:?}");
        assert_eq!(picture(&store).await, after, "what a late holder did reached nobody");
        assert!(!first.has_unfinished_turn());
        assert_eq!((slow.runs(), quick.runs()), (1, 1), "the first call ran here, the second there");
        drop(second);
        first.turn("go on").await.unwrap();
        let reopened = theirs.open().await;
        check_every_call_has_one_output(reopened.log());
        check_no_doubles(reopened.log());
        assert_eq!(texts(first.log()), texts(reopened.log()));
    }
}

#[tokio::test]
async fn states_of_a_lost_turn_are_discarded_with_it() {
    let ((store, clock), slow) = (store(), Slow::new());
    let ours = Process::new(1, store.clone(), &slow, ManualClock::hurried());
    let theirs = Process::new(2, store.clone(), &slow, ManualClock::hurried());
    let mut first = ours.open().await;
    let mut second = theirs.open().await;
    first.turn("before").await.unwrap();
    theirs.model.clone().says("second done");
    let (stolen, waits) = (Arc::new(tokio::sync::Semaphore::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
    let model = Waiting { begun: waits.clone(), may_end: stolen.clone() };
    let waiting = Engine::builder(
        memory((Tally, crate::processes::Last)),
        Arc::new(ManualClock::hurried()),
        Arc::new(CountingIds::starting_at(5_000)),
    );
    let engine = waiting.model(model).store(store.clone()).build().unwrap();
    let mut third = engine.execution("thread").start().await.unwrap();
    let theft = async {
        waits.acquire().await.unwrap().forget();
        clock.advance(DEFAULT_LEASE);
        assert_eq!(second.resume().await.unwrap().unwrap().text(), "second done");
        stolen.add_permits(1);
    };
    // Its response is logged and counted before its commit is refused.
    let (ended, ()) = tokio::join!(third.turn("third"), theft);
    assert!(matches!(ended, Err(Error::TakenOver)), "{ended:?}");
    let stored = theirs.open().await.memory().state::<Tally, _>();
    assert_eq!(third.memory().state::<Tally, _>(), stored);
    assert_eq!(stored.len(), 2, "{stored:?}");
}

/// A model that signals its call and waits for the test to return.
struct Waiting {
    begun: Arc<tokio::sync::Semaphore>,
    may_end: Arc<tokio::sync::Semaphore>,
}

impl contexture_core::Model for Waiting {
    async fn call(
        &self,
        _: contexture_core::ModelRequest,
    ) -> Result<contexture_core::LlmResponse, contexture_core::error::BoxError> {
        self.begun.add_permits(1);
        self.may_end.acquire().await?.forget();
        Ok(contexture_core::LlmResponse { items: vec![Item::assistant("late")], ..Default::default() })
    }
}

#[tokio::test]
async fn a_holder_continues_after_a_pause_if_nobody_took_the_lease() {
    let ((store, clock), slow) = (store(), Slow::new());
    let (ours, _) = pair(&store, &slow);
    let mut first = ours.open().await;
    ours.model.clone().calls("slow", "{}").says("first done");
    let ended = begin(&mut first, &slow, async || clock.advance(DEFAULT_LEASE * 1_000)).await;
    assert_eq!(ended.unwrap(), "first done");
}

#[tokio::test]
async fn a_long_call_keeps_the_lease() {
    let ((store, store_clock), slow, clock) = (store(), Slow::new(), ManualClock::new());
    let ours = Process::new(1, store.clone(), &slow, clock.clone());
    let theirs = Process::new(2, store.clone(), &slow, ManualClock::hurried());
    let mut first = ours.open().await;
    ours.model.clone().calls("slow", "{}").says("first done");
    let ended = begin(&mut first, &slow, async || {
        let mut second = theirs.open().await;
        for _ in 0..20 {
            store_clock.advance(DEFAULT_LEASE / 2);
            clock.advance(DEFAULT_LEASE / 2);
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            assert_eq!(held(second.resume().await).remaining, Some(DEFAULT_LEASE));
        }
    })
    .await;
    assert_eq!(ended.unwrap(), "first done");
}

#[tokio::test]
async fn a_holder_that_lost_its_thread_stops_in_the_middle_of_a_call() {
    let ((store, store_clock), slow, quick, clock) = (store(), Slow::new(), Slow::new(), ManualClock::new());
    quick.may_end.add_permits(10);
    let ours = Process::new(1, store.clone(), &slow, clock.clone());
    let theirs = Process::new(2, store.clone(), &quick, ManualClock::hurried());
    let mut first = ours.open().await;
    ours.model.clone().calls("slow", "{}");
    let interruption = async {
        slow.begun.acquire().await.unwrap().forget();
        store_clock.advance(DEFAULT_LEASE);
        theirs.open().await.resume().await.unwrap();
        clock.advance(DEFAULT_LEASE);
    };
    // Its tool never ends.
    let (ended, ()) = tokio::join!(first.turn("take your time"), interruption);
    assert!(matches!(ended, Err(Error::TakenOver)), "{ended:?}");
}

#[tokio::test]
async fn of_many_successors_of_a_dead_holder_one_gets_the_turn() {
    let ((store, clock), slow, quick) = (store(), Slow::new(), Slow::new());
    let ours = Process::new(1, store.clone(), &slow, ManualClock::hurried());
    let mut first = ours.open().await;
    ours.model.clone().calls_all(&[("slow", "{}"), ("slow", "{}")]);
    let begun = async { slow.begun.acquire().await.unwrap().forget() };
    {
        let mut turn = Box::pin(first.turn("take your time"));
        tokio::select! { _ = &mut turn => panic!("the tool waits"), () = begun => {} }
        // A killed process drops nothing.
        std::mem::forget(turn);
    }
    std::mem::forget(first);
    let followers: Vec<Process> =
        (2..10).map(|number| Process::new(number, store.clone(), &quick, ManualClock::hurried())).collect();
    for follower in &followers {
        follower.model.clone().says("done");
        held(follower.open().await.resume().await);
    }
    clock.advance(DEFAULT_LEASE);
    let race = join_all(followers.iter().map(async |follower| follower.open().await.resume().await));
    let end = async {
        quick.begun.acquire().await.unwrap().forget();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        quick.begun.add_permits(1);
        quick.may_end.add_permits(10);
    };
    let (answers, ()) = tokio::join!(race, end);
    let won = answers.iter().filter(|answer| matches!(answer, Ok(Some(_)))).count();
    let told = answers.iter().filter(|answer| matches!(answer, Err(Error::Held(_)))).count();
    assert_eq!((won, told), (1, 7), "{answers:?}");
    assert_eq!(quick.runs(), 1, "the call that had begun does not run again, and the other runs once");
    check_every_call_has_one_output(followers[0].open().await.log());
}

#[tokio::test]
async fn an_execution_that_was_already_open_continues_after_a_dead_one() {
    for resume in [true, false] {
        let ((store, clock), slow) = (store(), Slow::new());
        let (ours, theirs) = pair(&store, &slow);
        let (mut first, mut second) = (ours.open().await, theirs.open().await);
        ours.model.clone().calls("slow", "{}");
        {
            let mut turn = Box::pin(first.turn("take your time"));
            let begun = async { slow.begun.acquire().await.unwrap().forget() };
            tokio::select! { _ = &mut turn => panic!("the tool waits"), () = begun => {} }
            std::mem::forget(turn);
        }
        std::mem::forget(first);
        held(second.resume().await);
        clock.advance(DEFAULT_LEASE);
        theirs.model.clone().says("second done");
        if resume {
            assert_eq!(second.resume().await.unwrap().unwrap().text(), "second done");
        } else {
            assert_eq!(second.turn("go on").await.unwrap().text(), "second done");
            assert_eq!(texts(second.log())[3], "go on", "the open call is answered before anything is said");
        }
        check_every_call_has_one_output(second.log());
        assert!(store.list("threads/thread/turns/").await.unwrap().is_empty());
        assert!(matches!(second.resume().await, Ok(None)));
    }
}

/// A store with latency, so that a turn can be dropped at any point.
struct Unhurried(Arc<MemoryStore>);

impl Unhurried {
    fn after<'a, T: Send + 'a>(&'a self, work: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let answer = work.await;
            tokio::task::yield_now().await;
            answer
        })
    }
}

impl StorageAdapter for Unhurried {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.after(async move { self.0.get(key).await })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        self.after(async move { self.0.list(prefix).await })
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.after(async move { self.0.apply(batch).await })
    }

    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        self.after(async move { self.0.get_many(keys).await })
    }

    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.after(async move { self.0.acquire_lease(request).await })
    }

    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.after(async move { self.0.renew_lease(fence, duration).await })
    }
}

#[tokio::test]
async fn resuming_directly_after_a_drop_works_at_every_point_of_a_turn() {
    for same_engine in [true, false] {
        let mut ended = false;
        for polls in 0.. {
            let (store, slow) = (Arc::new(MemoryStore::new()), Slow::new());
            slow.may_end.add_permits(10);
            let unhurried = Arc::new(Unhurried(store.clone()));
            let ours = Process::new(1, unhurried.clone(), &slow, ManualClock::new());
            let theirs = Process::new(2, unhurried, &slow, ManualClock::new());
            let next = if same_engine { &ours } else { &theirs };
            let mut first = ours.open().await;
            ours.model.clone().calls("slow", "{}").says("done").says("done").says("done");
            theirs.model.clone().says("done").says("done");
            {
                let mut turn = pin!(first.turn("hello"));
                for _ in 0..polls {
                    let poll = std::future::poll_fn(|cx| std::task::Poll::Ready(turn.as_mut().poll(cx))).await;
                    if poll.is_ready() {
                        ended = true;
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
            drop(first);
            let mut second = next.open().await;
            let resumed = second.resume().await;
            assert!(resumed.is_ok(), "after {polls} polls: {resumed:?}");
            let told = second.turn("and now").await;
            assert!(told.is_ok(), "after {polls} polls: {told:?}");
            // Background work of the dropped one changes nothing.
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            let reopened = next.open().await;
            check_every_call_has_one_output(reopened.log());
            assert_eq!(texts(reopened.log()), texts(second.log()), "after {polls} polls");
            assert!(slow.runs() <= 1, "after {polls} polls the tool ran {} times", slow.runs());
            if ended {
                assert!(polls > 10, "the turn has more than {polls} places to stop at");
                break;
            }
        }
    }
}

#[tokio::test]
async fn an_abort_and_a_window_release_the_thread() {
    let ((store, _), slow) = (store(), Slow::new());
    let (ours, theirs) = pair(&store, &slow);
    let mut first = ours.open().await;
    let mut second = theirs.open().await;
    let stopped = first.abort_handle();
    ours.model.clone().calls("slow", "{}");
    let ended = begin(&mut first, &slow, async || stopped.abort()).await;
    assert!(matches!(ended, Err(Error::Aborted)), "{ended:?}");
    theirs.model.clone().says("second done");
    assert_eq!(second.turn("my turn").await.unwrap().text(), "second done");
    // It was closed by the second, and the first got an error.
    assert!(matches!(first.resume().await, Err(Error::TakenOver)));
    assert!(matches!(first.resume().await, Ok(None)));

    first.window("just looking").await.unwrap();
    second.turn("my turn again").await.unwrap();
}

#[tokio::test]
async fn a_store_that_gives_no_lease_ends_the_turn_or_not_as_the_journal_policy_says() {
    for (policy, answers) in [(JournalPolicy::Require, false), (JournalPolicy::BestEffort, true)] {
        let (disk, slow) = (Arc::new(MemoryStore::new()), Slow::new());
        let store = Arc::new(FaultyStore::new(disk.clone()));
        let process = Process::with(1, store.clone(), &slow, ManualClock::hurried(), |b| b.journal(policy));
        let mut execution = process.open().await;
        (1..=5).for_each(|later| store.fail_at(store.operations() + later));
        let answer = execution.turn("hello").await;
        assert_eq!(answer.is_ok(), answers, "{answer:?}");
        assert_eq!(process.faults("lease"), 5);
        execution.turn("again").await.unwrap();
    }
}

#[test]
fn a_lease_of_no_time_is_refused() {
    let clock = Arc::new(ManualClock::new());
    let builder = Engine::builder(memory(()), clock, Arc::new(CountingIds::new())).model(ScriptedModel::new());
    let refused = builder.lease_duration(Duration::ZERO).build().map(drop).unwrap_err();
    assert_eq!(refused.to_string(), "engine: `lease_duration` is zero");
}

/// A store that does something before each list of keys.
struct Meddled<F>(Arc<MemoryStore>, F);

impl<F: Fn() -> BoxFuture<'static, ()> + Send + Sync> StorageAdapter for Meddled<F> {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.0.get(key)
    }
    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        self.0.get_many(keys)
    }
    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            (self.1)().await;
            self.0.list(prefix).await
        })
    }
    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.0.apply(batch)
    }
    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        self.0.acquire_lease(request)
    }
    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.renew_lease(fence, duration)
    }
}

#[tokio::test]
async fn a_thread_is_not_deleted_while_a_turn_runs_on_it() {
    for same_engine in [false, true] {
        let ((store, _), slow) = (store(), Slow::new());
        let (ours, theirs) = pair(&store, &slow);
        let mut first = ours.open().await;
        ours.model.clone().calls("slow", "{}").says("done");
        let ended = begin(&mut first, &slow, async || {
            let during = picture(&store).await;
            let deleter = if same_engine { &ours } else { &theirs };
            let told = held(deleter.engine.delete_thread("thread").await);
            assert_eq!((told.thread.as_str(), &*told.owner), ("thread", "execution id-1000"));
            assert_eq!(picture(&store).await, during, "nothing was removed");
            assert!(!deleter.engine.delete_thread("another").await.unwrap(), "others are free");
        })
        .await;
        assert_eq!(ended.unwrap(), "done");
        first.complete().await.unwrap();
        assert!(theirs.engine.delete_thread("thread").await.unwrap());
        assert_eq!(picture(&store).await, BTreeMap::new());
    }
}

#[tokio::test]
async fn a_deletion_can_wait_for_the_end_of_a_turn_and_follows_a_dead_one() {
    let ((store, clock), slow) = (store(), Slow::new());
    let ours = Process::new(1, store.clone(), &slow, ManualClock::hurried());
    let patient = Process::with(2, store.clone(), &slow, ManualClock::hurried(), |builder| {
        builder.when_held(WhenHeld::Wait(Duration::from_secs(3_600)))
    });
    let mut first = ours.open().await;
    ours.model.clone().calls("slow", "{}").says("done");
    let mut deletion = None;
    let ended = begin(&mut first, &slow, async || {
        let engine = patient.engine.clone();
        deletion = Some(tokio::spawn(async move { engine.delete_thread("thread").await }));
        tokio::task::yield_now().await;
        assert!(!store.list("threads/").await.unwrap().is_empty(), "it waits");
    })
    .await;
    assert_eq!(ended.unwrap(), "done");
    assert!(deletion.unwrap().await.unwrap().unwrap());
    assert_eq!(store.list("threads/").await.unwrap(), [""; 0]);

    // A process that died in the middle of its turn never drops its lease.
    let request = LeaseRequest { key: "threads/thread".into(), owner: "the dead".into(), duration: DEFAULT_LEASE };
    first.turn("two").await.unwrap();
    std::mem::forget(store.acquire_lease(request).await.unwrap());
    assert_eq!(held(ours.engine.delete_thread("thread").await).owner, "the dead");
    clock.advance(DEFAULT_LEASE);
    assert!(ours.engine.delete_thread("thread").await.unwrap());
}

#[tokio::test]
async fn a_turn_does_not_begin_while_its_thread_is_deleted() {
    let ((store, clock), slow) = (store(), Slow::new());
    let (ours, _) = pair(&store, &slow);
    let mut first = ours.open().await;
    first.turn("one").await.unwrap();
    let first = Arc::new(tokio::sync::Mutex::new(first));
    for takes_too_long in [true, false] {
        let (clock, first) = (clock.clone(), first.clone());
        let meddled = Meddled(store.clone(), move || {
            let (clock, first) = (clock.clone(), first.clone());
            Box::pin(async move {
                let mut first = first.lock().await;
                if takes_too_long {
                    clock.advance(DEFAULT_LEASE * 2);
                    drop(first.turn("two").await);
                } else {
                    let told = held(first.turn("three").await);
                    assert_eq!(told.owner, "deleter, an engine that deletes the thread");
                }
            }) as BoxFuture<'static, ()>
        });
        let builder = Engine::builder(memory(()), Arc::new(ManualClock::hurried()), Arc::new(CountingIds::new()));
        let engine = builder.store(Arc::new(meddled)).owner("deleter").build().unwrap();
        let deleted = engine.delete_thread("thread").await;
        match takes_too_long {
            true => assert!(matches!(deleted, Err(Error::Remove { .. })), "another has the thread: {deleted:?}"),
            false => assert!(deleted.unwrap()),
        }
        let left = store.list("threads/").await.unwrap().len();
        assert_eq!(left > 0, takes_too_long, "{left} records are left");
    }
}

/// A store that goes on with a batch whose caller is gone, as one with a thread of its own does, and releases a lease
/// only after it.
struct Lingering(Arc<MemoryStore>);

/// A lease that is released some time after it was dropped.
struct Lingers(Option<Lease>);

impl Drop for Lingers {
    fn drop(&mut self) {
        let lease = self.0.take();
        tokio::spawn(async move {
            yield_often(40).await;
            drop(lease);
        });
    }
}

async fn yield_often(times: usize) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

impl StorageAdapter for Lingering {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.0.get(key)
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        self.0.list(prefix)
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Version, StoreError>> {
        let store = self.0.clone();
        let landing = tokio::spawn(async move {
            yield_often(20).await;
            store.apply(batch).await
        });
        Box::pin(async move { landing.await.expect("a store in memory does not panic") })
    }

    fn get_many<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<Record>>, StoreError>> {
        self.0.get_many(keys)
    }

    fn acquire_lease(&self, request: LeaseRequest) -> BoxFuture<'_, Result<Lease, StoreError>> {
        Box::pin(async move {
            let lease = self.0.acquire_lease(request).await?;
            Ok(Lease::new(lease.fence().clone(), Lingers(Some(lease))))
        })
    }

    fn renew_lease<'a>(&'a self, fence: &'a Fence, duration: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.renew_lease(fence, duration)
    }
}

/// The next execution reads the thread before the last batch of the dropped one lands, and goes on all the same.
#[tokio::test]
async fn a_batch_that_lands_after_its_execution_was_dropped_costs_the_next_one_nothing() {
    for same_engine in [true, false] {
        let (mut ended, mut late) = (false, 0);
        for polls in 0.. {
            let (store, slow) = (Arc::new(MemoryStore::new()), Slow::new());
            slow.may_end.add_permits(10);
            let process = |number| {
                let (store, clock) = (Arc::new(Lingering(store.clone())), ManualClock::hurried());
                let when_held = WhenHeld::Wait(Duration::from_secs(3_600));
                Process::with(number, store, &slow, clock, |builder| builder.when_held(when_held))
            };
            let (ours, theirs) = (process(1), process(2));
            let next = if same_engine { &ours } else { &theirs };
            let mut first = ours.open().await;
            ours.model.clone().calls("slow", "{}").says("done").says("done").says("done");
            theirs.model.clone().says("done").says("done");
            {
                let mut turn = pin!(first.turn("hello"));
                for _ in 0..polls {
                    let poll = std::future::poll_fn(|cx| std::task::Poll::Ready(turn.as_mut().poll(cx))).await;
                    if poll.is_ready() {
                        ended = true;
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
            drop(first);
            let mut second = next.open().await;
            let read = second.log().len();
            let resumed = second.resume().await;
            assert!(resumed.is_ok(), "after {polls} polls: {resumed:?}");
            let told = second.turn("and now").await;
            assert!(told.is_ok(), "after {polls} polls: {told:?}");
            late += usize::from(next.faults("merge") > 0);
            yield_often(200).await;
            let reopened = next.open().await;
            assert!(reopened.log().len() > read);
            check_every_call_has_one_output(reopened.log());
            assert_eq!(texts(reopened.log()), texts(second.log()), "after {polls} polls");
            assert!(slow.runs() <= 1, "after {polls} polls the tool ran {} times", slow.runs());
            if ended {
                break;
            }
        }
        assert!(late > 0, "some batches landed late");
    }
}
