//! What every store of gateways does, in a file and in a database.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../contexture-store/tests/it/postgres/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use contexture::fold::{FoldDecision, Pins};
use contexture::wire::{Digest, Format};

use super::{
    RecordPlace, RunningGateway, Saving, Store, StoreError, check_store_file, is_store, open_limited_store, open_store,
};
use crate::account::record::RequestRecord;
use crate::conversation::billed::Billed;
use crate::conversation::decisions::{DecisionEntry, Decisions};
use crate::conversation::hashes::MessageHashes;
use crate::conversation::health::StopReason;
use crate::conversation::plan_history::PlanStep;
use crate::conversation::seen::SeenMessages;
use crate::conversation::state::{AcceptedForm, ConversationState};
use crate::conversation::stored::InStore;
use crate::conversation::{Beginning, Conversation};
use server::Server;

fn conversation(id: &str, key: u8) -> Conversation {
    let beginning = Beginning {
        id: id.into(),
        key: Digest([key; 16]),
        scope: Digest([9; 16]),
        parent: Some("before".into()),
        format: Format::Messages,
        lead: 2,
        is_held_out: true,
    };
    Conversation::new(beginning, ConversationState::default())
}

fn step(messages: usize) -> PlanStep {
    PlanStep { messages, keep: 1, segments: Vec::new(), covered: messages, standing: 1, stayed: 0 }
}

fn decided(messages: usize) -> DecisionEntry {
    let decision = FoldDecision::Shorten { position: messages, text: "short".into(), reason: "it is long".into() };
    DecisionEntry { messages, decision }
}

/// A state after some requests.
fn state(messages: usize) -> ConversationState {
    let known = |n: usize| MessageHashes::of_digest(Digest([n as u8; 16]));
    let (steps, entries) = ((1..=messages).map(step).collect(), (1..=messages).map(decided).collect());
    let attached = BTreeMap::from([(1, Arc::from("a text \u{fc}"))]);
    let decisions = Decisions::restored(vec![messages], steps, entries, attached);
    let seen = SeenMessages::new((0..messages).map(known).collect());
    ConversationState::restored(seen, decisions, Billed::default(), None, messages as u64)
}

/// What can be compared of a state.
fn shape(state: &ConversationState) -> String {
    let (seen, made) = (state.seen().to_bytes(), state.decisions());
    let (points, steps, entries) = (made.points(), made.steps(), made.entries());
    format!("{seen:?} {points:?} {steps:?} {entries:?} {:?} {}", made.attached(), state.stored().version())
}

/// Runs the suite against stores in both places. `open` opens the same one each time.
fn check(place: &Path) {
    let store = open_store(place).unwrap();
    conversations_come_back(&*store);
    a_writer_that_is_outdated_is_refused(place);
    a_write_that_comes_late_takes_nothing_back(place);
    what_was_reverted_is_gone(&*store);
    requests_and_texts_are_found(&*store);
    gateways_are_listed(&*store);
    what_is_forgotten_is_gone(&*store);
    the_least_recently_used_go_first(&*store);
}

/// Writes a conversation and waits for it, all of it if it was deleted meanwhile.
fn save(
    store: &dyn Store,
    conversation: &Conversation,
    state: &ConversationState,
    texts: &[(String, String)],
    now_ms: u64,
) -> Result<(), StoreError> {
    let until = Instant::now() + Duration::from_secs(10);
    let saving = || Saving::new(conversation.beginning(), state, texts.to_vec(), now_ms).unwrap();
    match store.save(saving()).wait(until) {
        Err(StoreError::Gone) => store.save(saving()).wait(until),
        outcome => outcome,
    }
}

/// A state of which nothing is in the store yet.
fn fresh(messages: usize) -> ConversationState {
    let state = state(messages);
    state.stored().mark().set(InStore::default());
    state
}

