//! A store that fails, loses results or loses power at every operation of a conversation of twenty turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_core::engine::{Execution, JournalPolicy};
use contexture_core::store::{MemoryStore, StorageAdapter};
use contexture_core::testing::{FaultyStore, InFlight, LossyStore};
use contexture_core::{Error, Item, Role};

use crate::conversation::{Layers, World, check_ran_once, check_whole, picture, turns};

/// How many turns the conversation has.
const TURNS: usize = 20;
/// How many turns it continues after the fault.
const TURNS_AFTER: usize = 2;

/// What a conversation leaves when nothing goes wrong.
struct Undisturbed {
    /// After each turn: the items of the log, and the stored states.
    after: Vec<(Vec<Item>, BTreeMap<String, String>)>,
    operations: u64,
    writes: u64,
}

fn items(execution: &Execution<Layers>) -> Vec<Item> {
    execution.log().iter().cloned().collect()
}

fn faulty() -> Arc<FaultyStore> {
    Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())))
}

async fn undisturbed() -> Undisturbed {
    let (mut world, store) = (World::new(JournalPolicy::Require), faulty());
    let mut execution = world.open(store.clone()).await.unwrap();
    let mut after = Vec::new();
    for number in 0..TURNS {
        let answer = execution.turn(format!("turn {number}")).await.unwrap();
        assert!(answer.durable);
        check_whole(&execution);
        after.push((items(&execution), picture(&**store.inner()).await));
    }
    Undisturbed { after, operations: store.operations(), writes: store.writes() }
}

impl Undisturbed {
    /// Ends an execution: the store must have what the same number of turns without faults leaves.
    async fn check(
        &self,
        mut world: World,
        execution: Execution<Layers>,
        store: &Arc<dyn StorageAdapter>,
        fault: &str,
    ) {
        let (log, states) = &self.after[turns(&execution).len() - 1];
        execution.complete().await.unwrap_or_else(|error| panic!("{fault}: {error}"));
        check_ran_once(&world.tick);
        let reopened = world.open(store.clone()).await.unwrap_or_else(|error| panic!("{fault}: {error}"));
        assert_eq!(items(&reopened), *log, "{fault}");
        assert_eq!(picture(&**store).await, *states, "{fault}");
        check_whole(&reopened);
    }
}

/// Runs the conversation until some turns after the fault. Every turn must succeed.
async fn check_every_turn_succeeds(plan: impl Fn(&FaultyStore, u64), step: usize, name: &str) {
    let expected = undisturbed().await;
    for number in (1..=expected.operations).step_by(step) {
        let fault = format!("{name} {number}");
        let (mut world, store) = (World::new(JournalPolicy::Require), faulty());
        plan(&store, number);
        let mut execution = world.open(store.clone()).await.unwrap_or_else(|error| panic!("{fault}: {error}"));
        let mut since_the_fault = 0;
        for turn in 0..TURNS {
            let answer = execution.turn(format!("turn {turn}")).await;
            assert!(answer.unwrap_or_else(|error| panic!("{fault}: {error}")).durable);
            since_the_fault += usize::from(store.operations() >= number);
            if since_the_fault > TURNS_AFTER {
                break;
            }
        }
        expected.check(world, execution, store.inner(), &fault).await;
    }
}

#[tokio::test]
async fn one_failed_operation_is_not_noticed() {
    check_every_turn_succeeds(|store, number| store.fail_at(number), 1, "failed operation").await;
}

#[tokio::test]
async fn one_lost_result_duplicates_nothing() {
    check_every_turn_succeeds(|store, number| store.lose_answer_at(number), 1, "lost answer").await;
}

#[tokio::test]
async fn lost_results_and_failures_in_a_row_duplicate_nothing() {
    let plan = |store: &FaultyStore, number| {
        store.lose_answer_at(number);
        (1..4).for_each(|later| store.fail_at(number + later));
    };
    // The conversation repeats itself, so every seventh operation covers all kinds.
    check_every_turn_succeeds(plan, 7, "lost answer and three failures from").await;
}

/// Continues the conversation for some turns.
async fn go_on(execution: &mut Execution<Layers>, fault: &str) {
    let begun = turns(execution).len();
    if execution.has_unfinished_turn() {
        let answer = execution.resume().await.unwrap_or_else(|error| panic!("{fault}: {error}"));
        let text = answer.map(|answer| answer.text());
        assert_eq!(text, Some(format!("answer to turn {}", begun - 1)), "{fault}");
    }
    for turn in begun..begun + TURNS_AFTER {
        execution.turn(format!("turn {turn}")).await.unwrap_or_else(|error| panic!("{fault}: {error}"));
    }
    let expected: Vec<String> = (0..begun + TURNS_AFTER).map(|turn| format!("turn {turn}")).collect();
    assert_eq!(turns(execution), expected, "{fault}");
    check_whole(execution);
}

