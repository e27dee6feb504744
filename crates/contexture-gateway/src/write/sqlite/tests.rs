//! What waits while the disk stands still, what is lost, and what damage costs.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, sync_channel};

use contexture::fold::FoldDecision;
use contexture::wire::Format;

use super::*;
use crate::conversation::billed::Billed;
use crate::conversation::decisions::Decisions;
use crate::conversation::hashes::MessageHashes;
use crate::conversation::plan_history::PlanStep;
use crate::conversation::seen::SeenMessages;
use crate::conversation::stored::InStore;
use crate::write::{KeptVersion, check_store_file};

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
    // An error means that it is dropped, which is the end of the wait.
    store.writer().unwrap().work(move |_| {
        let _ = held.recv();
    });
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
            let (_begun, _ended) =
                (store.save_request(&place, record(stream)), store.save_request(&place, record(stream)));
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
    let is_lost =
        || GatewayFileStore::open(&path, 1 << 30, DamagePolicy::Fail).unwrap().requests(None).unwrap()[0].is_unsaved;
    assert!(is_lost() && place.is_marked() && !place.is_kept());
    // Both in one transaction: it was late, and is not lost.
    let held = hold(&store);
    let (saved, placed) = (store.save(saving(7, &state, "text")), store.save_request(&place, record(7)));
    drop(held);
    saved.wait(until()).unwrap();
    placed.wait(until()).unwrap();
    assert!(!is_lost() && !place.is_marked() && place.is_kept());
}

/// A state with as many decisions as its number says, and texts of which a page has few.
fn decided(number: usize) -> ConversationState {
    let of = |messages: usize| messages..=number + 1;
    let steps = of(1).map(|messages| PlanStep {
        messages,
        keep: 1,
        segments: Vec::new(),
        covered: messages,
        standing: 1,
        stayed: 0,
    });
    let decision = |position| FoldDecision::Shorten {
        position,
        text: format!("short {number} ").repeat(60).into(),
        reason: "it is long".into(),
    };
    let entries = of(1).map(|messages| DecisionEntry { messages, decision: decision(messages) });
    let attached = BTreeMap::from([(1, Arc::from(format!("a text of {number}")))]);
    let decisions = Decisions::restored(vec![number], steps.collect(), entries.collect(), attached);
    let known = (0..number).map(|n| MessageHashes::of_digest(Digest([n as u8; 16]))).collect();
    let seen = SeenMessages::new(known);
    let state = ConversationState::restored(seen, decisions, Billed::default(), None, 1);
    state.stored().mark().set(InStore::default());
    state
}

fn shape((beginning, state): &(Beginning, ConversationState)) -> String {
    let made = state.decisions();
    let (points, steps, entries, attached) = (made.points(), made.steps(), made.entries(), made.attached());
    format!("{beginning:?} {:?} {points:?} {steps:?} {entries:?} {attached:?}", state.seen().to_bytes())
}

const CONVERSATIONS: usize = 12;

/// The bytes of a store with some conversations and three requests of each, and what these are.
fn filled(directory: &Path) -> (Vec<u8>, Vec<String>) {
    let path = directory.join("whole.db");
    let store = GatewayFileStore::open(&path, 1 << 30, DamagePolicy::Fail).unwrap();
    let shapes = (0..CONVERSATIONS).map(|number| {
        let state = decided(number);
        store.save(saving(number, &state, &"y".repeat(500))).wait(Instant::now() + WAIT).unwrap();
        for _ in 0..3 {
            store.save_request(&RecordPlace::new(None), record(number)).wait(Instant::now() + WAIT).unwrap();
        }
        shape(&(beginning(number), state))
    });
    let shapes = shapes.collect();
    drop(store);
    let connection = Connection::open(&path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    (std::fs::read(&path).unwrap(), shapes)
}

/// What is left of a damaged store: its conversations, each as it was or not at all, and how many requests.
fn left(bytes: &[u8], shapes: &[String]) -> (usize, usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    std::fs::write(&path, bytes).unwrap();
    let store = GatewayFileStore::open(&path, 1 << 30, DamagePolicy::PutAside).unwrap();
    let mut conversations = 0;
    for (number, expected) in shapes.iter().enumerate() {
        if let Some(found) = store.conversation(&format!("c-{number}")).unwrap() {
            assert_eq!(shape(&found), *expected, "it is as it was, or it is gone: {:?}", store.damage());
            conversations += 1;
        }
    }
    let requests = store.requests(None).unwrap().len();
    drop(store);
    assert_eq!(check_store_file(&path).unwrap().findings, [] as [String; 0]);
    (conversations, requests)
}

#[test]
fn a_store_without_damage_has_everything() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, shapes) = filled(directory.path());
    assert_eq!(left(&bytes, &shapes), (CONVERSATIONS, 3 * CONVERSATIONS));
}