fn conversations_come_back(store: &dyn Store) {
    let (one, two) = (conversation("c-one", 1), conversation("c-two", 1));
    save(store, &one, &fresh(3), &[], 10).unwrap();
    save(store, &two, &fresh(2), &[], 20).unwrap();
    store.save_pins("c-one", &Pins::default()).unwrap();
    let key = Digest([1; 16]);
    let candidates = |ends: &[u8], most| {
        let ends: Vec<Digest> = ends.iter().map(|end| Digest([*end; 16])).collect();
        let mut found = store.candidates(key, &ends, most).unwrap();
        found.sort();
        found
    };
    let (first, second) = (("c-one".to_owned(), 3), ("c-two".to_owned(), 2));
    assert_eq!(candidates(&[], 9), [first.clone(), second.clone()]);
    assert_eq!(candidates(&[], 1), std::slice::from_ref(&second), "the one that was used last");
    assert_eq!(
        candidates(&[0, 2], 0),
        std::slice::from_ref(&first),
        "the one whose newest request ends with that message"
    );
    assert_eq!(candidates(&[7, 2], 1), [first, second]);
    assert_eq!(store.candidates(Digest([7; 16]), &[], 9).unwrap(), []);
    assert_eq!((store.version("c-one").unwrap(), store.version("c").unwrap()), (Some(3), None));
    assert_eq!(store.key_of("c-two").unwrap(), Some(key));
    assert!(store.conversation("c").unwrap().is_none());
    let (beginning, found) = &store.conversation("c-one").unwrap().unwrap();
    assert_eq!(shape(found), shape(&state(3)));
    assert_eq!((found.stored().saved(), found.stored().saved_counts()), (3, (3, 3)));
    assert_eq!((beginning.key, beginning.scope, beginning.lead), (key, Digest([9; 16]), 2));
    assert_eq!((beginning.parent.as_deref(), beginning.format), (Some("before"), Format::Messages));
    assert!(beginning.is_held_out);
    assert_eq!(store.decisions("c-one").unwrap().len(), 3);
    assert_eq!(store.names("c-").unwrap(), ["c-two", "c-one"]);
    assert_eq!(store.names("c-o").unwrap(), ["c-one"]);
    assert_eq!(store.names("d").unwrap(), Vec::<String>::new());
}

fn a_writer_that_is_outdated_is_refused(place: &Path) {
    let (here, there) = (open_store(place).unwrap(), open_store(place).unwrap());
    let one = conversation("c-shared", 2);
    let mut ours = fresh(1);
    save(&*here, &one, &ours, &[], 30).unwrap();
    let mut theirs = there.conversation("c-shared").unwrap().unwrap().1;
    assert!(theirs.note_point(50));
    save(&*there, &one, &theirs, &[], 31).unwrap();
    assert!(ours.note_point(60));
    assert!(matches!(save(&*here, &one, &ours, &[], 32), Err(StoreError::Conflict)));
    // Both have the same number, so the number alone does not tell that this one is outdated.
    assert_eq!((here.version("c-shared").unwrap(), ours.stored().version()), (Some(2), 2));
    assert!(ours.stored().mark().is_overtaken());
}

fn a_write_that_comes_late_takes_nothing_back(place: &Path) {
    let (here, there) = (open_store(place).unwrap(), open_store(place).unwrap());
    let (one, until) = (conversation("c-late", 2), Instant::now() + Duration::from_secs(10));
    let mut ours = fresh(1);
    save(&*here, &one, &ours, &[], 33).unwrap();
    let late = Saving::new(one.beginning(), &ours, vec![("fedcba987654".into(), "a text".into())], 34).unwrap();
    assert!(ours.note_point(50));
    save(&*here, &one, &ours, &[], 35).unwrap();
    // Another gateway writes what it was billed for the same version.
    let theirs = there.conversation("c-late").unwrap().unwrap().1;
    save(&*there, &one, &theirs, &[], 36).unwrap();
    here.save(late).wait(until).unwrap();
    let found = there.conversation("c-late").unwrap().unwrap().1;
    assert_eq!((found.decisions().points(), found.stored().version()), (&[1, 50][..], 2));
    assert!(there.text("fedcba987654").unwrap().is_some());
    assert!(!ours.stored().is_behind() && !ours.stored().mark().is_overtaken());
}