/// Runs turns until one fails; returns the items that were acknowledged by then.
async fn run_until_it_fails(execution: &mut Execution<Layers>) -> (Vec<Item>, Option<Error>) {
    let mut acknowledged = Vec::new();
    for turn in 0..TURNS {
        match execution.turn(format!("turn {turn}")).await {
            Ok(answer) => assert!(answer.durable),
            Err(error) => return (acknowledged, Some(error)),
        }
        acknowledged = items(execution);
    }
    (acknowledged, None)
}

#[tokio::test]
async fn a_store_that_keeps_failing_ends_the_turn_and_loses_nothing() {
    let expected = undisturbed().await;
    for number in 1..=expected.operations {
        let fault = format!("all operations from {number}");
        let (mut world, store) = (World::new(JournalPolicy::Require), faulty());
        store.fail_from(number);
        let mut execution = match world.open(store.clone()).await {
            Ok(execution) => execution,
            Err(error) => {
                assert!(matches!(error, Error::Open { .. }), "{fault}: {error}");
                continue;
            }
        };
        let (acknowledged, error) = run_until_it_fails(&mut execution).await;
        assert!(matches!(error, Some(Error::Journal { .. }) | None), "{fault}: {error:?}");

        store.heal();
        let reopened = world.open(store.inner().clone()).await.unwrap();
        assert!(items(&reopened).starts_with(&acknowledged), "{fault}");
        check_whole(&reopened);
        drop(reopened);

        let in_memory = items(&execution);
        go_on(&mut execution, &fault).await;
        assert!(items(&execution).starts_with(&in_memory), "{fault}");
        check_ran_once(&world.tick);
        let log = items(&execution);
        execution.complete().await.unwrap();
        let reopened = world.open(store.inner().clone()).await.unwrap();
        assert_eq!(items(&reopened), log, "{fault}");
        check_whole(&reopened);
    }
}

#[tokio::test]
async fn with_best_effort_every_turn_succeeds_and_the_next_commit_writes_everything() {
    let expected = undisturbed().await;
    for number in 1..expected.writes {
        let fault = format!("all operations from {number}");
        let (mut world, store) = (World::new(JournalPolicy::BestEffort), faulty());
        let mut execution = world.open(store.clone()).await.unwrap();
        store.fail_from(store.operations() + number);
        let (mut acknowledged, mut since_the_fault) = (Vec::new(), 0);
        while since_the_fault <= TURNS_AFTER && turns(&execution).len() + 1 < TURNS {
            let turn = format!("turn {}", turns(&execution).len());
            match execution.turn(turn).await.unwrap_or_else(|error| panic!("{fault}: {error}")).durable {
                true => acknowledged = items(&execution),
                false => since_the_fault += 1,
            }
        }
        let reopened = world.open(store.inner().clone()).await.unwrap();
        assert!(items(&reopened).starts_with(&acknowledged), "{fault}");
        check_whole(&reopened);
        drop(reopened);

        store.heal();
        let answer = execution.turn(format!("turn {}", turns(&execution).len())).await.unwrap();
        assert!(answer.durable, "{fault}");
        expected.check(world, execution, store.inner(), &fault).await;
    }
}

#[tokio::test]
async fn after_a_power_cut_at_any_write_the_thread_is_consistent_and_continues() {
    let expected = undisturbed().await;
    for (number, in_flight) in (1..=expected.writes).flat_map(|n| [(n, InFlight::Lost), (n, InFlight::Kept)]) {
        let fault = format!("power cut at write {number}, which was {in_flight:?}");
        let (mut world, store) = (World::new(JournalPolicy::Require), Arc::new(LossyStore::new()));
        store.cut_power_at(number);
        let mut execution = world.open(store.clone()).await.unwrap();
        let (acknowledged, _) = run_until_it_fails(&mut execution).await;
        let disk = store.crash(in_flight);
        drop(execution);

        let mut reopened = world.open(disk.clone()).await.unwrap_or_else(|error| panic!("{fault}: {error}"));
        check_whole(&reopened);
        let found = items(&reopened);
        assert!(found.starts_with(&acknowledged), "{fault}");
        assert!(expected.after[TURNS - 1].0.starts_with(&found), "{fault}");
        let between_turns = found.last().is_none_or(|item| item.is_message_of(Role::Assistant));
        assert_eq!(reopened.has_unfinished_turn(), !between_turns, "{fault}");
        go_on(&mut reopened, &fault).await;
        check_ran_once(&world.tick);
        reopened.complete().await.unwrap();
    }
}

#[tokio::test]
async fn opening_a_thread_retries_until_the_store_recovers() {
    let (mut world, store) = (World::new(JournalPolicy::Require), faulty());
    (1..5).for_each(|number| store.fail_at(number));
    assert!(world.open(store.clone()).await.is_ok());
    let places: Vec<_> = world.recorder.faults().into_iter().map(|fault| fault.place).collect();
    assert_eq!(places, ["persist"; 4]);
}