#[test]
fn a_bit_that_flips_costs_its_conversation_or_its_record_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, shapes) = filled(directory.path());
    // Each line of a decision, of a plan, of a row of a conversation and of a record.
    let places = |words: &[u8]| -> Vec<usize> {
        bytes.windows(words.len()).enumerate().filter(|(_, found)| *found == words).map(|(at, _)| at + 3).collect()
    };
    let decisions = places(b"\"reason\":\"it is long\"");
    let plans = places(b"\"covered\":");
    let records = places(b"\"is_unsaved\":");
    assert!(decisions.len() > 50 && plans.len() > 50 && records.len() >= 3 * CONVERSATIONS);
    for (kind, places) in [("decision", decisions), ("plan", plans), ("record", records)] {
        for place in places.into_iter().step_by(7) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 4;
            let expected = match kind {
                "record" => (CONVERSATIONS, 3 * CONVERSATIONS - 1),
                _ => (CONVERSATIONS - 1, 3 * CONVERSATIONS),
            };
            assert_eq!(left(&damaged, &shapes), expected, "a {kind} at {place}");
        }
    }
    // The words by which the file is known as a database.
    for place in [0, 9, 17, 21, 47, 59] {
        let mut damaged = bytes.clone();
        damaged[place] ^= 4;
        assert_eq!(left(&damaged, &shapes), (CONVERSATIONS, 3 * CONVERSATIONS), "the byte {place}");
    }
}

#[test]
fn a_page_that_is_lost_costs_what_is_on_it() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, shapes) = filled(directory.path());
    let (mut conversations, mut requests, mut pages) = (0, 0, 0);
    for page in 1..bytes.len() / 4096 {
        let mut damaged = bytes.clone();
        damaged[page * 4096..(page + 1) * 4096]
            .iter_mut()
            .for_each(|byte| *byte = byte.wrapping_mul(31).wrapping_add(7));
        let (left_conversations, left_requests) = left(&damaged, &shapes);
        conversations += CONVERSATIONS - left_conversations;
        requests += 3 * CONVERSATIONS - left_requests;
        pages += 1;
    }
    // A page by which others are found costs more; most cost little.
    assert!(conversations <= 3 * pages, "{conversations} conversations were lost with {pages} pages");
    assert!(requests <= 2 * 3 * CONVERSATIONS, "{requests} requests were lost with {pages} pages");
}

#[test]
fn old_conversations_expire_only_after_it_was_said_and_leave_their_receipts() {
    let directory = tempfile::tempdir().unwrap();
    let store = GatewayFileStore::open(&directory.path().join("gateway.db"), 1 << 30, DamagePolicy::Fail).unwrap();
    let until = Instant::now() + WAIT;
    let old = saving(1, &decided(3), "old");
    let new = Saving { used_ms: 1_000, ..saving(2, &decided(3), "new") };
    for saving in [old, new] {
        store.save(saving).wait(until).unwrap();
    }
    store.save_request(&RecordPlace::new(None), record(1)).wait(until).unwrap();
    assert_eq!(store.expire(500).unwrap(), 1, "this start says so");
    store.flush(WAIT);
    assert_eq!(store.version("c-1").unwrap(), Some(1));
    assert_eq!(store.expire(500).unwrap(), 0, "and the next one does so");
    store.flush(WAIT);
    assert_eq!((store.version("c-1").unwrap(), store.version("c-2").unwrap()), (None, Some(1)));
    assert_eq!(store.requests(None).unwrap().len(), 1);
    assert_eq!(store.names("c-1").unwrap(), ["c-1"], "it can still be forgotten by its name");
    assert_eq!(store.forget(Some("c-1")).unwrap(), 1);
}

#[test]
fn a_program_of_an_older_version_may_go_on_beside_this_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    let store = GatewayFileStore::open(&path, 1 << 30, DamagePolicy::Fail).unwrap();
    store.save(saving(1, &decided(3), "text")).wait(Instant::now() + WAIT).unwrap();
    // As the second version writes: without the columns that it does not know.
    let older = Connection::open(&path).unwrap();
    older.execute_batch("DELETE FROM steps WHERE n = 3; UPDATE conversations SET version = 2, sum = NULL").unwrap();
    let (_, found) = store.conversation("c-1").unwrap().expect("it is read as that version would");
    assert_eq!((found.stored().version(), found.decisions().steps().len()), (2, 3));
    assert_eq!(store.damage(), None);
}
