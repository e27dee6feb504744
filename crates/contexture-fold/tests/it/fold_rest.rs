//! A folder that was put to rest and woken goes on as one that stayed awake.

use std::sync::Arc;

use contexture_core::Item;
use contexture_core::item::{FunctionCallOutput, Meta, Origin, Outcome, Reasoning, Role};
use contexture_core::tokens::Estimate;
use contexture_fold::{FoldDecision, Folder, Pins, Policy, Rest, RestError};
use contexture_wire::transcript::Record;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::records::{Counted, answers, asks, call, counted, folder, folder_of, folds, said, sent};
use crate::steps::{Step, conversation};

/// A log as it is given to a folder at rest.
type Log = Vec<(Arc<Item>, u64)>;

fn line(number: usize) -> String {
    match number % 5 {
        0 => String::new(),
        1 => "}".into(),
        2 => format!("    let value_{number} = compute(\"字 {number}\");"),
        3 => "    return Err(Error::NotFound);".into(),
        _ => format!("\t// see `other_{}.rs`, line {number}", number % 3),
    }
}

fn lines(first: usize, count: usize, ending: &str) -> String {
    (first..first + count).map(|number| line(number) + ending).collect()
}

/// Calls of every kind that a model of files is changed by, with what the tools return.
fn exchange() -> impl Strategy<Value = (&'static str, Value, String)> {
    let path = || select(vec!["/app/src/a.rs", "/app/src/b.rs", "src/a.rs", "C:\\app\\c.rs", "/app/d 字.md"]);
    let count = || 1..60_usize;
    prop_oneof![
        4 => (path(), 1..40_usize, count()).prop_map(|(path, first, count)| {
            let text = (first..first + count).map(|n| format!("{n:>6}→{}\n", line(n))).collect();
            ("Read", json!({"file_path": path, "offset": first}), text)
        }),
        2 => (path(), count(), select(vec!["\n", "\r\n"])).prop_map(|(path, count, ending)| {
            ("Write", json!({"file_path": path, "content": lines(1, count, ending)}), "File created.".into())
        }),
        3 => (path(), 1..40_usize, any::<bool>()).prop_map(|(path, number, all)| {
            let edit = json!({"file_path": path, "old_string": "value_", "new_string": format!("thing_{number}_"), "replace_all": all});
            ("Edit", edit, "The file has been updated.".into())
        }),
        1 => (path(), 1..40_usize).prop_map(|(path, number)| {
            let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n {}\n+// put in by {number}\n*** End Patch", line(2));
            ("apply_patch", json!({"input": patch}), "Done!".into())
        }),
        1 => (path(), count()).prop_map(|(path, count)| {
            ("Bash", json!({"command": format!("cat '{path}'")}), lines(1, count, "\n"))
        }),
        1 => (path(), path()).prop_map(|(from, to)| {
            ("Bash", json!({"command": format!("mv '{from}' '{to}' && cd /app")}), String::new())
        }),
        1 => path().prop_map(|path| {
            ("Bash", json!({"command": format!("sed -i 's/value/worth/' '{path}'; cp '{path}' /app/copy.rs")}), String::new())
        }),
        1 => (path(), count()).prop_map(|(path, count)| {
            let found = (1..count).map(|n| format!("{path}:{n}:{}\n", line(n))).collect();
            ("Grep", json!({"pattern": "value", "output_mode": "content"}), found)
        }),
        2 => (path(), 0..300_usize).prop_map(|(path, count)| {
            let told = |n: usize| format!("error: at {path}:{n}: mismatched types\n");
            ("Bash", json!({"command": select_command(count)}), (0..count).map(told).collect())
        }),
        1 => path().prop_map(|path| {
            ("TodoWrite", json!({"todos": [{"content": format!("change value_7 in {path}")}]}), "ok".into())
        }),
    ]
}

fn select_command(seed: usize) -> &'static str {
    ["cargo test", "make all", "git checkout .", "ln -s src lib", "rm -r src", "ls | xargs sed -i d"][seed % 6]
}

