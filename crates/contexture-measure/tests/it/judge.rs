//! The measures, on conversations small enough to count by hand.

use std::sync::Arc;

use contexture::fold::Prices;
use contexture::item::{FunctionCall, Item, Role};
use contexture::transcript::{Record, Transcript};
use contexture_measure::judge::{Measures, WindowJudge};
use contexture_measure::policies::{KNOWN, MadeMessage, ShownMessage, WindowChange, WindowEntry, WindowPolicy};
use contexture_measure::recorded::RecordedSession;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::policies::{shape, transcript_of};

fn said(role: Role, text: &str) -> Record {
    Item::message(role, text).into()
}

/// A response with one call; arguments that are a text are written as they are.
fn calls(id: &str, name: &str, arguments: Value) -> Record {
    let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    Record::response("", [FunctionCall::new(id, name, arguments)])
}

fn answers(id: &str, text: &str) -> Record {
    Item::output(id, text).into()
}

fn full(index: usize) -> WindowEntry {
    WindowEntry::RecordedSession { index, shown: ShownMessage::Full }
}

fn stub(index: usize) -> WindowEntry {
    WindowEntry::RecordedSession { index, shown: ShownMessage::Stub }
}

fn made(record: &Record) -> WindowEntry {
    WindowEntry::Made(MadeMessage::new(record.clone()))
}

fn measure(records: &[Record], requests: impl IntoIterator<Item = WindowChange>) -> Measures {
    let transcript = Transcript { records: records.to_vec() };
    let recorded = RecordedSession::new(&transcript);
    let mut judge = WindowJudge::new(&recorded, Prices::ANTHROPIC);
    requests.into_iter().for_each(|request| judge.take(request));
    judge.finish(1_000.0)
}

/// A file is read, changed, and changed again.
fn conversation() -> [Record; 6] {
    let edit = |old: &str| json!({"file_path": "a.rs", "old_string": old, "new_string": "x"});
    [
        said(Role::User, "go"),
        calls("r", "Read", json!({"file_path": "a.rs"})),
        answers("r", "     1→fn a() {\n     2→    twenty_characters();\n     3→}\n"),
        calls("e", "Edit", edit("fn a() {\n    twenty_characters();\n")),
        answers("e", "done"),
        calls("f", "Edit", edit("    twenty_characters();\n}")),
    ]
}

/// The requests that show the recorded messages of `shown` before messages 1, 3 and 5.
fn requests(shown: [Vec<WindowEntry>; 3]) -> Vec<WindowChange> {
    shown.into_iter().zip([1, 3, 5]).map(|(added, before)| WindowChange { before, keep: 0, added }).collect()
}

#[track_caller]
fn check_last(shown: Vec<WindowEntry>, hits: u64, stale_bytes: u64) {
    let first = [vec![full(0)], (0..3).map(full).collect(), shown];
    let measures = measure(&conversation(), requests(first));
    assert_eq!((measures.targets, measures.hits, measures.stale_bytes), (2, 1 + hits, stale_bytes));
}

#[test]
fn an_edit_finds_its_text_without_the_line_numbers() {
    check_last((0..5).map(full).collect(), 1, 0);
    check_last(vec![full(0), full(3), full(4)], 0, 0);
    check_last(vec![full(0), full(1), stub(2), full(3), full(4)], 0, 0);
    let head = WindowEntry::RecordedSession { index: 2, shown: ShownMessage::Head };
    check_last(vec![full(0), full(1), head, full(3), full(4)], 0, 0);
}

#[test]
fn a_read_is_stale_when_a_later_change_is_hidden() {
    let bytes = conversation()[2].text().len() as u64;
    check_last(vec![full(0), full(1), full(2)], 1, bytes);
    check_last(vec![full(0), full(1), full(2), stub(3), full(4)], 1, bytes);
}

#[test]
fn what_a_policy_wrote_is_judged_by_what_it_says() {
    let records = conversation();
    let bytes = records[2].text().len() as u64;
    check_last((0..5).map(|index| made(&records[index])).collect(), 1, 0);
    check_last((0..3).map(|index| made(&records[index])).collect(), 1, bytes);
    let view = said(Role::Assistant, "1\t    twenty_characters();\n2\t}\n");
    check_last(vec![made(&records[0]), made(&view)], 1, 0);
    let short = answers("r", "fn a() {");
    check_last(vec![made(&records[1]), made(&short)], 0, 0);
}

#[test]
fn patches_are_looked_for_hunk_by_hunk() {
    let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n one line of context\n-one line taken\n+x\n@@\n+only added here\n*** End Patch";
    let records = [
        said(Role::User, "one line of context\none line taken\nonly added here"),
        calls("p", "apply_patch", json!({ "input": patch })),
    ];
    let request = WindowChange { before: 1, keep: 0, added: vec![full(0)] };
    let measures = measure(&records, [request]);
    assert_eq!((measures.targets, measures.hits), (1, 1));
}

