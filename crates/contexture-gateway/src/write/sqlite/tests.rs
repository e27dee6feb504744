//! What waits while the disk stands still, and what is lost.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, sync_channel};

use contexture::wire::Format;

use super::*;
use crate::conversation::billed::Billed;
use crate::conversation::decisions::Decisions;
use crate::conversation::seen::SeenMessages;
use crate::conversation::stored::InStore;
use crate::write::KeptVersion;

const WAIT: Duration = Duration::from_secs(60);

fn beginning(stream: usize) -> Beginning {
    Beginning {
        id: format!("c-{stream}").into(),
        key: Digest([1; 16]),
        scope: Digest([2; 16]),
        parent: None,
        format: Format::Messages,
        lead: 0,
        is_held_out: false,
    }
}

/// A state of which nothing is in the store yet.
fn state(version: u64) -> ConversationState {
    let decisions = Decisions::restored(vec![version as usize], Vec::new(), Vec::new(), BTreeMap::new());
    let state = ConversationState::restored(SeenMessages::default(), decisions, Billed::default(), None, version);
    state.stored().mark().set(InStore::default());
    state
}

fn saving(stream: usize, state: &ConversationState, text: &str) -> Saving {
    let texts = vec![(format!("{:012x}", state.stored().version()), text.to_owned())];
    Saving::new(&beginning(stream), state, texts, 1).unwrap()
}

fn record(stream: usize) -> Arc<RequestRecord> {
    Arc::new(RequestRecord { conversation: Some(format!("c-{stream}")), ..RequestRecord::default() })
}

/// Holds the thread that writes until this is dropped.
fn hold(store: &GatewayFileStore) -> SyncSender<()> {
    let (hold, held) = sync_channel::<()>(0);
    // An error means that it is dropped.
    store.writer.work(move |_| drop(held.recv()));
    hold
}

#[test]
fn a_hundred_streams_that_never_pause_wait_in_a_room_of_a_fixed_size() {
    let directory = tempfile::tempdir().unwrap();
    let store = GatewayFileStore::open(&directory.path().join("gateway.db"), 1 << 30, DamagePolicy::Fail).unwrap();
    let held = hold(&store);
    let text = "x".repeat(40_000);
    let marks: Vec<_> = (0..100).map(|_| state(1).stored().mark().clone()).collect();
    let (mut newest, mut refused, mut most) = (vec![0; 100], 0, 0);
    for version in 1..=12 {
        for (stream, newest) in newest.iter_mut().enumerate() {
            let mut saving = saving(stream, &state(version), &text);
            saving.mark = marks[stream].clone();
            match store.save(saving).wait(Instant::now()) {
                Err(StoreError::Full) => refused += 1,
                Err(StoreError::NotInTime) => *newest = version,
                other => panic!("nothing is written meanwhile: {other:?}"),
            }
            // One that is begun and one that has ended, in one place.
            let place = RecordPlace::new(None);
            let (_begun, _ended) = (store.save_request(&place, record(stream)), store.save_request(&place, record(stream)));
            most = most.max(store.waiting_bytes());
        }
    }
    assert!(most <= 32 << 20, "{most} bytes wait");
    assert!(refused > 100 && newest.iter().all(|version| *version > 1), "{refused} were refused");
    assert!(!store.has_room());
    drop(held);
    store.flush(WAIT);
    assert_eq!(store.waiting_bytes(), 0, "all of it is given back");
    assert!(store.has_room());
    for (stream, version) in newest.into_iter().enumerate() {
        let id = format!("c-{stream}");
        assert_eq!(store.version(&id).unwrap(), Some(version), "the newest has replaced the others");
        assert!(store.text(&format!("{:012x}", 1)).unwrap().is_some(), "what the others had beside it is there too");
    }
}

#[test]
fn those_who_wait_for_an_older_state_are_told_when_the_newest_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = GatewayFileStore::open(&directory.path().join("gateway.db"), 1 << 30, DamagePolicy::Fail).unwrap();
    let held = hold(&store);
    let (older, newer) = (state(1), state(2));
    let mut second = saving(7, &newer, "second");
    second.mark = older.stored().mark().clone();
    let (first, second) = (store.save(saving(7, &older, "first")), store.save(second));
    drop(held);
    for written in [first, second] {
        written.wait(Instant::now() + WAIT).unwrap();
    }
    assert_eq!((store.version("c-7").unwrap(), older.stored().saved()), (Some(2), 2));
}

#[test]
fn a_record_says_whether_its_decisions_are_lost_when_it_is_all_that_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    let store = GatewayFileStore::open(&path, 1 << 30, DamagePolicy::Fail).unwrap();
    let until = || Instant::now() + WAIT;
    let state = state(3);
    let place = RecordPlace::new(Some(KeptVersion::of(&state)));
    store.save_request(&place, record(7)).wait(until()).unwrap();
    let is_lost = || GatewayFileStore::open(&path, 1 << 30, DamagePolicy::Fail).unwrap().requests(None).unwrap()[0].is_unsaved;
    assert!(is_lost() && place.is_marked() && !place.is_kept());
    // Both in one transaction: it was late, and is not lost.
    let held = hold(&store);
    let (saved, placed) = (store.save(saving(7, &state, "text")), store.save_request(&place, record(7)));
    drop(held);
    saved.wait(until()).unwrap();
    placed.wait(until()).unwrap();
    assert!(!is_lost() && !place.is_marked() && place.is_kept());
}