/// What happens in one step of a conversation.
#[derive(Clone, Debug)]
enum Event {
    Exchange(&'static str, Value, String, Outcome),
    Said(Role, String),
    Attached(&'static str, String),
    /// Two calls in one response, answered the other way round, the second only after something else was said.
    Late(String),
    /// A response of two calls and what the model thought before it.
    Thought,
    Unanswered,
    Stray,
    Empty,
    Cold,
}

fn event() -> impl Strategy<Value = Event> {
    let outcome = select(vec![Outcome::Done, Outcome::Done, Outcome::Done, Outcome::Failed, Outcome::Unknown]);
    let words =
        || prop_oneof!["[a-z ]{0,40}", Just("look at src/a.rs:12 and b.rs".to_owned()), Just("字 ".repeat(900))];
    prop_oneof![
        12 => (exchange(), outcome).prop_map(|((tool, arguments, text), outcome)| Event::Exchange(tool, arguments, text, outcome)),
        2 => (select(vec![Role::User, Role::Developer, Role::Assistant]), words()).prop_map(|(role, text)| Event::Said(role, text)),
        1 => (select(vec!["file", "edited_text_file", "todo_reminder", "memory"]), 1..30_usize).prop_map(|(kind, count)| Event::Attached(kind, lines(1, count, "\n"))),
        1 => (1..400_usize).prop_map(|count| Event::Late(lines(1, count, "\n"))),
        1 => Just(Event::Thought),
        1 => Just(Event::Unanswered),
        1 => Just(Event::Stray),
        1 => Just(Event::Empty),
        1 => Just(Event::Cold),
    ]
}

/// The messages of some events; one without items says that the cache is cold.
fn messages(events: &[Event]) -> Vec<Option<Counted>> {
    let mut messages = vec![Some(counted(&Estimate, &said(Role::User, "Please go through it.")))];
    for (index, event) in events.iter().enumerate() {
        let id = format!("call-{}", index % 7);
        let records: Vec<Record> = match event {
            Event::Exchange(tool, arguments, text, outcome) => {
                let output = FunctionCallOutput::new(&id, text.clone(), *outcome);
                vec![asks(&id, tool, arguments.clone()), Item::from(output).into()]
            }
            Event::Said(role, text) => vec![said(*role, text.clone())],
            Event::Attached(kind, text) => {
                let mut item = Item::user(text.clone());
                if let Item::Message(message) = &mut item {
                    let origin = Origin::Harness { kind: Some((*kind).into()), path: Some("/app/src/a.rs".into()) };
                    message.meta = Meta { origin, directory: Some("/app".into()), ..Meta::default() };
                }
                vec![item.into()]
            }
            Event::Late(text) => {
                let calls = ["late-1", "late-2"].map(|id| call(id, "Bash", &json!({"command": "cat /app/src/a.rs"})));
                let between = (0..6).map(|_| said(Role::User, "And this. ".repeat(300)));
                let first = [Record::response("", calls), answers("late-2", text.clone())];
                first.into_iter().chain(between).chain([answers("late-1", text.clone())]).collect()
            }
            Event::Thought => {
                let calls =
                    ["TodoWrite", "Bash"].map(|tool| call(&format!("{tool}-{id}"), tool, &json!({"todos": []})));
                let thought = Item::from(Reasoning::new("what now? ".repeat(30), None));
                let outputs = calls.each_ref().map(|call| answers(&call.call_id, "ok"));
                let items = [thought, Item::Opaque(json!({"type": "new"}))].into_iter().chain(calls.map(Item::from));
                [Record::from_items(items.collect())].into_iter().chain(outputs).collect()
            }
            Event::Unanswered => vec![asks(&id, "Bash", json!({"command": "sleep 1"}))],
            Event::Stray => vec![answers("stray", "an answer to nothing")],
            Event::Empty => {
                messages.push(Some(Vec::new()));
                continue;
            }
            Event::Cold => {
                messages.push(None);
                continue;
            }
        };
        messages.extend(records.iter().map(|record| Some(counted(&Estimate, record))));
    }
    messages
}

/// A folder as it is after its bytes were stored and read again.
#[track_caller]
fn rested(folder: &Folder, fresh: Folder, log: &Log) -> Folder {
    let rest = folder.rest(log).unwrap();
    let read = Rest::from_bytes(rest.as_bytes()).unwrap();
    assert_eq!((&read, read.len()), (&rest, folder.len()));
    fresh.wake(&read, log).unwrap()
}

/// Everything that can be seen of a folder.
#[track_caller]
fn check_same(awake: &Folder, woken: &Folder, log: &Log) {
    assert_eq!(sent(awake.window()), sent(woken.window()));
    assert_eq!(awake.window().iter().map(|item| item.tokens).sum::<u64>(), woken.tokens());
    assert_eq!((awake.tokens(), awake.len()), (woken.tokens(), woken.len()));
    assert_eq!(awake.passed_through_tokens(), woken.passed_through_tokens());
    assert_eq!(awake.account(), woken.account());
    assert_eq!(awake.model().files(), woken.model().files());
    assert_eq!(awake.model().bytes(), woken.model().bytes());
    assert!(awake.rest(log) == woken.rest(log), "both at rest differ");
}

/// Plays messages to a folder that stays awake and to one that rests before every message and every request; returns
/// how often they folded.
#[track_caller]
fn check(messages: &[Option<Counted>], fresh: impl Fn() -> Folder) -> usize {
    let (mut awake, mut woken, mut done) = (fresh(), fresh(), 0);
    let mut log = Log::new();
    for message in messages {
        woken = rested(&woken, fresh(), &log);
        let Some(message) = message else {
            awake.cache_is_cold();
            woken.cache_is_cold();
            continue;
        };
        if message.first().is_some_and(|(item, _)| item.is_of_model()) {
            let (one, other) = (sent(awake.request()), sent(woken.request()));
            assert_eq!(one, other);
            check_same(&awake, &woken, &log);
            let decisions = awake.take_decisions();
            assert_eq!(decisions, woken.take_decisions());
            done += folds(&decisions);
            woken = rested(&woken, fresh(), &log);
        }
        log.extend(message.iter().cloned());
        for folder in [&mut awake, &mut woken] {
            folder.push(message.iter().cloned());
        }
        assert_eq!(awake.take_decisions(), woken.take_decisions());
        check_same(&awake, &woken, &log);
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if crate::IS_LONG { 24 } else { 10 }))]