fn what_was_reverted_is_gone(store: &dyn Store) {
    let one = conversation("c-reverted", 3);
    let mut held = fresh(4);
    save(store, &one, &held, &[], 40).unwrap();
    for _ in 0..2 {
        held.note_refusal(3, Vec::new(), AcceptedForm::Earlier);
    }
    save(store, &one, &held, &[], 41).unwrap();
    let (_, found) = store.conversation("c-reverted").unwrap().unwrap();
    assert_eq!(found.health().stopped(), Some(&StopReason::Refused));
    let counts = |state: &ConversationState| (state.decisions().entries().len(), state.decisions().steps().len());
    assert_eq!(counts(&found), counts(&held));
    assert_eq!(store.decisions("c-reverted").unwrap().len(), 2);
}

fn requests_and_texts_are_found(store: &dyn Store) {
    let one = conversation("c-texts", 4);
    let texts = [("0123456789ab".to_owned(), "the whole text".to_owned())];
    save(store, &one, &fresh(1), &texts, 50).unwrap();
    for start in ["012345", "0123456789ab", "0123456789AB"] {
        let shown = store.text(start).unwrap().unwrap();
        assert_eq!((shown.text.as_str(), shown.conversation.as_str()), ("the whole text", "c-texts"));
    }
    assert_eq!(store.text("01234").unwrap(), None, "too short");
    assert_eq!(store.text("ffffff").unwrap(), None);
    assert_eq!(store.text("%%%%%%").unwrap(), None);
    for n in 0..3_u64 {
        let conversation = (n > 0).then(|| "c-texts".to_owned());
        let session = if n == 2 { "second" } else { "first" }.to_owned();
        let record = RequestRecord { session, conversation, time_ms: n, ..RequestRecord::default() };
        let place = RecordPlace::new(None);
        let until = Instant::now() + Duration::from_secs(10);
        store.save_request(&place, Arc::new(RequestRecord { is_open: true, ..record.clone() })).wait(until).unwrap();
        // It is written in the place of the first one.
        store.save_request(&place, Arc::new(record)).wait(until).unwrap();
    }
    let times = |session| store.requests(session).unwrap().iter().map(|request| request.time_ms).collect::<Vec<_>>();
    assert!(store.requests(None).unwrap().iter().all(|request| !request.is_open));
    assert_eq!((times(None), times(Some("first")), times(Some("x"))), (vec![0, 1, 2], vec![0, 1], vec![]));
}

fn gateways_are_listed(store: &dyn Store) {
    let gateway = |id: &str| RunningGateway {
        id: id.to_owned(),
        address: "127.0.0.1:1".to_owned(),
        token: "token".to_owned(),
        pid: 7,
        host: String::new(),
    };
    store.note_gateway(&gateway("a")).unwrap();
    store.note_gateway(&gateway("b")).unwrap();
    store.flush(Duration::from_secs(10));
    assert_eq!(store.gateways().unwrap(), [gateway("a"), gateway("b")]);
    store.forget_gateway("a").unwrap();
    assert_eq!(store.gateways().unwrap(), [gateway("b")]);
}

