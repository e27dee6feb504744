//! The store of layer states alone: what it has in memory, and how that becomes durable.

use std::sync::Arc;

use contexture_core::state::LayerStateStore;
use contexture_core::store::{MemoryStore, ScopedStorage, StorageAdapter, layer_prefix};
use contexture_core::testing::{FaultyStore, LossyStore, ManualClock};
use contexture_core::{ExecutionId, LayerId};

use crate::kit::{Diary, settle};

/// A state store, with its diagnostics in a diary.
struct Kept {
    states: Arc<LayerStateStore>,
    diagnostics: Diary,
    clock: ManualClock,
}

fn kept() -> Kept {
    kept_by(ManualClock::hurried())
}

fn kept_by(clock: ManualClock) -> Kept {
    let diagnostics = Diary::new();
    let noted = diagnostics.clone();
    let sink = Arc::new(move |execution: &ExecutionId, layer: &LayerId, hook: &'static str, message: &str| {
        noted.note(format!("{execution} {layer} {hook}: {message}"));
    });
    let states = Arc::new(LayerStateStore::new(Arc::new(clock.clone()), sink));
    Kept { states, diagnostics, clock }
}

fn run() -> ExecutionId {
    "run".into()
}

fn facts() -> LayerId {
    "facts".into()
}

fn corner(store: Arc<dyn StorageAdapter>, layer: &str) -> ScopedStorage {
    ScopedStorage::new(store, layer_prefix(layer, "thread", "t"))
}

async fn stored(store: &dyn StorageAdapter, layer: &str) -> Option<String> {
    let key = format!("{}state", layer_prefix(layer, "thread", "t"));
    store.get(&key).await.unwrap().map(|record| String::from_utf8(record.value).unwrap())
}

fn record(state: u32) -> Option<String> {
    Some(format!("{{\"format\":1,\"state\":{state}}}"))
}

#[tokio::test]
async fn a_state_is_there_cleared_or_was_never_set() {
    let Kept { states, .. } = kept();
    assert_eq!((states.get::<u32>(&run(), &facts()), states.has(&run(), &facts())), (None, false));
    states.set(&run(), &facts(), Some(7_u32));
    assert_eq!((states.get(&run(), &facts()), states.has(&run(), &facts())), (Some(Arc::new(7_u32)), true));
    assert_eq!(states.get::<String>(&run(), &facts()), None, "of another type");
    assert_eq!(states.get::<u32>(&"other".into(), &facts()), None, "of another execution");
    states.set::<u32>(&run(), &facts(), None);
    assert_eq!((states.get::<u32>(&run(), &facts()), states.has(&run(), &facts())), (None, true));
    states.cleanup(&run());
    assert!(!states.has(&run(), &facts()));
}

#[test]
fn disabling_says_nothing_about_state() {
    let Kept { states, .. } = kept();
    assert!(!states.is_disabled(&run(), &facts()));
    states.disable(&run(), &facts());
    assert!(states.is_disabled(&run(), &facts()) && !states.has(&run(), &facts()));
    assert!(!states.is_disabled(&"other".into(), &facts()));
    states.cleanup(&run());
    assert!(!states.is_disabled(&run(), &facts()));
}

#[test]
fn a_diagnostic_reaches_the_sink() {
    let Kept { states, diagnostics, .. } = kept();
    states.diagnostic(&run(), &facts(), "persist", "the disk is full");
    assert_eq!(diagnostics.take(), ["run facts persist: the disk is full"]);
}

#[tokio::test]
async fn what_is_set_becomes_durable_by_itself_and_none_deletes_it() {
    let (Kept { states, .. }, store) = (kept(), Arc::new(MemoryStore::new()));
    states.set(&run(), &facts(), Some(1_u32));
    settle().await;
    assert_eq!(stored(&*store, "facts").await, None, "it has no target yet");
    states.register_durable(&run(), &facts(), corner(store.clone(), "facts"));
    assert!(states.flush(&run()).await.is_empty());
    assert_eq!(stored(&*store, "facts").await, record(1), "what was set before counts too");
    states.set(&run(), &facts(), Some(2_u32));
    settle().await;
    assert_eq!(stored(&*store, "facts").await, record(2));
    states.set::<u32>(&run(), &facts(), None);
    settle().await;
    assert_eq!(stored(&*store, "facts").await, None);
    states.set(&run(), &facts(), Some(3_u32));
    settle().await;
    assert_eq!(stored(&*store, "facts").await, record(3));
}

#[tokio::test]
async fn a_state_cleared_before_it_had_a_target_is_deleted_there() {
    let (Kept { states, .. }, store) = (kept(), Arc::new(MemoryStore::new()));
    states.register_durable(&run(), &facts(), corner(store.clone(), "facts"));
    states.set(&run(), &facts(), Some(1_u32));
    assert!(states.flush(&run()).await.is_empty());
    let other: ExecutionId = "other".into();
    states.set::<u32>(&other, &facts(), None);
    states.register_durable(&other, &facts(), corner(store.clone(), "facts"));
    assert!(states.flush(&other).await.is_empty());
    assert_eq!(stored(&*store, "facts").await, None);
}