    #[test]
    fn a_folder_that_rests_before_every_message_does_what_one_does_that_stays_awake(
        mut events in prop::collection::vec(event(), 1..40),
        budget in select(vec![600_u64, 1_500, 4_000, 20_000]),
        is_verbatim in any::<bool>(),
        is_pinned in any::<bool>(),
    ) {
        let pins = Pins::new().tool("TodoWrite").role(Role::Assistant).path("b.rs");
        let policy = Policy::new(budget).with_pins(if is_pinned { pins } else { Pins::new() });
        let policy = if is_verbatim { policy.verbatim() } else { policy };
        // Without a fold there would be little to see.
        events.extend((0..6).map(|n| {
            let arguments = json!({"file_path": format!("/app/src/more_{n}.rs")});
            Event::Exchange("Read", arguments, lines(1, 10 + budget as usize / 16, "\n"), Outcome::Done)
        }));
        let done = check(&messages(&events), || folder_of(policy.clone()).with_output_tool("show"));
        prop_assert!(done > 0, "nothing was folded");
    }

    #[test]
    fn bytes_that_were_changed_are_refused(steps in prop::collection::vec(Just(()), 1..6), at in any::<Index>(), flip in 1..=255_u8) {
        let steps: Vec<Step> = (0..steps.len()).map(|n| Step::Read { file: n as u8, first: 1, count: 40 }).collect();
        let (folder, log) = played(&steps);
        let bytes = folder.rest(&log).unwrap().as_bytes().to_vec();
        let at = at.index(bytes.len());
        prop_assert!(Rest::from_bytes(&bytes[..at]).is_err());
        let mut changed = bytes;
        changed[at] ^= flip;
        prop_assert!(Rest::from_bytes(changed).is_err());
    }
}