fn what_is_forgotten_is_gone(store: &dyn Store) {
    assert_eq!(store.forget(Some("c-texts")).unwrap(), 1);
    assert_eq!(store.forget(Some("c-texts")).unwrap(), 0);
    assert_eq!(store.text("012345").unwrap(), None);
    assert_eq!(store.requests(None).unwrap().len(), 1, "the one without a conversation is left");
    assert!(store.conversation("c-texts").unwrap().is_none());
    // Written again after it was forgotten, it is whole.
    let one = conversation("c-one", 1);
    store.forget(Some("c-one")).unwrap();
    let mut held = state(3);
    assert!(held.note_point(70));
    save(store, &one, &held, &[], 60).unwrap();
    let (_, found) = store.conversation("c-one").unwrap().unwrap();
    assert_eq!(found.decisions().entries().len(), 3);
    assert!(store.forget(None).unwrap() >= 3);
    assert_eq!(store.requests(None).unwrap().len() + store.names("").unwrap().len(), 0);
    assert_eq!(store.gateways().unwrap().len(), 1, "what runs is not forgotten");
}

fn the_least_recently_used_go_first(store: &dyn Store) {
    for n in 0..40_u64 {
        let texts = [(format!("{n:012x}"), "x".repeat(20_000))];
        save(store, &conversation(&format!("s-{n:02}"), 5), &fresh(1), &texts, n).unwrap();
    }
    store.shrink(400_000).unwrap();
    let mut names = store.names("s-").unwrap();
    names.sort();
    assert!((3..30).contains(&names.len()), "{names:?}");
    assert_eq!(names.last().map(String::as_str), Some("s-39"));
    let first: usize = names[0][2..].parse().unwrap();
    assert_eq!(names.len(), 40 - first, "those that were used last are left: {names:?}");
}

#[test]
fn a_file_does_what_every_store_does() {
    let directory = tempfile::tempdir().unwrap();
    check(&directory.path().join("gateway.db"));
}

#[test]
fn a_database_does_what_every_store_does() {
    let Some(server) = Server::start() else { return };
    check(&PathBuf::from(server.url(&server.make_database())));
}

#[test]
fn a_database_that_is_away_delays_little_and_comes_back() {
    let Some(mut server) = Server::start() else { return };
    let store = open_store(&PathBuf::from(server.url(&server.make_database()))).unwrap();
    save(&*store, &conversation("c-one", 1), &fresh(1), &[], 1).unwrap();
    server.pause();
    // The first one waits for as long as a restart may take, the others not at all.
    assert!(matches!(store.version("c-one"), Err(StoreError::Away)));
    let begun = std::time::Instant::now();
    for _ in 0..50 {
        assert!(matches!(store.version("c-one"), Err(StoreError::Away)));
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    server.go_on();
    let begun = std::time::Instant::now();
    while store.version("c-one").ok() != Some(Some(1)) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "it does not come back");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    server.restart_hard();
    let begun = std::time::Instant::now();
    while store.version("c-one").ok() != Some(Some(1)) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "it does not come back");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// A connection is lost before its commit arrives, as when the server restarts, and another write comes first when it is
/// tried again. Whether the first one was applied cannot be told from the refusal, only from what is there.
#[test]
fn a_write_is_not_lost_with_its_connection() {
    let Some(server) = Server::start() else { return };
    let database = server.make_database();
    let cutting = CuttingProxy::start(server.port);
    let place = |port| PathBuf::from(server.url_at(port, "tester", "secret-word", &database));
    let (here, there) = (open_store(&place(cutting.port)).unwrap(), open_store(&place(server.port)).unwrap());
    let one = conversation("c-one", 1);
    let mut ours = fresh(1);
    save(&*here, &one, &ours, &[], 1).unwrap();
    assert!(ours.note_point(50));
    let mut other = Some(there);
    cutting.cut_at_commit(move || {
        // Another gateway writes what it was billed for the same version.
        let there = other.take().unwrap();
        let (_, theirs) = there.conversation("c-one").unwrap().unwrap();
        save(&*there, &conversation("c-one", 1), &theirs, &[], 2).unwrap();
    });
    save(&*here, &one, &ours, &[], 3).unwrap();
    assert!(cutting.has_cut(), "no connection was cut");
    assert_eq!(here.version("c-one").unwrap(), Some(2));
    assert!(!ours.stored().is_behind());
}