#[tokio::test]
async fn writes_are_coalesced_the_latest_wins_and_one_is_in_flight() {
    let (Kept { states, .. }, store) = (kept(), Arc::new(LossyStore::new()));
    states.register_durable(&run(), &facts(), corner(store.clone(), "facts"));
    store.hold();
    for state in 1..=10_u32 {
        states.set(&run(), &facts(), Some(state));
        settle().await;
        assert_eq!(store.in_flight(), 1);
    }
    assert_eq!(states.get(&run(), &facts()), Some(Arc::new(10_u32)), "`set` does not wait");
    store.sync();
    settle().await;
    assert_eq!(store.in_flight(), 1, "one more, with the latest");
    store.sync();
    settle().await;
    assert_eq!((stored(&*store, "facts").await, store.writes(), store.in_flight()), (record(10), 2, 0));
}

#[tokio::test]
async fn states_set_in_a_row_are_written_once() {
    let (Kept { states, .. }, store) = (kept(), Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()))));
    states.register_durable(&run(), &facts(), corner(store.clone(), "facts"));
    for state in 1..=100_u32 {
        states.set(&run(), &facts(), Some(state));
    }
    assert!(states.flush(&run()).await.is_empty());
    settle().await;
    assert_eq!((stored(&**store.inner(), "facts").await, store.writes()), (record(100), 1));
}

#[tokio::test]
async fn a_failed_write_is_retried_with_growing_pauses_and_reported() {
    let Kept { states, diagnostics, clock } = kept_by(ManualClock::new());
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    states.register_durable(&run(), &facts(), corner(store.clone(), "facts"));
    store.fail_at(1);
    store.fail_at(2);
    states.set(&run(), &facts(), Some(1_u32));
    for (pause_ms, writes) in [(20, 1), (40, 2)] {
        settle().await;
        clock.advance(std::time::Duration::from_millis(pause_ms - 1));
        settle().await;
        assert_eq!(store.writes(), writes, "not yet");
        clock.advance(std::time::Duration::from_millis(1));
    }
    settle().await;
    assert_eq!((stored(&**store.inner(), "facts").await, store.writes()), (record(1), 3));
    let failed = |number: u32| format!("run facts persist: write 1 records: operation {number} failed as planned");
    assert_eq!(diagnostics.take(), [failed(1), failed(2)]);
}

#[tokio::test]
async fn flush_returns_what_is_not_durable_and_the_next_one_retries() {
    let (Kept { states, .. }, broken, sound) =
        (kept(), Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()))), Arc::new(MemoryStore::new()));
    states.register_durable(&run(), &facts(), corner(broken.clone(), "facts"));
    states.register_durable(&run(), &"notes".into(), corner(sound.clone(), "notes"));
    broken.fail_from(1);
    states.set(&run(), &facts(), Some(1_u32));
    states.set(&run(), &"notes".into(), Some(2_u32));
    let not_durable: Vec<_> = states.flush(&run()).await.into_iter().map(|state| state.layer_id).collect();
    assert_eq!(not_durable, [facts()]);
    assert_eq!(stored(&*sound, "notes").await, record(2), "one failing target does not hold up the others");
    assert_eq!(states.get(&run(), &facts()), Some(Arc::new(1_u32)), "the agent does not suffer");
    broken.heal();
    assert!(states.flush(&run()).await.is_empty());
    assert_eq!(stored(&**broken.inner(), "facts").await, record(1));
}

#[tokio::test]
async fn a_write_whose_result_was_lost_is_recognised() {
    let (Kept { states, diagnostics, .. }, store) = (kept(), Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()))));
    states.register_durable(&run(), &facts(), corner(store.clone(), "facts"));
    store.lose_answer_at(1);
    states.set(&run(), &facts(), Some(1_u32));
    assert!(states.flush(&run()).await.is_empty());
    assert_eq!(stored(&**store.inner(), "facts").await, record(1));
    assert!(diagnostics.take().iter().all(|line| !line.contains("merge")));
}

#[tokio::test]
async fn nothing_is_flushed_for_an_execution_that_is_gone() {
    let (Kept { states, .. }, store) = (kept(), Arc::new(MemoryStore::new()));
    states.register_durable(&run(), &facts(), corner(store.clone(), "facts"));
    states.set(&run(), &facts(), Some(1_u32));
    states.cleanup(&run());
    settle().await;
    assert!(states.flush(&run()).await.is_empty());
    assert_eq!(stored(&*store, "facts").await, None);
}

#[test]
fn without_a_runtime_states_wait_for_a_flush() {
    let (Kept { states, .. }, store) = (kept(), Arc::new(MemoryStore::new()));
    states.register_durable(&run(), &facts(), corner(store.clone(), "facts"));
    states.set(&run(), &facts(), Some(1_u32));
    states.set(&run(), &facts(), Some(2_u32));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        assert!(states.flush(&run()).await.is_empty());
        assert_eq!(stored(&*store, "facts").await, record(2));
    });
}