#[test]
fn what_a_request_shares_with_the_last_one_is_cheap() {
    let records = [
        said(Role::User, "0123456789"),
        said(Role::Assistant, "0123456789"),
        said(Role::User, "0123456789"),
        said(Role::Assistant, ""),
    ];
    let first = WindowChange { before: 1, keep: 0, added: vec![full(0)] };
    let second = |keep, added| measure(&records, [first.clone(), WindowChange { before: 3, keep, added }]);
    let whole = second(1, vec![full(1), full(2)]);
    assert_eq!(whole, second(0, vec![full(0), full(1), full(2)]), "what is kept is found, not believed");
    assert_eq!((whole.bytes, whole.peak_bytes, whole.cost), (40, 30, 12.5 + 1.0 + 25.0));
    assert_eq!((whole.cost_ratio(), whole.tokens_ratio(), whole.costlier, whole.over), (1.0, 1.0, 0, 0));
    let changed = second(0, vec![stub(0), full(1), full(2)]);
    assert_eq!((changed.bytes, changed.cost, changed.costlier), (150, 12.5 + 175.0, 1));
}

#[test]
fn equal_messages_of_a_policy_are_one_to_the_cache() {
    let record = said(Role::User, "0123456789");
    let records = [record.clone(), said(Role::Assistant, ""), said(Role::Assistant, "")];
    let shared = MadeMessage::new(record.clone());
    let request = |before, entry| WindowChange { before, keep: 0, added: vec![entry] };
    let same = [request(1, WindowEntry::Made(Arc::clone(&shared))), request(2, WindowEntry::Made(shared))];
    let equal = [request(1, made(&record)), request(2, made(&record))];
    let other = [request(1, made(&record)), request(2, made(&said(Role::User, "9876543210")))];
    assert_eq!(measure(&records, same.clone()).cost, 12.5 + 1.0);
    assert_eq!(measure(&records, equal), measure(&records, same));
    assert_eq!(measure(&records, other).cost, 25.0);
}

#[test]
fn sizes_are_those_of_spaced_json() {
    let check = |arguments: Value, bytes: u64| {
        let records = [calls("a", "t", arguments), said(Role::Assistant, "")];
        let transcript = Transcript { records: records.to_vec() };
        assert_eq!(RecordedSession::new(&transcript).bytes_before(1), 1 + bytes);
    };
    check(json!({}), 2);
    check(json!("text as it is"), 13);
    check(json!({"a": [1, 2.5, true, false, null], "ü": "\n\"\u{1}"}), 54);
    check(json!([1e30, 1e-7, 100000.0]), 24);
}

proptest! {
    #[test]
    fn it_does_not_matter_how_much_of_a_request_is_told(shape in shape(), budget in 0_u32..4_000) {
        let transcript = transcript_of(&shape);
        let recorded = RecordedSession::new(&transcript);
        for policy in &KNOWN {
            let (mut told, mut repeated) = (WindowJudge::new(&recorded, Prices::ANTHROPIC), WindowJudge::new(&recorded, Prices::ANTHROPIC));
            let mut window: Vec<WindowEntry> = Vec::new();
            for request in policy.requests(&transcript, &recorded, f64::from(budget)) {
                let request = request.expect("these policies cannot fail");
                window.truncate(request.keep);
                window.extend(request.added.iter().cloned());
                repeated.take(WindowChange { before: request.before, keep: 0, added: window.clone() });
                told.take(request);
            }
            prop_assert_eq!(told.finish(100.0), repeated.finish(100.0));
        }
    }
}

#[test]
fn what_the_agent_said_and_what_it_draws_on_are_measured() {
    let records = [
        said(Role::User, "go"),
        said(Role::Assistant, "The parser is in src/parser_core.rs and it is wrong."),
        said(Role::User, "ok"),
        said(Role::Assistant, "I will change src/parser_core.rs now."),
    ];
    let check = |shown: Vec<WindowEntry>, told: f64, used: u64| {
        let requests = [
            WindowChange { before: 1, keep: 0, added: vec![full(0)] },
            WindowChange { before: 3, keep: 0, added: shown },
        ];
        let measures = measure(&records, requests);
        // Before the first request the agent had said nothing, and none of its words had occurred.
        assert_eq!((measures.told_requests, measures.needed), (1, 1));
        assert_eq!((measures.told_share(), measures.used), (told, used));
    };
    check(vec![full(0), full(1), full(2)], 1.0, 1);
    check(vec![full(0), full(2)], 0.0, 0);
    check(vec![full(0), stub(1), full(2)], 0.0, 0);
    check(vec![full(0), made(&said(Role::User, "edited src/parser_core.rs")), full(2)], 0.0, 1);
    check(vec![full(0), made(&records[1]), full(2)], 1.0, 1);
}