/// What is done between the end of a connection and the next one.
type Between = Box<dyn FnMut() + Send>;

/// Passes connections on to a server, and cuts the next one that commits.
struct CuttingProxy {
    port: u16,
    /// Held while connections are cut: new ones wait.
    between: Arc<Mutex<Option<Between>>>,
}

impl CuttingProxy {
    fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let between: Arc<Mutex<Option<Between>>> = Arc::default();
        let cutting = between.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (Ok(server), cutting) = (TcpStream::connect(("127.0.0.1", server)), cutting.clone()) else {
                    return;
                };
                let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut from_server, &mut to_client));
                std::thread::spawn(move || pass_until_commit(client, server, &cutting));
            }
        });
        Self { port, between }
    }

    /// Cuts the next connection that commits, before the server gets the commit, and then does something before anything
    /// else is passed on.
    fn cut_at_commit(&self, between: impl FnMut() + Send + 'static) {
        *self.between.lock().unwrap() = Some(Box::new(between));
    }

    /// Whether a connection was cut since then.
    fn has_cut(&self) -> bool {
        self.between.lock().unwrap().is_none()
    }
}

fn pass_until_commit(mut client: TcpStream, mut server: TcpStream, cutting: &Mutex<Option<Between>>) {
    let mut bytes = [0; 65_536];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        // Connections that are not cut wait meanwhile.
        let mut cutting = cutting.lock().unwrap();
        let is_commit = bytes[..count].windows(6).any(|part| part == b"COMMIT");
        if let Some(mut between) = cutting.take_if(|_| is_commit) {
            for end in [&client, &server] {
                // It may have ended by itself.
                let _ = end.shutdown(Shutdown::Both);
            }
            between();
            return;
        }
        drop(cutting);
        if server.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

#[test]
fn a_file_of_somebody_else_is_not_written_into() {
    let directory = tempfile::tempdir().unwrap();
    let check = |name: &str, sql: &str| {
        let path = directory.path().join(name);
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(open_store(&path), Err(StoreError::Foreign(_))), "{name}");
        assert!(!is_store(&path), "{name}");
        assert!(before == std::fs::read(&path).unwrap(), "{name} is as it was");
    };
    check("notes.db", "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine');");
    check("alike.db", "CREATE TABLE conversations (id TEXT); CREATE TABLE requests (id TEXT);");
    check("marked.db", "PRAGMA user_version = 7;");
    let text = directory.path().join("letter.txt");
    std::fs::write(&text, "Dear Ann, this is no database. ".repeat(100)).unwrap();
    assert!(matches!(open_store(&text), Err(StoreError::Foreign(_))));
    assert!(std::fs::read_to_string(&text).unwrap().starts_with("Dear Ann"));
    // An empty file, and a store that is there already, are taken.
    let own = directory.path().join("own.db");
    std::fs::write(&own, "").unwrap();
    drop(open_store(&own).unwrap());
    assert!(is_store(&own) && open_store(&own).is_ok());
}

/// A store as the second version of the schema had it: its tables and rows, as SQL.
#[test]
fn a_store_of_the_second_version_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch(include_str!("store_2.sql")).unwrap();
    assert!(is_store(&path));
    assert_eq!(check_store_file(&path).unwrap().findings, [] as [String; 0]);
    let store = open_limited_store(&path, 1 << 30).unwrap();
    assert_eq!(store.damage(), None);
    assert_eq!(store.names("c-").unwrap(), ["c-two", "c-one"]);
    let (_, found) = store.conversation("c-one").unwrap().unwrap();
    assert_eq!(shape(&found), shape(&state(3)));
    assert_eq!(store.requests(Some("first")).unwrap().len(), 2);
    assert_eq!(store.text("012345").unwrap().unwrap().text, "the whole text");
    save(&*store, &conversation("c-three", 1), &fresh(2), &[], 30).unwrap();
    assert_eq!(store.names("c-").unwrap().len(), 3);
}