/// A folder after a conversation, and the log.
fn played(steps: &[Step]) -> (Folder, Log) {
    let messages: Vec<Counted> = conversation(steps).iter().map(|record| counted(&Estimate, record)).collect();
    let mut folder = folder(4_000);
    for message in &messages {
        if message[0].0.is_of_model() {
            folder.request();
        }
        folder.push(message.iter().cloned());
    }
    (folder, messages.into_iter().flatten().collect())
}

#[test]
fn a_folder_that_took_in_nothing_rests_too() {
    check(&[], || folder(2_000));
    let rest = folder(2_000).rest(&[]).unwrap();
    assert!(rest.is_empty());
}

#[test]
fn items_that_are_not_those_of_the_folder_are_refused() {
    let steps = [Step::Read { file: 0, first: 1, count: 40 }, Step::Edit { file: 0, line: 5 }];
    let (awake, log) = played(&steps);
    let rest = awake.rest(&log).unwrap();
    let refused = |log: &Log| {
        let refused = folder(4_000).wake(&rest, log).map(|_| ()).unwrap_err();
        assert_eq!(awake.rest(log).unwrap_err(), refused);
        refused
    };
    let changed = |change: &dyn Fn(&mut Log)| {
        let mut log = log.clone();
        change(&mut log);
        refused(&log)
    };
    let said = |text: &str| (Arc::new(Item::user(text)), log[0].1);
    assert_eq!(changed(&|log| log[0] = said("Please break the build.")), RestError::OtherItems);
    assert_eq!(changed(&|log| log[0].1 += 1), RestError::OtherItems);
    assert_eq!(changed(&|log| log.truncate(log.len() - 1)), RestError::OtherItems);
    assert_eq!(changed(&|log| log.swap(1, 2)), RestError::OtherItems);
    assert_eq!(changed(&|log| log.insert(0, said("First of all,"))), RestError::OtherItems);
    let mut longer = log.clone();
    longer.push(said("And then?"));
    assert_eq!(folder(4_000).wake(&rest, &longer).unwrap().len(), log.len());
}

#[test]
fn what_is_no_folder_at_rest_of_this_version_is_refused_with_a_reason() {
    let (folder, log) = played(&[Step::Say(3)]);
    let bytes = folder.rest(&log).unwrap().as_bytes().to_vec();
    let mut newer = bytes.clone();
    newer[4] += 1;
    let version = newer[4];
    assert_eq!(Rest::from_bytes(newer), Err(RestError::OtherVersion(version)));
    for no_rest in [&b""[..], b"cxr\n", b"SQLite format 3", &[0xff; 64]] {
        assert_eq!(Rest::from_bytes(no_rest), Err(RestError::Damaged));
    }
    let mut longer = bytes;
    longer.push(0);
    assert_eq!(Rest::from_bytes(longer), Err(RestError::Damaged));
}

#[test]
fn a_folder_at_rest_holds_no_text_that_is_in_the_log() {
    let steps: Vec<Step> = (0..60)
        .map(|n| match n % 3 {
            0 => Step::Read { file: n % 6, first: 1, count: 200 },
            1 => Step::Edit { file: n % 6, line: usize::from(n) },
            _ => Step::Write { file: n % 6, count: 100 },
        })
        .collect();
    let (folder, log) = played(&steps);
    let is_folded = |decision: &FoldDecision| matches!(decision, FoldDecision::Fold(_));
    assert!(folder.decisions().iter().any(is_folded), "nothing was folded");
    let rest = folder.rest(&log).unwrap();
    let text = String::from_utf8_lossy(rest.as_bytes()).into_owned();
    assert_eq!(text.matches("let value_").count(), 0, "{text}");
    assert!(folder.model().bytes() > 20_000);
    assert!(rest.as_bytes().len() < folder.model().bytes() / 4, "{} bytes", rest.as_bytes().len());
}
